"""What a restore asks of the catalog and tells it. Knows rows; never a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, select_in, update_rows
from lifecycle.catalog.events import append_event
from lifecycle.catalog.usage import RollupDeltas
from lifecycle.model import Original, TierName

_COUNTED: Final = (Original.OPEN.value, Original.SETTLED.value, Original.MISSING.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAt:
    """Where a segment's stored copy lies."""

    segment_id: int
    archive_id: int
    place_id: int
    key: str
    form: str
    offset: int
    mode: int  # of the archive, which is never readable by more people than its members were
    gid: int


_STORED_AT: Final = tuple(field.name for field in fields(StoredAt))


def stored_at(conn: Connection, segment_ids: Sequence[int]) -> dict[int, StoredAt]:
    """By segment id; segments without a stored copy are left out. A quarantined archive may still give members."""
    sql = (
        "SELECT s.id, a.id, a.place_id, a.key, a.form, s.archive_offset, a.mode, a.gid FROM segments s JOIN"
        " archives a ON a.id = s.archive_id"
        " WHERE a.state IN ('live', 'quarantined') AND s.id IN ({values})"
    )
    return {
        row[0]: StoredAt(**dict(zip(_STORED_AT, row, strict=True)))
        for row in map(tuple, select_in(conn, sql, segment_ids))
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PutBack:
    """A segment whose file is back under its own name, and what the file is like."""

    segment_id: int
    inode: int
    ctime_ns: int
    allocated_bytes: int


def record_put_back(
    conn: Connection, place_id: int, files: Sequence[PutBack], *, stay_until_ns: int, now_ns: int
) -> None:
    """Restored in place: an original again, left alone until its stay ends, with its stored copy kept as it is."""
    if not files:
        return
    sql = f"SELECT {', '.join(_Row._fields)} FROM segments WHERE id IN ({{values}})"
    facts = {row.id: row for row in map(_Row._make, map(tuple, select_in(conn, sql, [f.segment_id for f in files])))}
    deltas = RollupDeltas()
    rows = []
    for file in files:
        row = facts[file.segment_id]
        _take_over(conn, row, deltas)
        if row.original in _COUNTED:  # it was missing, or put right by somebody meanwhile
            _count(deltas, row, -1, row.allocated_bytes)
        _count(deltas, row, 1, file.allocated_bytes)
        rows.append(
            (
                Original.SETTLED.value,
                TierName.HOT.value,
                file.inode,
                file.ctime_ns,
                file.allocated_bytes,
                stay_until_ns,
                None,
                0,
                file.segment_id,
            )
        )
    columns = (
        "original",
        "tier",
        "inode",
        "ctime_ns",
        "allocated_bytes",
        "stay_until_ns",
        "missing_since_ns",
        "missing_scans",
    )
    update_rows(conn, "segments", ("id",), columns, rows)
    deltas.apply(conn)
    sql = "UPDATE directories SET signature = NULL WHERE id IN (SELECT directory_id FROM segments WHERE id = ?)"
    for file in files:
        conn.exec_driver_sql(sql, (file.segment_id,))
    body = {
        "segments": sorted(f.segment_id for f in files)[:10_000],
        "count": len(files),
        "stay_until_ns": stay_until_ns,
    }
    append_event(conn, place_id=place_id, at_ns=now_ns, kind="restored", body=body)


class _Row(NamedTuple):
    id: int
    directory_id: int
    name: bytes
    team_id: int
    class_id: int
    day: int
    size_bytes: int
    allocated_bytes: int
    original: str
    archive_id: int | None


def _take_over(conn: Connection, row: _Row, deltas: RollupDeltas) -> None:
    """A file that had the name meanwhile was overwritten: its segment is replaced."""
    sql = (
        f"SELECT {', '.join(_Row._fields)} FROM segments WHERE directory_id = ? AND name = ? AND id <> ?"
        " AND original IN ('open', 'settled', 'missing')"
    )
    for other in map(
        _Row._make, conn.exec_driver_sql(bind(conn, sql), (row.directory_id, row.name, row.id)).fetchall()
    ):
        _count(deltas, other, -1, other.allocated_bytes)
        leave = (
            "UPDATE segments SET original = 'replaced', missing_since_ns = NULL, stay_until_ns = NULL,"
            " tier = (SELECT a.tier FROM archives a WHERE a.id = segments.archive_id),"
            " marked = CASE WHEN archive_id IS NULL THEN 0 ELSE marked END WHERE id = ?"
        )
        conn.exec_driver_sql(bind(conn, leave), (other.id,))
        if other.archive_id is None:
            conn.exec_driver_sql(bind(conn, "DELETE FROM marks WHERE segment_id = ?"), (other.id,))


def _count(deltas: RollupDeltas, row: _Row, sign: int, allocated_bytes: int) -> None:
    size, allocated = sign * row.size_bytes, sign * allocated_bytes
    deltas.add(row.team_id, row.class_id, TierName.HOT, row.day, sign, size, allocated)
