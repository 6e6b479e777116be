"""What is kept of many errors: the first and the last, and of those alike the first and the last of their kind.

Knows sizes and likeness; never text. Its memory is bounded by ``Limits.total_bytes``, whatever comes.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import pairwise
from typing import Final, NamedTuple

from lifecycle.extract.blocks import Block, Level, Limits
from lifecycle.extract.records import Record

_KINDS: Final = 4096  # that are told apart at a time; the one seen longest ago is forgotten
_OVERHEAD_BYTES: Final = 512  # what a kept record costs beside its text


class _Kept(NamedTuple):
    writer: bytes
    offset: int
    level: Level
    text: bytes
    numbers: tuple[int, ...]
    is_context: tuple[bool, ...]
    kind: _Kind

    @property
    def cost(self) -> int:
        return len(self.text) + 8 * len(self.numbers) + _OVERHEAD_BYTES


class _Kind:
    """Records that differ in figures only."""

    __slots__ = ("first", "last", "left_out")

    def __init__(self) -> None:
        self.first = 0  # how many are among the first
        self.last: deque[int] = deque()  # serial numbers of those among the last
        self.left_out = 0


class Keeper:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kinds: OrderedDict[int, _Kind] = OrderedDict()
        self._first: list[_Kept] = []
        self._last: OrderedDict[int, _Kept] = OrderedDict()
        self._first_bytes = self._last_bytes = 0
        self._serial = 0
        self.cut_blocks = 0
        self.cut_bytes = 0

    def add(self, record: Record) -> None:
        """Take a finished record; one that is not kept is counted."""
        kind = self._kind_of(record.likeness())
        kept = _kept(record, kind)
        half = self._limits.total_bytes // 2
        self.cut_bytes += record.cut_bytes
        if kind.first < self._limits.first_alike and self._first_bytes + kept.cost <= half:
            kind.first += 1
            self._first.append(kept)
            self._first_bytes += kept.cost
            return
        self._serial += 1
        self._last[self._serial] = kept
        self._last_bytes += kept.cost
        kind.last.append(self._serial)
        if len(kind.last) > self._limits.last_alike:
            self._leave_out(kind.last.popleft())
        while self._last_bytes > half and len(self._last) > 1:
            oldest = next(iter(self._last))
            self._last[oldest].kind.last.popleft()
            self._leave_out(oldest)

    def blocks(self) -> tuple[Block, ...]:
        """What is kept, by line; records of one writer that touch are one block."""
        kept = sorted([*self._first, *self._last.values()], key=lambda one: one.offset)
        last_of_first = {id(one.kind): index for index, one in enumerate(self._first)}
        told = {id(self._first[index]) for index in last_of_first.values()}
        runs: list[list[_Kept]] = []
        latest: dict[bytes, list[_Kept]] = {}
        for one in kept:
            run = latest.get(one.writer)
            if run is not None and one.numbers[0] <= run[-1].numbers[-1] + 1:
                run.append(one)
            else:
                latest[one.writer] = run = [one]
                runs.append(run)
        return tuple(_block(run, told) for run in runs)

    def _leave_out(self, serial: int) -> None:
        gone = self._last.pop(serial)
        self._last_bytes -= gone.cost
        gone.kind.left_out += 1
        self.cut_blocks += 1
        self.cut_bytes += len(gone.text)

    def _kind_of(self, likeness: int) -> _Kind:
        kind = self._kinds.get(likeness)
        if kind is None:
            kind = self._kinds[likeness] = _Kind()
            if len(self._kinds) > _KINDS:
                self._kinds.popitem(last=False)
        else:
            self._kinds.move_to_end(likeness)
        return kind


def _kept(record: Record, kind: _Kind) -> _Kept:
    lines = record.lines()
    return _Kept(
        record.writer,
        record.offset,
        record.level,
        b"".join(line.raw for line in lines),
        tuple(line.number for line in lines),
        tuple(line.is_context for line in lines),
        kind,
    )


def _block(run: list[_Kept], told: set[int]) -> Block:
    level = run[0].level
    for _, later in pairwise(run):
        level = level.worse(later.level)
    return Block(
        first_line=run[0].numbers[0],
        last_line=run[-1].numbers[-1],
        offset=run[0].offset,
        level=level.value,
        text=b"".join(one.text for one in run),
        numbers=tuple(number for one in run for number in one.numbers),
        is_context=tuple(flag for one in run for flag in one.is_context),
        left_out=sum(one.kind.left_out for one in run if id(one) in told),
    )
