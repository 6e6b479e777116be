"""The error blocks of a log: bytes in, blocks out.

Knows text and how programs write errors into it. Must never know where bytes come from, tiers, policy or the catalog.
What counts as an error is described in docs/errors.md and lies in ``levels`` and ``kinds``; how a record goes on in
``records``; what is kept of many in ``keeping``.
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
