"""What a segment's copies are, changed inside the journal's transactions: rows and the rollups that sum them.

Every function takes the connection of a transaction that somebody else began, and changes rollups by exactly what it
changes in segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

from lifecycle.catalog.batches import BatchHead, Refused, StoredObject
from lifecycle.catalog.bulk import bind, insert_rows_returning_ids, update_at_once, update_rows
from lifecycle.catalog.usage import RollupDeltas
from lifecycle.model import ArchiveState, Original, TierName

# Of text, as rows have it: asked once for every file that moves.
_PRESENT: Final = frozenset(original.value for original in Original if original.is_present)
COUNTED_HOT: Final = _PRESENT | {Original.MISSING.value}


class Facts(NamedTuple):
    team_id: int
    class_id: int
    day: int
    size_bytes: int
    allocated_bytes: int
    stored_bytes: int
    original: str
    archive_id: int | None
    archive_tier: str | None
    digest: bytes | None
    last_write_ns: int | None
    error_blocks: int | None

    @property
    def stored_tier(self) -> TierName:
        """Where its stored copy is. Raises ValueError without one."""
        return TierName(self.archive_tier or "")


_FACTS: Final = (
    "SELECT s.id, s.team_id, s.class_id, s.day, s.size_bytes, s.allocated_bytes,"
    " s.stored_bytes, s.original, s.archive_id,"
    " a.tier AS archive_tier, s.digest, s.last_write_ns, s.error_blocks"
    " FROM batch_members b JOIN segments s ON s.id = b.segment_id LEFT JOIN archives a ON a.id"
    " = s.archive_id WHERE b.batch_id = ?"
)


def member_facts(conn: Connection, batch_id: int) -> dict[int, Facts]:
    """Of every member of a batch, by segment id."""
    rows = conn.exec_driver_sql(bind(conn, _FACTS), (batch_id,)).fetchall()
    return {row[0]: Facts._make(row[1:]) for row in rows}


def insert_archive(
    conn: Connection, head: BatchHead, stored: StoredObject, facts: Mapping[int, Facts], now_ns: int
) -> int:
    """The row of the object that a batch made; returns its id."""
    members = [facts[m.segment_id] for m in stored.members]
    writes = [fact.last_write_ns for fact in members if fact.last_write_ns is not None] or [now_ns]
    intent = head.intent
    row = {
        "place_id": head.target_place_id,
        "key": intent.key,
        "tier": intent.tier,
        "team_id": members[0].team_id,
        "class_id": members[0].class_id,
        "day": intent.day,
        "gid": intent.gid,
        "mode": intent.mode,
        "form": stored.form,
        "size_bytes": stored.size_bytes,
        "raw_bytes": stored.raw_bytes,
        "members": len(members),
        "live_members": len(members),
        "live_raw_bytes": sum(fact.size_bytes for fact in members),
        "newest_write_ns": max(writes),
        "oldest_write_ns": min(writes),
        "digest": stored.digest,
        "manifest_digest": stored.manifest_digest,
        "zstd_level": intent.zstd_level,
        "state": ArchiveState.LIVE.value,
        "batch_id": head.id,
        "created_ns": now_ns,
        "verified_ns": now_ns,
    }
    return insert_rows_returning_ids(conn, "archives", tuple(row), [tuple(row.values())])[0]


def attach(
    conn: Connection,
    head: BatchHead,
    archive_id: int,
    stored: StoredObject,
    facts: Mapping[int, Facts],
    blocks: Mapping[int, int] = MappingProxyType({}),
) -> None:
    """Members are stored in this archive from now on; one whose original is there is still read from hot. ``blocks``:
    error blocks of those that were looked through on the way."""
    hot, tier = TierName.HOT.value, TierName(head.intent.tier).value
    deltas = RollupDeltas()
    rows = []
    for segment, offset, digest, share in stored.members:
        fact = facts[segment]
        deltas.add(fact.team_id, fact.class_id, tier, fact.day, 1, fact.size_bytes, share)
        found = blocks.get(segment, fact.error_blocks)
        rows.append((digest, archive_id, offset, share, hot if fact.original in _PRESENT else tier, found, segment))
    columns = ("digest", "archive_id", "archive_offset", "stored_bytes", "tier", "error_blocks")
    update_at_once(conn, "segments", "id", columns, rows)
    deltas.apply(conn)


def originals_gone(
    conn: Connection, facts: Mapping[int, Facts], gone: Sequence[tuple[int, Original]], deltas: RollupDeltas
) -> None:
    """Originals left their names; the stored copy is what is read from now on."""
    rows = []
    for segment, original in gone:
        fact = facts[segment]
        count_hot(deltas, fact, -1)
        rows.append((original.value, fact.archive_tier, None, segment))
    update_at_once(conn, "segments", "id", ("original", "tier", "stay_until_ns"), rows)


def drop_surplus(
    conn: Connection, facts: Mapping[int, Facts], refused: Sequence[Refused], deltas: RollupDeltas
) -> None:
    """The file under the name is not what was stored: the stored copy is not counted, searched or restored."""
    rows, left = [], set[int]()
    for refusal in refused:
        fact = facts[refusal.segment_id]
        if fact.archive_id is None:
            continue
        count_stored(deltas, fact, -1)
        if Original(fact.original) is Original.PARKED:  # it was given its name back
            deltas.add(fact.team_id, fact.class_id, TierName.HOT, fact.day, 1, fact.size_bytes, fact.allocated_bytes)
        rows.append((None, None, None, 0, None, Original.OPEN.value, TierName.HOT.value, refusal.segment_id))
        left.add(fact.archive_id)
    columns = ("digest", "archive_id", "archive_offset", "stored_bytes", "error_blocks", "original", "tier")
    update_rows(conn, "segments", ("id",), columns, rows)
    recount_archives(conn, left)
    unsign(conn, [refusal.segment_id for refusal in refused])


def recount_archives(conn: Connection, archives: Iterable[int]) -> None:
    """After members left them: how many are left, their bytes and their last writes, by which the archive moves on. One
    that nobody is left in may go."""
    for archive in sorted(archives):
        conn.execute(_RECOUNT, {"id": archive})


def unsign_batch(conn: Connection, batch_id: int, now_ns: int) -> None:
    """The folders of a batch's segments are compared row by row in the next scan, whatever their signatures say: a tree
    that was swapped meanwhile and came back still has the files that the catalog knows to be gone. They may also be
    empty by now."""
    conn.execute(_UNSIGN_BATCH, {"batch": batch_id, "now": now_ns})


def given_back(conn: Connection, facts: Mapping[int, Facts], segments: Sequence[int], deltas: RollupDeltas) -> None:
    """Originals that have their names again and stay beside their stored copy: the next scan looks what they are."""
    for segment in segments:
        fact = facts[segment]
        if Original(fact.original) is Original.PARKED:
            deltas.add(fact.team_id, fact.class_id, TierName.HOT, fact.day, 1, fact.size_bytes, fact.allocated_bytes)
    rows = [(Original.OPEN.value, TierName.HOT.value, segment) for segment in segments]
    update_rows(conn, "segments", ("id",), ("original", "tier"), rows)
    unsign(conn, segments)


def forget_copies(conn: Connection, facts: Mapping[int, Facts], purged: Sequence[int], deltas: RollupDeltas) -> None:
    """Nothing is left of these segments but their row and their history."""
    for segment in purged:
        fact = facts[segment]
        count_hot(deltas, fact, -1)
        if fact.archive_id is not None:
            count_stored(deltas, fact, -1)
    rows = [(Original.PURGED.value, None, None, 0, None, 0, segment) for segment in purged]
    columns = ("original", "archive_id", "archive_offset", "stored_bytes", "tier", "marked")
    update_rows(conn, "segments", ("id",), columns, rows)


def count_hot(deltas: RollupDeltas, fact: Facts, sign: int) -> None:
    if fact.original in COUNTED_HOT:
        deltas.add(
            fact.team_id,
            fact.class_id,
            TierName.HOT,
            fact.day,
            sign,
            sign * fact.size_bytes,
            sign * fact.allocated_bytes,
        )


def count_stored(deltas: RollupDeltas, fact: Facts, sign: int) -> None:
    deltas.add(
        fact.team_id, fact.class_id, fact.stored_tier, fact.day, sign, sign * fact.size_bytes, sign * fact.stored_bytes
    )


def reopen(conn: Connection, segments: Sequence[int]) -> None:
    """Not settled any more: the next scan looks at the file again, whatever its folder's signature says."""
    for segment in segments:
        conn.execute(_REOPEN, {"id": segment})
    unsign(conn, segments)


def unsign(conn: Connection, segments: Sequence[int]) -> None:
    """The folders of these segments are compared row by row in the next scan."""
    for segment in segments:
        conn.execute(_UNSIGN, {"id": segment})


_LEFT = "FROM segments WHERE archive_id = :id"
_RECOUNT = text(
    f"UPDATE archives SET live_members = (SELECT count(*) {_LEFT}),"
    f" live_raw_bytes = (SELECT coalesce(sum(size_bytes), 0) {_LEFT}),"
    f" newest_write_ns = coalesce((SELECT max(last_write_ns) {_LEFT}), newest_write_ns),"
    f" oldest_write_ns = coalesce((SELECT min(last_write_ns) {_LEFT}), oldest_write_ns),"
    f" state = CASE WHEN EXISTS (SELECT 1 {_LEFT}) THEN state ELSE 'superseded' END WHERE id = :id"
)
_REOPEN = text("UPDATE segments SET original = 'open' WHERE id = :id AND original = 'settled'")
_UNSIGN_BATCH = text(
    "UPDATE directories SET signature = NULL, emptied_ns = :now WHERE id IN"
    " (SELECT s.directory_id FROM batch_members b JOIN segments s ON s.id = b.segment_id WHERE b.batch_id = :batch)"
)
_UNSIGN = text("UPDATE directories SET signature = NULL WHERE id = (SELECT directory_id FROM segments WHERE id = :id)")
