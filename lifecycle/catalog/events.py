"""The append-only evidence: what was done and why, one row per batch, chained per place.

digest = BLAKE3(previous digest, canonical JSON of the row). The head of a place's chain stands in its row and in its
marker, so that a removed last event shows as well. Knows the rows of ``events``; never what a kind means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from blake3 import blake3
from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, select_in
from lifecycle.catalog.store import Catalog

_PAGE: Final = 1000
_COLUMNS: Final = "id, place_id, seq, at_ns, run_id, batch_id, kind, body, previous, digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    id: int
    place_id: int
    seq: int  # from 1, without gaps, per place
    at_ns: int
    kind: str
    body: Mapping[str, Any]
    run_id: int | None
    batch_id: int | None
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport:
    place_id: int
    events: int  # that were read and agree
    head: bytes  # digest of the last of them
    broken_seq: int | None  # the first event that does not agree; None: the chain is whole
    problem: str

    @property
    def is_whole(self) -> bool:
        return self.broken_seq is None


def append_event(
    conn: Connection,
    *,
    place_id: int,
    at_ns: int,
    kind: str,
    body: Mapping[str, Any],
    run_id: int | None = None,
    batch_id: int | None = None,
) -> bytes:
    """Add an event to the place's chain, in the caller's transaction; returns the new head.

    ``body`` holds what JSON holds; names of files in the form of ``names.show_name``. Each call adds one event.
    """
    row = conn.exec_driver_sql(
        bind(conn, "SELECT chain_seq, chain_head, uid FROM places WHERE id = ?"), (place_id,)
    ).fetchone()
    if row is None:
        raise LookupError(f"place {place_id} is not in the catalog")
    seq, previous = row[0] + 1, row[1] or first_link(row[2])
    text = canonical_json(body)
    digest = _digest(previous, (seq, at_ns, run_id, batch_id, kind, text))
    sql = f"INSERT INTO events ({_COLUMNS.removeprefix('id, ')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    conn.exec_driver_sql(bind(conn, sql), (place_id, seq, at_ns, run_id, batch_id, kind, text, previous, digest))
    conn.exec_driver_sql(
        bind(conn, "UPDATE places SET chain_seq = ?, chain_head = ? WHERE id = ?"), (seq, digest, place_id)
    )
    return digest


def verify_chain(conn: Connection, place_id: int) -> ChainReport:
    """Recompute the chain of a place. It finds events that were changed, removed, put in or put in another order."""
    place = conn.exec_driver_sql(
        bind(conn, "SELECT chain_seq, chain_head, uid FROM places WHERE id = ?"), (place_id,)
    ).fetchone()
    if place is None:
        raise LookupError(f"place {place_id} is not in the catalog")
    seq, head = 0, first_link(place[2])

    def broken(at: int, problem: str) -> ChainReport:
        return ChainReport(place_id=place_id, events=seq, head=head, broken_seq=at, problem=problem)

    for row in _iter_rows(conn, place_id):
        if row[2] != seq + 1:
            return broken(seq + 1, f"event {seq + 1} is missing, {row[2]} follows {seq}")
        if row[8] != head:
            return broken(row[2], f"event {row[2]} does not follow from event {seq}")
        if row[9] != _digest(head, (row[2], *row[3:8])):
            return broken(row[2], f"event {row[2]} was changed after it was written")
        seq, head = row[2], row[9]
    if seq != place[0] or (seq and head != place[1]):
        return broken(seq + 1, f"the place has {place[0]} events by its own record, the chain ends at {seq}")
    return ChainReport(place_id=place_id, events=seq, head=head, broken_seq=None, problem="")


def first_link(place_uid: str) -> bytes:
    """What the first event of a place follows: no chain can be passed off as another place's."""
    return blake3(b"lifecycle events of " + place_uid.encode()).digest()


def iter_events(
    catalog: Catalog,
    *,
    place_id: int | None = None,
    run_id: int | None = None,
    batch_id: int | None = None,
    after_id: int = 0,
) -> Iterator[Event]:
    """Events in the order they were written, in pages, of a place, a run or a batch where given."""
    given = [("place_id", place_id), ("run_id", run_id), ("batch_id", batch_id)]
    tests = "".join(f" AND {column} = ?" for column, value in given if value is not None)
    values = tuple(value for _, value in given if value is not None)
    sql = f"SELECT {_COLUMNS} FROM events WHERE id > ?{tests} ORDER BY id LIMIT {_PAGE}"
    while True:
        with catalog.read() as conn:
            rows = conn.exec_driver_sql(bind(conn, sql), (after_id, *values)).fetchall()
        yield from map(row_to_event, rows)
        if len(rows) < _PAGE:
            return
        after_id = rows[-1][0]


def row_to_event(row: Sequence[Any]) -> Event:
    return Event(
        id=row[0], place_id=row[1], seq=row[2], at_ns=row[3], run_id=row[4], batch_id=row[5], kind=row[6],
        body=json.loads(row[7]), digest=row[9],
    )  # fmt: skip


def events_of_batches(conn: Connection, batch_ids: Sequence[int]) -> list[Event]:
    """Events of some batches, oldest first."""
    rows = select_in(conn, f"SELECT {_COLUMNS} FROM events WHERE batch_id IN ({{values}})", batch_ids)
    return sorted(map(row_to_event, rows), key=lambda event: event.id)


def canonical_json(body: Mapping[str, Any]) -> str:
    """Sorted keys, no spaces, no NaN: the same content is the same text."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def members_digest(rows: Iterable[tuple[Any, ...]]) -> str:
    """Hex digest over tuples of numbers, text, bytes and None, whatever order they come in. For a batch's event."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    return _digest_of_lines(encode([_plain(value) for value in row]) for row in rows)


def copies_digest(rows: Iterable[tuple[int, bytes]]) -> str:
    """``members_digest`` of segments and their content's digests in hex; quicker, as every stored file comes by."""
    return _digest_of_lines(f'[{segment},"{digest.hex()}"]' for segment, digest in rows)


def _digest_of_lines(lines: Iterable[str]) -> str:
    return blake3("\n".join(sorted(lines)).encode()).hexdigest()


def _plain(value: Any) -> Any:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _digest(previous: bytes, fields: tuple[Any, ...]) -> bytes:
    text = json.dumps(list(fields), separators=(",", ":"), ensure_ascii=False)
    return blake3(previous + text.encode("utf-8", "surrogatepass")).digest()


def _iter_rows(conn: Connection, place_id: int) -> Iterator[Sequence[Any]]:
    sql = f"SELECT {_COLUMNS} FROM events WHERE place_id = ? AND seq > ? ORDER BY seq LIMIT {_PAGE}"
    seq = -(2**62)
    while rows := conn.exec_driver_sql(bind(conn, sql), (place_id, seq)).fetchall():
        yield from rows
        seq = rows[-1][2]
