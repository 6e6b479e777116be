"""A Selector as SQL: what it says is in the parameters, never in the text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from lifecycle.catalog.selecting import EVERYTHING, Condition, conditions, job_ids, shown_path
from lifecycle.catalog.store import copy_for_preview
from lifecycle.model import Selector, TierName
from lifecycle.names import parse_name
from tests.builders import NOON


@pytest.fixture
def conn() -> Iterator[Connection]:
    with copy_for_preview(None, now=NOON) as catalog, catalog.read() as conn:
        yield conn


def test_an_empty_selector_is_everything(conn: Connection) -> None:
    assert conditions(conn, Selector()) == Condition(EVERYTHING)
    assert job_ids(conn, Selector()) is None


def test_values_never_become_sql_text(conn: Connection) -> None:
    evil = "x' OR 1=1 --"
    condition = conditions(conn, Selector(nodes=(evil,), states=(evil, "open"), tiers=(TierName.HOT,)))
    assert condition is not None
    assert evil not in condition.sql
    assert condition.sql.count("?") == len(condition.values)


def test_a_name_that_is_not_there_can_match_nothing(conn: Connection) -> None:
    assert conditions(conn, Selector(teams=("nobody",))) is None
    assert conditions(conn, Selector(paths=(b"/nowhere/a.log",))) is None
    assert job_ids(conn, Selector(jobs=("nothing",))) == []


def test_very_many_ranks_stay_within_999_values_of_one_list(conn: Connection) -> None:
    condition = conditions(conn, Selector(ranks=tuple(range(1200))))
    assert condition is not None
    assert condition.sql.count("IN (") == 3


def test_a_shown_path_reads_back_as_the_same_bytes() -> None:
    assert parse_name(shown_path("/logs/hot/", b"v/\xff\n.log")) == b"/logs/hot/v/\xff\n.log"
