"""A plan file's segments in this catalog. Its ids are those of the private copy that the preview planned on; what a
later scan found first can have another number here, so that place, path and identity decide. And which of them an
earlier run has brought to where the plan wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from lifecycle.catalog.bulk import select_in
from lifecycle.catalog.segments import segment_at
from lifecycle.model import ActionKind, Member, PlannedBatch, TierName

# What a segment looks like once an action was carried out on it. What was marked and is gone by now was marked.
_DONE: Final[Mapping[ActionKind, str]] = {
    ActionKind.MARK: "marked = 1 OR tier IS NULL",
    ActionKind.UNMARK: "marked = 0 AND tier IS NOT NULL",
    ActionKind.RELEASE: "original IN ('released', 'parked')",
    ActionKind.PURGE: "tier IS NULL",
    ActionKind.COPY: "archive_id IS NOT NULL OR tier IS NULL",
    ActionKind.EXTRACT: "error_blocks IS NOT NULL OR tier IS NULL",
}
_UNEXTRACTED: Final = (
    "SELECT DISTINCT s.archive_id FROM segments s JOIN teams t ON t.id = s.team_id JOIN classes c ON c.id = s.class_id"
    " WHERE s.error_blocks IS NULL AND t.name = ? AND c.name = ? AND s.archive_id IN ({values})"
)
_MOVED: Final = "archive_id IS NOT NULL AND original IN ('released', 'parked') AND tier IN ({tiers})"
_TIERS_FROM: Final = {TierName.WARM: "'warm', 'cold'", TierName.COLD: "'cold'"}


def resolve_members(conn: Connection, members: Sequence[Member]) -> tuple[Member, ...]:
    """Members that are still exactly what the plan saw, under their ids here; the others are left out."""
    sql = (
        "SELECT s.id, s.place_id, d.path, s.name, s.inode, s.size_bytes, s.mtime_ns FROM segments s"
        " JOIN directories d ON d.id = s.directory_id WHERE s.id IN ({values})"
    )
    rows = map(tuple, select_in(conn, sql, [member.segment_id for member in members]))
    by_id = {row[0]: (row[1], row[2] + b"/" + row[3] if row[2] else row[3], *row[4:]) for row in rows}
    resolved = []
    for member in members:
        if by_id.get(member.segment_id) == _facts(member):
            resolved.append(member)
        elif (found := _by_path(conn, member)) is not None:
            resolved.append(member._replace(segment_id=found))
    return tuple(resolved)


def _facts(member: Member) -> tuple[object, ...]:
    identity = member.identity
    return (member.place_id, member.path, identity.inode, identity.size_bytes, identity.mtime_ns)


def _by_path(conn: Connection, member: Member) -> int | None:
    found = segment_at(conn, member.place_id, member.path)
    return next((segment.id for segment in found if segment.identity == member.identity), None)


def done_before(conn: Connection, batch: PlannedBatch) -> frozenset[int]:
    """Which of a batch's segments, or of its archives where it names those, need the action no more: it was done.

    The members must have been resolved.
    """
    if not batch.members and batch.kind is ActionKind.EXTRACT:
        pair = (batch.team, batch.class_name)
        still = frozenset(row[0] for row in select_in(conn, _UNEXTRACTED, batch.archive_ids, before=pair))
        return frozenset(batch.archive_ids) - still
    if batch.kind is ActionKind.REWRITE:
        sql = "SELECT DISTINCT replaces_id FROM archive_sources WHERE replaces_id IN ({values})"
        return frozenset(row[0] for row in select_in(conn, sql, batch.archive_ids))
    if not batch.members:
        sql = "SELECT id FROM archives WHERE state IN ('superseded', 'recorded', 'removed') AND id IN ({values})"
        return frozenset(row[0] for row in select_in(conn, sql, batch.archive_ids))
    is_done = _DONE.get(batch.kind) or _MOVED.format(tiers=_TIERS_FROM[batch.tier_to or TierName.COLD])
    sql = f"SELECT id FROM segments WHERE ({is_done}) AND id IN ({{values}})"
    return frozenset(row[0] for row in select_in(conn, sql, [member.segment_id for member in batch.members]))
