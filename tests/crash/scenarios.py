"""What is killed in the crash suite: a world made ready, one command on it, and what must be readable afterwards.

A new action needs a scenario here; the walk through its steps, the rerun and the invariants come by themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from lifecycle import holding
from lifecycle.model import Selector
from lifecycle.report.figures import RunReport
from tests.builders import a_class, a_quota
from tests.crash.world import BELOW, LARGE, FaultyWorld, World

Readable = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Scenario:
    """``kill`` is what dies; ``rerun`` is the one run afterwards, at the same clock."""

    make: Callable[[Path], World]
    after: str
    kept: Callable[[World], Readable]
    prepare: Callable[[World], object] = lambda world: None
    command: str = "run"  # or "restore"
    sees_writers: bool = True
    parked: int = 0  # originals that wait in our folder after the rerun
    does: str = ""  # the phase without which the scenario would show nothing

    def kill(self, world: World) -> str:
        """What it did, if it came to its end."""
        if self.command == "restore":
            return f"restore of {world.restore(self.after, in_place=True).files}"
        return " ".join(phase.action for phase in self.run(world).phases)

    def run(self, world: World) -> RunReport:
        return world.run(self.after)


def _all(world: World) -> Readable:
    return world.manifest()


def _nothing(world: World) -> Readable:
    return Counter()


def _young(world: World) -> Readable:
    return world.manifest("nlp/train-2/rank_9.log")


def _world(folder: Path) -> World:
    return World(folder)


def _with_a_late_one(folder: Path) -> World:
    return World(folder, late=(("vision/train-1/rank_7.log", "3d", 505),))


def _never_cold(folder: Path) -> World:
    return World(folder, classes=(a_class("training", cold_after=None),))


def _without_tiers(folder: Path) -> World:
    """Three files past their retention and one that is not, under a policy that sends nothing anywhere."""
    files = (
        ("vision/train-1/rank_0.log", "12d", 300),
        ("vision/train-1/rank_1.log", "12d", LARGE),
        ("nlp/train-2/rank_0.log", "12d", 278),
        ("nlp/train-2/rank_9.log", "1h", 150),
    )
    figures = a_class("training", warm_after=None, cold_after=None, expire_after="7d")
    return World(folder, files=files, classes=(figures,), tiers=())


# Over it is whoever has more than one small file; it is met when one is left.
_ONE_FILE: Final = {"default_quota": {"hot": a_quota(soft="4KiB", hard="5KiB")}}


def _over_quota(folder: Path) -> World:
    """The same, and each team over its hard quota: what is marked goes before its grace is over."""
    world = _without_tiers(folder)
    world.policy_more = dict(_ONE_FILE)
    return world


def _may_expire_early(folder: Path) -> World:
    world = _over_quota(folder)
    early = timedelta(days=7)
    figures = a_class("training", warm_after=None, cold_after=None, expire_after="30d", expire_early=early)
    world.classes = (figures,)
    return world


def _copied_early(folder: Path) -> World:
    files = (
        ("vision/train-1/rank_0.log", "5h", 300),
        ("vision/train-1/rank_1.log", "5h", 411),
        ("vision/train-1/rank_3.log", "5h", LARGE),
        ("nlp/train-2/rank_0.log", "5h", 278),
    )
    return World(folder, files=files, source={"copy_after": timedelta(hours=1)})


def _with_a_young_one(folder: Path) -> World:
    files = (*World(folder).files[:4], ("nlp/train-2/rank_0.log", "3d", 278))
    return World(folder, files=files)


def _one_archive(folder: Path) -> World:
    return World(folder, files=World(folder).files[:3])


def _faulty(folder: Path) -> World:
    return FaultyWorld(folder)


def _faulty_copied(folder: Path) -> World:
    return FaultyWorld(folder, files=_copied_early(folder).files, source={"copy_after": timedelta(hours=1)})


def _faulty_in_hot(folder: Path) -> World:
    """Nothing is due but to be looked through: by the time it may go early, it is not yet over its retention."""
    figures = a_class("training", warm_after=None, cold_after=None, expire_early=timedelta(days=7))
    return FaultyWorld(folder, files=_without_tiers(folder).files, classes=(figures,))


def _stored_unasked(world: World) -> None:
    """As it was before policy asked for errors: stored, and nobody looked through it."""
    assert isinstance(world, FaultyWorld)
    world.asks = False
    world.run("2h")
    world.asks = True


def _two_archives_of_a_day(world: World) -> None:
    world.run("2h")
    world.write_late()
    world.run("4h")


def _stored_and_marked(world: World) -> None:
    world.run("2h")
    world.run("8d")
    world.run("40d")


def _two_archives_in_cold(world: World) -> None:
    """Stored one by one, as by two runs of one day, and cold each by itself."""
    world.below = "1B"
    _two_archives_of_a_day(world)
    world.run("8d")
    world.below = BELOW


def _marked_but_for_one(world: World) -> None:
    """All of one archive is marked, then somebody holds a member that is less than half of it."""
    _stored_and_marked(world)
    with world.app("41d") as app:
        held = Selector(ranks=(0,))
        holding.add(app, held, reason="paper", owner="chen", ends=None, pending=False)


def _marked_in_place(world: World) -> None:
    world.run("2h")
    world.run("27h")  # a mark needs a day since first sight


def _seen(world: World) -> None:
    world.run("2h")


def _restored(world: World) -> None:
    world.run("2h")
    world.restore("3h", in_place=True)


def _all_warm(world: World) -> None:
    world.run("2h")


def _all_cold(world: World) -> None:
    world.run("2h")
    world.run("8d")


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "hot to warm, merged and single": Scenario(make=_world, after="2h", kept=_all, does="merge"),
    "hot to warm, errors kept": Scenario(make=_faulty, after="2h", kept=_all, does="merge"),
    "warm to cold with companions": Scenario(make=_faulty, prepare=_all_warm, after="8d", kept=_all, does="merge"),
    "copies made early, errors kept": Scenario(make=_faulty_copied, after="2h", kept=_all, does="copy"),
    "extraction of archives": Scenario(make=_faulty, prepare=_stored_unasked, after="3h", kept=_all, does="extract"),
    "extraction of originals": Scenario(make=_faulty_in_hot, after="2h", kept=_all, does="extract"),
    "warm to cold, archives merged": Scenario(
        make=_with_a_late_one, prepare=_two_archives_of_a_day, after="8d", kept=_all, does="merge"
    ),
    "marks": Scenario(make=_with_a_young_one, prepare=_all_cold, after="40d", kept=_all, does="mark"),
    "purge of archives": Scenario(
        make=_with_a_young_one, prepare=_stored_and_marked, after="44d", kept=_nothing, does="purge"
    ),
    "tiny archives into one": Scenario(
        make=_with_a_late_one, prepare=_two_archives_in_cold, after="11d", kept=_all, does="merge"
    ),
    "rewrite beside a held member": Scenario(
        make=_one_archive, prepare=_marked_but_for_one, after="44d", kept=_all, does="rewrite"
    ),
    "purge of originals": Scenario(
        make=_without_tiers, prepare=_marked_in_place, after="6d", kept=_young, does="purge"
    ),
    "purge ahead of time": Scenario(make=_over_quota, prepare=_marked_in_place, after="52h", kept=_young, does="purge"),
    "expiration ahead of time": Scenario(make=_may_expire_early, prepare=_seen, after="27h", kept=_young, does="purge"),
    "copies made early": Scenario(make=_copied_early, after="2h", kept=_all, does="copy"),
    "release of what was copied": Scenario(
        make=_copied_early, prepare=_all_warm, after="30h", kept=_all, does="release"
    ),
    "restore in place": Scenario(make=_world, prepare=_all_warm, after="3h", kept=_all, command="restore"),
    "release of restored originals": Scenario(
        make=_never_cold, prepare=_restored, after="8d", kept=_all, does="release"
    ),
    "originals parked": Scenario(make=_world, after="2h", kept=_all, sees_writers=False, parked=5, does="merge"),
    "parked originals finished": Scenario(
        make=_world, prepare=_all_warm, after="27h", kept=_all, sees_writers=False, parked=1
    ),
}
