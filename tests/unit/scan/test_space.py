"""What a ``free_space`` command may print."""

from __future__ import annotations

import pytest

from lifecycle.scan.space import parse_space


@pytest.mark.parametrize(
    ("out", "figures"),
    [
        (b"1000 200\n", (1000, 200, 0, 0)),
        (b"  1000\t0  ", (1000, 0, 0, 0)),
        (b"1000 1000 50 7\n", (1000, 1000, 50, 7)),
    ],
)
def test_two_or_four_whole_numbers_are_figures(out: bytes, figures: tuple[int, ...]) -> None:
    space = parse_space(out, "fullest")
    assert space.unknown == ""
    assert space[:4] == figures


@pytest.mark.parametrize(
    "out",
    [
        b"", b"1000", b"1000 200 5", b"1000 -5", b"1e3 5", b"1000 200\n1000 200\n", b"80%", b"1000 2000", b"0 0",
        b"1000 200 5 6", b"1000 5 " + b" " * 5000, "١٠٠٠ ١".encode(), b"\xff\xfe",
    ],
)  # fmt: skip
def test_anything_else_is_unknown_with_a_reason(out: bytes) -> None:
    space = parse_space(out, "fullest")
    assert "fullest" in space.unknown
    assert space.total_bytes == 0
