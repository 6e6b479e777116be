"""The schema's life: built for a new catalog, looked at, backed up, brought up to date.

Knows Alembic and the migrations that travel with the package. A whole upgrade is one transaction, so that one that was
killed can be repeated; foreign keys are off during it and checked before its commit (bug case B19).
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

import lifecycle
from lifecycle.catalog import sqlite, store
from lifecycle.catalog.lease import FileLock, lock_path
from lifecycle.clock import SystemClock
from lifecycle.errors import Damaged, LeaseHeld, SchemaVersionError, UsageError

if TYPE_CHECKING:
    from alembic.config import Config

UPGRADE_WAIT: Final = timedelta(minutes=2)  # for another upgrade to end; a run in progress is not waited out
_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStatus:
    url: str
    path: Path
    size_bytes: int
    free_bytes: int  # of the file, reused before it grows
    revision: str
    head: str  # of this program
    catalog_id: str
    generation: int
    rehearsal: bool
    created_ns: int
    clock_ns: int

    @property
    def is_current(self) -> bool:
        return self.revision == self.head


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReport:
    revision_before: str
    revision: str
    backup: Path | None  # None: nothing had to be done

    @property
    def changed(self) -> bool:
        return self.revision_before != self.revision


def catalog_status(url: str) -> CatalogStatus:
    """Facts of a catalog of any schema, older and newer ones too. Reads only."""
    path = store.catalog_path(url)
    store.require_file(path)
    with closing(sqlite.connect(path, read_only=True)) as connection:
        revision = _own_revision(connection, path)
        facts = {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM catalog_facts")}
        free_pages = connection.execute("PRAGMA freelist_count").fetchone()[0]
        page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
    return CatalogStatus(
        url=url,
        path=path,
        size_bytes=path.stat().st_size,
        free_bytes=free_pages * page_bytes,
        revision=revision,
        head=store.SCHEMA_REVISION,
        catalog_id=facts.get("catalog_id", ""),
        generation=int(facts.get("generation", "0")),
        rehearsal=facts.get("rehearsal") == "1",
        created_ns=int(facts.get("created_ns", "0")),
        clock_ns=int(facts.get("clock_ns", "0")),
    )


def upgrade_catalog(url: str, *, now: datetime, scripts: Path | None = None) -> UpgradeReport:
    """Bring a catalog to this program's schema, after a backup beside it. A second call finds nothing to do.

    A second upgrade at the same time waits for the first. Raises LeaseHeld while a run works on the catalog,
    SchemaVersionError when it is newer than the program, Damaged; then nothing was changed.
    ``scripts`` is another folder of migrations, for tests.
    """
    path = store.catalog_path(url)
    store.require_file(path)
    head = head_revision(scripts)
    with _nobody_else(path):
        with closing(sqlite.connect(path, read_only=False)) as connection:
            before = _own_revision(connection, path)
            if before == head:
                return UpgradeReport(revision_before=before, revision=head, backup=None)
            if not before.isdecimal() or int(before) > int(head):
                raise SchemaVersionError(
                    f"catalog {path} has schema {before}, newer than {head} of this program",
                    hint="nothing was changed; use the newer lifecycle version",
                )
            sqlite.quick_check(connection, path)
        backup = path.with_name(f"{path.name}.{before}.{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.bak")
        _back_up(path, backup, replace=True)  # of the same second and revision: a killed upgrade's
        build_schema(path, scripts=scripts)
    return UpgradeReport(revision_before=before, revision=head, backup=backup)


def backup_catalog(url: str, to: Path, *, now: datetime, is_folder: bool = False) -> Path:
    """A sound copy of the catalog as of one moment, while it is in use. Raises UsageError when ``to`` is there.

    In a directory (one that is there, or ``is_folder``, which makes it) the copy's name ends in the time, so that a
    schedule can use one command line for ever.
    """
    path = store.catalog_path(url)
    store.require_file(path)
    if is_folder:
        try:
            to.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"backup folder {to}: {error.strerror}", hint="name a folder that can be made") from error
    target = to / f"{path.name}.{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.bak" if to.is_dir() else to
    if target.exists():
        raise UsageError(f"backup {target} is there already", hint="nothing was overwritten; give another name")
    _back_up(path, target, replace=False)
    return target


def migrations_folder() -> Path:
    """``lifecycle/migrations`` of an installed wheel, else ``migrations`` of the checkout."""
    package = Path(lifecycle.__file__).parent
    inside = package / "migrations"
    return inside if (inside / "env.py").is_file() else package.parent / "migrations"


def head_revision(scripts: Path | None = None) -> str:
    """The newest revision that the migrations make."""
    from alembic.script import ScriptDirectory

    return str(ScriptDirectory.from_config(_config(None, scripts)).get_current_head())


def build_schema(path: Path, *, scripts: Path | None = None, revision: str = "head") -> None:
    """Run the migrations on a SQLite file, all in one transaction. At ``revision`` already: does nothing."""
    from alembic import command

    with _migration(path) as conn:
        command.upgrade(_config(conn, scripts), revision)


@contextmanager
def _migration(path: Path) -> Iterator[Connection]:
    """One transaction without foreign keys in force: rebuilding a table drops it, which must not reach its children."""
    raw = sqlite.connect(path, read_only=False)
    raw.execute("PRAGMA foreign_keys = OFF")
    engine = create_engine("sqlite+pysqlite://", creator=lambda: raw, poolclass=StaticPool)
    try:
        with engine.connect() as conn:
            conn.exec_driver_sql("BEGIN IMMEDIATE")
            yield conn
            broken = conn.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(3)
            if broken:
                raise Damaged(
                    f"catalog {path}: after the upgrade, rows of {', '.join(sorted({str(row[0]) for row in broken}))} "
                    "would refer to nothing",
                    hint="the upgrade was undone; report this and keep the file",
                )
            conn.commit()
    finally:
        engine.dispose()
        raw.close()


def _config(conn: Connection | None, scripts: Path | None) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts or migrations_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    return config


@contextmanager
def _nobody_else(path: Path) -> Iterator[None]:
    """No lease and no other upgrade: byte 0 first, which upgrades wait for, then every place's byte."""
    ticking = SystemClock()
    deadline = ticking.monotonic() + UPGRADE_WAIT.total_seconds()
    upgrade = FileLock(lock_path(path), start=0, length=1)
    runs = FileLock(lock_path(path), start=1, length=0)
    try:
        while not upgrade.try_take():
            if ticking.monotonic() >= deadline:
                raise LeaseHeld(f"catalog {path} is being upgraded by another process", hint="try again later")
            time.sleep(_POLL_S)
        if not runs.try_take():
            raise LeaseHeld(f"catalog {path} is in use by a run", hint="upgrade when it has ended")
        yield
    finally:
        runs.free()
        upgrade.free()


def _own_revision(connection: sqlite3.Connection, path: Path) -> str:
    if revision := store.schema_revision(connection, path):
        return revision
    raise UsageError(f"{path} is a SQLite file but not a catalog of ours", hint="check the catalog's path")


def _back_up(path: Path, target: Path, *, replace: bool) -> None:
    """Copy to a temporary name, check, then give it its name: a file of that name is always a whole backup."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
    except OSError as error:
        raise UsageError(f"backup {target} cannot be written: {error.strerror}", hint="choose another place") from error
    draft = Path(name)
    try:
        with closing(sqlite.connect(path, read_only=not sqlite.needs_rollback(path))) as source:
            sqlite.copy_database(source, draft, path)
        with closing(sqlite.connect(draft, read_only=True)) as copy:
            sqlite.quick_check(copy, draft)
        draft.chmod(path.stat().st_mode & 0o777)
        store.publish(draft, target, replace=replace)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
