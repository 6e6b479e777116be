"""Writes what a scan saw: one page of new, changed, moved and replaced files, in one transaction.

Knows the order in which rows can change without two files ever having one name. Never reads a file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, insert_rows, insert_rows_returning_ids, select_in, update_rows
from lifecycle.catalog.companions import forget_error_blocks
from lifecycle.catalog.copies import recount_archives
from lifecycle.catalog.events import append_event, members_digest
from lifecycle.catalog.interning import Interner, render_extra
from lifecycle.catalog.lease import Lease
from lifecycle.catalog.scanning import FolderRef, KnownFile, MissingFile, OpenFile, ScanPage, Sighting
from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import RollupDeltas
from lifecycle.model import Labels, Original, TierName
from lifecycle.policy.layouts import Claim
from lifecycle.units import day_of_ns

_HOT: Final = TierName.HOT.value
_LABEL_LIMIT: Final = 50_000  # cached label sets; a full cache starts anew, so that memory stays flat
_BELONGS: Final = (Original.OPEN.value, Original.SETTLED.value, Original.MISSING.value)

_SEEN: Final = (
    "inode", "size_bytes", "allocated_bytes", "mtime_ns", "ctime_ns", "mode", "uid", "gid", "nlink", "content",
    "fingerprint", "fingerprint_size", "last_write_ns", "day", "original",
)  # fmt: skip
_PLACED: Final = (
    "directory_id", "name", "team_id", "class_id", "job_id", "labels_id", "rule_id", "layout", "rotation_base",
)  # fmt: skip
_NEW: Final = (*_PLACED, *_SEEN, "place_id", "first_seen_ns", "tier")
_BACK: Final = ("missing_since_ns", "missing_scans", "tier")
_BACK_VALUES: Final = (None, 0, _HOT)


class ScanWriter:
    """Writes pages for one scan of one place, under its lease; without one only into a private copy."""

    def __init__(self, catalog: Catalog, place_id: int, *, now_ns: int, run_id: int, lease: Lease | None) -> None:
        self._catalog = catalog
        self._place_id = place_id
        self._now_ns = now_ns
        self._run_id = run_id
        self.leases: tuple[Lease, ...] = () if lease is None else (lease,)
        self._interner = Interner(catalog)
        self._labels = _LabelIds(catalog)

    def write(self, page: ScanPage) -> None:
        """One page, whole or not at all. Raises LeaseLost, StorageFull, CatalogBusy, Damaged."""
        if not len(page):
            return
        with self._catalog.write(*self.leases) as conn:
            deltas = RollupDeltas()
            jobs: dict[int, int] = {}
            self._make_folders(conn, page)
            self._drop_copies(conn, page.surplus, deltas)
            self._replace(conn, page.replaced, deltas)
            placed = self._place(conn, [(seen, claim) for _, seen, claim in page.moved] + page.new, jobs)
            self._move(conn, page.moved, placed, deltas)
            self._change(conn, page.changed, deltas, jobs)
            self._insert(conn, page.new, placed[len(page.moved) :], deltas)
            _record_folders(conn, page)
            _record_jobs(conn, jobs)
            deltas.apply(conn)

    def settle(self, files: Sequence[tuple[OpenFile, int]]) -> int:
        """Files that are quiet and have no writer, with the bytes they occupy now. How many that were still open."""
        if not files:
            return 0
        with self._catalog.write(*self.leases) as conn:
            deltas = RollupDeltas()
            for file, allocated in files:
                if allocated != file.allocated_bytes:
                    deltas.add(file.team_id, file.class_id, _HOT, file.day, 0, 0, allocated - file.allocated_bytes)
            sql = "UPDATE segments SET original = 'settled', allocated_bytes = ? WHERE id = ? AND original = 'open'"
            rows = [(allocated, file.id) for file, allocated in files]
            changed = conn.exec_driver_sql(bind(conn, sql), rows).rowcount
            deltas.apply(conn)
        return changed

    def learn_ages(self, judge: Callable[[int, int], int | None]) -> int:
        """Give originals of unknown age the last write that ``judge`` makes of (mtime, first seen) by now: a time that
        lay ahead comes true one day. How many have an age since."""
        learnt = [
            (file, last_write_ns)
            for file in _ageless(self._catalog, self._place_id)
            if (last_write_ns := judge(file.mtime_ns, file.first_seen_ns)) is not None
        ]
        if not learnt:
            return 0
        with self._catalog.write(*self.leases) as conn:
            deltas, jobs, values = RollupDeltas(), dict[int, int](), []
            for file, last_write_ns in learnt:
                day = day_of_ns(last_write_ns)
                sums = (file.size_bytes, file.allocated_bytes)
                deltas.add(file.team_id, file.class_id, _HOT, file.day, -1, -sums[0], -sums[1])
                deltas.add(file.team_id, file.class_id, _HOT, day, 1, *sums)
                jobs[file.job_id] = max(jobs.get(file.job_id, 0), last_write_ns)
                values.append((last_write_ns, day, file.id))
            update_rows(conn, "segments", ("id",), ("last_write_ns", "day"), values)
            _record_jobs(conn, jobs)
            deltas.apply(conn)
        return len(learnt)

    def count_missing(self, conn: Connection, files: Sequence[MissingFile]) -> None:
        """One more complete scan has not seen them."""
        update_rows(
            conn, "segments", ("id",), ("missing_scans",), [(file.missing_scans + 1, file.id) for file in files]
        )

    def lose(self, conn: Connection, files: Sequence[MissingFile]) -> None:
        """Files missed for long enough: an event, off the usage of hot, and nothing else (promise 5)."""
        if not files:
            return
        deltas = RollupDeltas()
        for file in files:
            deltas.add(file.team_id, file.class_id, _HOT, file.day, -1, -file.size_bytes, -file.allocated_bytes)
        _leave(conn, Original.LOST, [file.id for file in files])
        deltas.apply(conn)
        body = {
            "segments": len(files),
            "bytes": sum(file.size_bytes for file in files),
            "digest": members_digest((file.id, file.directory, file.name, file.size_bytes) for file in files),
            "ids": [file.id for file in files],
        }
        append_event(conn, place_id=self._place_id, at_ns=self._now_ns, kind="lost", body=body, run_id=self._run_id)

    def _drop_copies(self, conn: Connection, files: Sequence[KnownFile], deltas: RollupDeltas) -> None:
        """Copies that were made early and are not their originals' any more: not counted, searched or restored."""
        if not files:
            return
        ids = [file.id for file in files]
        rows: list[Any] = list(select_in(conn, _STORED, ids))
        for row in rows:
            deltas.add(row[1], row[2], row[3], row[4], -1, -row[5], -row[6])
        columns = ("digest", "archive_id", "archive_offset", "stored_bytes", "error_blocks")
        update_rows(conn, "segments", ("id",), columns, [(None, None, None, 0, None, number) for number in ids])
        recount_archives(conn, {row[7] for row in rows})
        body = {"segments": len(rows), "bytes": sum(row[6] for row in rows), "ids": sorted(ids)}
        append_event(conn, place_id=self._place_id, at_ns=self._now_ns, kind="surplus", body=body, run_id=self._run_id)

    def _make_folders(self, conn: Connection, page: ScanPage) -> None:
        refs: dict[bytes, FolderRef] = {}
        seen = [row[0].folder for row in page.new] + [row[1].folder for row in page.moved]
        for ref in (*seen, *(state.folder for state in page.folders)):
            if ref.id is None:
                refs[ref.path] = ref
        ids = insert_rows_returning_ids(
            conn, "directories", ("place_id", "path"), [(self._place_id, path) for path in refs]
        )
        for ref, number in zip(refs.values(), ids, strict=True):
            ref.id = number

    def _place(
        self, conn: Connection, rows: Sequence[tuple[Sighting, Claim]], jobs: dict[int, int]
    ) -> list[tuple[Any, ...]]:
        """Values of ``_PLACED`` for each row, everything named by its number."""
        interner = self._interner
        owners = []
        for seen, claim in rows:
            team = interner.team(conn, claim.labels.team)
            job = interner.job(conn, team, claim.labels.job)
            owners.append((team, job))
            if seen.last_write_ns is not None and seen.last_write_ns > jobs.get(job, 0):
                jobs[job] = seen.last_write_ns
        labels = self._labels.of(conn, [(job, claim.labels) for (_, job), (_, claim) in zip(owners, rows, strict=True)])
        return [
            (
                seen.folder.id, seen.name, team, interner.class_(conn, claim.class_name), job, label,
                interner.rule(conn, claim.class_rule), claim.layout, claim.rotation_base,
            )
            for (seen, claim), (team, job), label in zip(rows, owners, labels, strict=True)
        ]  # fmt: skip

    def _insert(
        self,
        conn: Connection,
        rows: Sequence[tuple[Sighting, Claim]],
        placed: Sequence[tuple[Any, ...]],
        deltas: RollupDeltas,
    ) -> None:
        last = (self._place_id, self._now_ns, _HOT)
        values = [(*place, *_seen(seen), *last) for (seen, _), place in zip(rows, placed, strict=True)]
        insert_rows(conn, "segments", _NEW, values)
        for (seen, _), place in zip(rows, placed, strict=True):
            deltas.add(place[2], place[3], _HOT, seen.day, 1, seen.size_bytes, seen.allocated_bytes)

    def _move(
        self,
        conn: Connection,
        rows: Sequence[tuple[KnownFile, Sighting, Claim]],
        placed: Sequence[tuple[Any, ...]],
        deltas: RollupDeltas,
    ) -> None:
        """Rotations shift names in a ring: first every row leaves its name, for one that no file can have."""
        update_rows(conn, "segments", ("id",), ("name",), [(b"\x00%d" % known.id, known.id) for known, _, _ in rows])
        values = []
        for (known, seen, _), place in zip(rows, placed, strict=False):
            _take_off(deltas, known)
            deltas.add(place[2], place[3], _HOT, seen.day, 1, seen.size_bytes, seen.allocated_bytes)
            values.append((*place, *_seen(seen), *_BACK_VALUES, known.id))
        update_rows(conn, "segments", ("id",), (*_PLACED, *_SEEN, *_BACK), values)
        forget_error_blocks(conn, (known.id for known, seen, _ in rows if _is_another_content(known, seen)))

    def _change(
        self, conn: Connection, rows: Sequence[tuple[KnownFile, Sighting]], deltas: RollupDeltas, jobs: dict[int, int]
    ) -> None:
        for known, seen in rows:
            _take_off(deltas, known)
            deltas.add(known.team_id, known.class_id, _HOT, seen.day, 1, seen.size_bytes, seen.allocated_bytes)
            if seen.last_write_ns is not None and seen.last_write_ns > jobs.get(known.job_id, 0):
                jobs[known.job_id] = seen.last_write_ns
        values = [(*_seen(seen), *_BACK_VALUES, known.id) for known, seen in rows]
        update_rows(conn, "segments", ("id",), (*_SEEN, *_BACK), values)
        forget_error_blocks(conn, (known.id for known, seen in rows if _is_another_content(known, seen)))

    def _replace(self, conn: Connection, rows: Sequence[KnownFile], deltas: RollupDeltas) -> None:
        for known in rows:
            _take_off(deltas, known)
        _leave(conn, Original.REPLACED, [known.id for known in rows])


class _Ageless(NamedTuple):
    id: int
    team_id: int
    class_id: int
    job_id: int
    day: int
    mtime_ns: int
    first_seen_ns: int
    size_bytes: int
    allocated_bytes: int


def _ageless(catalog: Catalog, place_id: int) -> list[_Ageless]:
    """Originals of the place whose age is unknown. By team and class, as the index has them; they are few."""
    sql = (
        "SELECT id, team_id, class_id, job_id, day, mtime_ns, first_seen_ns, size_bytes, allocated_bytes FROM segments"
        " WHERE team_id = ? AND class_id = ? AND last_write_ns IS NULL AND marked = 0 AND tier IS NOT NULL"
        " AND place_id = ? AND archive_id IS NULL AND original IN ('open', 'settled')"
    )
    with catalog.read() as conn:
        pairs = conn.exec_driver_sql("SELECT DISTINCT team_id, class_id FROM rollups").fetchall()
        rows = [
            row
            for pair in pairs
            for row in conn.exec_driver_sql(bind(conn, sql), (pair[0], pair[1], place_id)).fetchall()
        ]
    return [_Ageless._make(row) for row in rows]


_STORED: Final = (
    "SELECT s.id, s.team_id, s.class_id, a.tier, s.day, s.size_bytes, s.stored_bytes, a.id"
    " FROM segments s JOIN archives a ON a.id = s.archive_id WHERE s.id IN ({values})"
)


def _seen(seen: Sighting) -> tuple[Any, ...]:
    """Values of ``_SEEN``: the fingerprint is over the whole file as it was seen."""
    return (*seen[2:13], seen.size_bytes, *seen[13:])


def _is_another_content(known: KnownFile, seen: Sighting) -> bool:
    return (known.size_bytes, known.mtime_ns) != (seen.size_bytes, seen.mtime_ns)


def _take_off(deltas: RollupDeltas, known: KnownFile) -> None:
    if known.original in _BELONGS:
        deltas.add(known.team_id, known.class_id, _HOT, known.day, -1, -known.size_bytes, -known.allocated_bytes)


def _leave(conn: Connection, state: Original, ids: Sequence[int]) -> None:
    """The original is no more. What has no stored copy either is in no tier, and a mark on it has nothing to purge."""
    if not ids:
        return
    rows = [(number,) for number in ids]
    sql = (
        f"UPDATE segments SET original = '{state}', missing_since_ns = NULL, "
        "tier = (SELECT a.tier FROM archives a WHERE a.id = segments.archive_id), "
        "marked = CASE WHEN archive_id IS NULL THEN 0 ELSE marked END WHERE id = ?"
    )
    conn.exec_driver_sql(bind(conn, sql), rows)
    gone = "DELETE FROM marks WHERE segment_id = ? AND (SELECT archive_id FROM segments WHERE id = segment_id) IS NULL"
    conn.exec_driver_sql(bind(conn, gone), rows)


def _record_folders(conn: Connection, page: ScanPage) -> None:
    columns = ("signature", "files", "foreign_files", "foreign_bytes", "binary_files", "binary_bytes")
    update_rows(conn, "directories", ("id",), columns, [(*state[1:], state.folder.id) for state in page.folders])


def _record_jobs(conn: Connection, jobs: dict[int, int]) -> None:
    sql = "UPDATE jobs SET last_write_ns = ? WHERE id = ? AND last_write_ns < ?"
    rows = [(newest, job, newest) for job, newest in jobs.items()]
    if rows:
        conn.exec_driver_sql(bind(conn, sql), rows)


class _LabelIds:
    """Numbers of label sets, many at once: nearly every new file of a rank has a set of its own.

    Per page one look at the sets of the jobs that are not in the cache, then one insert of what is not there.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._jobs: dict[int, dict[tuple[Any, ...], int]] = {}
        self._size = 0
        catalog.on_rollback(self.forget)

    def forget(self) -> None:
        self._jobs.clear()
        self._size = 0

    def of(self, conn: Connection, rows: Sequence[tuple[int, Labels]]) -> list[int]:
        if self._size > _LABEL_LIMIT:
            self.forget()
        self._read(conn, {job for job, _ in rows}.difference(self._jobs))
        keys = [
            (job, (said.node, said.rank, said.stream, said.attempt, render_extra(said.extra))) for job, said in rows
        ]
        fresh: defaultdict[int, dict[tuple[Any, ...], None]] = defaultdict(dict)
        for job, key in keys:
            if key not in self._jobs[job]:
                fresh[job][key] = None
        made = [(job, *key) for job, sets in fresh.items() for key in sets]
        columns = ("job_id", "node", "rank", "stream", "attempt", "extra")
        for row, number in zip(made, insert_rows_returning_ids(conn, "label_sets", columns, made), strict=True):
            self._jobs[row[0]][row[1:]] = number
        self._size += len(made)
        return [self._jobs[job][key] for job, key in keys]

    def _read(self, conn: Connection, jobs: set[int]) -> None:
        for job in jobs:
            self._jobs[job] = {}
        sql = "SELECT job_id, node, rank, stream, attempt, extra, id FROM label_sets WHERE job_id IN ({values})"
        rows: Iterable[Sequence[Any]] = select_in(conn, sql, sorted(jobs))
        for row in rows:
            self._jobs[row[0]][tuple(row[1:6])] = row[6]
            self._size += 1
