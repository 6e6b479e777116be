"""Transitions and merges, the parent's side: intent → stored → committed → released → closed, per batch.

Workers read, write and remove; this module alone writes the journal between their steps. A crash between two of
its calls leaves exactly the journal state of the former one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lifecycle.archive import open_archive
from lifecycle.catalog.batches import BatchHead, Intent, JournalMember, Looked, Refused, StoredMember, StoredObject
from lifecycle.catalog.expiry import lacks_extraction
from lifecycle.errors import Damaged, LifecycleError, PlaceUnavailable
from lifecycle.execute.orders import (
    ArchiveTarget,
    Companions,
    OriginalFile,
    PackOrder,
    PackResult,
    Refusal,
    ReleaseOrder,
    ReleaseResult,
    RepackOrder,
    StoredArchive,
    Trouble,
)
from lifecycle.execute.readers import mode_for_readers
from lifecycle.execute.release import has_content
from lifecycle.execute.site import Site, WorkPlace
from lifecycle.model import ActionKind, Labels, Original, Outcome, PlannedBatch
from lifecycle.scan.handles import Root
from lifecycle.tiers import make_key, open_tier
from lifecycle.units import duration_ns

_NO_LABELS: Final = Labels()
PAUSE_NS: Final = 3600 * 10**9  # a member that failed rests for this, then longer
THREADED_BYTES: Final = 32 * 2**20  # above it one batch may use every core
_MOST_THREADS: Final = 8  # of one archive: on a host of 64 cores each of 64 workers would start 64, with a frame each


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move that was begun: its journal head, the order for a worker and what was refused before it started."""

    batch: PlannedBatch
    head: BatchHead
    order: PackOrder | RepackOrder
    members: dict[int, JournalMember]
    refused: tuple[Refused, ...] = ()
    ids: dict[int, int] = field(default_factory=dict)  # of a repack: segments, by what manifests call them


def begin_move(site: Site, batch: PlannedBatch) -> Move | None:
    """Write the intent and make the order. None when no member is as the plan saw it; the batch is closed then."""
    assert batch.tier_to is not None
    target = site.tier_place(batch.tier_to)
    if target is None:
        return None
    return _begin_pack(site, batch, target) if batch.members else _begin_repack(site, batch, target)


def _begin_pack(site: Site, batch: PlannedBatch, target: WorkPlace) -> Move | None:
    lease = site.lease_of(batch.place_id)
    rows = [(m.segment_id, m.identity.inode, m.identity.size_bytes, m.identity.mtime_ns) for m in batch.members]
    single = len(batch.members) == 1 and batch.members[0].identity.size_bytes > 0
    batch = for_readers(site, batch)
    head = site.journal.intend(lease, batch, _intent(site, batch, single), target.place.id, rows)
    members = {member.segment_id: member for member in site.journal.members(head.id)}
    ready = [m for m in members.values() if m.original is Original.SETTLED and m.archive_id is None and m.ctime_ns >= 0]
    refused = tuple(
        Refused(segment_id=i, outcome=Outcome.KEPT, detail="changed since the plan")
        for i in members.keys() - {m.segment_id for m in ready}
    )
    if not ready:
        site.journal.abandon(lease, head.id, Outcome.KEPT, "changed since the plan")
        return None
    place = site.places[batch.place_id].place
    order = PackOrder(
        batch_id=head.id,
        root=place.root,
        mounts=site.places[batch.place_id].mounts,
        source=place.name,
        place_uid=place.uid,
        target=_target(site, batch, head, target),
        members=tuple(original_file(m) for m in ready),
        single=single,
        companions=companions_target(site, batch, head, target) if head.intent.errors_key else None,
        looked_through=frozenset(m.segment_id for m in ready if m.error_blocks is not None),
    )
    return Move(batch=batch, head=head, order=order, members=members, refused=refused)


def for_readers(site: Site, batch: PlannedBatch) -> PlannedBatch:
    """The batch with the mode of an archive that nobody can read who could not read its members where they lie."""
    work = site.places[batch.place_id]
    folders = {member.path.rpartition(b"/")[0] for member in batch.members}
    with Root(work.place.root, mounts=work.mounts) as root:
        return replace(batch, mode=mode_for_readers(root, sorted(folders), mode=batch.mode, gid=batch.gid))


def _begin_repack(site: Site, batch: PlannedBatch, target: WorkPlace) -> Move | None:
    lease = site.lease_of(batch.place_id)
    source = site.places[batch.place_id]
    assert source.spec is not None
    archives = site.journal.live_archives(batch.archive_ids)
    rows = site.journal.archive_members([archive.id for archive in archives])
    if batch.kind is ActionKind.REWRITE:
        rows = _staying(site, batch, rows)
    if not rows:
        return None
    single = len(rows) == 1 and rows[0].size_bytes >= site.policy.tiers[target.place.tier].merge.below_bytes
    intent = _intent(site, batch, single, tuple(archive.id for archive in archives))
    head = site.journal.intend(
        lease, batch, intent, target.place.id, [(r.id, r.inode, r.size_bytes, r.mtime_ns) for r in rows]
    )
    sources = tuple(
        StoredArchive(
            archive_id=archive.id, tier=source.spec, key=archive.key, size_bytes=archive.size_bytes,
            live=tuple((manifest_id(row), row.digest) for row in rows if row.archive_id == archive.id),
        )
        for archive in archives
    )  # fmt: skip
    order = RepackOrder(batch_id=head.id, target=_target(site, batch, head, target), sources=sources, single=single)
    return Move(batch=batch, head=head, order=order, members={}, ids={manifest_id(row): row.id for row in rows})


def _staying(site: Site, batch: PlannedBatch, rows: list[Any]) -> list[Any]:
    """Members that leave an archive which is rewritten; none where by now all of them go, or none does."""
    keeping = site.policy.keeping_errors(batch.team)
    keep = site.expiry.held([row.id for row in rows]) | {row.id for row in rows if lacks_extraction(row, keeping)}
    stay = [row for row in rows if row.id in keep or (row.purge_after_ns or site.now_ns + 1) > site.now_ns]
    return stay if keep and len(stay) < len(rows) else []


def manifest_id(row: Any) -> int:
    """What an archive's manifest calls a segment: its id, or for a companion, which is made before it has a row, minus
    its source's."""
    return int(row.id if row.companion_of is None else -row.companion_of)


def _intent(site: Site, batch: PlannedBatch, single: bool, archive_ids: tuple[int, ...] = ()) -> Intent:
    assert batch.tier_to is not None
    unique = secrets.token_hex(8)  # names never repeat, also not after a catalog came back from a backup
    intent = Intent(
        key=make_key(batch.team, batch.class_name, batch.day, unique + (".zst" if single else ".tar.zst")),
        temporary=f"{unique}.part",
        tier=batch.tier_to.value,
        team=batch.team,
        class_name=batch.class_name,
        day=batch.day,
        gid=batch.gid,
        mode=batch.mode,
        zstd_level=site.policy.tiers[batch.tier_to].zstd_level,
        form="single" if single else "tar",
        archive_ids=archive_ids,
        policy_digest=site.policy.digest,
    )
    return intent if archive_ids else with_companions(site, batch, intent)


def errors_class(site: Site, batch: PlannedBatch) -> str | None:
    """The class that a batch's error lines are kept as; None where policy keeps none."""
    rule = site.policy.rule_for(batch.team, batch.class_name)
    return None if rule is None else rule.keep_errors_as


def with_companions(site: Site, batch: PlannedBatch, intent: Intent) -> Intent:
    """The intent with the names of the companions that the batch may leave, where policy keeps error lines."""
    kept_as = errors_class(site, batch)
    if kept_as is None:
        return intent
    unique = secrets.token_hex(8)
    key = make_key(batch.team, kept_as, batch.day, unique + ".tar.zst")
    return replace(intent, errors_key=key, errors_temporary=f"{unique}.part", errors_class=kept_as)


def companions_target(site: Site, batch: PlannedBatch, head: BatchHead, target: WorkPlace) -> ArchiveTarget:
    """The archive of a batch's companions: like that of the batch, but of another class."""
    intent, alike = head.intent, _target(site, batch, head, target)
    return replace(
        alike, key=intent.errors_key, temporary=intent.errors_temporary, class_name=intent.errors_class, threads=1
    )


def _target(site: Site, batch: PlannedBatch, head: BatchHead, target: WorkPlace) -> ArchiveTarget:
    assert target.spec is not None
    return ArchiveTarget(
        tier=target.spec,
        key=head.intent.key,
        temporary=head.intent.temporary,
        mode=batch.mode,
        gid=batch.gid,
        zstd_level=head.intent.zstd_level,
        threads=min(site.workers, _MOST_THREADS) if batch.logical_bytes >= THREADED_BYTES else 1,
        team=batch.team,
        class_name=batch.class_name,
        day=batch.day,
        catalog_id=site.catalog_id,
        place_uid=target.place.uid,
        created_ns=site.now_ns,
    )


def original_file(member: JournalMember) -> OriginalFile:
    return OriginalFile._make(member[: len(OriginalFile._fields)])


def commit_move(site: Site, move: Move, result: PackResult) -> ReleaseOrder | None:
    """Record the stored copy. Returns what may be released now; None when nothing is left to do for the batch."""
    lease = site.lease_of(move.batch.place_id)
    refused = (*move.refused, *(refused_of(refusal) for refusal in result.refused))
    if result.size_bytes == 0:
        site.journal.abandon(
            lease, move.head.id, Outcome.KEPT, refused[0].detail if refused else "no member could be stored"
        )
        site.journal.set_aside(lease, refused, PAUSE_NS)
        return None
    stored = stored_object(result, move.ids)
    if isinstance(move.order, RepackOrder):
        site.journal.commit_repacked(lease, move.head, stored, duration_ns(site.policy.grace))
        return None
    looked = None if result.companions is None else looked_through(site, move.batch, result.companions)
    site.journal.commit_packed(lease, move.head, stored, refused, looked)
    unread = result.companions.failed if result.companions is not None else ()
    site.journal.set_aside(lease, (*refused, *(refused_of(refusal, stored=True) for refusal in unread)), PAUSE_NS)
    if move.head.action is ActionKind.COPY:
        return None
    kept = {member.segment_id for member in result.members}
    return release_order(site, move.head, [m for m in move.order.members if m.segment_id in kept])


def looked_through(site: Site, batch: PlannedBatch, companions: Companions) -> Looked:
    """What the journal records of a worker's look for errors."""
    rule = site.policy.rule_for(batch.team, batch.class_name)
    assert rule is not None  # by it the worker was asked to look
    stored = StoredObject(
        size_bytes=companions.size_bytes,
        raw_bytes=companions.raw_bytes,
        digest=companions.digest,
        manifest_digest=companions.manifest_digest,
        form=companions.form,
        members=tuple(StoredMember(m.source_id, m.offset, m.digest, m.share_bytes) for m in companions.members),
    )
    return Looked(
        blocks=dict(companions.blocks),
        rule=rule.at["keep_errors_as"],
        stored=stored if companions.members else None,
        sizes=tuple(m.size_bytes for m in companions.members),
    )


def stored_object(result: PackResult, ids: Mapping[int, int]) -> StoredObject:
    """``ids``: the segments of members that the manifest calls otherwise."""
    return StoredObject(
        size_bytes=result.size_bytes,
        raw_bytes=result.raw_bytes,
        digest=result.digest,
        manifest_digest=result.manifest_digest,
        form=result.form,
        members=tuple(
            StoredMember(ids.get(member, member), offset, digest, share)
            for member, offset, _, digest, share in result.members
        ),
    )


def release_order(
    site: Site,
    head: BatchHead,
    members: Sequence[OriginalFile],
    *,
    finish: bool = False,
    rested: bool = False,
    after_crash: bool = False,
) -> ReleaseOrder:
    work = site.places[head.place_id]
    return ReleaseOrder(
        batch_id=head.id,
        root=work.place.root,
        mounts=work.mounts,
        # Without labels, which a release has no use for and which cost most of what sending an order costs.
        members=tuple(member._replace(labels=_NO_LABELS) for member in members),
        park=not work.sees_writers,
        finish=finish,
        rested=rested,
        after_crash=after_crash,
    )


def require_copies(site: Site, members: Sequence[JournalMember]) -> None:
    """Before originals go after a pause: the stored copies that were committed then must still be there.

    Raises PlaceUnavailable when a tier is not reachable, Damaged when an object is gone or has another size.
    """
    for archive in site.journal.archives({m.archive_id for m in members if m.archive_id is not None}):
        work = site.places.get(archive.place_id)
        if work is None or work.spec is None:
            raise PlaceUnavailable(f"archive {archive.key}: its tier cannot be reached, so its originals stay")
        with closing(open_tier(work.spec)) as tier:
            found = tier.facts(archive.key)
        if found is None or found.size_bytes != archive.size_bytes:
            size = "not there" if found is None else f"{found.size_bytes} bytes, {archive.size_bytes} were stored"
            raise Damaged(f"archive {archive.key} is {size}: its originals stay", hint="is the tier whole?")


def require_readable(site: Site, members: Sequence[JournalMember]) -> None:
    """Before restored originals go for good: the stored copy of each is read and has its digest. Raises as above."""
    require_copies(site, members)
    places = site.journal.stored_at([member.segment_id for member in members])
    for member in members:
        at = places[member.segment_id]
        spec = site.places[at.place_id].spec
        assert spec is not None  # required above
        with closing(open_tier(spec)) as tier, open_archive(tier.open(at.key), name=at.key) as archive:
            for _ in archive.read_at(at.offset, member.size_bytes, digest=member.digest, member=member.name):
                pass


def changed_originals(site: Site, place: WorkPlace, members: Sequence[OriginalFile]) -> list[int]:
    """Restored files whose content is not what is stored: time and size are easily kept by whoever edits."""
    changed = []
    with Root(place.place.root, mounts=place.mounts) as root:
        for member in members:
            try:
                is_same = has_content(member, root.directory(member.directory), whole=True)
            except (OSError, LifecycleError):
                is_same = True  # the release says what became of it
            if not is_same:
                changed.append(member.segment_id)
    return changed


def close_move(site: Site, head: BatchHead, result: ReleaseResult) -> None:
    """Record what the release did. A member that vanished meanwhile keeps its stored copy, the only one left.

    A restored file that was edited, or that somebody has open, is left to the next scan: if its content is another
    one by now it becomes another segment, and the stored copy stays the old one's.
    """
    refused = [refused_of(refusal, stored=True) for refusal in result.refused]
    if head.action is ActionKind.RELEASE:
        refused = [refusal if refusal.keep_copy else replace(refusal, leave=True) for refusal in refused]
    # What could not be looked at may be the better of the two copies, or the worse: both stay.
    refused = [replace(r, leave=True) if r.outcome is Outcome.FAILED and not r.keep_copy else r for r in refused]
    site.journal.close_release(site.lease_of(head.place_id), head, result.removed, result.parked, refused)


def refused_of(refusal: Refusal, *, stored: bool = False) -> Refused:
    """What the journal records of a refusal; ``stored``: a committed copy of exactly the recorded content exists."""
    vanished = refusal.trouble is Trouble.VANISHED
    return Refused(
        segment_id=refusal.segment_id,
        outcome=_OUTCOME_WHEN_VANISHED
        if vanished and stored
        else Outcome.FAILED
        if refusal.trouble is Trouble.UNREADABLE
        else Outcome.KEPT,
        detail=f"{refusal.trouble}: {refusal.detail}",
        keep_copy=stored and refusal.trouble in (Trouble.VANISHED, Trouble.REPLACED, Trouble.IN_THE_WAY),
        reopen=refusal.trouble in (Trouble.CHANGED, Trouble.OPEN, Trouble.VANISHED, Trouble.REPLACED),
    )


_OUTCOME_WHEN_VANISHED: Final = Outcome.RELEASED


def remove_superseded(site: Site, tier_place: WorkPlace) -> int:
    """Remove objects whose members all have a newer committed copy; bytes freed. Safe to repeat at any time.

    Raises the first error after the others were tried; what was removed is recorded either way.
    """
    assert tier_place.writer is not None and tier_place.lease is not None
    removed, freed, failed = [], 0, None
    for archive_id, key, size_bytes in site.journal.superseded(tier_place.place.id):
        try:
            tier_place.writer.remove(key, size_bytes=size_bytes)
        except LifecycleError as error:
            failed = error
            continue
        removed.append(archive_id)
        freed += size_bytes
    if removed:
        site.journal.record_removed(tier_place.lease, removed)
    if failed is not None:
        raise failed
    return freed


def close_repack(site: Site, head: BatchHead) -> int:
    """The older archives of a committed move between tiers go; bytes freed in the tier they were in."""
    freed = remove_superseded(site, site.places[head.place_id])
    site.journal.close(site.lease_of(head.place_id), head.id)
    return freed
