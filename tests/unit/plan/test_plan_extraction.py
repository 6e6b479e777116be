"""No extract, no delete: what is looked through on its own, and what waits for it."""

from __future__ import annotations

from dataclasses import replace

from lifecycle.model import ActionKind, ReasonCode, Segment, TierName
from lifecycle.plan.explain import explain
from tests.builders import NOON, NOON_NS, a_class, a_policy, a_segment, ago_ns
from tests.unit.plan.views import Plan, a_view, an_archive_of, plan_of

ERROR = a_class("error", expire_after="90d", line=10)
TRAINING = a_class("training", keep_errors_as="error")
POLICY = a_policy(classes=[ERROR, TRAINING])
IN_HOT = a_policy(classes=[ERROR, replace(TRAINING, warm_after=None, cold_after=None)])


def stored(*segments: Segment, **overrides: object) -> tuple[Plan, tuple[Segment, ...]]:
    archive, members = an_archive_of(*segments, tier=TierName.COLD)
    members = tuple(replace(member, **overrides) for member in members)
    return plan_of(a_view(*members, archives=[archive]), POLICY), members


def test_what_was_looked_through_is_marked_and_what_was_not_is_extracted_first() -> None:
    plan, looked = stored(a_segment("40d"), a_segment("40d"), error_blocks=2)
    assert plan.ids(ActionKind.MARK) == [segment.id for segment in looked]
    assert plan.of(ActionKind.EXTRACT) == []

    plan, (_, bare) = stored(a_segment("40d"), a_segment("40d"), error_blocks=None)
    assert plan.ids(ActionKind.MARK) == []
    (batch,) = plan.of(ActionKind.EXTRACT)
    assert batch.archive_ids == (bare.archive_id,)
    assert (batch.segments, batch.logical_bytes) == (2, 2 * 2**20)
    assert (batch.tier_from, batch.tier_to) == (TierName.COLD, TierName.COLD)
    assert batch.reason.code is ReasonCode.NOT_EXTRACTED
    assert plan.kept_codes == {ReasonCode.NOT_EXTRACTED: 2}


def test_it_is_done_as_soon_as_policy_asks_and_not_when_the_end_has_come() -> None:
    plan, _ = stored(a_segment("8d"), error_blocks=None)
    assert len(plan.of(ActionKind.EXTRACT)) == 1
    assert plan.kept_codes == {}


def test_a_class_that_keeps_no_errors_is_not_looked_through() -> None:
    archive, members = an_archive_of(a_segment("40d"), tier=TierName.COLD)
    view = a_view(*(replace(member, error_blocks=None) for member in members), archives=[archive])
    plan = plan_of(view, a_policy(classes=[ERROR, a_class("training")]))
    assert plan.of(ActionKind.EXTRACT) == []
    assert len(plan.of(ActionKind.MARK)) == 1


def test_what_could_not_be_read_rests_and_is_not_marked_either() -> None:
    plan, _ = stored(a_segment("40d"), error_blocks=None, set_aside_until_ns=NOON_NS + 1)
    assert plan.of(ActionKind.EXTRACT, ActionKind.MARK) == []
    assert plan.kept_codes == {ReasonCode.NOT_EXTRACTED: 1}


def test_an_archive_of_marked_members_waits_for_the_one_that_was_not_looked_through() -> None:
    marked = {"marked_ns": ago_ns("5d"), "purge_after_ns": ago_ns("2d")}
    archive, (one, other) = an_archive_of(a_segment("40d"), a_segment("40d"), tier=TierName.COLD)
    members = (replace(one, **marked), replace(other, error_blocks=None, **marked))
    plan = plan_of(a_view(*members, archives=[archive]), POLICY)
    assert plan.of(ActionKind.PURGE) == []
    assert plan.kept_codes == {ReasonCode.NOT_EXTRACTED: 1, ReasonCode.ARCHIVE_SHARED: 1}
    assert [batch.segments for batch in plan.of(ActionKind.EXTRACT)] == [1]

    members = (replace(one, **marked), replace(other, **marked))
    assert len(plan_of(a_view(*members, archives=[archive]), POLICY).of(ActionKind.PURGE)) == 1


def test_an_original_that_never_leaves_hot_is_looked_through_when_it_may_go() -> None:
    due, young, looked = a_segment("31d"), a_segment("29d"), a_segment("31d", error_blocks=0)
    plan = plan_of(a_view(due, young, looked), IN_HOT)
    assert plan.ids(ActionKind.EXTRACT) == [due.id]
    assert plan.ids(ActionKind.MARK) == [looked.id]
    (batch,) = plan.of(ActionKind.EXTRACT)
    assert (batch.tier_from, batch.tier_to) == (TierName.HOT, TierName.COLD)  # the age of class error asks for it


def test_an_original_that_was_marked_before_policy_asked_is_not_purged() -> None:
    marked = a_segment("40d", marked="5d", grace="3d")
    plan = plan_of(a_view(marked), IN_HOT)
    assert plan.of(ActionKind.PURGE) == []
    assert plan.ids(ActionKind.EXTRACT) == [marked.id]
    assert plan_of(a_view(replace(marked, error_blocks=0)), IN_HOT).ids(ActionKind.PURGE) == [marked.id]


def test_only_one_reader_set_and_window_go_together() -> None:
    one, other = (
        an_archive_of(a_segment("40d"), tier=TierName.COLD),
        an_archive_of(a_segment("41d"), tier=TierName.COLD),
    )
    archives = [one[0], other[0], replace(one[0], id=9999, mode=0o600)]
    segments = [
        replace(s, error_blocks=None, archive_id=a.id)
        for a, s in zip(archives, (*one[1], *other[1], replace(one[1][0], id=8888)), strict=True)
    ]
    plan = plan_of(a_view(*segments, archives=archives), POLICY)
    assert len(plan.of(ActionKind.EXTRACT)) == 3


def test_explain_names_the_step_and_the_condition() -> None:
    archive, (member,) = an_archive_of(a_segment("40d"), tier=TierName.COLD)
    found = explain(replace(member, error_blocks=None), archive, POLICY, NOON)
    assert found.next is not None and found.next.kind is ActionKind.EXTRACT
    mark = found.then[0]
    assert mark.kept_back is not None and mark.kept_back.code is ReasonCode.NOT_EXTRACTED
    assert [(it.is_met, it.current) for it in found.conditions if it.name == "its errors are kept"] == [
        (False, "not looked through")
    ]
    looked = explain(replace(member, error_blocks=3), archive, POLICY, NOON)
    assert looked.next is not None and looked.next.kind is ActionKind.MARK


def test_one_that_cannot_be_read_leaves_its_archive_so_that_the_others_can_go() -> None:
    marked = {"marked_ns": ago_ns("5d"), "purge_after_ns": ago_ns("2d")}
    archive, (one, other, bare) = an_archive_of(*(a_segment("40d") for _ in range(3)), tier=TierName.COLD)
    going = (replace(one, **marked), replace(other, **marked))
    tried = replace(bare, error_blocks=None, set_aside_until_ns=ago_ns("1d"))
    (batch,) = plan_of(a_view(*going, tried, archives=[archive]), POLICY).of(ActionKind.REWRITE)
    assert (batch.segments, batch.reason.code) == (1, ReasonCode.UNLOOKED_MEMBERS)

    untried = replace(tried, set_aside_until_ns=None)  # it is looked through in this very run
    plan = plan_of(a_view(*going, untried, archives=[archive]), POLICY)
    assert plan.of(ActionKind.REWRITE) == [] and len(plan.of(ActionKind.EXTRACT)) == 1
    unasked = a_policy(classes=[ERROR, a_class("training")])
    assert plan_of(a_view(*going, tried, archives=[archive]), unasked).of(ActionKind.REWRITE) == []
