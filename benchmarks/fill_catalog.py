"""Fill a catalog with synthetic segments, for benchmarks of planning, audit and memory at 1 M and 10 M.

Steady state of a platform whose runs keep up: 12 teams, three classes with the figures of ``defaults: seed-1``, jobs of
2,000 segments (250 ranks, 8 rotations), one archive per job. Young segments are in hot, older ones stored, what is past
its retention is marked and in grace; 1,000 segments are due for warm. Rows are made by SQLite itself, secondary indexes
are dropped meanwhile. The file is not crash-safe while this runs.

    python -m benchmarks.fill_catalog /tmp/catalog.db 1000000
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lifecycle.catalog.places import ensure_place
from lifecycle.catalog.runs import begin_run
from lifecycle.catalog.store import Catalog, create_catalog
from lifecycle.catalog.usage import rebuild_rollups
from lifecycle.model import PlaceKind, TierName
from lifecycle.units import DAY_NS, NS, day_of_ns, to_ns

JOB_SEGMENTS = 2000
RANKS = 250
TEAMS = tuple(f"team-{number:02d}" for number in range(1, 13))
DUE = 1000
GRACE_DAYS = 3
_HOUR_NS = 3600 * NS
_YOUNG = (1, 2)  # jobs of yesterday whatever chance says: half of their segments can be made due
_CHUNK = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFigures:
    name: str
    share: float  # of the jobs that a day brings
    cold_days: int | None
    expire_days: int


CLASSES = (
    ClassFigures(name="error", share=0.05, cold_days=7, expire_days=90),
    ClassFigures(name="eval", share=0.35, cold_days=None, expire_days=7),
    ClassFigures(name="training", share=0.60, cold_days=7, expire_days=30),
)


def fill(catalog: Catalog, segments: int, *, now: datetime, seed: int) -> None:
    """Add ``segments`` segments with all that belongs to them to an empty catalog. Equal arguments, equal rows.

    ``now`` is at noon, or near it: what is due was written yesterday morning. Below 6,000 segments fewer are due.
    """
    now_ns = to_ns(now)
    with catalog.write() as conn:
        for kind, name, tier in (
            (PlaceKind.SOURCE, "hot", TierName.HOT),
            (PlaceKind.TIER, "warm", TierName.WARM),
            (PlaceKind.TIER, "cold", TierName.COLD),
        ):
            ensure_place(conn, kind=kind, name=name, host="", root=f"/synthetic/{name}", tier=tier, uid=f"uid-{name}")
        begin_run(conn, command="fill", host="bench", pid=1, now_ns=now_ns, started_ns=now_ns)
    with closing(sqlite3.connect(catalog.path, isolation_level=None)) as raw:
        raw.execute("PRAGMA synchronous = OFF")
        raw.execute("PRAGMA journal_mode = OFF")
        raw.execute("PRAGMA cache_size = -262144")
        with _without_indexes(raw):
            _add_jobs(raw, segments, now_ns, random.Random(seed))
            for first in range(0, segments, _CHUNK):
                _add_segments(raw, first, min(first + _CHUNK, segments), now_ns, seed)
            _make_due(raw, now_ns)
            _add_marks(raw, now_ns)
            _mend_young_archives(raw, now_ns)
        raw.execute("DROP TABLE fill_jobs")
    with catalog.write() as conn:
        rebuild_rollups(conn)


@contextmanager
def _without_indexes(raw: sqlite3.Connection) -> Iterator[None]:
    found = raw.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
        "AND tbl_name IN ('segments', 'label_sets', 'jobs', 'archives', 'marks')"
    ).fetchall()
    for name, _ in found:
        raw.execute(f'DROP INDEX "{name}"')
    yield
    for _, sql in found:
        raw.execute(sql)


def _add_jobs(raw: sqlite3.Connection, segments: int, now_ns: int, chance: random.Random) -> None:
    """A job's segments are of one class and were written on one day; ``span_ns`` is how much of that day counts."""
    raw.execute(
        "CREATE TABLE fill_jobs (number INTEGER PRIMARY KEY, team_id INT, class_id INT, days INT, day INT, "
        "span_ns INT, tier TEXT, size_bytes INT, members INT, expire_ns INT)"
    )
    raw.executemany("INSERT INTO teams (id, name) VALUES (?, ?)", enumerate(TEAMS, 1))
    raw.executemany("INSERT INTO classes (id, name) VALUES (?, ?)", [(n, c.name) for n, c in enumerate(CLASSES, 1)])
    raw.execute("INSERT INTO rules (id, file, line, text) VALUES (1, 'platform.yaml', 12, 'training')")
    # What is there is what was brought times how long it stays.
    weights = [figures.share * (figures.expire_days + GRACE_DAYS) for figures in CLASSES]
    raw.execute("BEGIN")
    raw.executemany(
        "INSERT INTO fill_jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (_job(number, segments, now_ns, chance, weights) for number in range(-(-segments // JOB_SEGMENTS))),
    )
    raw.execute(
        "INSERT INTO jobs (id, team_id, name, last_write_ns) "
        f"SELECT number + 1, team_id, printf('train-%06d', number), day * {DAY_NS} + span_ns - {NS} FROM fill_jobs"
    )
    raw.execute(
        "INSERT INTO directories (id, place_id, path, files) SELECT number + 1, 1, "
        "CAST(printf('team-%02d/train-%06d', team_id, number) AS BLOB), members FROM fill_jobs"
    )
    raw.execute(
        "INSERT INTO label_sets (id, job_id, node, rank) "
        f"WITH RECURSIVE ranks (rank) AS (SELECT 0 UNION ALL SELECT rank + 1 FROM ranks WHERE rank < {RANKS - 1}) "
        f"SELECT number * {RANKS} + rank + 1, number + 1, printf('gpu-%03d', rank / 8), rank FROM fill_jobs, ranks"
    )
    raw.execute(_ARCHIVES)
    raw.execute("COMMIT")


def _job(number: int, segments: int, now_ns: int, chance: random.Random, weights: list[float]) -> tuple[int | str, ...]:
    class_id = chance.choices(range(len(CLASSES)), weights)[0]
    figures = CLASSES[class_id]
    today = day_of_ns(now_ns)
    days = chance.randrange(figures.expire_days + GRACE_DAYS - 1)
    if number in _YOUNG:
        days = 1
    span_ns = DAY_NS if days else max(now_ns - today * DAY_NS, 2 * NS)
    newest_ns = (today - days) * DAY_NS + span_ns - NS
    is_cold = figures.cold_days is not None and now_ns - newest_ns >= figures.cold_days * DAY_NS
    return (
        number,
        chance.randrange(len(TEAMS)) + 1,
        class_id + 1,
        days,
        today - days,
        span_ns,
        "cold" if is_cold else "warm",
        chance.randrange(2_000, 400_000),
        min(JOB_SEGMENTS, segments - number * JOB_SEGMENTS),
        figures.expire_days * DAY_NS,
    )


_ARCHIVES = f"""
    INSERT INTO archives (id, place_id, key, tier, team_id, class_id, day, gid, mode, form, size_bytes, raw_bytes,
        members, live_members, live_raw_bytes, newest_write_ns, oldest_write_ns, digest, manifest_digest, zstd_level,
        state, created_ns)
    SELECT number + 1, CASE tier WHEN 'warm' THEN 2 ELSE 3 END,
        printf('team-%02d/%d/%d/%08x.tar.zst', team_id, class_id, day, number), tier,
        team_id, class_id, day, 1000, 416, 'tar', members * (size_bytes / 8), members * size_bytes,
        members, members, members * size_bytes, day * {DAY_NS} + span_ns - {NS}, day * {DAY_NS}, zeroblob(32),
        zeroblob(32), 3, 'live', day * {DAY_NS} + {DAY_NS}
    FROM fill_jobs WHERE days > 0"""


def _add_segments(raw: sqlite3.Connection, first: int, end: int, now_ns: int, seed: int) -> None:
    """The first member of a job is its newest, a second before the day ends, and the second its oldest."""
    write = f"""j.day * {DAY_NS} + CASE n % {JOB_SEGMENTS} WHEN 0 THEN j.span_ns - {NS} WHEN 1 THEN 0
        ELSE (n * 48271 + {seed}) % 86399 * (j.span_ns / 86400) END"""
    raw.execute("BEGIN")
    raw.execute(f"""
        INSERT INTO segments (id, place_id, directory_id, name, team_id, class_id, job_id, labels_id, rule_id, layout,
            content, inode, size_bytes, allocated_bytes, mtime_ns, ctime_ns, mode, uid, gid, fingerprint,
            fingerprint_size, last_write_ns, day, first_seen_ns, original, digest, archive_id, archive_offset,
            stored_bytes, tier, marked, error_blocks)
        WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {end - 1}),
        rows AS (SELECT n, j.*, {write} AS write_ns
            FROM numbers CROSS JOIN fill_jobs j ON j.number = n / {JOB_SEGMENTS}),
        states AS (SELECT *, {now_ns} - write_ns >= {DAY_NS} AS is_stored, ({now_ns} -
            CASE class_id WHEN 3 THEN day * {DAY_NS} + span_ns - {NS} ELSE write_ns END) >= expire_ns AS is_marked
            FROM rows)
        SELECT n + 1, 1, number + 1, CAST(printf('rank_%d.log.%d', n % {RANKS}, n / {RANKS} % 8) AS BLOB), team_id,
            class_id, number + 1, number * {RANKS} + n % {RANKS} + 1, 1, 'rank-files', 'text', n + 1000, size_bytes,
            (size_bytes + 4095) / 4096 * 4096, write_ns, write_ns, 416, 1000, 1000, zeroblob(16), 4096, write_ns, day,
            write_ns, CASE WHEN is_stored THEN 'released' WHEN {now_ns} - write_ns < {_HOUR_NS} THEN 'open'
            ELSE 'settled' END, CASE WHEN is_stored THEN zeroblob(32) END, CASE WHEN is_stored THEN number + 1 END,
            CASE WHEN is_stored THEN n % {JOB_SEGMENTS} * (size_bytes + 512) + 512 END,
            CASE WHEN is_stored THEN size_bytes / 8 ELSE 0 END, CASE WHEN is_stored THEN tier ELSE 'hot' END, is_marked,
            CASE WHEN is_stored THEN 0 END
        FROM states""")
    raw.execute("COMMIT")


def _make_due(raw: sqlite3.Connection, now_ns: int) -> None:
    """What went over the limit since the last run: still in hot, settled."""
    raw.execute(
        "UPDATE segments SET original = 'settled', digest = NULL, archive_id = NULL, archive_offset = NULL, "
        "stored_bytes = 0, tier = 'hot', error_blocks = NULL "
        "WHERE id IN (SELECT id FROM segments WHERE last_write_ns BETWEEN ? AND ? LIMIT ?)",
        (now_ns - DAY_NS - 12 * _HOUR_NS, now_ns - DAY_NS, DUE),
    )


def _add_marks(raw: sqlite3.Connection, now_ns: int) -> None:
    raw.execute(
        "INSERT INTO marks (segment_id, marked_ns, purge_after_ns, run_id, policy_digest, reason) "
        "SELECT id, ?, ?, 1, 'bench', '{\"code\":\"expired\"}' FROM segments WHERE marked = 1",
        (now_ns - _HOUR_NS, now_ns + GRACE_DAYS * DAY_NS - _HOUR_NS),
    )


def _mend_young_archives(raw: sqlite3.Connection, now_ns: int) -> None:
    """Yesterday's jobs are stored in part only: their archives hold what is over the limit and not due."""
    young = "SELECT number + 1 FROM fill_jobs WHERE days = 1"
    found = raw.execute(
        "SELECT count(*), sum(size_bytes), max(last_write_ns), min(last_write_ns), archive_id FROM segments "
        f"WHERE archive_id IN ({young}) GROUP BY archive_id"
    ).fetchall()
    raw.execute("BEGIN")
    raw.executemany(
        "UPDATE archives SET members = ?1, live_members = ?1, raw_bytes = ?2, live_raw_bytes = ?2, "
        "size_bytes = ?2 / 8, newest_write_ns = ?3, oldest_write_ns = ?4 WHERE id = ?5",
        found,
    )
    kept = {row[4] for row in found}
    empty = [(number,) for (number,) in raw.execute(young).fetchall() if number not in kept]
    raw.executemany("DELETE FROM archives WHERE id = ?", empty)
    raw.execute("COMMIT")


def main() -> None:
    path, segments = Path(sys.argv[1]), int(sys.argv[2])
    started = time.monotonic()
    with create_catalog(
        f"sqlite:///{path.absolute()}", now=datetime(2026, 3, 1, 12, tzinfo=UTC), rehearsal=True
    ) as catalog:
        fill(catalog, segments, now=datetime(2026, 3, 1, 12, tzinfo=UTC), seed=1)
    seconds = time.monotonic() - started
    print(f"{segments:,} segments, {path.stat().st_size / 2**20:,.0f} MiB, {seconds:.1f} s")


if __name__ == "__main__":
    main()
