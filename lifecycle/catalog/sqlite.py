"""SQLite under the catalog: where its file may lie, how a connection is set up, what its error codes mean.

Rollback journal, not WAL: a reader needs no write permission and leaves nothing behind, and the catalog works on a
full disk. Never knows what is in the tables.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from lifecycle.errors import CatalogBusy, Damaged, LifecycleError, StorageFull, UsageError

MOUNTINFO: Final = Path("/proc/self/mountinfo")
BUSY_TIMEOUT_S: Final = 30.0
APPLICATION_ID: Final = 0x4C434C47  # "LCLG": what `file` and a lost operator see of the file
PAGE_BYTES: Final = 8192
CACHE_KIB: Final = 64 * 1024
QUICK_CHECK_BYTES: Final = 64 * 2**20  # up to this size every page is looked at whenever a writer opens the catalog

# Locks and flushes of these are not what SQLite needs, whoever mounts them (bug case B18).
_NETWORK_TYPES: Final = frozenset({
    "9p", "afs", "beegfs", "beegfs_nodev", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "pvfs2", "quobyte", "smb", "smb2", "smb3", "smbfs",
    "virtiofs", "wekafs",
})  # fmt: skip
_NETWORK_FUSE: Final = re.compile(
    r"fuse\.(?:afp|beegfs|ceph|curlftpfs|davfs|gcsfuse|geesefs|gluster|goofys|juicefs|jfs|mfs|moosefs|nfs|quobyte|"
    r"rclone|s3|sshfs|smb|weka)"
)
_READONLY_ROLLBACK: Final = sqlite3.SQLITE_READONLY | (3 << 8)
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def file_system_type(path: Path, mountinfo: Path = MOUNTINFO) -> str:
    """The type of the file system a path lies on, ``""`` where the mount table cannot be read.

    ``path`` need not exist yet. The longest mount point above it counts, and the last one mounted there.
    """
    try:
        lines = mountinfo.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    wanted = os.path.realpath(path)
    best, found = -1, ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        parts = fields.split(" ")
        if len(parts) < 5 or not rest:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), parts[4])
        if (wanted == point or wanted.startswith(point.rstrip("/") + "/")) and len(point) >= best:
            best, found = len(point), rest.split(" ", 1)[0]
    return found


def refuse_network(path: Path, mountinfo: Path = MOUNTINFO) -> None:
    """Raises UsageError for a catalog on a file system whose locks cannot be trusted."""
    kind = file_system_type(path, mountinfo)
    if kind in _NETWORK_TYPES or _NETWORK_FUSE.match(kind):
        raise UsageError(
            f"catalog {path} lies on a network file system ({kind}): a SQLite file there can lose commits",
            hint="put it on a local disk of one host, as sqlite:////var/lib/lifecycle/catalog.db",
        )


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """A connection in autocommit mode, set up and checked. Raises what ``translate`` makes of SQLite's errors."""
    mode = "ro" if read_only else "rw"
    try:
        connection = sqlite3.connect(
            f"file:{_quote(path)}?mode={mode}",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
    except sqlite3.Error as error:
        raise translate(error, path) or error from error
    try:
        _set_up(connection, read_only=read_only)
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, path) or error from error
    except BaseException:
        connection.close()
        raise
    return connection


def _quote(path: Path) -> str:
    return "".join(chr(b) if (chr(b).isalnum() and b < 128) or b in b"/._-" else f"%{b:02X}" for b in os.fsencode(path))


def _set_up(connection: sqlite3.Connection, *, read_only: bool) -> None:
    run = connection.execute
    run(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
    run("PRAGMA foreign_keys = ON")
    run(f"PRAGMA cache_size = -{CACHE_KIB}")
    if read_only:
        run("PRAGMA query_only = ON")
        return
    run("PRAGMA synchronous = FULL")
    journal = run("PRAGMA journal_mode = DELETE").fetchone()[0]
    synchronous = run("PRAGMA synchronous").fetchone()[0]
    if journal != "delete" or synchronous != 2:
        raise UsageError(
            f"catalog cannot be made durable: journal_mode is {journal}, not delete, synchronous is {synchronous}, "
            "not 2",
            hint="end other programs that have the catalog file open, then try again",
        )


def create_file(path: Path) -> None:
    """An empty database with our page size and mark. The file must not be there."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("VACUUM")


def is_wal(path: Path) -> bool:
    """Whether somebody switched the file to WAL; a reader would then leave files beside it."""
    try:
        with path.open("rb") as file:
            return file.read(20)[18:] == b"\x02\x02"
    except OSError as error:
        raise _cannot_open(path, error.strerror or str(error)) from error


def needs_rollback(path: Path) -> bool:
    """Whether a writer was killed inside a transaction, so that a reader cannot see a sound state."""
    if not path.with_name(path.name + "-journal").exists():
        return False
    with closing(sqlite3.connect(f"file:{_quote(path)}?mode=ro", uri=True)) as connection:
        try:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.OperationalError as error:
            return error.sqlite_errorcode == _READONLY_ROLLBACK
        except sqlite3.Error:
            return False  # whoever opens it next says what it is
    return False


def quick_check(connection: sqlite3.Connection, path: Path) -> None:
    """Look at every page. Raises Damaged, with SQLite's own words for the first few faults."""
    try:
        rows = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
    except sqlite3.Error as error:
        raise translate(error, path) or error from error
    if rows != ["ok"]:
        raise damaged(path, "; ".join(" ".join(row.split()) for row in rows))


class PageCheck:
    """A look at every page in a thread of its own, which costs the program next to no time: SQLite does it without
    Python's lock, while modules are imported and trees are opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._error: LifecycleError | None = None
        self._thread = threading.Thread(target=self._run, name="catalog check", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with closing(connect(self._path, read_only=True)) as connection:
                quick_check(connection, self._path)
        except LifecycleError as error:
            self._error = error

    def join(self) -> None:
        """Until it has ended, whatever it found."""
        self._thread.join()

    def wait(self) -> None:
        """Until it has ended. Raises what it found, at every call."""
        self._thread.join()
        if self._error is not None:
            raise self._error


def copy_database(source: sqlite3.Connection, target: Path, path: Path) -> None:
    """All pages of a database, as of one moment, into a file that is empty or absent. Raises our errors."""
    try:
        with closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
    except sqlite3.Error as error:
        is_full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
        raise translate(error, target if is_full else path) or error from error


def damaged(path: Path, what: str) -> Damaged:
    return Damaged(
        f"catalog {path} is damaged: {what}",
        hint="nothing was moved or removed; keep the file, and put back a backup (lifecycle catalog backup makes them)",
    )


def translate(error: BaseException, path: Path) -> LifecycleError | None:
    """Our error for SQLite's; None for those that are faults of this program (constraints, wrong SQL)."""
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(code, int):
        return None
    make = _BY_CODE.get(code) or _BY_CODE.get(code & 0xFF)
    return make(path, str(error)) if make else None


def _busy(path: Path, text: str) -> LifecycleError:
    return CatalogBusy(
        f"catalog {path} is busy: another process kept it locked for over {BUSY_TIMEOUT_S:.0f} s",
        hint="try again when the other command is done",
    )


def _full(path: Path, text: str) -> LifecycleError:
    return StorageFull(f"catalog {path}: {text}", hint=f"free some space under {path.parent}")


def _read_only(path: Path, text: str) -> LifecycleError:
    return UsageError(f"catalog {path} cannot be written: {text}", hint=f"check the permissions of {path.parent}")


def _killed_writer(path: Path, text: str) -> LifecycleError:
    return CatalogBusy(
        f"catalog {path}: its last writer was killed in the middle of a transaction",
        hint="any command that writes, as lifecycle scan, puts it right",
    )


def _cannot_open(path: Path, text: str) -> LifecycleError:
    return UsageError(f"catalog {path} cannot be opened: {text}", hint="check the path and its permissions")


def _io_error(path: Path, text: str) -> LifecycleError:
    return LifecycleError(f"catalog {path}: {text}", hint="look at the disk and the kernel log before the next run")


_BY_CODE: Final[dict[int, Callable[[Path, str], LifecycleError]]] = {
    sqlite3.SQLITE_CORRUPT: damaged,
    sqlite3.SQLITE_NOTADB: damaged,
    sqlite3.SQLITE_BUSY: _busy,
    sqlite3.SQLITE_LOCKED: _busy,
    sqlite3.SQLITE_FULL: _full,
    _READONLY_ROLLBACK: _killed_writer,
    sqlite3.SQLITE_READONLY: _read_only,
    sqlite3.SQLITE_PERM: _cannot_open,
    sqlite3.SQLITE_CANTOPEN: _cannot_open,
    sqlite3.SQLITE_IOERR: _io_error,
}
