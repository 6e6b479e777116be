"""Extraction on its own, the parent's side: intent → looked through and stored → recorded. Nothing is removed by it.

A crash leaves the object or its temporary, which recovery removes: nobody counts as looked through before the commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lifecycle.catalog.batches import BatchHead, Intent
from lifecycle.execute.moves import (
    PAUSE_NS,
    companions_target,
    errors_class,
    for_readers,
    looked_through,
    manifest_id,
    original_file,
    refused_of,
    with_companions,
)
from lifecycle.execute.orders import ExtractOrder, ExtractResult, StoredArchive
from lifecycle.execute.site import Site, WorkPlace
from lifecycle.model import Content, Original, Outcome, PlannedBatch, Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """One that was begun."""

    batch: PlannedBatch
    head: BatchHead
    order: ExtractOrder
    sizes: dict[int, int]  # of what is looked through, by segment


def begin_extraction(site: Site, batch: PlannedBatch) -> Extraction | None:
    """Write the intent and make the order. None when nothing is left to look through, or policy asks no more for it;
    the batch is closed then."""
    target = None if batch.tier_to is None else site.tier_place(batch.tier_to)
    if target is None or errors_class(site, batch) is None:
        return None
    return _of_originals(site, batch, target) if batch.members else _of_archives(site, batch, target)


def _of_originals(site: Site, batch: PlannedBatch, target: WorkPlace) -> Extraction | None:
    lease, work = site.lease_of(batch.place_id), site.places[batch.place_id]
    batch = for_readers(site, batch)
    rows = [(m.segment_id, m.identity.inode, m.identity.size_bytes, m.identity.mtime_ns) for m in batch.members]
    head = site.journal.intend(lease, batch, _intent(site, batch), target.place.id, rows)
    ready = [
        m
        for m in site.journal.members(head.id)
        if m.original is Original.SETTLED and m.archive_id is None and m.ctime_ns >= 0 and m.error_blocks is None
    ]
    if not ready:
        site.journal.abandon(lease, head.id, Outcome.KEPT, "changed since the plan")
        return None
    order = ExtractOrder(
        batch_id=head.id, companions=companions_target(site, batch, head, target), root=work.place.root,
        mounts=work.mounts, source=work.place.name, place_uid=work.place.uid, class_name=batch.class_name,
        members=tuple(map(original_file, ready)),
    )  # fmt: skip
    return Extraction(batch=batch, head=head, order=order, sizes={m.segment_id: m.size_bytes for m in ready})


def _of_archives(site: Site, batch: PlannedBatch, target: WorkPlace) -> Extraction | None:
    work = site.places[batch.place_id]
    assert work.spec is not None
    archives = site.journal.live_archives(batch.archive_ids)
    rows = site.extractions.unextracted([archive.id for archive in archives], batch.team, batch.class_name)
    if not rows:
        return None
    here = {row.archive_id for row in rows}
    intent = _intent(site, batch, tuple(archive.id for archive in archives if archive.id in here))
    identities = [(row.id, row.inode, row.size_bytes, row.mtime_ns) for row in rows]
    head = site.journal.intend(site.lease_of(batch.place_id), batch, intent, target.place.id, identities)
    sources = tuple(
        StoredArchive(archive_id=archive.id, tier=work.spec, key=archive.key, size_bytes=archive.size_bytes, live=live)
        for archive in archives
        if (live := tuple((manifest_id(row), row.digest) for row in rows if row.archive_id == archive.id))
    )
    order = ExtractOrder(
        batch_id=head.id, companions=companions_target(site, batch, head, target), class_name=batch.class_name,
        sources=sources, contents=tuple(_compressed(rows)),
    )  # fmt: skip
    return Extraction(batch=batch, head=head, order=order, sizes={row.id: row.size_bytes for row in rows})


def _compressed(rows: list[Any]) -> list[tuple[int, Content]]:
    contents = [(manifest_id(row), Content(row.content)) for row in rows]
    return [each for each in contents if each[1].is_compressed]


def _intent(site: Site, batch: PlannedBatch, archive_ids: tuple[int, ...] = ()) -> Intent:
    assert batch.tier_to is not None
    intent = Intent(
        tier=batch.tier_to.value,
        team=batch.team,
        class_name=batch.class_name,
        day=batch.day,
        gid=batch.gid,
        mode=batch.mode,
        zstd_level=site.policy.tiers[batch.tier_to].zstd_level,
        form="tar",
        archive_ids=archive_ids,
        policy_digest=site.policy.digest,
    )
    return with_companions(site, batch, intent)


def commit_extraction(site: Site, task: Extraction, result: ExtractResult) -> Tally:
    """Record what was looked through and what was found. What could not be read rests for growing pauses."""
    lease = site.lease_of(task.batch.place_id)
    companions = result.companions
    refused = [refused_of(refusal) for refusal in (*result.refused, *companions.failed)]
    looked = looked_through(site, task.batch, companions)
    site.extractions.commit(lease, task.head, looked, refused)
    site.journal.set_aside(lease, refused, PAUSE_NS)
    return Tally(
        segments=len(looked.blocks),
        logical_bytes=sum(task.sizes[segment] for segment in looked.blocks),
        stored_bytes=companions.size_bytes,
        archives=int(companions.size_bytes > 0),
        kept=task.batch.segments - len(looked.blocks),
    )
