"""What a scan asks of the catalog and tells it: folders side by side with the tree, files, pages of changes.

Knows rows of directories and segments. Never a file, never when something is settled, renamed or lost. Values are named
tuples and changes are raw tuples: a first scan takes every file of the platform through here.

Reads are short and hold nothing open. Changes are gathered in a ``ScanPage`` and written whole, in one transaction,
after the I/O that found them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, select_in
from lifecycle.catalog.store import Catalog
from lifecycle.model import Original
from lifecycle.policy.layouts import Claim

_PAGE: Final = 2000
_PRESENT: Final = "original IN ('open', 'settled', 'missing')"


@dataclass(slots=True)
class FolderRef:
    """A folder of the place; ``id`` is None until a page that names it is written."""

    path: bytes
    id: int | None = None


class KnownFolder(NamedTuple):
    id: int
    path: bytes
    signature: bytes | None
    files: int
    foreign_files: int
    foreign_bytes: int
    binary_files: int
    binary_bytes: int


class KnownFile(NamedTuple):
    """A segment whose original is believed to be there (open, settled or missing)."""

    id: int
    directory_id: int
    name: bytes
    inode: int
    size_bytes: int
    allocated_bytes: int
    mtime_ns: int
    ctime_ns: int
    nlink: int
    fingerprint: bytes | None
    fingerprint_size: int
    day: int
    first_seen_ns: int
    original: str
    archive_id: int | None
    team_id: int
    class_id: int
    job_id: int
    stay_until_ns: int | None = None  # of one that a restore put there


class Sighting(NamedTuple):
    """A file as it was just seen, ready to be written."""

    folder: FolderRef
    name: bytes
    inode: int
    size_bytes: int
    allocated_bytes: int
    mtime_ns: int
    ctime_ns: int
    mode: int
    uid: int
    gid: int
    nlink: int
    content: str
    fingerprint: bytes
    last_write_ns: int | None
    day: int
    original: str


class OpenFile(NamedTuple):
    """A segment that was open and has been quiet: perhaps it is settled now."""

    id: int
    directory: bytes
    name: bytes
    inode: int
    size_bytes: int
    allocated_bytes: int
    mtime_ns: int
    ctime_ns: int
    team_id: int
    class_id: int
    day: int


class MissingFile(NamedTuple):
    id: int
    directory: bytes
    name: bytes
    size_bytes: int
    allocated_bytes: int
    missing_since_ns: int
    missing_scans: int
    team_id: int
    class_id: int
    day: int


class FolderState(NamedTuple):
    """What a scan leaves in a folder's row. ``signature`` None: look again next time."""

    folder: FolderRef
    signature: bytes | None
    files: int
    foreign_files: int
    foreign_bytes: int
    binary_files: int
    binary_bytes: int


@dataclass(slots=True)
class ScanPage:
    """Changes that were found and not yet written."""

    new: list[tuple[Sighting, Claim]] = field(default_factory=list)
    changed: list[tuple[KnownFile, Sighting]] = field(default_factory=list)
    moved: list[tuple[KnownFile, Sighting, Claim]] = field(default_factory=list)
    replaced: list[KnownFile] = field(default_factory=list)
    surplus: list[KnownFile] = field(default_factory=list)  # of changed and moved: whose stored copy is not them now
    folders: list[FolderState] = field(default_factory=list)
    taken_ids: set[int] = field(default_factory=set)  # rows that the catalog still has under a former name or inode

    def __len__(self) -> int:
        return len(self.new) + len(self.changed) + len(self.moved) + len(self.replaced) + len(self.folders)


def iter_known_folders(catalog: Catalog, place_id: int) -> Iterator[KnownFolder]:
    """All folders of a place in the order of path bytes, in pages; none that is made meanwhile."""
    sql = (
        "SELECT id, path, signature, files, foreign_files, foreign_bytes, binary_files, binary_bytes "
        f"FROM directories WHERE place_id = ? AND path {{}} ? AND id <= ? ORDER BY path LIMIT {_PAGE}"
    )
    after, test = b"", ">="
    with catalog.read() as conn:
        newest = conn.exec_driver_sql("SELECT max(id) FROM directories").scalar() or 0
    while True:
        with catalog.read() as conn:
            rows = conn.exec_driver_sql(bind(conn, sql.format(test)), (place_id, after, newest)).fetchall()
        yield from map(KnownFolder._make, rows)
        if len(rows) < _PAGE:
            return
        after, test = rows[-1][1], ">"


def known_files(conn: Connection, directory_id: int) -> list[KnownFile]:
    """The files that a folder is believed to have."""
    sql = f"SELECT {', '.join(KnownFile._fields)} FROM segments WHERE directory_id = ? AND {_PRESENT}"
    return [KnownFile._make(row) for row in conn.exec_driver_sql(bind(conn, sql), (directory_id,))]


def files_by_inode(conn: Connection, place_id: int, inodes: Iterable[int]) -> list[KnownFile]:
    """Files of the place, in whatever folder, with one of these inodes."""
    columns = ", ".join(KnownFile._fields)
    sql = f"SELECT {columns} FROM segments WHERE place_id = ? AND {_PRESENT} AND inode IN ({{values}})"
    return [KnownFile._make(row) for row in select_in(conn, sql, inodes, before=(place_id,))]


def present_ids(conn: Connection, directory_id: int) -> list[tuple[int, str]]:
    """Ids and states of the files that a folder is believed to have."""
    sql = f"SELECT id, original FROM segments WHERE directory_id = ? AND {_PRESENT}"
    return [(row[0], row[1]) for row in conn.exec_driver_sql(bind(conn, sql), (directory_id,))]


def has_files(catalog: Catalog, place_id: int) -> bool:
    """Whether any file of the place is believed to be there: on a first scan nothing can be a rename."""
    with catalog.read() as conn:
        sql = f"SELECT 1 FROM segments WHERE place_id = ? AND {_PRESENT} LIMIT 1"
        return conn.exec_driver_sql(bind(conn, sql), (place_id,)).fetchone() is not None


def count_files(conn: Connection, place_id: int, state: Original) -> int:
    """Files of the place that are open, or missing: the two states that are few and have an index of their own."""
    assert state in (Original.OPEN, Original.MISSING)
    sql = f"SELECT count(*) FROM segments WHERE place_id = ? AND original = '{state}'"
    return int(conn.exec_driver_sql(bind(conn, sql), (place_id,)).scalar_one())


def count_still_there(conn: Connection, absent: Sequence[tuple[int, int]]) -> int:
    """How many of (segment, folder) the catalog still has there: a rename may have taken some elsewhere."""
    folders = dict(absent)
    sql = f"SELECT id, directory_id FROM segments WHERE id IN ({{values}}) AND {_PRESENT}"
    rows: Iterable[Sequence[Any]] = select_in(conn, sql, folders)
    return sum(folders[row[0]] == row[1] for row in rows)


def pages_of_quiet_files(catalog: Catalog, place_id: int, quiet_since_ns: int) -> Iterator[list[OpenFile]]:
    """Open files that nobody wrote or changed after an instant, in pages. Rows may change between pages."""
    columns = (
        "s.id, d.path, s.name, s.inode, s.size_bytes, s.allocated_bytes, s.mtime_ns, s.ctime_ns, "
        "s.team_id, s.class_id, s.day"
    )
    sql = (
        f"SELECT {columns} FROM segments s JOIN directories d ON d.id = s.directory_id WHERE s.place_id = ? "
        "AND s.original = 'open' AND s.id > ? AND s.mtime_ns <= ? AND s.ctime_ns <= ? AND s.nlink = 1 "
        f"ORDER BY s.id LIMIT {_PAGE}"
    )
    after = 0
    while True:
        with catalog.read() as conn:
            values = (place_id, after, quiet_since_ns, quiet_since_ns)
            rows = conn.exec_driver_sql(bind(conn, sql), values).fetchall()
        if rows:
            yield [OpenFile._make(row) for row in rows]
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]


def pages_of_missing_files(catalog: Catalog, place_id: int) -> Iterator[list[MissingFile]]:
    """Files that earlier scans missed, in pages."""
    columns = (
        "s.id, d.path, s.name, s.size_bytes, s.allocated_bytes, coalesce(s.missing_since_ns, 0), s.missing_scans, "
        "s.team_id, s.class_id, s.day"
    )
    sql = (
        f"SELECT {columns} FROM segments s JOIN directories d ON d.id = s.directory_id "
        f"WHERE s.place_id = ? AND s.original = 'missing' AND s.id > ? ORDER BY s.id LIMIT {_PAGE}"
    )
    after = 0
    while True:
        with catalog.read() as conn:
            rows = conn.exec_driver_sql(bind(conn, sql), (place_id, after)).fetchall()
        if rows:
            yield [MissingFile._make(row) for row in rows]
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]


def set_missing(conn: Connection, absent: Sequence[tuple[int, int]], *, now_ns: int, scans: int) -> int:
    """Note that files were not seen: (segment, the folder it was missed in). How many rows that changed.

    A row that a rename has taken elsewhere meanwhile is left alone, and so is one that is missing already.
    """
    sql = (
        f"UPDATE segments SET original = '{Original.MISSING}', missing_since_ns = ?, missing_scans = ? "
        "WHERE id = ? AND directory_id = ? AND original IN ('open', 'settled')"
    )
    rows = [(now_ns, scans, segment, directory) for segment, directory in absent]
    return conn.exec_driver_sql(bind(conn, sql), rows).rowcount if rows else 0


def reopen_folder(conn: Connection, directory_id: int) -> int:
    """Files of a folder that is excluded from now on: none of them is settled, so that nothing acts on them."""
    sql = f"UPDATE segments SET original = 'open' WHERE directory_id = ? AND {_PRESENT} AND original = 'settled'"
    changed = conn.exec_driver_sql(bind(conn, sql), (directory_id,)).rowcount
    forget_folders(conn, [directory_id])
    return changed


def forget_folders(conn: Connection, directory_ids: Iterable[int]) -> None:
    """Folders whose files are gone or not looked at: should they come back, every file is compared."""
    sql = (
        "UPDATE directories SET signature = NULL, files = 0, foreign_files = 0, foreign_bytes = 0, "
        "binary_files = 0, binary_bytes = 0 WHERE id = ?"
    )
    rows = [(directory,) for directory in directory_ids]
    if rows:
        conn.exec_driver_sql(bind(conn, sql), rows)
