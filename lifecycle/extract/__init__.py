"""The error blocks of a log: bytes in, blocks out.

Knows text and how programs write errors into it. Must never know where bytes come from, tiers, policy or the catalog.
What counts as an error is described in docs/errors.md: ``judging`` asks ``levels``, ``structured`` and the tables of
``kinds``; ``sieve`` lets through whatever could count. How a record goes on: ``records``. What is kept: ``keeping``.
"""

from __future__ import annotations

from lifecycle.extract.blocks import Block, Found, Level, Limits, SourceFacts
from lifecycle.extract.companion import parse, render
from lifecycle.extract.decoding import Decoding, NotDecodable, decoded
from lifecycle.extract.finder import ErrorFinder, is_clean

__all__ = [
    "Block",
    "Decoding",
    "ErrorFinder",
    "Found",
    "Level",
    "Limits",
    "NotDecodable",
    "SourceFacts",
    "decoded",
    "is_clean",
    "parse",
    "render",
]
