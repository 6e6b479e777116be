"""One segment explained, folded to lines: what it is, what comes next and why not yet, what then, what was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from lifecycle.model import ActionKind, Original, Reason, Segment
from lifecycle.names import show_name
from lifecycle.plan.explain import Explanation, Step
from lifecycle.plan.reasons import render_reason
from lifecycle.report.blocks import Block, Cell, Column, Line, Table, Tone
from lifecycle.report.figures import HoldLine
from lifecycle.report.past import KeptErrors, PastStep
from lifecycle.report.runs import count_of
from lifecycle.units import format_instant, format_left, format_size, from_ns

_VERBS = {ActionKind.TRANSITION: "transition", ActionKind.MERGE: "merge", ActionKind.MARK: "mark",
          ActionKind.UNMARK: "unmark", ActionKind.RELEASE: "release", ActionKind.PURGE: "purge",
          ActionKind.COPY: "copy", ActionKind.REWRITE: "rewrite", ActionKind.EXTRACT: "extract errors"}  # fmt: skip


def fold_explanation(
    found: Explanation,
    *,
    root: str,
    past: Iterable[PastStep],
    now: datetime,
    holds: Iterable[HoldLine] = (),
    errors: KeptErrors | None = None,
) -> Iterator[Block]:
    segment = found.segment
    yield Line(text=f"{root.rstrip('/')}/{show_name(segment.path)}", tone=Tone.HEAD)
    width = max((len(_verb(step)) for step in (found.next, *found.then) if step is not None), default=0)
    rows = [
        *_rows_of(segment),
        *_rows_of_errors(segment, root, errors),
        *(("held", _hold_words(hold)) for hold in holds),
        ("next", _next_words(found, now, width)),
    ]
    rows += [("then", _step_words(step, now, width)) for step in found.then]
    rows += [("past", _past_words(step)) for step in past]
    yield Table(columns=(Column(key="when"), Column(key="what")), rows=rows, has_heading=False)
    if found.conditions:
        yield Line(text="")
        yield table_of_conditions(found)


def _rows_of(segment: Segment) -> Iterator[tuple[Cell, ...]]:
    labels, rule = segment.labels, segment.class_rule
    rank = f"rank {labels.rank}" if labels.rank is not None else ""
    run = f"run {labels.attempt}" if labels.attempt else ""
    place = " ".join(part for part in (f"{labels.team}/{labels.job}", run, labels.node, rank, labels.stream) if part)
    size = f"{format_size(segment.size_bytes)}, layout {segment.layout}"
    yield "segment", f"{segment.id} · {place} · {size}"
    waits = f" · {segment.claimed_class} once that is accepted" if segment.claimed_class else ""
    yield "class", f"{segment.class_name} ({rule}{f', {rule.text}' if rule.text else ''}){waits}"
    yield "state", f"{_age_words(segment)} · {_where_words(segment)}"


def _hold_words(hold: HoldLine) -> str:
    until = f"until {format_instant(hold.ends)}" if hold.ends else "until somebody ends it"
    return f"hold {hold.id} · {hold.owner}: {hold.reason} · {until}  {hold.source}"


def _rows_of_errors(segment: Segment, root: str, errors: KeptErrors | None) -> Iterator[tuple[Cell, ...]]:
    """Of most segments there is nothing to say: policy keeps no errors of them, or nobody has looked yet."""
    if segment.companion_of is not None and errors is not None:
        source = errors.other
        gone = "" if source.tier is not None else ", which is gone"
        yield "errors of", f"segment {source.id} · {root.rstrip('/')}/{show_name(source.path)}{gone}"
    elif segment.error_blocks == 0 and segment.companion_of is None:
        yield "errors", "looked through, none found"
    elif errors is not None and segment.error_blocks:
        kept = errors.other
        blocks = count_of(segment.error_blocks, "error block")
        where = f"segment {kept.id} ({show_name(kept.name)}, class {kept.class_name}"
        if kept.tier is None:
            yield "errors", f"{blocks} were kept in {where}), which is gone"
        else:
            until = f", until {format_instant(errors.until)}" if errors.until is not None else ", for ever"
            yield "errors", f"{blocks} kept in {where}, {kept.tier}){until}"


def _age_words(segment: Segment) -> str:
    if segment.last_write_ns is None:
        return "age unknown"
    return f"last write {format_instant(from_ns(segment.last_write_ns))}"


def _where_words(segment: Segment) -> str:
    if segment.companion_of is not None:
        kept = f"kept in {segment.archive_tier} ({format_size(segment.stored_bytes)})"
        return f"error lines of another segment, {kept if segment.archive_tier is not None else segment.original.value}"
    original = "original in hot" if segment.original.is_present else f"original {segment.original.value}"
    if segment.original is Original.OPEN:
        original += ", still open"
    if segment.archive_tier is None:
        return f"{original}, no stored copy"
    return f"{original}, stored in {segment.archive_tier} ({format_size(segment.stored_bytes)})"


def _next_words(found: Explanation, now: datetime, width: int) -> str:
    if found.next is not None:
        return _step_words(found.next, now, width)
    if found.nothing is not None:
        return f"nothing by itself: {render_reason(found.nothing)}{_at(found.nothing)}"
    return "nothing: it is gone" if found.segment.tier is None else "nothing"


def _verb(step: Step) -> str:
    return _VERBS[step.kind] + (f" to {step.tier_to}" if step.tier_to is not None and step.kind.moves else "")


def _step_words(step: Step, now: datetime, width: int) -> str:
    """``width``: of the longest verb, so that all dates stand below each other."""
    due = from_ns(step.at_ns)
    when = f"due since {format_instant(due)}" if step.is_due else f"{format_instant(due)}, {_from_now(due, now)}"
    words = f"{_verb(step):{width}}  {when}"
    if step.kept_back is not None:
        words += f", kept back: {render_reason(step.kept_back)}{_current(step.kept_back)}"
    if step.note:
        words += f"; {step.note}"
    return words + (f"  {step.rule}" if step.rule else "")


def _from_now(due: datetime, now: datetime) -> str:
    return f"in {format_left(timedelta(seconds=max(0, round((due - now).total_seconds()))))}"


def _current(reason: Reason) -> str:
    return f" (now {reason.current})" if reason.current else ""


def _at(reason: Reason) -> str:
    return f"  {reason.rule}" if reason.rule else ""


def _past_words(step: PastStep) -> str:
    run = f" in run {step.run_id}" if step.run_id is not None else ""
    outcome = f": {step.outcome}" if step.outcome else ""
    detail = f" ({step.detail})" if step.detail else ""
    return f"{format_instant(step.at)}  {step.what}{run}{outcome}{detail}"


def table_of_conditions(found: Explanation) -> Table:
    """What must hold before something happens to it."""
    columns = (
        Column(key="met"), Column(key="condition"), Column(key="current", title="NOW"), Column(key="required"),
        Column(key="rule"),
    )  # fmt: skip
    rows = [
        ("yes" if it.is_met else "no", it.name, it.current, it.required, str(it.rule or "")) for it in found.conditions
    ]
    return Table(columns=columns, rows=rows)
