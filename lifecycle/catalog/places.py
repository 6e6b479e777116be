"""Places as the catalog knows them: sources per host and tiers, their state, and what scans found there.

Knows the rows of ``places`` and ``findings``. Never opens a place: its marker is the scan's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, insert_rows
from lifecycle.model import PlaceKind, TierName

_COLUMNS: Final = (
    "id, kind, name, host, root, tier, uid, generation, chain_seq, chain_head, state, state_text, "
    "scanned_ns, complete_scan_ns, files_seen"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    id: int
    kind: PlaceKind
    name: str
    host: str  # "" where all hosts share it
    root: str
    tier: TierName
    uid: str  # what the marker holds
    generation: int
    chain_seq: int
    chain_head: bytes | None
    state: str  # ok, unreachable, shrunken, lost
    state_text: str
    scanned_ns: int | None
    complete_scan_ns: int | None
    files_seen: int

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f" on {self.host}" if self.host else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Files that a scan counted and left alone, or could not see: one kind and one detail of one place."""

    kind: str  # foreign, link, special, hard_link, unseen, excluded, ...
    detail: str = ""
    files: int = 0
    size_bytes: int = 0
    example: str = ""
    place_id: int = 0  # filled in when read
    run_id: int = 0


def ensure_place(
    conn: Connection, *, kind: PlaceKind, name: str, host: str, root: str, tier: TierName, uid: str
) -> Place:
    """The place of that kind, name and host, made with ``uid`` when new. A second call gives the same place.

    A changed root or tier is taken over. A known place keeps its own uid: whether the marker at the root has that
    one is for the caller to compare.
    """
    place = find_place(conn, kind, name, host)
    if place is None:
        columns = ("kind", "name", "host", "root", "tier", "uid")
        insert_rows(conn, "places", columns, [(kind.value, name, host, root, tier.value, uid)])
    elif (place.root, place.tier) != (root, tier):
        conn.exec_driver_sql(
            bind(conn, "UPDATE places SET root = ?, tier = ? WHERE id = ?"), (root, tier.value, place.id)
        )
    else:
        return place
    made = find_place(conn, kind, name, host)
    assert made is not None
    return made


def places(conn: Connection) -> list[Place]:
    """All places, in the order they were made."""
    return [_place(row) for row in conn.exec_driver_sql(f"SELECT {_COLUMNS} FROM places ORDER BY id").fetchall()]


def find_place(conn: Connection, kind: PlaceKind, name: str, host: str) -> Place | None:
    sql = f"SELECT {_COLUMNS} FROM places WHERE kind = ? AND name = ? AND host = ?"
    row = conn.exec_driver_sql(bind(conn, sql), (kind.value, name, host)).fetchone()
    return _place(row) if row else None


def find_place_by_uid(conn: Connection, uid: str) -> Place | None:
    """The place whose marker has this id."""
    row = conn.exec_driver_sql(bind(conn, f"SELECT {_COLUMNS} FROM places WHERE uid = ?"), (uid,)).fetchone()
    return _place(row) if row else None


def rename_place(conn: Connection, place_id: int, name: str) -> None:
    """The policy calls it otherwise now; its segments and archives stay as they are."""
    conn.exec_driver_sql(bind(conn, "UPDATE places SET name = ? WHERE id = ?"), (name, place_id))


def set_place_root(conn: Connection, place_id: int, root: str) -> None:
    """It lies elsewhere now; only for a root that carries the place's own marker."""
    conn.exec_driver_sql(bind(conn, "UPDATE places SET root = ? WHERE id = ?"), (root, place_id))


def place_by_id(conn: Connection, place_id: int) -> Place:
    row = conn.exec_driver_sql(bind(conn, f"SELECT {_COLUMNS} FROM places WHERE id = ?"), (place_id,)).fetchone()
    if row is None:
        raise LookupError(f"place {place_id} is not in the catalog")
    return _place(row)


def set_place_state(conn: Connection, place_id: int, state: str, text: str = "") -> None:
    """What is known of the place: ``ok``, ``unreachable``, ``shrunken``, ``lost``, and why in words."""
    conn.exec_driver_sql(
        bind(conn, "UPDATE places SET state = ?, state_text = ? WHERE id = ?"), (state, text, place_id)
    )


def record_scan(conn: Connection, place_id: int, *, ended_ns: int, files_seen: int, complete: bool) -> None:
    """The end of a scan. Only a complete one says how many files the place has."""
    if complete:
        sql, values = "scanned_ns = ?, complete_scan_ns = ?, files_seen = ?", (ended_ns, ended_ns, files_seen, place_id)
        conn.exec_driver_sql(bind(conn, f"UPDATE places SET {sql} WHERE id = ?"), values)
    else:
        conn.exec_driver_sql(bind(conn, "UPDATE places SET scanned_ns = ? WHERE id = ?"), (ended_ns, place_id))


def set_marker_generation(conn: Connection, place_id: int, generation: int) -> None:
    """The generation that the place's marker was just rewritten with."""
    conn.exec_driver_sql(bind(conn, "UPDATE places SET generation = ? WHERE id = ?"), (generation, place_id))


def next_generations(conn: Connection, place_ids: Sequence[int]) -> list[Place]:
    """The places with the generation that their markers get once this transaction is durable, in the order given."""
    for place_id in place_ids:
        set_marker_generation(conn, place_id, place_by_id(conn, place_id).generation + 1)
    return [place_by_id(conn, place_id) for place_id in place_ids]


def record_findings(conn: Connection, place_id: int, run_id: int, found: Sequence[Finding]) -> None:
    """Put one scan's findings in the place of the former scan's. Equal kind and detail are added up."""
    sums: dict[tuple[str, str], tuple[int, int, str]] = {}
    for finding in found:
        files, size, example = sums.get((finding.kind, finding.detail), (0, 0, ""))
        key = (finding.kind, finding.detail)
        sums[key] = (files + finding.files, size + finding.size_bytes, example or finding.example)
    conn.exec_driver_sql(bind(conn, "DELETE FROM findings WHERE place_id = ?"), (place_id,))
    columns = ("place_id", "kind", "detail", "run_id", "files", "size_bytes", "example")
    insert_rows(conn, "findings", columns, [(place_id, *key, run_id, *values) for key, values in sums.items()])


def findings(conn: Connection, place_id: int | None = None) -> list[Finding]:
    """What the last scans found, of one place or all, most files first."""
    where, values = ("WHERE place_id = ?", (place_id,)) if place_id is not None else ("", ())
    sql = f"SELECT place_id, kind, detail, run_id, files, size_bytes, example FROM findings {where}"
    rows = conn.exec_driver_sql(bind(conn, f"{sql} ORDER BY place_id, files DESC, kind, detail"), values).fetchall()
    return [
        Finding(
            place_id=row[0], kind=row[1], detail=row[2], run_id=row[3], files=row[4], size_bytes=row[5], example=row[6]
        )
        for row in rows
    ]


def _place(row: Sequence[Any]) -> Place:
    return Place(
        id=row[0], kind=PlaceKind(row[1]), name=row[2], host=row[3], root=row[4], tier=TierName(row[5]), uid=row[6],
        generation=row[7], chain_seq=row[8], chain_head=row[9], state=row[10], state_text=row[11],
        scanned_ns=row[12], complete_scan_ns=row[13], files_seen=row[14],
    )  # fmt: skip
