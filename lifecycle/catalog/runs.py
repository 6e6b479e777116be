"""Runs: begun, ended, what went wrong in them, and the samples of usage and space that each one leaves.

Knows ``runs``, ``problems``, ``policies`` and the two sample tables. Never what a run does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, insert_rows
from lifecycle.catalog.events import canonical_json
from lifecycle.errors import Consequence
from lifecycle.model import TierName

_INTERVALS: Final = 20  # runs looked at for how often there is one
_COLUMNS: Final = "id, command, host, pid, now_ns, started_ns, ended_ns, policy_digest, exit_code, summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    id: int
    command: str
    host: str
    pid: int
    now_ns: int  # the run's one now
    started_ns: int
    ended_ns: int | None  # None: running, or killed
    policy_digest: str
    exit_code: int | None
    summary: Mapping[str, Any]  # the JSON line that it printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that went wrong in a run, and what followed from it."""

    phase: str  # lease, recover, scan, plan, execute, ...
    subject: str  # the path, archive or place it is about, as text
    message: str
    consequence: Consequence
    place_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceSample:
    """The file system under a place: as statvfs says, or the source's own command."""

    place_id: int
    total_bytes: int
    free_bytes: int
    total_inodes: int
    free_inodes: int
    file_system: str = ""  # its name; places that share one have the same
    at_ns: int = 0  # filled in when read


class Taken(NamedTuple):
    """What a run took out of one team's class in one tier, as the books have it; what is purged is part of it."""

    freed_bytes: int
    purged_bytes: int


def begin_run(
    conn: Connection, *, command: str, host: str, pid: int, now_ns: int, started_ns: int, policy_digest: str = ""
) -> int:
    """A new run's id. The catalog's clock is moved up to ``now_ns``: see ``CatalogFacts.clock_ns``."""
    sql = """
        INSERT INTO runs (command, host, pid, now_ns, started_ns, policy_digest)
        VALUES (?, ?, ?, ?, ?, ?) RETURNING id"""
    values = (command, host, pid, now_ns, started_ns, policy_digest)
    run_id = int(conn.exec_driver_sql(bind(conn, sql), values).scalar_one())
    clock = "UPDATE catalog_facts SET value = ? WHERE key = 'clock_ns' AND CAST(value AS BIGINT) < ?"
    conn.exec_driver_sql(bind(conn, clock), (str(now_ns), now_ns))
    return run_id


def end_run(
    conn: Connection, run_id: int, *, ended_ns: int, exit_code: int, summary: Mapping[str, Any] | None = None
) -> None:
    """How a run ended. A second call puts the later end in the place of the former."""
    sql = "UPDATE runs SET ended_ns = ?, exit_code = ?, summary = ? WHERE id = ?"
    conn.exec_driver_sql(bind(conn, sql), (ended_ns, int(exit_code), canonical_json(summary or {}), run_id))


def latest_now(conn: Connection, *, at_most_ns: int | None = None) -> int | None:
    """The ``now`` of the latest run; with ``at_most_ns`` the highest ``now`` of any run up to it. None without one."""
    if at_most_ns is None:
        found = conn.exec_driver_sql("SELECT now_ns FROM runs ORDER BY id DESC LIMIT 1").scalar()
    else:
        sql = bind(conn, "SELECT max(now_ns) FROM runs WHERE now_ns <= ?")
        found = conn.exec_driver_sql(sql, (at_most_ns,)).scalar()
    return None if found is None else int(found)


def record_policy(
    conn: Connection, digest: str, files: Sequence[tuple[str, str]], *, now_ns: int, run_id: int | None
) -> None:
    """Keep the policy's text under its digest. A second call does nothing."""
    sql = """
        INSERT INTO policies (digest, files, first_used_ns, first_run_id) VALUES (?, ?, ?, ?)
        ON CONFLICT (digest) DO NOTHING"""
    text = json.dumps([list(file) for file in files], ensure_ascii=False)
    conn.exec_driver_sql(bind(conn, sql), (digest, text, now_ns, run_id))


def policy_files(conn: Connection, digest: str) -> tuple[tuple[str, str], ...]:
    """The files of a policy that some run used, by name and text; empty when none did."""
    sql = "SELECT files FROM policies WHERE digest = ?"
    text = conn.exec_driver_sql(bind(conn, sql), (digest,)).scalar()
    return tuple((name, content) for name, content in json.loads(text)) if text else ()


def record_problem(conn: Connection, run_id: int, problem: Problem) -> None:
    record_problems(conn, run_id, [problem])


def record_problems(conn: Connection, run_id: int, found: Sequence[Problem]) -> None:
    columns = ("run_id", "phase", "place_id", "subject", "message", "consequence")
    rows = [(run_id, p.phase, p.place_id, p.subject, p.message, p.consequence.value) for p in found]
    insert_rows(conn, "problems", columns, rows)


def problems_of(conn: Connection, run_id: int, *, limit: int = 10_000) -> list[Problem]:
    """In the order they were recorded."""
    sql = "SELECT phase, place_id, subject, message, consequence FROM problems WHERE run_id = ? ORDER BY id LIMIT ?"
    rows = conn.exec_driver_sql(bind(conn, sql), (run_id, limit)).fetchall()
    return [
        Problem(phase=row[0], place_id=row[1], subject=row[2], message=row[3], consequence=Consequence(row[4]))
        for row in rows
    ]


def list_runs(conn: Connection, *, limit: int = 50, before_id: int | None = None) -> list[RunRecord]:
    """The newest first; ``before_id`` gives the page after one that ended with that id."""
    sql = f"SELECT {_COLUMNS} FROM runs WHERE id < ? ORDER BY id DESC LIMIT ?"
    rows = conn.exec_driver_sql(bind(conn, sql), (2**62 if before_id is None else before_id, limit)).fetchall()
    return [_run(row) for row in rows]


def run_interval_ns(conn: Connection) -> int | None:
    """How long it is from one run to the next, as a rule; None before there were three."""
    starts = sorted(run.now_ns for run in list_runs(conn, limit=_INTERVALS) if run.command == "run")
    gaps = sorted(after - before for before, after in pairwise(starts) if after > before)
    return gaps[len(gaps) // 2] if len(gaps) > 1 else None


def run_by_id(conn: Connection, run_id: int) -> RunRecord | None:
    row = conn.exec_driver_sql(bind(conn, f"SELECT {_COLUMNS} FROM runs WHERE id = ?"), (run_id,)).fetchone()
    return _run(row) if row else None


def record_samples(
    conn: Connection, run_id: int, at_ns: int, taken: Mapping[tuple[str, str, TierName], Taken] = MappingProxyType({})
) -> None:
    """Usage per team, class and tier at the end of a run, from the rollups, and what the run took out of each. A second
    call samples anew."""
    conn.exec_driver_sql(bind(conn, "DELETE FROM usage_samples WHERE run_id = ?"), (run_id,))
    sql = """
        INSERT INTO usage_samples (run_id, team_id, class_id, tier, at_ns, segments, logical_bytes, stored_bytes)
        SELECT ?, team_id, class_id, tier, ?, sum(segments), sum(logical_bytes), sum(stored_bytes)
        FROM rollups GROUP BY team_id, class_id, tier"""
    conn.exec_driver_sql(bind(conn, sql), (run_id, at_ns))
    sql = """
        INSERT INTO usage_samples (run_id, team_id, class_id, tier, at_ns, segments, logical_bytes, stored_bytes,
            freed_bytes, purged_bytes)
        SELECT ?, t.id, c.id, ?, ?, 0, 0, 0, ?, ? FROM teams t, classes c WHERE t.name = ? AND c.name = ?
        ON CONFLICT (run_id, team_id, class_id, tier) DO UPDATE SET freed_bytes = excluded.freed_bytes,
            purged_bytes = excluded.purged_bytes"""
    for (team, class_name, tier), (freed, purged) in sorted(taken.items()):
        conn.exec_driver_sql(bind(conn, sql), (run_id, tier.value, at_ns, freed, purged, team, class_name))


def record_space(conn: Connection, run_id: int, at_ns: int, samples: Sequence[SpaceSample]) -> None:
    """The space under each place at the end of a run. A second call samples anew."""
    conn.exec_driver_sql(bind(conn, "DELETE FROM space_samples WHERE run_id = ?"), (run_id,))
    columns = (
        "run_id", "place_id", "at_ns", "total_bytes", "free_bytes", "total_inodes", "free_inodes", "file_system",
    )  # fmt: skip
    rows = [
        (run_id, s.place_id, at_ns, s.total_bytes, s.free_bytes, s.total_inodes, s.free_inodes, s.file_system)
        for s in samples
    ]
    insert_rows(conn, "space_samples", columns, rows)


_SPACE: Final = "place_id, total_bytes, free_bytes, total_inodes, free_inodes, file_system, at_ns"


def latest_space(conn: Connection) -> list[SpaceSample]:
    """The newest sample of each place."""
    sql = f"""
        SELECT {_SPACE} FROM space_samples s
        WHERE run_id = (SELECT max(run_id) FROM space_samples WHERE place_id = s.place_id) ORDER BY place_id"""
    return [_sample(row) for row in conn.exec_driver_sql(sql).fetchall()]


def space_since(conn: Connection, since_ns: int) -> list[SpaceSample]:
    """Samples of the runs from then on, oldest first."""
    sql = f"""
        SELECT {_SPACE} FROM space_samples
        WHERE run_id >= coalesce((SELECT min(id) FROM runs WHERE now_ns >= ?), 9223372036854775807)
        ORDER BY run_id, place_id"""
    return [_sample(row) for row in conn.exec_driver_sql(bind(conn, sql), (since_ns,)).fetchall()]


def _sample(row: Sequence[Any]) -> SpaceSample:
    return SpaceSample(
        place_id=row[0], total_bytes=row[1], free_bytes=row[2], total_inodes=row[3], free_inodes=row[4],
        file_system=row[5], at_ns=row[6],
    )  # fmt: skip


class UsageSample(NamedTuple):
    """What a team had of a class in a tier at the end of a run, and what that run took out of it."""

    run_id: int
    at_ns: int
    team: str
    class_name: str
    tier: TierName
    stored_bytes: int
    freed_bytes: int
    purged_bytes: int


def usage_since(conn: Connection, since_ns: int, *, by_team: bool) -> list[UsageSample]:
    """Samples of the runs from then on, oldest run first; without ``by_team`` summed over teams and classes. What had
    nothing left is not in a run's samples."""
    first = "u.run_id >= coalesce((SELECT min(id) FROM runs WHERE now_ns >= ?), 9223372036854775807)"
    if by_team:
        sql = f"""
            SELECT u.run_id, u.at_ns, t.name, c.name, u.tier, u.stored_bytes, u.freed_bytes, u.purged_bytes
            FROM usage_samples u JOIN teams t ON t.id = u.team_id JOIN classes c ON c.id = u.class_id
            WHERE {first} ORDER BY u.run_id, t.name, c.name, u.tier"""
    else:
        sql = f"""
            SELECT u.run_id, u.at_ns, '', '', u.tier, sum(u.stored_bytes), sum(u.freed_bytes), sum(u.purged_bytes)
            FROM usage_samples u WHERE {first} GROUP BY u.run_id, u.at_ns, u.tier ORDER BY u.run_id, u.tier"""
    return [
        UsageSample(row[0], row[1], row[2], row[3], TierName(row[4]), *map(int, row[5:]))
        for row in conn.exec_driver_sql(bind(conn, sql), (since_ns,)).fetchall()
    ]


def _run(row: Sequence[Any]) -> RunRecord:
    return RunRecord(
        id=row[0], command=row[1], host=row[2], pid=row[3], now_ns=row[4], started_ns=row[5], ended_ns=row[6],
        policy_digest=row[7], exit_code=row[8], summary=json.loads(row[9]),
    )  # fmt: skip
