"""A selector in the words of the command line: what one would type to get the same segments."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from lifecycle.model import Selector
from lifecycle.names import show_name
from lifecycle.units import format_instant, from_ns


def describe_selector(selector: Selector) -> str:
    """``--team nlp --job 'pretrain-*'``; ``everything`` where it selects all."""
    return " ".join(_options(selector)) or "everything"


def _options(selector: Selector) -> Iterator[str]:
    named = (
        ("team", selector.teams), ("job", selector.jobs), ("node", selector.nodes), ("rank", selector.ranks),
        ("class", selector.classes), ("tier", selector.tiers), ("state", selector.states),
    )  # fmt: skip
    for name, values in named:
        for value in _ranges(selector.ranks) if name == "rank" else map(str, values):
            yield f"--{name} {shlex.quote(value)}"
    for path in selector.paths:
        yield f"--path {shlex.quote(show_name(path))}"
    for name, instant in (("since", selector.since_ns), ("until", selector.until_ns)):
        if instant is not None:
            yield f"--{name} {shlex.quote(format_instant(from_ns(instant)))}"


def _ranges(ranks: tuple[int, ...]) -> Iterator[str]:
    """``0-7`` for what follows on."""
    start = last = None
    for rank in (*ranks, None):
        if start is not None and last is not None and rank != last + 1:
            yield str(start) if start == last else f"{start}-{last}"
            start = None
        start = rank if start is None else start
        last = rank
