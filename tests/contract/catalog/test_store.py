"""Opening, refusing, reading and writing a catalog; what damage, crashes and missing permissions do to it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from lifecycle.catalog import sqlite
from lifecycle.catalog.interning import Interner
from lifecycle.catalog.store import (
    SCHEMA_REVISION,
    Catalog,
    catalog_path,
    copy_for_preview,
    create_catalog,
    open_catalog,
)
from lifecycle.errors import CatalogBusy, Damaged, SchemaVersionError, StorageFull, UsageError
from lifecycle.model import Labels
from tests.builders import NOON, NOON_NS
from tests.contract.catalog.rows import Rows, zero_page

NOBODY = 65534


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def table_page(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as raw:
        return int(raw.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0])


def test_a_new_catalog_knows_itself(url: str) -> None:
    with create_catalog(url, now=NOON, rehearsal=True) as catalog:
        facts = catalog.facts()
    assert (facts.generation, facts.rehearsal, facts.created_ns, facts.clock_ns) == (1, True, NOON_NS, 0)
    assert len(facts.catalog_id) == 32


def test_two_catalogs_have_two_ids(tmp_path: Path) -> None:
    ids = set()
    for name in ("a", "b"):
        with create_catalog(f"sqlite:///{tmp_path}/{name}.db", now=NOON) as catalog:
            ids.add(catalog.facts().catalog_id)
    assert len(ids) == 2


def test_creating_leaves_nothing_but_the_catalog(url: str, tmp_path: Path) -> None:
    create_catalog(url, now=NOON).close()
    assert os.listdir(tmp_path) == ["catalog.db"]


def test_a_catalog_that_is_there_is_not_created_again(catalog: Catalog) -> None:
    before = catalog.facts()
    with pytest.raises(UsageError, match="is there already"):
        create_catalog(catalog.url, now=NOON)
    assert catalog.facts() == before


def test_a_file_of_somebody_else_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    file.write_text("my diary")
    with pytest.raises(UsageError, match="is there already"):
        create_catalog(f"sqlite:///{file}", now=NOON)
    assert file.read_text() == "my diary"


def test_a_missing_catalog_says_how_to_make_one(url: str) -> None:
    with pytest.raises(UsageError, match="is not there") as caught:
        open_catalog(url)
    assert "lifecycle init" in str(caught.value.hint)


@pytest.mark.parametrize("bad", ["catalog.db", "sqlite://", "sqlite:///:memory:", "postgresql://u:secret@h/db", "x://"])
def test_a_url_that_cannot_be_a_catalog_is_refused_without_its_password(bad: str) -> None:
    with pytest.raises(UsageError) as caught:
        catalog_path(bad)
    assert "secret" not in str(caught.value)


def test_durability_is_on(catalog: Catalog) -> None:
    with catalog.read() as conn:
        pragmas = [
            conn.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert pragmas == ["delete", 2, 1]


def test_a_catalog_that_somebody_put_into_wal_mode_comes_back_to_rollback_mode(catalog: Catalog) -> None:
    catalog.close()
    with closing(sqlite3.connect(catalog.path)) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
    with pytest.raises(UsageError, match="WAL"):
        open_catalog(catalog.url, read_only=True)
    with open_catalog(catalog.url):
        assert not sqlite.is_wal(catalog.path)


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "lustre", "fuse.sshfs", "ceph", "beegfs", "gpfs", "9p"]
)
def test_a_network_file_system_is_refused_with_advice(catalog: Catalog, tmp_path: Path, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"21 1 8:1 / / rw - ext4 /dev/sda rw\n22 21 0:50 / {tmp_path} rw shared:1 - {kind} srv:/x rw\n")
    for opening in (open_catalog, lambda url, mountinfo: create_catalog(url, now=NOON, mountinfo=mountinfo)):
        with pytest.raises(UsageError, match=f"network file system \\({kind}\\)") as caught:
            opening(catalog.url, mountinfo=mounts)
        assert "local disk" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs", "overlay", "btrfs", "fuse.ntfs-3g", "fuseblk"])
def test_a_local_file_system_is_accepted(catalog: Catalog, tmp_path: Path, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"21 1 8:1 / / rw - nfs4 srv:/ rw\n22 21 0:50 / {tmp_path} rw - {kind} none rw\n")
    open_catalog(catalog.url, mountinfo=mounts).close()


def test_a_mount_point_with_a_space_and_a_name_that_starts_alike_are_told_apart(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text("1 1 8:1 / / rw - ext4 a rw\n2 1 0:1 / /a\\040b rw - nfs4 s rw\n3 1 0:2 / /log rw - cifs s rw\n")
    found = [
        sqlite.file_system_type(Path(path), mounts) for path in ("/a b/c.db", "/a/c.db", "/logs/c.db", "/log/c.db")
    ]
    assert found == ["nfs4", "ext4", "ext4", "cifs"]


@pytest.mark.parametrize("version", [f"{int(SCHEMA_REVISION) + 1:04d}", "9999", "3f2a9c1b77aa"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_refused_before_anything_is_touched(catalog: Catalog, version: str, read_only: bool) -> None:
    catalog.close()
    with closing(sqlite3.connect(catalog.path)) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = ?", (version,))
    before = catalog.path.read_bytes()
    with pytest.raises(SchemaVersionError, match="newer than"):
        open_catalog(catalog.url, read_only=read_only)
    assert catalog.path.read_bytes() == before


def test_an_older_schema_says_how_to_upgrade(catalog: Catalog) -> None:
    catalog.close()
    with closing(sqlite3.connect(catalog.path)) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = '0000'")
    with pytest.raises(SchemaVersionError) as caught:
        open_catalog(catalog.url)
    assert "lifecycle catalog upgrade" in str(caught.value.hint)


def test_another_programs_database_and_an_empty_file_are_no_catalogs(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as raw:
        raw.execute("CREATE TABLE t (x)")
    (tmp_path / "empty.db").touch()
    for name in ("other", "empty"):
        with pytest.raises(UsageError, match="not a catalog"):
            open_catalog(f"sqlite:///{tmp_path}/{name}.db")


@pytest.mark.parametrize("table", ["segments", "places", "events"])
def test_a_zeroed_page_is_damage_and_stops_a_writer_at_the_door(catalog: Catalog, rows: Rows, table: str) -> None:
    rows.segment()
    catalog.close()
    zero_page(catalog.path, table_page(catalog.path, table))
    with pytest.raises(Damaged, match="is damaged") as caught:
        open_catalog(catalog.url)
    assert caught.value.exit_code == 6


def test_a_zeroed_first_page_is_damage_for_readers_too(catalog: Catalog) -> None:
    catalog.close()
    zero_page(catalog.path, 1)
    for read_only in (False, True):
        with pytest.raises(Damaged):
            open_catalog(catalog.url, read_only=read_only)


def test_a_reader_that_meets_a_zeroed_page_says_damage(catalog: Catalog, rows: Rows) -> None:
    rows.segment()
    catalog.close()
    zero_page(catalog.path, table_page(catalog.path, "segments"))
    with open_catalog(catalog.url, read_only=True) as reader, reader.read() as conn, pytest.raises(Damaged):
        conn.exec_driver_sql("SELECT * FROM segments").fetchall()


def test_check_finds_a_damaged_page_of_a_large_catalog(
    catalog: Catalog, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.segment()
    catalog.close()
    zero_page(catalog.path, table_page(catalog.path, "segments"))
    monkeypatch.setattr(sqlite, "QUICK_CHECK_BYTES", 0)
    with open_catalog(catalog.url) as opened, pytest.raises(Damaged):
        opened.check()


def test_a_reader_changes_nothing_and_leaves_nothing_behind(catalog: Catalog, rows: Rows, tmp_path: Path) -> None:
    rows.segment()
    catalog.close()
    before, listing = catalog.path.read_bytes(), sorted(os.listdir(tmp_path))
    with open_catalog(catalog.url, read_only=True) as reader, reader.read() as conn:
        assert conn.exec_driver_sql("SELECT count(*) FROM segments").scalar() == 1
        assert sorted(os.listdir(tmp_path)) == listing
    assert (catalog.path.read_bytes(), sorted(os.listdir(tmp_path))) == (before, listing)


def test_a_reader_cannot_write(catalog: Catalog) -> None:
    with open_catalog(catalog.url, read_only=True) as reader:
        with pytest.raises(UsageError, match="read-only"), reader.write():
            pass
        with pytest.raises(UsageError, match="cannot be written"), reader.read() as conn:
            conn.exec_driver_sql("DELETE FROM catalog_facts")
    assert catalog.facts().generation == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's eyes")
def test_somebody_who_may_only_read_reads_a_catalog_in_a_folder_of_others(catalog: Catalog, tmp_path: Path) -> None:
    # /tmp folders of pytest are closed to others, so the catalog goes where anybody may look.
    folder = Path("/tmp") / f"lifecycle-test-{os.getpid()}"
    folder.mkdir()
    try:
        shutil.copy(catalog.path, folder / "catalog.db")
        (folder / "catalog.db").chmod(0o444)
        folder.chmod(0o555)
        code = (
            "import sys; from lifecycle.catalog.store import open_catalog\n"
            "with open_catalog(sys.argv[1], read_only=True) as c: print(c.facts().generation)\n"
        )
        found = as_nobody(code, f"sqlite:///{folder / 'catalog.db'}")
        assert (found.returncode, found.stdout) == (0, "1\n"), found.stderr
        assert os.listdir(folder) == ["catalog.db"]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's eyes")
def test_somebody_who_may_not_write_is_told_so_without_a_traceback(catalog: Catalog) -> None:
    folder = Path("/tmp") / f"lifecycle-test-w-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        shutil.copy(catalog.path, folder / "catalog.db")
        code = (
            "import sys; from lifecycle.catalog.store import open_catalog; from lifecycle.errors import UsageError\n"
            "try:\n"
            "    with open_catalog(sys.argv[1]) as c, c.write() as conn: c.set_fact(conn, 'generation', '7')\n"
            "except UsageError as error: print(error)\n"
        )
        found = as_nobody(code, f"sqlite:///{folder / 'catalog.db'}")
        assert "cannot be written" in found.stdout, found.stderr
        assert os.listdir(folder) == ["catalog.db"]
    finally:
        shutil.rmtree(folder)


def test_a_forked_child_cannot_undo_its_parents_transaction(catalog: Catalog) -> None:
    with catalog.write() as conn:
        catalog.set_fact(conn, "generation", "2")
        child = os.fork()
        if child == 0:
            catalog.close()
            gc.collect()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert catalog.facts().generation == 2


def test_a_forked_child_has_connections_of_its_own(catalog: Catalog) -> None:
    catalog.facts()
    child = os.fork()
    if child == 0:
        with catalog.write() as conn:
            catalog.set_fact(conn, "generation", "6")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert catalog.facts().generation == 6


def test_lost_facts_are_damage(catalog: Catalog) -> None:
    with catalog.write() as conn:
        conn.exec_driver_sql("DELETE FROM catalog_facts WHERE key = 'catalog_id'")
    with pytest.raises(Damaged, match="facts"):
        catalog.facts()


def test_a_preview_without_room_for_its_copy_says_so(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StorageFull, match="private copy") as caught:
        copy_for_preview(catalog.url, now=NOON)
    assert "TMPDIR" in str(caught.value.hint)


def as_nobody(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Imports are done as ourselves, since the checkout may be closed to others."""
    program = "import os, lifecycle.catalog.store, lifecycle.catalog.tables, sqlalchemy.dialects.sqlite\n"
    program += f"os.setgid({NOBODY}); os.setuid({NOBODY})\n" + code
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)


def half_written(path: Path) -> None:
    """Kill a process inside a transaction whose changes have reached the file already."""
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 5'); c.execute('BEGIN')\n"
        "c.execute(\"UPDATE catalog_facts SET value = 'half' WHERE key = 'catalog_id'\")\n"
        "c.executemany('INSERT INTO teams (name) VALUES (?)', [(f'{n:0500}',) for n in range(2000)])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert Path(f"{path}-journal").stat().st_size > 0


def test_a_transaction_that_was_killed_is_as_if_it_had_not_been(catalog: Catalog) -> None:
    before = catalog.facts()
    catalog.close()
    half_written(catalog.path)
    with open_catalog(catalog.url) as again:
        assert again.facts() == before


def test_a_reader_after_a_killed_writer_sees_what_was_committed_and_mends_nothing(
    catalog: Catalog, tmp_path: Path
) -> None:
    before = catalog.facts()
    catalog.close()
    half_written(catalog.path)
    files = tree(tmp_path)
    with open_catalog(catalog.url, read_only=True) as reader:
        assert reader.facts() == before
        with reader.read() as conn:
            assert conn.exec_driver_sql("SELECT count(*) FROM teams").scalar() == 0
    assert tree(tmp_path) == files


def test_a_preview_copy_is_private_and_goes_when_closed(catalog: Catalog, rows: Rows) -> None:
    rows.segment()
    before = catalog.path.read_bytes()
    with copy_for_preview(catalog.url, now=NOON) as copy:
        assert copy.facts() == catalog.facts()
        assert copy.path.parent.stat().st_mode & 0o777 == 0o700
        with copy.write() as conn:
            conn.exec_driver_sql("DELETE FROM segments")
    assert catalog.path.read_bytes() == before
    assert not copy.path.parent.exists()


def test_a_preview_without_a_catalog_has_the_same_tables(catalog: Catalog) -> None:
    def tables(of: Catalog) -> set[tuple[str, str]]:
        with of.read() as conn:
            return {
                tuple(row) for row in conn.exec_driver_sql("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL")
            }

    with copy_for_preview(None, now=NOON) as empty:
        assert tables(empty) == tables(catalog)
        assert empty.facts().generation == 1


def test_all_of_a_transaction_or_none(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), catalog.write() as conn:
        catalog.set_fact(conn, "generation", "2")
        raise ZeroDivisionError
    assert catalog.facts().generation == 1
    with catalog.write() as conn:
        catalog.set_fact(conn, "generation", "3")
    assert catalog.facts().generation == 3


def test_reading_inside_a_write_sees_its_changes_and_others_do_not(catalog: Catalog) -> None:
    seen: list[int] = []
    with catalog.write() as conn:
        catalog.set_fact(conn, "generation", "2")
        other = threading.Thread(target=lambda: seen.append(catalog.facts().generation))
        other.start()
        other.join()
        assert catalog.facts().generation == 2
    assert seen == [1]


def test_a_write_inside_a_write_is_a_fault_of_the_program_and_says_so(catalog: Catalog) -> None:
    with catalog.write(), pytest.raises(RuntimeError), catalog.write():
        pass


def test_threads_that_write_at_once_take_turns(catalog: Catalog) -> None:
    def add() -> None:
        for _ in range(20):
            with catalog.write() as conn:
                count = conn.exec_driver_sql("SELECT value FROM catalog_facts WHERE key = 'generation'").scalar_one()
                catalog.set_fact(conn, "generation", str(int(count) + 1))

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert catalog.facts().generation == 61


def test_a_catalog_that_stays_locked_is_busy_and_may_be_tried_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(catalog.path, isolation_level=None)) as other, open_catalog(catalog.url) as opened:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CatalogBusy, match="busy"), opened.write():
            pass
        other.execute("ROLLBACK")
        with opened.write() as conn:
            opened.set_fact(conn, "generation", "5")
    assert catalog.facts().generation == 5


def test_a_read_leaves_no_lock(catalog: Catalog) -> None:
    with catalog.read() as conn:
        conn.exec_driver_sql("SELECT * FROM catalog_facts").fetchall()
        with closing(sqlite3.connect(catalog.path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            other.execute("ROLLBACK")


def test_a_snapshot_sees_one_moment(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    with catalog.read(snapshot=True) as conn:
        conn.exec_driver_sql("SELECT 1 FROM catalog_facts").fetchall()
        with closing(sqlite3.connect(catalog.path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("UPDATE catalog_facts SET value = '9' WHERE key = 'generation'")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("COMMIT")
            other.execute("ROLLBACK")
    with catalog.write():
        pass


def test_a_rollback_leaves_no_stale_ids(catalog: Catalog) -> None:
    intern = Interner(catalog)
    with pytest.raises(ZeroDivisionError), catalog.write() as conn:
        lost = intern.job(conn, intern.team(conn, "speech"), "j1")
        raise ZeroDivisionError
    with catalog.write() as conn:
        vision = intern.team(conn, "vision")
        job = intern.job(conn, vision, "other")
        assert job == lost  # the number is used again, for another job
    with catalog.write() as conn:
        speech = intern.team(conn, "speech")
        assert speech != vision
        name = conn.exec_driver_sql("SELECT name FROM jobs WHERE id = ?", (intern.job(conn, speech, "j1"),)).scalar()
    assert name == "j1"


def test_interning_gives_equal_things_one_id_whoever_asks(catalog: Catalog) -> None:
    labels = Labels(node="n1", rank=None, extra=(("k", "väl\n"),))
    with catalog.write() as conn:
        first, second = Interner(catalog), Interner(catalog)
        team = first.team(conn, "vision")
        job = first.job(conn, team, "j")
        assert (second.team(conn, "vision"), second.job(conn, team, "j")) == (team, job)
        assert first.labels(conn, job, labels) == second.labels(conn, job, labels)
        assert first.labels(conn, job, labels) != first.labels(conn, job, Labels(node="n1", rank=0, extra=labels.extra))
