"""Holds in the catalog: who becomes a member when, what ends, and that a purge looks once more as it is recorded."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle import holding
from lifecycle.app import App
from lifecycle.catalog import holds
from lifecycle.catalog.events import iter_events
from lifecycle.catalog.expiry import Expiry
from lifecycle.model import Selector, TierName
from tests.crash.world import World

ALL = Selector(teams=("*",))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world").make()


def hold(app: App, selector: Selector = ALL, **more: object) -> int:
    given = {"reason": "paper", "owner": "chen", "ends": None, "pending": False} | more
    return holding.add(app, selector, **given).holds[0].id  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "selector",
    [
        ALL,
        Selector(teams=("vision",), jobs=("train-*",), ranks=(0, 3), classes=("training",)),
        Selector(nodes=("gpu-1",), tiers=(TierName.WARM,), states=("marked",), since_ns=1, until_ns=5),
        Selector(paths=(b"/srv/logs/a\xff\nb.log",)),
    ],
)
def test_a_selector_comes_back_as_it_was(selector: Selector) -> None:
    assert holds.parse_selector(holds.selector_text(selector)) == selector


def test_what_was_covered_stays_covered_and_new_segments_come(world: World) -> None:
    world.run("1h")
    with world.app("1h") as app:
        hold(app, Selector(tiers=(TierName.HOT,)))
        with app.catalog.read() as conn:
            before = conn.exec_driver_sql("SELECT segment_id FROM hold_members ORDER BY 1").fetchall()
    assert before
    world.run("26h")  # into warm
    with world.app("26h") as app, app.catalog.read() as conn:
        assert set(before) <= set(conn.exec_driver_sql("SELECT segment_id FROM hold_members").fetchall())


def test_a_second_look_costs_nothing_and_finds_nothing(world: World) -> None:
    world.run("1h")
    with world.app("1h") as app:
        hold(app, Selector(jobs=("train-1",)))
        with app.catalog.read() as conn:
            (standing,) = holds.standing_holds(conn)
        assert holds.apply_holds(app.catalog, [standing]) == {standing.id: 0}
        with app.catalog.write() as conn:
            conn.exec_driver_sql("DELETE FROM hold_members")
        assert holds.apply_holds(app.catalog, [standing]) == {standing.id: 0}  # known segments are not asked again
        with app.catalog.write() as conn:
            holds.look_again(conn)
        assert holds.apply_holds(app.catalog, [standing]) == {standing.id: 4}


def test_a_date_ends_a_hold_unless_the_clock_is_not_believed(world: World) -> None:
    world.run("1h")
    with world.app("1h") as app:
        number = hold(app, ends=app.now() + timedelta(days=1))
    with world.app("2d") as app:
        holding.refresh(app, now=app.now(), run_id=None, keeps_all=True)
        with app.catalog.read() as conn:
            assert [each.id for each in holds.standing_holds(conn)] == [number]
        holding.refresh(app, now=app.now(), run_id=None, keeps_all=False)
        with app.catalog.read() as conn:
            assert holds.standing_holds(conn) == []
            assert conn.exec_driver_sql("SELECT count(*) FROM hold_members").scalar_one() == 0
        kinds = [event.kind for event in iter_events(app.catalog) if event.kind.startswith("hold")]
        assert kinds == ["hold_began", "hold_ended"]


def test_a_hold_that_comes_while_a_purge_is_on_its_way_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was looked at, it was intended; the hold comes before the event that would say it goes."""
    for after in ("1d", "8d", "40d"):
        world.run(after)
    record = Expiry.record_purge

    def held_meanwhile(self: Expiry, *arguments: object) -> bool:
        with world.app("44d") as other:
            with other.catalog.read() as conn:
                standing = holds.standing_holds(conn)
            if not standing:
                hold(other)
        return record(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Expiry, "record_purge", held_meanwhile)
    before = world.readable()
    report = world.run("44d")
    assert report.exit_code == 0 and world.readable() == before
    assert ("purge", "abandoned") in world.batches()
    assert world.broken_books() == []
    monkeypatch.undo()
    world.run("45d")
    assert world.readable() == before


def test_a_mark_is_not_set_on_what_was_held_since_the_plan(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for after in ("1d", "8d"):
        world.run(after)
    mark = Expiry.mark

    def held_meanwhile(self: Expiry, *arguments: object) -> int:
        with world.app("40d") as other:
            with other.catalog.read() as conn:
                standing = holds.standing_holds(conn)
            if not standing:
                hold(other)
        return mark(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Expiry, "mark", held_meanwhile)
    world.run("40d")
    with world.app("40d") as app, app.catalog.read() as conn:
        assert conn.exec_driver_sql("SELECT count(*) FROM marks").scalar_one() == 0
