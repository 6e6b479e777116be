"""What a ``free_space`` command may print, and what the system's own figures mean."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from lifecycle.scan.space import _statvfs, parse_space


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


def test_blocks_kept_for_root_are_neither_used_nor_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """``df`` says 50 %: 40 of the 80 that others may have."""
    found = SimpleNamespace(f_blocks=100, f_bfree=60, f_bavail=40, f_frsize=4096, f_files=10, f_favail=5)
    monkeypatch.setattr(os, "statvfs", lambda path: found)
    space = _statvfs("/logs")
    assert (space.total_bytes, space.free_bytes) == (80 * 4096, 40 * 4096)
