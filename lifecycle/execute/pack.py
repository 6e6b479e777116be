"""Making one archive: read members, write, make durable, verify by reading back, publish. Runs inside a worker.

Nothing is removed here and no catalog is known. What a crash leaves: the temporary, or the published object; both
are named in the batch's intent. A member that is not what its order says is left out and reported; if it was
being streamed when it changed, the whole object is given up, since its header promised more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace

from lifecycle.archive import (
    ArchiveFacts,
    ArchiveWriter,
    MemberFacts,
    SingleWriter,
    open_archive,
    stored_shares,
    verify_archive,
)
from lifecycle.archive.writer import MemberWriter
from lifecycle.errors import Damaged, PlaceUnavailable, Skipped
from lifecycle.execute.companions import Beside, Look, context_of
from lifecycle.execute.orders import (
    ArchiveTarget,
    OriginalFile,
    PackedMember,
    PackOrder,
    PackResult,
    Refusal,
    RepackOrder,
    StoredArchive,
    Trouble,
)
from lifecycle.execute.originals import (
    WHOLE_BYTES,
    Originals,
    changed,
    chunks_of,
    facts_of,
    refusal,
    refusal_of,
)
from lifecycle.ports import ObjectReader, ObjectWriter
from lifecycle.scan.overlap import Overlap
from lifecycle.tiers import open_tier


def run_pack(order: PackOrder) -> PackResult:
    """Store originals. Raises StorageFull, AlreadyExists or Damaged with nothing left behind."""
    refused: list[Refusal] = []

    def fill(writer: MemberWriter, added: list[int]) -> None:
        with Originals(order.root, order.mounts) as originals, Overlap() as overlap:
            read = overlap.map(originals.read, order.members, weight=lambda member: member.size_bytes)
            for member, content in zip(order.members, read, strict=True):
                looks = beside is not None and member.segment_id not in order.looked_through
                trouble = _add_original(writer, originals, order, member, content, beside if looks else None)
                if trouble is None:
                    added.append(member.segment_id)
                else:
                    refused.append(trouble)

    if order.companions is None:
        beside = None
        return _write_object(order.target, order.batch_id, order.single, (), fill, refused)
    with Beside(order.companions) as beside:
        result = _write_object(order.target, order.batch_id, order.single, (), fill, refused, beside)
        return replace(result, companions=beside.result()) if result.size_bytes else result


def run_repack(order: RepackOrder) -> PackResult:
    """Store the live members of older archives anew. A source whose bytes are not what was recorded is named in the
    result's ``damage``, and nothing is stored."""
    damaged, missing = 0, ""

    def fill(writer: MemberWriter, added: list[int]) -> None:
        nonlocal damaged, missing
        for source in order.sources:
            damaged, missing = source.archive_id, source.key
            _copy_members(writer, source, order.target.threads, added)
        damaged = 0

    replaced = tuple(source.key for source in order.sources)
    try:
        return _write_object(order.target, order.batch_id, order.single, replaced, fill, [])
    except FileNotFoundError:
        # Not quarantined: it may come back with its tier's backup, and then the move goes on.
        return replace(_nothing(order.batch_id, ()), damage=f"archive {missing}: the object is not in its tier")
    except Damaged as error:
        if not damaged:  # what we wrote ourselves did not read back
            raise
        return replace(_nothing(order.batch_id, ()), damage=error.message, damaged_archive=damaged)


def _copy_members(writer: MemberWriter, source: StoredArchive, threads: int, added: list[int]) -> None:
    """Each live member once, its content checked against the catalog's digest by the time it has been read."""
    live = dict(source.live)
    tier = open_tier(source.tier)
    with closing(tier), open_archive(tier.open(source.key), name=source.key) as archive:
        members = archive.manifest.members
        numbers = [number for number, member in enumerate(members) if member.facts.segment_id in live]
        if len(numbers) != len(live):
            raise Damaged(
                f"archive {source.key}: {len(live)} live members are recorded, its manifest has {len(numbers)} of them"
            )
        for member in archive.iter_members(numbers, threads=threads if threads > 1 else 0):
            if member.digest != live[member.facts.segment_id]:
                raise Damaged(
                    f"archive {source.key}: segment {member.facts.segment_id} has another digest than is recorded"
                )
            if member.facts.size <= WHOLE_BYTES:
                writer.add_member(member.facts, b"".join(member.chunks))
            else:
                writer.add_stream(member.facts, member.chunks)
            added.append(member.facts.segment_id)


def _write_object(
    target: ArchiveTarget,
    batch_id: int,
    single: bool,
    replaces: tuple[str, ...],
    fill: Callable[[MemberWriter, list[int]], None],
    refused: list[Refusal],
    beside: Beside | None = None,
) -> PackResult:
    tier = open_tier(target.tier)
    out = tier.create(target.key, temporary=target.temporary, mode=target.mode, gid=target.gid)
    added: list[int] = []
    try:
        facts = _fill_and_finish(target, out, single, replaces, fill, added)
        if facts is not None:
            _verify(out.seal(), facts, target.key, target.threads)
            with beside.published() if beside is not None else nullcontext():
                out.publish()
    except _GivenUp as error:
        facts = None
        refused.append(error.refusal)
        refused.extend(Refusal(segment_id=i, trouble=Trouble.GIVEN_UP, detail=error.refusal.detail) for i in added)
    finally:
        out.abort()  # does nothing after publish
        tier.close()
    if facts is None:
        return _nothing(batch_id, tuple(refused))
    shares = stored_shares(facts.size_bytes, facts.sizes)
    members = tuple(
        PackedMember(i, offset, size, digest, share)
        for i, offset, size, digest, share in zip(added, facts.offsets, facts.sizes, facts.digests, shares, strict=True)
    )
    return PackResult(
        batch_id=batch_id, size_bytes=facts.size_bytes, raw_bytes=facts.raw_bytes, digest=facts.digest,
        manifest_digest=facts.manifest_digest, form=facts.form.value, members=members, refused=tuple(refused),
    )  # fmt: skip


def _nothing(batch_id: int, refused: tuple[Refusal, ...]) -> PackResult:
    return PackResult(
        batch_id=batch_id,
        size_bytes=0,
        raw_bytes=0,
        digest=b"",
        manifest_digest=b"",
        form="",
        members=(),
        refused=refused,
    )


class _GivenUp(Exception):
    """A member changed after part of it was in the archive: the object cannot be finished."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def _fill_and_finish(
    target: ArchiveTarget,
    out: ObjectWriter,
    single: bool,
    replaces: tuple[str, ...],
    fill: Callable[[MemberWriter, list[int]], None],
    added: list[int],
) -> ArchiveFacts | None:
    """Facts of the finished object; None when no member could be added."""
    kind, context = SingleWriter if single else ArchiveWriter, context_of(target, replaces=replaces)
    writer: MemberWriter = kind(out, level=target.zstd_level, threads=target.threads, context=context)
    try:
        fill(writer, added)
        return writer.finish() if added else None
    finally:
        writer.close()


def _verify(reader: ObjectReader, facts: ArchiveFacts, name: str, threads: int) -> None:
    try:
        verify_archive(reader, facts, name=name, threads=threads)
    finally:
        reader.close()


def _add_original(
    writer: MemberWriter,
    originals: Originals,
    order: PackOrder,
    member: OriginalFile,
    content: bytes | Refusal | None,
    beside: Beside | None,
) -> Refusal | None:
    if isinstance(content, Refusal):
        return content
    facts = facts_of(member, order.source, order.place_uid, order.target.class_name)
    try:
        if content is None:
            return _add_large(writer, originals, facts, member, beside)
        writer.add_member(facts, content)
    except (OSError, Skipped, PlaceUnavailable) as error:
        return refusal_of(member, error)
    if beside is not None:
        beside.look_whole(facts, member.content, content, writer.last_digest)
    return None


def _add_large(
    writer: MemberWriter, originals: Originals, facts: MemberFacts, member: OriginalFile, beside: Beside | None
) -> Refusal | None:
    look = None if beside is None else beside.look(facts, member.content)
    fd = originals.open(member)
    try:
        trouble = _stream_original(writer, facts, fd, member, look)
    finally:
        os.close(fd)
    if trouble is None and look is not None:
        look.end(writer.last_digest)
    return trouble


def _stream_original(
    writer: MemberWriter, facts: MemberFacts, fd: int, member: OriginalFile, look: Look | None
) -> Refusal | None:
    if (trouble := changed(member, fd)) is not None:
        return trouble
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    try:
        writer.add_stream(facts, chunks_of(fd) if look is None else look.passing(chunks_of(fd)))
    except (Skipped, OSError) as error:
        raise _GivenUp(
            refusal(member, Trouble.CHANGED if isinstance(error, Skipped) else Trouble.UNREADABLE, str(error))
        ) from error
    return None
