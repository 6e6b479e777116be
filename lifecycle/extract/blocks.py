"""The values that extraction gives and the limits it keeps to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """The two levels that are kept, however a program spells them."""

    ERROR = "ERROR"
    FATAL = "FATAL"  # also CRITICAL, PANIC, EMERG, a signal that ended the process

    def worse(self, other: Level) -> Level:
        return Level.FATAL if Level.FATAL in (self, other) else Level.ERROR


class Block(NamedTuple):
    """Lines of one writer that belong together: one error, or several so near that their context meets.

    A line ends at a newline, and for reading also at a bare carriage return, so that several lines of ``text`` may
    have one number. Where numbers jump, the lines between are of other writers (ranks) or were left out.
    """

    first_line: int  # 1-based, context included
    last_line: int
    offset: int  # of the first line in the decompressed text, in bytes
    level: str  # the most severe in it: "ERROR" or "FATAL"
    text: bytes  # the lines as they stand, except that very long ones are clipped, which is said in them
    numbers: tuple[int, ...]  # of each line of the text
    is_context: tuple[bool, ...]  # whether a line is only near the error
    left_out: int  # errors like those of this block that came later and are not kept


class Found(NamedTuple):
    """All of one text. What was kept has at most about ``Limits.total_bytes``."""

    blocks: tuple[Block, ...]  # by first line
    lines: int  # of the whole text; a last one without its newline counts
    counts: Mapping[str, int]  # error lines per level, those that were cut included
    cut_blocks: int  # errors that are not kept: repeats, or beyond the limits
    cut_bytes: int  # of the errors that are not kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """All sizes in bytes. Memory is bounded by them, whatever the text."""

    before: int = 3  # lines of context
    after: int = 2
    loose: int = 8  # unstamped lines that may follow a stamped record
    line_bytes: int = 64 * 2**10  # a longer line is judged by this much of it, and clipped
    record_bytes: int = 256 * 2**10  # of one error with its continuation; the middle of a longer one is left out
    total_bytes: int = 8 * 2**20  # half for the first errors, half for the last
    first_alike: int = 20  # of errors that differ in figures only
    last_alike: int = 5
    patience: int = 500  # lines of other writers before an unfinished record is given up
    window_bytes: int = 16 * 2**10  # context is looked for this far back


class SourceFacts(NamedTuple):
    """Whose errors they are; goes into the companion's head."""

    place: str
    path: bytes  # below the place
    size_bytes: int  # as it lies there, perhaps compressed
    mtime_ns: int
    digest: bytes  # BLAKE3 of those bytes
