"""Companions in the journal's transactions: rows of segments that have no original, and what their sources say of them.

A companion has its source's labels, readers and last write, the class that keeps errors, and lies in an archive of its
own kind. It counts as seen when it was made, and it is never looked through itself. Every function takes the connection
of a transaction that somebody else began, and changes rollups by exactly what it changes in segments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection

from lifecycle.catalog.batches import BatchHead, Looked, StoredObject
from lifecycle.catalog.bulk import bind, insert_rows_returning_ids, select_in, update_rows
from lifecycle.catalog.copies import Facts, count_stored, insert_archive, recount_archives
from lifecycle.catalog.events import copies_digest
from lifecycle.catalog.interning import Interner
from lifecycle.catalog.usage import RollupDeltas
from lifecycle.model import Content, Original
from lifecycle.names import companion_name

_SHARED: Final = (
    "name", "place_id", "directory_id", "team_id", "job_id", "labels_id", "layout", "mtime_ns", "ctime_ns", "mode",
    "uid", "gid", "last_write_ns", "day",
)  # fmt: skip
_OWN: Final = (
    "class_id", "rule_id", "content", "inode", "size_bytes", "allocated_bytes", "first_seen_ns",
    "original", "digest", "archive_id", "archive_offset", "stored_bytes", "tier", "companion_of", "error_blocks",
)  # fmt: skip


def keep_companions(
    conn: Connection, head: BatchHead, looked: Looked, interner: Interner, now_ns: int
) -> dict[str, Any] | None:
    """Rows of the companions of a batch, and of their archive; None where nothing was found. What an event says of it.

    A companion that a source had before, of a content that it has no more, is not counted, searched or restored.
    """
    if looked.stored is None or not looked.stored.members:
        return None
    class_id, rule_id = interner.class_(conn, head.intent.errors_class), interner.rule(conn, looked.rule)
    sources = {row[0]: row[1:] for row in map(tuple, select_in(conn, _SOURCES, _ids(looked.stored)))}
    _drop_former(conn, sources)
    team_id, day_at, write_at = (_SHARED.index(name) for name in ("team_id", "day", "last_write_ns"))
    facts = {
        member.segment_id: Facts(
            sources[member.segment_id][team_id], class_id, sources[member.segment_id][day_at], looked.sizes[at], 0,
            member.share_bytes, Original.RELEASED.value, None, head.intent.tier, member.digest,
            sources[member.segment_id][write_at], 0,
        )
        for at, member in enumerate(looked.stored.members)
    }  # fmt: skip
    own_head = replace(head, intent=replace(head.intent, key=head.intent.errors_key))
    archive_id = insert_archive(conn, own_head, looked.stored, facts, now_ns)
    deltas, rows = RollupDeltas(), []
    for at, member in enumerate(looked.stored.members):
        count_stored(deltas, facts[member.segment_id], 1)
        name, *shared = sources[member.segment_id]
        rows.append(
            (
                companion_name(name), *shared, class_id, rule_id, Content.TEXT.value, 0,
                looked.sizes[at], 0, now_ns, Original.RELEASED.value, member.digest, archive_id, member.offset,
                member.share_bytes, head.intent.tier, member.segment_id, 0,
            )
        )  # fmt: skip
    ids = insert_rows_returning_ids(conn, "segments", (*_SHARED, *_OWN), rows)
    _hold_as_sources(conn, ids)
    deltas.apply(conn)
    return {
        "archive": archive_id,
        "key": head.intent.errors_key,
        "class": head.intent.errors_class,
        "segments": len(rows),
        "raw_bytes": looked.stored.raw_bytes,
        "stored_bytes": looked.stored.size_bytes,
        "object_digest": looked.stored.digest.hex(),
        "members_digest": copies_digest((m.segment_id, m.digest) for m in looked.stored.members),
    }


def set_error_blocks(conn: Connection, blocks: Iterable[tuple[int, int]]) -> None:
    """So many error blocks are in each of these segments: they were looked through."""
    update_rows(conn, "segments", ("id",), ("error_blocks",), [(count, segment) for segment, count in blocks])


def forget_error_blocks(conn: Connection, segments: Iterable[int]) -> None:
    """These have another content now, which nobody looked through. What the former one had stays until that is done."""
    rows = [(segment,) for segment in segments]
    if rows:
        sql = "UPDATE segments SET error_blocks = NULL WHERE id = ? AND error_blocks IS NOT NULL"
        conn.exec_driver_sql(bind(conn, sql), rows)


def _ids(stored: StoredObject) -> list[int]:
    return [member.segment_id for member in stored.members]


def _hold_as_sources(conn: Connection, ids: range) -> None:
    """What holds a source holds what is kept of it."""
    sql = (
        "INSERT INTO hold_members (segment_id, hold_id) SELECT s.id, h.hold_id FROM segments s"
        " JOIN hold_members h ON h.segment_id = s.companion_of WHERE s.id >= ? AND s.id < ?"
    )
    conn.exec_driver_sql(bind(conn, sql), (ids.start, ids.stop))


def _drop_former(conn: Connection, sources: Iterable[int]) -> None:
    rows = list(map(tuple, select_in(conn, _FORMER, sources)))
    if not rows:
        return
    deltas = RollupDeltas()
    for _, team_id, class_id, tier, day, size_bytes, share, _ in rows:
        deltas.add(team_id, class_id, tier, day, -1, -size_bytes, -share)
    deltas.apply(conn)
    columns = ("original", "archive_id", "archive_offset", "stored_bytes", "tier", "marked")
    gone = [(Original.REPLACED.value, None, None, 0, None, 0, row[0]) for row in rows]
    update_rows(conn, "segments", ("id",), columns, gone)
    recount_archives(conn, {row[7] for row in rows})
    conn.exec_driver_sql(bind(conn, "DELETE FROM marks WHERE segment_id = ?"), [(row[0],) for row in rows])


_SOURCES: Final = f"SELECT id, {', '.join(_SHARED)} FROM segments WHERE id IN ({{values}})"
_FORMER: Final = (
    "SELECT s.id, s.team_id, s.class_id, a.tier, s.day, s.size_bytes, s.stored_bytes, a.id"
    " FROM segments s JOIN archives a ON a.id = s.archive_id"
    " WHERE s.companion_of IN ({values}) AND s.tier IS NOT NULL"
)
