"""Scans of real trees: what is new, grown, renamed, replaced, settled, foreign."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from lifecycle.catalog.lease import take_lease
from lifecycle.catalog.scanning import ScanPage
from lifecycle.catalog.sightings import ScanWriter
from lifecycle.catalog.store import Catalog
from lifecycle.errors import LeaseLost, StorageFull
from lifecycle.scan.evidence import OpenFiles
from tests.contract.scan.tree import Tree, nobody_writes

LINE = b"step=1 loss=0.5\n"


def test_a_first_scan_knows_every_log_by_its_path(tree: Tree) -> None:
    tree.write("vis/job1/rank_0.log")
    tree.write("vis/job1/rank_1.log")
    tree.write("nlp/job2/train.log", b"")
    figures = tree.scan()
    assert (figures.files, figures.new, figures.complete) == (3, 3, True)
    assert tree.states() == {"vis/job1/rank_0.log": "open", "vis/job1/rank_1.log": "open", "nlp/job2/train.log": "open"}
    assert {row.content for row in tree.rows().values()} == {"text", "empty"}
    tree.assert_sums_agree()


def test_a_second_scan_of_an_unchanged_tree_opens_no_file_and_changes_no_row(tree: Tree) -> None:
    tree.write("vis/job1/rank_0.log")
    tree.write("vis/job1/core.bin", b"\x00\x01")
    tree.scan()
    before = tree.all_rows()
    atimes = [os.stat(tree.root / "vis/job1" / name).st_atime_ns for name in ("rank_0.log", "core.bin")]
    figures = tree.scan()
    assert (figures.new, figures.changed, figures.folders_unchanged) == (0, 0, figures.folders)
    assert (figures.files, figures.foreign) == (2, 1)  # counted all the same
    assert tree.all_rows() == before
    assert atimes == [os.stat(tree.root / "vis/job1" / name).st_atime_ns for name in ("rank_0.log", "core.bin")]


def test_a_log_that_grows_is_the_same_segment(tree: Tree) -> None:
    tree.write("vis/job1/train.log", LINE * 1000)
    tree.scan()
    tree.append("vis/job1/train.log", LINE * 2000)
    figures = tree.scan()
    assert (figures.changed, figures.new, figures.replaced) == (1, 0, 0)
    [row] = tree.all_rows()
    assert row.size == 3000 * len(LINE)
    tree.assert_sums_agree()


@pytest.mark.parametrize("content", [b"", b"resumed at step 7\n", b"resumed\n" * 5000])
def test_the_same_name_with_new_content_is_another_segment(tree: Tree, content: bytes) -> None:
    """Truncated or rewritten in place: 5 of 15 real series did (log-layouts, trap 1)."""
    tree.write("vis/job1/vllm_predict.log", LINE * 1000)
    tree.scan()
    first = tree.rows()[b"vis/job1/vllm_predict.log"].id
    tree.write("vis/job1/vllm_predict.log", content)
    figures = tree.scan()
    assert (figures.replaced, figures.new) == (1, 1)
    assert tree.rows()[b"vis/job1/vllm_predict.log"].id != first
    assert [(row.original, row.tier) for row in tree.all_rows() if row.id == first] == [("replaced", None)]
    tree.assert_sums_agree()


def test_a_rotation_that_shifts_is_the_same_segment_under_a_new_name(tree: Tree) -> None:
    folder = tree.root / "vis/job1"
    for name, content in (("train.log", b"three\n"), ("train.log.1", b"two\n"), ("train.log.2", b"one\n")):
        tree.write(f"vis/job1/{name}", content * 50)
    tree.scan()
    ids = {path: row.id for path, row in tree.rows().items()}
    for new, old in (("train.log.3", "train.log.2"), ("train.log.2", "train.log.1"), ("train.log.1", "train.log")):
        (folder / old).rename(folder / new)
    tree.write("vis/job1/train.log", b"four\n")
    figures = tree.scan()
    assert (figures.renamed, figures.new, figures.replaced) == (3, 1, 0)
    after = {path: row.id for path, row in tree.rows().items()}
    for number in (1, 2):
        assert after[b"vis/job1/train.log.%d" % (number + 1)] == ids[b"vis/job1/train.log.%d" % number]
    assert after[b"vis/job1/train.log.1"] == ids[b"vis/job1/train.log"]
    assert after[b"vis/job1/train.log"] not in ids.values()
    tree.assert_sums_agree()


def test_a_rotation_whose_writer_goes_on_in_the_old_file_is_the_same_segment(tree: Tree) -> None:
    tree.write("vis/job1/train.log", LINE * 10)
    tree.scan()
    [before] = tree.all_rows()
    (tree.root / "vis/job1/train.log").rename(tree.root / "vis/job1/train.log.1")
    tree.append("vis/job1/train.log.1")
    tree.scan()
    [after] = tree.all_rows()
    assert (after.id, after.path, after.size) == (before.id, b"vis/job1/train.log.1", before.size + 16)


def test_names_that_change_places_in_a_ring_keep_their_segments(tree: Tree) -> None:
    for name in "abc":
        tree.write(f"vis/job1/{name}.log", name.encode() * 100)
    tree.scan()
    ids = {path[-5:-4]: row.id for path, row in tree.rows().items()}
    folder = tree.root / "vis/job1"
    for old, new in (("a", "t"), ("c", "a"), ("b", "c"), ("t", "b")):
        (folder / f"{old}.log").rename(folder / f"{new}.log")
    figures = tree.scan()
    assert (figures.renamed, figures.new, figures.replaced) == (3, 0, 0)
    assert {path[-5:-4]: row.id for path, row in tree.rows().items()} == {
        b"b": ids[b"a"],
        b"a": ids[b"c"],
        b"c": ids[b"b"],
    }


@pytest.mark.parametrize(("old", "new"), [("a_job", "z_job"), ("z_job", "a_job")])
def test_a_job_folder_that_is_moved_keeps_its_segments_and_takes_its_new_labels(tree: Tree, old: str, new: str) -> None:
    for rank in range(30):
        tree.write(f"vis/{old}/rank_{rank}.log", b"rank %d\n" % rank)
    tree.scan()
    ids = sorted(row.id for row in tree.all_rows())
    (tree.root / "vis" / old).rename(tree.root / "vis" / new)
    figures = tree.scan()
    assert (figures.renamed, figures.new, figures.missing, figures.state) == (30, 0, 0, "ok")
    assert sorted(row.id for row in tree.rows().values()) == ids
    assert tree.value("SELECT count(DISTINCT j.name) FROM segments s JOIN jobs j ON j.id = s.job_id") == 1
    assert tree.value("SELECT j.name FROM segments s JOIN jobs j ON j.id = s.job_id LIMIT 1") == new
    tree.assert_sums_agree()


def test_a_log_moved_away_whose_name_is_taken_at_once_was_not_replaced(tree: Tree) -> None:
    tree.write("vis/a_job/train.log", b"old\n" * 9)
    (tree.root / "vis/z_job").mkdir()
    tree.scan()
    [before] = tree.all_rows()
    (tree.root / "vis/a_job/train.log").rename(tree.root / "vis/z_job/train.log")
    tree.write("vis/a_job/train.log", b"new\n")
    figures = tree.scan()
    assert (figures.renamed, figures.new, figures.replaced) == (1, 1, 0)
    assert tree.rows()[b"vis/z_job/train.log"].id == before.id
    tree.assert_sums_agree()


def test_an_inode_given_to_another_file_is_not_a_rename(tree: Tree) -> None:
    old = tree.write("vis/job1/a.log", b"first words\n" * 9)
    tree.scan()
    inode = os.stat(old).st_ino
    os.unlink(old)
    for number in range(50):
        new = tree.write(f"vis/job1/b{number}.log", b"other words altogether\n" * 9)
        if os.stat(new).st_ino == inode:
            break
    else:
        pytest.skip("this file system does not give an inode again so soon")
    assert tree.scan().renamed == 0


def test_a_log_renamed_to_a_name_that_no_layout_claims_is_left_alone(tree: Tree) -> None:
    tree.write("vis/job1/train.log")
    tree.scan()
    (tree.root / "vis/job1/train.log").rename(tree.root / "vis/job1/train.log.keep-this")
    figures = tree.scan()
    assert (figures.foreign, figures.renamed, figures.missing) == (1, 0, 1)


def test_the_same_files_copied_back_are_the_same_segments(tree: Tree) -> None:
    full = tree.write("vis/job1/train.log", LINE * 30, age="3h")
    tree.scan()
    [before] = tree.all_rows()
    times = os.stat(full)
    with open(os.path.join(os.path.dirname(full), b"copy"), "wb") as copy:
        copy.write(LINE * 30)
    os.utime(copy.name, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.rename(copy.name, full)
    figures = tree.scan()
    [after] = tree.all_rows()
    assert (figures.new, figures.replaced, after.id) == (0, 0, before.id)
    assert after.inode == os.stat(full).st_ino != before.inode


def _store(tree: Tree, *, restored: bool) -> None:
    """All that is known gets a stored copy in warm, as a restore or ``copy_after`` leaves it beside the original."""
    tree.execute(
        "INSERT INTO archives (place_id, key, tier, team_id, class_id, day, gid, mode, form, size_bytes, raw_bytes, "
        "members, live_members, live_raw_bytes, newest_write_ns, oldest_write_ns, digest, manifest_digest, zstd_level, "
        f"state, created_ns) SELECT {tree.place_id}, 'k', 'warm', team_id, class_id, day, 0, 0, 'tar', 9, size_bytes, "
        "1, 1, size_bytes, 1, 1, x'00', x'00', 3, 'live', 1 FROM segments"
    )
    stay = "1" if restored else "NULL"
    tree.execute(f"UPDATE segments SET archive_id = 1, stored_bytes = 9, original = 'settled', stay_until_ns = {stay}")
    tree.execute("INSERT INTO rollups SELECT team_id, class_id, 'warm', day, 1, size_bytes, 9 FROM segments")


def test_a_restored_segment_that_is_written_again_becomes_two(tree: Tree) -> None:
    tree.write("vis/job1/train.log", LINE * 30)
    tree.scan()
    _store(tree, restored=True)
    tree.append("vis/job1/train.log")
    figures = tree.scan()
    assert (figures.new, figures.replaced) == (1, 1)
    old, new = tree.all_rows()
    assert (old.original, old.tier, old.archive_id) == ("replaced", "warm", 1)
    assert (new.original, new.tier, new.archive_id) == ("open", "hot", None)
    tree.assert_sums_agree()


def test_a_segment_that_was_copied_early_and_is_written_again_stays_one_without_its_copy(tree: Tree) -> None:
    tree.write("vis/job1/train.log", LINE * 30)
    tree.scan()
    _store(tree, restored=False)
    tree.append("vis/job1/train.log", b"step=31 loss=0.1\n")
    figures = tree.scan()
    assert (figures.new, figures.replaced, figures.changed) == (0, 0, 1)
    [row] = tree.all_rows()
    assert (row.original, row.tier, row.archive_id) == ("open", "hot", None)
    assert tree.value("SELECT digest IS NULL AND stored_bytes = 0 FROM segments") == 1
    assert tree.value("SELECT state FROM archives") == "superseded"
    assert tree.value("SELECT live_members + live_raw_bytes FROM archives") == 0
    assert tree.value("SELECT count(*) FROM events WHERE kind = 'surplus'") == 1
    tree.assert_sums_agree()


def test_a_copied_segment_that_rotates_goes_on_under_its_new_name_without_its_copy(tree: Tree) -> None:
    tree.write("vis/job1/train.log", LINE * 30)
    tree.scan()
    _store(tree, restored=False)
    os.rename(tree.root / "vis/job1/train.log", tree.root / "vis/job1/train.log.1")
    tree.write("vis/job1/train.log", b"step=1 loss=9\n" * 5)
    figures = tree.scan()
    assert (figures.new, figures.renamed, figures.replaced) == (1, 1, 0)
    rows = tree.rows()
    assert {path: row.archive_id for path, row in rows.items()} == {
        b"vis/job1/train.log": None,
        b"vis/job1/train.log.1": None,
    }
    assert len(tree.all_rows()) == 2, "no content is there twice"
    tree.assert_sums_agree()


def test_a_copied_segment_that_is_rewritten_keeps_what_was_stored(tree: Tree) -> None:
    tree.write("vis/job1/train.log", LINE * 30)
    tree.scan()
    _store(tree, restored=False)
    tree.write("vis/job1/train.log", b"quite another run\n" * 40)
    tree.scan()
    old, new = tree.all_rows()
    assert (old.original, old.tier, old.archive_id) == ("replaced", "warm", 1)
    assert (new.tier, new.archive_id) == ("hot", None)
    tree.assert_sums_agree()


def test_a_copied_segment_that_nobody_touched_keeps_its_copy(tree: Tree) -> None:
    tree.write("vis/job1/train.log", LINE * 30)
    tree.scan()
    _store(tree, restored=False)
    tree.write("vis/job1/other.log")
    tree.scan()
    assert tree.rows()[b"vis/job1/train.log"].archive_id == 1
    os.chmod(tree.root / "vis/job1/train.log", 0o600)  # nothing is known of what else changed with it
    tree.scan()
    assert tree.rows()[b"vis/job1/train.log"].archive_id is None
    tree.assert_sums_agree()


def test_a_file_settles_when_it_was_quiet_and_nobody_has_it_open(tree: Tree) -> None:
    tree.write("vis/job1/a.log")
    tree.write("vis/job1/b.log")
    assert tree.scan("59m").settled == 0
    with (tree.root / "vis/job1/b.log").open("ab"):
        figures = tree.scan("61m")
        assert (figures.settled, figures.open_) == (1, 1)
        assert tree.states() == {"vis/job1/a.log": "settled", "vis/job1/b.log": "open"}
    assert tree.scan("61m").settled == 1
    tree.assert_sums_agree()


def test_an_old_file_with_a_writer_is_not_settled_at_first_sight(tree: Tree) -> None:
    tree.write("vis/job1/a.log")
    tree.write("vis/job1/b.log")
    with (tree.root / "vis/job1/b.log").open("ab"):
        tree.scan("2h")
        assert tree.states() == {"vis/job1/a.log": "settled", "vis/job1/b.log": "open"}


def test_where_a_lease_cannot_tell_proc_does(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifecycle.scan.sniff.has_writer", lambda fd: None)
    full = tree.write("vis/job1/a.log")
    tree.write("vis/job1/b.log")
    facts = os.stat(full)
    looks = []

    def look_at_proc() -> OpenFiles:
        looks.append(1)
        return OpenFiles(identities=frozenset({(facts.st_dev, facts.st_ino)}), complete=True)

    tree.scan("2h", open_files=look_at_proc)
    assert tree.states() == {"vis/job1/a.log": "open", "vis/job1/b.log": "settled"}
    assert looks == [1]


def test_proc_is_not_looked_at_when_nothing_needs_it(tree: Tree) -> None:
    tree.write("vis/job1/a.log")

    def never() -> OpenFiles:
        raise AssertionError("looked at /proc")

    tree.scan(open_files=never)
    tree.scan(open_files=never)


def test_a_settled_file_that_is_written_again_is_open_again(tree: Tree) -> None:
    tree.write("vis/job1/a.log")
    tree.scan("2h")
    tree.append("vis/job1/a.log")
    tree.scan()
    assert tree.states() == {"vis/job1/a.log": "open"}


def test_a_forced_old_time_does_not_settle_a_file(tree: Tree) -> None:
    """B08: its mtime is forced to 40 days ago while it is written; its inode's change tells."""
    tree.write("vis/job1/a.log", age="40d")
    assert tree.scan().settled == 0


def test_a_log_claimed_by_name_whose_content_is_no_text_is_foreign(tree: Tree) -> None:
    tree.write("vis/job1/a.log", b"\x89PNG\r\n\x1a\n\x00\x00")
    tree.write("vis/job1/model.safetensors", b"12345")
    for figures in (tree.scan(), tree.scan()):
        assert (figures.foreign, figures.new) == (2, 0)
        found = tree.found()
        assert found["foreign", "its content is no text"].size_bytes == 10
        assert found["foreign", "no layout claims it"].size_bytes == 5
    assert tree.rows() == {}


def test_an_empty_log_that_becomes_a_picture_is_no_longer_ours(tree: Tree) -> None:
    tree.write("vis/job1/a.log", b"")
    tree.scan()
    tree.write("vis/job1/a.log", b"\x89PNG\r\n\x1a\n\x00\x00")
    assert tree.scan().foreign == 1
    assert tree.rows() == {}
    tree.assert_sums_agree()


def test_a_compressed_rotation_is_a_segment(tree: Tree) -> None:
    tree.write("vis/job1/train.log.2.gz", gzip.compress(LINE))
    tree.scan()
    assert [row.content for row in tree.rows().values()] == ["gzip"]


def test_changed_layouts_look_at_every_folder_anew(catalog: Catalog, tmp_path: Path) -> None:
    tree = Tree(catalog, tmp_path / "logs", layouts=("rank-files",))
    tree.write("vis/job1/train.log")
    assert tree.scan().foreign == 1
    wider = Tree(catalog, tmp_path / "logs")
    assert (wider.scan().new, wider.scan().foreign) == (1, 0)


def test_every_name_of_bytes_is_tracked(tree: Tree) -> None:
    """B02."""
    names = [b"rank\xff.log", b"\xc0\xaf.log", b"a\nb.log", b"n" * 251 + b".log", "日".encode() * 83 + b".log"]
    names += [b"x.log", b"y.log", b"z.log"]
    for name in names:
        tree.write(b"vis/job1/" + name)
    assert tree.scan().new == len(names)
    assert sorted(tree.rows()) == sorted(b"vis/job1/" + name for name in names)
    assert tree.scan().folders_unchanged == 3


def test_hard_links_are_counted_and_never_segments(tree: Tree) -> None:
    """B21."""
    full = tree.write("a_team/job1/a.log", LINE * 100)
    os.makedirs(tree.root / "b_team/job2")
    os.link(full, tree.root / "b_team/job2/a.log")
    figures = tree.scan()
    assert (figures.new, figures.special) == (0, 2)
    assert tree.scan().special == 2
    os.unlink(full)
    assert (tree.scan().new, sorted(tree.rows())) == (1, [b"b_team/job2/a.log"])


def test_a_segment_that_is_hard_linked_later_does_not_settle(tree: Tree) -> None:
    full = tree.write("vis/job1/a.log")
    tree.scan("2h")
    assert tree.states() == {"vis/job1/a.log": "settled"}
    os.link(full, tree.root / "vis/job1/other.log")
    figures = tree.scan("2h")
    assert (tree.states(), figures.special) == ({"vis/job1/a.log": "open"}, 2)
    os.unlink(tree.root / "vis/job1/other.log")
    tree.scan("2h")
    assert tree.states() == {"vis/job1/a.log": "settled"}


def test_a_sparse_file_counts_what_it_occupies(tree: Tree) -> None:
    """B21."""
    full = tree.write("vis/job1/a.log", LINE)
    os.truncate(full, 2**30)
    tree.scan()
    assert tree.value("SELECT logical_bytes FROM rollups") == 2**30
    assert tree.value("SELECT stored_bytes FROM rollups") == os.stat(full).st_blocks * 512 < 2**20


@pytest.mark.parametrize("mtime", [0, -1, 2_903_299_200])
def test_an_impossible_time_is_age_unknown(tree: Tree, mtime: int) -> None:
    """B22."""
    os.utime(tree.write("vis/job1/a.log"), (mtime, mtime))
    tree.scan()
    [row] = tree.all_rows()
    assert row.last_write_ns is None
    tree.assert_sums_agree()


def test_a_jobs_last_write_is_that_of_its_newest_segment_and_only_grows(tree: Tree) -> None:
    tree.write("vis/job1/rank_0.log", age="9d")
    tree.write("vis/job1/rank_1.log", age="3d")
    newest = os.stat(tree.root / "vis/job1/rank_1.log").st_mtime_ns
    tree.scan()
    assert tree.value("SELECT last_write_ns FROM jobs") == newest
    os.unlink(tree.root / "vis/job1/rank_1.log")
    tree.scan()
    assert tree.value("SELECT last_write_ns FROM jobs") == newest


def test_a_file_that_cannot_be_read_is_reported_and_stops_nothing_else(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lifecycle.scan import folder

    real = folder.look

    def refuse(name: str, *args: object, **options: object) -> object:
        if name == "closed.log":
            raise PermissionError(13, "Permission denied")
        return real(name, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(folder, "look", refuse)
    for name in ("a.log", "closed.log", "z.log"):
        tree.write(f"vis/job1/{name}")
    for _ in range(2):  # the second scan still knows
        figures = tree.scan()
        assert (figures.unseen, figures.complete, len(figures.problems)) == (1, True, 1)
    assert sorted(tree.rows()) == [b"vis/job1/a.log", b"vis/job1/z.log"]


def test_a_preview_scans_a_tree_without_a_marker_and_leaves_nothing(tree: Tree) -> None:
    full = tree.write("vis/job1/a.log")
    (tree.root / ".lifecycle/place.json").unlink()
    (tree.root / ".lifecycle").rmdir()
    before = {path: os.stat(path) for path in (tree.root, full)}
    figures = tree.scan(preview=True, open_files=nobody_writes)
    assert (figures.new, figures.complete) == (1, True)
    for path, facts in before.items():
        now = os.stat(path)
        assert (now.st_atime_ns, now.st_mtime_ns, now.st_ctime_ns) == (
            facts.st_atime_ns,
            facts.st_mtime_ns,
            facts.st_ctime_ns,
        )
    assert os.listdir(tree.root) == ["vis"]


def test_a_scan_whose_lease_was_lost_writes_nothing(tree: Tree) -> None:
    tree.write("vis/job1/a.log")
    with take_lease(tree.catalog, tree.place, holder="run 1", now=tree.begun) as lease:
        tree.execute("UPDATE leases SET token = token + 1")
        with pytest.raises(LeaseLost):
            _scan_under(tree, lease)
    assert tree.rows() == {}


def _scan_under(tree: Tree, lease: object) -> None:
    from lifecycle.clock import SystemClock
    from lifecycle.scan.reconcile import scan_place
    from tests.builders import a_policy

    scan_place(
        tree.catalog, tree.place, tree.source, a_policy(sources=(tree.source,)), host="n1", now=tree.begun,
        run_id=tree.run_id, lease=lease, clock=SystemClock(),  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_large_folder_is_written_in_pages_and_counted_once(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifecycle.scan.tree._PAGE_ROWS", 7)
    for rank in range(40):
        tree.write(f"vis/job1/rank_{rank}.log", b"rank %d\n" % rank)
    assert tree.scan().new == 40
    for rank in range(40):
        tree.append(f"vis/job1/rank_{rank}.log")
    (tree.root / "vis/job1").rename(tree.root / "vis/job0")
    figures = tree.scan()
    assert (figures.renamed, figures.new, len(tree.all_rows())) == (40, 0, 40)
    assert tree.scan().folders_unchanged == 3
    tree.assert_sums_agree()


@pytest.mark.parametrize("pages", [1, 2, 4])
def test_a_scan_that_ends_between_two_pages_is_completed_by_the_next(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    monkeypatch.setattr("lifecycle.scan.tree._PAGE_ROWS", 7)
    for rank in range(40):
        tree.write(f"vis/job{rank % 2}/rank_{rank}.log", b"rank %d\n" % rank)
    written = []
    write = ScanWriter.write

    def fail_later(self: ScanWriter, page: ScanPage) -> None:
        written.append(page)
        if len(written) > pages:
            raise StorageFull("no space left for the catalog")
        write(self, page)

    with monkeypatch.context() as patch, pytest.raises(StorageFull):
        patch.setattr(ScanWriter, "write", fail_later)
        tree.scan()
    assert 0 < len(tree.all_rows()) < 40
    tree.assert_sums_agree()
    tree.scan()
    assert (len(tree.rows()), len(tree.all_rows())) == (40, 40)
    tree.assert_sums_agree()
