"""Folders that runs emptied: which go, which stay, and that nothing but an empty folder of a job ever does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lifecycle import tidying
from lifecycle.app import known_places
from lifecycle.execute import folders
from lifecycle.model import ActionKind
from lifecycle.session import Opened
from lifecycle.tidying import count_emptied
from lifecycle.units import to_ns
from tests.crash.world import World

FILES = (
    ("vision/train-1/gpu-1/rank_0.log", "3d", 300),
    ("vision/train-1/gpu-2/rank_1.log", "3d", 300),
    ("vision/train-2/rank_0.log", "3d", 300),
    ("nlp/train-3/rank_0.log", "1h", 300),  # stays in hot
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", files=FILES, source={"under": "{team}/{job}"}).make()


def there(world: World) -> set[str]:
    found = (path for path in world.logs.rglob("*") if path.is_dir() and ".lifecycle" not in path.parts)
    return {str(path.relative_to(world.logs)) for path in found}


def test_folders_go_from_the_deepest_up_to_the_job_s_and_no_further(world: World) -> None:
    report = world.run("2h")
    assert report.folders == 3 and there(world) == {"vision", "vision/train-1", "nlp", "nlp/train-3"}
    assert world.run("4h").folders == 1
    assert there(world) == {"vision", "nlp", "nlp/train-3"}
    assert world.run("6h").folders == 0
    assert world.readable() == world.manifest() and world.broken_books() == []


def test_a_folder_that_is_not_quiet_yet_waits(world: World) -> None:
    world.run("2h", only=frozenset([ActionKind.MERGE, ActionKind.TRANSITION]))
    late = world.begun.timestamp() + 3 * 3600
    os.utime(world.logs / "vision/train-2", (late, late))
    world.run("2h")
    assert "vision/train-2" in there(world)
    world.run("5h")
    assert "vision/train-2" not in there(world)


@pytest.mark.parametrize("kind", ["foreign", "hidden", "hold", "folder", "link"])
def test_a_folder_with_anything_in_it_stays(world: World, kind: str) -> None:
    at = world.logs / "vision/train-2"
    {
        "foreign": lambda: (at / "model.pt").write_bytes(b"\x00"),
        "hidden": lambda: (at / ".keep").touch(),
        "hold": lambda: (at / ".lifecycle-hold").write_text("paper"),
        "folder": lambda: (at / "checkpoints").mkdir(),
        "link": lambda: (at / "latest").symlink_to("nowhere"),
    }[kind]()
    for after in ("2h", "4h", "30h"):
        world.run(after)
    assert at.is_dir() and len(list(at.iterdir())) == 1


def test_folders_that_were_always_empty_or_that_users_emptied_stay(world: World) -> None:
    (world.logs / "vision/train-9/empty").mkdir(parents=True)
    world.run("1h")
    (world.logs / "nlp/train-3/rank_0.log").unlink()
    for after in ("2h", "4h", "6h"):
        world.run(after)
    assert {"vision/train-9/empty", "nlp/train-3"} <= there(world)


def test_a_file_that_comes_between_the_look_and_the_removal_keeps_its_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = folders.is_removable

    def then_written(root: object, path: bytes, quiet_ns: int) -> bool | None:
        answer = look(root, path, quiet_ns)  # type: ignore[arg-type]
        (world.logs / os.fsdecode(path) / "rank_7.log").write_bytes(b"a new beginning\n")
        return answer

    monkeypatch.setattr(folders, "is_removable", then_written)
    assert world.run("2h").folders == 0
    assert (world.logs / "vision/train-2/rank_7.log").read_bytes() == b"a new beginning\n"


def test_a_folder_that_was_swapped_for_a_link_is_left(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "train-2").mkdir(parents=True)
    look = folders.is_removable

    def then_swapped(root: object, path: bytes, quiet_ns: int) -> bool | None:
        answer = look(root, path, quiet_ns)  # type: ignore[arg-type]
        if path == b"vision/train-2":
            os.rmdir(world.logs / "vision/train-2")
            (world.logs / "vision/train-2").symlink_to(elsewhere / "train-2")
        return answer

    monkeypatch.setattr(folders, "is_removable", then_swapped)
    world.run("2h")
    assert (elsewhere / "train-2").is_dir() and (world.logs / "vision/train-2").is_symlink()


def test_a_source_may_keep_them(tmp_path: Path) -> None:
    source = {"under": "{team}/{job}", "removes_emptied": False}
    world = World(tmp_path / "world", files=FILES, source=source).make()
    for after in ("2h", "4h"):
        assert world.run(after).folders == 0
    assert "vision/train-1/gpu-1" in there(world)


def test_a_run_of_one_action_tidies_nothing(world: World) -> None:

    report = world.run("2h", only=frozenset([ActionKind.MERGE, ActionKind.TRANSITION]))
    assert report.folders == 0 and "vision/train-2" in there(world)


def test_a_crash_before_the_record_is_put_right(world: World, monkeypatch: pytest.MonkeyPatch) -> None:

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tidying, "record_folders", crash)
        with pytest.raises(KeyboardInterrupt):
            world.run("2h")
    world.run("4h")
    world.run("6h")
    assert there(world) >= {"vision", "nlp"} and "vision/train-2" not in there(world)
    assert world.broken_books() == []


def test_a_preview_counts_them_and_removes_none(world: World) -> None:

    world.run("2h", only=frozenset([ActionKind.MERGE, ActionKind.TRANSITION]))
    before = there(world)
    with world.app("4h") as app:
        opened = [Opened(place=place, source=source) for place, source in known_places(app)]
        assert count_emptied(app, opened, to_ns(app.now())) == 3
    assert there(world) == before
