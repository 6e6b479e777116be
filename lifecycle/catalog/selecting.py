"""A Selector as SQL. Knows the columns it filters by and how each database matches a glob.

All filters are AND-ed; the values of one filter are OR-ed. Names are looked up once, so that the big table is
filtered by numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, chunks
from lifecycle.model import Original, Selector
from lifecycle.names import parse_name, show_name

EVERYTHING: Final = "1 = 1"
_PRESENT: Final = "original IN ('open', 'settled', 'missing')"
_ABSENT: Final = "original IN ('released', 'parked', 'lost', 'replaced', 'purged', 'unclaimed')"
_MANY_JOBS: Final = 1000  # above, one pass over all segments is cheaper than one look per job


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL over the aliases of ``segments.SEGMENT_FROM`` (only ``s`` is used), and its parameters."""

    sql: str
    values: tuple[Any, ...] = ()


def conditions(conn: Connection, selector: Selector) -> Condition | None:
    """All filters but jobs that are few enough for ``job_ids``. None when nothing can match."""
    parts = [
        _by_name(conn, "s.team_id", "teams", selector.teams),
        _by_name(conn, "s.class_id", "classes", selector.classes),
        _by_labels(conn, selector),
        _one_of("s.tier", selector.tiers),
        _by_state(selector.states),
        _by_time(selector),
        _by_path(conn, selector.paths),
    ]
    if selector.jobs and job_ids(conn, selector) is None:
        inner, values = _globs(conn, "name", selector.jobs)
        parts.append(Condition(f"s.job_id IN (SELECT id FROM jobs WHERE {inner})", values))
    if None in parts:
        return None
    given = [part for part in parts if part is not None and part.sql != EVERYTHING]
    if not given:
        return Condition(EVERYTHING)
    return Condition(" AND ".join(part.sql for part in given), tuple(v for part in given for v in part.values))


def job_ids(conn: Connection, selector: Selector) -> list[int] | None:
    """The jobs that the selector names, in order of id; None when it names none, or too many to go one by one."""
    if not selector.jobs:
        return None
    inner, values = _globs(conn, "j.name", selector.jobs)
    if selector.teams:
        teams, team_values = _globs(conn, "t.name", selector.teams)
        inner, values = f"{inner} AND {teams}", values + team_values
    sql = f"SELECT j.id FROM jobs j JOIN teams t ON t.id = j.team_id WHERE {inner} ORDER BY j.id LIMIT ?"
    rows = conn.exec_driver_sql(bind(conn, sql), (*values, _MANY_JOBS + 1)).fetchall()
    return [row[0] for row in rows] if len(rows) <= _MANY_JOBS else None


def _by_name(conn: Connection, column: str, table: str, patterns: Sequence[str]) -> Condition | None:
    if not patterns:
        return Condition(EVERYTHING)
    inner, values = _globs(conn, "name", patterns)
    found = [row[0] for row in conn.exec_driver_sql(bind(conn, f"SELECT id FROM {table} WHERE {inner}"), values)]
    return _one_of(column, found) if found else None


def _by_labels(conn: Connection, selector: Selector) -> Condition:
    tests: list[str] = []
    values: tuple[Any, ...] = ()
    if selector.nodes:
        inner, given = _globs(conn, "node", selector.nodes)
        tests, values = [inner], given
    if selector.ranks:
        ranks = _one_of("rank", selector.ranks)
        tests, values = [*tests, ranks.sql], (*values, *ranks.values)
    if not tests:
        return Condition(EVERYTHING)
    # Correlated, so that it costs one look-up for each candidate and no list of all label sets.
    return Condition(f"EXISTS (SELECT 1 FROM label_sets WHERE id = s.labels_id AND {' AND '.join(tests)})", values)


def _one_of(column: str, values: Sequence[Any]) -> Condition:
    if not values:
        return Condition(EVERYTHING)
    parts = [f"{column} IN ({', '.join('?' * len(chunk))})" for chunk in chunks(values)]
    return Condition(f"({' OR '.join(parts)})", tuple(str(v) if isinstance(v, str) else v for v in values))


def _by_state(states: Sequence[str]) -> Condition:
    originals = [state for state in states if state in set(Original)]
    parts = [_one_of("s.original", originals)] if originals else []
    if "marked" in states:
        parts.append(Condition("s.marked = 1"))
    if "companion" in states:
        parts.append(Condition("(s.companion_of IS NOT NULL AND s.tier IS NOT NULL)"))
    if "unlooked" in states:
        parts.append(Condition("(s.archive_id IS NOT NULL AND s.error_blocks IS NULL)"))
    if "held" in states:
        parts.append(Condition("EXISTS (SELECT 1 FROM hold_members h WHERE h.segment_id = s.id)"))
    if "stored" in states:
        parts.append(Condition("s.archive_id IS NOT NULL"))
    if not parts:
        return Condition(EVERYTHING)
    return Condition(f"({' OR '.join(part.sql for part in parts)})", tuple(v for part in parts for v in part.values))


def _by_time(selector: Selector) -> Condition:
    """By last write: from ``since`` on, and before ``until``. What has no known age is in neither range."""
    tests = [("s.last_write_ns >= ?", selector.since_ns), ("s.last_write_ns < ?", selector.until_ns)]
    given = [(test, value) for test, value in tests if value is not None]
    if not given:
        return Condition(EVERYTHING)
    return Condition(" AND ".join(test for test, _ in given), tuple(value for _, value in given))


def _by_path(conn: Connection, paths: Sequence[bytes]) -> Condition | None:
    """Absolute paths of originals: tried below the root of every place that is above them."""
    if not paths:
        return Condition(EVERYTHING)
    rows = conn.exec_driver_sql("SELECT id, root FROM places WHERE kind = 'source'").fetchall()
    roots = [(row[0], parse_name(row[1]).rstrip(b"/") + b"/") for row in rows]
    found = {
        number
        for path in paths
        for place_id, root in roots
        if path.startswith(root)
        for number in ids_at(conn, place_id, path.removeprefix(root))
    }
    return _one_of("s.id", sorted(found)) if found else None


def ids_at(conn: Connection, place_id: int, path: bytes) -> list[int]:
    """Ids of all segments that ever had this path, relative to the place's root."""
    directory, _, name = path.rpartition(b"/")
    sql = bind(conn, "SELECT id FROM directories WHERE place_id = ? AND path = ?")
    row = conn.exec_driver_sql(sql, (place_id, directory)).fetchone()
    if row is None:
        return []
    # The two conditions are those of two partial indexes, word for word: without them this reads the whole table.
    sql = f"""
        SELECT id FROM segments WHERE directory_id = ? AND name = ? AND {_PRESENT} UNION ALL
        SELECT id FROM segments WHERE directory_id = ? AND name = ? AND {_ABSENT}"""
    return [row[0] for row in conn.exec_driver_sql(bind(conn, sql), (row[0], name, row[0], name))]


def _globs(conn: Connection, column: str, patterns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """``*`` and ``?`` only; everything else stands for itself."""
    if conn.dialect.name == "sqlite":
        tests = [f"{column} GLOB ?" if "*" in p or "?" in p else f"{column} = ?" for p in patterns]
        values = [p.replace("[", "[[]") if "*" in p or "?" in p else p for p in patterns]
    else:
        tests = [f"{column} LIKE ? ESCAPE '!'" for _ in patterns]
        values = [_like(pattern) for pattern in patterns]
    return f"({' OR '.join(tests)})", tuple(values)


def _like(pattern: str) -> str:
    for char in "!%_":
        pattern = pattern.replace(char, "!" + char)
    return pattern.replace("*", "%").replace("?", "_")


def shown_path(root: str, path: bytes) -> str:
    """An original's absolute path as text that ``names.parse_name`` reads back."""
    return f"{root.rstrip('/')}/{show_name(path)}"
