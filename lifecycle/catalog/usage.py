"""Usage: sums per team, class, tier and day of last write, changed in the transaction that changes the segments.

Written measure: tier ``hot`` sums originals that are present (open, settled, missing) with allocated bytes as stored
bytes; ``warm`` and ``cold`` sum stored copies with their share of the archive. A segment that has both is in two sums.
Never negative: a sum that would be is damage, not a figure to show (bug case B30).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, insert_rows
from lifecycle.errors import Damaged
from lifecycle.model import TierName, Usage

RollupKey = tuple[int, int, str, int]  # team, class, tier, day
_PRESENT: Final = "('open', 'settled', 'missing')"

_RECOUNT: Final = f"""
    SELECT team_id, class_id, 'hot', day, count(*), sum(size_bytes), sum(allocated_bytes)
    FROM segments WHERE original IN {_PRESENT} GROUP BY team_id, class_id, day
    UNION ALL
    SELECT s.team_id, s.class_id, a.tier, s.day, count(*), sum(s.size_bytes), sum(s.stored_bytes)
    FROM segments s JOIN archives a ON a.id = s.archive_id GROUP BY s.team_id, s.class_id, a.tier, s.day"""
_COLUMNS: Final = ("team_id", "class_id", "tier", "day", "segments", "logical_bytes", "stored_bytes")


class RollupDeltas:
    """Changes of the sums that a transaction makes, gathered and then applied once, before its commit."""

    def __init__(self) -> None:
        self._deltas: defaultdict[RollupKey, list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(
        self, team_id: int, class_id: int, tier: TierName | str, day: int, segments: int, logical: int, stored: int
    ) -> None:
        """Plus what comes, minus what goes. Any order."""
        delta = self._deltas[(team_id, class_id, str(tier), day)]
        delta[0] += segments
        delta[1] += logical
        delta[2] += stored

    def apply(self, conn: Connection) -> None:
        """One upsert per key; sums that reach zero go. A second call does nothing. Raises Damaged below zero."""
        rows = [(*key, *delta) for key, delta in self._deltas.items() if any(delta)]
        shrinks = any(min(delta) < 0 for delta in self._deltas.values())
        self._deltas.clear()
        if not rows:
            return
        sql = f"""
            INSERT INTO rollups ({", ".join(_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (team_id, class_id, tier, day) DO UPDATE SET segments = rollups.segments + excluded.segments,
                logical_bytes = rollups.logical_bytes + excluded.logical_bytes,
                stored_bytes = rollups.stored_bytes + excluded.stored_bytes"""
        conn.exec_driver_sql(bind(conn, sql), rows)
        if shrinks:
            _settle(conn)


def _settle(conn: Connection) -> None:
    conn.exec_driver_sql("DELETE FROM rollups WHERE segments = 0 AND logical_bytes = 0 AND stored_bytes = 0")
    low = conn.exec_driver_sql(
        "SELECT tier, day, segments, logical_bytes, stored_bytes FROM rollups "
        "WHERE segments <= 0 OR logical_bytes < 0 OR stored_bytes < 0 LIMIT 1"
    ).fetchone()
    if low is not None:
        raise Damaged(
            f"catalog: the usage of {low[0]}, day {low[1]} would be {low[2]} segments, {low[3]} logical and "
            f"{low[4]} stored bytes",
            hint="nothing was written; lifecycle verify compares the sums with the segments",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """One sum. A dimension that was not asked for is ``None``."""

    team: str | None = None
    class_name: str | None = None
    tier: TierName | None = None
    day: int | None = None
    usage: Usage


_DIMENSIONS: Final = {"team": "t.name", "class_name": "c.name", "tier": "r.tier", "day": "r.day"}


def usage_by(conn: Connection, *dimensions: str) -> list[UsageRow]:
    """Sums by any of ``team``, ``class_name``, ``tier``, ``day``, in that order; by none, the one total.

    Costs what the rollups are, however many segments there are. In order of the dimensions as given.
    """
    columns = ", ".join(_DIMENSIONS[name] for name in dimensions)
    sql = f"""
        SELECT {columns + ", " if columns else ""}sum(r.segments), sum(r.logical_bytes), sum(r.stored_bytes)
        FROM rollups r JOIN teams t ON t.id = r.team_id JOIN classes c ON c.id = r.class_id
        {f"GROUP BY {columns} ORDER BY {columns}" if columns else ""}"""
    return [_usage_row(dimensions, row) for row in conn.exec_driver_sql(sql).fetchall()]


def _usage_row(dimensions: tuple[str, ...], row: Any) -> UsageRow:
    given = dict(zip(dimensions, row, strict=False))
    segments, logical, stored = (int(value or 0) for value in row[len(dimensions) :])
    return UsageRow(
        team=given.get("team"),
        class_name=given.get("class_name"),
        tier=TierName(given["tier"]) if "tier" in given else None,
        day=given.get("day"),
        usage=Usage(segments=segments, logical_bytes=logical, stored_bytes=stored),
    )


def recount(conn: Connection) -> dict[RollupKey, Usage]:
    """The sums computed anew from the segments. Reads every segment; for ``verify`` and tests."""
    return dict(_keyed(conn.exec_driver_sql(_RECOUNT).fetchall()))


def rollups(conn: Connection) -> dict[RollupKey, Usage]:
    """The sums as they are kept."""
    return dict(_keyed(conn.exec_driver_sql(f"SELECT {', '.join(_COLUMNS)} FROM rollups").fetchall()))


def rebuild_rollups(conn: Connection) -> None:
    """Put the recounted sums in the place of the kept ones."""
    rows = [tuple(row) for row in conn.exec_driver_sql(_RECOUNT).fetchall()]
    conn.exec_driver_sql("DELETE FROM rollups")
    insert_rows(conn, "rollups", _COLUMNS, rows)


def _keyed(rows: Iterable[Any]) -> Iterator[tuple[RollupKey, Usage]]:
    for team, class_id, tier, day, segments, logical, stored in rows:
        yield (team, class_id, tier, day), Usage(segments=segments, logical_bytes=logical, stored_bytes=stored)
