"""Marks, their undoing, and purges: what may go, and everything that stands against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lifecycle.model import ActionKind, Archive, ArchiveState, Original, ReasonCode, Segment, TierName
from lifecycle.policy.rules import ExpireFrom, Policy, TeamRule
from lifecycle.units import DAY_NS
from tests.builders import NOON_NS, a_class, a_policy, a_segment, a_team, ago_ns
from tests.unit.plan.views import MOVES, Plan, View, a_view, an_archive_of, plan_of, plan_segments

MARK, UNMARK, PURGE = ActionKind.MARK, ActionKind.UNMARK, ActionKind.PURGE
FROM_WRITE = a_policy(classes=[a_class(expire_from=ExpireFrom.WRITE)])


def in_cold(*segments: Segment) -> View:
    """All of them in one archive in cold."""
    archive, members = an_archive_of(*segments, tier=TierName.COLD)
    return a_view(*members, archives=[archive])


def each_in_cold(*segments: Segment) -> View:
    """Each in an archive of its own."""
    made = [an_archive_of(segment, tier=TierName.COLD) for segment in segments]
    return a_view(*(members[0] for _, members in made), archives=[archive for archive, _ in made])


# --- marks --------------------------------------------------------------------------------------------------------


def test_at_the_end_of_its_retention_exactly_a_segment_is_marked() -> None:
    at, younger = a_segment("30d"), a_segment("30d")
    younger = replace(younger, last_write_ns=ago_ns("30d") + 1)
    (batch,) = plan_of(each_in_cold(at, younger), FROM_WRITE).batches
    assert [member.segment_id for member in batch.members] == [at.id]
    assert (batch.kind, batch.tier_to, batch.purge_after_ns) == (MARK, None, NOON_NS + 3 * DAY_NS)


def test_a_mark_leaves_from_the_place_that_a_purge_would_take_bytes_from() -> None:
    view = in_cold(a_segment("40d"))
    assert plan_of(view).batches[0].place_id == view.archives[0].place_id


def test_a_segment_that_never_reached_its_tier_is_moved_and_not_marked() -> None:
    # Bug case B23: cold was down for 40 days.
    hot = a_segment("40d")
    archive, (warm,) = an_archive_of(a_segment("40d"))
    plan = plan_of(a_view(hot, warm, archives=[archive]))
    assert plan.of(MARK) == []
    assert {batch.tier_to for batch in plan.of(*MOVES)} == {TierName.COLD}
    assert plan.kept == ()  # both are in the plan: nobody needs to be told that they are kept


def test_a_segment_past_its_retention_that_cannot_move_is_kept_and_says_so() -> None:
    archive, (old, young) = an_archive_of(a_segment("40d"), a_segment("2d"))
    plan = plan_of(a_view(old, young, archives=[archive]))
    assert plan.batches == ()
    assert plan.kept_codes == {ReasonCode.NOT_IN_REQUIRED_TIER: 1}
    assert plan.kept[0].reason.required == "cold"


def test_a_segment_that_no_tier_asks_for_is_marked_in_hot() -> None:
    policy = a_policy(tiers=[])
    settled, still_open = a_segment("40d"), a_segment("40d", original=Original.OPEN)
    gone = a_segment("40d", original=Original.MISSING)
    plan = plan_segments(settled, still_open, gone, policy=policy)
    assert plan.ids(MARK) == [settled.id]
    assert plan.kept_codes == {ReasonCode.NOT_SETTLED: 1, ReasonCode.MISSING: 1}


def test_a_class_without_cold_is_marked_in_warm() -> None:
    archive, (member,) = an_archive_of(a_segment("8d", class_name="eval"))
    assert plan_of(a_view(member, archives=[archive])).ids(MARK) == [member.id]


def test_a_segment_in_a_colder_tier_than_its_age_asks_for_is_marked_there() -> None:
    policy = a_policy(classes=[a_class(cold_after=None)])
    assert len(plan_of(in_cold(a_segment("40d")), policy).ids(MARK)) == 1


@pytest.mark.parametrize(
    ("age", "job_age", "is_marked"),
    [
        ("30d", "30d", True),
        ("40d", "30d", True),  # the job's newest is at the limit exactly
        ("40d", "29d", False),
        ("89d", "1h", False),  # the job still writes
        ("90d", "1h", True),  # three times expire_after is the longest
        ("29d", "29d", False),
    ],
)
def test_from_job_counts_the_last_write_of_the_job_at_most_three_times(age: str, job_age: str, is_marked: bool) -> None:
    plan = plan_of(in_cold(a_segment(age, job_age=job_age)))
    assert bool(plan.ids(MARK)) is is_marked
    assert plan.kept == ()


def test_a_job_that_has_newer_segments_than_the_catalog_says_counts_from_its_own_write() -> None:
    assert plan_of(in_cold(a_segment("20d", job_age="90d"))).batches == ()


@pytest.mark.parametrize(("seen", "is_marked"), [("24h", True), ("23h", False)])
def test_nothing_is_marked_within_24_hours_of_first_sight(seen: str, is_marked: bool) -> None:
    plan = plan_of(in_cold(a_segment("120d", first_seen=seen)))
    assert bool(plan.ids(MARK)) is is_marked
    if not is_marked:
        (kept,) = plan.kept
        assert kept.reason.code is ReasonCode.FIRST_SEEN_RECENTLY
        assert kept.reason.until_ns == ago_ns("23h") + DAY_NS


@pytest.mark.parametrize("age", [None, "120d"])
def test_without_a_believable_last_write_nothing_is_ever_due(age: str | None) -> None:
    # Bug case B22: an impossible time is no great age.
    unknown = replace(a_segment(age, first_seen="400d"), last_write_ns=None)
    plan = plan_of(each_in_cold(unknown), a_policy(tiers=[]))
    assert plan.batches == ()
    assert plan.kept_codes == {ReasonCode.AGE_UNKNOWN: 1}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"original": Original.MISSING}, ReasonCode.MISSING),
        ({"original": Original.OPEN}, ReasonCode.NOT_SETTLED),
        ({"stay_until_ns": NOON_NS + 1, "original": Original.SETTLED}, ReasonCode.STAY),
    ],
)
def test_what_bars_a_mark_is_counted_with_its_reason(change: dict[str, Any], code: ReasonCode) -> None:
    archive, (member,) = an_archive_of(a_segment("40d"), tier=TierName.COLD)
    plan = plan_of(a_view(replace(member, **change), archives=[archive]))
    assert plan.of(MARK) == []
    assert plan.kept_codes == {code: 1}


def test_what_lies_in_a_damaged_archive_is_not_marked() -> None:
    archive, members = an_archive_of(a_segment("40d"), tier=TierName.COLD, state=ArchiveState.QUARANTINED)
    plan = plan_of(a_view(*members, archives=[archive]))
    assert plan.batches == ()
    assert plan.kept_codes == {ReasonCode.QUARANTINED: 1}


def test_a_class_without_expire_after_is_kept_for_ever() -> None:
    assert plan_of(in_cold(a_segment("3000d")), a_policy(classes=[a_class(expire_after=None)])).batches == ()


def test_a_team_may_keep_longer_or_shorter_than_the_platform() -> None:
    def keeps(team: str, days: str) -> TeamRule:
        return a_team(team, classes=[a_class(expire_after=days, expire_from=ExpireFrom.WRITE)])

    teams: list[str | TeamRule] = ["vision", keeps("nlp", "60d"), keeps("speech", "10d")]
    view = each_in_cold(*(a_segment("35d", team=team) for team in ("vision", "nlp", "speech")))
    plan = plan_of(view, a_policy(classes=[a_class(expire_from=ExpireFrom.WRITE)], teams=teams))
    assert sorted(batch.team for batch in plan.of(MARK)) == ["speech", "vision"]


def test_an_unlisted_team_and_a_dropped_class_are_never_marked() -> None:
    # Bug case B05: a typo in policy must keep, not sweep.
    view = each_in_cold(a_segment("400d", team="visoin"), a_segment("400d", class_name="erorr"))
    plan = plan_of(view, a_policy(teams=["vision"]))
    assert plan.batches == ()
    assert sum(kept.segments for kept in plan.kept) == 2


def test_marks_are_batched_by_team_class_and_place() -> None:
    view = each_in_cold(*(a_segment("40d", team=team) for team in ("nlp", "vision", "nlp")))
    assert [(b.team, b.segments) for b in plan_of(view).of(MARK)] == [("nlp", 2), ("vision", 1)]


# --- marks taken off ----------------------------------------------------------------------------------------------


def test_a_mark_is_taken_off_when_policy_keeps_it_longer_now() -> None:
    view = replace(in_cold(a_segment("40d", marked="1d")), marked_under="an older policy")
    (batch,) = plan_of(view, a_policy(classes=[a_class(expire_after="60d")])).batches
    assert (batch.kind, batch.reason.code, batch.reason.required) == (UNMARK, ReasonCode.RETENTION_CHANGED, "60d")


def test_a_mark_is_taken_off_when_its_job_writes_again() -> None:
    (batch,) = plan_of(in_cold(a_segment("40d", marked="1d", job_age="1h"))).batches
    assert (batch.kind, batch.reason.code) == (UNMARK, ReasonCode.JOB_STILL_WRITES)


@pytest.mark.parametrize(
    "policy",
    [a_policy(teams=["nlp"]), a_policy(classes=[a_class("error")]), a_policy(classes=[a_class(expire_after=None)])],
)
def test_a_mark_is_taken_off_when_policy_no_longer_lets_it_go(policy: Policy) -> None:
    view = replace(in_cold(a_segment("40d", marked="9d")), marked_under="an older policy")
    plan = plan_of(view, policy)
    assert [batch.kind for batch in plan.batches] == [UNMARK]


def test_a_mark_whose_grace_is_over_is_looked_at_again_before_the_purge() -> None:
    # Nothing else says so here: same policy, the job's own last write is old, but the file was written again.
    written = replace(a_segment("40d", marked="9d"), last_write_ns=ago_ns("2d"))
    plan = plan_segments(written, policy=a_policy(tiers=[]))
    assert [batch.kind for batch in plan.batches] == [UNMARK]
    assert plan.batches[0].reason.code is ReasonCode.TOO_YOUNG


def test_a_mark_stays_while_its_segment_is_only_in_the_wrong_tier() -> None:
    archive, (member,) = an_archive_of(a_segment("40d", marked="1d"))
    assert plan_of(a_view(member, archives=[archive])).of(UNMARK) == []


# --- purges -------------------------------------------------------------------------------------------------------


def purge_of(*segments: Segment, **archive: Any) -> tuple[Plan, Archive]:
    made, members = an_archive_of(*segments, tier=TierName.COLD, **archive)
    return plan_of(a_view(*members, archives=[made])), made


def test_an_archive_goes_whole_when_the_grace_of_every_member_is_over() -> None:
    plan, archive = purge_of(a_segment("40d", marked="3d"), a_segment("50d", marked="4d"))
    (batch,) = plan.batches
    assert (batch.kind, batch.archive_ids, batch.members, batch.segments) == (PURGE, (archive.id,), (), 2)
    assert (batch.place_id, batch.tier_from, batch.tier_to) == (archive.place_id, TierName.COLD, None)
    assert batch.reason.current == "marked 3 d ago"


def test_one_nanosecond_before_the_grace_is_over_nothing_is_purged() -> None:
    member = replace(a_segment("40d", marked="3d"), purge_after_ns=NOON_NS + 1)
    assert purge_of(member)[0].batches == ()


@pytest.mark.parametrize(
    "other",
    [
        a_segment("20d"),  # its retention has not ended
        a_segment("40d"),  # not marked yet
        a_segment("40d", marked="2d"),  # in grace
        a_segment("40d", marked="4d", job_age="1h"),  # its mark is taken off by this very plan
        a_segment("80d", class_name="error"),
    ],
)
def test_an_archive_with_a_member_whose_time_has_not_come_stays(other: Segment) -> None:
    # Bug case B12: the age of a pack is not the age of what is in it.
    plan, _ = purge_of(a_segment("40d", marked="4d"), other)
    assert plan.of(PURGE) == []
    assert plan.kept_codes == {ReasonCode.ARCHIVE_SHARED: 1}


def test_an_archive_whose_books_name_another_number_of_members_stays() -> None:
    archive, members = an_archive_of(a_segment("40d", marked="4d"), tier=TierName.COLD)
    plan = plan_of(a_view(*members, archives=[replace(archive, live_members=2)]))
    assert plan.of(PURGE) == []


def test_a_longer_grace_in_policy_counts_for_marks_that_are_there() -> None:
    archive, members = an_archive_of(a_segment("40d", marked="4d"), tier=TierName.COLD)
    plan = plan_of(a_view(*members, archives=[archive]), a_policy(grace="7d"))
    assert plan.batches == ()
    (kept,) = plan.kept
    assert (kept.reason.code, kept.reason.required) == (ReasonCode.IN_GRACE, "7d")
    assert kept.reason.until_ns == ago_ns("4d") + 7 * DAY_NS


def test_a_damaged_archive_is_not_purged() -> None:
    plan, _ = purge_of(a_segment("40d", marked="4d"), state=ArchiveState.QUARANTINED)
    assert plan.batches == ()
    assert plan.kept_codes == {ReasonCode.QUARANTINED: 1}


@pytest.mark.parametrize("original", [Original.OPEN, Original.SETTLED, Original.MISSING, Original.PARKED])
def test_an_archive_stays_while_an_original_of_its_members_may_be_there(original: Original) -> None:
    archive, (member,) = an_archive_of(a_segment("40d", marked="4d"), tier=TierName.COLD)
    plan = plan_of(a_view(replace(member, original=original, stay_until_ns=NOON_NS + 1), archives=[archive]))
    assert plan.of(PURGE) == []


def test_an_original_without_a_stored_copy_is_purged_by_name() -> None:
    segment = a_segment("40d", marked="3d")
    (batch,) = plan_segments(segment, policy=a_policy(tiers=[])).batches
    assert (batch.kind, batch.archive_ids, batch.tier_from) == (PURGE, (), TierName.HOT)
    assert batch.members[0].identity == segment.identity


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"original": Original.OPEN}, ReasonCode.NOT_SETTLED),
        ({"original": Original.MISSING}, ReasonCode.MISSING),
        ({"set_aside_until_ns": NOON_NS + 1}, ReasonCode.SET_ASIDE),
        ({"stay_until_ns": NOON_NS + 1}, ReasonCode.STAY),
    ],
)
def test_what_bars_the_purge_of_an_original_is_counted(change: dict[str, Any], code: ReasonCode) -> None:
    plan = plan_segments(replace(a_segment("40d", marked="3d"), **change), policy=a_policy(tiers=[]))
    assert plan.batches == ()
    assert plan.kept_codes == {code: 1}


def test_unmarks_come_before_purges_and_purges_before_marks_and_moves() -> None:
    made = [
        an_archive_of(segment, tier=TierName.COLD)
        for segment in (a_segment("40d", marked="4d"), a_segment("40d", marked="4d", job_age="1h"), a_segment("40d"))
    ]
    view = a_view(a_segment("2d"), *(m for _, members in made for m in members), archives=[a for a, _ in made])
    kinds = [batch.kind for batch in plan_of(view).batches]
    assert kinds == [UNMARK, PURGE, MARK, ActionKind.TRANSITION]
