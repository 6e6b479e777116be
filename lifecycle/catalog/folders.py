"""Folders that lost originals by our hand: which may be empty by now. Knows rows; never a folder itself.

``emptied_ns`` is set in the transaction that records the removal, so that a folder which was always empty, or which a
user emptied, never has it. Whether a folder is empty, only the folder knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, update_rows
from lifecycle.catalog.events import append_event
from lifecycle.names import show_name

_PRESENT = "original IN ('open', 'settled', 'missing')"
_PARKED = "original IN ('released', 'parked', 'lost', 'replaced', 'purged', 'unclaimed')"  # of the index, word for word
_SHOWN = 100  # paths that an event names


class Emptied(NamedTuple):
    """A folder that the catalog knows nothing in any more."""

    id: int
    path: bytes


def emptied_folders(conn: Connection, place_id: int, until_ns: int, limit: int = 10_000) -> list[Emptied]:
    """Deepest first; those that lost their last known file by ``until_ns``. Costs the folders that lost one."""
    sql = (
        "SELECT d.id, d.path FROM directories d WHERE d.place_id = ? AND d.emptied_ns IS NOT NULL AND d.emptied_ns <= ?"
        f" AND NOT EXISTS (SELECT 1 FROM segments s WHERE s.directory_id = d.id AND s.{_PRESENT})"
        f" AND NOT EXISTS (SELECT 1 FROM segments s WHERE s.directory_id = d.id AND s.{_PARKED}"
        " AND s.original = 'parked') ORDER BY d.path DESC LIMIT ?"
    )
    rows = conn.exec_driver_sql(bind(conn, sql), (place_id, until_ns, limit)).fetchall()
    return [Emptied(row[0], row[1]) for row in rows]


def record_folders(
    conn: Connection,
    place_id: int,
    *,
    removed: Sequence[Emptied],
    left: Sequence[Emptied],
    now_ns: int,
    run_id: int | None,
) -> None:
    """``removed`` are gone, with an event, and the folders above them are looked at in their turn; ``left`` have
    something in them, or are gone by another hand: they are not looked at again until they lose a file once more."""
    update_rows(conn, "directories", ("id",), ("emptied_ns",), [(None, folder.id) for folder in (*removed, *left)])
    columns = ("signature", "files", "emptied_ns")
    update_rows(conn, "directories", ("id",), columns, [(None, 0, None, folder.id) for folder in removed])
    above = {folder.path.rpartition(b"/")[0] for folder in removed} - {b""}
    rows = [(now_ns, place_id, path) for path in sorted(above)]
    update_rows(conn, "directories", ("place_id", "path"), ("emptied_ns",), rows)
    if removed:
        paths = [show_name(folder.path) for folder in removed[:_SHOWN]]
        body = {"folders": len(removed), "paths": paths}
        append_event(conn, place_id=place_id, at_ns=now_ns, kind="folders_removed", body=body, run_id=run_id)
