"""Holds copied to the tiers: readable without the catalog, and written only where they changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle import holding
from lifecycle.catalog.holds import standing_holds
from lifecycle.errors import Damaged
from lifecycle.model import Selector, TierName
from lifecycle.scan.holdcopy import copy_holds, read_holds, render_holds
from tests.crash.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world").make()


def hold(world: World, after: str) -> None:
    selector = Selector(jobs=("train-1",), ranks=(0, 3), paths=(b"/srv/a\xff.log",), since_ns=1)
    with world.app(after) as app:
        holding.add(app, selector, reason="paper", owner="chen", ends=None, pending=True)


def test_every_tier_has_them_before_anything_could_go(world: World) -> None:
    world.run("2h")
    assert read_holds(str(world.folder / "warm")) is None  # no holds, no file
    hold(world, "3h")
    world.run("4h")
    with world.app() as app, app.catalog.read() as conn:
        catalog_id, standing = app.catalog.facts().catalog_id, standing_holds(conn)
    for tier in (TierName.WARM, TierName.COLD):
        assert read_holds(str(world.folder / tier.value)) == (catalog_id, standing)
    assert world.broken_books() == []


def test_an_end_reaches_the_copy(world: World) -> None:
    world.run("2h")
    hold(world, "3h")
    world.run("4h")
    with world.app("5h") as app:
        holding.end(app, [1], by="chen", why="out")
    world.run("6h")
    found = read_holds(str(world.folder / "cold"))
    assert found is not None and found[1] == []


def test_the_same_holds_are_not_written_again(world: World) -> None:
    world.run("2h")
    hold(world, "3h")
    world.run("4h")
    path = world.folder / "warm/.lifecycle/holds.json"
    before = path.stat()
    world.run("5h")
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_copy_that_is_none_is_damage(tmp_path: Path) -> None:
    root = tmp_path / "tier"
    root.mkdir()
    assert not copy_holds(str(root), render_holds([], "c"))
    (root / ".lifecycle").mkdir()
    (root / ".lifecycle/holds.json").write_text('{"holds": [{}]}')
    with pytest.raises(Damaged, match="holds of"):
        read_holds(str(root))
