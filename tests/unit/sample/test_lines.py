"""Lines: whole, of about the size asked for, in time order up to the end, and cheap when long."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from random import Random

import pytest

from lifecycle.sample.lines import BLOCK_BYTES, FORMATS, Writer, render_lines
from tests.builders import NOON


def _render(name: str, size_bytes: int, end: datetime = NOON) -> bytes:
    return render_lines(FORMATS[name], Random(3), size_bytes=size_bytes, end=end, writer=Writer(rank=5))


@pytest.mark.parametrize("name", FORMATS)
def test_a_text_is_whole_lines_of_about_the_size_asked_for(name: str) -> None:
    text = _render(name, 200_000)
    assert text.endswith(b"\n")
    assert 0.85 < len(text) / 200_000 < 1.15
    text.decode("utf-8")


@pytest.mark.parametrize("name", FORMATS)
def test_the_smallest_text_is_one_line_and_the_empty_one_is_empty(name: str) -> None:
    assert _render(name, 1).endswith(b"\n")
    assert _render(name, 0) == b""


def test_times_rise_to_the_end() -> None:
    stamps = re.findall(rb"^(\S+ \S+),", _render("rank", 50_000), re.MULTILINE)
    assert stamps == sorted(stamps)
    assert stamps[-1] == NOON.strftime("%Y-%m-%d %H:%M:%S").encode()


def test_a_long_text_goes_back_a_day_for_each_block_and_ends_today() -> None:
    text = _render("rank", 3 * BLOCK_BYTES)
    days = list(dict.fromkeys(re.findall(rb"^(\d{4}-\d\d-\d\d) ", text, re.MULTILINE)))
    assert len(text) <= 3 * BLOCK_BYTES
    assert days[-1] == NOON.date().isoformat().encode()
    assert len(days) == 4
    assert text.startswith((NOON - timedelta(days=3)).date().isoformat().encode())


def test_a_long_text_starts_and_ends_with_a_whole_line() -> None:
    lines = _render("deepspeed", BLOCK_BYTES + 1000).splitlines()
    assert all(line.startswith(b"[20") for line in (lines[0], lines[-1]))
