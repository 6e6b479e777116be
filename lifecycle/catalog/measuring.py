"""What a team or a job really wrote, for sizing: sums over its segments, whatever became of them since.

Knows how rates and ratios come out of rows. Never knows what they are used for.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind
from lifecycle.units import DAY_NS

_HOUR_NS = 3_600 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Of the jobs of a team, or of one job. ``days`` is from the first to the last day of last write, both counted."""

    jobs: int
    files: int
    raw_bytes: int
    gpus: float  # ranks of a job, on average
    job_hours: float  # from its first last write to its last, on average, at least an hour
    days: int
    ratio_low: float | None  # stored to raw, of the best and the worst day; None: nothing is stored yet
    ratio_high: float | None


_JOBS = """
    SELECT count(*), sum(s.size_bytes), count(DISTINCT l.node || ':' || coalesce(l.rank, 0)), min(s.last_write_ns),
        max(s.last_write_ns)
    FROM segments s
    JOIN label_sets l ON l.id = s.labels_id JOIN jobs j ON j.id = s.job_id JOIN teams t ON t.id = s.team_id
    WHERE t.name = ? AND s.last_write_ns IS NOT NULL {job} GROUP BY s.job_id"""
_RATIOS = """
    SELECT sum(s.stored_bytes), sum(s.size_bytes)
    FROM segments s JOIN jobs j ON j.id = s.job_id JOIN teams t ON t.id = s.team_id
    WHERE t.name = ? AND s.archive_id IS NOT NULL {job} GROUP BY s.day"""


def measure(conn: Connection, team: str, job: str | None) -> Measured | None:
    """None when nothing of that team, or of that job of it, is known. Reads all of its segments."""
    condition, values = ("AND j.name = ?", (team, job)) if job is not None else ("", (team,))
    rows = conn.exec_driver_sql(bind(conn, _JOBS.replace("{job}", condition)), values).fetchall()
    if not rows:
        return None
    ratios = [
        int(row[0]) / int(row[1])
        for row in conn.exec_driver_sql(bind(conn, _RATIOS.replace("{job}", condition)), values).fetchall()
        if row[1]
    ]
    hours = [max(1.0, (row[4] - row[3]) / _HOUR_NS) for row in rows]
    return Measured(
        jobs=len(rows),
        files=sum(row[0] for row in rows),
        raw_bytes=sum(int(row[1]) for row in rows),
        gpus=sum(row[2] for row in rows) / len(rows),
        job_hours=sum(hours) / len(rows),
        days=max(row[4] for row in rows) // DAY_NS - min(row[3] for row in rows) // DAY_NS + 1,
        ratio_low=min(ratios, default=None),
        ratio_high=max(ratios, default=None),
    )
