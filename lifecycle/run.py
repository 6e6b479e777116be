"""One run from lease to report: lease, recover, scan, plan, execute, record. And the preview, which does none of it
to anything of anybody's: it scans and plans on a private copy of the catalog.

Knows the order of the steps and what their failure means for the others; never the inside of any step.
"""

from __future__ import annotations

import atexit
import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from lifecycle import errors
from lifecycle.acting import make_report, make_stopper, may, open_site, recover
from lifecycle.app import App, copy_rules, measure, reachable_places
from lifecycle.catalog.braking import brakes_of, record_retentions
from lifecycle.catalog.due import CatalogDue
from lifecycle.catalog.places import places
from lifecycle.catalog.reclassifying import waiting_changes
from lifecycle.catalog.resolving import done_before, resolve_members
from lifecycle.catalog.store import copy_for_preview
from lifecycle.engine.local import LocalEngine
from lifecycle.errors import ExitCode, worst_exit
from lifecycle.execute.executor import BatchExecutor
from lifecycle.execute.site import Site
from lifecycle.execute.watch import ReliefWatch
from lifecycle.model import ActionKind, Kept, PlaceKind, PlannedBatch, TierName
from lifecycle.plan.brakes import Brake, describe_brake, present_figures
from lifecycle.plan.plan import PlanSummary
from lifecycle.plan.pressure import FileSystem, Pressure
from lifecycle.plan.relief import iter_plan
from lifecycle.plan.spool import PlanFile, write_plan
from lifecycle.report.audit import tier_usage
from lifecycle.report.figures import (
    PreviewReport,
    ProblemLine,
    Progress,
    RunReport,
    ScanReport,
)
from lifecycle.report.pressure import broken_line, expected_broken, fill_lines, pressure_of
from lifecycle.report.runs import accept_hint
from lifecycle.scan.reclassify import unclassified_places
from lifecycle.session import RunOptions as RunOptions
from lifecycle.session import Session, stop_signal
from lifecycle.tidying import count_emptied, remove_emptied
from lifecycle.units import from_ns, to_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewOptions:
    as_of: datetime | None = None  # plan as if it were then; the scan is of now
    no_scan: bool = False
    root: Path | None = None
    only: frozenset[ActionKind] | None = None
    out: Path | None = None


# --- run ----------------------------------------------------------------------------------------------------------


def run_once(app: App, options: RunOptions, progress: Progress) -> RunReport:
    """One run. Whatever single things meet is in the report; raises LeaseHeld (``if_held`` fail), UsageError for the
    plan file, LeaseLost and Damaged for what halts a run, each after the run's row has its end."""
    with Session(app, "run") as session:
        session.take_leases(options)
        with LocalEngine() as engine, stop_signal() as stopped:
            stop = make_stopper(app, options, stopped)
            site = open_site(session, engine, stop)
            recovery = recover(session, site)
            session.reclassify(progress, stop)
            scans = session.scan(progress)
            session.refresh_holds()
            before = tier_usage(app.catalog)  # what the scan found counts as there, not as come during the run
            space = session.measure()
            watch = ReliefWatch(
                policy=app.policy, measure=session.measure, sleep=time.sleep, monotonic=app.clock.monotonic
            )
            executor = _execute(session, site, options, progress, space, watch)
            # After the moves, which it must not hold up; nothing of it is worth more than the lease is held for.
            folders = 0 if session.refuses_removals or options.only or executor.stopped else remove_emptied(session)
        report = make_report(
            session,
            before=before,
            recovery=recovery,
            scans=scans,
            executor=executor,
            space=space,
            watch=watch,
            folders=folders,
        )
        session.record(report)
    return report


def _execute(
    session: Session,
    site: Site,
    options: RunOptions,
    progress: Progress,
    space: tuple[FileSystem, ...],
    watch: ReliefWatch,
) -> BatchExecutor:
    app = session.app
    with contextlib.ExitStack() as stack:
        if options.plan_file is not None:
            plan = PlanFile(
                options.plan_file, policy=app.policy, now=session.now, catalog_id=app.catalog.facts().catalog_id
            )
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lifecycle-plan-")))
            brakes = _brake(session, options)
            plan, _ = _spool(app, folder / "plan", session.now, options.only, brakes, space)
        summary = plan.summary
        moves = [kind for kind in ActionKind if kind.reads_content]
        moving = summary.segments_of(*moves)
        bytes_moving = sum(line.logical_bytes for line in summary.lines if line.action in moves)
        executor = BatchExecutor(site, on_done=_Shown(progress, summary), moving=(moving, bytes_moving), watch=watch)
        batches: Iterator[PlannedBatch] = (batch for batch in plan.batches() if may(session, batch, options))
        if options.plan_file is not None:
            batches = _still_due(app, batches, session.now, executor)
        executor.run(batches)
        progress.done()
    return executor


def _brake(session: Session, options: RunOptions) -> tuple[Brake, ...]:
    """What is not marked today, said once for each team; for all others the present retention is in force from now on.

    Before the marks, not after them: a run that is killed between the two finds the same marks due, and nothing new.
    """
    app = session.app
    if options.only is not None and ActionKind.MARK not in options.only:
        return ()
    brakes = brakes_of(app.catalog, app.policy, session.now)
    for brake in brakes:
        session.note("brake", None, "", errors.Brake(describe_brake(brake), hint=accept_hint(app.policy.digest)))
    if not session.refuses_removals:
        held_back = {pair for brake in brakes for pair in brake.pairs}
        pairs = [pair for pair in CatalogDue(app.catalog).pairs() if pair not in held_back]
        in_force = present_figures(pairs, app.policy)
        record_retentions(app.catalog, in_force, policy_digest=app.policy.digest, now_ns=to_ns(session.now))
    return brakes


def _still_due(
    app: App, batches: Iterable[PlannedBatch], now: datetime, executor: BatchExecutor
) -> Iterator[PlannedBatch]:
    """A plan file's batches with this catalog's ids, less what was done before or changed since; marks and purges are
    judged anew, since a job that wrote again after the plan was made keeps its logs. What is left out the executor
    counts: as done before, which it is told, or as kept. Whether relief is still needed is the watch's to say; here
    only what must not go at all is left out."""
    ends = (ActionKind.UNMARK, ActionKind.RELEASE, ActionKind.PURGE, ActionKind.MARK)
    segments, archives = set[tuple[ActionKind, int]](), set[tuple[ActionKind, int]]()
    doubtful = set[tuple[str, str]]()  # teams and classes with marks that are wrong by now, or under a brake
    brakes = brakes_of(app.catalog, app.policy, now)
    doubtful.update((pair.team, pair.class_name) for brake in brakes for pair in brake.pairs)
    for due in _iter_due(app, now, ends, brakes, Pressure()):
        if isinstance(due, PlannedBatch):
            segments.update((due.kind, member.segment_id) for member in due.members)
            archives.update((due.kind, archive) for archive in due.archive_ids)
            if due.kind is ActionKind.UNMARK:
                doubtful.add((due.team, due.class_name))
    for batch in batches:
        with app.catalog.read() as conn:
            there = replace(batch, members=resolve_members(conn, batch.members))
            left = executor.without_done(there, done_before(conn, there))
        if left is None:
            continue
        batch, members, archive_ids = left, left.members, left.archive_ids
        if batch.is_ahead and batch.kind is ActionKind.PURGE:
            if (batch.team, batch.class_name) in doubtful:
                members, archive_ids = (), ()
        elif batch.kind in ends and not batch.is_ahead:
            members = tuple(member for member in members if (batch.kind, member.segment_id) in segments)
            archive_ids = tuple(archive for archive in archive_ids if (batch.kind, archive) in archives)
        yield replace(batch, members=members, archive_ids=archive_ids)


def _iter_due(
    app: App,
    now: datetime,
    only: Collection[ActionKind] | None,
    brakes: tuple[Brake, ...],
    pressure: Pressure,
    after: Callable[[Pressure], None] = lambda pressure: None,
) -> Iterator[PlannedBatch | Kept]:
    yield from iter_plan(
        CatalogDue(app.catalog),
        app.policy,
        now,
        only=only,
        unclassified=unclassified_places(app.catalog, app.policy, app.host),
        braked=frozenset(pair for brake in brakes for pair in brake.pairs),
        copies=copy_rules(app),
        pressure=pressure,
        after=after,
    )


def _spool(
    app: App,
    path: Path,
    now: datetime,
    only: frozenset[ActionKind] | None,
    brakes: tuple[Brake, ...],
    space: tuple[FileSystem, ...],
) -> tuple[PlanFile, Pressure]:
    """The plan, and how full everything is expected to be when it is done."""
    catalog_id = app.catalog.facts().catalog_id
    pressure = pressure_of(app.catalog, app.policy, now=now, file_systems=space)
    expected = [pressure]
    items = _iter_due(app, now, only, brakes, pressure, expected.append)
    write_plan(path, items, policy=app.policy, catalog_id=catalog_id, now=now)
    return PlanFile(path, policy=app.policy, now=now), expected[-1]


class _Shown:
    """Progress by action and way."""

    def __init__(self, progress: Progress, summary: PlanSummary) -> None:
        self._progress = progress
        self._summary = summary
        self._phase = ""

    def __call__(self, batch: PlannedBatch, segments: int, size_bytes: int) -> None:
        phase = f"{batch.kind} {batch.tier_from} → {batch.tier_to or 'gone'}"
        if phase != self._phase:
            self._phase = phase
            total = sum(
                line.segments
                for line in self._summary.lines
                if (line.action, line.tier_from, line.tier_to) == (batch.kind, batch.tier_from, batch.tier_to)
            )
            self._progress.phase(phase, total)
        self._progress.advance(segments, size_bytes)


# --- preview ------------------------------------------------------------------------------------------------------


def preview(app: App, options: PreviewOptions, progress: Progress) -> PreviewReport:
    """What a run would do now, or at ``as_of``. Changes nothing: not a byte, not a row, not a lock."""
    now = options.as_of or app.now()
    path = options.out or _spool_path()
    with contextlib.ExitStack() as stack:
        scans, problems, codes, folders = list[ScanReport](), tuple[ProblemLine, ...](), set[ExitCode](), 0
        world = app
        if not options.no_scan:
            copy = stack.enter_context(copy_for_preview(None if options.root else app.catalog.url, now=app.now()))
            world = replace(app, catalog=copy)
            scans, problems, codes, folders = _preview_scan(world, options, progress)
        brakes = () if options.root else brakes_of(world.catalog, world.policy, now)
        if brakes:
            codes.add(ExitCode.BRAKE)
        # A tree that no catalog knows has no tiers yet, and how full they would be is not the question.
        space = measure(world, reachable_places(world)) if options.root is None else ()
        plan, expected = _spool(world, path, now, options.only, brakes, space)
        unknown = tuple(
            ProblemLine(phase="space", subject=each.name, message=each.unknown) for each in space if each.unknown
        )
        with world.catalog.read() as conn:
            roots = tuple((place.id, place.name, place.root) for place in places(conn))
            scanned = min((place.scanned_ns for place in places(conn) if place.scanned_ns is not None), default=None)
            waiting = tuple(waiting_changes(conn))
        before = tier_usage(world.catalog)
        still = expected_broken(world.catalog, app.policy, expected)
    return PreviewReport(
        summary=plan.summary,
        scans=tuple(scans),
        scanned_at=from_ns(scanned) if scanned is not None else None,
        items=plan.items,
        out=options.out,
        root=options.root,
        folders=folders,
        before=before,
        waiting=waiting,
        brakes=brakes,
        fills=fill_lines(space, expected.file_systems, app.policy),
        broken=tuple(map(broken_line, still)),
        place_roots=roots,
        problems=(*problems, *unknown),
        exit_code=worst_exit(codes | ({ExitCode.PARTIAL} if unknown else set())),
    )


def _spool_path() -> Path:
    """The items of a preview are read again and again, until the program ends."""
    folder = tempfile.mkdtemp(prefix="lifecycle-plan-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder) / "plan"


def _preview_scan(
    world: App, options: PreviewOptions, progress: Progress
) -> tuple[list[ScanReport], tuple[ProblemLine, ...], set[ExitCode], int]:
    session = Session(world, "plan", is_preview=True)
    with session:
        if options.root is not None:
            _adopt_places(world)
        session.look_at_places(need_marker=options.root is None)
        session.reclassify(progress)
        scans = session.scan(progress)
        if options.as_of is not None:
            # If nothing is written until then: what is quiet now will have settled.
            session.now = options.as_of
            session.scan(progress)
        session.refresh_holds()
        folders = count_emptied(world, session.opened, to_ns(session.now)) if options.root is None else 0
        return scans, tuple(session.problem_lines()), session.codes, folders


def _adopt_places(world: App) -> None:
    """``--root``: an empty private catalog is told of the sources and tiers, which need no marker for a look."""
    from lifecycle.catalog.places import ensure_place

    with world.catalog.write() as conn:
        for source in world.policy.sources:
            ensure_place(
                conn,
                kind=PlaceKind.SOURCE,
                name=source.name,
                host="",
                root=source.path,
                tier=TierName.HOT,
                uid=f"source-{source.name}",
            )
        for name, tier in world.policy.tiers.items():
            ensure_place(
                conn, kind=PlaceKind.TIER, name=name.value, host="", root=tier.path, tier=name, uid=f"tier-{name}"
            )
