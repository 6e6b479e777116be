"""``--team --job --node --rank --class --tier --state --since --until``: the same filters on every command."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from lifecycle.cli.times import WHEN, When
from lifecycle.errors import UsageError
from lifecycle.model import Original, Selector, TierName
from lifecycle.names import parse_name
from lifecycle.units import to_ns

if TYPE_CHECKING:
    _Ranks = click.ParamType[range]
else:  # click before 8.5 has no typed parameters
    _Ranks = click.ParamType

_F = TypeVar("_F", bound=Callable[..., object])
_MOST_RANKS: Final = 100_000
STATES: Final = (*(state.value for state in Original), "marked", "stored", "held", "companion", "unlooked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What was typed; becomes a Selector when the policy's time zone is known."""

    teams: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()
    tiers: tuple[TierName, ...] = ()
    states: tuple[str, ...] = ()
    since: When | None = None
    until: When | None = None

    @property
    def is_empty(self) -> bool:
        return self == Filters()

    def resolve(
        self, *, now: datetime, zone: str, team_of: Callable[[str], str] = str, paths: tuple[str, ...] = ()
    ) -> Selector:
        """``team_of`` turns an alias into its team. ``--until`` is exclusive, ``--since`` is not. Paths are as the
        shell gave them, or as ``ls`` showed them."""
        since = self.since.resolve(now=now, zone=zone) if self.since else None
        until = self.until.resolve(now=now, zone=zone) if self.until else None
        if since and until and since >= until:
            raise UsageError(f"--since {since} is not before --until {until}", hint="give the earlier time to --since")
        return Selector(
            teams=tuple(map(team_of, self.teams)), jobs=self.jobs, nodes=self.nodes, ranks=self.ranks,
            classes=self.classes, tiers=self.tiers, states=self.states,
            paths=tuple(map(parse_path, paths)),
            since_ns=to_ns(since) if since else None, until_ns=to_ns(until) if until else None,
        )  # fmt: skip

    def describe(self) -> str:
        """The filters in words, for the heading of a report."""
        return " ".join(f"--{name} {value}" for name, values in self._named() for value in values)

    def _named(self) -> tuple[tuple[str, tuple[object, ...]], ...]:
        return (
            ("team", self.teams), ("job", self.jobs), ("node", self.nodes), ("rank", self.ranks),
            ("class", self.classes), ("tier", self.tiers), ("state", self.states),
            ("since", (self.since.text,) if self.since else ()), ("until", (self.until.text,) if self.until else ()),
        )  # fmt: skip


NO_FILTERS: Final = Filters()


def parse_path(text: str) -> bytes:
    """An absolute path in bytes. Without a backslash it is taken as the shell gave it, with one as ``ls`` showed it."""
    raw = parse_name(text) if "\\" in text else os.fsencode(text)
    return os.path.abspath(raw)


class _RankType(_Ranks):
    """``3`` or ``0-7``."""

    name = "rank"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> range:
        first, dash, last = str(value).partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            self.fail(f"{value!r} is not a rank; write 3 or 0-7", param, ctx)
        ranks = range(int(first), int(last or first) + 1)
        if not 0 < len(ranks) <= _MOST_RANKS:
            self.fail(f"{value!r} is not a range of ranks; write the smaller one first, as 0-7", param, ctx)
        return ranks


_TIERS: Final = click.Choice([tier.value for tier in TierName])
_OPTIONS: Final[dict[str, Callable[[_F], _F]]] = {
    "team": click.option("--team", "teams", multiple=True, metavar="GLOB", help="Only these teams; may be repeated."),
    "job": click.option("--job", "jobs", multiple=True, metavar="GLOB", help="Only these jobs, as 'pretrain-*'."),
    "node": click.option("--node", "nodes", multiple=True, metavar="GLOB", help="Only these nodes."),
    "rank": click.option("--rank", "ranks", multiple=True, type=_RankType(), metavar="N|N-M", help="Only these ranks."),
    "class": click.option("--class", "classes", multiple=True, metavar="GLOB", help="Only these classes."),
    "tier": click.option("--tier", "tiers", multiple=True, type=_TIERS, help="Only what is read from these tiers."),
    "state": click.option("--state", "states", multiple=True, type=click.Choice(STATES), metavar="STATE",
                          help=f"Only what is in one of these states: {', '.join(STATES)}."),
    "since": click.option("--since", type=WHEN, metavar="TIME", help="Last write at this time or later: "
                          "2026-09-11, '2026-09-11 02:30' (time zone of the policy), -7d."),
    "until": click.option("--until", type=WHEN, metavar="TIME", help="Last write before this time."),
}  # fmt: skip
_FIELD_OF: Final = {
    "team": "teams", "job": "jobs", "node": "nodes", "rank": "ranks", "class": "classes", "tier": "tiers",
    "state": "states", "since": "since", "until": "until",
}  # fmt: skip


def selectors(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command these selectors (all of them when none is named) as one argument ``filters``."""
    wanted = names or tuple(_OPTIONS)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_filters(*args: Any, **values: Any) -> Any:
            fields = {_FIELD_OF[name]: values.pop(_FIELD_OF[name]) for name in wanted}
            return function(*args, filters=_make_filters(fields), **values)

        for name in reversed(wanted):
            with_filters = _OPTIONS[name](with_filters)
        return with_filters

    return decorate


def _make_filters(fields: dict[str, Any]) -> Filters:
    if "ranks" in fields:
        fields["ranks"] = tuple(sorted({rank for ranks in fields["ranks"] for rank in ranks}))
    if "tiers" in fields:
        fields["tiers"] = tuple(map(TierName, fields["tiers"]))
    return Filters(**fields)
