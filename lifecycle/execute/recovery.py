"""Putting right what a dead run left half done: the first thing a run does with a place.

By journal state, for moves of originals
- intended, stored: the temporary is swept. If the object is there under its key and every original is still there
  with its recorded identity, the object is removed (undone). If an original is not, the object may be the only copy:
  it is read, verified and committed (adopted).
- committed: releases are finished, those in our folder and those still under their names. Parked members are
  finished once ``release_after`` has passed.
For moves between tiers the "originals" are the older archives. For purges nothing is finished: an object that went is
recorded as gone, one that is there is live again; originals in our folder get their names back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from lifecycle.archive import check_archive, open_archive, stored_shares
from lifecycle.catalog.batches import BatchHead, JournalMember, StoredMember, StoredObject
from lifecycle.catalog.restoring import PutBack
from lifecycle.errors import LifecycleError, PlaceUnavailable, Skipped
from lifecycle.execute.moves import (
    close_move,
    close_repack,
    manifest_id,
    original_file,
    refused_of,
    release_order,
    remove_superseded,
    require_copies,
)
from lifecycle.execute.orders import OriginalFile, ReleaseOrder, ReleaseResult, Trouble
from lifecycle.execute.putback import STAY, iter_dead_restores
from lifecycle.execute.release import (
    batches_in_folder,
    files_in_folder,
    originals_in_place,
    release_folder,
    return_originals,
    run_release,
)
from lifecycle.execute.site import Site, WorkPlace
from lifecycle.model import ActionKind, BatchState, Original, Outcome
from lifecycle.tiers import Tier, open_tier
from lifecycle.units import duration_ns


@dataclass(slots=True)
class Recovered:
    batches: int = 0
    finished: int = 0
    adopted: int = 0
    undone: int = 0
    parked: int = 0

    def add(self, other: Recovered) -> None:
        for name in ("batches", "finished", "adopted", "undone", "parked"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def recover_place(site: Site, work: WorkPlace, *, release_after_ns: int) -> tuple[Recovered, list[LifecycleError]]:
    """Every unfinished batch of one place. An error parks that batch for the next run and stops nothing else."""
    recovered, errors = Recovered(), list[LifecycleError]()
    if work.spec is not None:
        try:
            remove_superseded(site, work)  # of a member that was kept, or of a removal that failed
        except LifecycleError as error:
            errors.append(error)
    else:
        try:
            recovered.add(_recover_restores(site, work))
        except (LifecycleError, OSError) as error:
            errors.append(_told("restore", error))
    unfinished = site.journal.unfinished(work.place.id)
    if work.spec is None:
        errors.extend(_recover_left(site, work, {head.id for head in unfinished}))
    for head in unfinished:
        try:
            recovered.add(_recover(site, head, release_after_ns))
        except (LifecycleError, OSError) as error:
            recovered.parked += 1
            errors.append(_told(f"batch {head.id}", error))
    return recovered, errors


def _told(subject: str, error: LifecycleError | OSError) -> LifecycleError:
    return error if isinstance(error, LifecycleError) else PlaceUnavailable(f"{subject}: {error}")


def _recover_restores(site: Site, work: WorkPlace) -> Recovered:
    """Restores in place that died: the catalog learns of the files that have their names again."""
    recovered = Recovered()
    for dead in iter_dead_restores(work.place.root, mounts=work.mounts):
        files = []
        for segment in site.journal.segments(dead.segment_ids()):
            found = dead.put_back(segment.id, segment.directory, segment.name)
            if found is not None and segment.archive_id is not None:
                files.append(
                    PutBack(
                        segment_id=segment.id,
                        inode=found.st_ino,
                        ctime_ns=found.st_ctime_ns,
                        allocated_bytes=found.st_blocks * 512,
                    )
                )
        site.journal.put_back(site.lease_of(work.place.id), work.place.id, files, duration_ns(STAY))
        dead.clear()
        recovered.add(Recovered(batches=1, finished=min(1, len(files)), undone=0 if files else 1))
    return recovered


def _recover(site: Site, head: BatchHead, release_after_ns: int) -> Recovered:
    if head.action is ActionKind.PURGE:
        return _recover_purge(site, head)
    if head.state is BatchState.COMMITTED or head.action is ActionKind.RELEASE:
        return _finish(site, head, release_after_ns)
    if head.action.moves:
        return _undo_or_adopt(site, head)
    if head.action is ActionKind.EXTRACT:
        return _undo_extraction(site, head)
    # Marks are one transaction after their intent: nothing was done.
    site.journal.abandon(site.lease_of(head.place_id), head.id, Outcome.KEPT, "the run ended before it")
    return Recovered(batches=1, undone=1)


def _recover_left(site: Site, work: WorkPlace, unfinished: set[int]) -> list[LifecycleError]:
    """Originals of closed batches that could not be given their names back: those whose name is free by now get it,
    those that are still what was stored go; of the others every run tells, as long as they are there."""
    errors: list[LifecycleError] = []
    for batch_id in batches_in_folder(work.place.root):
        in_folder = files_in_folder(work.place.root, batch_id)
        if batch_id in unfinished or not in_folder:
            continue
        try:
            members = [m for m in site.journal.members(batch_id) if m.segment_id in in_folder]
            stored = tuple(original_file(m) for m in members if m.archive_id is not None and work.sees_writers)
            others = tuple(original_file(m) for m in members if m.archive_id is None or not work.sees_writers)
            root, mounts = work.place.root, work.mounts
            order = ReleaseOrder(batch_id=batch_id, root=root, mounts=mounts, members=stored, park=False, finish=True)
            results = (run_release(order), return_originals(root, batch_id, others, mounts=mounts))
        except (LifecycleError, OSError) as error:
            errors.append(_told(f"what batch {batch_id} left", error))
            continue
        for refusal in (refusal for result in results for refusal in result.refused):
            if refusal.trouble is Trouble.IN_THE_WAY:
                errors.append(Skipped(f"segment {refusal.segment_id}: {refusal.detail}", hint=_IN_THE_WAY_HINT))
        for stranger in sorted(in_folder - {m.segment_id for m in members}):
            path = f"{release_folder(batch_id).decode()}/{stranger}"
            errors.append(Skipped(f"{path} is of no batch that this catalog knows", hint=_IN_THE_WAY_HINT))
    return errors


_IN_THE_WAY_HINT = "look at it, and move it to where it belongs: nothing is removed from there"


def _undo_or_adopt(site: Site, head: BatchHead) -> Recovered:
    lease = site.lease_of(head.place_id)
    with closing(_open_target(site, head)) as tier:
        _remove_companions(tier, head)
        tier.sweep(head.intent.temporary)
        facts = tier.facts(head.intent.key)
        if facts is None:
            site.journal.abandon(lease, head.id, Outcome.KEPT, "the run ended before anything was stored")
            return Recovered(batches=1, undone=1)
        if _all_there(site, head):
            tier.remove(head.intent.key, size_bytes=facts.size_bytes)
            site.journal.abandon(lease, head.id, Outcome.KEPT, "stored, not committed, originals whole: undone")
            return Recovered(batches=1, undone=1)
        wanted = _without_copy(site, head)  # companions of it are found again in what is adopted
        if not wanted:
            tier.remove(head.intent.key, size_bytes=facts.size_bytes)
            site.journal.abandon(
                lease, head.id, Outcome.KEPT, "stored, not committed, its segments are elsewhere by now"
            )
            return Recovered(batches=1, undone=1)
        _adopt(site, head, tier, wanted)
    return Recovered(batches=1, adopted=1)


def _undo_extraction(site: Site, head: BatchHead) -> Recovered:
    """Nobody counts as looked through before the commit: it is all done again."""
    with closing(_open_target(site, head)) as tier:
        _remove_companions(tier, head)
    site.journal.abandon(site.lease_of(head.place_id), head.id, Outcome.KEPT, "the run ended before it was recorded")
    return Recovered(batches=1, undone=1)


def _open_target(site: Site, head: BatchHead) -> Tier:
    target = site.places.get(head.target_place_id or 0)
    if target is None or target.spec is None or target.lease is None:
        raise PlaceUnavailable(f"batch {head.id}: its target tier {head.intent.tier} cannot be reached")
    return open_tier(target.spec)


def _remove_companions(tier: Tier, head: BatchHead) -> None:
    """Of a batch that was not committed: made out of what is still there, or lies in what is adopted."""
    intent = head.intent
    if intent.errors_key:
        tier.sweep(intent.errors_temporary)
        facts = tier.facts(intent.errors_key)
        if facts is not None:
            tier.remove(intent.errors_key, size_bytes=facts.size_bytes)


def _without_copy(site: Site, head: BatchHead) -> dict[int, int]:
    """Members whose only stored copy the object may be, by what its manifest calls them: while its tier could not be
    reached, some found another."""
    here = set(head.intent.archive_ids)
    members = site.journal.members(head.id)
    if here:
        rows = site.journal.archive_members(here)
        return {manifest_id(row): row.id for row in rows if row.id in {m.segment_id for m in members}}
    found = (m.segment_id for m in members if m.archive_id is None and m.original is not Original.PURGED)
    return {segment: segment for segment in found}


def _all_there(site: Site, head: BatchHead) -> bool:
    """Whether undoing loses nothing: every original, or every archive read from, is what the intent recorded."""
    source = site.places[head.place_id]
    if source.spec is not None:
        archives = site.journal.live_archives(head.intent.archive_ids)
        with closing(open_tier(source.spec)) as tier:
            found = [tier.facts(archive.key) for archive in archives]
        sizes = [archive.size_bytes for archive in archives]
        return len(archives) == len(head.intent.archive_ids) and [f and f.size_bytes for f in found] == sizes
    members = tuple(original_file(member) for member in site.journal.members(head.id))
    same, _ = originals_in_place(source.place.root, members, mounts=source.mounts)
    return len(same) == len(members)


def _adopt(site: Site, head: BatchHead, tier: Tier, known: Mapping[int, int]) -> None:
    """Commit an object that may be the only copy, from its own manifest, after all of it has been read and checked."""
    with closing(tier.open(head.intent.key)) as reader:
        digest = check_archive(reader, name=head.intent.key)
        archive = open_archive(reader, name=head.intent.key, owns_reader=False)
        manifest = archive.manifest
        shares = stored_shares(reader.size_bytes, [m.facts.size for m in manifest.members])
        stored = StoredObject(
            size_bytes=reader.size_bytes, raw_bytes=sum(m.facts.size for m in manifest.members), digest=digest,
            manifest_digest=manifest.digest, form=manifest.form.value,
            members=tuple(
                StoredMember(known[m.facts.segment_id], offset=m.offset, digest=m.digest, share_bytes=share)
                for m, share in zip(manifest.members, shares, strict=True) if m.facts.segment_id in known
            ),
        )  # fmt: skip
    lease = site.lease_of(head.place_id)
    if head.intent.archive_ids:
        site.journal.commit_repacked(lease, head, stored, duration_ns(site.policy.grace))
        close_repack(site, head)
    else:
        site.journal.commit_packed(lease, head, stored, ())
        if head.action is ActionKind.COPY:
            return  # its originals stay; those that are gone the scan will miss
        _finish(site, replace(head, state=BatchState.COMMITTED), 0)


def _finish(site: Site, head: BatchHead, release_after_ns: int) -> Recovered:
    work = site.places[head.place_id]
    if work.spec is not None:
        close_repack(site, head)
        return Recovered(batches=1, finished=1)
    members = [m for m in site.journal.members(head.id) if m.archive_id is not None and _unfinished(m)]
    in_folder = files_in_folder(work.place.root, head.id)
    rests = [m for m in members if _rests(m, in_folder, sees_writers=work.sees_writers)]
    if site.now_ns - head.created_ns >= release_after_ns:
        rests = []
    waiting = {m.segment_id for m in rests}
    todo = [m for m in members if m.segment_id not in waiting]
    if not todo and rests and all(m.outcome == Outcome.PARKED for m in rests):
        return Recovered()  # nothing to put right: it waits as it should
    require_copies(site, todo)
    rested = site.now_ns - head.created_ns >= release_after_ns
    results = [
        run_release(release_order(site, head, _files(todo, in_folder), finish=True, rested=rested)),
        run_release(release_order(site, head, _files(todo, in_folder, outside=True), after_crash=True)),
    ]
    merged = ReleaseResult(
        batch_id=head.id,
        removed=tuple(i for result in results for i in result.removed),
        parked=(*(i for result in results for i in result.parked), *waiting),
        refused=tuple(refusal for result in results for refusal in result.refused),
    )
    close_move(site, head, merged)
    return Recovered(batches=1, finished=1)


def _unfinished(member: JournalMember) -> bool:
    return member.outcome in (None, Outcome.PARKED)


def _rests(member: JournalMember, in_folder: set[int], *, sees_writers: bool) -> bool:
    """Whether its time in our folder counts: also when a crash came between the rename and the word "parked"."""
    return member.outcome == Outcome.PARKED or (member.segment_id in in_folder and not sees_writers)


def _files(members: list[JournalMember], in_folder: set[int], *, outside: bool = False) -> list[OriginalFile]:
    return [original_file(member) for member in members if (member.segment_id in in_folder) is not outside]


def _recover_purge(site: Site, head: BatchHead) -> Recovered:
    lease = site.lease_of(head.place_id)
    work = site.places[head.place_id]
    if work.spec is None:
        members = tuple(original_file(member) for member in site.journal.members(head.id))
        result = return_originals(work.place.root, head.id, members, mounts=work.mounts)
        due = site.expiry.purgeable(head, site.now_ns)  # a kept member that vanished was not purged by us
        gone = [i for i in result.removed if i in due] if head.state is BatchState.STORED else ()
        refused = [refused_of(refusal) for refusal in result.refused]
        site.expiry.close_purge(lease, head, removed_archives=(), purged=gone, refused=refused)
        return Recovered(batches=1, undone=1)
    rows = site.journal.archive_members(head.intent.archive_ids)
    removed = []
    with closing(open_tier(work.spec)) as tier:
        for archive in site.journal.recorded_archives(head.intent.archive_ids):
            if tier.facts(archive.key) is None:
                removed.append(archive.id)
    purged = [row.id for row in rows if row.archive_id in removed]
    site.expiry.close_purge(lease, head, removed_archives=removed, purged=purged, refused=())
    return Recovered(batches=1, finished=len(removed) and 1, undone=0 if removed else 1)
