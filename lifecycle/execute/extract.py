"""Looking through what was stored, or never will be, without having been looked through: originals that expire where
they lie, and members of archives that were made before policy asked for their errors. Runs inside a worker.

Reads only; what it makes is the archive of companions, see ``companions``.
"""

from __future__ import annotations

import os
from contextlib import closing

from blake3 import blake3

from lifecycle.archive import open_archive
from lifecycle.errors import Damaged, PlaceUnavailable, Skipped
from lifecycle.execute.companions import Beside
from lifecycle.execute.orders import ExtractOrder, ExtractResult, OriginalFile, Refusal, StoredArchive
from lifecycle.execute.originals import Originals, changed, chunks_of, facts_of, refusal_of
from lifecycle.model import Content
from lifecycle.scan.overlap import Overlap
from lifecycle.tiers import open_tier


def run_extract(order: ExtractOrder) -> ExtractResult:
    """Look through all of it and store the companions. An archive whose bytes are not what was recorded is named in the
    result's ``damage``, and nothing is stored. Raises as ``run_pack``, with nothing left behind."""
    with Beside(order.companions) as beside:
        refused = _look_at_originals(order, beside) if order.members else []
        contents = dict(order.contents)
        for source in order.sources:
            try:
                _look_into(source, contents, beside)
            except FileNotFoundError:
                missing = f"archive {source.key}: the object is not in its tier"
                return ExtractResult(batch_id=order.batch_id, companions=Beside.nothing(), damage=missing)
            except Damaged as error:
                return ExtractResult(
                    batch_id=order.batch_id,
                    companions=Beside.nothing(),
                    damage=error.message,
                    damaged_archive=source.archive_id,
                )
        with beside.published():
            pass
        return ExtractResult(batch_id=order.batch_id, companions=beside.result(), refused=tuple(refused))


def _look_at_originals(order: ExtractOrder, beside: Beside) -> list[Refusal]:
    refused = []
    with Originals(order.root, order.mounts) as originals, Overlap() as overlap:
        read = overlap.map(originals.read_same, order.members, weight=lambda member: member.size_bytes)
        for member, content in zip(order.members, read, strict=True):
            if isinstance(content, Refusal):
                refused.append(content)
            elif (trouble := _look_at(order, originals, member, content, beside)) is not None:
                refused.append(trouble)
    return refused


def _look_at(
    order: ExtractOrder, originals: Originals, member: OriginalFile, content: bytes | None, beside: Beside
) -> Refusal | None:
    facts = facts_of(member, order.source, order.place_uid, order.class_name)
    if content is not None:
        beside.look_whole(facts, member.content, content, blake3(content).digest())
        return None
    look, hasher = beside.look(facts, member.content), blake3()
    try:
        fd = originals.open(member)
        try:
            for chunk in chunks_of(fd):
                hasher.update(chunk)
                look.take(chunk)
            trouble = changed(member, fd)
        finally:
            os.close(fd)
    except (OSError, Skipped, PlaceUnavailable) as error:
        return refusal_of(member, error)
    if trouble is None:
        look.end(hasher.digest())
    return trouble


def _look_into(source: StoredArchive, contents: dict[int, Content], beside: Beside) -> None:
    """The members that the order names, each checked against the catalog's digest by the time it has been read."""
    wanted = dict(source.live)
    tier = open_tier(source.tier)
    with closing(tier), open_archive(tier.open(source.key), name=source.key) as archive:
        members = archive.manifest.members
        numbers = [number for number, member in enumerate(members) if member.facts.segment_id in wanted]
        if len(numbers) != len(wanted):
            raise Damaged(f"archive {source.key}: of {len(wanted)} members its manifest has {len(numbers)}")
        for member in archive.iter_members(numbers):
            segment = member.facts.segment_id
            if member.digest != wanted[segment]:
                raise Damaged(f"archive {source.key}: segment {segment} has another digest than is recorded")
            look = beside.look(member.facts, contents.get(segment, Content.TEXT))
            for chunk in member.chunks:
                look.take(chunk)
            look.end(member.digest)
