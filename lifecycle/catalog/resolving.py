"""A plan file's segments in this catalog. Its ids are those of the private copy that the preview planned on; what a
later scan found first can have another number here, so that place, path and identity decide."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from lifecycle.catalog.bulk import select_in
from lifecycle.catalog.segments import segment_at
from lifecycle.model import Member


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
