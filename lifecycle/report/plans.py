"""A plan folded to lines and tables: what would happen, on which way, why, by which line of policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from lifecycle.catalog.reclassifying import WaitingChange
from lifecycle.model import Kept, PlannedBatch, TierName
from lifecycle.names import show_name
from lifecycle.plan.brakes import describe_brake
from lifecycle.plan.plan import PlanLine
from lifecycle.plan.reasons import render_reason
from lifecycle.report.blocks import Block, Cell, CellKind, Column, Line, Table, Tone
from lifecycle.report.figures import DueLine, PreviewReport, ScanReport
from lifecycle.report.runs import (
    accept_hint,
    count_of,
    describe_special,
    describe_waiting,
    iter_broken_lines,
    iter_fill_lines,
    iter_problem_lines,
)
from lifecycle.units import format_count, format_duration, format_instant, format_size, from_ns

_PLAN_COLUMNS: Final = (
    Column(key="action"), Column(key="class"), Column(key="teams"), Column(key="segments", kind=CellKind.COUNT),
    Column(key="logical_bytes", title="BYTES", kind=CellKind.SIZE),
    Column(key="stored_bytes", kind=CellKind.SIZE, in_text=False), Column(key="way"), Column(key="why"),
    Column(key="rule"),
)  # fmt: skip
_ITEM_COLUMNS: Final = (
    Column(key="action"), Column(key="way"), Column(key="team"), Column(key="class"),
    Column(key="segments", kind=CellKind.COUNT), Column(key="logical_bytes", title="BYTES", kind=CellKind.SIZE),
    Column(key="last_write", kind=CellKind.INSTANT), Column(key="segment_id", kind=CellKind.NUMBER, in_text=False),
    Column(key="what"), Column(key="why"), Column(key="rule"),
)  # fmt: skip


def fold_preview(report: PreviewReport, *, now: datetime) -> Iterator[Block]:
    summary = report.summary
    yield Line(text=_header(report, now), tone=Tone.HEAD)
    if report.clock_ahead is not None:
        ahead = format_duration(report.clock_ahead)
        yield Line(text=f"rehearsal: its time is {format_instant(now)}, {ahead} ahead of the clock", tone=Tone.QUIET)
    yield from iter_problem_lines(report.problems, len(report.problems))
    if summary.lines:
        yield table_of_plan(summary.lines)
    if summary.is_empty:
        yield Line(text="nothing is due", tone=Tone.GOOD)
    yield from _totals(report)
    if report.folders:
        yield Line(text=f"{count_of(report.folders, 'folder')} that runs have emptied would go", tone=Tone.QUIET)
    yield from iter_fill_lines(report.fills)
    yield from iter_broken_lines(report.broken, "will still be broken")
    for brake in report.brakes:
        yield Line(text=f"brake: {describe_brake(brake)}", tone=Tone.WARNING)
    yield from iter_waiting_lines(report.waiting, summary.policy_digest)
    if report.brakes and not report.waiting:
        yield Line(text=f"to accept it: {accept_hint(summary.policy_digest)}", tone=Tone.QUIET)
    yield Line(text=_next(report), tone=Tone.QUIET)


def iter_waiting_lines(waiting: Iterable[WaitingChange], policy_digest: str) -> Iterator[Line]:
    """What keeps its class until a person accepts one that keeps shorter, and how that is done."""
    changes = list(waiting)
    for change in changes:
        yield Line(text=f"kept as they are: {describe_waiting(change)}", tone=Tone.WARNING)
    if changes:
        yield Line(text=f'to accept it: lifecycle policy accept {policy_digest[:6]} --reason "…"', tone=Tone.QUIET)


def table_of_plan(lines: Iterable[PlanLine]) -> Table:
    return Table(columns=_PLAN_COLUMNS, rows=[_plan_row(line) for line in lines])


def _plan_row(line: PlanLine) -> tuple[Cell, ...]:
    due = due_line(line)
    return (
        due.action, due.class_name, due.teams, due.segments, due.logical_bytes, line.stored_bytes, due.way, due.why,
        due.rule,
    )  # fmt: skip


def due_line(line: PlanLine) -> DueLine:
    """A line of the plan as the audit's ``--section due`` keeps it."""
    return DueLine(
        action=line.action,
        class_name=line.class_name,
        teams=line.teams[0] if len(line.teams) == 1 else f"{len(line.teams)} teams",
        segments=line.segments,
        logical_bytes=line.logical_bytes,
        way=line.way,
        why=line.why,
        rule=str(line.rule) if line.rule else "",
    )


def _header(report: PreviewReport, now: datetime) -> str:
    summary = report.summary
    parts = [f"plan {summary.plan_id[:8]}", f"policy {summary.policy_digest[:6]}", f"now {format_instant(summary.now)}"]
    if report.scans:
        parts.append(_seen(report.scans))
    elif report.scanned_at is not None:
        ago = format_duration(timedelta(seconds=max(0, round((now - report.scanned_at).total_seconds()))))
        parts.append(f"from the scan of {format_instant(report.scanned_at)}, {ago} ago")
    else:
        parts.append("no scan")
    return " · ".join([*parts, "nothing changed"])


def _seen(scans: tuple[ScanReport, ...]) -> str:
    seconds = timedelta(seconds=round(sum(scan.seconds for scan in scans), 1))
    unseen = sum(scan.unseen for scan in scans)
    blind = f", {format_count(unseen)} not readable" if unseen else ""
    foreign = sum(scan.foreign for scan in scans)
    left = f", {format_count(foreign)} foreign" if foreign else ""
    left += f", {special}" if (special := describe_special(scans)) else ""
    return f"{count_of(sum(scan.files for scan in scans), 'file')} seen in {format_duration(seconds)}{left}{blind}"


def _totals(report: PreviewReport) -> Iterator[Line]:
    """What the plan would take out of each tier; what arrives is known only when it is compressed."""
    totals = report.summary.totals
    if not totals.batches:
        return
    before = {usage.tier: usage.usage for usage in report.before}
    leaves: dict[TierName, int] = {}
    for line in report.summary.lines:
        if line.tier_to is not line.tier_from and line.action not in ("mark", "copy"):
            leaves[line.tier_from] = leaves.get(line.tier_from, 0) + line.stored_bytes
    segments = count_of(totals.segments, "segment")
    parts = [f"{count_of(totals.batches, 'batch', 'batches')}, {segments}, {format_size(totals.logical_bytes)}"]
    for tier, size in leaves.items():
        now = before.get(tier)
        of = f" of {format_size(now.stored_bytes)}" if now is not None else ""
        parts.append(f"{tier}: {format_size(size)}{of} leave")
    yield Line(text=" · ".join(parts))


def _next(report: PreviewReport) -> str:
    run = "lifecycle run" + (f" --now {report.run_at.astimezone(UTC):%Y-%m-%dT%H:%MZ}" if report.run_at else "")
    if report.out is not None:
        return f"next: {run} --plan {report.out} · items: lifecycle plan --list"
    if report.root is not None:
        return f"next, to have it kept: lifecycle init --source {report.root} --cold DIR · items: add --list"
    return f"next: {run} · items: lifecycle plan --list"


def table_of_items(items: Iterable[PlannedBatch | Kept], roots: Iterable[tuple[int, str, str]]) -> Table:
    """``--list``: one row a segment where the plan names segments, else one row a batch or group. Lazily."""
    by_id: Mapping[int, str] = {place_id: root for place_id, _, root in roots}
    return Table(columns=_ITEM_COLUMNS, rows=(row for item in items for row in _item_rows(item, by_id)))


def _item_rows(item: PlannedBatch | Kept, roots: Mapping[int, str]) -> Iterator[tuple[Cell, ...]]:
    rule, why = str(item.reason.rule or ""), render_reason(item.reason)
    if isinstance(item, Kept):
        yield (
            "kept",
            item.tier.value,
            item.team,
            item.class_name,
            item.segments,
            item.logical_bytes,
            None,
            None,
            "",
            why,
            rule,
        )
        return
    way = item.tier_from.value if item.tier_to is item.tier_from else f"{item.tier_from} → {item.tier_to or 'gone'}"
    head = (item.kind.value, way, item.team, item.class_name)
    if not item.members:
        what = f"{count_of(len(item.archive_ids), 'archive')}: {', '.join(map(str, item.archive_ids[:4]))}"
        yield (*head, item.segments, item.logical_bytes, None, None, what, why, rule)
    root = roots.get(item.place_id, "").rstrip("/")
    for member in item.members:
        path = show_name(member.path)
        what = f"{root}/{path}" if root else path
        identity = member.identity
        yield (*head, 1, identity.size_bytes, from_ns(identity.mtime_ns), member.segment_id, what, why, rule)
