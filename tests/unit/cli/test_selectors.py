from __future__ import annotations

import os
from typing import Any

import click
import pytest
from click.testing import CliRunner

from lifecycle.cli.selectors import STATES, Filters, parse_path, selectors
from lifecycle.cli.times import parse_when
from lifecycle.errors import UsageError
from lifecycle.model import Original, TierName
from lifecycle.names import show_name
from lifecycle.units import to_ns
from tests.builders import NOON, ago_ns


def _filters(*arguments: str) -> Filters:
    seen: list[Filters] = []

    @click.command()
    @selectors()
    def command(filters: Filters) -> None:
        seen.append(filters)

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_without_selectors_everything_is_selected() -> None:
    assert _filters().is_empty
    assert _filters().resolve(now=NOON, zone="UTC").is_everything


def test_selectors_may_be_repeated_and_ranks_may_be_ranges() -> None:
    filters = _filters("--team", "nlp", "--team", "vis*", "--rank", "0-2", "--rank", "7", "--tier", "cold")
    assert (filters.teams, filters.ranks, filters.tiers) == (("nlp", "vis*"), (0, 1, 2, 7), (TierName.COLD,))


def test_since_is_the_instant_and_until_too() -> None:
    selector = _filters("--since", "-7d", "--until", "2026-03-01").resolve(now=NOON, zone="UTC")
    assert (selector.since_ns, selector.until_ns) == (ago_ns("7d"), to_ns(NOON.replace(hour=0)))


def test_an_alias_selects_its_team() -> None:
    aliases = {"prj0421": "vision"}
    selector = _filters("--team", "prj0421").resolve(now=NOON, zone="UTC", team_of=lambda name: aliases.get(name, name))
    assert selector.teams == ("vision",)


def test_a_time_range_that_is_empty_is_a_usage_mistake() -> None:
    filters = Filters(since=parse_when("-1d"), until=parse_when("-7d"))
    with pytest.raises(UsageError, match="--since"):
        filters.resolve(now=NOON, zone="UTC")


def test_every_state_of_the_model_can_be_asked_for() -> None:
    assert set(STATES) == {state.value for state in Original} | {"marked", "stored", "held", "companion", "unlooked"}


@pytest.mark.parametrize("rank", ["x", "-1", "7-3", "0-9999999", "1.5"])
def test_a_rank_that_is_none_is_refused(rank: str) -> None:
    @click.command()
    @selectors("rank")
    def command(filters: Filters) -> None: ...

    assert CliRunner().invoke(command, ["--rank", rank]).exit_code == 2


def test_filters_describe_themselves_as_they_were_typed() -> None:
    words = "--team nlp --job a* --rank 3 --tier hot --state open --since -7d"
    assert _filters(*words.split()).describe() == words


@pytest.mark.parametrize("raw", [b"/logs/a.log", b"/logs/\xff\xfe.log", "/logs/ü.log".encode()])
def test_a_path_is_taken_from_the_shell_and_from_what_ls_shows(raw: bytes) -> None:
    assert parse_path(os.fsdecode(raw)) == raw
    assert parse_path(show_name(raw)) == raw


def test_a_relative_path_is_of_the_working_directory(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_path("a/../b.log") == os.fsencode(tmp_path / "b.log")
