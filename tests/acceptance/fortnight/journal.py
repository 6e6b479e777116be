"""What the catalog says, read with plain SQL from its file: which segments there are, and what was done to them, why.

Nothing of the package is used. The books believe none of it by itself: rows say where to look, and reasons are held
against the figures of the books.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """One segment."""

    id: int
    source: str
    path: bytes
    team: str
    class_name: str
    job: str
    node: str
    rank: int | None
    original: str
    tier: str | None
    key: str | None
    archive_tier: str | None
    archive_state: str | None
    size: int
    allocated: int
    stored: int
    marked_ns: int | None
    purge_after_ns: int | None
    companion_of: int | None
    error_blocks: int | None

    @property
    def is_there(self) -> bool:
        """Whether the catalog counts an original of it in its source."""
        return self.original in ("open", "settled", "missing")


class Deed(NamedTuple):
    """One segment marked, unmarked or purged by a run."""

    segment: int
    action: str
    outcome: str
    now_ns: int
    run: int
    code: str  # of its reason
    rule: str


@dataclass(frozen=True, slots=True)
class Journal:
    catalog: Path

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(f"file:{self.catalog}?mode=ro", uri=True)) as connection:
            yield connection

    def rows(self) -> list[Row]:
        """Every segment that has an original or a stored copy."""
        with self._open() as connection:
            found = connection.execute(_ROWS).fetchall()
        return [Row._make((*row[:2], _path(row[2], row[3]), *row[4:])) for row in found]

    def deeds(self, after_batch: int = 0) -> tuple[int, list[Deed]]:
        """What was done since a batch, in order; and the last batch."""
        with self._open() as connection:
            found = connection.execute(_DEEDS, (after_batch,)).fetchall()
            (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM batches").fetchone()
        deeds = []
        for segment, action, outcome, now_ns, run, reason in found:
            why = json.loads(reason)
            deeds.append(Deed(segment, action, outcome, now_ns, run, why["code"], why["rule"]))
        return last, deeds

    def unfinished(self) -> list[tuple[int, str, str]]:
        """Batches that no run has brought to an end."""
        with self._open() as connection:
            return connection.execute(
                "SELECT id, action, state FROM batches WHERE state NOT IN ('closed', 'abandoned')"
            ).fetchall()


def _path(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


_ROWS = """
    SELECT s.id, p.name, d.path, s.name, t.name, c.name, j.name, l.node, l.rank, s.original, s.tier, a.key, a.tier,
        a.state, s.size_bytes, s.allocated_bytes, s.stored_bytes, m.marked_ns, m.purge_after_ns, s.companion_of,
        s.error_blocks
    FROM segments s JOIN places p ON p.id = s.place_id JOIN directories d ON d.id = s.directory_id
    JOIN teams t ON t.id = s.team_id JOIN classes c ON c.id = s.class_id JOIN jobs j ON j.id = s.job_id
    JOIN label_sets l ON l.id = s.labels_id LEFT JOIN archives a ON a.id = s.archive_id
    LEFT JOIN marks m ON m.segment_id = s.id
    WHERE s.archive_id IS NOT NULL OR s.original IN ('open', 'settled', 'missing')"""
_DEEDS = """
    SELECT m.segment_id, b.action, m.outcome, r.now_ns, b.run_id, b.reason
    FROM batch_members m JOIN batches b ON b.id = m.batch_id JOIN runs r ON r.id = b.run_id
    WHERE b.id > ? AND m.outcome IN ('marked', 'unmarked', 'purged') ORDER BY b.id"""
