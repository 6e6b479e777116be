"""Purges and releases of single originals: what is marked and past its grace goes, after the event is durable.

Order: check again → event and intent durable → remove → record. A crash after the event leaves archives
``recorded``; recovery looks whether the object went, and plans the rest anew: it never finishes a deletion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from lifecycle.catalog.batches import BatchHead, Intent, JournalMember, Refused
from lifecycle.catalog.expiry import lacks_extraction
from lifecycle.errors import LifecycleError
from lifecycle.execute.moves import original_file, refused_of
from lifecycle.execute.orders import ReleaseOrder
from lifecycle.execute.release import run_release
from lifecycle.execute.site import Site
from lifecycle.model import Original, Outcome, PlannedBatch, ReasonCode, Tally
from lifecycle.plan.decide import EARLY_AFTER_NS
from lifecycle.policy.rules import ERROR_CLASS
from lifecycle.units import duration_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Doomed:
    archive_id: int
    key: str
    size_bytes: int
    segments: tuple[int, ...]


def purge_archives(site: Site, batch: PlannedBatch) -> Tally:
    """Remove archives whole. One with a member that is held, not marked, in grace, or present in hot again stays."""
    tally = Tally()
    archives = site.journal.live_archives(batch.archive_ids)
    rows = site.journal.archive_members([archive.id for archive in archives])
    doomed, intent, held = [], _intent(site, batch), site.expiry.held([row.id for row in rows])
    keeping = site.policy.keeping_errors(batch.team)
    for archive in archives:
        members = [row for row in rows if row.archive_id == archive.id]
        stays = held | {row.id for row in members if lacks_extraction(row, keeping)}
        if all(row.id not in stays and _may_go(site, intent, row) for row in members):
            segments = tuple(row.id for row in members)
            doomed.append(
                _Doomed(archive_id=archive.id, key=archive.key, size_bytes=archive.size_bytes, segments=segments)
            )
        else:
            tally.kept += len(members)
    if not doomed:
        return tally
    lease = site.lease_of(batch.place_id)
    going = {segment for archive in doomed for segment in archive.segments}
    identities = [(row.id, row.inode, row.size_bytes, row.mtime_ns) for row in rows if row.id in going]
    head = site.journal.intend(
        lease, batch, _intent(site, batch, tuple(d.archive_id for d in doomed)), None, identities
    )
    if not site.expiry.record_purge(lease, head, sorted(going), batch, keeping):
        site.journal.abandon(lease, head.id, Outcome.KEPT, _HELD_SINCE)
        tally.kept += len(going)
        return tally
    removed = [archive for archive in doomed if _removed(site, batch.place_id, archive, tally)]
    purged = [segment for archive in removed for segment in archive.segments]
    site.expiry.close_purge(lease, head, removed_archives=[a.archive_id for a in removed], purged=purged, refused=())
    tally.segments += len(purged)
    tally.logical_bytes += sum(row[2] for row in identities if row[0] in set(purged))
    tally.freed_bytes += sum(archive.size_bytes for archive in removed)
    tally.archives += len(removed)
    return tally


_HELD_SINCE: Final = "a hold began since the plan, or error lines are not kept"


def _may_go(site: Site, intent: Intent, row: Any) -> bool:
    """Its time has come, or that of those that leave early; no original, and nobody asked for it back."""
    if Original(row.original) not in _GONE or (row.stay_until_ns or 0) > site.now_ns:
        return False
    if row.purge_after_ns is not None and (
        row.purge_after_ns <= site.now_ns or row.marked_ns <= intent.marked_until_ns
    ):
        return True
    return row.last_write_ns is not None and row.last_write_ns <= intent.written_until_ns


_GONE: Final = frozenset((Original.RELEASED, Original.REPLACED, Original.LOST, Original.PURGED, Original.UNCLAIMED))


def _removed(site: Site, place_id: int, archive: _Doomed, tally: Tally) -> bool:
    writer = site.places[place_id].writer
    assert writer is not None
    try:
        writer.remove(archive.key, size_bytes=archive.size_bytes)
    except (LifecycleError, OSError) as error:
        tally.failed += len(archive.segments)
        tally.problems.append(f"{archive.key}: {error}")
        return False
    return True  # also when it was not there: what should be gone is gone


def purge_originals(site: Site, batch: PlannedBatch) -> Tally:
    """Remove originals that have no stored copy because policy sends them nowhere else. Conditional as a release is."""
    lease = site.lease_of(batch.place_id)
    rows = [(m.segment_id, m.identity.inode, m.identity.size_bytes, m.identity.mtime_ns) for m in batch.members]
    head = site.journal.intend(lease, batch, _intent(site, batch), None, rows)
    keeping = site.policy.keeping_errors(batch.team)
    due = site.expiry.purgeable(head, site.now_ns, keeping)
    members = [m for m in site.journal.members(head.id) if m.segment_id in due and _is_purgeable(m)]
    if not members:
        site.journal.abandon(lease, head.id, Outcome.KEPT, "not marked, in grace, held, or changed since the plan")
        return Tally(kept=len(rows))
    if not site.expiry.record_purge(lease, head, [m.segment_id for m in members], batch, keeping):
        site.journal.abandon(lease, head.id, Outcome.KEPT, _HELD_SINCE)
        return Tally(kept=len(rows))
    work = site.places[batch.place_id]
    order = ReleaseOrder(
        batch_id=head.id,
        root=work.place.root,
        mounts=work.mounts,
        members=tuple(original_file(m) for m in members),
        park=False,
        rested=True,  # it was marked and in grace for longer than any release waits,
    )
    result = run_release(order)
    return _close(site, head, members, list(result.removed), [refused_of(r) for r in result.refused])


def _is_purgeable(member: JournalMember) -> bool:
    return member.original is Original.SETTLED and member.archive_id is None and member.ctime_ns >= 0


def _close(
    site: Site, head: BatchHead, members: list[JournalMember], removed: list[int], refused: list[Refused]
) -> Tally:
    site.expiry.close_purge(site.lease_of(head.place_id), head, removed_archives=(), purged=removed, refused=refused)
    gone = [member for member in members if member.segment_id in set(removed)]
    tally = Tally(
        segments=len(gone),
        logical_bytes=sum(member.size_bytes for member in gone),
        freed_bytes=sum(member.allocated_bytes for member in gone),
        kept=len(refused),
    )
    tally.problems.extend(r.detail for r in refused)
    return tally


def _intent(site: Site, batch: PlannedBatch, archive_ids: tuple[int, ...] = ()) -> Intent:
    return Intent(
        tier=batch.tier_from.value,
        team=batch.team,
        class_name=batch.class_name,
        archive_ids=archive_ids,
        policy_digest=site.policy.digest,
        marked_until_ns=site.now_ns - EARLY_AFTER_NS if batch.is_ahead else 0,
        written_until_ns=_written_until(site, batch),
    )


def _written_until(site: Site, batch: PlannedBatch) -> int:
    """What may expire early, by today's policy: a plan file's word alone is not enough. 0: nothing."""
    rule = site.policy.rule_for(batch.team, batch.class_name)
    is_early = batch.is_ahead and batch.reason.code is ReasonCode.EXPIRED_EARLY and batch.class_name != ERROR_CLASS
    if not is_early or rule is None or rule.expire_early is None:
        return 0
    return site.now_ns - duration_ns(rule.expire_early)
