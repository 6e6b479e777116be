"""The short way for whole texts says "clean" only where a finder finds nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.extract import ErrorFinder, is_clean

LINES = (
    b"2026-03-12 03:14:15,123 INFO train: step 1 loss 2.31",
    b"2026-03-12 03:14:15,123 ERROR train: step failed",
    b"Traceback (most recent call last):",
    b'  File "train.py", line 88, in step',
    b"ValueError: x",
    b"number of nan iterations: 0",
    b"E0312 03:14:15.123456 4711 a.cc:12] broken",
    b"",
)


@given(st.lists(st.sampled_from(LINES), max_size=6), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans())
def test_a_clean_text_has_no_blocks_and_no_error_lines(lines: list[bytes], end: bytes, ends: bool) -> None:
    text = end.join(lines) + (end if ends else b"")
    finder = ErrorFinder()
    finder.feed(text)
    found = finder.finish()
    if is_clean(text):
        assert not found.blocks and not found.counts


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (b"", True),
        (b"INFO fine\n" * 100, True),
        (b"ERROR: at its very start", False),
        (b"fine\nValueError: no end", False),
    ],
)
def test_most_logs_are_and_those_with_errors_are_not(text: bytes, clean: bool) -> None:
    assert is_clean(text) is clean
