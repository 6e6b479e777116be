"""Absence proves nothing (promise 5, bug case B01): what is believed missing, and what is only reported."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lifecycle.catalog.events import iter_events, verify_chain
from lifecycle.catalog.store import Catalog
from lifecycle.errors import Damaged
from lifecycle.scan import walk
from tests.contract.scan.test_walk import failing_after
from tests.contract.scan.tree import Tree


def fill(tree: Tree, count: int = 200) -> None:
    for number in range(count):
        tree.write(f"vis/job{number % 4}/rank_{number}.log", b"rank %d\n" % number)
    tree.scan()


def ids(tree: Tree) -> dict[bytes, int]:
    return {path: row.id for path, row in tree.rows().items()}


def test_a_root_replaced_by_an_empty_folder_is_unreachable_and_nothing_is_missing(tree: Tree) -> None:
    fill(tree)
    before = tree.all_rows()
    tree.root.rename(tree.root.with_name("away"))
    tree.root.mkdir()
    figures = tree.scan()
    assert (figures.state, figures.complete, figures.missing) == ("unreachable", False, 0)
    assert "no marker" in figures.problems[0].message
    assert (tree.all_rows(), tree.place.state) == (before, "unreachable")
    tree.root.rmdir()
    tree.root.with_name("away").rename(tree.root)
    figures = tree.scan()
    assert (figures.state, figures.complete, figures.new, tree.place.state) == ("ok", True, 0, "ok")
    assert tree.all_rows() == before


def test_a_root_that_is_gone_is_unreachable(tree: Tree) -> None:
    fill(tree, 20)
    shutil.rmtree(tree.root)
    figures = tree.scan()
    assert (figures.state, figures.complete, figures.missing, figures.unseen) == ("unreachable", False, 0, 1)


@pytest.mark.parametrize("values", [{"place_uid": "other"}, {"catalog_id": "other"}])
def test_another_places_marker_is_reported_and_nothing_is_scanned(tree: Tree, values: dict[str, str]) -> None:
    fill(tree, 20)
    tree.mark(**values)
    tree.write("vis/job0/new.log")
    for preview in (False, True):
        figures = tree.scan(preview=preview)
        assert (figures.state, figures.complete, figures.new) == ("unreachable", False, 0)
    assert len(tree.rows()) == 20


def test_a_damaged_marker_halts(tree: Tree) -> None:
    (tree.root / ".lifecycle/place.json").write_text("{")
    with pytest.raises(Damaged):
        tree.scan()


def test_a_tree_emptied_under_its_marker_is_shrunken(tree: Tree) -> None:
    fill(tree)
    shutil.rmtree(tree.root / "vis")
    figures = tree.scan()
    assert (figures.state, figures.complete, figures.missing) == ("shrunken", False, 0)
    assert set(tree.states().values()) == {"open"}


def test_a_listing_that_fails_half_way_takes_nothing_for_missing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tree)
    before = tree.all_rows()
    with monkeypatch.context() as patch:
        listing = failing_after(20, OSError(5, "Input/output error"))
        patch.setattr(walk.Walk.__init__, "__defaults__", (b"", listing, *walk.Walk.__init__.__defaults__[2:]))
        figures = tree.scan()
    assert (figures.complete, figures.missing, figures.unseen) == (False, 0, 4)
    assert {problem.message for problem in figures.problems} == {"Input/output error"}
    assert tree.all_rows() == before
    assert tree.scan().complete


def test_more_than_half_gone_at_once_is_not_believed_and_comes_back_as_it_was(tree: Tree) -> None:
    fill(tree)
    before = tree.all_rows()
    aside = tree.root.with_name("aside")
    aside.mkdir()
    gone = sorted(tree.rows())[:120]
    for number, path in enumerate(gone):
        os.rename(os.path.join(os.fsencode(tree.root), path), aside / str(number))
    for _ in range(2):  # not believed the second time either
        figures = tree.scan()
        assert (figures.state, figures.complete, figures.missing) == ("shrunken", False, 0)
        assert "60%" in figures.problems[0].message
    assert tree.all_rows() == before
    for number, path in enumerate(gone):
        os.rename(aside / str(number), os.path.join(os.fsencode(tree.root), path))
    figures = tree.scan()
    assert (figures.state, figures.complete, figures.new) == ("ok", True, 0)
    assert ids(tree) == {row.path: row.id for row in before}


def test_originals_that_we_released_do_not_count_as_shrinking(tree: Tree) -> None:
    fill(tree, 40)
    kept = ", ".join(f"x'{name.hex()}'" for name in (b"rank_0.log", b"rank_1.log"))
    tree.execute(f"UPDATE segments SET original = 'released', tier = NULL WHERE name NOT IN ({kept})")
    tree.execute("DELETE FROM rollups")
    for path in list(os.walk(tree.root / "vis")):
        for name in path[2]:
            if name not in ("rank_0.log", "rank_1.log"):
                os.unlink(os.path.join(path[0], name))
    figures = tree.scan()
    assert (figures.state, figures.complete, figures.missing) == ("ok", True, 0)


def test_a_few_that_are_gone_are_missing_and_nothing_else_changes(tree: Tree) -> None:
    fill(tree)
    full = os.path.join(os.fsencode(tree.root), b"vis/job0/rank_0.log")
    os.rename(full, tree.root.with_name("aside"))
    figures = tree.scan()
    assert (figures.missing, figures.lost, figures.complete, figures.state) == (1, 0, True, "ok")
    assert tree.states()["vis/job0/rank_0.log"] == "missing"
    tree.assert_sums_agree()  # it still counts
    os.rename(tree.root.with_name("aside"), full)
    assert tree.scan().missing == 0
    assert tree.states()["vis/job0/rank_0.log"] == "open"
    tree.assert_sums_agree()


def test_missing_in_three_scans_over_seven_days_is_lost_with_an_event(tree: Tree) -> None:
    fill(tree, 40)
    missing = tree.rows()[b"vis/job0/rank_0.log"].id
    os.unlink(tree.root / "vis/job0/rank_0.log")
    assert [tree.scan(after).lost for after in ("1s", "4d", "6d")] == [0, 0, 0]
    figures = tree.scan("8d")
    assert (figures.lost, figures.missing) == (1, 0)
    [row] = [row for row in tree.all_rows() if row.id == missing]
    assert (row.original, row.tier) == ("lost", None)
    [event] = list(iter_events(tree.catalog, place_id=tree.place_id))
    assert (event.kind, event.body["ids"]) == ("lost", [missing])
    with tree.catalog.read() as conn:
        assert verify_chain(conn, tree.place_id).is_whole
    tree.assert_sums_agree()
    assert tree.scan("9d").lost == 0


def test_seven_days_with_two_scans_are_not_enough(tree: Tree) -> None:
    fill(tree, 40)
    os.unlink(tree.root / "vis/job0/rank_0.log")
    assert [tree.scan(after).lost for after in ("1s", "30d")] == [0, 0]
    assert tree.scan("31d").lost == 1


def test_a_scan_that_saw_not_everything_counts_nothing_towards_lost(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tree, 40)
    os.unlink(tree.root / "vis/job0/rank_0.log")
    tree.scan()
    read = walk.Walk._read

    def closed(self: walk.Walk, path: bytes, *rest: object) -> walk.Folder:
        if path == b"vis/job3":
            raise PermissionError(13, "Permission denied")
        return read(self, path, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(walk.Walk, "_read", closed)
        for after in ("8d", "9d", "10d"):
            figures = tree.scan(after)
            assert (figures.complete, figures.unseen, figures.lost, figures.missing) == (False, 1, 0, 1)
    assert tree.states()["vis/job3/rank_3.log"] == "open"
    tree.scan("11d")
    assert tree.scan("12d").lost == 1


def test_a_job_folder_that_is_removed_is_missing_and_then_lost(tree: Tree) -> None:
    fill(tree, 40)
    shutil.rmtree(tree.root / "vis/job0")
    assert tree.scan().missing == 10
    assert [tree.scan(after).missing for after in ("1d", "2d")] == [10, 10]
    assert tree.scan("8d").lost == 10
    tree.assert_sums_agree()


def test_a_lost_file_loses_its_mark(tree: Tree) -> None:
    fill(tree, 40)
    missing = tree.rows()[b"vis/job0/rank_0.log"].id
    tree.execute("UPDATE segments SET marked = 1")
    tree.execute(
        "INSERT INTO marks (segment_id, marked_ns, purge_after_ns, run_id, policy_digest, reason) "
        f"SELECT id, 1, 1, {tree.run_id}, '', '' FROM segments"
    )
    os.unlink(tree.root / "vis/job0/rank_0.log")
    for after in ("1s", "1d", "8d"):
        tree.scan(after)
    assert tree.value(f"SELECT count(*) FROM marks WHERE segment_id = {missing}") == 0
    assert tree.value("SELECT count(*) FROM marks") == 39


def test_an_excluded_folder_takes_nothing_for_missing_and_settles_nothing(catalog: Catalog, tmp_path: Path) -> None:
    tree = Tree(catalog, tmp_path / "logs")
    tree.write("vis/job1/a.log")
    tree.write("vis/keep/b.log")
    tree.scan("2h")
    assert set(tree.states().values()) == {"settled"}
    narrow = Tree(catalog, tmp_path / "logs", exclude=("keep/",))
    for _ in range(2):
        figures = narrow.scan("3h")
        assert (figures.missing, figures.complete) == (0, True)
        assert narrow.states() == {"vis/job1/a.log": "settled", "vis/keep/b.log": "open"}
    assert narrow.found()["excluded", "excluded by policy"].example == "vis/keep"
    again = Tree(catalog, tmp_path / "logs")
    again.scan("4h")
    assert set(again.states().values()) == {"settled"}


def test_a_catalog_older_than_its_marker_believes_no_absence(tree: Tree) -> None:
    fill(tree, 40)
    os.unlink(tree.root / "vis/job0/rank_0.log")
    tree.mark(generation=5)
    tree.write("vis/job0/new.log")
    figures = tree.scan()
    assert (figures.is_behind, figures.complete, figures.missing, figures.new) == (True, False, 0, 1)
    tree.set_generation(5)
    assert tree.scan().missing == 1


def test_a_folder_swapped_for_a_link_takes_nothing_for_missing_outside(tree: Tree, tmp_path: Path) -> None:
    """B31: the files are gone from the tree, and what the link shows is none of ours."""
    fill(tree, 40)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.log").write_text("key")
    shutil.rmtree(tree.root / "vis/job0")
    (tree.root / "vis/job0").symlink_to(outside)
    figures = tree.scan()
    assert (figures.new, figures.missing, figures.special) == (0, 10, 1)
    assert os.listdir(outside) == ["secret.log"]
