"""Segments of a place gone through again after policy's class rules changed: pages of them, and what each became.

Knows the rows, the sums that go with a class, and how far a place has been gone through. Never knows why a class is
another one now: it is told per segment.

What a crash leaves: pages are whole, and how far they reach is written with them. Until a place has been gone through
by the rules of this day, ``unclassified`` names it, and nothing there is marked or purged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from lifecycle.catalog.acceptance import note_use
from lifecycle.catalog.bulk import bind, select_in, update_rows, upsert_rows
from lifecycle.catalog.copies import COUNTED_HOT
from lifecycle.catalog.events import append_event, members_digest
from lifecycle.catalog.interning import Interner
from lifecycle.catalog.lease import Lease
from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import RollupDeltas
from lifecycle.model import Original, TierName
from lifecycle.policy.layouts import Claim

PAGE: Final = 5000


class Classified(NamedTuple):
    """A segment with what it was taken for so far, and what its sums are made of."""

    id: int
    directory: bytes
    name: bytes
    team: str
    job: str
    node: str
    rank: int | None
    stream: str
    attempt: str
    extra: str  # as the catalog has it
    class_name: str
    layout: str
    rotation_base: bytes | None
    claimed_class: str | None
    team_id: int
    class_id: int
    day: int
    size_bytes: int
    allocated_bytes: int
    stored_bytes: int
    last_write_ns: int | None
    original: str
    archive_tier: str | None


_SELECT: Final = """
    SELECT s.id, d.path, s.name, t.name, j.name, l.node, l.rank, l.stream, l.attempt, l.extra, c.name, s.layout,
        s.rotation_base, p.name, s.team_id, s.class_id, s.day, s.size_bytes, s.allocated_bytes, s.stored_bytes,
        s.last_write_ns, s.original, a.tier
    FROM segments s
    CROSS JOIN directories d ON d.id = s.directory_id
    CROSS JOIN teams t ON t.id = s.team_id
    CROSS JOIN jobs j ON j.id = s.job_id
    CROSS JOIN label_sets l ON l.id = s.labels_id
    CROSS JOIN classes c ON c.id = s.class_id
    LEFT JOIN classes p ON p.id = s.claimed_class_id
    LEFT JOIN archives a ON a.id = s.archive_id
    WHERE s.place_id = ? AND s.id > ? AND s.tier IS NOT NULL AND s.companion_of IS NULL"""


def iter_classified(
    catalog: Catalog, place_id: int, *, after_id: int = 0, only_waiting: bool = False, page: int = PAGE
) -> Iterator[list[Classified]]:
    """Segments of a place that are still there, in pages by id; ``only_waiting``: those with a class to be accepted."""
    waiting = " AND s.claimed_class_id IS NOT NULL" if only_waiting else ""
    sql = f"{_SELECT}{waiting} ORDER BY s.id LIMIT {page}"
    while True:
        with catalog.read() as conn:
            rows = conn.exec_driver_sql(bind(conn, sql), (place_id, after_id)).fetchall()
        if rows:
            yield [Classified._make(row) for row in rows]
        if len(rows) < page:
            return
        after_id = rows[-1][0]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a place was gone through: ``done_key`` whole, ``target_key`` up to segment ``done_id``."""

    done_key: bytes | None = None
    target_key: bytes | None = None
    done_id: int = 0


def progress_of(conn: Connection) -> dict[int, Progress]:
    """Of every place that was ever gone through."""
    rows = conn.exec_driver_sql("SELECT place_id, done_key, target_key, done_id FROM classifications").fetchall()
    return {row[0]: Progress(row[1], row[2], row[3]) for row in rows}


def _record_progress(conn: Connection, place_id: int, progress: Progress) -> None:
    columns = ("done_key", "target_key", "done_id")
    row = (place_id, progress.done_key, progress.target_key, progress.done_id)
    upsert_rows(conn, "classifications", ("place_id",), columns, [row])


def has_folders(conn: Connection, place_id: int) -> bool:
    """Whether the place was ever scanned: without a folder it has no segment."""
    sql = "SELECT EXISTS (SELECT 1 FROM directories WHERE place_id = ?)"
    return bool(conn.exec_driver_sql(bind(conn, sql), (place_id,)).scalar())


def in_unfinished_batches(conn: Connection, segments: Iterable[int]) -> set[int]:
    """Those that a batch on its way has: of a place that cannot be reached, or of a run that was killed."""
    sql = (
        "SELECT m.segment_id FROM batch_members m JOIN batches b ON b.id = m.batch_id"
        " WHERE m.segment_id IN ({values}) AND b.state IN ('intended', 'stored', 'committed')"
    )
    return {row[0] for row in select_in(conn, sql, segments)}


@dataclass(slots=True)
class Verdicts:
    """What becomes of a page's segments; those in none of the lists stay as they are."""

    taken: list[tuple[Classified, Claim]] = field(default_factory=list)  # get what their claim says
    waiting: list[tuple[Classified, Claim]] = field(default_factory=list)  # keep their class until it is accepted
    unclaimed: list[Classified] = field(default_factory=list)  # their originals are left alone from now on
    spared: int = 0  # could not be judged this time

    @property
    def is_nothing_new(self) -> bool:
        """Whether the catalog says all of it already."""
        return not (self.taken or self.unclaimed or any(s.claimed_class != c.class_name for s, c in self.waiting))


class ClassWriter:
    """Writes what became of a page's segments, under the place's lease; without one only into a private copy."""

    def __init__(
        self,
        catalog: Catalog,
        place_id: int,
        *,
        now_ns: int,
        run_id: int | None,
        lease: Lease | None,
        policy_digest: str,
    ) -> None:
        self._catalog = catalog
        self._place_id = place_id
        self._now_ns = now_ns
        self._run_id = run_id
        self._leases = () if lease is None else (lease,)
        self._policy_digest = policy_digest
        self._interner = Interner(catalog)

    def write(self, verdicts: Verdicts, progress: Progress) -> None:
        """One page and how far it reaches, whole or not at all. Raises LeaseLost, StorageFull, CatalogBusy, Damaged."""
        with self._catalog.write(*self._leases) as conn:
            deltas = RollupDeltas()
            self._take(conn, verdicts.taken, deltas)
            self._wait(conn, verdicts.waiting)
            self._leave(conn, verdicts.unclaimed, deltas)
            deltas.apply(conn)
            if verdicts.taken or verdicts.unclaimed:
                self._record(conn, verdicts.taken, verdicts.unclaimed)
            _record_progress(conn, self._place_id, progress)

    def record_progress(self, progress: Progress) -> None:
        with self._catalog.write(*self._leases) as conn:
            _record_progress(conn, self._place_id, progress)

    def note_acceptance(self) -> None:
        """This run is the first that acts on it, if none did before."""
        with self._catalog.write(*self._leases) as conn:
            note_use(conn, self._policy_digest, self._run_id)

    def _take(self, conn: Connection, rows: Sequence[tuple[Classified, Claim]], deltas: RollupDeltas) -> None:
        values, jobs = [], dict[int, int]()
        for segment, claim in rows:
            labels, intern = claim.labels, self._interner
            team = intern.team(conn, labels.team)
            class_id = intern.class_(conn, claim.class_name)
            job = intern.job(conn, team, labels.job)
            rule = intern.rule(conn, claim.class_rule)
            label_set = intern.labels(conn, job, labels)
            base = claim.rotation_base
            values.append((team, class_id, None, job, label_set, rule, claim.layout, base, segment.id))
            _count(deltas, segment, segment.team_id, segment.class_id, -1)
            _count(deltas, segment, team, class_id, 1)
            if segment.last_write_ns is not None:
                jobs[job] = max(jobs.get(job, 0), segment.last_write_ns)
        columns = (
            "team_id", "class_id", "claimed_class_id", "job_id", "labels_id", "rule_id", "layout", "rotation_base",
        )  # fmt: skip
        update_rows(conn, "segments", ("id",), columns, values)
        newer = [(newest, job, newest) for job, newest in jobs.items()]
        if newer:
            sql = "UPDATE jobs SET last_write_ns = ? WHERE id = ? AND last_write_ns < ?"
            conn.exec_driver_sql(bind(conn, sql), newer)

    def _wait(self, conn: Connection, rows: Sequence[tuple[Classified, Claim]]) -> None:
        values = [
            (self._interner.class_(conn, claim.class_name), segment.id)
            for segment, claim in rows
            if segment.claimed_class != claim.class_name
        ]
        update_rows(conn, "segments", ("id",), ("claimed_class_id",), values)

    def _leave(self, conn: Connection, rows: Sequence[Classified], deltas: RollupDeltas) -> None:
        """A mark on what has no stored copy has nothing to purge any more."""
        for segment in rows:
            _count_hot(deltas, segment, segment.team_id, segment.class_id, -1)
        values = [(Original.UNCLAIMED.value, None, None, segment.archive_tier, segment.id) for segment in rows]
        update_rows(conn, "segments", ("id",), ("original", "missing_since_ns", "stay_until_ns", "tier"), values)
        bare = [(segment.id,) for segment in rows if segment.archive_tier is None]
        if bare:
            conn.exec_driver_sql(bind(conn, "UPDATE segments SET marked = 0 WHERE id = ?"), bare)
            conn.exec_driver_sql(bind(conn, "DELETE FROM marks WHERE segment_id = ?"), bare)

    def _record(
        self,
        conn: Connection,
        taken: Sequence[tuple[Classified, Claim]],
        unclaimed: Sequence[Classified],
    ) -> None:
        changes: dict[str, int] = {}
        for segment, claim in taken:
            words = f"{segment.team}/{segment.class_name} to {claim.labels.team}/{claim.class_name}"
            changes[words] = changes.get(words, 0) + 1
        members = [(s.id, s.team, s.class_name, c.labels.team, c.class_name) for s, c in taken]
        members += [(s.id, s.team, s.class_name, "", "") for s in unclaimed]
        body: Mapping[str, Any] = {
            "policy": self._policy_digest,
            "segments": len(members),
            "changes": changes,
            "unclaimed": len(unclaimed),
            "digest": members_digest(members),
        }
        append_event(
            conn, place_id=self._place_id, at_ns=self._now_ns, kind="reclassified", body=body, run_id=self._run_id
        )


def _count(deltas: RollupDeltas, segment: Classified, team_id: int, class_id: int, sign: int) -> None:
    _count_hot(deltas, segment, team_id, class_id, sign)
    if segment.archive_tier is not None:
        deltas.add(
            team_id, class_id, TierName(segment.archive_tier), segment.day,
            sign, sign * segment.size_bytes, sign * segment.stored_bytes,
        )  # fmt: skip


def _count_hot(deltas: RollupDeltas, segment: Classified, team_id: int, class_id: int, sign: int) -> None:
    if segment.original in COUNTED_HOT:
        deltas.add(
            team_id, class_id, TierName.HOT, segment.day,
            sign, sign * segment.size_bytes, sign * segment.allocated_bytes,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class WaitingChange:
    """Segments that policy would give a class that keeps shorter, and that keep theirs until somebody accepts it."""

    team: str
    from_class: str
    to_class: str
    segments: int
    logical_bytes: int


def waiting_changes(conn: Connection) -> list[WaitingChange]:
    """By team and classes. Costs what is waiting."""
    sql = """
        SELECT t.name, c.name, p.name, count(*), sum(s.size_bytes) FROM segments s
        CROSS JOIN teams t ON t.id = s.team_id CROSS JOIN classes c ON c.id = s.class_id
        CROSS JOIN classes p ON p.id = s.claimed_class_id
        WHERE s.claimed_class_id IS NOT NULL AND s.tier IS NOT NULL
        GROUP BY t.name, c.name, p.name ORDER BY t.name, c.name, p.name"""
    return [WaitingChange(*row) for row in conn.exec_driver_sql(sql).fetchall()]
