"""``keep_last`` on disk: the newest rotated files stay in hot, older ones are stored, and no byte is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lifecycle.model import TierName
from tests.builders import a_class
from tests.crash.world import World

BASE = "vision/train-1/rank_0.log"
FILES = tuple((f"{BASE}.{number}", f"{number + 1}h", 200 + number) for number in range(1, 7))
LIVE = (BASE, "90m", 111)
OTHER = ("vision/train-1/rank_1.log.1", "5h", 150)


@pytest.fixture
def world(tmp_path: Path) -> World:
    rule = a_class("training", keep_last=2)
    return World(tmp_path / "world", files=(*FILES, LIVE, OTHER), classes=(rule,)).make()


def in_hot(world: World) -> set[str]:
    return {str(path.relative_to(world.logs)) for path in world.logs.rglob("*.log*") if ".lifecycle" not in path.parts}


def test_the_newest_of_a_set_stay_and_the_rest_is_stored(world: World) -> None:
    report = world.run("2h")
    assert [(phase.action.value, phase.segments) for phase in report.phases] == [("merge", 4)]
    assert in_hot(world) == {f"{BASE}.1", f"{BASE}.2", BASE, OTHER[0]}
    assert world.readable() == world.manifest() and world.broken_books() == []
    assert {segment.tier for path, segment in world.segments().items() if path == f"{BASE}.6"} == {TierName.WARM}
    assert world.run("3h").phases == ()


def test_a_set_that_shifts_loses_its_oldest_to_the_tier_and_nothing_else(world: World) -> None:
    world.run("2h")
    for number in (2, 1):
        os.rename(world.logs / f"{BASE}.{number}", world.logs / f"{BASE}.{number + 1}")
    os.rename(world.logs / BASE, world.logs / f"{BASE}.1")
    world.write(BASE, b"a new beginning\n")
    before = {path.read_bytes() for path in (world.logs / "vision/train-1").glob("rank_0.log.*")}
    world.run("4h")
    world.run("6h")
    kept = {path.read_bytes() for path in (world.logs / "vision/train-1").glob("rank_0.log.*")}
    assert len(kept) == 2 and kept < before  # what was .2 went
    assert sum(world.readable().values()) == len(FILES) + 3
    assert world.broken_books() == []


def test_without_it_ages_alone_count(tmp_path: Path) -> None:
    world = World(tmp_path / "other", files=(*FILES, LIVE)).make()
    assert world.run("2h").phases == ()
