"""One error while it is being read: which of its writer's lines still belong to it, and when it is over.

Knows how tracebacks, stack dumps and log records go on. Never how lines are found or what is kept of many records.
"""

from __future__ import annotations

import re
from collections import deque
from enum import Enum
from typing import Final, NamedTuple

from lifecycle.extract.blocks import Level, Limits
from lifecycle.extract.kinds import CHAINED, FOLLOWS, GROUP_END, PROGRESS
from lifecycle.extract.levels import Shape, Verdict, is_timed
from lifecycle.extract.lines import HEAD_BYTES, Line

_FOREIGN_LINES: Final = 10  # of other threads within a traceback that has not come to its exception
_INDENTED_LINES: Final = 200  # that follow by their indentation alone
_FIGURES: Final = re.compile(rb"0x[0-9a-fA-F]+|\d+")
_ALIKE_BYTES: Final = 4096


class Fate(Enum):
    TAKEN = "taken"  # the line belongs to the record
    OVER = "over"  # it does not, and none that follows will


class RawLine(NamedTuple):
    number: int
    raw: bytes
    is_context: bool


class Record:
    """``offset`` is that of its first line, context included. Not closed until the caller closes it."""

    __slots__ = (
        "_alike", "_alike_bytes", "_bytes", "_chained", "_had_trace", "_head", "_indented", "_is_record", "_is_timed",
        "_limits", "_loose", "_quiet", "_tail", "_tail_bytes", "_trace", "cut_bytes", "last_seen", "level", "offset",
        "writer",
    )  # fmt: skip

    def __init__(self, writer: bytes, offset: int, context: list[RawLine], limits: Limits) -> None:
        self.writer = writer
        self.offset = offset
        self.level = Level.ERROR
        self.last_seen = 0  # the finder's count of lines when a line of this writer came
        self.cut_bytes = 0
        self._limits = limits
        self._head = context
        self._tail: deque[RawLine] = deque()
        self._bytes = sum(len(line.raw) for line in context)
        self._tail_bytes = 0
        self._alike: list[bytes] = []
        self._alike_bytes = 0
        self._trace: int | None = None  # indentation of a traceback's head, until its exception is read
        self._had_trace = False
        self._chained = False  # another traceback belongs to this record
        self._is_record = False
        self._is_timed = False
        self._quiet = 0  # lines since the last that surely belongs to it
        self._indented = 0
        self._loose = 0

    def begin(self, lines: list[tuple[int, bytes]], line: Line, verdict: Verdict) -> None:
        """The line that made it a record."""
        self.level = verdict.level
        self._is_record = line.is_stamped or verdict.shape is Shape.LEVELLED
        self._is_timed = is_timed(line)
        self._take_error(lines, line, verdict)

    def offer(self, lines: list[tuple[int, bytes]], line: Line, verdict: Verdict | None) -> Fate:
        """The writer's next line. OVER means it was not taken; an error among those begins a record of its own."""
        text = line.text
        if self._trace is not None:
            return self._offer_to_trace(lines, line, verdict)
        if FOLLOWS.match(text, 0, HEAD_BYTES) and not (verdict and verdict.shape is Shape.LEVELLED):
            if CHAINED.search(text, 0, HEAD_BYTES):
                self._chained = True
            if verdict is not None and verdict.shape is Shape.TRACE:
                self._trace = _indent(text)
            return self._take(lines, text)
        if verdict is not None:
            if verdict.shape is Shape.TRACE and (self._chained or not self._had_trace):
                self._take_error(lines, line, verdict)
                return Fate.TAKEN
            return Fate.OVER
        if self._is_record and not self._quiet and self._goes_on(line):
            return self._take(lines, text)
        return self._take_context(lines, line)

    def _offer_to_trace(self, lines: list[tuple[int, bytes]], line: Line, verdict: Verdict | None) -> Fate:
        text = line.text
        assert self._trace is not None
        if not text.strip() or _indent(text) > self._trace or FOLLOWS.match(text, 0, HEAD_BYTES):
            if CHAINED.search(text, 0, HEAD_BYTES):
                self._chained = True
            if GROUP_END.match(text, 0, HEAD_BYTES):
                self._trace = None
            return self._take(lines, text)
        if verdict is not None:
            if verdict.shape is not Shape.LEVELLED:
                self._trace = None if verdict.shape is Shape.PLAIN else _indent(text)
            self._take_error(lines, line, verdict, ends_trace=True)
            return Fate.TAKEN
        if PROGRESS.match(text, 0, HEAD_BYTES) or (is_timed(line) and not self._is_timed):
            self._quiet += 1
            if self._quiet > _FOREIGN_LINES:
                return Fate.OVER
            self._keep(lines, is_context=True)
            return Fate.TAKEN
        self._trace = None  # an exception whose name does not say so
        return self._take(lines, text)

    def _take_error(
        self, lines: list[tuple[int, bytes]], line: Line, verdict: Verdict, *, ends_trace: bool = False
    ) -> None:
        self.level = self.level.worse(verdict.level)
        self._chained = False
        if verdict.shape is Shape.TRACE:
            self._trace = _indent(line.text)
            self._had_trace = True
        self._note(line.text)
        self._restart()
        self._keep(lines, is_context=False)

    def _take(self, lines: list[tuple[int, bytes]], text: bytes) -> Fate:
        self._note(text)
        self._restart()
        self._keep(lines, is_context=False)
        return Fate.TAKEN

    def _take_context(self, lines: list[tuple[int, bytes]], line: Line) -> Fate:
        self._quiet += 1
        limit = self._limits.after
        if self._is_timed and not is_timed(line) and not PROGRESS.match(line.text, 0, HEAD_BYTES):
            self._loose += 1
            if self._loose == self._quiet:  # no other record since
                limit = max(limit, self._limits.loose)
        if self._quiet > limit:
            return Fate.OVER
        self._keep(lines, is_context=True)
        return Fate.TAKEN

    def _goes_on(self, line: Line) -> bool:
        """By its indentation, straight after a line that surely belongs to it."""
        text = line.text
        if line.is_stamped or text[:1] not in (b" ", b"\t") or self._indented >= _INDENTED_LINES or not text.strip():
            return False
        self._indented += 1
        return not PROGRESS.match(text, 0, HEAD_BYTES)

    def _restart(self) -> None:
        self._quiet = self._loose = 0

    def _note(self, part: bytes) -> None:
        if self._alike_bytes < _ALIKE_BYTES:
            self._alike.append(part[:_ALIKE_BYTES])
            self._alike_bytes += len(part)

    def _keep(self, lines: list[tuple[int, bytes]], *, is_context: bool) -> None:
        """Hold the beginning and the end: a traceback's last line says most."""
        for number, raw in lines:
            line = RawLine(number, raw, is_context)
            is_first = len(self._alike) == 1 and not is_context
            if not self._tail and (is_first or self._bytes + len(raw) <= self._limits.record_bytes // 2):
                self._head.append(line)
                self._bytes += len(raw)
                continue
            self._tail.append(line)
            self._tail_bytes += len(raw)
            while self._tail_bytes > self._limits.record_bytes // 2 and len(self._tail) > 1:
                gone = self._tail.popleft()
                self._tail_bytes -= len(gone.raw)
                self.cut_bytes += len(gone.raw)

    def lines(self) -> list[RawLine]:
        """What is held: all of it, or its beginning and its end."""
        return [*self._head, *self._tail]

    def likeness(self) -> int:
        """Equal for records that differ in figures only."""
        return hash(_FIGURES.sub(b"0", b"\n".join(self._alike)))


def _indent(text: bytes) -> int:
    return len(text) - len(text.lstrip(b" \t|+"))
