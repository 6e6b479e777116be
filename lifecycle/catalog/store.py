"""The catalog: opened, read in short statements, written in one transaction at a time.

Knows connections, the schema's version and the catalog's own facts. Never knows what a segment is; never hands out a
row that outlives its connection. A commit carries the tokens of the leases it acts under (promise 4).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn
from weakref import WeakMethod, WeakSet

from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from lifecycle.catalog import sqlite
from lifecycle.errors import SchemaVersionError, StorageFull, UsageError
from lifecycle.units import to_ns

if TYPE_CHECKING:
    from lifecycle.catalog.lease import Lease

SCHEMA_REVISION: Final = "0002"  # head of migrations/; a test compares. Revisions are numbers, so that newer is known


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFacts:
    catalog_id: str
    generation: int  # grows when a catalog is restored from a backup and accepted
    rehearsal: bool  # its clock may be moved
    created_ns: int
    clock_ns: int  # the highest ``now`` of any run


class Catalog:
    """One open catalog. Safe to share between threads: writers take turns, readers have their own connection."""

    def __init__(
        self,
        path: Path,
        engine: Engine,
        *,
        url: str,
        read_only: bool,
        private: Path | None = None,
        check: sqlite.PageCheck | None = None,
    ) -> None:
        self.path = path
        self.url = url
        self.dialect = engine.dialect.name
        self.read_only = read_only
        self._engine = engine
        self._private = private  # a folder of our own that goes with ``close``
        self._check = check  # waited for before the first write
        self._turn = threading.Lock()
        self._writer: tuple[int, Connection] | None = None
        self._listeners: list[WeakMethod[Callable[[], None]]] = []
        _open.add(self)

    @contextmanager
    def read(self, *, snapshot: bool = False) -> Iterator[Connection]:
        """A connection for short reads: each statement sees what is committed then, and no lock is kept after it.

        Fetch pages, hold no cursor. ``snapshot`` makes all statements see one moment; writers wait meanwhile.
        Inside ``write`` of the same thread it is the writer's connection, which sees its changes.
        """
        if self._writer is not None and self._writer[0] == threading.get_ident():
            yield self._writer[1]
            return
        with self._engine.connect() as conn:
            if snapshot:
                conn.exec_driver_sql("BEGIN")
            yield conn

    @contextmanager
    def write(self, *leases: Lease) -> Iterator[Connection]:
        """One transaction: all of it is durable after the block, or none of it.

        The tokens of ``leases`` are checked and renewed in it. Raises LeaseLost (nothing written), CatalogBusy,
        StorageFull, Damaged. Not nested; other threads wait for their turn.
        """
        if self.read_only:
            raise UsageError(f"catalog {self.path} was opened read-only", hint="this command does not write")
        if self._writer is not None and self._writer[0] == threading.get_ident():
            raise RuntimeError("a catalog transaction inside another one of the same thread")
        if self._check is not None:
            self._check.wait()
        with self._turn, self._engine.connect() as conn:
            conn.exec_driver_sql("BEGIN IMMEDIATE")
            self._writer = (threading.get_ident(), conn)
            try:
                for lease in leases:
                    lease.renew(conn)
                yield conn
                conn.commit()
            except BaseException:
                conn.rollback()
                self._forget()
                raise
            finally:
                self._writer = None

    def on_rollback(self, forget: Callable[[], None]) -> None:
        """Call a bound method after each rolled-back transaction, as long as its object lives."""
        self._listeners.append(WeakMethod(forget))

    def _forget(self) -> None:
        for listener in self._listeners:
            if forget := listener():
                forget()
        self._listeners = [listener for listener in self._listeners if listener() is not None]

    def facts(self) -> CatalogFacts:
        with self.read() as conn:
            rows = {str(key): str(value) for key, value in conn.exec_driver_sql("SELECT key, value FROM catalog_facts")}
        try:
            return CatalogFacts(
                catalog_id=rows["catalog_id"],
                generation=int(rows["generation"]),
                rehearsal=rows["rehearsal"] == "1",
                created_ns=int(rows["created_ns"]),
                clock_ns=int(rows["clock_ns"]),
            )
        except (KeyError, ValueError) as error:
            raise sqlite.damaged(self.path, f"its own facts are missing or wrong: {error}") from error

    def set_fact(self, conn: Connection, key: str, value: str) -> None:
        conn.exec_driver_sql(
            "INSERT INTO catalog_facts (key, value) VALUES (?, ?) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def check(self) -> None:
        """Look at every page of the file, some seconds per GB. Raises Damaged."""
        with closing(sqlite.connect(self.path, read_only=True)) as connection:
            sqlite.quick_check(connection, self.path)

    def leave_to_parent(self) -> None:
        """In a forked child: forget the connections without closing them, and open new ones when asked to."""
        _inherited.append(self._engine.pool)
        self._engine.dispose(close=False)
        self._writer, self._turn, self._private, self._check = None, threading.Lock(), None, None

    def close(self) -> None:
        """Free the connections and, for a private copy, its files. A second call does nothing."""
        if self._check is not None:
            self._check.join()
        self._engine.dispose()
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
            self._private = None

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


_open: WeakSet[Catalog] = WeakSet()
_inherited: list[object] = []  # kept, since closing an inherited SQLite connection would undo the parent's transaction


def _after_fork() -> None:
    for catalog in list(_open):
        catalog.leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)


def open_catalog(
    url: str, *, read_only: bool = False, checks_aside: bool = False, mountinfo: Path = sqlite.MOUNTINFO
) -> Catalog:
    """An existing catalog of this program's schema. Read-only leaves nothing behind, and needs no write permission.

    Whoever may write has every page of a small one looked at: before this returns, or, with ``checks_aside``, beside
    what is done until the first write, which then raises Damaged. Raises UsageError (missing, not ours, network file
    system), SchemaVersionError, Damaged.
    """
    path = catalog_path(url)
    sqlite.refuse_network(path, mountinfo)
    require_file(path)
    if not read_only:
        with closing(sqlite.connect(path, read_only=False)) as connection:
            _require_schema(connection, path)
        check = sqlite.PageCheck(path) if path.stat().st_size <= sqlite.QUICK_CHECK_BYTES else None
        if check is not None and not checks_aside:
            check.wait()
        return Catalog(path, _engine(path, read_only=False), url=url, read_only=False, check=check)
    if sqlite.is_wal(path):
        raise UsageError(
            f"catalog {path} is in WAL mode, which a reader cannot open without leaving files beside it",
            hint="any command that writes, as lifecycle scan, puts it back into rollback mode",
        )
    if sqlite.needs_rollback(path):
        return _recovered_copy(path, url)
    with closing(sqlite.connect(path, read_only=True)) as connection:
        _require_schema(connection, path)
    return Catalog(path, _engine(path, read_only=True), url=url, read_only=True)


def create_catalog(url: str, *, now: datetime, rehearsal: bool = False, mountinfo: Path = sqlite.MOUNTINFO) -> Catalog:
    """A new, empty catalog, made by the migrations and put under its name whole. Raises UsageError if one is there."""
    from lifecycle.catalog.upgrade import build_schema

    path = catalog_path(url)
    sqlite.refuse_network(path, mountinfo)
    if path.exists():
        _refuse_existing(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise UsageError(f"catalog {path} cannot be created: {error.strerror}", hint="choose another place") from error
    try:
        new = draft / path.name
        sqlite.create_file(new)
        build_schema(new)
        with closing(sqlite.connect(new, read_only=False)) as connection:
            _write_first_facts(connection, now, rehearsal=rehearsal)
        publish(new, path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return open_catalog(url, mountinfo=mountinfo)


def copy_for_preview(url: str | None, *, now: datetime) -> Catalog:
    """A private temporary copy of a catalog, or an empty one for None; ``close`` deletes it. The original is only read.

    Durability is off: nobody needs the copy after a crash.
    """
    private = _private_folder("lifecycle-preview-")
    try:
        copy = private / "catalog.db"
        if url is None:
            _create_bare(copy, now)
        else:
            with (
                open_catalog(url, read_only=True) as original,
                closing(sqlite.connect(original.path, read_only=True)) as source,
            ):
                sqlite.copy_database(source, copy, original.path)
        engine = _engine(copy, read_only=False, durable=False)
        return Catalog(copy, engine, url=f"sqlite:///{copy}", read_only=False, private=private)
    except BaseException:
        shutil.rmtree(private, ignore_errors=True)
        raise


def catalog_path(url: str) -> Path:
    """The file of a ``sqlite:///`` URL. Raises UsageError for anything else."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UsageError(
            f"catalog {url!r} is not a URL", hint="write sqlite:////var/lib/lifecycle/catalog.db"
        ) from None
    if parsed.get_backend_name() != "sqlite":
        raise UsageError(f"catalog {parsed!r}: {parsed.get_backend_name()} is not yet there", hint="use sqlite:///PATH")
    if not parsed.database or parsed.database == ":memory:":
        raise UsageError(f"catalog {url!r} names no file", hint="write sqlite:////var/lib/lifecycle/catalog.db")
    return Path(parsed.database).absolute()


def schema_revision(connection: sqlite3.Connection, path: Path) -> str:
    """The schema's revision, ``""`` when the file is not a catalog at all. Raises Damaged."""
    try:
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if found else None
    except sqlite3.Error as error:
        raise sqlite.translate(error, path) or error from error
    if found and (row is None or row[0] is None):
        raise sqlite.damaged(path, "its schema's revision is gone")
    return str(row[0]) if row else ""


def require_file(path: Path) -> None:
    """Raises UsageError when there is no file to open as a catalog."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise UsageError(f"catalog {path} is not there", hint="make one: lifecycle init") from None
    except OSError as error:
        raise UsageError(f"catalog {path} cannot be opened: {error.strerror}", hint="check its permissions") from error
    if not path.is_file() or size == 0:
        raise UsageError(f"catalog {path} is not a catalog but {'an empty file' if path.is_file() else 'no file'}",
                         hint="check the catalog's path in platform.yaml")  # fmt: skip


def _require_schema(connection: sqlite3.Connection, path: Path) -> None:
    found = schema_revision(connection, path)
    if found == SCHEMA_REVISION:
        return
    if not found:
        raise UsageError(
            f"{path} is a SQLite file but not a catalog of ours", hint="check the catalog's path in platform.yaml"
        )
    if not found.isdecimal() or int(found) > int(SCHEMA_REVISION):
        raise SchemaVersionError(
            f"catalog {path} has schema {found}, newer than {SCHEMA_REVISION} of this program",
            hint="use the lifecycle version that upgraded it, or a newer one",
        )
    raise SchemaVersionError(
        f"catalog {path} has schema {found}, this program needs {SCHEMA_REVISION}",
        hint="run: lifecycle catalog upgrade",
    )


def _refuse_existing(path: Path) -> NoReturn:
    raise UsageError(f"{path} is there already", hint="nothing was changed; lifecycle catalog status shows it")


def _engine(path: Path, *, read_only: bool, durable: bool = True) -> Engine:
    def creator() -> sqlite3.Connection:
        connection = sqlite.connect(path, read_only=read_only)
        if not durable:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = MEMORY")
        return connection

    engine = create_engine("sqlite+pysqlite://", creator=creator, poolclass=QueuePool, pool_size=4, max_overflow=28)

    @event.listens_for(engine, "handle_error")
    def translate(context: ExceptionContext) -> None:
        if error := sqlite.translate(context.original_exception, path):
            raise error from context.original_exception

    return engine


def _recovered_copy(path: Path, url: str) -> Catalog:
    """A reader must change nothing, so the half-written transaction is undone in a private copy of both files."""
    private = _private_folder("lifecycle-read-")
    try:
        copy = private / path.name
        try:
            shutil.copyfile(path, copy)
            with contextlib.suppress(FileNotFoundError):  # a writer has just put it right
                shutil.copyfile(f"{path}-journal", f"{copy}-journal")
        except OSError as error:
            raise _no_room(private, error) from error
        with closing(sqlite.connect(copy, read_only=False)) as connection:
            _require_schema(connection, path)
        return Catalog(copy, _engine(copy, read_only=True), url=url, read_only=True, private=private)
    except BaseException:
        shutil.rmtree(private, ignore_errors=True)
        raise


def _private_folder(prefix: str) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        raise _no_room(Path(tempfile.gettempdir()), error) from error


def _no_room(folder: Path, error: OSError) -> StorageFull:
    return StorageFull(
        f"a private copy of the catalog cannot be made in {folder}: {error.strerror}",
        hint="set TMPDIR to a folder with some space",
    )


def _create_bare(path: Path, now: datetime) -> None:
    """Without the migrations: they take longer than the whole preview of a small tree."""
    from lifecycle.catalog.tables import metadata

    sqlite.create_file(path)
    engine = _engine(path, read_only=False, durable=False)
    try:
        with engine.connect() as conn:
            conn.exec_driver_sql("BEGIN")
            metadata.create_all(conn)
            conn.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
            conn.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (SCHEMA_REVISION,))
            conn.commit()
    finally:
        engine.dispose()
    with closing(sqlite.connect(path, read_only=False)) as connection:
        _write_first_facts(connection, now, rehearsal=True)


def _write_first_facts(connection: sqlite3.Connection, now: datetime, *, rehearsal: bool) -> None:
    facts = {
        "catalog_id": uuid.uuid4().hex,
        "generation": "1",
        "rehearsal": str(int(rehearsal)),
        "created_ns": str(to_ns(now)),
        "clock_ns": "0",
    }
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO catalog_facts (key, value) VALUES (?, ?)", facts.items())
    connection.execute("COMMIT")


def publish(new: Path, path: Path, *, replace: bool = False) -> None:
    """Give a finished file its name durably, without replacing another unless asked to."""
    if replace:
        new.replace(path)
    else:
        try:
            os.link(new, path)
        except FileExistsError:
            _refuse_existing(path)
        except OSError:  # no hard links here
            new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
