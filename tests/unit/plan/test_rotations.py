"""What is beyond the newest of a rotation set is moved ahead of its age: which, why, and only once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lifecycle.model import ActionKind, PlannedBatch, ReasonCode, Segment
from lifecycle.plan.planner import iter_batches
from lifecycle.plan.reasons import render_reason
from lifecycle.plan.source import CopyRule
from tests.builders import NOON, a_class, a_policy, a_segment, a_team
from tests.unit.plan.views import MOVES, a_view, plan_of

BASE = a_class("training", warm_after="24h", cold_after="7d", keep_last=2)
POLICY = a_policy(classes=[BASE])


def rotated(name: str, hours: float, **more: object) -> Segment:
    return replace(a_segment(timedelta(hours=hours), **more), name=name.encode(), directory=b"vision/train-1")


def moved(*segments: Segment, policy: object = POLICY) -> list[tuple[str, ...]]:
    names = {segment.id: segment.name.decode() for segment in segments}
    plan = plan_of(a_view(*segments), policy)  # type: ignore[arg-type]
    return [tuple(names[m.segment_id] for m in batch.members) for batch in plan.of(*MOVES)]


def test_the_live_file_and_the_newest_rotated_ones_stay() -> None:
    files = [rotated("a.log", 1), *(rotated(f"a.log.{n}", n + 1) for n in range(1, 5))]
    assert moved(*files) == [("a.log.3", "a.log.4")]
    plan = plan_of(a_view(*files), POLICY)
    (batch,) = plan.of(ActionKind.MERGE)
    assert batch.reason.code is ReasonCode.ROTATED_OUT
    assert render_reason(batch.reason) == "beyond the newest 2 of its rotation set"


def test_every_way_to_number_is_one_set_and_folders_are_apart() -> None:
    dated = [rotated(f"a.log-2026022{n}.gz", 10 - n) for n in range(1, 5)]
    assert moved(*dated) == [("a.log-20260221.gz", "a.log-20260222.gz")]
    elsewhere = [replace(file, directory=b"vision/train-%d" % n) for n, file in enumerate(dated)]
    assert moved(*elsewhere) == []


def test_open_ones_and_those_that_rest_stay_whatever_their_number() -> None:
    files = [rotated(f"a.log.{n}", n + 1) for n in range(1, 4)]
    aside = replace(files[2], set_aside_until_ns=2**62)
    assert moved(files[0], files[1], aside) == []


def test_what_its_age_moves_is_not_moved_twice() -> None:
    files = [rotated(f"a.log.{n}", 20 * n) for n in range(1, 5)]
    found = [name for batch in moved(*files) for name in batch]
    assert sorted(found) == ["a.log.2", "a.log.3", "a.log.4"]


def test_what_is_moved_is_not_copied_early_as_well() -> None:
    files = [rotated(f"a.log.{n}", n + 2) for n in range(1, 5)]
    copies = {files[0].place_id: CopyRule(3600 * 10**9, None)}
    items = iter_batches(a_view(*files).source(), POLICY, NOON, copies=copies)
    batches = [item for item in items if isinstance(item, PlannedBatch)]
    ids = [member.segment_id for batch in batches for member in batch.members]
    assert len(ids) == len(set(ids)) == 4


def test_a_team_may_set_its_own() -> None:
    own = a_team("vision", base=(BASE,), classes=[a_class("training", keep_last=None)])
    files = [rotated(f"a.log.{n}", n + 1) for n in range(1, 5)]
    assert moved(*files, policy=a_policy(classes=[BASE], teams=[own])) == []
