"""What a hold forbids, decided for one segment: never a mark, a purge or an early end; never a move."""

from __future__ import annotations

from dataclasses import replace

from lifecycle.model import ActionKind, ReasonCode, TierName
from lifecycle.plan.decide import (
    candidate_of,
    early_expiry_blocker,
    early_purge_blocker,
    mark_blocker,
    mark_fault,
    move_blocker,
    purge_blocker,
)
from lifecycle.plan.figures import FigureBook, Figures
from tests.builders import NOON_NS, a_class, a_policy, a_segment
from tests.unit.plan.views import a_view, an_archive_of, plan_of

POLICY = a_policy(classes=[a_class("training", warm_after="24h", cold_after=None, expire_after="30d")])


def figures() -> Figures:
    found = FigureBook(POLICY).of("vision", "training")
    assert isinstance(found, Figures)
    return found


def test_a_hold_is_the_first_thing_that_stands_against_an_end() -> None:
    held = candidate_of(a_segment("40d", marked="10d", hold_id=3), None)
    free = held._replace(hold_id=None)
    assert mark_fault(held, figures(), NOON_NS) is ReasonCode.HELD and mark_fault(free, figures(), NOON_NS) is None
    assert purge_blocker(held, figures(), 0, NOON_NS) is ReasonCode.HELD
    assert purge_blocker(free, figures(), 0, NOON_NS) is None
    assert early_purge_blocker(held, figures(), NOON_NS) is ReasonCode.HELD
    assert early_purge_blocker(free, figures(), NOON_NS) is None
    assert mark_blocker(held, figures(), NOON_NS) is ReasonCode.HELD
    early = replace(figures(), rule=replace(figures().rule, expire_early=POLICY.grace))
    assert early_expiry_blocker(held, early, NOON_NS) is ReasonCode.HELD
    assert move_blocker(held, NOON_NS) is None


def test_a_held_segment_moves_on_and_its_mark_comes_off() -> None:
    young = a_segment("2d", hold_id=3)
    old, stored = an_archive_of(a_segment("40d", marked="10d", hold_id=3), tier=TierName.WARM)
    plan = plan_of(a_view(young, *stored, archives=[old]), POLICY)
    assert [(batch.kind, batch.reason.code) for batch in plan.batches] == [
        (ActionKind.UNMARK, ReasonCode.HELD), (ActionKind.TRANSITION, ReasonCode.AGED),
    ]  # fmt: skip


def test_an_expired_segment_that_is_held_is_kept_with_that_reason() -> None:
    archive, stored = an_archive_of(a_segment("40d", hold_id=3), a_segment("40d"), tier=TierName.WARM)
    plan = plan_of(a_view(*stored, archives=[archive]), POLICY)
    assert [(kept.reason.code, kept.segments) for kept in plan.kept] == [(ReasonCode.HELD, 1)]
    assert [batch.segments for batch in plan.of(ActionKind.MARK)] == [1]


def test_one_held_member_keeps_the_others_of_its_archive() -> None:
    members = a_segment("40d", size="3MiB", marked="10d", hold_id=3), a_segment("40d", marked="10d")
    archive, stored = an_archive_of(*members, tier=TierName.WARM)
    plan = plan_of(a_view(*stored, archives=[archive]), POLICY)
    assert not plan.of(ActionKind.PURGE)
    assert (ReasonCode.BESIDE_HELD, 1) in [(kept.reason.code, kept.segments) for kept in plan.kept]
