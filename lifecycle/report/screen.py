"""The audit's one screen, and its sections, folded to lines and tables. Knows the figures, not where they are from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from lifecycle.errors import ExitCode
from lifecycle.model import TierName, Usage
from lifecycle.report.blocks import Block, Cell, CellKind, Column, Line, Table, Tone
from lifecycle.report.figures import AuditReport, Counters, RunLine, Saved, TierUsage
from lifecycle.report.history import table_of_runs
from lifecycle.report.holds import table_of_holds
from lifecycle.report.runs import count_of
from lifecycle.report.text import format_share
from lifecycle.units import format_count, format_day, format_duration, format_instant, format_size

_USAGE_COLUMNS: Final = (
    Column(key="segments", kind=CellKind.COUNT),
    Column(key="logical_bytes", title="LOGICAL", kind=CellKind.SIZE),
    Column(key="stored_bytes", title="STORED", kind=CellKind.SIZE),
    Column(key="ratio", kind=CellKind.SHARE),
)


def fold_audit(report: AuditReport, section: str | None) -> Iterator[Block]:
    """The screen, and below it the section that was asked for."""
    yield Line(text=_header(report), tone=Tone.HEAD)
    if report.rehearsal:
        yield Line(text="rehearsal catalog: its clock may have been moved", tone=Tone.WARNING)
    if report.filtered_by:
        yield Line(text=f"only {report.filtered_by}", tone=Tone.QUIET)
    yield from _attention(report)
    yield table_of_tiers(report)
    yield Line(text=_counters(report.counters), tone=Tone.QUIET)
    yield Line(text=_saved(report.saved), tone=Tone.GOOD)
    if section is not None:
        yield Line(text="")
        yield SECTIONS[section](report)


def table_for_csv(report: AuditReport, section: str | None) -> Table:
    """The one table that CSV holds: the section's, else the tiers."""
    return SECTIONS[section](report) if section is not None else table_of_tiers(report)


def _header(report: AuditReport) -> str:
    parts = [f"audit {format_instant(report.at)}"]
    run = report.last_run
    if run is None:
        parts.append("no run yet")
    elif run.exit_code is None:
        parts.append(f"run {run.run_id} began {_short(run.now, report.at)} and has not ended")
    else:
        parts.append(f"run {run.run_id} {_short(run.now, report.at)}, exit {int(run.exit_code)}")
    if (good := report.last_good_run) and run and good.run_id != run.run_id:
        parts.append(f"last good run {good.run_id}, {format_duration(max(report.at - good.now, timedelta(0)))} ago")
    parts.append(f"policy {report.policy_digest[:6]}")
    return " · ".join(parts)


def _short(instant: datetime, at: datetime) -> str:
    """``04:42`` on the day itself, ``10-02 04:42`` before."""
    return instant.strftime("%H:%M" if instant.date() == at.date() else "%m-%d %H:%M")


def _attention(report: AuditReport) -> Iterator[Line]:
    width = max((len(line.subject) for line in report.attention), default=0)
    length = max((len(line.text) for line in report.attention if len(line.text) <= 80), default=0)
    for line in report.attention:
        sign = "!!" if line.is_urgent else "! "
        hint = f"  → {line.hint}" if line.hint else ""
        text = f"{sign} {line.subject:<{width}}  {line.text:<{length if hint else 0}}{hint}"
        yield Line(text=text.rstrip(), tone=Tone.ALARM if line.is_urgent else Tone.WARNING)


def table_of_tiers(report: AuditReport) -> Table:
    has_space = any(tier.fill is not None for tier in report.tiers)
    has_high = any(tier.high is not None for tier in report.tiers)
    has_reserve = any(tier.reserve_bytes is not None for tier in report.tiers)
    columns = (
        Column(key="tier"), _USAGE_COLUMNS[0], Column(key="objects", kind=CellKind.COUNT), *_USAGE_COLUMNS[1:],
        Column(key="fill", kind=CellKind.SHARE, in_text=has_space),
        Column(key="high", kind=CellKind.SHARE, in_text=has_high),
        Column(key="free_bytes", title="FREE", kind=CellKind.SIZE, in_text=has_space),
        Column(key="reserve_bytes", title="RESERVE", kind=CellKind.SIZE, in_text=has_reserve),
    )  # fmt: skip
    rows = [_tier_row(tier.tier.value, tier) for tier in report.tiers]
    if len(rows) > 1:
        rows.append(_tier_row("total", report.total))
    return Table(columns=columns, rows=rows)


def _tier_row(name: str, tier: TierUsage) -> tuple[Cell, ...]:
    count, *sizes, ratio = _usage_cells(tier.usage, name)
    return (name, count, tier.objects, *sizes, ratio, tier.fill, tier.high, tier.free_bytes, tier.reserve_bytes)


def _usage_cells(usage: Usage, tier: str) -> tuple[Cell, ...]:
    """The ratio of what archives take; hot holds blocks, and in a total the two would be mixed."""
    is_compressed = tier in (TierName.WARM, TierName.COLD) and usage.logical_bytes > 0
    ratio = usage.stored_bytes / usage.logical_bytes if is_compressed else None
    return (usage.segments, usage.logical_bytes, usage.stored_bytes, ratio)


def _counters(counters: Counters) -> str:
    parts = [f"held {format_count(counters.held)}"] if counters.held else []
    parts.append(f"marked, not yet purged {format_count(counters.marked)}")
    if counters.kept_beyond_retention is not None:
        parts.append(f"kept beyond retention {format_count(counters.kept_beyond_retention)}")
    open_size = f" ({format_size(counters.open_bytes)})" if counters.open_segments else ""
    parts += [
        f"open {format_count(counters.open_segments)}{open_size}",
        f"age unknown {format_count(counters.age_unknown)}",
        f"missing {format_count(counters.missing)}",
        f"foreign {format_count(counters.foreign)}",
        f"unlisted teams {format_count(counters.unlisted_teams)}",
    ]
    return " · ".join(parts)


def _saved(saved: Saved) -> str:
    """What was won: bytes not stored, files not kept, bytes whose time had come."""
    parts: list[str] = []
    if saved.stored_segments:
        less = saved.logical_bytes - saved.stored_bytes
        share = f", {format_share(saved.stored_bytes / saved.logical_bytes)} of it" if saved.logical_bytes else ""
        parts.append(
            f"{format_size(saved.logical_bytes)} kept as {format_size(saved.stored_bytes)}{share}"
            + (f": {format_size(less)} less" if less > 0 else "")
        )
        parts.append(f"{count_of(saved.stored_segments, 'segment')} in {count_of(saved.archives, 'object')}")
    if saved.purged_segments:
        parts.append(f"purged in 30 d: {count_of(saved.purged_segments, 'segment')}, {format_size(saved.purged_bytes)}")
    return "saved: " + (" · ".join(parts) if parts else "nothing yet")


# --- sections: a function and its row -----------------------------------------------------------------------------


def table_of_teams(report: AuditReport) -> Table:
    """One row a team and tier, largest first; the rows add up to the total."""
    sums: dict[tuple[str, TierName], Usage] = {}
    for row in report.teams:
        key = (row.team, row.tier)
        sums[key] = sums.get(key, Usage()) + row.usage
    ordered = sorted(sums.items(), key=lambda item: (-item[1].stored_bytes, item[0]))
    rows: list[tuple[Cell, ...]] = [(team, tier.value, *_usage_cells(usage, tier)) for (team, tier), usage in ordered]
    rows.append(("total", "", *_usage_cells(report.total.usage, "total")))
    return Table(columns=(Column(key="team"), Column(key="tier"), *_USAGE_COLUMNS), rows=rows)


def table_of_usage(report: AuditReport) -> Table:
    """One row a team, class and tier, with the day of its oldest write."""
    columns = (
        Column(key="team"),
        Column(key="class"),
        Column(key="tier"),
        *_USAGE_COLUMNS,
        Column(key="oldest_day", title="OLDEST"),
    )
    rows: list[tuple[Cell, ...]] = [
        (row.team, row.class_name, row.tier.value, *_usage_cells(row.usage, row.tier),
         None if row.oldest_day is None else format_day(row.oldest_day))
        for row in report.teams
    ]  # fmt: skip
    rows.append(("total", "", "", *_usage_cells(report.total.usage, "total"), None))
    return Table(columns=columns, rows=rows)


def table_of_due(report: AuditReport) -> Table:
    columns = (
        Column(key="action"), Column(key="class"), Column(key="teams"), Column(key="segments", kind=CellKind.COUNT),
        Column(key="logical_bytes", title="BYTES", kind=CellKind.SIZE), Column(key="way"),
        Column(key="why"), Column(key="rule"),
    )  # fmt: skip
    rows = [
        (line.action, line.class_name, line.teams, line.segments, line.logical_bytes, line.way, line.why, line.rule)
        for line in report.due
    ]
    return Table(columns=columns, rows=rows)


def table_of_places(report: AuditReport) -> Table:
    columns = (
        Column(key="place"), Column(key="host"), Column(key="tier"), Column(key="state"),
        Column(key="scanned", kind=CellKind.INSTANT), Column(key="complete_scan", kind=CellKind.INSTANT),
        Column(key="root"), Column(key="why"),
    )  # fmt: skip
    rows = [
        (
            place.name,
            place.host,
            place.tier.value,
            place.state,
            place.scanned,
            place.complete_scan,
            place.root,
            place.state_text,
        )
        for place in report.places
    ]
    return Table(columns=columns, rows=rows)


def table_of_findings(report: AuditReport) -> Table:
    """What was counted and left alone."""
    columns = (
        Column(key="place"), Column(key="kind"), Column(key="files", kind=CellKind.COUNT),
        Column(key="size_bytes", title="BYTES", kind=CellKind.SIZE), Column(key="why"), Column(key="example"),
    )  # fmt: skip
    rows = [
        (found.place, found.kind, found.files, found.size_bytes, found.detail, found.example)
        for found in report.findings
    ]
    return Table(columns=columns, rows=rows)


def table_of_pressure(report: AuditReport) -> Table:
    """Small files and what is written; the rates are of the last whole day."""
    columns = (
        Column(key="team"), Column(key="hot_files", title="FILES IN HOT", kind=CellKind.COUNT),
        Column(key="mean_bytes", title="MEAN", kind=CellKind.SIZE),
        Column(key="files_per_job", title="A JOB", kind=CellKind.COUNT),
        Column(key="files_per_hour", title="FILES/H", kind=CellKind.COUNT),
        Column(key="bytes_per_hour", title="BYTES/H", kind=CellKind.SIZE),
    )  # fmt: skip
    rows = [
        (line.team, line.hot_files, line.mean_bytes, line.files_per_job, line.files_per_hour, line.bytes_per_hour)
        for line in report.pressure
    ]
    return Table(columns=columns, rows=rows)


def table_of_folders(report: AuditReport) -> Table:
    """The fullest folders of the sources, as last compared."""
    columns = (Column(key="place"), Column(key="files", kind=CellKind.COUNT), Column(key="path"))
    return Table(columns=columns, rows=[(line.place, line.files, line.path) for line in report.folders])


def table_of_retention(report: AuditReport) -> Table:
    """How old the oldest is that is still kept, beside what policy asks for."""
    columns = (
        Column(key="team"), Column(key="class"), Column(key="expire_after", title="KEPT FOR"),
        Column(key="oldest_day", title="OLDEST"), Column(key="oldest_age_days", title="DAYS", kind=CellKind.COUNT),
        Column(key="past_segments", title="PAST IT", kind=CellKind.COUNT),
        Column(key="past_bytes", title="STORED", kind=CellKind.SIZE), Column(key="rule"),
    )  # fmt: skip
    rows = [
        (
            line.team, line.class_name, line.expire_after, format_day(line.oldest_day), line.oldest_age_days,
            line.past_segments, line.past_bytes, line.rule,
        )
        for line in report.retention
    ]  # fmt: skip
    return Table(columns=columns, rows=rows)


def table_of_errors(report: AuditReport) -> Table:
    """What is kept of errors; nothing that waits to be looked through goes."""
    columns = (
        Column(key="team"), Column(key="class"), Column(key="kept_as"), Column(key="stored", kind=CellKind.COUNT),
        Column(key="waiting", kind=CellKind.COUNT), Column(key="waiting_bytes", title="BYTES", kind=CellKind.SIZE),
        Column(key="unreadable", kind=CellKind.COUNT), Column(key="companions", kind=CellKind.COUNT),
        Column(key="error_blocks", title="BLOCKS", kind=CellKind.COUNT),
        Column(key="kept_bytes", title="TAKE", kind=CellKind.SIZE), Column(key="rule"),
    )  # fmt: skip
    rows = [
        (
            line.team, line.class_name, line.kept_as, line.stored, line.waiting, line.waiting_bytes, line.unreadable,
            line.companions, line.error_blocks, line.kept_bytes, line.rule,
        )
        for line in report.errors
    ]  # fmt: skip
    return Table(columns=columns, rows=rows)


def table_of_beyond(report: AuditReport) -> Table:
    """Kept beyond retention: archives go whole, and these have a member that stays."""
    columns = (
        Column(key="team"), Column(key="class"), Column(key="tier"), Column(key="archives", kind=CellKind.COUNT),
        Column(key="segments", title="BEYOND RETENTION", kind=CellKind.COUNT),
        Column(key="stored_bytes", title="STORED", kind=CellKind.SIZE), Column(key="why"),
    )  # fmt: skip
    rows = [
        (line.team, line.class_name, line.tier.value, line.archives, line.segments, line.stored_bytes, line.why)
        for line in report.beyond
    ]
    return Table(columns=columns, rows=rows)


SECTIONS: Final[dict[str, Callable[[AuditReport], Table]]] = {
    "teams": table_of_teams,
    "usage": table_of_usage,
    "due": table_of_due,
    "retention": table_of_retention,
    "holds": lambda report: table_of_holds(report.holds),
    "beyond": table_of_beyond,
    "pressure": table_of_pressure,
    "folders": table_of_folders,
    "errors": table_of_errors,
    "runs": lambda report: table_of_runs(report.runs),
    "places": table_of_places,
    "findings": table_of_findings,
}


def is_good(run: RunLine) -> bool:
    """A run after which nobody has to look: done, or done with a standing alarm."""
    return run.exit_code in (ExitCode.DONE, ExitCode.ATTENTION)
