"""Up from zero equals the models; an upgrade backs up first, loses nothing, and can be killed or run twice at once."""

from __future__ import annotations

import multiprocessing
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from benchmarks.fill_catalog import fill
from lifecycle.catalog.lease import take_lease
from lifecycle.catalog.places import places
from lifecycle.catalog.store import SCHEMA_REVISION, create_catalog, open_catalog
from lifecycle.catalog.tables import metadata
from lifecycle.catalog.upgrade import (
    backup_catalog,
    catalog_status,
    head_revision,
    migrations_folder,
    upgrade_catalog,
)
from lifecycle.errors import Damaged, LeaseHeld, SchemaVersionError, UsageError
from tests.builders import NOON

NEXT_REVISION = f"{int(SCHEMA_REVISION) + 1:04d}"
# What a later release may have to do: rebuild a parent table (B19), and fill a new column.
NEXT = """
from __future__ import annotations
import sqlalchemy as sa
from alembic import op
revision = "{number:04d}"
down_revision = "{before:04d}"
def upgrade() -> None:
    with op.batch_alter_table("places") as batch:
        batch.add_column(sa.Column("note", sa.Text(), nullable=False, server_default="-"))
    {more}
"""


def next_release(folder: Path, more: str = "pass") -> Path:
    """The migrations with one more revision than this program has."""
    scripts = folder / "scripts"
    shutil.copytree(migrations_folder(), scripts, ignore=shutil.ignore_patterns("__pycache__"))
    number = int(NEXT_REVISION)
    (scripts / "versions" / f"{number:04d}_next.py").write_text(
        NEXT.format(number=number, before=number - 1, more=more)
    )
    return scripts


def counts(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as raw:
        names = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: raw.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "catalog.db"
    with create_catalog(f"sqlite:///{path}", now=NOON) as catalog:
        fill(catalog, 3000, now=NOON, seed=3)
    return path


@pytest.fixture
def path(filled: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copy(filled, tmp_path / "catalog.db"))


def test_up_from_zero_equals_the_models(filled: Path) -> None:
    """When this fails: the models changed, and no revision says so. Until a release, change the newest itself."""
    engine = create_engine(f"sqlite:///{filled}")
    with engine.connect() as conn:
        options = {"compare_type": True, "target_metadata": metadata}
        assert compare_metadata(MigrationContext.configure(conn, opts=options), metadata) == []
    engine.dispose()


def test_up_from_zero_gives_the_same_sql_as_the_models(filled: Path, tmp_path: Path) -> None:
    """Partial indexes, tables without rowid and the like, which a comparison of the models does not see."""
    direct = create_engine(f"sqlite:///{tmp_path / 'direct.db'}")
    metadata.create_all(direct)
    direct.dispose()

    def statements(file: Path) -> dict[str, list[str]]:
        with closing(sqlite3.connect(file)) as raw:
            rows = raw.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        return {name: _parts(sql) for name, sql in rows if name != "alembic_version"}

    assert statements(filled) == statements(tmp_path / "direct.db")


def _parts(sql: str) -> list[str]:
    """A statement's columns, constraints and head, sorted: a column that came later stands behind the constraints."""
    flat = " ".join(sql.replace('"', "").split())
    head, _, rest = flat.partition("(")
    body, _, tail = rest.rpartition(")")
    parts, depth = [""], 0
    for letter in body:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return sorted([head.strip(), tail.strip(), *(part.strip() for part in parts)])


def test_the_programs_revision_is_the_head_of_its_migrations() -> None:
    assert head_revision() == SCHEMA_REVISION


def test_an_upgrade_with_nothing_to_do_leaves_no_backup(path: Path) -> None:
    report = upgrade_catalog(f"sqlite:///{path}", now=NOON)
    assert (report.changed, report.backup) == (False, None)
    assert sorted(file.suffix for file in path.parent.iterdir()) == [".db", ".lock"]


def test_an_upgrade_loses_no_row_of_any_table(path: Path, tmp_path: Path) -> None:
    before = counts(path)
    report = upgrade_catalog(f"sqlite:///{path}", now=NOON, scripts=next_release(tmp_path))
    assert (report.revision_before, report.revision) == (SCHEMA_REVISION, NEXT_REVISION)
    assert counts(path) == before
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
        assert raw.execute("SELECT DISTINCT note FROM places").fetchall() == [("-",)]
        assert raw.execute("PRAGMA quick_check").fetchall() == [("ok",)]


def test_the_backup_made_first_is_the_catalog_as_it_was(path: Path, tmp_path: Path) -> None:
    before = counts(path)
    report = upgrade_catalog(f"sqlite:///{path}", now=NOON, scripts=next_release(tmp_path))
    assert report.backup == path.with_name(f"catalog.db.{SCHEMA_REVISION}.20260301T120000Z.bak")
    with open_catalog(f"sqlite:///{report.backup}", read_only=True):
        assert counts(report.backup) == before


def test_an_older_program_refuses_the_upgraded_catalog(path: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{path}"
    upgrade_catalog(url, now=NOON, scripts=next_release(tmp_path))
    with pytest.raises(SchemaVersionError, match="newer"):
        open_catalog(url)
    with pytest.raises(SchemaVersionError, match="newer"):
        upgrade_catalog(url, now=NOON)
    status = catalog_status(url)
    assert (status.revision, status.head, status.is_current) == (NEXT_REVISION, SCHEMA_REVISION, False)


def test_an_upgrade_that_fails_changes_nothing_and_can_be_repeated(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        upgrade_catalog(f"sqlite:///{path}", now=NOON, scripts=next_release(tmp_path, "1 / 0"))
    assert path.read_bytes() == before
    shutil.rmtree(tmp_path / "scripts")
    assert upgrade_catalog(f"sqlite:///{path}", now=NOON, scripts=next_release(tmp_path)).changed


def test_an_upgrade_that_would_leave_rows_without_their_parents_is_undone(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    scripts = next_release(tmp_path, 'op.execute("DELETE FROM teams")')
    with pytest.raises(Damaged, match="refer to nothing"):
        upgrade_catalog(f"sqlite:///{path}", now=NOON, scripts=scripts)
    assert path.read_bytes() == before


def test_a_killed_upgrade_can_be_repeated(path: Path, tmp_path: Path) -> None:
    before = counts(path)
    scripts = next_release(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    code = (
        "import sys; from pathlib import Path; from datetime import UTC, datetime\n"
        "from lifecycle.catalog.upgrade import upgrade_catalog\n"
        "upgrade_catalog(sys.argv[1], now=datetime(2026, 3, 1, 12, tzinfo=UTC), scripts=Path(sys.argv[2]))\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, f"sqlite:///{path}", str(scripts)], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    shutil.rmtree(scripts)
    assert upgrade_catalog(f"sqlite:///{path}", now=NOON, scripts=next_release(tmp_path)).changed
    assert counts(path) == before


def _upgrade(url: str, scripts: Path, start: object, found: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    report = upgrade_catalog(url, now=NOON, scripts=scripts)
    found.put((report.changed, report.backup is not None))  # type: ignore[attr-defined]


def test_of_two_upgrades_at_once_one_does_it_and_the_other_finds_it_done(path: Path, tmp_path: Path) -> None:
    scripts = next_release(tmp_path, "import time; time.sleep(0.3)")
    spawn = multiprocessing.get_context("spawn")
    start, found = spawn.Event(), spawn.SimpleQueue()
    both = [spawn.Process(target=_upgrade, args=(f"sqlite:///{path}", scripts, start, found)) for _ in range(2)]
    for process in both:
        process.start()
    start.set()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert sorted((found.get(), found.get())) == [(False, False), (True, True)]


def test_no_upgrade_while_a_run_holds_a_place(path: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{path}"
    with open_catalog(url) as catalog:
        with catalog.read() as conn:
            place = places(conn)[0]
        with take_lease(catalog, place, holder="run 7", now=NOON), pytest.raises(LeaseHeld, match="in use"):
            upgrade_catalog(url, now=NOON, scripts=next_release(tmp_path))


def test_a_damaged_catalog_is_not_upgraded(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        page = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'segments'").fetchone()[0]
        size = raw.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    before = path.read_bytes()
    with pytest.raises(Damaged):
        upgrade_catalog(f"sqlite:///{path}", now=NOON, scripts=next_release(tmp_path))
    assert path.read_bytes() == before


def test_a_backup_is_a_catalog_of_its_own_and_never_overwrites(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    made = backup_catalog(f"sqlite:///{path}", folder, now=NOON, is_folder=True)
    assert counts(made) == counts(path)
    backup_catalog(f"sqlite:///{path}", folder, now=NOON + timedelta(days=7))
    assert sorted(file.name for file in folder.iterdir()) == [
        "catalog.db.20260301T120000Z.bak",
        "catalog.db.20260308T120000Z.bak",
    ]
    with pytest.raises(UsageError, match="is there already"):
        backup_catalog(f"sqlite:///{path}", folder, now=NOON)
    with pytest.raises(UsageError, match="cannot be written"):
        backup_catalog(f"sqlite:///{path}", tmp_path / "nowhere" / "x.bak", now=NOON)


def test_a_backup_after_a_killed_writer_has_what_was_committed(path: Path, tmp_path: Path) -> None:
    before = counts(path)
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 5'); c.execute('BEGIN'); c.execute('DELETE FROM marks')\n"
        "c.execute('DELETE FROM batch_members'); c.execute('UPDATE segments SET problems = 1')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], timeout=60)
    assert path.with_name(path.name + "-journal").stat().st_size > 0
    made = backup_catalog(f"sqlite:///{path}", tmp_path / "copy.db", now=NOON)
    assert counts(made) == before
    with closing(sqlite3.connect(made)) as raw:
        assert raw.execute("SELECT max(problems) FROM segments").fetchone() == (0,)


def test_the_status_of_a_catalog_is_read_without_touching_it(path: Path) -> None:
    before = path.read_bytes()
    status = catalog_status(f"sqlite:///{path}")
    assert (status.revision, status.is_current, status.size_bytes) == (SCHEMA_REVISION, True, len(before))
    assert [file.name for file in path.parent.iterdir()] == ["catalog.db"]
    assert path.read_bytes() == before


def test_a_catalog_of_the_first_schema_is_upgraded_row_for_row_to_what_a_new_one_is(
    filled: Path, tmp_path: Path
) -> None:
    first, path = tmp_path / "first", tmp_path / "catalog.db"
    shutil.copytree(migrations_folder(), first, ignore=shutil.ignore_patterns("__pycache__"))
    for later in sorted((first / "versions").glob("0*.py"))[1:]:
        later.unlink()
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as conn:
        config = Config()
        config.set_main_option("script_location", str(first))
        config.attributes["connection"] = conn
        command.upgrade(config, "head")
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("ATTACH ? AS new", (str(filled),))
        for (table,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if table not in ("alembic_version", "sqlite_sequence"):
                columns = ", ".join(f'"{row[1]}"' for row in raw.execute(f'PRAGMA table_info("{table}")'))
                raw.execute(f'INSERT INTO main."{table}" ({columns}) SELECT {columns} FROM new."{table}"')
        raw.commit()
    engine.dispose()
    before = counts(path)
    report = upgrade_catalog(f"sqlite:///{path}", now=NOON)
    assert (report.revision_before, report.revision) == ("0001", SCHEMA_REVISION)
    after = counts(path)
    assert {table: after[table] for table in before} == before
    assert set(after) == set(counts(filled))
    with open_catalog(f"sqlite:///{path}") as catalog, catalog.read() as conn:
        assert compare_metadata(MigrationContext.configure(conn, opts={"compare_type": True}), metadata) == []
