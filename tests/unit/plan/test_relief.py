"""Who leaves a full tier ahead of its time: when it starts, in which order, where it stops, what it never touches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lifecycle.model import ActionKind, Original, ReasonCode, Segment, TierName
from lifecycle.plan.reasons import render_reason
from lifecycle.plan.source import CopyRule, TeamClass
from lifecycle.units import duration_ns, parse_duration
from tests.builders import (
    NOON_NS,
    a_class,
    a_file_system,
    a_fill,
    a_policy,
    a_quota,
    a_segment,
    a_team,
    a_tier,
)
from tests.unit.plan.pressures import MIB, a_policy_with_marks, a_pressure, ids_of, relieve
from tests.unit.plan.views import a_view, an_archive_of

MARKS = a_policy_with_marks()
COPY_2H = CopyRule(duration_ns(parse_duration("2h")), None)


def young(count: int, *, team: str = "vision", size: str = "10MiB", **more: Any) -> list[Segment]:
    """Settled segments that are due for nothing; the first is the oldest."""
    return [a_segment(f"{20 * 60 - number}m", team=team, size=size, **more) for number in range(count)]


def copied(segment: Segment, tier: TierName = TierName.WARM) -> tuple[Any, Segment]:
    """With a stored copy beside its original."""
    archive, (stored,) = an_archive_of(segment, tier=tier)
    return archive, replace(stored, original=Original.SETTLED, tier=TierName.HOT)


# --- when it starts ---------------------------------------------------------------------------------------------------


def test_nothing_leaves_early_at_the_mark_exactly() -> None:
    view = a_view(*young(30))
    assert relieve(view, MARKS, a_file_system(used="800MiB")).ahead == []


def test_over_the_high_mark_the_oldest_leave_until_low() -> None:
    segments = young(30)
    done = relieve(a_view(*segments), MARKS, a_file_system(used="801MiB"))
    assert done.ids() == ids_of(segments[:11])  # 801 - 700 = 101 MiB of segments of 10
    assert {batch.relief for batch in done.ahead} == {"hot"}
    assert done.ahead[0].reason.code is ReasonCode.OVER_HIGH
    assert render_reason(done.ahead[0].reason) == "relief: hot 80.1 % full, high 80%"
    assert str(done.ahead[0].reason.rule) == "platform.yaml:6"


def test_the_reserve_counts_where_it_asks_for_more_than_high() -> None:
    policy = a_policy_with_marks(hot=a_fill(high=0.8, low=0.7, reserve="250MiB"))
    done = relieve(a_view(*young(30)), policy, a_file_system(used="760MiB"))
    assert len(done.ids()) == 6  # down to low
    assert render_reason(done.ahead[0].reason) == "relief: hot 240 MiB free, reserve 250MiB"


def test_a_reserve_above_low_is_where_it_stops() -> None:
    policy = a_policy_with_marks(hot=a_fill(high=0.8, low=0.7, reserve="400MiB"))
    done = relieve(a_view(*young(30)), policy, a_file_system(used="655MiB"))
    assert len(done.ids()) == 6  # 655 to 600, which is what the reserve leaves


def test_without_any_mark_a_full_disk_is_nobodys_business() -> None:
    assert relieve(a_view(*young(30)), a_policy(), a_file_system(used="999MiB")).ahead == []


def test_growth_that_would_break_the_mark_before_the_next_run_starts_it() -> None:
    view = a_view(*young(30))
    file_system = a_file_system(used="750MiB")
    calm = a_pressure(view, file_system, growth={"hot": 50 * MIB})
    assert relieve(view, MARKS, pressure=calm).ahead == []
    busy = a_pressure(view, file_system, growth={"hot": 51 * MIB})
    done = relieve(view, MARKS, pressure=busy)
    assert len(done.ids()) == 5
    assert done.ahead[0].reason.code is ReasonCode.GROWING
    assert "before the next run" in render_reason(done.ahead[0].reason)


def test_what_is_due_is_reckoned_with_first() -> None:
    due = [a_segment("2d", size="10MiB") for _ in range(10)]
    view = a_view(*due, *young(30))
    done = relieve(view, MARKS, a_file_system(used="850MiB"))
    assert sum(len(batch.members) for batch in done.due) == 10
    assert done.ahead == [], "the due moves take 100 MiB: 750 is under the mark"
    assert done.used() == 750 * MIB


def test_an_unknown_file_system_is_left_alone() -> None:
    file_system = a_file_system(used="990MiB", unknown="free_space command: exit 1")
    assert relieve(a_view(*young(30)), MARKS, file_system).ahead == []


def test_inodes_run_out_as_bytes_do() -> None:
    file_system = a_file_system(used="100MiB", used_inodes=85, total_inodes=100)
    done = relieve(a_view(*young(30, size="1KiB")), MARKS, file_system)
    assert len(done.ids()) == 15
    assert done.ahead[0].reason.code is ReasonCode.OVER_INODES


def test_only_what_lies_on_the_full_file_system_leaves() -> None:
    here, there = young(5), young(5, place_id=9)
    file_systems = a_file_system("hot a", used="850MiB"), a_file_system("hot b", used="100MiB", place_ids=(9,))
    done = relieve(a_view(*here, *there), MARKS, *file_systems)
    assert done.ids() == ids_of(here)


# --- in which order ---------------------------------------------------------------------------------------------------


def test_what_is_marked_goes_first_the_oldest_mark_before_the_others() -> None:
    policy = a_policy_with_marks(
        classes=[a_class("training", warm_after=None, cold_after=None, expire_after="7d")], tiers=[]
    )
    marked = [a_segment("9d", size="60MiB", marked=f"{hours}h", id=hours) for hours in (30, 50, 40)]
    done = relieve(a_view(*marked, *young(5)), policy, a_file_system(used="801MiB"))
    assert done.ids(ActionKind.PURGE) == [40, 50]
    assert done.ids() == [40, 50]


def test_no_mark_is_acted_on_before_it_is_a_day_old() -> None:
    policy = a_policy_with_marks(
        classes=[a_class("training", warm_after=None, cold_after=None, expire_after="7d")], tiers=[]
    )
    fresh, ripe = (a_segment("9d", size="60MiB", marked=age) for age in ("1439m", "24h"))
    done = relieve(a_view(fresh, ripe), policy, a_file_system(used="990MiB"))
    assert done.ids() == [ripe.id]


def test_a_mark_that_is_wrong_by_now_frees_nothing() -> None:
    policy = a_policy_with_marks(
        classes=[a_class("training", warm_after=None, cold_after=None, expire_after="30d")], tiers=[]
    )
    view = a_view(a_segment("9d", size="60MiB", marked="2d"))
    assert relieve(view, policy, a_file_system(used="990MiB")).ids() == []


def test_a_place_that_is_not_reclassified_yet_loses_nothing_for_good() -> None:
    early = a_class("training", warm_after=None, cold_after=None, expire_after="7d", expire_early=parse_duration("1h"))
    policy = a_policy_with_marks(classes=[early], tiers=[])
    view = a_view(a_segment("9d", size="60MiB", marked="2d"), *young(5, first_seen="3d"))
    file_system = a_file_system(used="990MiB")
    assert len(relieve(view, policy, file_system).ids()) == 6
    assert relieve(view, policy, file_system, unclassified=[1]).ids() == []


def test_a_marked_archive_goes_whole_or_not_at_all() -> None:
    policy = a_policy_with_marks(tiers=[a_tier(TierName.WARM, fill=a_fill()), TierName.COLD])
    whole, members = an_archive_of(a_segment("40d", marked="30h"), a_segment("41d", marked="25h"))
    mixed, others = an_archive_of(a_segment("40d", marked="30h"), a_segment("41d", marked="23h"))
    view = a_view(*members, *others, archives=[whole, mixed])
    done = relieve(view, policy, a_file_system("warm", used="900MiB", tiers=(TierName.WARM,)))
    assert done.archives(ActionKind.PURGE) == [whole.id]


def test_originals_with_a_stored_copy_go_before_anything_is_moved() -> None:
    archive, beside = copied(a_segment("5h", size="60MiB"))
    segments = young(30)
    done = relieve(a_view(beside, *segments, archives=[archive]), MARKS, a_file_system(used="801MiB"))
    assert done.ids(ActionKind.RELEASE) == [beside.id]
    assert done.ids(ActionKind.TRANSITION, ActionKind.MERGE) == ids_of(segments[:5])
    kinds = [batch.kind for batch in done.ahead]
    assert kinds.index(ActionKind.RELEASE) < min(i for i, kind in enumerate(kinds) if kind is not ActionKind.RELEASE)


def test_a_class_that_says_so_is_not_evicted_and_a_restored_original_never_is() -> None:
    archive, beside = copied(a_segment("5h", size="60MiB"))
    view = a_view(beside, archives=[archive])
    file_system = a_file_system(used="990MiB")
    assert relieve(view, MARKS, file_system).ids() == [beside.id]
    stays = a_policy_with_marks(classes=[a_class("training", evict=False)])
    assert relieve(view, stays, file_system).ids() == []
    restored = replace(beside, stay_until_ns=NOON_NS + 1)
    assert relieve(a_view(restored, archives=[archive]), MARKS, file_system).ids() == []


def test_errors_leave_last() -> None:
    errors, others = young(8, class_name="error", size="50MiB"), young(2, size="50MiB")
    done = relieve(a_view(*errors, *others), MARKS, a_file_system(used="840MiB"))
    assert done.ids() == sorted([*ids_of(others), errors[0].id])


def test_the_coldest_tier_makes_room_first() -> None:
    policy = a_policy_with_marks(tiers=[a_tier(TierName.WARM, fill=a_fill()), TierName.COLD])
    archive, members = an_archive_of(a_segment("3d"), size="200MiB")
    file_systems = (
        a_file_system(used="850MiB"),
        a_file_system("warm", used="850MiB", tiers=(TierName.WARM,)),
        a_file_system("cold", used="10MiB", tiers=(TierName.COLD,)),
    )
    done = relieve(a_view(*members, *young(30), archives=[archive]), policy, *file_systems)
    assert done.ahead[0].relief == "warm"
    assert done.archives() == [archive.id]
    assert {batch.tier_to for batch in done.ahead if batch.relief == "hot"} == {TierName.WARM}


# --- fairness ---------------------------------------------------------------------------------------------------------


def by_team(view_segments: list[Segment], ids: list[int]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for segment in view_segments:
        if segment.id in ids:
            counts[segment.labels.team] = counts.get(segment.labels.team, 0) + 1
    return counts


def test_the_team_over_its_soft_quota_gives_until_it_is_level_with_the_next() -> None:
    policy = a_policy_with_marks(quotas={"hot": a_quota(soft="100MiB")})
    segments = [*young(30, team="vision"), *young(20, team="nlp"), *young(5, team="speech")]
    done = relieve(a_view(*segments), policy, a_file_system(used="850MiB"))
    assert by_team(segments, done.ids()) == {"vision": 12, "nlp": 3}  # 300 to 180, 200 to 170: level


def test_share_is_of_a_teams_own_quota() -> None:
    teams = [
        a_team("vision", base=MARKS.classes.values()),
        replace(a_team("nlp", base=MARKS.classes.values()), quota={"hot": a_quota(soft="50MiB")}),
    ]
    teams[0] = replace(teams[0], quota={"hot": a_quota(soft="1000MiB")})
    policy = a_policy_with_marks(teams=teams)
    segments = [*young(30, team="vision"), *young(10, team="nlp")]
    done = relieve(a_view(*segments), policy, a_file_system(used="801MiB"))
    assert by_team(segments, done.ids()) == {"nlp": 9, "vision": 2}


def test_the_same_share_is_settled_by_name_and_not_by_the_order_of_rows() -> None:
    segments = [*young(10, team="b"), *young(10, team="a")]
    file_system = a_file_system(used="801MiB")
    done = relieve(a_view(*segments), MARKS, file_system)
    again = relieve(a_view(*reversed(segments)), MARKS, file_system)
    assert done.batches == again.batches
    assert by_team(segments, done.ids()) == {"a": 6, "b": 5}


def test_an_unlisted_team_is_reported_and_not_touched() -> None:
    policy = a_policy_with_marks(teams=["nlp"])
    strangers = young(30, team="stranger")
    assert relieve(a_view(*strangers), policy, a_file_system(used="990MiB")).ids() == []


# --- hard quotas ------------------------------------------------------------------------------------------------------


def test_a_hard_quota_counts_whatever_the_fill_and_relief_stops_at_soft() -> None:
    policy = a_policy_with_marks(quotas={"hot": a_quota(soft="150MiB", hard="200MiB")})
    vision, nlp = young(21, team="vision"), young(20, team="nlp")
    done = relieve(a_view(*vision, *nlp), policy, a_file_system(used="420MiB"))
    assert done.ids() == ids_of(vision[:6])
    assert {batch.relief for batch in done.ahead} == {"team vision on hot"}
    assert render_reason(done.ahead[0].reason) == "relief: vision has 210 MiB on hot, hard quota 200MiB"


def test_a_soft_quota_alone_starts_nothing() -> None:
    policy = a_policy_with_marks(quotas={"hot": a_quota(soft="10MiB")})
    assert relieve(a_view(*young(20)), policy, a_file_system(used="420MiB")).ahead == []


def test_a_quota_over_all_tiers_is_met_by_what_a_move_makes_smaller() -> None:
    policy = a_policy_with_marks(quotas={"total": a_quota(soft="100MiB", hard="190MiB")}, hot=None)
    view = a_view(*young(20))
    pressure = replace(a_pressure(view), ratios={TierName.WARM: 0.2})
    done = relieve(view, policy, pressure=pressure)
    assert len(done.ids()) == 13  # each gives 8 of its 10 MiB


def test_a_hard_quota_needs_no_measured_file_system() -> None:
    policy = a_policy_with_marks(quotas={"hot": a_quota(hard="50MiB")}, hot=None)
    assert len(relieve(a_view(*young(8)), policy).ids()) == 3


# --- full targets -----------------------------------------------------------------------------------------------------


def test_a_full_target_is_skipped_for_the_next_colder_one() -> None:
    policy = a_policy_with_marks(tiers=[a_tier(TierName.WARM, fill=a_fill()), TierName.COLD])
    full = a_file_system("warm", used="850MiB", tiers=(TierName.WARM,))
    cold = a_file_system("cold", used="10MiB", tiers=(TierName.COLD,))
    done = relieve(a_view(*young(20)), policy, a_file_system(used="850MiB"), full, cold)
    assert {batch.tier_to for batch in done.ahead} == {TierName.COLD}


def test_what_is_due_skips_a_full_target_too() -> None:
    policy = a_policy_with_marks(tiers=[a_tier(TierName.WARM, fill=a_fill()), TierName.COLD])
    full = a_file_system("warm", used="850MiB", tiers=(TierName.WARM,))
    view = a_view(a_segment("2d"), a_segment("3d", class_name="eval"))
    done = relieve(view, policy, full)
    assert {(batch.class_name, batch.tier_to) for batch in done.due} == {
        ("training", TierName.COLD),
        ("eval", TierName.WARM),  # it never goes to cold: better where there is little room than nowhere
    }


def test_a_target_that_fills_up_during_the_plan_takes_no_more() -> None:
    policy = a_policy_with_marks(tiers=[a_tier(TierName.WARM, fill=a_fill()), TierName.COLD])
    nearly = a_file_system("warm", used="790MiB", tiers=(TierName.WARM,))
    view = a_view(*young(20))
    pressure = replace(a_pressure(view, a_file_system(used="850MiB"), nearly), ratios={TierName.WARM: 1.0})
    done = relieve(view, policy, pressure=pressure)
    into = [(batch.tier_to, len(batch.members)) for batch in done.ahead]
    assert sorted(into) == [(TierName.COLD, 13), (TierName.WARM, 2)]


def test_a_class_that_never_goes_to_a_colder_tier_stays() -> None:
    policy = a_policy_with_marks(classes=[a_class("training", warm_after=None, cold_after=None)])
    assert relieve(a_view(*young(20)), policy, a_file_system(used="990MiB")).ids() == []


# --- what is never touched --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "obstacle",
    [
        {"original": Original.OPEN},
        {"original": Original.MISSING},
        {"set_aside_until_ns": NOON_NS + 1},
        {"stay_until_ns": NOON_NS + 1},
        {"last_write_ns": None},
    ],
    ids=lambda obstacle: next(iter(obstacle)),
)
def test_what_could_not_move_by_age_does_not_leave_early_either(obstacle: dict[str, Any]) -> None:
    segments = [replace(segment, **obstacle) for segment in young(20)]
    assert relieve(a_view(*segments), MARKS, a_file_system(used="990MiB")).ids() == []


def test_nothing_expires_early_unless_its_class_says_so() -> None:
    """Bug case B23: a trim never removes the only copy."""
    policy = a_policy_with_marks(classes=[a_class("training", warm_after=None, cold_after=None)], tiers=[])
    assert relieve(a_view(*young(20, first_seen="30d")), policy, a_file_system(used="990MiB")).ids() == []


EARLY = parse_duration("14d")


def test_expire_early_takes_what_is_old_enough_and_only_where_nothing_else_helps() -> None:
    rule = a_class("training", warm_after=None, cold_after=None, expire_after="60d", expire_early=EARLY)
    policy = a_policy_with_marks(classes=[rule], tiers=[])
    old, just, fresh = a_segment("20d", size="60MiB"), a_segment("14d", size="60MiB"), a_segment("335h", size="60MiB")
    done = relieve(a_view(fresh, just, old), policy, a_file_system(used="990MiB"))
    assert done.ids(ActionKind.PURGE) == ids_of([old, just])
    assert done.ahead[0].reason.code is ReasonCode.EXPIRED_EARLY
    assert render_reason(done.ahead[0].reason).endswith("expires early, kept for 14d")


def test_a_team_under_a_brake_loses_no_only_copy_early_and_moves_all_the_same() -> None:
    rule = a_class("training", warm_after="30d", cold_after=None, expire_after="60d", expire_early=EARLY)
    policy = a_policy_with_marks(classes=[rule], tiers=[a_tier(TierName.WARM, fill=a_fill())])
    full = a_file_system("warm", used="990MiB", tiers=(TierName.WARM,))
    view = a_view(a_segment("20d", size="60MiB", first_seen="20d"))
    braked = [TeamClass("vision", "training")]
    hot = a_file_system(used="990MiB")
    assert len(relieve(view, policy, hot, full).ids(ActionKind.PURGE)) == 1
    assert relieve(view, policy, hot, full, braked=braked).ids() == []
    assert len(relieve(view, policy, hot, braked=braked).ids(ActionKind.TRANSITION)) == 1


def test_errors_never_expire_early_whatever_a_policy_says() -> None:
    rule = a_class("error", warm_after=None, cold_after=None, expire_after="90d", expire_early=EARLY)
    policy = a_policy_with_marks(classes=[rule], tiers=[])
    view = a_view(a_segment("20d", class_name="error", size="60MiB"))
    assert relieve(view, policy, a_file_system(used="990MiB")).ids() == []


def test_what_has_not_reached_the_tier_of_its_age_never_expires_early() -> None:
    rule = a_class("training", expire_after="60d", expire_early=EARLY)
    policy = a_policy_with_marks(classes=[rule], tiers=[a_tier(TierName.WARM, fill=a_fill()), TierName.COLD])
    behind, one = an_archive_of(a_segment("20d"), size="50MiB")
    reached, two = an_archive_of(a_segment("20d"), tier=TierName.COLD, size="50MiB")
    view = a_view(*one, *two, archives=[behind, reached])
    file_systems = (
        a_file_system("warm", used="990MiB", tiers=(TierName.WARM,)),
        a_file_system("cold", used="990MiB", tiers=(TierName.COLD,)),
    )
    cold = replace(policy, tiers={**policy.tiers, TierName.COLD: a_tier(TierName.COLD, fill=a_fill())})
    done = relieve(view, cold, *file_systems)
    assert done.archives(ActionKind.PURGE) == [reached.id]


def test_an_archive_expires_early_only_with_all_its_members() -> None:
    rule = a_class("training", expire_after="60d", expire_early=EARLY)
    cold = a_tier(TierName.COLD, fill=a_fill())
    policy = a_policy_with_marks(classes=[rule], tiers=[TierName.WARM, cold])
    kept, some = an_archive_of(a_segment("20d"), a_segment("21d", first_seen="1h"), tier=TierName.COLD)
    gone, others = an_archive_of(a_segment("20d"), a_segment("21d"), tier=TierName.COLD)
    view = a_view(*some, *others, archives=[kept, gone])
    done = relieve(view, policy, a_file_system("cold", used="990MiB", tiers=(TierName.COLD,)))
    assert done.archives() == [gone.id]


# --- copies made early ------------------------------------------------------------------------------------------------


def test_a_source_that_asks_for_it_gets_stored_copies_of_what_is_old_enough() -> None:
    old, fresh = a_segment("3h"), a_segment("1h")
    elsewhere = a_segment("3h", place_id=9)
    done = relieve(a_view(old, fresh, elsewhere), a_policy(), copies={1: COPY_2H})
    (batch,) = done.due
    assert (batch.kind, batch.tier_to, [m.segment_id for m in batch.members]) == (
        ActionKind.COPY,
        TierName.WARM,
        [old.id],
    )


def test_archives_stay_where_their_next_tier_is_on_the_same_file_system_and_originals_are_compressed() -> None:
    archive, (stored,) = an_archive_of(a_segment("30h", size="10MiB"), size="300MiB")
    fresh = a_segment("10h", size="10MiB")
    view = a_view(stored, fresh, archives=[archive])
    everywhere = (TierName.HOT, TierName.WARM, TierName.COLD)
    one = relieve(view, MARKS, a_file_system(used="801MiB", tiers=everywhere, name="hot+warm+cold"))
    assert one.ids() == [fresh.id] and one.archives() == []
    two = relieve(view, MARKS, a_file_system(used="801MiB", tiers=everywhere[:2], name="hot+warm"))
    assert two.archives() == [archive.id]


def test_what_this_very_plan_stores_early_is_evicted_by_it_and_moved_by_nothing() -> None:
    old = [a_segment(f"{10 * 60 - number}m", size="10MiB") for number in range(4)]
    view = a_view(*old, a_segment("1h", size="10MiB"))
    done = relieve(view, MARKS, a_file_system(used="801MiB"), copies={1: COPY_2H})
    assert [(batch.kind, batch.tier_to, batch.is_ahead) for batch in done.batches] == [
        (ActionKind.COPY, TierName.WARM, False),
        (ActionKind.RELEASE, TierName.WARM, True),
        (ActionKind.TRANSITION, TierName.WARM, True),
    ]
    assert done.ids(ActionKind.RELEASE) == ids_of(old)


def test_what_is_stored_early_of_a_class_that_is_not_evicted_stays() -> None:
    policy = a_policy_with_marks(classes=[a_class("training", evict=False)])
    view = a_view(a_segment("10h", size="10MiB"))
    done = relieve(view, policy, a_file_system(used="801MiB"), copies={1: COPY_2H})
    assert [batch.kind for batch in done.batches] == [ActionKind.COPY]


def test_what_is_due_moves_and_is_not_copied() -> None:
    done = relieve(a_view(a_segment("2d")), a_policy(), copies={1: COPY_2H})
    assert [batch.kind for batch in done.due] == [ActionKind.TRANSITION]


def test_a_copied_original_is_released_when_it_would_have_moved() -> None:
    just, later = copied(a_segment("24h")), copied(a_segment("1439m"))
    view = a_view(just[1], later[1], archives=[just[0], later[0]])
    done = relieve(view, a_policy(), copies={1: COPY_2H})
    (batch,) = done.due
    assert batch.kind is ActionKind.RELEASE
    assert [member.segment_id for member in batch.members] == [just[1].id]
    assert batch.reason.code is ReasonCode.AGED


def test_the_copy_of_a_quarantined_archive_releases_nothing() -> None:
    from lifecycle.model import ArchiveState

    archive, beside = copied(a_segment("30h"))
    view = a_view(beside, archives=[replace(archive, state=ArchiveState.QUARANTINED)])
    assert [batch.kind for batch in relieve(view, a_policy()).due] == []
    assert relieve(view, MARKS, a_file_system(used="990MiB")).ids() == []


def test_only_the_actions_that_are_asked_for_are_planned() -> None:
    archive, beside = copied(a_segment("5h", size="60MiB"))
    view = a_view(beside, *young(30), archives=[archive])
    done = relieve(view, MARKS, a_file_system(used="990MiB"), only=[ActionKind.RELEASE])
    assert {batch.kind for batch in done.ahead} == {ActionKind.RELEASE}


def test_what_is_held_is_neither_expired_early_nor_purged_ahead_of_its_grace() -> None:
    rule = a_class("training", warm_after=None, cold_after=None, expire_after="60d", expire_early=EARLY)
    policy = a_policy_with_marks(classes=[rule], tiers=[])
    old = a_segment("20d", size="60MiB", hold_id=7)
    marked = a_segment("70d", size="60MiB", marked="30h", hold_id=7)
    done = relieve(a_view(old, marked), policy, a_file_system(used="990MiB"))
    assert done.ids(ActionKind.PURGE) == []
    free = relieve(
        a_view(*(replace(each, hold_id=None) for each in (old, marked))), policy, a_file_system(used="990MiB")
    )
    assert free.ids(ActionKind.PURGE) == ids_of([marked, old])
