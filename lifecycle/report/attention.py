"""What asks for a person: places, archives, runs and scans that are not as they should be, each with what to type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from lifecycle.catalog.places import Finding, Place
from lifecycle.catalog.reclassifying import WaitingChange
from lifecycle.catalog.reporting import CatalogCounters
from lifecycle.errors import ExitCode
from lifecycle.model import Hold
from lifecycle.plan.pressure import Broken
from lifecycle.report.figures import Attention, ErrorsLine, FileSystemForecast, RunLine
from lifecycle.report.forecasts import format_days, format_growth
from lifecycle.report.holds import awaits
from lifecycle.report.runs import EXIT_WORDS, count_of, describe_broken, describe_waiting
from lifecycle.scan.gaps import GAP
from lifecycle.units import format_count, format_duration

_SOON_DAYS: Final = 7.0  # a mark that will be met within a week is worth a line
_URGENT_DAYS: Final = (
    3.0  # so near to the reserve or the end somebody must act: relief does what it can at the high mark
)
_NO_GOOD_RUN: Final = timedelta(hours=48)  # a nightly run may fail once before a person is called


def find_attention(
    known: Sequence[Place],
    found: Sequence[Finding],
    counted: CatalogCounters,
    waiting: Sequence[WaitingChange],
    policy_digest: str,
    broken: Sequence[Broken] = (),
    forecast: Sequence[FileSystemForecast] = (),
    errors: Sequence[ErrorsLine] = (),
    *,
    last: RunLine | None,
    good: RunLine | None,
    now: datetime,
    holds: Sequence[Hold] = (),
) -> tuple[Attention, ...]:
    """The urgent ones first; otherwise in the order in which one would look."""
    lines = (
        *map(_broken_attention, broken),
        *_iter_forecast(forecast, broken),
        *_iter_attention(known, found, counted, last, good, now),
        *_iter_unreadable(errors),
        *_iter_waiting(waiting, policy_digest),
        *_iter_holds(holds, policy_digest),
    )
    return tuple(sorted(lines, key=lambda line: not line.is_urgent))


def _iter_attention(
    known: Sequence[Place],
    found: Sequence[Finding],
    counted: CatalogCounters,
    last: RunLine | None,
    good: RunLine | None,
    now: datetime,
) -> Iterator[Attention]:
    for place in known:
        if place.state != "ok":
            text = f"{place.state}: {place.state_text}" if place.state_text else place.state
            yield Attention(is_urgent=True, subject=place.name, text=text, hint="lifecycle audit --section places")
    if counted.quarantined_archives:
        count = format_count(counted.quarantined_archives)
        text = f"{count} damaged, set aside: not moved or removed; restore gives what is whole"
        yield Attention(is_urgent=True, subject="archives", text=text, hint="lifecycle history --problems")
    yield from _run_attention(last, good, now)
    if counted.missing:
        text = f"{format_count(counted.missing)} segments not seen in the last complete scan; not taken for gone"
        yield Attention(is_urgent=False, subject="missing", text=text, hint="lifecycle ls --state missing --by job")
    if counted.unfinished_batches:
        text = f"{format_count(counted.unfinished_batches)} half done; the next run puts them right"
        yield Attention(is_urgent=False, subject="batches", text=text, hint="lifecycle run")
    for finding in found:
        if finding.kind == GAP and finding.files:
            name = next((place.name for place in known if place.id == finding.place_id), "")
            files = count_of(finding.files, "file")
            text = f"{files} of {finding.detail} gone before stored: rotates faster than runs come, or is trimmed"
            hint = "run more often, copy_after, or lifecycle export logrotate"
            yield Attention(is_urgent=False, subject=name, text=text, hint=hint)
        if finding.kind == "unseen" and finding.files:
            name = next((place.name for place in known if place.id == finding.place_id), "")
            text = f"{format_count(finding.files)} not readable: {finding.detail or finding.example}"
            yield Attention(is_urgent=False, subject=name, text=text, hint="lifecycle audit --section findings")


def _iter_unreadable(errors: Sequence[ErrorsLine]) -> Iterator[Attention]:
    unreadable = sum(line.unreadable for line in errors)
    if unreadable:
        text = f"{count_of(unreadable, 'segment')} could not be looked through for errors: kept until they can be"
        yield Attention(is_urgent=False, subject="errors", text=text, hint="lifecycle audit --section errors")


def _iter_waiting(waiting: Sequence[WaitingChange], policy_digest: str) -> Iterator[Attention]:
    for change in waiting:
        hint = f'lifecycle policy accept {policy_digest[:6]} --reason "…"'
        yield Attention(is_urgent=False, subject="policy", text=describe_waiting(change), hint=hint)


def _iter_holds(holds: Sequence[Hold], policy_digest: str) -> Iterator[Attention]:
    """Those that policy would end, or end sooner."""
    ends = {hold.id: hold.ends_ns for hold in holds}
    for hold in holds:
        hint = f'lifecycle policy accept {policy_digest[:6]} --reason "…"'
        text = awaits(hold, ends).partition("; ")[0]
        yield Attention(is_urgent=False, subject=f"hold {hold.id}", text=text, hint=hint)


def _broken_attention(broken: Broken) -> Attention:
    hint = f"lifecycle audit --team {broken.team} --section usage" if broken.team else "lifecycle forecast"
    text = describe_broken(broken.text, broken.open_bytes)
    return Attention(is_urgent=broken.is_alarm, subject=broken.subject, text=text, hint=hint)


def _iter_forecast(forecast: Sequence[FileSystemForecast], broken: Sequence[Broken]) -> Iterator[Attention]:
    """File systems that will be over a mark soon; those that are over have their line."""
    over = {each.subject for each in broken if each.team is None}
    for each in forecast:
        marks = (("high mark", each.high), ("reserve", each.reserve), ("full", each.full))
        near = [(name, days) for name, days in marks if days is not None and days.expected is not None]
        soonest = min((days.expected for _, days in near if days.expected is not None), default=None)
        if each.name in over or soonest is None or soonest > _SOON_DAYS:
            continue
        is_urgent = any(days.expected is not None and days.expected <= _URGENT_DAYS for _, days in near[1:])
        growth = f": {format_growth(each.growth)} a day" if each.growth is not None else ""
        text = ", ".join(f"{name} in {format_days(days)}" for name, days in near) + growth
        hint = f"lifecycle forecast --tier {each.tiers[0]}"
        yield Attention(is_urgent=is_urgent, subject=each.name, text=text, hint=hint)


def _run_attention(last: RunLine | None, good: RunLine | None, now: datetime) -> Iterator[Attention]:
    if last is None:
        yield Attention(is_urgent=False, subject="run", text="there was no run yet", hint="lifecycle plan")
        return
    if last.exit_code is None:
        text = f"run {last.run_id} has not ended: it runs now, or it was killed"
        yield Attention(is_urgent=False, subject="run", text=text, hint="lifecycle history")
    elif last.exit_code not in (ExitCode.DONE, ExitCode.ATTENTION):
        is_bad = last.exit_code in (ExitCode.DAMAGE, ExitCode.FAILED)
        problems = f", {count_of(last.problems, 'problem')}" if last.problems else ""
        text = f"run {last.run_id}: {EXIT_WORDS[last.exit_code]} (exit {int(last.exit_code)}){problems}"
        yield Attention(is_urgent=is_bad, subject="run", text=text, hint=f"lifecycle history {last.run_id} --problems")
    since = good.now if good else None
    if since is None or now - since > _NO_GOOD_RUN:
        ago = f"the last good run was {format_duration(now - since)} ago" if since else "no run has ended well yet"
        yield Attention(is_urgent=since is not None, subject="run", text=ago, hint="lifecycle audit --section runs")
