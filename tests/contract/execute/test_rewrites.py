"""An archive rewritten for a held member: read from the new one, the old one waits, and goes with what may go."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from lifecycle import holding
from lifecycle.archive import open_archive
from lifecycle.execute import executor
from lifecycle.execute.orders import PackResult, RepackOrder
from lifecycle.execute.pack import run_repack
from lifecycle.model import Selector, TierName
from lifecycle.ports import TierSpec
from lifecycle.tiers import open_tier
from tests.contract.execute.test_recovery_edges import die
from tests.crash.world import World

FILES = (
    ("vision/train-1/rank_0.log", "3d", 300),
    ("vision/train-1/rank_1.log", "3d", 411),
    ("vision/train-1/rank_2.log", "3d", 0),
)
HELD = FILES[0][0]


def hold(world: World, after: str, rank: int = 0) -> int:
    with world.app(after) as app:
        selector = Selector(ranks=(rank,))
        report = holding.add(app, selector, reason="paper", owner="chen", ends=None, pending=False)
        return report.holds[0].id


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All of one archive marked, and one member held since."""
    world = World(tmp_path / "world", files=FILES).make()
    for after in ("2h", "8d", "40d"):
        world.run(after)
    hold(world, "41d")
    return world


def cold(world: World) -> list[str]:
    return world.objects()[TierName.COLD]


def test_held_members_leave_and_the_rest_goes_after_another_grace(world: World) -> None:
    (old,) = cold(world)
    report = world.run("44d")
    assert [(phase.action.value, phase.segments) for phase in report.phases] == [("unmark", 1), ("rewrite", 1)]
    assert len(cold(world)) == 2 and world.readable() == world.manifest()
    assert world.broken_books() == []
    assert work(world, "46d") == {}  # the old one has the grace time, too
    assert world.readable() == world.manifest()
    assert work(world, "48d") == {"purge": 2}
    assert world.readable() == world.manifest(HELD)
    assert old not in cold(world) and len(cold(world)) == 1
    assert world.broken_books() == []


def work(world: World, after: str) -> dict[str, int]:
    return {phase.action.value: phase.segments for phase in world.run(after).phases}


def test_the_new_archive_names_the_one_it_replaces(world: World) -> None:
    (old,) = cold(world)
    world.run("44d")
    (new,) = set(cold(world)) - {old}
    spec = TierSpec(kind="local", root=str(world.folder / "cold"))
    with closing(open_tier(spec)) as tier, open_archive(tier.open(new), name=new) as archive:
        assert archive.manifest.context.replaces == (old,)
        assert [member.facts.path for member in archive.manifest.members] == [HELD.encode()]


def test_after_an_end_of_the_hold_nothing_is_rewritten(world: World) -> None:
    with world.app("42d") as app:
        holding.end(app, [1], by="chen", why="out")
    assert work(world, "44d") == {"purge": 3}  # the mark of the held one had not come off yet
    assert cold(world) == []


def test_a_hold_that_comes_while_it_is_rewritten_keeps_what_it_covers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(order: RepackOrder) -> PackResult:
        hold(world, "44d", rank=1)
        return run_repack(order)

    monkeypatch.setattr(executor, "run_repack", late)
    world.run("44d")
    monkeypatch.undo()
    assert world.broken_books() == []
    for after in ("48d", "52d", "60d"):
        world.run(after)
    assert world.readable() >= world.manifest(HELD, FILES[1][0])
    assert world.broken_books() == []


class TestARewriteThatDied:
    @pytest.fixture(autouse=True)
    def dead(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        die(world, "44d", monkeypatch, "commit_repacked")
        assert len(cold(world)) == 2

    def test_is_undone_while_the_old_archive_is_there_and_done_again(self, world: World) -> None:
        report = world.run("44d")
        assert report.recovery.undone == 1 and len(cold(world)) == 2
        assert world.readable() == world.manifest()
        assert world.broken_books() == []

    def test_is_adopted_when_the_old_archive_has_gone(self, world: World) -> None:
        (old,) = world.rows("SELECT key FROM archives WHERE state = 'live'")[0]
        (world.folder / "cold" / old).unlink()
        assert world.run("44d").recovery.adopted == 1
        with world.app("44d") as app, app.catalog.read() as conn:
            sql = "SELECT a.key FROM segments s JOIN archives a ON a.id = s.archive_id WHERE s.name = 'rank_0.log'"
            sql = sql.replace("'rank_0.log'", "?")
            (key,) = conn.exec_driver_sql(sql, (b"rank_0.log",)).one()
        assert key in cold(world)
