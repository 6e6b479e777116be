"""What a run does beyond a scan: recovery, the places it may act on, and what it reports.

Knows a session's places and leases, and what the executor needs of them. Never decides what is due.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta

from lifecycle.app import App, tier_spec
from lifecycle.catalog.expiry import Expiry
from lifecycle.catalog.extractions import Extractions
from lifecycle.catalog.journal import Journal
from lifecycle.engine.local import LocalEngine
from lifecycle.errors import ExitCode, NeedsAttention, worst_exit
from lifecycle.execute.executor import BatchExecutor
from lifecycle.execute.recovery import Recovered, recover_place
from lifecycle.execute.site import Site, WorkPlace
from lifecycle.execute.watch import ReliefWatch
from lifecycle.model import ActionKind, PlannedBatch
from lifecycle.plan.pressure import FileSystem
from lifecycle.report.audit import tier_usage
from lifecycle.report.figures import PhaseReport, RecoveryReport, ReliefLine, RunReport, ScanReport, TierUsage
from lifecycle.report.pressure import broken_line, fill_lines, gather_broken
from lifecycle.scan.evidence import probe
from lifecycle.scan.handles import Root
from lifecycle.session import RunOptions, Session
from lifecycle.tiers import open_tier, pin
from lifecycle.units import duration_ns, to_ns


def recover(session: Session, site: Site) -> RecoveryReport:
    """Put right what earlier runs left half done, place by place."""
    started, total = session.app.clock.monotonic(), Recovered()
    for opened in session.opened:
        if opened.is_behind:
            continue
        release_after = opened.source.release_after if opened.source is not None else timedelta(0)
        recovered, errors = recover_place(
            site, site.places[opened.place.id], release_after_ns=duration_ns(release_after)
        )
        total.add(recovered)
        for error in errors:
            session.note("recover", opened.place.id, "", error)
    return RecoveryReport(
        batches=total.batches,
        finished=total.finished,
        adopted=total.adopted,
        undone=total.undone,
        parked=total.parked,
        seconds=session.app.clock.monotonic() - started,
    )


def open_site(session: Session, engine: LocalEngine, stop: Callable[[], str]) -> Site:
    """What the executor may act on."""
    works = {}
    for opened in session.opened:
        place, source = opened.place, opened.source
        if opened.is_behind:
            continue
        if source is None:
            spec = tier_spec(place)
            tier = open_tier(spec)
            work = WorkPlace(place=place, lease=opened.lease, spec=pin(spec, tier), writer=tier)
        else:
            mounts = tuple(os.fsencode(mount) for mount in source.mounts)
            with Root(place.root, mounts=mounts) as root:
                sees = probe(root, session.look_at_proc()).sees_writers
            work = WorkPlace(place=place, lease=opened.lease, mounts=mounts, sees_writers=sees)
        works[place.id] = work
    return Site(
        journal=Journal(session.app.catalog, session.run_id, to_ns(session.now)),
        expiry=Expiry(session.app.catalog, session.run_id, to_ns(session.now)),
        extractions=Extractions(session.app.catalog, session.run_id, to_ns(session.now)),
        policy=session.app.policy,
        catalog_id=session.app.catalog.facts().catalog_id,
        now_ns=to_ns(session.now),
        places=works,
        pool=engine.pool,
        inline=engine.inline,
        workers=engine.workers,
        stop=stop,
        monotonic=session.app.clock.monotonic,
    )


def may(session: Session, batch: PlannedBatch, options: RunOptions) -> bool:
    """Whether this run may carry a planned batch out; places that are not ours today are left for another run."""
    if options.only is not None and batch.kind not in options.only:
        return False
    if session.refuses_removals and not (batch.kind.reads_content or batch.kind is ActionKind.UNMARK):
        return False
    return any(opened.place.id == batch.place_id and not opened.is_behind for opened in session.opened)


def make_report(
    session: Session,
    *,
    before: tuple[TierUsage, ...],
    recovery: RecoveryReport,
    scans: list[ScanReport],
    executor: BatchExecutor,
    space: Sequence[FileSystem],
    watch: ReliefWatch,
    folders: int = 0,
) -> RunReport:
    """What came of a run, its troubles noted in the session first. ``space``: the file systems before it acted."""
    session.taken, session.space = executor.taken, session.measure()
    for why in watch.given_up.values():
        session.note("relief", None, "", NeedsAttention(why, hint="snapshots, or files that are held open?"))
    policy = session.app.policy
    broken = gather_broken(session.app.catalog, policy, file_systems=session.space)
    if any(each.is_alarm for each in broken):
        session.codes.add(ExitCode.ATTENTION)
    for trouble in executor.troubles:
        session.note(trouble.phase, trouble.place_id, trouble.subject, trouble.error)
    phases = tuple(
        PhaseReport(
            action=action,
            tier_from=tier_from,
            tier_to=tier_to,
            planned_segments=tally.planned.segments,
            planned_bytes=tally.planned.stored_bytes,
            segments=tally.done.segments,
            logical_bytes=tally.done.logical_bytes,
            stored_bytes=tally.done.stored_bytes,
            freed_bytes=tally.done.freed_bytes,
            archives=tally.done.archives,
            parked=tally.parked,
            kept=tally.done.kept,
            done_before=tally.done_before,
            failed=tally.done.failed,
            seconds=tally.seconds,
        )
        for (action, tier_from, tier_to), tally in executor.tallies.items()
    )
    return RunReport(
        run_id=session.run_id,
        host=session.app.host,
        now=session.now,
        started=session.started,
        ended=session.app.clock.now(),
        policy_digest=session.app.policy.digest,
        rehearsal=session.app.catalog.facts().rehearsal,
        exit_code=worst_exit(session.codes),
        recovery=recovery,
        scans=tuple(scans),
        phases=phases,
        before=before,
        after=tier_usage(session.app.catalog),
        fills=fill_lines(space, session.space, policy),
        relief=tuple(
            ReliefLine(name=name, freed_bytes=freed, given_up=watch.given_up.get(name, ""))
            for name, freed in watch.freed.items()
        ),
        broken=tuple(map(broken_line, broken)),
        held_places=tuple(session.held),
        stopped=executor.stopped,
        left_segments=executor.left_segments,
        folders=folders,
        problem_count=len(session.problems),
        problems=tuple(session.problem_lines()[:50]),
    )


def make_stopper(app: App, options: RunOptions, stopped: list[str]) -> Callable[[], str]:
    """Why the run should begin nothing new, or "": a signal, or its time is up."""
    started = app.clock.monotonic()

    def stop() -> str:
        if stopped:
            return stopped[0]
        limit = options.max_duration
        if limit is not None and app.clock.monotonic() - started >= limit.total_seconds():
            return "max-duration reached"
        return ""

    return stop
