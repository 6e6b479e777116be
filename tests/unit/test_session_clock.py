"""A clock that jumped stops removals, and one wrong run blocks nobody after it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from lifecycle.app import App
from lifecycle.catalog.store import create_catalog
from lifecycle.clock import MovedClock
from lifecycle.errors import ExitCode
from lifecycle.session import Session
from tests.builders import NOON, a_policy

DAY = timedelta(days=1)


def codes(tmp_path: Path, *, rehearsal: bool, times: list[datetime]) -> list[bool]:
    """For each run at one of the times: whether it met the brake."""
    met = []
    with create_catalog(f"sqlite:///{tmp_path}/catalog.db", now=NOON, rehearsal=rehearsal) as catalog:
        for time in times:
            app = App(policy=a_policy(), catalog=catalog, clock=MovedClock(time), host="a")
            with Session(app, "run") as session:
                met.append(ExitCode.BRAKE in session.codes)
    return met


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([0, 1, 2], [False, False, False]),
        ([0, -1, -0.9], [False, True, False]),  # back: the run that meets it
        ([0, 13_000, 1, 2], [False, True, True, False]),  # one run in 2062, then the right time again
        ([0, 40, 40.5, 41.1], [False, True, True, False]),  # ahead: until runs a day apart agree
        ([0, 29], [False, False]),  # a holiday
    ],
)
def test_a_jump_is_met_once(tmp_path: Path, offsets: list[float], expected: list[bool]) -> None:
    assert codes(tmp_path, rehearsal=False, times=[NOON + offset * DAY for offset in offsets]) == expected


def test_a_rehearsal_may_jump_ahead(tmp_path: Path) -> None:
    assert codes(tmp_path, rehearsal=True, times=[NOON, NOON + 400 * DAY]) == [False, False]
