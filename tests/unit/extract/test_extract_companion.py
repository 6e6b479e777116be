"""A companion's text: the source's identity, every line with its number, and all of it back again."""

from __future__ import annotations

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.errors import Damaged
from lifecycle.extract import Found, Limits, SourceFacts, parse, render
from tests.builders import NOON, NOON_NS
from tests.unit.extract.finding import find

SOURCE = SourceFacts("shared", b"vision/a\nb\xff.log", 1234, NOON_NS + 5, blake3(b"x").digest())
TEXT = """\
2026-03-12 03:14:14,123 INFO train: step 1
2026-03-12 03:14:15,123 ERROR train: step failed
Traceback (most recent call last):
  File "train.py", line 12, in main
ValueError: bad batch
2026-03-12 03:14:16,123 INFO train: step 2
"""


def test_a_person_reads_whose_errors_these_are_and_where_each_line_stands() -> None:
    assert (
        render(find(TEXT), SOURCE).decode()
        == f"""\
# lifecycle errors 1
# place: shared
# path: vision/a\\x0ab\\xff.log
# size: 1234 bytes
# written: {NOON:%Y-%m-%d} 12:00:00.000000005 UTC, {NOON_NS + 5} ns
# blake3: {SOURCE.digest.hex()}
# lines: 6
# errors: ERROR 1
# left out: 0 errors, 0 bytes

# block 1: lines 1-6, byte 0, ERROR
1-2026-03-12 03:14:14,123 INFO train: step 1
2:2026-03-12 03:14:15,123 ERROR train: step failed
3:Traceback (most recent call last):
4:  File "train.py", line 12, in main
5:ValueError: bad batch
6-2026-03-12 03:14:16,123 INFO train: step 2
"""
    )


def test_lines_left_out_show_as_a_gap() -> None:
    text = "[rank3]: Traceback (most recent call last):\n[rank2]: step\n[rank3]: ValueError: x\n"
    assert b"\n1:[rank3]: Traceback (most recent call last):\n--\n3:[rank3]: ValueError: x\n" in render(
        find(text), SOURCE
    )


def test_repeats_that_were_left_out_are_counted_where_they_began() -> None:
    found = find("ERROR:root:lost\n" * 100, limits=Limits(first_alike=2, last_alike=1))
    assert b", ERROR; 97 like it left out\n" in render(found, SOURCE)


LINES = st.sampled_from(
    [
        "ERROR:root:x\n",
        "fine\n",
        "\n",
        "# block 1: lines 1-2, byte 0, ERROR\n",
        "Killed",
        "\r",
        "Killed\r\n",
        "--\n",
        "\xff\n",
    ]
)


def _with_newlines(found: Found) -> Found:
    from lifecycle.extract.companion import split_lines

    return found._replace(
        blocks=tuple(
            block._replace(text=b"".join(line + b"\n" * (line[-1:] != b"\n") for line in split_lines(block.text)))
            for block in found.blocks
        )
    )


@given(st.lists(LINES, max_size=40))
def test_what_is_rendered_can_be_read_back(lines: list[str]) -> None:
    found = find("".join(lines).encode("latin-1"), limits=Limits(first_alike=2, last_alike=1))
    back, source = parse(render(found, SOURCE))
    assert source == SOURCE
    assert back == _with_newlines(found)


def test_what_is_no_companion_is_refused() -> None:
    whole = render(find(TEXT), SOURCE)
    for text in (
        b"",
        b"something else\n",
        whole[:60],
        whole.replace(b"blake3: ", b"blake3: z"),
        whole.replace(b", byte", b""),
    ):
        with pytest.raises(Damaged):
            parse(text)
