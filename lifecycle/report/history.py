"""Runs of the past, folded to tables and lines; a run is shown again as it was reported then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lifecycle.report.blocks import Block, Cell, CellKind, Column, Line, Table, Tone
from lifecycle.report.figures import ProblemLine, RunLine, RunReport, StoredRun
from lifecycle.report.runs import EXIT_WORDS, fold_run, fold_scan
from lifecycle.units import format_instant


def table_of_runs(runs: Iterable[RunLine]) -> Table:
    columns = (
        Column(key="run_id", title="RUN", kind=CellKind.NUMBER), Column(key="command"),
        Column(key="now", kind=CellKind.INSTANT), Column(key="started", kind=CellKind.INSTANT, in_text=False),
        Column(key="ended", kind=CellKind.INSTANT, in_text=False),
        Column(key="seconds", title="TOOK", kind=CellKind.SECONDS),
        Column(key="exit_code", title="EXIT", kind=CellKind.NUMBER), Column(key="outcome"),
        Column(key="problems", kind=CellKind.COUNT), Column(key="host"), Column(key="policy_digest", title="POLICY"),
    )  # fmt: skip
    return Table(columns=columns, rows=map(_run_row, runs))


def _run_row(run: RunLine) -> tuple[Cell, ...]:
    took = (run.ended - run.started).total_seconds() if run.ended else None
    code = None if run.exit_code is None else int(run.exit_code)
    outcome = "did not end" if run.exit_code is None else EXIT_WORDS[run.exit_code]
    return (run.run_id, run.command, run.now, run.started, run.ended, took, code, outcome, run.problems, run.host,
            run.policy_digest[:6])  # fmt: skip


def fold_stored_run(run: StoredRun) -> Iterator[Block]:
    """A run of the past as it was reported then."""
    line = run.line
    when = f"{line.command} {line.run_id} · {format_instant(line.started)} on {line.host}"
    yield Line(text=f"{when} · policy {line.policy_digest[:6]}", tone=Tone.HEAD)
    if isinstance(run.report, RunReport):
        yield from fold_run(run.report)
    elif run.report is not None:
        yield from fold_scan(run.report)
    elif line.exit_code is None:
        yield Line(text="it has not ended: it runs now, or it was killed; the next run puts right what is half done",
                   tone=Tone.WARNING)  # fmt: skip
    else:
        why = f": {run.error}" if run.error else ""
        yield Line(text=f"{EXIT_WORDS[line.exit_code]} (exit {int(line.exit_code)}){why}", tone=Tone.ALARM)


def table_of_phases(run: StoredRun) -> Table:
    """What one run did, for machines: one row a kind of action and way."""
    counts = ("planned_segments", "segments", "kept", "failed", "archives", "done_before")
    sizes = ("logical_bytes", "stored_bytes", "freed_bytes")
    columns = (
        Column(key="action"), Column(key="tier_from"), Column(key="tier_to"),
        *(Column(key=key, kind=CellKind.COUNT) for key in counts),
        *(Column(key=key, kind=CellKind.SIZE) for key in sizes),
        Column(key="seconds", kind=CellKind.SECONDS),
    )  # fmt: skip
    phases = run.report.phases if isinstance(run.report, RunReport) else ()
    rows = [
        (phase.action.value, phase.tier_from.value, phase.tier_to.value if phase.tier_to else "",
         phase.planned_segments,
         phase.segments, phase.kept, phase.failed, phase.archives, phase.done_before, phase.logical_bytes,
         phase.stored_bytes, phase.freed_bytes, phase.seconds)
        for phase in phases
    ]  # fmt: skip
    return Table(columns=columns, rows=rows)


def table_of_problems(problems: Iterable[ProblemLine]) -> Table:
    columns = tuple(Column(key=key) for key in ("phase", "place", "subject", "message", "consequence"))
    rows = ((item.phase, item.place, item.subject, item.message, item.consequence) for item in problems)
    return Table(columns=columns, rows=rows)
