"""How full it is, who is over what, and when it gets tight: gathered from the catalog for planning, run and audit.

Knows samples, rollups and policy; ``plan.pressure`` and ``plan.forecast`` judge. Reads the catalog only: whoever has
just measured the file systems gives them in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from lifecycle.catalog.reporting import open_bytes_by_team, sampled_file_systems
from lifecycle.catalog.runs import SpaceSample, UsageSample, latest_space, run_interval_ns, space_since, usage_since
from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import UsageRow, usage_by
from lifecycle.model import PlaceKind, TierName
from lifecycle.plan.figures import FigureBook, Figures
from lifecycle.plan.forecast import Days, Level, Purge, Rate, Series, growth_rate
from lifecycle.plan.pressure import (
    Broken,
    FileSystem,
    Pressure,
    TeamTier,
    find_broken,
    rules_of,
)
from lifecycle.policy.rules import TOTAL, Policy
from lifecycle.report.figures import BrokenLine, FileSystemForecast, FillLine, ForecastReport, TeamForecast
from lifecycle.units import DAY_NS, duration_ns, format_size, to_ns

HISTORY: Final = timedelta(days=14)  # of samples that growth is worked out from


# --- for planning ---------------------------------------------------------------------------------------------------


def pressure_of(
    catalog: Catalog, policy: Policy, *, now: datetime, file_systems: Sequence[FileSystem] | None = None
) -> Pressure:
    """Usage, ratios and growth as the catalog has them. ``file_systems`` as measured; without, the newest samples."""
    since_ns = to_ns(now - HISTORY)
    with catalog.read(snapshot=True) as conn:
        rows = usage_by(conn, "team", "tier")
        measured = tuple(sampled_file_systems(conn, _place_names(policy)) if file_systems is None else file_systems)
        has_marks = any(rules_of(each, policy) for each in measured)
        interval_ns = run_interval_ns(conn) if has_marks else None
        history = usage_since(conn, since_ns, by_team=False) if interval_ns else []
        space = latest_space(conn) if interval_ns else []
    growth = _expected_growth(measured, history, space, interval_ns or 0, to_ns(now)) if interval_ns else {}
    return Pressure(
        file_systems=measured,
        usage=_usage(rows),
        ratios=_ratios(rows),
        growth=growth,
        growth_text={name: f"{format_size(size)} more before the next run" for name, size in growth.items()},
    )


def _place_names(policy: Policy) -> set[tuple[PlaceKind, str]]:
    names = {(PlaceKind.SOURCE, source.name) for source in policy.sources}
    return names | {(PlaceKind.TIER, tier.value) for tier in policy.tiers}


def _usage(rows: Iterable[UsageRow]) -> dict[TeamTier, int]:
    return {(row.team or "", row.tier): row.usage.stored_bytes for row in rows if row.tier is not None}


def _ratios(rows: Iterable[UsageRow]) -> dict[TierName, float]:
    sums: dict[TierName, list[int]] = {}
    for row in rows:
        if row.tier in (TierName.WARM, TierName.COLD):
            both = sums.setdefault(row.tier, [0, 0])
            both[0] += row.usage.stored_bytes
            both[1] += row.usage.logical_bytes
    return {tier: stored / logical for tier, (stored, logical) in sums.items() if logical}


def _expected_growth(
    measured: Sequence[FileSystem],
    history: Sequence[UsageSample],
    space: Sequence[SpaceSample],
    interval_ns: int,
    now_ns: int,
) -> dict[str, int]:
    """Bytes that each file system takes in until the next run: by the teams' samples, and by what came since the last
    run, whichever is more. Of a tier with several file systems the samples do not say where it goes."""
    found: dict[str, int] = {}
    samples = {sample.place_id: sample for sample in space}
    for each in measured:
        guesses = [0.0]
        if each.unknown:
            continue
        if TierName.HOT in each.tiers and _is_alone(each, measured):
            rate = growth_rate(list(_levels(history, (TierName.HOT,), freed=True)))
            guesses.append(rate.expected * interval_ns / DAY_NS if rate is not None else 0.0)
        last = max((samples[i] for i in each.place_ids if i in samples), key=lambda s: s.at_ns, default=None)
        if last is not None and last.total_bytes == each.total_bytes and now_ns - last.at_ns >= interval_ns // 4:
            came = each.used_bytes - (last.total_bytes - last.free_bytes)
            guesses.append(came * interval_ns / (now_ns - last.at_ns))
        found[each.name] = max(0, round(max(guesses)))
    return {name: size for name, size in found.items() if size}


def _is_alone(file_system: FileSystem, measured: Sequence[FileSystem]) -> bool:
    """Whether its tiers lie nowhere else: then what is known of the tiers is known of it."""
    return not any(set(each.tiers) & set(file_system.tiers) for each in measured if each.name != file_system.name)


def _levels(history: Sequence[UsageSample], tiers: Sequence[TierName], *, freed: bool) -> Iterator[Level]:
    """Sums over the samples of these tiers, one for each run, also where there was nothing."""
    sums: dict[tuple[int, int], list[int]] = {}
    for row in history:
        both = sums.setdefault((row.run_id, row.at_ns), [0, 0])
        if row.tier in tiers:
            both[0] += row.stored_bytes
            both[1] += row.freed_bytes if freed else row.purged_bytes
    for (_, at_ns), (used, taken) in sorted(sums.items()):
        yield Level(at_ns, used, taken)


# --- what is broken -------------------------------------------------------------------------------------------------


def gather_broken(
    catalog: Catalog, policy: Policy, *, file_systems: Sequence[FileSystem] | None = None
) -> tuple[Broken, ...]:
    """What does not hold now, by the catalog's sums and the file systems as measured (or as last sampled)."""
    with catalog.read(snapshot=True) as conn:
        usage = _usage(usage_by(conn, "team", "tier"))
        opened = open_bytes_by_team(conn)
        measured = sampled_file_systems(conn, _place_names(policy)) if file_systems is None else file_systems
    return find_broken(measured, usage, policy, open_bytes=opened)


def expected_broken(catalog: Catalog, policy: Policy, expected: Pressure) -> tuple[Broken, ...]:
    """The same when a plan is done."""
    with catalog.read() as conn:
        opened = open_bytes_by_team(conn)
    return find_broken(expected.file_systems, expected.usage, policy, open_bytes=opened)


def broken_line(broken: Broken) -> BrokenLine:
    return BrokenLine(
        subject=broken.subject,
        text=broken.text,
        is_alarm=broken.is_alarm,
        team=broken.team or "",
        open_bytes=broken.open_bytes,
        rule=str(broken.rule or ""),
    )


def fill_lines(before: Sequence[FileSystem], after: Sequence[FileSystem], policy: Policy) -> tuple[FillLine, ...]:
    """Of the file systems that policy has marks for."""
    later = {each.name: each for each in after if not each.unknown}
    return tuple(
        FillLine(
            name=each.name,
            total_bytes=later[each.name].total_bytes,
            used_before=each.used_bytes,
            used_after=later[each.name].used_bytes,
            high=min((rule.high for rule in rules if rule.high is not None), default=None),
            reserve_bytes=max((rule.reserve_bytes for rule in rules if rule.reserve_bytes is not None), default=None),
        )
        for each in before
        if not each.unknown and each.name in later and (rules := rules_of(each, policy))
    )


# --- the forecast ---------------------------------------------------------------------------------------------------


def gather_forecast(
    catalog: Catalog,
    policy: Policy,
    *,
    now: datetime,
    is_wanted: Callable[[str], bool] | None = None,
    tiers: Sequence[TierName] = (),
    words: str = "",
) -> ForecastReport:
    """Of every file system and team that runs have left samples of; with ``is_wanted``, of these teams alone."""
    since_ns = to_ns(now - HISTORY)
    with catalog.read(snapshot=True) as conn:
        rows = usage_by(conn, "team", "class_name", "tier", "day")
        measured, space = sampled_file_systems(conn, _place_names(policy)), space_since(conn, since_ns)
        history = usage_since(conn, since_ns, by_team=True)
    schedule = _Schedule(policy, to_ns(now))
    every = _Sums(schedule, rows, history)
    wanted = [each for each in measured if not tiers or set(each.tiers) & set(tiers)]
    first, last = (history[0].at_ns, history[-1].at_ns) if history else (0, 0)
    return ForecastReport(
        at=now,
        runs=len({row.run_id for row in history}),
        days=(last - first) / DAY_NS,
        file_systems=tuple(_of_file_system(each, measured, space, every) for each in wanted if is_wanted is None),
        teams=tuple(_iter_teams(schedule, rows, history, is_wanted, tiers)),
        filtered_by=words,
    )


def forecast_file_systems(
    catalog: Catalog, policy: Policy, rows: Sequence[UsageRow], *, now: datetime
) -> tuple[FileSystemForecast, ...]:
    """Those alone, which cost no more than there are runs; ``rows`` are all sums by team, class, tier and day."""
    since_ns = to_ns(now - HISTORY)
    with catalog.read(snapshot=True) as conn:
        measured, space = sampled_file_systems(conn, _place_names(policy)), space_since(conn, since_ns)
        history = usage_since(conn, since_ns, by_team=False)
    every = _Sums(_Schedule(policy, to_ns(now)), rows, history)
    return tuple(_of_file_system(each, measured, space, every) for each in measured)


class _Schedule:
    """When what is there is purged, by its class and the day of its last write."""

    def __init__(self, policy: Policy, now_ns: int) -> None:
        self.policy = policy
        self._now_ns = now_ns
        self._book = FigureBook(policy)
        self._grace_ns = duration_ns(policy.grace)

    def lives_days(self, row: UsageRow) -> float | None:
        """How old what is in this tier gets there before it is purged; None where it moves on, or stays for ever."""
        figures = self._book.of(row.team or "", row.class_name or "")
        if not isinstance(figures, Figures) or figures.expire_ns is None or row.tier is None:
            return None
        if figures.required_tier(figures.expire_ns) is not row.tier:
            return None
        return (figures.expire_ns + self._grace_ns) / DAY_NS

    def purge(self, row: UsageRow, lives_days: float) -> Purge:
        ends_ns = ((row.day or 0) + 1) * DAY_NS + round(lives_days * DAY_NS)
        return Purge(max(0.0, (ends_ns - self._now_ns) / DAY_NS), row.usage.stored_bytes)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums and samples, of all teams or of one."""

    schedule: _Schedule
    rows: Sequence[UsageRow]
    history: Sequence[UsageSample]

    def series(self, tiers: Sequence[TierName], *, used_bytes: int | None = None, rate: Rate | None = None) -> Series:
        """What is in these tiers; ``used_bytes`` and ``rate`` where a file system says them itself."""
        rows = [row for row in self.rows if row.tier in tiers]
        lives = [self.schedule.lives_days(row) for row in rows]
        purges = [self.schedule.purge(row, days) for row, days in zip(rows, lives, strict=True) if days is not None]
        known = [days for days in lives if days is not None]
        return Series(
            used_bytes=sum(row.usage.stored_bytes for row in rows) if used_bytes is None else used_bytes,
            rate=growth_rate(list(_levels(self.history, tiers, freed=False))) if rate is None else rate,
            purges=purges,
            lives_days=max(known) if known and len(known) == len(lives) else None,
        )

    def purged(self, tiers: Sequence[TierName]) -> dict[int, int]:
        """By the time of the sample: what that run purged in these tiers."""
        found: dict[int, int] = defaultdict(int)
        for row in self.history:
            if row.tier in tiers:
                found[row.at_ns] += row.purged_bytes
        return found


def _of_file_system(
    each: FileSystem, measured: Sequence[FileSystem], space: Sequence[SpaceSample], sums: _Sums
) -> FileSystemForecast:
    """By its own samples, since others fill it, too. Schedules count where its tiers lie nowhere else."""
    own = [sample for sample in space if sample.place_id == each.place_ids[0]]
    is_alone = _is_alone(each, measured)
    purged = sums.purged(each.tiers) if is_alone else {}
    rate = growth_rate([Level(s.at_ns, s.total_bytes - s.free_bytes, purged.get(s.at_ns, 0)) for s in own])
    series = Series(used_bytes=each.used_bytes, rate=rate)
    if is_alone and rate is not None:
        series = sums.series(each.tiers, used_bytes=each.used_bytes, rate=rate)
    rules = rules_of(each, sums.schedule.policy)
    high = min((round(each.total_bytes * rule.high) for rule in rules if rule.high is not None), default=None)
    reserve = max((rule.reserve_bytes for rule in rules if rule.reserve_bytes is not None), default=None)
    return FileSystemForecast(
        name=each.name,
        tiers=each.tiers,
        total_bytes=each.total_bytes,
        used_bytes=each.used_bytes,
        growth=rate,
        high_bytes=high,
        reserve_bytes=reserve,
        high=_days(series, high),
        reserve=_days(series, None if reserve is None else each.total_bytes - reserve),
        full=_days(series, each.total_bytes - 1),
    )


def _iter_teams(
    schedule: _Schedule,
    rows: Sequence[UsageRow],
    history: Sequence[UsageSample],
    is_wanted: Callable[[str], bool] | None,
    tiers: Sequence[TierName],
) -> Iterator[TeamForecast]:
    by_team: dict[str, _Team] = defaultdict(lambda: ([], []))
    for row in rows:
        by_team[row.team or ""][0].append(row)
    for sample in history:
        if sample.team in by_team:  # what it had is gone: nothing to forecast
            by_team[sample.team][1].append(sample)
    runs = [UsageSample(row.run_id, row.at_ns, "", "", row.tier, 0, 0, 0) for row in history]
    for team in sorted(by_team):
        if is_wanted is None or is_wanted(team):
            # The others' samples say when there were runs: a team that had nothing then had nothing.
            own, samples = by_team[team]
            yield from _of_team(team, _Sums(schedule, own, [*samples, *runs]), tiers)


_Team = tuple[list[UsageRow], list[UsageSample]]


def _of_team(team: str, sums: _Sums, tiers: Sequence[TierName]) -> Iterator[TeamForecast]:
    here = sorted({row.tier for row in sums.rows if row.tier}, key=lambda tier: tier.warmth)
    scopes: list[tuple[str, tuple[TierName, ...]]] = [(t.value, (t,)) for t in here if not tiers or t in tiers]
    if len(here) > 1 and not tiers:
        scopes.append((TOTAL, tuple(TierName)))
    quotas = sums.schedule.policy.quota_of(team)
    for scope, within in scopes:
        series, rule = sums.series(within), quotas.get(scope)
        soft, hard = (rule.soft_bytes, rule.hard_bytes) if rule is not None else (None, None)
        yield TeamForecast(
            team=team, tier=scope, used_bytes=series.used_bytes, growth=series.rate, soft_bytes=soft, hard_bytes=hard,
            soft=_days(series, soft), hard=_days(series, hard),
        )  # fmt: skip


def _days(series: Series, limit: int | None) -> Days | None:
    return None if limit is None else series.days_to(limit)
