"""``copy_after`` and relief on disk: stored early, released later or at once, and right again after a touch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lifecycle.acting import open_site
from lifecycle.engine.local import LocalEngine
from lifecycle.errors import ExitCode
from lifecycle.execute import executor
from lifecycle.execute.purge import purge_originals
from lifecycle.execute.watch import ReliefWatch
from lifecycle.model import ActionKind, ReasonCode, TierName
from lifecycle.plan.pressure import FileSystem
from lifecycle.scan.space import Ground
from lifecycle.session import RunOptions, Session
from tests.builders import a_batch, a_class, a_file_system, a_fill, a_quota, a_reason
from tests.crash.world import World, digest_of

FILES = tuple((f"vision/train-1/rank_{rank}.log", "5h", 300 + rank) for rank in range(4))
NAME = FILES[0][0]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", files=FILES, source={"copy_after": timedelta(hours=2)}).make()


@dataclass
class FullDisk:
    """A file system of 1000 MiB under the sources, so much of it used; ``frees`` is what each look finds gone."""

    used: int
    frees: int = 0
    unknown: str = ""
    unit: str = "MiB"
    tiers: tuple[TierName, ...] = (TierName.HOT,)

    def __call__(self, grounds: Sequence[Ground]) -> tuple[FileSystem, ...]:
        self.used -= self.frees
        places = tuple(ground.place_id for ground in grounds if ground.tier in self.tiers)
        used, total = f"{self.used}{self.unit}", f"1000{self.unit}"
        return (a_file_system(used=used, total=total, tiers=self.tiers, place_ids=places, unknown=self.unknown),)


def phases(report: Any) -> dict[str, int]:
    return {phase.action.value: phase.segments for phase in report.phases}


def test_a_copy_is_stored_and_verified_while_the_original_stays(world: World) -> None:
    report = world.run("2h")
    assert phases(report) == {"copy": 4}
    assert set(world.originals().values()) == {"settled"}
    assert len(world.objects()[TierName.WARM]) == 1
    assert world.readable() == world.manifest()
    assert world.broken_books() == []
    assert world.batches() == [("copy", "closed")]
    assert phases(world.run("3h")) == {}, "nothing is stored twice"


def test_usage_counts_the_original_and_its_copy(world: World) -> None:
    """Bug case B30: two measures, each with its name, out of the segments' states."""
    report = world.run("2h")
    used = {each.tier: each.usage.segments for each in report.after}
    assert used == {TierName.HOT: 4, TierName.WARM: 4}


def test_a_copied_original_is_released_when_it_is_due_and_nothing_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run("2h")
    monkeypatch.setattr(executor, "require_readable", lambda *_: pytest.fail("the stored copy was read again"))
    monkeypatch.setattr(executor, "changed_originals", lambda *_: pytest.fail("the original was read again"))
    report = world.run("20h")
    assert phases(report) == {"release": 4}
    assert set(world.originals().values()) == {"released"}
    assert not list(world.logs.rglob("*.log"))
    assert world.readable() == world.manifest()
    assert world.broken_books() == []


def test_a_copied_original_whose_object_is_gone_stays(world: World) -> None:
    world.run("2h")
    (key,) = world.objects()[TierName.WARM]
    (world.folder / "warm" / key).unlink()
    report = world.run("20h")
    assert report.exit_code is ExitCode.DAMAGE
    assert len(list(world.logs.rglob("*.log"))) == 4


def test_what_is_appended_to_is_stored_anew_and_only_once(world: World) -> None:
    world.run("2h")
    with (world.logs / NAME).open("ab") as out:
        out.write(b"one more line\n")
    at = (world.begun - timedelta(hours=4)).timestamp()
    os.utime(world.logs / NAME, (at, at))
    content = (world.logs / NAME).read_bytes()
    assert phases(world.run("2h")) == {"copy": 1}  # quiet again: copied anew
    world.run("21h")
    assert world.originals()[NAME] == "released"
    assert [digest for (path, digest), times in world.readable().items() if path == NAME for _ in range(times)] == [
        digest_of(content)
    ]
    assert world.broken_books() == []


def test_an_archive_is_as_old_as_the_newest_of_those_that_are_left_in_it(world: World) -> None:
    last = FILES[-1][0]
    later = (world.begun - timedelta(hours=3)).timestamp()
    os.utime(world.logs / last, (later, later))
    world.run("2h")
    with (world.logs / last).open("ab") as out:
        out.write(b"one more line\n")
    again = (world.begun + timedelta(hours=2)).timestamp()
    os.utime(world.logs / last, (again, again))
    assert phases(world.run("150m")) == {}, "dropped from its archive, and not quiet yet"
    ((members, newest, oldest),) = world.rows("SELECT live_members, newest_write_ns, oldest_write_ns FROM archives")
    first = (world.logs / NAME).stat().st_mtime_ns
    assert (members, newest, oldest) == (3, first, first)
    world.run("164h")  # the others are 169 hours old, the one that was written again 162
    tiers = {path: segment.tier for path, segment in world.segments().items()}
    assert tiers[NAME] is TierName.COLD and tiers[last] is TierName.WARM
    assert world.broken_books() == []


def test_an_edit_with_its_time_put_back_is_not_lost_by_a_release_without_reading(world: World) -> None:
    world.run("2h")
    file = world.logs / NAME
    found = file.stat()
    with file.open("r+b") as out:
        out.seek(150)
        out.write(b"EDITED")
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    content = file.read_bytes()
    world.run("20h")
    assert (NAME, digest_of(content)) in world.readable()
    assert world.broken_books() == []


def test_an_edit_between_scan_and_release_is_seen_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run("2h")
    real = executor.require_copies

    def touched(*args: Any) -> None:
        (world.logs / NAME).write_bytes(b"another\n" * 10)
        real(*args)

    monkeypatch.setattr(executor, "require_copies", touched)
    world.run("20h")
    assert (world.logs / NAME).read_bytes() == b"another\n" * 10
    monkeypatch.undo()
    world.run("21h")
    assert world.broken_books() == []


# --- relief -----------------------------------------------------------------------------------------------------------


def test_under_pressure_copied_originals_go_at_once(world: World) -> None:
    world.run("2h")
    world.policy_more, world.measure = {"hot": a_fill()}, FullDisk(850, frees=10)
    report = world.run("3h")
    assert phases(report)["release"] == 4
    assert set(world.originals().values()) == {"released"}
    assert world.readable() == world.manifest()


def test_nothing_is_evicted_where_there_is_room(world: World) -> None:
    world.run("2h")
    world.policy_more, world.measure = {"hot": a_fill()}, FullDisk(700)
    assert phases(world.run("3h")) == {}


def test_what_cannot_be_reached_ends_with_exit_7(world: World) -> None:
    world.policy_more, world.measure = {"hot": a_fill()}, FullDisk(990)
    world.source = {}
    report = world.run("10m")  # all is open
    assert report.exit_code is ExitCode.ATTENTION
    assert [(line.subject, line.is_alarm) for line in report.broken] == [("hot", True)]
    assert report.broken[0].open_bytes > 0


def test_a_file_system_that_cannot_be_measured_is_a_problem_and_nothing_is_done_for_it(world: World) -> None:
    world.policy_more = {"hot": a_fill()}
    world.measure = FullDisk(990, unknown="free_space command fullest: exit 1")
    world.source = {}
    report = world.run("2h")
    assert report.exit_code is ExitCode.PARTIAL
    assert [problem.phase for problem in report.problems] == ["space"]
    assert phases(report) == {}


def test_three_batches_without_a_gain_end_relief_and_what_is_due_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [(f"team{number}/train-1/rank_0.log", "5h", 300) for number in range(6)]
    files = (*jobs, ("vision/train-2/rank_9.log", "3d", 300))
    disk = FullDisk(990, unit="KiB")
    world = World(tmp_path / "world", files=files, policy_more={"hot": a_fill()}, measure=disk).make()
    slept: list[float] = []
    monkeypatch.setattr("lifecycle.run.time.sleep", slept.append)
    monkeypatch.setattr("lifecycle.execute.watch.SEEN_WITHIN_SECONDS", 0.0)
    report = world.run("2h")
    assert report.exit_code is ExitCode.ATTENTION
    originals = world.originals()
    assert originals["vision/train-2/rank_9.log"] == "released"
    assert sum(state == "released" for path, state in originals.items() if path.startswith("team")) == 3
    assert any("no room was seen" in problem.message for problem in report.problems)


def test_what_relief_puts_on_the_same_file_system_is_no_gain(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    monkeypatch.setattr(ReliefWatch, "ended", lambda self, batch, **figures: told.append(figures))
    world.source = {}
    world.policy_more = {"hot": a_fill()}
    world.measure = FullDisk(810, tiers=(TierName.HOT, TierName.WARM))
    allocated = sum(file.stat().st_blocks * 512 for file in world.logs.rglob("*.log"))
    assert phases(world.run("2h")) == {"merge": 4}, "warm is as full, and what goes there frees more than it takes"
    (key,) = world.objects()[TierName.WARM]
    stored = (world.folder / "warm" / key).stat().st_size
    assert told == [{"freed_bytes": allocated, "stored_bytes": stored}]


def test_what_goes_to_the_same_file_system_goes_one_batch_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tuple((f"team{number}/train-1/rank_0.log", "5h", 300) for number in range(4))
    steps = []
    for name in ("begin_move", "close_move"):
        real = getattr(executor, name)
        monkeypatch.setattr(executor, name, lambda *a, real=real, name=name: (steps.append(name), real(*a))[1])
    disk = FullDisk(990, frees=10, tiers=(TierName.HOT, TierName.WARM))
    world = World(tmp_path / "world", files=files, policy_more={"hot": a_fill()}, measure=disk).make()
    monkeypatch.setattr(executor, "INLINE_SEGMENTS", 0)
    monkeypatch.setattr(executor, "INLINE_BYTES", 0)
    assert phases(world.run("2h")) == {"transition": 4}
    assert steps == ["begin_move", "close_move"] * 4


def test_a_team_over_its_hard_quota_gives_down_to_its_soft_one(tmp_path: Path) -> None:
    files = tuple((f"vision/train-1/rank_{rank}.log", f"{20 - rank}h", 5000) for rank in range(5))
    quotas = {"default_quota": {"hot": a_quota(soft="16KiB", hard="30KiB")}}
    world = World(tmp_path / "world", files=files, policy_more=quotas).make()
    report = world.run("2h")
    left = sorted(path for path, state in world.originals().items() if state == "settled")
    assert left == ["vision/train-1/rank_3.log", "vision/train-1/rank_4.log"]
    assert report.exit_code is ExitCode.DONE
    assert [line.name for line in report.relief] == ["team vision on hot"]
    assert phases(world.run("3h")) == {}


def test_the_only_copy_goes_early_where_its_class_allows_and_the_event_says_why(tmp_path: Path) -> None:
    files = (("vision/train-1/rank_0.log", "12d", 5000), ("vision/train-1/rank_1.log", "2d", 5000))
    early = a_class("training", warm_after=None, cold_after=None, expire_early=timedelta(days=7))
    quotas = {"default_quota": {"hot": a_quota(soft="8KiB", hard="9KiB")}}
    world = World(tmp_path / "world", files=files, classes=(early,), tiers=(), policy_more=quotas).make()
    first = world.run("2h")
    assert first.exit_code is ExitCode.ATTENTION, "it was first seen a moment ago: kept, and an alarm"
    report = world.run("27h")
    assert world.originals() == {files[0][0]: "purged", files[1][0]: "settled"}
    assert report.exit_code is ExitCode.DONE
    ((body,),) = world.rows("SELECT body FROM events WHERE kind = 'purge'")
    assert '"expired_early"' in body
    assert world.broken_books() == []


def purged_by(world: World, after: str, reason: ReasonCode) -> tuple[int, int]:
    """Segments gone and kept, when a batch of relief says that all of them may go."""
    segments = list(world.segments().values())
    batch = a_batch(segments, kind=ActionKind.PURGE, tier_to=None, reason=a_reason(reason), relief="hot")
    with world.app(after) as app, Session(app, "run") as session:
        session.take_leases(RunOptions())
        with LocalEngine() as engine:
            tally = purge_originals(open_site(session, engine, lambda: ""), batch)
    return tally.segments, tally.kept


@pytest.mark.parametrize("name", ["training", "error"])
def test_a_plan_files_word_alone_expires_nothing_early(tmp_path: Path, name: str) -> None:
    """The executor asks today's policy and the catalog again: not allowed, and never for errors."""
    files = (("vision/train-1/rank_0.log", "12d", 5000),)
    early = timedelta(days=7) if name == "error" else None
    rule = a_class(name, warm_after=None, cold_after=None, expire_after="30d", expire_early=early)
    world = World(tmp_path / "world", files=files, classes=(rule,), tiers=()).make()
    world.run("2h")
    assert purged_by(world, "27h", ReasonCode.EXPIRED_EARLY) == (0, 1)
    assert world.originals() == {files[0][0]: "settled"}


def test_a_plan_files_word_alone_purges_no_mark_of_this_day(tmp_path: Path) -> None:
    files = (("vision/train-1/rank_0.log", "12d", 5000),)
    rule = a_class("training", warm_after=None, cold_after=None, expire_after="7d")
    world = World(tmp_path / "world", files=files, classes=(rule,), tiers=()).make()
    world.run("2h")
    world.run("27h")
    assert purged_by(world, "50h", ReasonCode.OVER_HIGH) == (0, 1)
    assert purged_by(world, "52h", ReasonCode.OVER_HIGH) == (1, 0)
