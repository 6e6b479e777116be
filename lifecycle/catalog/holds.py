"""Holds in the catalog: what stands, which segments each covers, how it began and ended.

``hold_members`` has the segments of standing holds and of no others, so that "is it held" is one look by key; only
``end_holds`` takes them out. A member stays one while its hold stands: what was covered once stays covered, whatever
becomes of its labels. Never decides what a hold forbids.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, insert_rows, insert_rows_returning_ids, select_in
from lifecycle.catalog.events import append_event
from lifecycle.catalog.segments import scopes
from lifecycle.catalog.selecting import Condition
from lifecycle.catalog.store import Catalog
from lifecycle.model import Hold, Selector, TierName
from lifecycle.names import parse_name, show_name

_PAGE: Final = 5000
HELD_BY: Final = "(SELECT min(h.hold_id) FROM hold_members h WHERE h.segment_id = s.id)"
IS_HELD: Final = "EXISTS (SELECT 1 FROM hold_members h WHERE h.segment_id = s.id)"
_COLUMNS: Final = (
    "id, selector, reason, owner, source, created_ns, ends_ns, pending, place_id, directory, missing_scans,"
    " released_ns, released_by"
)
_STANDING: Final = "released_ns IS NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """What a standing hold covers that can still be read."""

    segments: int = 0
    logical_bytes: int = 0
    marked: int = 0


def add_hold(conn: Connection, hold: Hold) -> Hold:
    """Write it down, with no members yet; ``apply_holds`` finds them. The hold with its id."""
    row = (
        selector_text(hold.selector), hold.reason, hold.owner, hold.source, hold.created_ns, hold.ends_ns,
        int(hold.pending), hold.place_id, hold.directory,
    )  # fmt: skip
    columns = (
        "selector", "reason", "owner", "source", "created_ns", "ends_ns", "pending", "place_id", "directory",
    )  # fmt: skip
    (number,) = insert_rows_returning_ids(conn, "holds", columns, [row])
    return replace(hold, id=number)


def standing_holds(conn: Connection) -> list[Hold]:
    """In the order of their beginning."""
    return _holds(conn, f"SELECT {_COLUMNS} FROM holds WHERE {_STANDING} ORDER BY id")


def all_holds(conn: Connection) -> list[Hold]:
    """Those that ended, too."""
    return _holds(conn, f"SELECT {_COLUMNS} FROM holds ORDER BY id")


def holds_of(conn: Connection, segment_id: int) -> list[Hold]:
    """The standing holds that cover a segment."""
    sql = (
        f"SELECT {_COLUMNS} FROM holds WHERE id IN (SELECT hold_id FROM hold_members WHERE segment_id = ?) ORDER BY id"
    )
    return _holds(conn, sql, (segment_id,))


def apply_holds(catalog: Catalog, holds: Sequence[Hold]) -> dict[int, int]:
    """Make members of all that each hold selects and does not have yet; how many, by hold.

    A second call finds only what came since. What cannot change its mind (team, job, class, labels, path) is asked of
    new segments alone; whoever changes labels of known ones calls ``look_again`` first. Each page is a transaction.
    """
    found: dict[int, int] = {}
    for hold in holds:
        with catalog.read() as conn:
            last = conn.exec_driver_sql("SELECT coalesce(max(id), 0) FROM segments").scalar_one()
            sql = bind(conn, "SELECT applied_id FROM holds WHERE id = ?")
            after = 0 if changes_with_time(hold.selector) else conn.exec_driver_sql(sql, (hold.id,)).scalar_one()
        found[hold.id] = _apply_below(catalog, hold)
        if after >= last:
            continue
        found[hold.id] += sum(_apply(catalog, hold, condition, after) for condition in _scopes(catalog, hold))
        with catalog.write() as conn:
            conn.exec_driver_sql(bind(conn, "UPDATE holds SET applied_id = ? WHERE id = ?"), (last, hold.id))
    return found


def look_again(conn: Connection) -> None:
    """Labels of known segments changed: the next ``apply_holds`` asks all of them again."""
    conn.exec_driver_sql(f"UPDATE holds SET applied_id = 0 WHERE {_STANDING}")


def changes_with_time(selector: Selector) -> bool:
    """Whether a segment that it does not select today may be selected tomorrow."""
    return bool(selector.tiers or selector.states or selector.since_ns is not None or selector.until_ns is not None)


def _scopes(catalog: Catalog, hold: Hold) -> Iterator[Condition]:
    below = _below(hold)
    for scope in scopes(catalog, hold.selector):
        yield scope if below is None else Condition(f"{scope.sql} AND {below.sql}", (*scope.values, *below.values))


def _apply_below(catalog: Catalog, hold: Hold) -> int:
    """Known segments that were renamed into the folder of a file's hold: those that are there now, few beside all."""
    below = _below(hold)
    if below is None:
        return 0
    present = "s.original IN ('open', 'settled', 'missing')"
    return _apply(catalog, hold, Condition(f"{below.sql} AND {present}", below.values), 0)


def _below(hold: Hold) -> Condition | None:
    """Of a hold that a file asks for: its folder, and what lies below it."""
    if hold.place_id is None or hold.directory is None:
        return None
    if not hold.directory:
        return Condition("s.place_id = ?", (hold.place_id,))
    sql = (
        "s.place_id = ? AND s.directory_id IN (SELECT id FROM directories WHERE place_id = ? AND (path = ?"
        " OR (path > ? AND path < ?)))"
    )
    path = hold.directory
    return Condition(sql, (hold.place_id, hold.place_id, path, path + b"/", path + b"0"))  # "0" follows "/"


def _apply(catalog: Catalog, hold: Hold, condition: Condition, after: int) -> int:
    sql = (
        f"SELECT s.id FROM segments s WHERE s.id > ? AND {condition.sql} AND NOT EXISTS (SELECT 1 FROM hold_members h"
        " WHERE h.segment_id = s.id AND h.hold_id = ?) ORDER BY s.id LIMIT ?"
    )
    total = 0
    while True:
        with catalog.write() as conn:
            rows = conn.exec_driver_sql(bind(conn, sql), (after, *condition.values, hold.id, _PAGE)).fetchall()
            insert_rows(conn, "hold_members", ("segment_id", "hold_id"), [(row[0], hold.id) for row in rows])
        total += len(rows)
        if len(rows) < _PAGE:
            return total
        after = rows[-1][0]


def end_holds(
    conn: Connection, holds: Sequence[Hold], *, by: str, why: str, now_ns: int, run_id: int | None = None
) -> None:
    """They forbid nothing from now on, with an event in the chain of each source that they held something of."""
    for hold in holds:
        record_hold(conn, hold, kind="hold_ended", now_ns=now_ns, run_id=run_id, by=by, why=why)
        conn.exec_driver_sql(bind(conn, "DELETE FROM hold_members WHERE hold_id = ?"), (hold.id,))
        sql = f"UPDATE holds SET released_ns = ?, released_by = ? WHERE id = ? AND {_STANDING}"
        conn.exec_driver_sql(bind(conn, sql), (now_ns, f"{by}: {why}" if why else by, hold.id))


def record_hold(
    conn: Connection, hold: Hold, *, kind: str, now_ns: int, run_id: int | None = None, by: str = "", why: str = ""
) -> None:
    """An event in the chain of each source it covers something of; in that of the first source where that is none."""
    sql = (
        "SELECT DISTINCT s.place_id FROM hold_members h CROSS JOIN segments s ON s.id = h.segment_id"
        " WHERE h.hold_id = ? ORDER BY s.place_id"
    )
    places = [row[0] for row in conn.exec_driver_sql(bind(conn, sql), (hold.id,)).fetchall()]
    if not places:
        sql = "SELECT id FROM places WHERE kind = 'source' ORDER BY id LIMIT 1"
        places = [row[0] for row in conn.exec_driver_sql(sql).fetchall()]
    body = {
        "hold": hold.id, "selector": json.loads(selector_text(hold.selector)), "reason": hold.reason,
        "owner": hold.owner, "source": hold.source, "ends_ns": hold.ends_ns,
        "segments": covered(conn, [hold.id])[hold.id].segments,
    }  # fmt: skip
    if by:
        body |= {"by": by, "why": why}
    for place_id in places:
        append_event(conn, place_id=place_id, at_ns=now_ns, kind=kind, body=body, run_id=run_id)


def renew_hold(conn: Connection, hold: Hold) -> None:
    """Reason, owner, origin and end as they are said today; a file's hold was seen again."""
    sql = "UPDATE holds SET ends_ns = ?, reason = ?, owner = ?, source = ?, pending = ?, missing_scans = 0 WHERE id = ?"
    values = (hold.ends_ns, hold.reason, hold.owner, hold.source, int(hold.pending), hold.id)
    conn.exec_driver_sql(bind(conn, sql), values)


def note_missed(conn: Connection, hold_ids: Sequence[int]) -> None:
    """A complete scan did not see their files."""
    for number in hold_ids:
        sql = "UPDATE holds SET missing_scans = missing_scans + 1 WHERE id = ?"
        conn.exec_driver_sql(bind(conn, sql), (number,))


def covered(conn: Connection, hold_ids: Sequence[int]) -> dict[int, Covered]:
    """By hold: what it covers that can still be read."""
    sql = (
        "SELECT h.hold_id, count(*), sum(s.size_bytes), sum(s.marked) FROM hold_members h"
        " CROSS JOIN segments s ON s.id = h.segment_id WHERE s.tier IS NOT NULL AND h.hold_id IN ({values})"
        " GROUP BY h.hold_id"
    )
    found = {
        row[0]: Covered(segments=row[1], logical_bytes=int(row[2]), marked=int(row[3]))
        for row in map(tuple, select_in(conn, sql, hold_ids))
    }
    return {number: found.get(number, Covered()) for number in hold_ids}


def held_among(conn: Connection, segment_ids: Sequence[int]) -> set[int]:
    """Those of these segments that a standing hold covers."""
    sql = "SELECT segment_id FROM hold_members WHERE segment_id IN ({values})"
    return {row[0] for row in select_in(conn, sql, segment_ids)}


def going_now(conn: Connection, hold_id: int) -> int:
    """How many of its segments a purge is removing whose event came before the hold: those it does not keep."""
    sql = (
        "SELECT count(*) FROM hold_members h JOIN batch_members b ON b.segment_id = h.segment_id"
        " JOIN batches t ON t.id = b.batch_id WHERE h.hold_id = ? AND t.action = 'purge' AND t.state = 'stored'"
    )
    return int(conn.exec_driver_sql(bind(conn, sql), (hold_id,)).scalar_one())


# --- text ---------------------------------------------------------------------------------------------------------


def selector_text(selector: Selector) -> str:
    """JSON of what is given, with the names of the command line; ``parse_selector`` reads it."""
    found: dict[str, Any] = {}
    for name, field in _FIELDS.items():
        value = getattr(selector, field)
        if value:
            found[name] = [str(each) if isinstance(each, str) else each for each in value]
    if selector.paths:
        found["path"] = [show_name(path) for path in selector.paths]
    for name, instant in (("since_ns", selector.since_ns), ("until_ns", selector.until_ns)):
        if instant is not None:
            found[name] = instant
    return json.dumps(found, ensure_ascii=False)


def parse_selector(text: str) -> Selector:
    found = json.loads(text)
    values: dict[str, tuple[Any, ...]] = {f: tuple(found[name]) for name, f in _FIELDS.items() if name in found}
    if "tiers" in values:
        values["tiers"] = tuple(map(TierName, values["tiers"]))
    return Selector(
        **values,
        paths=tuple(parse_name(path) for path in found.get("path", ())),
        since_ns=found.get("since_ns"),
        until_ns=found.get("until_ns"),
    )


_FIELDS: Final = {
    "team": "teams", "job": "jobs", "node": "nodes", "rank": "ranks", "class": "classes", "tier": "tiers",
    "state": "states",
}  # fmt: skip


def _holds(conn: Connection, sql: str, values: tuple[Any, ...] = ()) -> list[Hold]:
    return [
        Hold(
            id=row[0], selector=parse_selector(row[1]), reason=row[2], owner=row[3], source=row[4], created_ns=row[5],
            ends_ns=row[6], pending=bool(row[7]), place_id=row[8], directory=row[9], missing_scans=row[10],
            ended_ns=row[11], ended_by=row[12] or "",
        )
        for row in conn.exec_driver_sql(bind(conn, sql), values).fetchall()
    ]  # fmt: skip
