"""What the audit's deeper sections show: small files and write pressure, and whether retention is what policy says.

Knows sums by team, class, tier and day, and policy's figures. Reads nothing itself but the counts that it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from lifecycle.catalog.reporting import Companions, Unlooked
from lifecycle.catalog.usage import UsageRow
from lifecycle.model import ReasonCode, TierName, Usage
from lifecycle.plan.figures import FigureBook
from lifecycle.plan.reasons import TEXTS
from lifecycle.policy.rules import Policy
from lifecycle.report.figures import ErrorsLine, PressureLine, RetentionLine
from lifecycle.units import DAY_NS, day_of_ns, format_limit, to_ns


def make_pressure(usage: Sequence[UsageRow], jobs: Mapping[str, int], now: datetime) -> tuple[PressureLine, ...]:
    """By team, the one with most files in hot first. ``jobs``: how many have files in hot, by team."""
    yesterday = day_of_ns(to_ns(now)) - 1
    hot, written = dict[str, Usage](), dict[str, Usage]()
    for row in usage:
        team = row.team or ""
        if row.tier is TierName.HOT:
            hot[team] = hot.get(team, Usage()) + row.usage
        if row.day == yesterday:
            written[team] = written.get(team, Usage()) + row.usage
    lines = [
        PressureLine(
            team=team,
            hot_files=(held := hot.get(team, Usage())).segments,
            hot_bytes=held.logical_bytes,
            files_per_job=held.segments / jobs[team] if jobs.get(team) else 0.0,
            files_per_hour=(new := written.get(team, Usage())).segments / 24,
            bytes_per_hour=new.logical_bytes / 24,
        )
        for team in hot.keys() | written.keys()
    ]
    return tuple(sorted(lines, key=lambda line: (-line.hot_files, line.team)))


def make_retention(usage: Sequence[UsageRow], policy: Policy, now: datetime) -> tuple[RetentionLine, ...]:
    """By team and class, from days of last write: a class's own limit, not its job's."""
    book, today_ns = FigureBook(policy), to_ns(now)
    groups: dict[tuple[str, str], list[UsageRow]] = {}
    for row in usage:
        groups.setdefault((row.team or "", row.class_name or ""), []).append(row)
    found = []
    for (team, class_name), rows in sorted(groups.items()):
        figures = book.of(team, class_name)
        oldest = min(row.day for row in rows if row.day is not None)
        limit_ns = None if isinstance(figures, ReasonCode) else figures.expire_ns
        last = day_of_ns(today_ns - limit_ns) - 1 if limit_ns is not None else None
        past = sum((row.usage for row in rows if last is not None and (row.day or 0) <= last), Usage())
        rule = None if isinstance(figures, ReasonCode) else figures.at("expire_after")
        found.append(
            RetentionLine(
                team=team,
                class_name=class_name,
                expire_after=_words(figures if isinstance(figures, ReasonCode) else figures.rule.expire_after),
                oldest_day=oldest,
                oldest_age_days=max(0, today_ns // DAY_NS - oldest),
                past_segments=past.segments,
                past_bytes=past.stored_bytes,
                rule=str(rule) if rule else "",
            )
        )
    return tuple(found)


def make_errors(
    usage: Sequence[UsageRow],
    waiting: Mapping[tuple[str, str], Unlooked],
    kept: Mapping[tuple[str, str], Companions] | None,
    policy: Policy,
) -> tuple[ErrorsLine, ...]:
    """By team and class, of those whose errors policy keeps. ``kept`` None: they were not counted."""
    stored: dict[tuple[str, str], int] = {}
    for row in usage:
        if row.class_name in policy.keeping_errors(row.team or ""):
            key = (row.team or "", row.class_name or "")
            stored[key] = stored.get(key, 0) + (row.usage.segments if row.tier is not TierName.HOT else 0)
    lines = []
    for team, class_name in sorted(stored):
        rule = policy.rule_for(team, class_name)
        lacks = waiting.get((team, class_name), Unlooked())
        counted = None if kept is None else kept.get((team, class_name), Companions())
        lines.append(
            ErrorsLine(
                team=team,
                class_name=class_name,
                kept_as=(rule.keep_errors_as if rule else None) or "",
                stored=stored[team, class_name],
                waiting=lacks.segments,
                waiting_bytes=lacks.logical_bytes,
                unreadable=lacks.unreadable,
                rule=str(rule.at.get("keep_errors_as") or "") if rule else "",
                companions=None if counted is None else counted.segments,
                error_blocks=None if counted is None else counted.error_blocks,
                kept_bytes=None if counted is None else counted.stored_bytes,
            )
        )
    return tuple(lines)


def _words(limit: object) -> str:
    if isinstance(limit, ReasonCode):
        return TEXTS[limit]
    return format_limit(limit) if isinstance(limit, timedelta) else "for ever"
