"""What is kept of many errors, and that memory does not grow with what a text holds."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable

import pytest

from lifecycle.extract import ErrorFinder, Limits
from tests.unit.extract.finding import error_lines, find

MIB = 2**20
STAMP = "2026-03-12 03:14:15,123"


def test_different_errors_beyond_the_limit_leave_the_first_and_the_last() -> None:
    # Letters, not digits: errors that differ in figures only would be alike.
    names = ["".join(letters) for letters in itertools.product("abcdefghij", repeat=4)]
    found = find("".join(f"{STAMP} ERROR train: lost {name}\n" for name in names), limits=Limits(total_bytes=200_000))
    kept = [line.split()[-1].decode() for line in error_lines(found)]
    assert kept[0] == names[0]
    assert kept[-1] == names[-1]
    assert len(kept) + found.cut_blocks == len(names)
    assert 50 < len(kept) < 1000
    assert found.counts == {"ERROR": len(names)}
    first = next(index for index, name in enumerate(kept) if name != names[index])
    assert kept[first:] == names[first - len(kept) :]


def test_errors_alike_are_told_apart_from_others_between_them() -> None:
    text = "".join(
        f"{STAMP} ERROR a: peer {number} lost\n{STAMP} ERROR b: {number} bytes short\n" for number in range(500)
    )
    found = find(text + f"{STAMP} ERROR c: once\n", limits=Limits(first_alike=2, last_alike=1))
    kept = [line.split()[3:] for line in error_lines(found)]
    assert [line[0] for line in kept] == [b"a:", b"b:", b"a:", b"b:", b"a:", b"b:", b"c:"]
    assert found.cut_blocks == 1000 - 6
    assert sum(block.left_out for block in found.blocks) == found.cut_blocks


def test_nothing_is_left_out_of_few_errors() -> None:
    found = find("".join(f"{STAMP} ERROR train: peer {number} lost\n" for number in range(25)))
    assert len(error_lines(found)) == 25
    assert (found.cut_blocks, found.cut_bytes) == (0, 0)


TEXTS = {
    "a line without end": lambda: b"ERROR " + b"x" * MIB,
    "bars without end": lambda: b"\r 10%|#  | 1/10 [00:01<00:09, 1.00it/s]" * 26_000,
    "the same error": lambda: f"{STAMP} ERROR train: lost\n".encode() * 25_000,
    "tracebacks that never end": lambda: b"Traceback (most recent call last):\n" + b"  x\n" * 250_000,
    "many ranks": lambda: b"".join(b"[rank%d]: Traceback (most recent call last):\n" % rank for rank in range(22_000)),
    "lines that are never whole": lambda: b"".join(
        b"2026-03-12T03:14:15.123456789Z std%s P %s\n" % (stream, b"y" * 60)
        for _ in range(5_000)
        for stream in (b"out", b"err")
    ),
    "dots and brackets": lambda: (b"A." * 300 + b"[" * 300 + b"Error: x\n") * 1000,
    "spaces and figures": lambda: (b" " * 300 + b"1" * 300 + b"error:\n") * 1500,
    "names and colons": lambda: (b"a" * 250 + b": " + b"a:" * 150 + b" error: x\n") * 1500,
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_memory_does_not_grow_with_the_text(text: Callable[[], bytes]) -> None:
    piece = text()[: MIB // 4]
    finder = ErrorFinder(Limits(total_bytes=MIB // 4, record_bytes=64 * 2**10))
    for _ in range(3):
        finder.feed(piece)
    tracemalloc.start()
    try:
        finder.feed(piece)
        for _ in range(2):
            finder.feed(piece)
        assert tracemalloc.get_traced_memory()[0] < 2 * MIB
        finder.finish()
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()
