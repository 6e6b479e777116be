"""Carrying out a plan, batch by batch, in the plan's order: several in flight, the journal between their steps.

Chooses nothing and reorders nothing. What one batch meets stays with that batch, unless its error says to halt.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from errno import EDQUOT, ENOSPC
from typing import Any, Final

from lifecycle.catalog.batches import BatchHead, Intent
from lifecycle.catalog.runs import Taken
from lifecycle.errors import Consequence, Damaged, ExitCode, LeftBehind, LifecycleError, Skipped, StorageFull
from lifecycle.execute import orders
from lifecycle.execute.extract import run_extract
from lifecycle.execute.extraction import Extraction, begin_extraction, commit_extraction
from lifecycle.execute.moves import (
    Move,
    begin_move,
    changed_originals,
    close_move,
    close_repack,
    commit_move,
    original_file,
    release_order,
    require_copies,
    require_readable,
)
from lifecycle.execute.orders import (
    ExtractResult,
    OriginalFile,
    PackOrder,
    PackResult,
    Refusal,
    ReleaseOrder,
    ReleaseResult,
)
from lifecycle.execute.pack import run_pack, run_repack
from lifecycle.execute.purge import purge_archives, purge_originals
from lifecycle.execute.release import run_release
from lifecycle.execute.site import Site
from lifecycle.execute.watch import ReliefWatch
from lifecycle.model import ActionKind, Member, Original, Outcome, PlannedBatch, ReasonCode, Tally, TierName
from lifecycle.names import show_name

INLINE_SEGMENTS: Final = 256  # less work than this is done before a worker process has started
INLINE_BYTES: Final = 16 * 2**20

PhaseKey = tuple[ActionKind, TierName, TierName | None]


@dataclass(slots=True)
class PhaseTally:
    planned: Tally = field(default_factory=Tally)
    done: Tally = field(default_factory=Tally)
    parked: int = 0
    done_before: int = 0  # of a plan file: segments that an earlier run has seen to
    began: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One line of ``history RUN --problems``."""

    phase: str
    place_id: int | None
    subject: str
    error: LifecycleError


@dataclass(frozen=True, slots=True)
class _Release:
    """A release that was begun: the second half of a move, or a restored original whose stay is over."""

    batch: PlannedBatch
    head: BatchHead
    sizes: dict[int, tuple[int, int]]  # by segment: content and allocated bytes
    edited: tuple[int, ...] = ()  # restored files whose content is not what is stored: they stay
    stored_bytes: int = 0  # by the first half


def _named(refused: Iterable[Refusal], members: Iterable[Member | OriginalFile]) -> Iterator[str]:
    """Each refusal with the path of its file, where that is known."""
    paths = {member.segment_id: show_name(member.path) for member in members}
    for refusal in refused:
        path = paths.get(refusal.segment_id)
        yield f"{path}: {refusal.detail}" if path else refusal.detail


class BatchExecutor:
    """Runs the batches of one plan. ``tallies`` and ``troubles`` grow while it does."""

    def __init__(
        self,
        site: Site,
        *,
        on_done: Callable[[PlannedBatch, int, int], None],
        moving: tuple[int, int],
        watch: ReliefWatch | None = None,
    ) -> None:
        """``moving``: segments and bytes that the plan moves, to choose between worker processes and this one.
        ``watch`` says whether work ahead of its time is still needed; without it none is begun."""
        self._site = site
        self._on_done = on_done
        inline = moving[0] < INLINE_SEGMENTS and moving[1] < INLINE_BYTES
        self._workers: Executor = site.inline if inline else site.pool()
        self._window = 1 if inline else 2 * site.workers
        self._running: dict[Future[Any], Move | _Release | Extraction] = {}
        self._last: ActionKind | None = None
        self.tallies: dict[PhaseKey, PhaseTally] = {}
        self.troubles: list[Trouble] = []
        self.taken: dict[tuple[str, str, TierName], Taken] = {}  # out of the books, by team, class and tier
        self.spared_segments = 0  # of relief, no longer needed
        self._watch = watch
        self._is_ahead = False
        self.left_segments = 0
        self.stopped = ""

    def run(self, batches: Iterable[PlannedBatch]) -> None:
        """Every batch, or as many as ``site.stop`` allows; what was begun is finished. Raises what halts a run."""
        try:
            for batch in batches:
                if batch.is_ahead and not self._is_needed(batch):
                    continue
                self._phase(batch).planned.add(
                    Tally(segments=batch.segments, logical_bytes=batch.logical_bytes, stored_bytes=batch.stored_bytes)
                )
                self.stopped = self.stopped or self._site.stop()
                if self.stopped:
                    self.left_segments += batch.segments
                    continue
                self._begin(self._without_changed(batch))
        finally:
            self._drain(0)

    def without_done(self, batch: PlannedBatch, done: Collection[int]) -> PlannedBatch | None:
        """A plan file's batch less the members, or else the archives, that need it no more; those are counted. None
        when nothing is left of it. Archives are taken for equal parts of their batch."""
        if not done:
            return batch
        members = tuple(member for member in batch.members if member.segment_id not in done)
        archive_ids = tuple(archive for archive in batch.archive_ids if batch.members or archive not in done)
        count = len(batch.members) - len(members)
        if not batch.members:
            count = batch.segments * len(done) // len(batch.archive_ids)
        phase, left = self._phase(batch), batch.segments - count
        phase.planned.add(Tally(segments=count))
        phase.done_before += count
        if not left:
            return None
        sizes = (batch.logical_bytes * left // batch.segments, batch.stored_bytes * left // batch.segments)
        return replace(batch, members=members, archive_ids=archive_ids, segments=left, logical_bytes=sizes[0],
                       stored_bytes=sizes[1])  # fmt: skip

    def _is_needed(self, batch: PlannedBatch) -> bool:
        """Of work ahead of its time: whether room is still needed, now that what is due is done."""
        if not self._is_ahead:
            self._is_ahead = True
            self._drain(0)
        if self._watch is not None and not self.stopped:
            if self._watch.stays(batch):
                self._drain(0)
            if self._watch.may_begin(batch):
                return True
        self.spared_segments += batch.segments
        return False

    def _without_changed(self, batch: PlannedBatch) -> PlannedBatch:
        """A plan file's segments that are not what they were are left out of their batch by now: they are kept."""
        left_out = batch.segments - len(batch.members)
        if not batch.members or not left_out:
            return batch
        self._phase(batch).done.kept += left_out
        logical_bytes = sum(member.identity.size_bytes for member in batch.members)
        return replace(batch, segments=len(batch.members), logical_bytes=logical_bytes)

    # --- one batch ----------------------------------------------------------------------------------------------

    def _begin(self, batch: PlannedBatch) -> None:
        if not batch.kind.reads_content or (self._last is ActionKind.EXTRACT) is not (batch.kind is ActionKind.EXTRACT):
            self._drain(0)  # removals of one kind before the next begins; no archive is read that is about to go
        self._last = batch.kind
        if not batch.members and not batch.archive_ids:  # of a plan file: every segment changed since
            self._finish(batch, Tally(kept=batch.segments))
            return
        try:
            if batch.kind.moves:
                self._begin_move(batch)
            elif batch.kind is ActionKind.EXTRACT:
                self._begin_extraction(batch)
            elif batch.kind is ActionKind.RELEASE:
                self._release_restored(batch)
            else:
                self._finish(batch, self._do_at_once(batch))
        except (LifecycleError, OSError, BrokenProcessPool) as error:
            self._failed(batch, _as_ours(error))

    def _do_at_once(self, batch: PlannedBatch) -> Tally:
        site, lease = self._site, self._site.lease_of(batch.place_id)
        if batch.kind is ActionKind.PURGE:
            tally = purge_archives(site, batch) if batch.archive_ids else purge_originals(site, batch)
            self._take(batch, tally.freed_bytes, purged=True)
            return tally
        if batch.kind is ActionKind.MARK:
            done = site.expiry.mark(lease, batch, site.policy.digest, site.policy.keeping_errors(batch.team))
        else:
            done = site.expiry.unmark(lease, batch, site.policy.digest)
        share = batch.logical_bytes if done == batch.segments else batch.logical_bytes * done // max(1, batch.segments)
        return Tally(segments=done, logical_bytes=share, kept=batch.segments - done)

    def _begin_move(self, batch: PlannedBatch) -> None:
        move = begin_move(self._site, batch)
        if move is None:
            self._finish(batch, Tally(kept=batch.segments))
            return
        order = move.order
        future = (
            self._workers.submit(run_pack, order)
            if isinstance(order, PackOrder)
            else self._workers.submit(run_repack, order)
        )
        self._running[future] = move
        self._drain(self._window - 1)

    def _begin_extraction(self, batch: PlannedBatch) -> None:
        task = begin_extraction(self._site, batch)
        if task is None:
            self._finish(batch, Tally(kept=batch.segments))
            return
        self._running[self._workers.submit(run_extract, task.order)] = task
        self._drain(self._window - 1)

    def _release_restored(self, batch: PlannedBatch) -> None:
        site = self._site
        rows = [(m.segment_id, m.identity.inode, m.identity.size_bytes, m.identity.mtime_ns) for m in batch.members]
        intent = Intent(team=batch.team, class_name=batch.class_name, policy_digest=site.policy.digest)
        head = site.journal.intend(site.lease_of(batch.place_id), batch, intent, None, rows)
        ready = [
            m
            for m in site.journal.members(head.id)
            if m.original is Original.SETTLED and m.archive_id is not None and m.ctime_ns >= 0
        ]
        is_restored = batch.reason.code is ReasonCode.STAY_OVER
        try:
            # A restored original may have been edited with its times kept, and its archive is older: both are read. A
            # copy made early was verified when it was made, and any touch of its original since is seen: no reading.
            (require_readable if is_restored else require_copies)(site, ready)
        except LifecycleError as error:
            site.journal.abandon(site.lease_of(batch.place_id), head.id, Outcome.KEPT, error.message)
            raise
        files = [original_file(member) for member in ready]
        edited = changed_originals(site, site.places[batch.place_id], files) if is_restored else []
        files = [file for file in files if file.segment_id not in set(edited)]
        if not files:
            site.journal.abandon(site.lease_of(batch.place_id), head.id, Outcome.KEPT, "changed since the plan")
            self._finish(batch, Tally(kept=batch.segments))
            return
        self._submit_release(batch, head, release_order(site, head, files), edited)

    def _submit_release(
        self,
        batch: PlannedBatch,
        head: BatchHead,
        order: ReleaseOrder,
        edited: Sequence[int] = (),
        *,
        stored_bytes: int = 0,
    ) -> None:
        sizes = {member.segment_id: (member.size_bytes, member.allocated_bytes) for member in order.members}
        release = _Release(batch, head, sizes, tuple(edited), stored_bytes)
        self._running[self._workers.submit(run_release, order)] = release

    # --- what comes back ----------------------------------------------------------------------------------------

    def _drain(self, down_to: int) -> None:
        while len(self._running) > down_to:
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                task = self._running.pop(future)
                try:
                    if isinstance(task, Move):
                        self._packed(task, future.result())
                    elif isinstance(task, Extraction):
                        self._extracted(task, future.result())
                    else:
                        self._released(task, future.result())
                except (LifecycleError, OSError, BrokenProcessPool) as error:
                    told = _as_ours(error)
                    self._abandon(task, told)
                    if isinstance(told, Skipped) and len(task.batch.archive_ids) > 1:
                        self._apart(task.batch)
                    else:
                        self._failed(task.batch, told)

    def _apart(self, batch: PlannedBatch) -> None:
        """Archives whose members cannot lie in one: each moves alone, those that have arrived stay as they are."""
        if batch.tier_from is batch.tier_to:
            self._finish(batch, Tally(kept=batch.segments))
        else:
            self._one_by_one(batch)

    def _one_by_one(self, batch: PlannedBatch) -> None:
        """Archives whose members cannot lie in one (``a`` in one, ``a/b`` in the other) move each on its own."""
        share = batch.segments // len(batch.archive_ids)
        kind = ActionKind.TRANSITION if batch.kind.moves else batch.kind
        for archive_id in batch.archive_ids:
            self._begin(replace(batch, kind=kind, archive_ids=(archive_id,), segments=share))

    def _packed(self, move: Move, result: PackResult) -> None:
        if result.damage:
            self._damaged(move, result)
            return
        order = commit_move(self._site, move, result)
        tally = Tally(
            stored_bytes=result.size_bytes,
            archives=int(result.size_bytes > 0),
            kept=len(move.refused) + len(result.refused),
        )
        files = move.order.members if isinstance(move.order, PackOrder) else ()
        unread = result.companions.failed if result.companions is not None else ()
        tally.problems.extend(_named((*result.refused, *unread), files))
        if order is not None:
            self._phase(move.batch).done.add(tally)
            self._tell(move.batch, tally)
            self._submit_release(move.batch, move.head, order, stored_bytes=result.size_bytes)
            return
        if isinstance(move.order, PackOrder) and result.size_bytes and move.batch.kind is ActionKind.COPY:
            tally.segments, tally.logical_bytes = len(result.members), result.raw_bytes
        elif isinstance(move.order, PackOrder):
            tally.kept = move.batch.segments  # nothing was stored
        else:
            tally.segments, tally.logical_bytes = len(result.members), result.raw_bytes
            tally.freed_bytes = close_repack(self._site, move.head)
            self._take(move.batch, tally.freed_bytes)
        self._finish(move.batch, tally)

    def _extracted(self, task: Extraction, result: ExtractResult) -> None:
        if result.damage:
            self._damaged(task, result)
            return
        tally = commit_extraction(self._site, task, result)
        tally.problems.extend(_named((*result.refused, *result.companions.failed), task.order.members))
        self._finish(task.batch, tally)

    def _damaged(self, move: Move | Extraction, result: PackResult | ExtractResult) -> None:
        """A source archive is not what was recorded. It is set aside; what else was in the batch goes on alone."""
        lease = self._site.lease_of(move.batch.place_id)
        self._site.journal.abandon(lease, move.head.id, Outcome.FAILED, result.damage)
        if result.damaged_archive:
            self._site.journal.quarantine(lease, result.damaged_archive, result.damage)
        others = tuple(archive for archive in move.batch.archive_ids if archive != result.damaged_archive)
        if len(move.batch.archive_ids) > 1 and move.batch.tier_from is not move.batch.tier_to:
            self._one_by_one(replace(move.batch, archive_ids=others))
        is_apart = len(move.batch.archive_ids) > 1 and move.batch.tier_from is not move.batch.tier_to
        if is_apart and not result.damaged_archive:
            return  # the one that is missing has said so, alone
        hint = "it is quarantined: it is not moved or removed" if result.damaged_archive else "is the tier whole?"
        self._failed(move.batch, Damaged(result.damage, hint=hint))

    def _released(self, task: _Release, result: ReleaseResult) -> None:
        edited = (
            Refusal(segment_id=i, trouble=orders.Trouble.CHANGED, detail="edited after its restore")
            for i in task.edited
        )
        result = replace(result, refused=(*result.refused, *edited))
        close_move(self._site, task.head, result)
        gone = (*result.removed, *result.parked)
        tally = Tally(
            segments=len(gone),
            logical_bytes=sum(task.sizes[segment][0] for segment in gone),
            freed_bytes=sum(task.sizes[segment][1] for segment in result.removed),
            kept=len(result.refused),
        )
        tally.problems.extend(_named(result.refused, task.batch.members))
        self._phase(task.batch).parked += len(result.parked)
        self._take(task.batch, sum(task.sizes[segment][1] for segment in gone))
        self._finish(task.batch, tally, stored_before=task.stored_bytes)

    def _abandon(self, task: Move | _Release | Extraction, error: LifecycleError) -> None:
        """A worker that raised has left nothing, unless it says so; the intent is closed. A failed release stays for
        recovery."""
        if isinstance(task, _Release) or isinstance(error, LeftBehind):
            return
        if error.consequence is not Consequence.HALT:
            self._site.journal.abandon(
                self._site.lease_of(task.batch.place_id), task.head.id, Outcome.FAILED, error.message
            )

    def _take(self, batch: PlannedBatch, size_bytes: int, *, purged: bool = False) -> None:
        key = (batch.team, batch.class_name, batch.tier_from)
        freed, gone = self.taken.get(key, (0, 0))
        self.taken[key] = Taken(freed + size_bytes, gone + (size_bytes if purged else 0))

    def _finish(self, batch: PlannedBatch, tally: Tally, *, stored_before: int = 0) -> None:
        """``stored_before``: what the batch put elsewhere, where that is counted already."""
        phase = self._phase(batch)
        phase.done.add(tally)
        if batch.is_ahead and self._watch is not None:
            stored_bytes = tally.stored_bytes + stored_before
            self._watch.ended(batch, freed_bytes=tally.freed_bytes, stored_bytes=stored_bytes)
        phase.seconds = self._site.monotonic() - phase.began
        self._on_done(batch, tally.segments, tally.logical_bytes)
        self._tell(batch, tally)

    def _tell(self, batch: PlannedBatch, tally: Tally) -> None:
        for text in tally.problems[:20]:
            self.troubles.append(
                Trouble(
                    phase=batch.kind.value,
                    place_id=batch.place_id,
                    subject=f"{batch.team}/{batch.class_name}",
                    error=Skipped(text),
                )
            )

    def _failed(self, batch: PlannedBatch, error: LifecycleError) -> None:
        self._phase(batch).done.failed += batch.segments
        if batch.is_ahead and self._watch is not None:
            self._watch.ended(batch, freed_bytes=0, stored_bytes=0)
        self.troubles.append(
            Trouble(
                phase=batch.kind.value, place_id=batch.place_id, subject=f"{batch.team}/{batch.class_name}", error=error
            )
        )
        if isinstance(error, StorageFull) and batch.tier_to is not None:
            target = self._site.tier_place(batch.tier_to)
            if target is not None:
                self._site.full.add(target.place.id)
        if error.consequence is Consequence.HALT and error.exit_code is not ExitCode.DAMAGE:
            raise error

    def _phase(self, batch: PlannedBatch) -> PhaseTally:
        key = (batch.kind, batch.tier_from, batch.tier_to)
        if key not in self.tallies:
            self.tallies[key] = PhaseTally(began=self._site.monotonic())
        return self.tallies[key]


def _as_ours(error: Exception) -> LifecycleError:
    """What the system says about one batch stays with that batch; a dead worker ends the run."""
    if isinstance(error, LifecycleError):
        return error
    if isinstance(error, OSError):
        return StorageFull(str(error)) if error.errno in (ENOSPC, EDQUOT) else Skipped(str(error))
    return LifecycleError(f"a worker process died: {error}", hint="was it killed for its memory? the next run recovers")
