"""Planning's questions to the catalog: what is due, by indexed cut-offs, in pages. ``plan.source`` has the promises.

Knows which index answers which question. Never decides: ranges may be wider than the rule, the planner looks again.
Reads only; keeps no cursor open between pages; costs what lies in the range, not what is catalogued.

Which index (a test looks at the query plans)
- originals to move     ix_segments_due        team, class, last write; only settled ones that were never stored
- archives to move      ix_archives_due        tier, team, class, newest write; only live ones
- archives to look into ix_segments_unextracted  team, class, archive; only what is stored and was not looked through
- tiny archives       ix_archives_small      tier, team, class, newest write; only live ones below SMALL_BYTES
- rotation sets       ix_segments_rotated    team, class, folder, base; only settled ones that were never stored
- copies made early     ix_segments_copied     team, class, last write; only originals beside a stored copy
- ends of retention     ix_segments_live_age   team, class, last write; only unmarked ones with a tier
- the same from jobs    ix_segments_live_job   of jobs found by ix_jobs_last_write_ns
- marks                 marks itself, whose size is that of the grace time
Team leads class in these, because figures are per team: one team with 180 days must not make every run read all that
others keep for 30.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from lifecycle.catalog.bulk import CHUNK, bind, chunks, select_in
from lifecycle.catalog.holds import HELD_BY, IS_HELD
from lifecycle.catalog.store import Catalog
from lifecycle.model import TierName, Usage
from lifecycle.plan.bins import MAX_MEMBERS
from lifecycle.plan.source import SMALL_BYTES, ArchiveMarks, Candidate, DueArchive, TeamClass, Unextracted

PAGE: Final = 2000
_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1

_COLUMNS: Final = f"""
    s.id, s.place_id, d.path, s.name, s.team_id, s.class_id, s.inode, s.size_bytes, s.allocated_bytes, s.mtime_ns,
    s.mode, s.gid, s.last_write_ns, s.first_seen_ns, s.original, s.tier, s.stored_bytes, s.job_id, j.last_write_ns,
    s.stay_until_ns, s.set_aside_until_ns, s.archive_id, a.place_id, a.tier, a.state, a.newest_write_ns,
    m.marked_ns, m.purge_after_ns, {HELD_BY}, s.error_blocks"""
_REST: Final = """
    CROSS JOIN directories d ON d.id = s.directory_id
    CROSS JOIN jobs j ON j.id = s.job_id
    LEFT JOIN archives a ON a.id = s.archive_id"""
# CROSS JOIN keeps SQLite from another order than the one written.
_BY_SEGMENT: Final = f"SELECT {_COLUMNS} FROM segments s {_REST} LEFT JOIN marks m ON m.segment_id = s.id"
_BY_MARK: Final = f"SELECT {_COLUMNS} FROM marks m CROSS JOIN segments s ON s.id = m.segment_id {_REST}"

_ARCHIVE: Final = """
    SELECT a.id, a.place_id, a.tier, a.team_id, a.class_id, a.day, a.gid, a.mode, a.size_bytes, a.live_members,
        a.live_raw_bytes, a.newest_write_ns, a.state,
        EXISTS (SELECT 1 FROM segments s WHERE s.archive_id = a.id AND s.marked = 0)
    FROM archives a"""
_PATHS: Final = (
    "SELECT s.archive_id, s.place_id, s.directory_id, s.name FROM segments s WHERE s.archive_id IN ({values})"
)


class CatalogDue:
    """A ``DueSource`` over the catalog as it is now. Make one per plan: it remembers names of teams and classes."""

    def __init__(self, catalog: Catalog, *, page: int = PAGE) -> None:
        self._catalog = catalog
        self._page = page
        self._teams = self._names("teams")
        self._classes = self._names("classes")
        self._team_ids = {name: number for number, name in self._teams.items()}
        self._class_ids = {name: number for number, name in self._classes.items()}

    def pairs(self) -> Sequence[TeamClass]:
        rows = self._fetch("SELECT DISTINCT team_id, class_id FROM rollups", ())
        return sorted(TeamClass(self._teams[row[0]], self._classes[row[1]]) for row in rows)

    # --- moves --------------------------------------------------------------------------------------------------

    def iter_settled(self, pair: TeamClass, *, after_ns: int | None, until_ns: int) -> Iterator[Candidate]:
        # No "tier IS NOT NULL" here: with it SQLite may take the index of all live segments instead.
        sql = (
            f"{_BY_SEGMENT} WHERE s.original = 'settled' AND s.archive_id IS NULL AND s.marked = 0"
            " AND s.team_id = ? AND s.class_id = ?"
        )
        rows = self._pages(sql, self._ids(pair), "s.last_write_ns", "s.id", 12, after_ns, until_ns)
        return map(self._candidate, rows)

    def iter_archives(self, pair: TeamClass, tier: TierName, *, until_ns: int) -> Iterator[DueArchive]:
        sql = f"{_ARCHIVE} WHERE a.state = 'live' AND a.tier = ? AND a.team_id = ? AND a.class_id = ?"
        values = (tier.value, *self._ids(pair))
        rows = self._pages(sql, values, "a.newest_write_ns", "a.id", 11, None, until_ns)
        return map(self._archive, rows)

    def iter_small(
        self, pair: TeamClass, tier: TierName, *, after_ns: int | None, until_ns: int, below_bytes: int
    ) -> Iterator[DueArchive]:
        # The first two conditions are those of the index, word for word; the third keeps SQLite from the index of all.
        sql = (
            f"{_ARCHIVE} WHERE a.live_raw_bytes > 0 AND a.live_raw_bytes < {SMALL_BYTES} AND a.state || '' = 'live'"
            " AND a.tier = ? AND a.team_id = ? AND a.class_id = ?"
            " AND a.live_raw_bytes < ? AND NOT EXISTS"
            " (SELECT 1 FROM segments s WHERE s.archive_id = a.id AND s.marked = 1)"
        )
        values = (tier.value, *self._ids(pair), below_bytes)
        rows = self._pages(sql, values, "a.newest_write_ns", "a.id", 11, after_ns, until_ns)
        return map(self._archive, rows)

    def iter_rotated_out(self, pair: TeamClass, *, keep: int, after_ns: int) -> Iterator[Candidate]:
        rotated = "s.original = 'settled' AND s.archive_id IS NULL AND s.marked = 0 AND s.rotation_base IS NOT NULL"
        full = (
            f"SELECT s.directory_id, s.rotation_base FROM segments s WHERE {rotated} AND s.team_id = ?"
            " AND s.class_id = ? GROUP BY s.directory_id, s.rotation_base HAVING count(*) > ?"
            " ORDER BY s.directory_id, s.rotation_base"
        )
        out = (
            f"SELECT s.id FROM segments s WHERE {rotated} AND s.team_id = ? AND s.class_id = ? AND s.directory_id = ?"
            " AND s.rotation_base = ? AND s.last_write_ns IS NOT NULL ORDER BY s.last_write_ns DESC, s.id DESC"
        )
        ids = array("q")
        for directory_id, base in self._fetch(full, (*self._ids(pair), keep)):
            rows = self._fetch(out, (*self._ids(pair), directory_id, base))
            ids.extend(row[0] for row in rows[keep:])
        wanted = f"{_BY_SEGMENT} WHERE s.id IN ({{values}}) AND s.last_write_ns > ?"
        with self._catalog.read() as conn:
            found = list(map(self._candidate, select_in(conn, wanted, ids, after=(after_ns,))))
        return iter(sorted(found, key=lambda candidate: (candidate.last_write_ns or 0, candidate.id)))

    def repeated_paths(self, archive_ids: Sequence[int]) -> frozenset[int]:
        if not self._any_repeated(archive_ids):
            return frozenset()
        owner: dict[tuple[Any, ...], int] = {}
        repeated: set[int] = set()
        rank = {archive_id: position for position, archive_id in enumerate(archive_ids)}
        with self._catalog.read() as conn:
            rows = sorted(select_in(conn, _PATHS, archive_ids), key=lambda row: rank[row[0]])
        for row in rows:
            if owner.setdefault(tuple(row[1:]), row[0]) != row[0]:
                repeated.add(row[0])
        return frozenset(repeated)

    def _any_repeated(self, archive_ids: Sequence[int]) -> bool:
        """The common answer is no, and the database finds it without handing out a row."""
        if len(archive_ids) > CHUNK:
            return True
        marks = ", ".join("?" * len(archive_ids))
        sql = (
            f"SELECT 1 FROM segments s WHERE s.archive_id IN ({marks})"
            " GROUP BY s.place_id, s.directory_id, s.name HAVING count(*) > 1 LIMIT 1"
        )
        return bool(self._fetch(sql, tuple(archive_ids)))

    # --- ends of retention --------------------------------------------------------------------------------------

    def iter_expiring(
        self, pair: TeamClass, *, write_until_ns: int, job_until_ns: int | None, with_originals: bool
    ) -> Iterator[Candidate]:
        live = "s.marked = 0 AND s.tier IS NOT NULL AND s.last_write_ns IS NOT NULL"
        if not with_originals:
            live += " AND s.archive_id IS NOT NULL"
        if job_until_ns is not None:
            yield from self._expiring_by_job(pair, live, job_until_ns)
        sql = f"{_BY_SEGMENT} WHERE {live} AND s.team_id = ? AND s.class_id = ?"
        values: tuple[Any, ...] = self._ids(pair)
        if job_until_ns is not None:
            sql, values = f"{sql} AND j.last_write_ns > ?", (*values, job_until_ns)
        rows = self._pages(sql, values, "s.last_write_ns", "s.id", 12, None, write_until_ns)
        yield from map(self._candidate, rows)

    def _expiring_by_job(self, pair: TeamClass, live: str, job_until_ns: int) -> Iterator[Candidate]:
        team_id, class_id = self._ids(pair)
        jobs = self._fetch(
            "SELECT j.id FROM jobs j WHERE j.team_id = ? AND j.last_write_ns <= ? AND EXISTS (SELECT 1 FROM segments s"
            " WHERE s.job_id = j.id AND s.class_id = ? AND s.marked = 0 AND s.tier IS NOT NULL) ORDER BY j.id",
            (team_id, job_until_ns, class_id),
        )
        sql = f"{_BY_SEGMENT} WHERE {live} AND s.job_id = ? AND s.class_id = ?"
        for job_id in array("q", (row[0] for row in jobs)):
            yield from map(self._candidate, self._pages_by_id(sql, (job_id, class_id), "s.id"))

    # --- marks --------------------------------------------------------------------------------------------------

    def iter_doubtful_marks(
        self, *, policy_digest: str, now_ns: int, jobs: Sequence[tuple[TeamClass, int]]
    ) -> Iterator[Candidate]:
        over = f"{_BY_MARK} WHERE s.marked = 1"
        rows = self._pages(over, (), "m.purge_after_ns", "m.segment_id", 27, None, now_ns)
        yield from map(self._candidate, rows)
        if self._has_marks_of_another_policy(policy_digest):
            other = f"{_BY_MARK} WHERE m.policy_digest <> ? AND m.purge_after_ns > ?"
            yield from map(self._candidate, self._pages_by_id(other, (policy_digest, now_ns), "m.segment_id"))
        if self._fetch("SELECT 1 FROM hold_members LIMIT 1", ()):
            held = f"{_BY_MARK} WHERE m.policy_digest = ? AND m.purge_after_ns > ? AND {IS_HELD}"
            yield from map(self._candidate, self._pages_by_id(held, (policy_digest, now_ns), "m.segment_id"))
        for pair, after_ns in jobs:
            yield from self._marks_of_jobs(pair, after_ns, policy_digest, now_ns)

    def _has_marks_of_another_policy(self, digest: str) -> bool:
        # Two ranges of an index instead of one inequality, which would read every mark.
        other = "EXISTS (SELECT 1 FROM marks WHERE policy_digest {} ?)"
        sql = f"SELECT {other.format('<')} OR {other.format('>')}"
        return bool(self._fetch(sql, (digest, digest))[0][0])

    def _marks_of_jobs(self, pair: TeamClass, after_ns: int, digest: str, now_ns: int) -> Iterator[Candidate]:
        team_id, class_id = self._ids(pair)
        jobs = self._fetch(
            "SELECT j.id FROM jobs j WHERE j.team_id = ? AND j.last_write_ns > ? AND EXISTS (SELECT 1 FROM segments s"
            " WHERE s.job_id = j.id AND s.marked = 1) ORDER BY j.id",
            (team_id, after_ns),
        )
        sql = (
            f"{_BY_SEGMENT} WHERE s.job_id = ? AND s.marked = 1 AND s.class_id = ?"
            f" AND m.policy_digest = ? AND m.purge_after_ns > ? AND NOT {IS_HELD}"
        )
        for (job_id,) in jobs:
            yield from map(self._candidate, self._pages_by_id(sql, (job_id, class_id, digest, now_ns), "s.id"))

    def iter_marked_originals(self, *, now_ns: int) -> Iterator[Candidate]:
        sql = f"{_BY_MARK} WHERE s.archive_id IS NULL AND s.tier IS NOT NULL"
        rows = self._pages(sql, (), "m.purge_after_ns", "m.segment_id", 27, None, now_ns)
        return map(self._candidate, rows)

    def iter_marked_archives(self, *, now_ns: int) -> Iterator[ArchiveMarks]:
        ids, members = self._marked_archive_ids(now_ns)
        start = 0
        while start < len(ids):
            end, count = start + 1, members[start]
            while end < len(ids) and end - start < CHUNK and count + members[end] <= MAX_MEMBERS:
                count += members[end]
                end += 1
            yield from self._archive_marks(ids[start:end])
            start = end

    def _marked_archive_ids(self, now_ns: int) -> tuple[array[int], array[int]]:
        """Ids in order and their numbers of members: 16 bytes for each archive, whatever its size."""
        ids, members = array("q"), array("q")
        sql = (
            "SELECT a.id, a.live_members FROM marks m CROSS JOIN segments s ON s.id = m.segment_id"
            " CROSS JOIN archives a ON a.id = s.archive_id"
            " JOIN teams t ON t.id = a.team_id JOIN classes c ON c.id = a.class_id"
            " WHERE m.purge_after_ns <= ? AND a.state IN ('live', 'quarantined')"
            " GROUP BY t.name, c.name, a.day, a.id, a.live_members ORDER BY t.name, c.name, a.day, a.id"
        )
        with self._catalog.read() as conn:
            for row in conn.exec_driver_sql(bind(conn, sql), (now_ns,)):
                ids.append(row[0])
                members.append(row[1])
        return ids, members

    def _archive_marks(self, ids: Sequence[int]) -> Iterator[ArchiveMarks]:
        found: dict[int, list[Candidate]] = {archive_id: [] for archive_id in ids}
        with self._catalog.read() as conn:
            archives = {row[0]: row for row in select_in(conn, f"{_ARCHIVE} WHERE a.id IN ({{values}})", ids)}
            rows: list[Any] = list(select_in(conn, f"{_BY_SEGMENT} WHERE s.archive_id IN ({{values}})", ids))
        for row in sorted(rows, key=lambda row: row[0]):
            found[row[21]].append(self._candidate(row))
        for archive_id in ids:
            yield ArchiveMarks(self._archive(archives[archive_id]), found[archive_id])

    def iter_returned(self, *, now_ns: int) -> Iterator[Candidate]:
        sql = (
            f"{_BY_SEGMENT} WHERE s.stay_until_ns IS NOT NULL AND s.stay_until_ns <= ? AND s.original = 'settled'"
            " AND s.archive_id IS NOT NULL"
        )
        rows = self._pages(sql, (now_ns,), "s.place_id", "s.id", 1, None, _HIGHEST)
        return map(self._candidate, rows)

    def iter_copied(self, pair: TeamClass, *, after_ns: int | None, until_ns: int) -> Iterator[Candidate]:
        sql = (
            f"{_BY_SEGMENT} WHERE s.original = 'settled' AND s.archive_id IS NOT NULL AND s.stay_until_ns IS NULL"
            " AND s.team_id = ? AND s.class_id = ?"
        )
        rows = self._pages(sql, self._ids(pair), "s.last_write_ns", "s.id", 12, after_ns, until_ns)
        return map(self._candidate, rows)

    def iter_unextracted(self, pair: TeamClass, *, now_ns: int) -> Iterator[Unextracted]:
        sql = (
            "SELECT s.archive_id, count(*), sum(s.size_bytes) FROM segments s WHERE s.archive_id IS NOT NULL"
            " AND s.error_blocks IS NULL AND s.team_id = ? AND s.class_id = ? AND s.archive_id > ?"
            " AND (s.set_aside_until_ns IS NULL OR s.set_aside_until_ns <= ?)"
            " GROUP BY s.archive_id ORDER BY s.archive_id LIMIT ?"
        )
        after = _LOWEST
        while True:
            rows = self._fetch(sql, (*self._ids(pair), after, now_ns, self._page))
            with self._catalog.read() as conn:
                live = f"{_ARCHIVE} WHERE a.state = 'live' AND a.id IN ({{values}})"
                archives = {row[0]: row for row in select_in(conn, live, [row[0] for row in rows])}
            for archive_id, segments, logical_bytes in rows:
                if archive_id in archives:
                    yield Unextracted(self._archive(archives[archive_id]), segments, int(logical_bytes))
            if len(rows) < self._page:
                return
            after = rows[-1][0]

    def iter_members(self, archive_ids: Sequence[int]) -> Iterator[ArchiveMarks]:
        for some in chunks(list(archive_ids), CHUNK // 4):
            yield from self._archive_marks(some)

    # --- sums ---------------------------------------------------------------------------------------------------

    def open_usage(self, cutoffs: Sequence[tuple[TeamClass, int]]) -> Iterator[tuple[TeamClass, Usage]]:
        # Open originals are few beside the rest: one pass over their own index for each 150 pairs.
        for some in chunks(sorted(cutoffs), CHUNK // 3 - 16):
            listed = ", ".join(["(?, ?, ?)"] * len(some))
            sql = (
                f"WITH cutoffs (team_id, class_id, until_ns) AS (VALUES {listed})"
                " SELECT s.team_id, s.class_id, count(*), sum(s.size_bytes), sum(s.allocated_bytes)"
                " FROM segments s CROSS JOIN cutoffs c ON c.team_id = s.team_id AND c.class_id = s.class_id"
                " WHERE s.original = 'open' AND s.archive_id IS NULL AND s.marked = 0"
                " AND s.last_write_ns <= c.until_ns GROUP BY s.team_id, s.class_id"
            )
            values = [value for pair, until_ns in some for value in (*self._ids(pair), until_ns)]
            found = {(row[0], row[1]): _usage(row[2:]) for row in self._fetch(sql, tuple(values))}
            for pair, _ in some:
                if usage := found.get(self._ids(pair)):
                    yield pair, usage

    def unknown_age_usage(self, pair: TeamClass) -> Iterator[tuple[TierName, Usage]]:
        sql = (
            "SELECT s.tier, count(*), sum(s.size_bytes),"
            " sum(CASE WHEN s.archive_id IS NULL THEN s.allocated_bytes ELSE s.stored_bytes END) FROM segments s"
            " WHERE s.marked = 0 AND s.tier IS NOT NULL AND s.team_id = ? AND s.class_id = ?"
            " AND s.last_write_ns IS NULL GROUP BY s.tier"
        )
        yield from _by_tier(self._fetch(sql, self._ids(pair)))

    def usage(self, pair: TeamClass, *, before_day: int | None) -> Iterator[tuple[TierName, Usage]]:
        sql = (
            "SELECT r.tier, sum(r.segments), sum(r.logical_bytes), sum(r.stored_bytes) FROM rollups r"
            " WHERE r.team_id = ? AND r.class_id = ? AND r.day < ? GROUP BY r.tier"
        )
        before = _HIGHEST if before_day is None else before_day
        yield from _by_tier(self._fetch(sql, (*self._ids(pair), before)))

    # --- pages --------------------------------------------------------------------------------------------------

    def _pages(
        self,
        sql: str,
        values: tuple[Any, ...],
        column: str,
        key: str,
        position: int,
        after: int | None,
        until: int,
    ) -> Iterator[Sequence[Any]]:
        """Rows with ``after`` < column ≤ ``until`` by column, then key. ``position`` is the column's in a row; the key
        is the first.

        Two statements rather than one comparison of pairs: with a million files of one instant (an unpacked tree)
        SQLite would walk from the first of them again for each page.
        """
        at = _LOWEST if after is None else after
        ahead = f"{sql} AND {column} > ? AND {column} <= ? ORDER BY {column}, {key} LIMIT ?"
        level = f"{sql} AND {column} = ?"
        while True:
            rows = self._fetch(ahead, (*values, at, until, self._page))
            yield from rows
            if len(rows) < self._page:
                return
            at = rows[-1][position]
            yield from self._pages_by_id(level, (*values, at), key, after=rows[-1][0])

    def _pages_by_id(
        self, sql: str, values: tuple[Any, ...], key: str, *, after: int = _LOWEST
    ) -> Iterator[Sequence[Any]]:
        """Rows by ``key``, which is the first column."""
        sql = f"{sql} AND {key} > ? ORDER BY {key} LIMIT ?"
        while True:
            rows = self._fetch(sql, (*values, after, self._page))
            yield from rows
            if len(rows) < self._page:
                return
            after = rows[-1][0]

    def _fetch(self, sql: str, values: tuple[Any, ...]) -> Sequence[Any]:
        with self._catalog.read() as conn:
            return conn.exec_driver_sql(bind(conn, sql), values).fetchall()

    # --- rows to values -----------------------------------------------------------------------------------------

    def _names(self, table: str) -> dict[int, str]:
        return {row[0]: row[1] for row in self._fetch(f"SELECT id, name FROM {table}", ())}

    def _ids(self, pair: TeamClass) -> tuple[int, int]:
        return self._team_ids.get(pair.team, -1), self._class_ids.get(pair.class_name, -1)

    def _candidate(self, row: Sequence[Any]) -> Candidate:
        return Candidate._make((*row[:4], self._teams[row[4]], self._classes[row[5]], *row[6:]))

    def _archive(self, row: Sequence[Any]) -> DueArchive:
        return DueArchive._make((*row[:3], self._teams[row[3]], self._classes[row[4]], *row[5:13], bool(row[13])))


def _usage(row: Sequence[Any]) -> Usage:
    return Usage(segments=row[0], logical_bytes=int(row[1] or 0), stored_bytes=int(row[2] or 0))


def _by_tier(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[TierName, Usage]]:
    found = {row[0]: _usage(row[1:]) for row in rows}
    for tier in TierName:
        if tier.value in found and found[tier.value].segments:
            yield tier, found[tier.value]
