"""What a ``.lifecycle-hold`` says, however it is written."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lifecycle.scan.holdfile import HOLD_NAME, has_hold, parse_hold_file, read_hold_file


@pytest.mark.parametrize(
    ("text", "reason", "owner", "ends"),
    [
        ("", HOLD_NAME, "wu", None),
        ("paper, table 3\n", "paper, table 3", "wu", None),
        ("# why\nReason: paper: table 3\nOWNER: chen\n", "paper: table 3", "chen", None),
        ("two\nlines\n", "two lines", "wu", None),
        ("ends: 2027-03-01\n", HOLD_NAME, "wu", datetime(2027, 2, 28, 16, tzinfo=UTC)),
        ("ends: 2027-03-01T09:00+00:00\nx", "x", "wu", datetime(2027, 3, 1, 9, tzinfo=UTC)),
        ("reason: \nkept anyway", "reason: kept anyway", "wu", None),
        ("a\x1b[2Jb\x00c\r\n", "a[2Jbc", "wu", None),
    ],
)
def test_words_are_found_wherever_they_stand(text: str, reason: str, owner: str, ends: datetime | None) -> None:
    found = parse_hold_file(b"nlp/job", text, "wu", timezone="Asia/Shanghai")
    assert (found.reason, found.owner, found.ends, found.problem) == (reason, owner, ends, "")


@pytest.mark.parametrize("text", ["ends: soon", "ends: 2027-13-40", "ends: 0001-01-01T00:00+14:00"])
def test_an_end_that_is_none_is_said_and_the_hold_has_none(text: str) -> None:
    found = parse_hold_file(b"nlp/job", text, "wu", timezone="UTC")
    assert found.ends is None and "is not a date" in found.problem


def test_a_long_text_is_cut() -> None:
    assert len(parse_hold_file(b"", "x" * 5000, "wu", timezone="UTC").reason) == 200


def test_a_hold_is_found_among_many_names() -> None:
    names = [".hidden", ".lifecycle", ".lifecycle-hold", ".lifecycle-holder", "a.log"]
    entries = [(name, 1, 2, 3, 4) for name in names]
    assert has_hold(entries) and not has_hold([entry for entry in entries if entry[0] != HOLD_NAME])
    assert not has_hold([])


@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "gone"])
def test_what_is_no_file_never_blocks_and_holds_all_the_same(tmp_path: Path, kind: str) -> None:
    at = tmp_path / HOLD_NAME
    if kind == "fifo":
        os.mkfifo(at)
    elif kind == "link":
        at.symlink_to("/etc/passwd")
    elif kind == "folder":
        at.mkdir()
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        found = read_hold_file(b"nlp/job", fd, timezone="UTC")
    finally:
        os.close(fd)
    assert found.reason == HOLD_NAME and "root" not in found.reason


def test_a_file_without_an_owner_in_it_is_its_user_s(tmp_path: Path) -> None:
    (tmp_path / HOLD_NAME).write_text("paper")
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        found = read_hold_file(b"nlp/job", fd, timezone="UTC")
    finally:
        os.close(fd)
    assert found.owner and found.reason == "paper"
