"""Runs, scans and their history, folded to lines and tables.

Knows the order in which people read a run: what was seen, what was done, what it gave, what is left, what to type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from lifecycle.catalog.reclassifying import WaitingChange
from lifecycle.errors import ExitCode
from lifecycle.model import ActionKind
from lifecycle.report.blocks import Block, Cell, CellKind, Column, Line, Table, Tone
from lifecycle.report.figures import (
    BrokenLine,
    FillLine,
    HeldPlace,
    PhaseReport,
    ProblemLine,
    RecoveryReport,
    ReliefLine,
    RunReport,
    ScanOnceReport,
    ScanReport,
    TierUsage,
)
from lifecycle.report.text import format_share
from lifecycle.units import format_count, format_instant, format_size

EXIT_WORDS: Final = {
    ExitCode.DONE: "done", ExitCode.FAILED: "failed", ExitCode.USAGE: "not run: settings or policy",
    ExitCode.PARTIAL: "done in part", ExitCode.BRAKE: "stopped by a brake", ExitCode.LEASE_HELD: "lease held",
    ExitCode.DAMAGE: "damage found", ExitCode.ATTENTION: "done, needs attention",
    ExitCode.NOTHING_FOUND: "nothing found",
}  # fmt: skip
_TONES: Final = {ExitCode.DONE: Tone.GOOD, ExitCode.PARTIAL: Tone.WARNING, ExitCode.ATTENTION: Tone.WARNING}
_SHOWN_PROBLEMS: Final = 5
_PHASE_COLUMNS: Final = (
    Column(key="phase"), Column(key="outcome"), Column(key="seconds", kind=CellKind.SECONDS),
)  # fmt: skip


def count_of(count: int, noun: str, plural: str = "") -> str:
    """``1 file``, ``2,112 files``."""
    return f"{format_count(count)} {noun if count == 1 else plural or noun + 's'}"


def accept_hint(policy_digest: str) -> str:
    """What to type once a person has looked."""
    return f'lifecycle plan --list --action mark, then: lifecycle policy accept {policy_digest[:6]} --reason "…"'


def describe_waiting(change: WaitingChange) -> str:
    """A change of class that would keep shorter."""
    size = f"{count_of(change.segments, 'segment')} ({format_size(change.logical_bytes)})"
    return f"{change.team}: {size} of class {change.from_class}, which policy now calls {change.to_class}"


def fold_run(report: RunReport) -> Iterator[Block]:
    """The people's summary of a run."""
    rows = [*_recovery_rows(report.recovery), *_scan_rows(report.scans), *map(_phase_row, report.phases)]
    yield Table(columns=_PHASE_COLUMNS, rows=rows, has_heading=False)
    if report.scans and not report.phases:
        yield Line(text="nothing was due", tone=Tone.QUIET)
    if report.folders:
        yield Line(text=f"{count_of(report.folders, 'folder')} that runs had emptied removed", tone=Tone.QUIET)
    if report.phases and all(_is_done_before(phase) for phase in report.phases):
        yield Line(text="all that the plan lists was done already", tone=Tone.QUIET)
    if change := _usage_change(report):
        yield Line(text=change)
    yield from iter_fill_lines(report.fills)
    yield from (_relief_line(line) for line in report.relief)
    yield from iter_broken_lines(report.broken, "still broken")
    yield from _held_lines(report.held_places)
    if report.stopped:
        left = (
            f", {count_of(report.left_segments, 'planned segment')} left for the next run"
            if report.left_segments
            else ""
        )
        yield Line(text=f"stopped early: {report.stopped}{left}", tone=Tone.WARNING)
    yield from iter_problem_lines(report.problems, report.problem_count)
    name = f"run {report.run_id}" + (" (rehearsal)" if report.rehearsal else "")
    yield _last_line(name, report.run_id, report.exit_code, report.problem_count)


def fold_scan(report: ScanOnceReport) -> Iterator[Block]:
    """One row a place, then what came of it."""
    columns = (
        Column(key="place"), Column(key="files", kind=CellKind.COUNT),
        Column(key="size_bytes", title="BYTES", kind=CellKind.SIZE),
        Column(key="new", kind=CellKind.COUNT), Column(key="changed", kind=CellKind.COUNT),
        Column(key="renamed", kind=CellKind.COUNT), Column(key="settled", kind=CellKind.COUNT),
        Column(key="still_open", title="OPEN", kind=CellKind.COUNT), Column(key="missing", kind=CellKind.COUNT),
        Column(key="foreign", kind=CellKind.COUNT), Column(key="special", title="LINKS ETC.", kind=CellKind.COUNT),
        Column(key="unseen", kind=CellKind.COUNT), Column(key="seconds", title="TOOK", kind=CellKind.SECONDS),
    )  # fmt: skip
    rows = [
        (scan.place, scan.files, scan.size_bytes, scan.new, scan.changed, scan.renamed, scan.settled, scan.still_open,
         scan.missing, scan.foreign, scan.special, scan.unseen, scan.seconds)
        for scan in report.scans
    ]  # fmt: skip
    yield Table(columns=columns, rows=rows)
    yield from _held_lines(report.held_places)
    yield from iter_problem_lines(report.problems, report.problem_count)
    yield _last_line(f"scan {report.run_id}", report.run_id, report.exit_code, report.problem_count)


def describe_scans(scans: Sequence[ScanReport]) -> str:
    """``412,093 files in 2 places: 311,240 new, 2 folders unreadable``."""
    files = count_of(sum(scan.files for scan in scans), "file")
    where = f" in {len(scans)} places" if len(scans) > 1 else ""
    words = [
        f"{format_count(total)} {word}"
        for word, total in (
            ("new", sum(scan.new for scan in scans)),
            ("changed", sum(scan.changed for scan in scans)),
            ("renamed", sum(scan.renamed for scan in scans)),
            ("replaced", sum(scan.replaced for scan in scans)),
            ("missing", sum(scan.missing for scan in scans)),
            ("lost", sum(scan.lost for scan in scans)),
            ("foreign", sum(scan.foreign for scan in scans)),
        )
        if total
    ]
    if special := describe_special(scans):
        words.append(special)
    if unseen := sum(scan.unseen for scan in scans):
        words.append(f"{format_count(unseen)} not readable")
    return f"{files}{where}" + (f": {', '.join(words)}" if words else "")


def describe_special(scans: Sequence[ScanReport]) -> str:
    """``5 links and special files``: seen, counted and left alone, hard links among them; "" without any."""
    special = sum(scan.special for scan in scans)
    return count_of(special, "link or special file", "links and special files") if special else ""


def _scan_rows(scans: Sequence[ScanReport]) -> Iterator[tuple[Cell, ...]]:
    if scans:
        yield ("scan", describe_scans(scans), sum(scan.seconds for scan in scans))
    for scan in scans:
        if not scan.is_complete:
            why = "; ".join(scan.problems[:2]) or "not all of it could be seen"
            yield ("", f"{scan.place}: {why}; what is absent there is not taken for gone", None)


def _recovery_rows(recovery: RecoveryReport) -> Iterator[tuple[Cell, ...]]:
    if not recovery.batches:
        return
    words = [
        f"{format_count(count)} {word}"
        for word, count in (
            ("finished", recovery.finished), ("adopted", recovery.adopted),
            ("undone", recovery.undone), ("parked: place not reachable", recovery.parked),
        )
        if count
    ]  # fmt: skip
    yield (
        "recover",
        f"{count_of(recovery.batches, 'half-done batch', 'half-done batches')}: {', '.join(words)}",
        recovery.seconds,
    )


def _phase_row(phase: PhaseReport) -> tuple[Cell, ...]:
    return (phase.action.value, "; ".join(_phase_words(phase)), phase.seconds)


def _is_done_before(phase: PhaseReport) -> bool:
    return phase.done_before > 0 and phase.done_before == phase.planned_segments


def _phase_words(phase: PhaseReport) -> Iterator[str]:
    if _is_done_before(phase):
        way = phase.tier_from if phase.tier_to is phase.tier_from else f"{phase.tier_from} → {phase.tier_to or 'gone'}"
        yield f"{way}  {format_count(phase.done_before)} done already"
        return
    done = format_count(phase.segments)
    if phase.planned_segments and phase.planned_segments != phase.segments:
        done += f" of {format_count(phase.planned_segments)}"
    yield _done_words(phase, done)
    if phase.parked:
        yield f"{count_of(phase.parked, 'original')} renamed, to be removed after release_after"
    if phase.done_before:
        yield f"{format_count(phase.done_before)} done already"
    if phase.kept:
        yield f"{format_count(phase.kept)} left alone"
    if phase.failed:
        yield f"{format_count(phase.failed)} failed"


def _done_words(phase: PhaseReport, done: str) -> str:
    match phase.action:
        case ActionKind.MERGE if phase.tier_from is phase.tier_to:
            into = f" in {count_of(phase.archives, 'archive')}" if phase.archives else ""
            tiny = f"out of tiny archives into one, {format_size(phase.freed_bytes)} freed"
            return f"{done} in {phase.tier_from} {tiny}{into}"
        case ActionKind.TRANSITION | ActionKind.MERGE:
            share = f" ({format_share(phase.stored_bytes / phase.logical_bytes)})" if phase.logical_bytes else ""
            sizes = f"{format_size(phase.logical_bytes)} → {format_size(phase.stored_bytes)}{share}"
            into = f" in {count_of(phase.archives, 'archive')}" if phase.archives else ""
            return f"{phase.tier_from} → {phase.tier_to}  {done} stored, verified, released: {sizes}{into}"
        case ActionKind.COPY:
            into = f" in {count_of(phase.archives, 'archive')}" if phase.archives else ""
            sizes = f"{format_size(phase.logical_bytes)} → {format_size(phase.stored_bytes)}"
            return f"{phase.tier_from} → {phase.tier_to}  {done} stored early, originals stay: {sizes}{into}"
        case ActionKind.REWRITE:
            into = f" in {count_of(phase.archives, 'archive')}" if phase.archives else ""
            sizes = f"{format_size(phase.logical_bytes)} → {format_size(phase.stored_bytes)}"
            return f"{done} held in {phase.tier_from} stored anew without their neighbours: {sizes}{into}"
        case ActionKind.EXTRACT:
            errors = f"errors kept in {format_size(phase.stored_bytes)}" if phase.stored_bytes else "no errors in them"
            looked = f"{done} in {phase.tier_from} looked through, {format_size(phase.logical_bytes)}"
            return f"{looked}: {errors}" if phase.segments else looked
        case ActionKind.MARK:
            return f"{done} in {phase.tier_from}, {format_size(phase.logical_bytes)}; still readable, can be undone"
        case ActionKind.UNMARK:
            return f"{done} in {phase.tier_from}, {format_size(phase.logical_bytes)}; no longer due"
        case ActionKind.RELEASE:
            return f"{done} originals out of {phase.tier_from}, stored before: {format_size(phase.freed_bytes)} freed"
        case ActionKind.PURGE:
            return f"{done} out of {phase.tier_from}, {format_size(phase.freed_bytes)} freed"
        case other:
            assert_never(other)


def _usage_change(report: RunReport) -> str:
    """``hot 9.40 TiB → 696 GiB, 81.9 → 79.7 % full · warm 0 B → 1.79 TiB · 8.72 TiB freed``."""
    before = {usage.tier: usage for usage in report.before}
    parts = [_tier_change(before.get(after.tier), after) for after in report.after]
    if report.freed_bytes:
        planned = sum(phase.planned_bytes for phase in report.phases if phase.action is not ActionKind.MARK)
        parts.append(
            f"{format_size(report.freed_bytes)} freed" + (f" of {format_size(planned)} planned" if planned else "")
        )
    return " · ".join(part for part in parts if part)


def _tier_change(before: TierUsage | None, after: TierUsage) -> str:
    old = before.usage.stored_bytes if before else 0
    new = after.usage.stored_bytes
    if not old and not new:
        return ""
    text = f"{after.tier} {format_size(old)} → {format_size(new)}" if old != new else f"{after.tier} {format_size(new)}"
    if before and before.fill is not None and after.fill is not None:
        text += f", {before.fill * 100:.1f} → {after.fill * 100:.1f} % full"
    return text


def iter_fill_lines(fills: Sequence[FillLine]) -> Iterator[Line]:
    """``hot 81.9 → 79.7 % (high 80 %), free 81.2 TiB (reserve 40 TiB)``."""
    if fills:
        yield Line(text=" · ".join(map(_describe_fill, fills)))


def _describe_fill(fill: FillLine) -> str:
    total = max(1, fill.total_bytes)
    shares = f"{fill.used_before / total * 100:.1f} → {fill.used_after / total * 100:.1f} %"
    high = f" (high {fill.high * 100:.4g} %)" if fill.high is not None else ""
    free = f", free {format_size(fill.total_bytes - fill.used_after)}"
    reserve = f" (reserve {format_size(fill.reserve_bytes)})" if fill.reserve_bytes is not None else ""
    return f"{fill.name} {shares}{high}{free}{reserve}"


def _relief_line(relief: ReliefLine) -> Line:
    return Line(text=f"relief of {relief.name}: {format_size(relief.freed_bytes)} freed ahead of time")


def iter_broken_lines(broken: Sequence[BrokenLine], word: str) -> Iterator[Line]:
    """Alarms first; a soft quota is no alarm."""
    for line in sorted(broken, key=lambda each: not each.is_alarm):
        text = f"{word if line.is_alarm else 'over'}: {line.subject} {describe_broken(line.text, line.open_bytes)}"
        yield Line(text=f"{text}  {line.rule}".rstrip(), tone=Tone.ALARM if line.is_alarm else Tone.WARNING)


def describe_broken(text: str, open_bytes: int) -> str:
    return f"{text}, {format_size(open_bytes)} of it open: relief cannot reach that" if open_bytes else text


def _held_lines(held: Sequence[HeldPlace]) -> Iterator[Line]:
    for place in held:
        since = f" since {format_instant(place.since)}" if place.since else ""
        yield Line(text=f"{place.place}: passed over, held by {place.holder}{since}", tone=Tone.WARNING)


def iter_problem_lines(problems: Sequence[ProblemLine], count: int) -> Iterator[Line]:
    for problem in problems[:_SHOWN_PROBLEMS]:
        yield Line(text=f"! {_problem_text(problem)}", tone=Tone.WARNING)
    if count > _SHOWN_PROBLEMS:
        yield Line(text=f"! and {format_count(count - _SHOWN_PROBLEMS)} more", tone=Tone.WARNING)


def _problem_text(problem: ProblemLine) -> str:
    """Place and subject only where the message does not name them itself: an error often says what it is about."""
    message, _, its_hint = problem.message.partition(" HINT: ")
    named = message.partition(": ")[0].split()
    place = "" if message.startswith(problem.place) or problem.place in named else problem.place
    subject = "" if problem.subject in message else problem.subject
    about = " ".join(part for part in (place, subject) if part)
    hint = problem.hint or its_hint
    return f"{problem.phase}: {about + ': ' if about else ''}{message}{f'  HINT: {hint}' if hint else ''}"


def _last_line(name: str, run_id: int, exit_code: ExitCode, problems: int) -> Line:
    code = f" (exit {int(exit_code)})" if exit_code else ""
    hint = f" · HINT: lifecycle history {run_id} --problems" if problems else ""
    return Line(text=f"{name}: {EXIT_WORDS[exit_code]}{code}{hint}", tone=_TONES.get(exit_code, Tone.ALARM))
