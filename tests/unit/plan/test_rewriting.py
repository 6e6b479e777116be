"""When an archive is rewritten for held members: one is held, and at least half of its bytes would go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lifecycle.model import ActionKind, ArchiveState, ReasonCode, Segment, TierName
from lifecycle.plan.planner import iter_batches
from tests.builders import NOON, a_class, a_policy, a_segment
from tests.unit.plan.views import a_view, an_archive_of, plan_of

POLICY = a_policy(classes=[a_class("training", warm_after="24h", cold_after=None, expire_after="30d")])


def goes(size: str) -> Segment:
    return a_segment("40d", size=size, marked="10d")


def held(size: str, **more: object) -> Segment:
    return a_segment("40d", size=size, hold_id=3, **more)


@pytest.mark.parametrize(("gone", "kept", "is_rewritten"), [("5MiB", "5MiB", True), ("4MiB", "5MiB", False)])
def test_half_of_the_bytes_is_worth_it(gone: str, kept: str, is_rewritten: bool) -> None:
    archive, stored = an_archive_of(goes(gone), held(kept), tier=TierName.WARM)
    plan = plan_of(a_view(*stored, archives=[archive]), POLICY)
    found = [(b.archive_ids, b.segments, b.tier_from, b.tier_to) for b in plan.of(ActionKind.REWRITE)]
    assert found == ([((archive.id,), 1, TierName.WARM, TierName.WARM)] if is_rewritten else [])
    reasons = [(kept.reason.code, kept.segments) for kept in plan.kept]
    assert ((ReasonCode.BESIDE_HELD, 1) in reasons) is not is_rewritten


def test_what_stays_for_another_reason_comes_along() -> None:
    """And alone it is no reason: it goes in days."""
    young = a_segment("20d", size="1MiB")
    archive, stored = an_archive_of(goes("5MiB"), held("1MiB"), young, tier=TierName.WARM)
    (batch,) = plan_of(a_view(*stored, archives=[archive]), POLICY).of(ActionKind.REWRITE)
    assert (batch.segments, batch.logical_bytes, batch.mode, batch.gid) == (2, 2 * 2**20, archive.mode, archive.gid)
    alone, kept = an_archive_of(goes("5MiB"), young, tier=TierName.WARM)
    plan = plan_of(a_view(*kept, archives=[alone]), POLICY)
    assert not plan.of(ActionKind.REWRITE)
    assert (ReasonCode.ARCHIVE_SHARED, 1) in [(each.reason.code, each.segments) for each in plan.kept]


def test_a_damaged_archive_is_left_alone() -> None:
    archive, stored = an_archive_of(goes("5MiB"), held("1MiB"), tier=TierName.WARM, state=ArchiveState.QUARANTINED)
    assert not plan_of(a_view(*stored, archives=[archive]), POLICY).of(ActionKind.REWRITE)


def test_in_a_full_tier_nothing_is_rewritten() -> None:
    archive, stored = an_archive_of(goes("5MiB"), held("1MiB"), tier=TierName.WARM)
    source = a_view(*stored, archives=[archive]).source()
    full = frozenset([TierName.WARM])
    assert not [b for b in iter_batches(source, POLICY, NOON, full=full) if getattr(b, "kind", "") == "rewrite"]


def test_rewrites_alone_can_be_asked_for() -> None:
    archive, stored = an_archive_of(goes("5MiB"), held("1MiB"), tier=TierName.WARM)
    source = a_view(*stored, archives=[archive]).source()
    kinds = [getattr(b, "kind", "kept") for b in iter_batches(source, POLICY, NOON, only=[ActionKind.REWRITE])]
    assert kinds == [ActionKind.REWRITE]


def test_what_moves_to_cold_is_moved_first() -> None:
    policy = a_policy(classes=[a_class("training", warm_after="24h", cold_after="7d", expire_after="30d")])
    archive, stored = an_archive_of(goes("5MiB"), held("1MiB"), tier=TierName.WARM)
    plan = plan_of(a_view(*stored, archives=[archive]), policy)
    assert not plan.of(ActionKind.REWRITE) and plan.of(ActionKind.TRANSITION)
    cold = [replace(member, archive_tier=TierName.COLD, tier=TierName.COLD) for member in stored]
    assert plan_of(a_view(*cold, archives=[replace(archive, tier=TierName.COLD)]), policy).of(ActionKind.REWRITE)
