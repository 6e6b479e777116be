"""For tests of extraction: a text through the finder in one piece or in many."""

from __future__ import annotations

from collections.abc import Iterable

from lifecycle.extract import ErrorFinder, Found, Limits


def find(text: bytes | str, *, limits: Limits = Limits(), cuts: Iterable[int] = ()) -> Found:
    """What is found in a text that comes in pieces, cut at ``cuts``."""
    data = text.encode() if isinstance(text, str) else text
    finder = ErrorFinder(limits)
    ends = [*sorted(min(cut, len(data)) for cut in cuts), len(data)]
    start = 0
    for end in ends:
        finder.feed(data[start:end])
        finder._take_waiting()  # not gathered: every cut counts
        start = end
    return finder.finish()


def error_lines(found: Found) -> list[bytes]:
    """All lines that belong to errors, without their line ends and without context."""
    from lifecycle.extract.companion import split_lines

    return [
        line.rstrip(b"\r\n")
        for block in found.blocks
        for line, is_context in zip(split_lines(block.text), block.is_context, strict=True)
        if not is_context
    ]


def is_error(line: bytes | str) -> bool:
    """Whether one line alone is an error."""
    return bool(find(line).blocks)
