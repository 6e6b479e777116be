"""Holds with what they cover, and folded to lines and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from lifecycle.catalog.holds import covered
from lifecycle.catalog.store import Catalog
from lifecycle.model import Hold
from lifecycle.plan.holds import compare_holds
from lifecycle.policy.rules import Policy
from lifecycle.policy.selecting import describe_selector
from lifecycle.report.blocks import Block, Cell, CellKind, Column, Line, Table, Tone
from lifecycle.report.figures import HoldLine, HoldReport
from lifecycle.report.runs import count_of
from lifecycle.units import format_instant, format_size, from_ns, to_ns


def hold_lines(catalog: Catalog, policy: Policy, now: datetime, holds: Sequence[Hold]) -> list[HoldLine]:
    """Each with what it covers today, and whether policy still says so."""
    waiting = {hold.id: hold.ends_ns for hold in compare_holds(policy, holds, to_ns(now)).shorten}
    with catalog.read() as conn:
        figures = covered(conn, [hold.id for hold in holds])
    return [
        HoldLine(
            id=hold.id,
            selector=_selected(hold),
            reason=hold.reason,
            owner=hold.owner,
            source=hold.source,
            began=from_ns(hold.created_ns),
            ends=None if hold.ends_ns is None else from_ns(hold.ends_ns),
            ended=None if hold.ended_ns is None else from_ns(hold.ended_ns),
            ended_by=hold.ended_by,
            is_pending=hold.pending,
            awaits=awaits(hold, waiting),
            segments=figures[hold.id].segments,
            logical_bytes=figures[hold.id].logical_bytes,
            marked=figures[hold.id].marked,
        )
        for hold in holds
    ]


def _selected(hold: Hold) -> str:
    if hold.directory is None:
        return describe_selector(hold.selector)
    return f"what lies beside and below {hold.source.removeprefix('file ')}"


def awaits(hold: Hold, waiting: Mapping[int, int | None]) -> str:
    """What policy would have of a hold, and what would bring it about; empty where both agree."""
    if hold.id not in waiting:
        return ""
    ends_ns = waiting[hold.id]
    what = "policy no longer has it" if ends_ns is None else f"policy says until {format_instant(from_ns(ends_ns))}"
    return f"{what}; it stands until lifecycle hold end {hold.id}, or policy accept"


def fold_holds(report: HoldReport) -> Iterator[Block]:
    """``hold list``."""
    if not report.holds:
        yield Line(text="no holds", tone=Tone.QUIET)
        return
    yield table_of_holds(report.holds)
    for hold in report.holds:
        if hold.awaits:
            yield Line(text=f"! hold {hold.id}: {hold.awaits}", tone=Tone.WARNING)
        elif not hold.segments and not hold.is_pending and hold.ended is None:
            hint = f"pending: true says that this is right; else lifecycle hold end {hold.id}"
            yield Line(text=f"! hold {hold.id} covers nothing that can be read  HINT: {hint}", tone=Tone.WARNING)


def fold_added(report: HoldReport) -> Iterator[Block]:
    for hold in report.holds:
        until = f"until {format_instant(hold.ends)}" if hold.ends else "until somebody ends it"
        what = f"hold {hold.id}: {_usage(hold)} of {hold.selector} kept {until}"
        yield Line(text=what, tone=Tone.GOOD)
        if hold.marked:
            marked = f"{count_of(hold.marked, 'mark')} among them: they come off with the next run"
            yield Line(text=marked, tone=Tone.QUIET)
        yield Line(text=f"what comes later and fits is held as well; end it with: lifecycle hold end {hold.id}")
    if report.going:
        late = f"{count_of(report.going, 'segment')} among them are being purged right now: the hold came too late"
        yield Line(text=late, tone=Tone.ALARM)


def fold_ended(report: HoldReport) -> Iterator[Block]:
    for hold in report.holds:
        text = f"hold {hold.id} has ended: {_usage(hold)} of {hold.selector} go by their retention again"
        yield Line(text=text, tone=Tone.GOOD)


def _usage(hold: HoldLine) -> str:
    return f"{count_of(hold.segments, 'segment')} ({format_size(hold.logical_bytes)})"


def table_of_holds(holds: Sequence[HoldLine]) -> Table:
    columns = (
        Column(key="id", kind=CellKind.NUMBER), Column(key="segments", kind=CellKind.COUNT),
        Column(key="logical_bytes", title="LOGICAL", kind=CellKind.SIZE),
        Column(key="marked", kind=CellKind.COUNT, in_text=False),
        Column(key="began", kind=CellKind.INSTANT), Column(key="ends", kind=CellKind.INSTANT, in_text=False),
        Column(key="ended", kind=CellKind.INSTANT, in_text=False), Column(key="ended_by", in_text=False),
        Column(key="awaits", in_text=False),
        Column(key="until"), Column(key="owner"), Column(key="from"), Column(key="reason"), Column(key="selector"),
    )  # fmt: skip
    return Table(columns=columns, rows=[_row(hold) for hold in holds])


def _row(hold: HoldLine) -> tuple[Cell, ...]:
    return (
        hold.id, hold.segments, hold.logical_bytes, hold.marked, hold.began, hold.ends, hold.ended, hold.ended_by,
        hold.awaits, _until(hold), hold.owner, hold.source, hold.reason, hold.selector,
    )  # fmt: skip


def _until(hold: HoldLine) -> str:
    if hold.ended is not None:
        return f"ended {format_instant(hold.ended)}"
    until = "for ever" if hold.ends is None else format_instant(hold.ends)
    return f"{until}, pending" if hold.is_pending and not hold.segments else until
