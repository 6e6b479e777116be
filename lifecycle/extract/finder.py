"""Finding error blocks in a text of any length that comes in chunks of any size; the chunking never shows.

Most of a log has no errors: a whole chunk is sieved in one pass, and lines are taken apart only where something hit,
and for as long as an error goes on. The text is a sequence of lines that end at a newline or at a bare carriage return,
but only newlines are counted as line numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from lifecycle.extract.blocks import Found, Level, Limits
from lifecycle.extract.judging import judge
from lifecycle.extract.keeping import Keeper
from lifecycle.extract.kinds import FOLLOWS
from lifecycle.extract.levels import Verdict
from lifecycle.extract.lines import HEAD_BYTES, Line, read_line
from lifecycle.extract.records import Fate, RawLine, Record
from lifecycle.extract.sieve import SIEVE

_SCAN_BYTES: Final = 256 * 2**10  # chunks are gathered to this much
_PIECE_BYTES: Final = 4 * 2**20  # and larger ones cut to this
_WRITERS: Final = 1024  # with an unfinished record or a line that was cut
_SWEEP_LINES: Final = 64
_CONTEXT_LINES: Final = 24  # that are looked at for those of the same writer
_LINE: Final = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)")
_NEWLINE: Final = 10


class _Before(NamedTuple):
    """A writer's lines of context and the offset where they, or else the line behind them, begin."""

    offset: int
    lines: list[RawLine]


class _Torn:
    """The pieces so far of a line that a container runtime cut."""

    __slots__ = ("before", "cut_bytes", "last_seen", "line", "lines", "size_bytes", "texts")

    def __init__(self, line: Line, before: _Before) -> None:
        self.line = line
        self.before = before
        self.lines: list[tuple[int, bytes]] = []
        self.texts: list[bytes] = []
        self.size_bytes = self.cut_bytes = self.last_seen = 0

    def add(self, number: int, raw: bytes, text: bytes, limit: int) -> None:
        if self.size_bytes + len(raw) > limit and self.lines:
            self.cut_bytes += len(raw)
            return
        self.size_bytes += len(raw)
        self.lines.append((number, raw))
        self.texts.append(text)


def is_clean(text: bytes) -> bool:
    """Whether a whole text has nothing that an ``ErrorFinder`` would take apart: most logs, in one pass and nothing
    else. False says only that one has to look."""
    return not _may_be_error(text)


class ErrorFinder:
    """Feed it a text, then ``finish`` once. Memory is bounded by ``limits``; time is linear in the text."""

    def __init__(self, limits: Limits = Limits()) -> None:
        self._limits = limits
        self._window_bytes = min(limits.window_bytes, limits.line_bytes)
        self._keeper = Keeper(limits)
        self._counts: Counter[Level] = Counter()
        self._open: dict[bytes, Record] = {}
        self._torn: dict[bytes, _Torn] = {}
        self._ends: dict[bytes, int] = {}  # where a writer's last record ended: context begins after it
        self._latest = b""  # whose record was opened last
        self._seen = 0  # lines taken apart
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._text = b"\n"  # a window of what was read, then what is not yet; a line always follows a line end
        self._at = 1  # in it, where the first unread line starts
        self._base = -1  # offset of the window in the whole
        self._number = 1  # of the first unread line
        self._long: bytes | None = None  # the start of a line that outgrew the limit, until it ends
        self._long_bytes = 0
        self._is_over = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, any number of them."""
        for start in range(0, len(chunk), _PIECE_BYTES):
            piece = chunk if len(chunk) <= _PIECE_BYTES else chunk[start : start + _PIECE_BYTES]
            self._waiting.append(piece)
            self._waiting_bytes += len(piece)
            if self._waiting_bytes >= _SCAN_BYTES:
                self._take_waiting()

    def finish(self) -> Found:
        """Blocks of all that was fed. Nothing may be fed afterwards."""
        self._take_waiting()
        if self._long is not None or self._at < len(self._text) or self._waiting:
            self._is_over = True
            self._waiting.append(b"\n")  # the last line has none; it is taken off again
            self._take_waiting()
        for writer in list(self._torn):
            self._end_torn(writer)
        for writer in list(self._open):
            self._close(writer)
        counts = {level.value: self._counts[level] for level in Level if self._counts[level]}
        keeper = self._keeper
        return Found(keeper.blocks(), self._number - 1, counts, keeper.cut_blocks, keeper.cut_bytes)

    # --- from chunks to lines ----------------------------------------------------------------------------------------

    def _take_waiting(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        if self._long is not None:
            data = self._end_long(self._long, data)
        if data:
            self._text += data
            self._scan()

    def _scan(self) -> None:
        """Read all whole lines; keep a window of them, and the start of the one that is not whole."""
        text = self._text
        end = text.rfind(b"\n", self._at) + 1 or self._at
        end = max(end, text.rfind(b"\r", end, len(text) - 1) + 1)  # at the very end it may be half of a line end
        while self._at < end:
            is_hit = not self._open and not self._torn
            if is_hit and not self._skip_to_hit(end):
                break
            match = _LINE.match(text, self._at)
            assert match is not None
            whole = match[0]
            raw = _clip(whole, self._limits.line_bytes)
            self._take_line(raw, match.end(), is_hit=is_hit and raw is whole)
            self._number += text[match.end() - 1] == _NEWLINE
            self._at = match.end()
        rest = len(text) - end
        if rest > self._limits.line_bytes:
            self._begin_long(text[end:])
            text = text[:end]
        keep = max(0, end - self._window_bytes - 1)
        self._text = text[keep:]
        self._base += keep
        self._at = end - keep

    def _skip_to_hit(self, end: int) -> bool:
        """Move to the next line that the sieve finds something in; False at the end."""
        text, at = self._text, self._at
        hit = SIEVE.search(text, at - 1, end)
        start = end if hit is None else max(at, _line_start(text, hit.end() - 1, at))
        self._number += text.count(b"\n", at, start)
        self._at = start
        return hit is not None

    def _begin_long(self, rest: bytes) -> None:
        content = rest.removesuffix(b"\r")
        if len(content) < len(rest):
            self._waiting.append(b"\r")
        self._long, self._long_bytes = content[: self._limits.line_bytes], len(content)

    def _end_long(self, head: bytes, data: bytes) -> bytes:
        """What follows the line's end in ``data``; nothing while it has not come."""
        newline = data.find(b"\n")
        stop = data.find(b"\r", 0, newline if newline >= 0 else len(data))
        if stop < 0:
            stop = newline
        elif stop == len(data) - 1:
            self._waiting.append(b"\r")
            self._long_bytes += stop
            return b""
        if stop < 0:
            self._long_bytes += len(data)
            return b""
        line_end = data[stop : stop + 2] if data[stop : stop + 2] == b"\r\n" else data[stop : stop + 1]
        size = self._long_bytes + stop
        self._take_line(_clipped(head, size) + line_end, self._at + size + len(line_end))
        self._number += line_end[-1] == _NEWLINE
        self._long = None
        self._base += self._at + size + len(line_end) - 1
        self._text, self._at = b"\n", 1
        return data[stop + len(line_end) :]

    # --- from lines to records ---------------------------------------------------------------------------------------

    def _take_line(self, raw: bytes, end: int, *, is_hit: bool = False) -> None:
        """The line at ``_at``, which ends at ``end`` of the window; ``is_hit`` if it was sieved already."""
        if self._is_over:
            raw = raw[:-1]
        self._seen += 1
        if self._seen % _SWEEP_LINES == 0:
            self._sweep()
        line = read_line(raw)
        torn = self._torn.get(line.writer)
        if torn is None and not line.is_partial:
            verdict = judge(line) if is_hit or _may_be_error(raw) else None
            self._take_whole([(self._number, raw)], line, verdict, self._base + end)
            return
        if torn is None:
            torn = self._torn[line.writer] = _Torn(line, self._before(line.writer))
        torn.last_seen = self._seen
        torn.add(self._number, raw, line.text, self._limits.line_bytes)
        if not line.is_partial or len(self._torn) > _WRITERS:
            self._end_torn(line.writer, self._base + end)

    def _end_torn(self, writer: bytes, end: int | None = None) -> None:
        torn = self._torn.pop(writer)
        line = torn.line._replace(text=b"".join(torn.texts), is_partial=False)
        verdict = judge(line) if _may_be_error(line.text) else None
        self._take_whole(torn.lines, line, verdict, end or self._base + self._at, torn.before)
        if torn.cut_bytes and (record := self._open.get(writer)) is not None:
            record.cut_bytes += torn.cut_bytes

    def _take_whole(
        self,
        lines: list[tuple[int, bytes]],
        line: Line,
        verdict: Verdict | None,
        end: int,
        before: _Before | None = None,
    ) -> None:
        """A line that is not torn, or no longer, judged."""
        writer = line.writer
        if writer not in self._open and self._latest.startswith(writer) and FOLLOWS.match(line.text, 0, HEAD_BYTES):
            writer = self._latest  # only the first line of what C++ throws has the rank in front
        record = self._open.get(writer)
        if record is not None:
            record.last_seen = self._seen
            if record.offer(lines, line, verdict) is Fate.TAKEN:
                self._ends[writer] = self._ends[line.writer] = end
                return
            self._close(writer)
        if verdict is None:
            return
        record = Record(line.writer, *(before or self._before(line.writer)), self._limits)
        record.begin(lines, line, verdict)
        record.last_seen = self._seen
        if len(self._open) >= _WRITERS:
            self._close(next(iter(self._open)))
        self._open[line.writer] = record
        self._ends[line.writer] = end
        self._latest = line.writer

    def _before(self, writer: bytes) -> _Before:
        """The writer's lines before the one at ``_at``, as far as they are near and in no record."""
        text, number, start = self._text, self._number, self._at
        low = max(1, start - self._window_bytes, self._ends.get(writer, 0) - self._base)
        offset = self._base + start
        found: list[RawLine] = []
        mark = writer.rstrip()[-4:]  # a line without it need not be taken apart
        for _ in range(_CONTEXT_LINES):
            if start <= low or len(found) == self._limits.before:
                break
            stop = start
            start = _line_start(text, stop - 2 if text[stop - 2 : stop] == b"\r\n" else stop - 1, low)
            if start < 0:
                break
            number -= text[stop - 1] == _NEWLINE
            raw = text[start:stop]
            if mark in raw and read_line(raw).writer == writer:
                found.append(RawLine(number, raw, True))
                offset = self._base + start
        return _Before(offset, found[::-1])

    def _close(self, writer: bytes) -> None:
        record = self._open.pop(writer)
        self._counts[record.level] += 1
        self._keeper.add(record)

    def _sweep(self) -> None:
        """Give up what waits for a writer that has gone silent."""
        oldest = self._seen - self._limits.patience
        for writer in [writer for writer, torn in self._torn.items() if torn.last_seen < oldest]:
            self._end_torn(writer)
        for writer in [writer for writer, record in self._open.items() if record.last_seen < oldest]:
            self._close(writer)
        if len(self._ends) > _WRITERS:
            near = self._base + self._at - self._window_bytes
            self._ends = {writer: end for writer, end in self._ends.items() if end > near}


def _may_be_error(line: bytes) -> bool:
    return SIEVE.search(b"\n%b\n" % line) is not None


def _line_start(text: bytes, stop: int, low: int) -> int:
    """Where the line starts that has no line end between its start and ``stop``; -1 if that is before ``low``."""
    start = text.rfind(b"\n", low - 1, stop) + 1
    return max(start, text.rfind(b"\r", start or low - 1, stop) + 1) or -1


def _clip(raw: bytes, limit: int) -> bytes:
    content = raw.rstrip(b"\r\n")
    return raw if len(content) <= limit else _clipped(content[:limit], len(content)) + raw[len(content) :]


def _clipped(head: bytes, size: int) -> bytes:
    return head if size == len(head) else b"%s [... %d more bytes of this line are left out]" % (head, size - len(head))
