from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lifecycle.cli.run import parse_if_held
from lifecycle.cli.times import parse_when
from lifecycle.errors import UsageError
from tests.builders import NOON


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-09-11", datetime(2026, 9, 10, 16, tzinfo=UTC)),
        ("2026-09-11 02:30", datetime(2026, 9, 10, 18, 30, tzinfo=UTC)),
        ("2026-09-11T02:30Z", datetime(2026, 9, 11, 2, 30, tzinfo=UTC)),
        ("2026-09-11T02:30+02:00", datetime(2026, 9, 11, 0, 30, tzinfo=UTC)),
        ("-7d", NOON - timedelta(days=7)),
        ("+30d", NOON + timedelta(days=30)),
        ("now", NOON),
    ],
)
def test_a_time_without_a_zone_is_in_the_policy_s(text: str, utc: datetime) -> None:
    assert parse_when(text).resolve(now=NOON, zone="Asia/Shanghai") == utc


def test_a_local_time_that_the_clock_change_skips_is_still_an_instant() -> None:
    skipped = parse_when("2026-03-29 02:30").resolve(now=NOON, zone="Europe/Berlin")
    assert skipped == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "yesterday", "7d", "-7", "2026-13-01", "-0d", "09-11"])
def test_what_is_no_time_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|above 0"):
        parse_when(text)


def test_an_unknown_zone_names_itself() -> None:
    with pytest.raises(UsageError, match="Middle/Earth"):
        parse_when("2026-09-11").resolve(now=NOON, zone="Middle/Earth")


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("fail", ("fail", timedelta(0))), ("skip", ("skip", timedelta(0))), ("wait:10m", ("fail", timedelta(minutes=10)))],
)
def test_if_held_is_fail_skip_or_a_wait(text: str, parsed: tuple[str, timedelta]) -> None:
    assert parse_if_held(text) == parsed


@pytest.mark.parametrize("text", ["", "wait", "wait:", "wait:10", "skip:10m", "force"])
def test_another_word_for_if_held_is_a_usage_mistake(text: str) -> None:
    with pytest.raises(UsageError):
        parse_if_held(text)
