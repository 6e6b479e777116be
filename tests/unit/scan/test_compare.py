"""Names, inodes, sizes and times against what the catalog has. No disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.catalog.scanning import KnownFile
from lifecycle.model import Content, Original
from lifecycle.scan import compare
from lifecycle.scan.sniff import EMPTY_FINGERPRINT, Look
from lifecycle.scan.walk import Entry
from lifecycle.units import DAY_NS, NS, day_of_ns
from tests.builders import NOON_NS

HOUR = 3600 * NS


def known(name: bytes = b"a.log", **values: Any) -> KnownFile:
    facts: dict[str, Any] = {
        "id": 1, "directory_id": 1, "name": name, "inode": 7, "size_bytes": 100, "allocated_bytes": 4096,
        "mtime_ns": NOON_NS, "ctime_ns": NOON_NS, "nlink": 1, "fingerprint": b"f" * 16, "fingerprint_size": 100,
        "day": 1, "first_seen_ns": NOON_NS, "original": "open", "archive_id": None, "team_id": 1, "class_id": 1,
        "job_id": 1,
    }  # fmt: skip
    return KnownFile(**facts | values)


def entry(name: str = "a.log", inode: int = 7, size: int = 100, mtime: int = NOON_NS, ctime: int = NOON_NS) -> Entry:
    return (name, inode, size, mtime, ctime)


@dataclass(frozen=True)
class Facts:
    st_size: int = 100
    st_mtime_ns: int = NOON_NS
    st_ino: int = 7
    st_ctime_ns: int = NOON_NS


def a_look(*, kept: bool = True, content: Content = Content.TEXT, size: int = 100, mtime: int = NOON_NS) -> Look:
    facts: Any = Facts(size, mtime)
    return Look(facts=facts, content=content, fingerprint=b"g" * 16, kept_old=kept, written=None)


def test_a_file_as_it_was_is_the_same() -> None:
    result = compare.compare_folder([entry()], frozenset(), [known()])
    assert (result.same, result.changed, result.unknown, result.gone) == (1, [], [], [])


@pytest.mark.parametrize("change", [{"size": 101}, {"mtime": NOON_NS + 1}, {"ctime": NOON_NS + 1}])
def test_any_other_size_or_time_is_a_change(change: dict[str, int]) -> None:
    result = compare.compare_folder([entry(**change)], frozenset(), [known()])  # type: ignore[arg-type]
    assert [file.id for _, file in result.changed] == [1]


def test_another_inode_under_a_known_name_is_unknown_and_names_the_former_owner() -> None:
    result = compare.compare_folder([entry(inode=9)], frozenset(), [known()])
    assert [(seen[1], owner and owner.id) for seen, owner in result.unknown] == [(9, 1)]


def test_a_missing_file_that_is_back_is_looked_at_again() -> None:
    result = compare.compare_folder([entry()], frozenset(), [known(original=Original.MISSING)])
    assert len(result.changed) == 1


def test_a_known_file_that_got_another_name_by_a_hard_link_is_a_change() -> None:
    result = compare.compare_folder([entry()], frozenset({"a.log"}), [known()])
    assert len(result.changed) == 1


def test_an_unknown_hard_link_is_left_out() -> None:
    result = compare.compare_folder([entry()], frozenset({"a.log"}), [])
    assert result == compare.Comparison()


def test_a_name_of_any_bytes_is_found_again() -> None:
    raw = b"rank\xff\n.log"
    result = compare.compare_folder([entry(os.fsdecode(raw))], frozenset(), [known(raw)])
    assert result.same == 1


_names = st.sampled_from(["a", "b", "c", "d"])
_entries = st.lists(st.builds(entry, _names, st.integers(5, 8), st.integers(1, 2)), unique_by=lambda item: item[0])
_files = st.lists(
    st.builds(
        lambda name, inode, size: known(name.encode(), inode=inode, size_bytes=size),
        _names,
        st.integers(5, 8),
        st.integers(1, 2),
    ),
    unique_by=lambda item: item.name,
)


@given(entries=_entries, files=_files, seed=st.randoms())
def test_each_listed_and_each_known_file_is_accounted_for_once_in_any_order(
    entries: list[Entry], files: list[KnownFile], seed: Any
) -> None:
    result = compare.compare_folder(entries, frozenset(), files)
    assert result.same + len(result.changed) + len(result.unknown) == len(entries)
    owners = [owner for _, owner in result.unknown if owner is not None]
    assert result.same + len(result.changed) + len(owners) + len(result.gone) == len(files)
    seed.shuffle(entries)
    seed.shuffle(files)
    again = compare.compare_folder(entries, frozenset(), files)
    assert sorted(map(repr, again.unknown)) == sorted(map(repr, result.unknown))
    assert again.same == result.same


def test_a_file_that_shrank_cannot_have_moved() -> None:
    assert not compare.may_be_moved(entry("b.log", size=99), known())
    assert compare.may_be_moved(entry("b.log", size=100), known())
    assert compare.may_be_moved(entry("b.log", size=101), known())


def test_an_empty_file_has_moved_only_if_its_time_says_so() -> None:
    empty = known(size_bytes=0, fingerprint=EMPTY_FINGERPRINT, fingerprint_size=0)
    assert compare.may_be_moved(entry("b.log", size=0), empty)
    assert not compare.may_be_moved(entry("b.log", size=0, mtime=NOON_NS + 1), empty)
    assert not compare.may_be_moved(entry("b.log", size=50), empty)  # its inode was given to another file


def test_what_only_grew_goes_on() -> None:
    assert compare.goes_on(known(), a_look(size=500))
    assert not compare.goes_on(known(), a_look(size=500, kept=False))


def test_a_restored_file_does_not_grow() -> None:
    stored = known(archive_id=5, stay_until_ns=NOON_NS)
    assert compare.goes_on(stored, a_look())
    assert not compare.goes_on(stored, a_look(size=101))
    assert not compare.goes_on(stored, a_look(mtime=NOON_NS + 1))


def test_a_file_whose_copy_was_made_early_grows_and_its_copy_is_surplus() -> None:
    copied = known(archive_id=5)
    assert compare.goes_on(copied, a_look(size=101))
    assert compare.is_surplus(copied, a_look(size=101))
    assert compare.is_surplus(copied, a_look(mtime=NOON_NS + 1))
    assert not compare.goes_on(copied, a_look(size=500, kept=False))


def test_a_copy_is_surplus_after_any_touch_and_only_then() -> None:
    """The release reads neither again, so that also an edit with its time put back must count."""
    copied, same = known(archive_id=5), a_look()
    facts = same.facts
    as_it_was = copied._replace(
        inode=facts.st_ino, size_bytes=facts.st_size, mtime_ns=facts.st_mtime_ns, ctime_ns=facts.st_ctime_ns
    )
    assert not compare.is_surplus(as_it_was, same)
    assert compare.is_surplus(as_it_was._replace(ctime_ns=facts.st_ctime_ns - 1), same)
    assert compare.is_surplus(as_it_was._replace(inode=facts.st_ino + 1), same)
    assert not compare.is_surplus(as_it_was._replace(archive_id=None, ctime_ns=1), same)
    assert not compare.is_surplus(as_it_was._replace(stay_until_ns=NOON_NS, ctime_ns=1), same)


def test_an_empty_file_that_became_a_picture_does_not_go_on() -> None:
    assert not compare.goes_on(known(), a_look(content=Content.BINARY))


YEARS_10 = 3653 * DAY_NS


@pytest.mark.parametrize(
    "mtime",
    [0, -1, -5 * DAY_NS, 315_532_800 * NS, NOON_NS - YEARS_10 - 1, NOON_NS + DAY_NS + 1, 2_903_299_200 * NS, 2**70],
)  # 1980; ten years; 24 h ahead; 2062; beyond what a database takes
def test_an_impossible_time_is_no_age(mtime: int) -> None:
    assert compare.last_write_of(mtime, NOON_NS, NOON_NS) is None


@pytest.mark.parametrize("mtime", [NOON_NS - YEARS_10, NOON_NS, NOON_NS + DAY_NS])
def test_a_possible_time_is_the_last_write(mtime: int) -> None:
    assert compare.last_write_of(mtime, NOON_NS, NOON_NS) == mtime


def test_ten_years_count_from_first_sight_and_1990_from_nothing() -> None:
    seen_ns = NOON_NS - 9 * 365 * DAY_NS  # known for nine years
    assert compare.last_write_of(seen_ns - 2 * 365 * DAY_NS, NOON_NS, seen_ns) == seen_ns - 2 * 365 * DAY_NS
    assert compare.last_write_of(631_152_000 * NS - 1, 631_152_000 * NS, 631_152_000 * NS) is None


@pytest.mark.parametrize(("instant", "stored"), [(5, 5), (2**63, 2**63 - 1), (-(2**70), -(2**63) + 1)])
def test_an_instant_is_stored_as_the_nearest_that_fits(instant: int, stored: int) -> None:
    assert compare.storable(instant) == stored


def test_without_an_age_the_day_is_that_of_first_sight() -> None:
    assert compare.day_of(None, NOON_NS) == day_of_ns(NOON_NS)
    assert compare.day_of(NOON_NS - 3 * DAY_NS, NOON_NS) == day_of_ns(NOON_NS) - 3


def test_a_file_is_quiet_at_the_limit_exactly_and_by_the_later_of_its_times() -> None:
    assert compare.is_quiet(NOON_NS - HOUR, NOON_NS - HOUR, HOUR, NOON_NS)
    assert not compare.is_quiet(NOON_NS - HOUR + 1, NOON_NS - HOUR, HOUR, NOON_NS)
    assert not compare.is_quiet(NOON_NS - 40 * DAY_NS, NOON_NS - HOUR + 1, HOUR, NOON_NS)  # its mtime was forced
    assert not compare.is_quiet(NOON_NS + DAY_NS, NOON_NS - HOUR, HOUR, NOON_NS)


@pytest.mark.parametrize(
    ("absent", "expected", "shrunken"),
    [
        (120, 200, True),
        (100, 200, False),
        (101, 200, True),
        (200, 200, True),
        (9, 9, False),
        (10, 10, True),
        (0, 0, False),
    ],
)
def test_more_than_half_at_once_is_not_believed_above_a_floor(absent: int, expected: int, shrunken: bool) -> None:
    assert compare.is_shrunken(absent, expected) is shrunken


@pytest.mark.parametrize(
    ("scans", "days", "lost"), [(3, 7, True), (2, 7, False), (3, 6.99, False), (2, 400, False), (9, 8, True)]
)
def test_lost_needs_three_scans_and_seven_days(scans: int, days: float, lost: bool) -> None:
    assert compare.is_lost(scans, NOON_NS - int(days * DAY_NS), NOON_NS) is lost
