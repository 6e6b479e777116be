"""What only reports ask: counts by one dimension, counters of the one screen, the newest space samples.

Every query of the one screen goes through an index or a small table: its time must not grow with the catalog.
``group_segments`` is the exception; it costs what its selector selects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, select_in
from lifecycle.catalog.places import places
from lifecycle.catalog.runs import SpaceSample, latest_space
from lifecycle.catalog.selecting import conditions, job_ids
from lifecycle.model import PlaceKind, Selector, TierName
from lifecycle.plan.pressure import FileSystem

# What segments can be grouped by: the columns, and the joins these need. Days and states are of the segment itself.
_GROUPS: Final = {
    "team": ("t.name", ""),
    "job": ("t.name, j.name", ""),
    "class": ("c.name", ""),
    "tier": ("coalesce(s.tier, 'gone')", ""),
    "state": ("s.original", ""),
    "day": ("s.day", ""),
    "node": ("l.node", "JOIN label_sets l ON l.id = s.labels_id"),
    "rank": ("l.rank", "JOIN label_sets l ON l.id = s.labels_id"),
}
DIMENSIONS: Final = tuple(_GROUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentGroup:
    key: tuple[str | int | None, ...]  # (team, job) for "job", one value for the others
    segments: int
    logical_bytes: int
    stored_bytes: int  # allocated where the original is read from, the archive's share elsewhere
    open_bytes: int
    newest_write_ns: int | None
    oldest_write_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogCounters:
    marked: int
    held: int
    age_unknown: int
    missing: int
    open_segments: int
    open_bytes: int
    quarantined_archives: int
    unfinished_batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The file system under a place as its newest sample says."""

    place_id: int
    tier: TierName
    at_ns: int
    total_bytes: int
    free_bytes: int


def group_segments(conn: Connection, selector: Selector, dimension: str) -> list[SegmentGroup]:
    """Sums by one of ``DIMENSIONS``, largest first, days in order. What is gone counts only if a state asks for it."""
    columns, join = _GROUPS[dimension]
    condition = conditions(conn, selector)
    if condition is None:
        return []
    where, values = condition.sql, condition.values
    if (jobs := job_ids(conn, selector)) is not None:
        where, values = f"s.job_id IN ({', '.join('?' * len(jobs)) or 'NULL'}) AND {where}", (*jobs, *values)
    if not selector.states:
        where += " AND s.tier IS NOT NULL"
    order = columns if dimension == "day" else f"3 DESC, 1 DESC, {columns}"
    sql = f"""
        SELECT count(*), sum(s.size_bytes),
            sum(CASE WHEN s.tier = 'hot' THEN s.allocated_bytes ELSE s.stored_bytes END),
            sum(CASE WHEN s.original = 'open' THEN s.allocated_bytes ELSE 0 END), max(s.last_write_ns),
            min(s.last_write_ns), {columns}
        FROM segments s JOIN teams t ON t.id = s.team_id JOIN classes c ON c.id = s.class_id
            JOIN jobs j ON j.id = s.job_id {join}
        WHERE {where} GROUP BY {columns} ORDER BY {order}"""
    return [
        SegmentGroup(
            segments=row[0], logical_bytes=int(row[1]), stored_bytes=int(row[2]), open_bytes=int(row[3]),
            newest_write_ns=row[4], oldest_write_ns=row[5], key=tuple(row[6:]),
        )
        for row in conn.exec_driver_sql(bind(conn, sql), values).fetchall()
    ]  # fmt: skip


def count_for_audit(conn: Connection) -> CatalogCounters:
    """The counters under the tier table, of the whole catalog."""
    opened = conn.exec_driver_sql(
        "SELECT count(*), coalesce(sum(allocated_bytes), 0) FROM segments WHERE original = 'open'"
    ).one()
    return CatalogCounters(
        marked=_count(conn, "SELECT count(*) FROM marks"),
        held=_count(conn, "SELECT count(*) FROM holds WHERE released_ns IS NULL"),
        age_unknown=_age_unknown(conn),
        missing=_count(conn, "SELECT count(*) FROM segments WHERE original = 'missing'"),
        open_segments=int(opened[0]),
        open_bytes=int(opened[1]),
        quarantined_archives=_count(conn, "SELECT count(*) FROM archives WHERE state = 'quarantined'"),
        unfinished_batches=_count(
            conn, "SELECT count(*) FROM batches WHERE state IN ('intended', 'stored', 'committed')"
        ),
    )


def open_bytes_by_team(conn: Connection) -> dict[str, int]:
    """Allocated bytes of originals that are still written, or not quiet for long enough: relief cannot reach them."""
    sql = (
        "SELECT t.name, sum(s.allocated_bytes) FROM segments s JOIN teams t ON t.id = s.team_id"
        " WHERE s.original = 'open' GROUP BY t.name"
    )
    return {row[0]: int(row[1]) for row in conn.exec_driver_sql(sql).fetchall()}


def _age_unknown(conn: Connection) -> int:
    """By team and class, as the index has them: one look-up for each pair that rollups know."""
    pairs = conn.exec_driver_sql("SELECT DISTINCT team_id, class_id FROM rollups").fetchall()
    sql = bind(
        conn,
        "SELECT count(*) FROM segments WHERE team_id = ? AND class_id = ? AND last_write_ns IS NULL "
        "AND marked = 0 AND tier IS NOT NULL",
    )
    return sum(int(conn.exec_driver_sql(sql, tuple(pair)).scalar_one()) for pair in pairs)


def count_archives(conn: Connection, *, teams: Sequence[str] = (), classes: Sequence[str] = ()) -> dict[TierName, int]:
    """Objects that hold segments, damaged ones too, by tier. ``teams`` and ``classes`` are exact names; none: all."""
    parts, values = ["a.state IN ('live', 'quarantined')"], list[str]()
    for column, names in (("t.name", teams), ("c.name", classes)):
        if names:
            parts.append(f"{column} IN ({', '.join('?' * len(names))})")
            values.extend(names)
    joins = "JOIN teams t ON t.id = a.team_id JOIN classes c ON c.id = a.class_id" if values else ""
    sql = f"SELECT a.tier, count(*) FROM archives a {joins} WHERE {' AND '.join(parts)} GROUP BY a.tier"
    return {TierName(row[0]): int(row[1]) for row in conn.exec_driver_sql(bind(conn, sql), tuple(values)).fetchall()}


def kept_beyond(conn: Connection, now_ns: int) -> list[tuple[str, str, str, bool, int, int, int]]:
    """(team, class, tier, whether a held one keeps it, archives, segments, stored bytes) of marked segments whose grace
    is over and whose archive has members that do not go. Costs the marks whose grace is over."""
    stays = (
        "SELECT 1 FROM segments o LEFT JOIN marks om ON om.segment_id = o.id WHERE o.archive_id = s.archive_id"
        " AND (om.segment_id IS NULL OR om.purge_after_ns > ?)"
    )
    held = "SELECT 1 FROM segments o JOIN hold_members h ON h.segment_id = o.id WHERE o.archive_id = s.archive_id"
    sql = (
        f"SELECT team, class, tier, is_held, count(DISTINCT archive_id), count(*), sum(stored_bytes) FROM"
        f" (SELECT t.name AS team, c.name AS class, a.tier AS tier, s.archive_id, s.stored_bytes,"
        f" EXISTS ({held}) AS is_held FROM marks m CROSS JOIN segments s ON s.id = m.segment_id"
        " CROSS JOIN archives a ON a.id = s.archive_id CROSS JOIN teams t ON t.id = s.team_id"
        f" CROSS JOIN classes c ON c.id = s.class_id WHERE m.purge_after_ns <= ? AND EXISTS ({stays})) AS kept"
        " GROUP BY team, class, tier, is_held ORDER BY sum(stored_bytes) DESC, team, class, tier"
    )
    rows = conn.exec_driver_sql(bind(conn, sql), (now_ns, now_ns)).fetchall()
    return [(row[0], row[1], row[2], bool(row[3]), row[4], row[5], int(row[6] or 0)) for row in map(tuple, rows)]


def jobs_in_hot(conn: Connection) -> dict[str, int]:
    """How many jobs have files in hot, by team. Reads the originals that are there, and no others."""
    sql = """
        SELECT t.name, count(DISTINCT s.job_id) FROM segments s JOIN teams t ON t.id = s.team_id
        WHERE s.original IN ('open', 'settled', 'missing') GROUP BY t.name"""
    return {row[0]: int(row[1]) for row in conn.exec_driver_sql(sql).fetchall()}


@dataclass(frozen=True, slots=True)
class Unlooked:
    """Stored segments of one team and class that nobody has looked through for errors."""

    segments: int = 0
    logical_bytes: int = 0
    unreadable: int = 0  # tried, and could not be read as text


@dataclass(frozen=True, slots=True)
class Companions:
    """What is kept of the errors of one team's class and can be read."""

    segments: int = 0
    error_blocks: int = 0
    stored_bytes: int = 0


def count_unlooked(conn: Connection, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Unlooked]:
    """Of these teams and classes. Costs what is waiting."""
    sql = bind(
        conn,
        "SELECT count(*), coalesce(sum(s.size_bytes), 0), coalesce(sum(CASE WHEN s.problems > 0 THEN 1 ELSE 0 END), 0)"
        " FROM segments s WHERE s.archive_id IS NOT NULL AND s.error_blocks IS NULL"
        " AND s.team_id = (SELECT id FROM teams WHERE name = ?)"
        " AND s.class_id = (SELECT id FROM classes WHERE name = ?)",
    )
    found = {pair: conn.exec_driver_sql(sql, pair).one() for pair in pairs}
    return {pair: Unlooked(int(row[0]), int(row[1]), int(row[2])) for pair, row in found.items() if row[0]}


def count_companions(conn: Connection) -> dict[tuple[str, str], Companions]:
    """By team and class of their sources. Reads every companion that there is."""
    sql = """
        SELECT t.name, c.name, count(*), sum(s.error_blocks), sum(k.stored_bytes)
        FROM segments k JOIN segments s ON s.id = k.companion_of
            JOIN teams t ON t.id = s.team_id JOIN classes c ON c.id = s.class_id
        WHERE k.companion_of IS NOT NULL AND k.tier IS NOT NULL GROUP BY t.name, c.name"""
    rows = conn.exec_driver_sql(sql).fetchall()
    return {(row[0], row[1]): Companions(row[2], int(row[3] or 0), int(row[4])) for row in rows}


def fullest_folders(conn: Connection, limit: int) -> list[tuple[str, bytes, int]]:
    """Place, path and files of the folders that had most files of ours when last compared."""
    sql = """
        SELECT p.name, d.path, d.files FROM directories d JOIN places p ON p.id = d.place_id
        WHERE d.files > 0 ORDER BY d.files DESC, d.id LIMIT ?"""
    return [(row[0], row[1], row[2]) for row in conn.exec_driver_sql(bind(conn, sql), (limit,)).fetchall()]


def newest_space(conn: Connection) -> list[Space]:
    """One row a place, of the newest run that measured it; a place not measured for many runs is left out."""
    sql = """
        SELECT p.id, p.tier, s.at_ns, s.total_bytes, s.free_bytes
        FROM (SELECT * FROM space_samples ORDER BY run_id DESC, place_id LIMIT 2000) s
            JOIN places p ON p.id = s.place_id
        ORDER BY s.run_id DESC, p.id"""
    newest: dict[int, Space] = {}
    for row in conn.exec_driver_sql(sql).fetchall():
        space = Space(place_id=row[0], tier=TierName(row[1]), at_ns=row[2], total_bytes=row[3], free_bytes=row[4])
        newest.setdefault(space.place_id, space)
    return list(newest.values())


def sampled_file_systems(conn: Connection, wanted: Collection[tuple[PlaceKind, str]]) -> tuple[FileSystem, ...]:
    """As they were at the end of the last run that measured them; ``wanted``: places by kind and name."""
    known = {place.id: place for place in places(conn) if (place.kind, place.name) in wanted}
    groups: dict[str, list[SpaceSample]] = defaultdict(list)
    for sample in latest_space(conn):
        if sample.place_id in known:
            groups[sample.file_system or f"{known[sample.place_id].tier} {known[sample.place_id].name}"].append(sample)
    found = []
    for name, samples in groups.items():
        newest = max(samples, key=lambda sample: sample.at_ns)
        tiers = sorted({known[sample.place_id].tier for sample in samples}, key=lambda tier: tier.warmth)
        found.append(
            FileSystem(
                name=name,
                tiers=tuple(tiers),
                place_ids=tuple(sample.place_id for sample in samples),
                total_bytes=newest.total_bytes,
                free_bytes=newest.free_bytes,
                total_inodes=newest.total_inodes,
                free_inodes=newest.free_inodes,
            )
        )
    return tuple(sorted(found, key=lambda each: (each.tiers[0].warmth, each.name)))


def count_problems(conn: Connection, run_ids: Sequence[int]) -> dict[int, int]:
    """Problems by run; a run without any is left out."""
    rows = select_in(conn, "SELECT run_id, count(*) FROM problems WHERE run_id IN ({values}) GROUP BY run_id", run_ids)
    return {int(run_id): int(count) for run_id, count in map(tuple, rows)}


def _count(conn: Connection, sql: str) -> int:
    return int(conn.exec_driver_sql(sql).scalar_one())
