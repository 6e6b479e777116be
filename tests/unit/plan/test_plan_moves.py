"""Which originals and archives move, where to, and what lies together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lifecycle.model import ActionKind, ArchiveState, Original, ReasonCode, TierName
from lifecycle.units import NS
from tests.builders import NOON_NS, a_class, a_policy, a_segment, a_team, a_tier, ago_ns, an_archive
from tests.unit.plan.views import MOVES, a_view, an_archive_of, plan_of, plan_segments

HOUR = 3600 * NS
MIB = 2**20


def test_a_segment_at_the_limit_exactly_is_due_and_one_nanosecond_younger_is_not() -> None:
    at, younger = a_segment("24h"), a_segment("24h")
    younger = replace(younger, last_write_ns=ago_ns("24h") + 1)
    assert plan_segments(at, younger).ids(*MOVES) == [at.id]


def test_a_segment_goes_straight_to_the_tier_of_its_age() -> None:
    warm, cold = a_segment("2d"), a_segment("7d")
    ways = {(b.members[0].segment_id, b.tier_from, b.tier_to) for b in plan_segments(warm, cold).of(*MOVES)}
    assert ways == {(warm.id, TierName.HOT, TierName.WARM), (cold.id, TierName.HOT, TierName.COLD)}


def test_without_a_warm_tier_a_segment_waits_in_hot_until_it_is_cold() -> None:
    policy = a_policy(tiers=[TierName.COLD])
    young, old = a_segment("6d"), a_segment("8d")
    plan = plan_segments(young, old, policy=policy)
    assert plan.ids(*MOVES) == [old.id]
    assert plan.of(*MOVES)[0].tier_to is TierName.COLD


def test_without_a_cold_tier_old_segments_go_to_warm() -> None:
    (batch,) = plan_segments(a_segment("20d", job_age="1h"), policy=a_policy(tiers=[TierName.WARM])).of(*MOVES)
    assert batch.tier_to is TierName.WARM


def test_what_has_a_stored_copy_is_not_moved_again_from_hot() -> None:
    archive = an_archive("2d", members=1)
    both = replace(a_segment("2d"), archive_id=archive.id, archive_tier=TierName.WARM)
    assert plan_of(a_view(both, archives=[archive])).ids(*MOVES) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"original": Original.OPEN}, ReasonCode.NOT_SETTLED),
        ({"set_aside_until_ns": NOON_NS + 1}, ReasonCode.SET_ASIDE),
        ({"stay_until_ns": NOON_NS + 1}, ReasonCode.STAY),
        ({"last_write_ns": None}, ReasonCode.AGE_UNKNOWN),
    ],
)
def test_what_bars_a_move_is_counted_with_its_reason(change: dict[str, Any], code: ReasonCode) -> None:
    plan = plan_segments(replace(a_segment("2d"), **change))
    assert plan.batches == ()
    assert plan.kept_codes == {code: 1}


def test_a_pause_or_stay_that_ends_now_is_over() -> None:
    segment = replace(a_segment("2d"), set_aside_until_ns=NOON_NS, stay_until_ns=NOON_NS)
    assert plan_segments(segment).ids(*MOVES) == [segment.id]


def test_a_missing_original_is_neither_moved_nor_purged() -> None:
    assert plan_segments(a_segment("2d", original=Original.MISSING)).batches == ()


def test_small_segments_of_one_day_share_an_archive_and_one_alone_is_a_transition() -> None:
    small = [a_segment("30h") for _ in range(3)]
    alone = a_segment("3d")
    batches = plan_segments(*small, alone).of(*MOVES)
    assert [(b.kind, b.segments) for b in batches] == [(ActionKind.TRANSITION, 1), (ActionKind.MERGE, 3)]


def test_a_segment_of_the_merge_size_stays_one_object() -> None:
    policy = a_policy(tiers=[a_tier(TierName.WARM, below="1MiB", target="8MiB")])
    large, small = a_segment("30h", size="1MiB"), [a_segment("30h", size=MIB - 1) for _ in range(2)]
    batches = plan_segments(large, *small, policy=policy).of(*MOVES)
    assert {(b.kind, b.segments) for b in batches} == {(ActionKind.TRANSITION, 1), (ActionKind.MERGE, 2)}


def test_an_archive_is_closed_before_it_outgrows_the_target() -> None:
    policy = a_policy(tiers=[a_tier(TierName.WARM, below="3MiB", target="4MiB")])
    plan = plan_segments(*[a_segment("30h", size="2MiB") for _ in range(5)], policy=policy)
    assert [b.logical_bytes for b in plan.of(*MOVES)] == [4 * MIB, 4 * MIB, 2 * MIB]


def test_an_archive_has_at_most_4096_members() -> None:
    plan = plan_segments(*[a_segment("30h", size=0) for _ in range(4100)])
    assert [b.segments for b in plan.of(*MOVES)] == [4096, 4]


@pytest.mark.parametrize(
    ("other", "batches"),
    [
        ({"team": "nlp"}, 2),
        ({"class_name": "error"}, 2),
        ({"place_id": 9}, 2),
        ({"gid": 2000}, 2),
        ({"mode": 0o644}, 2),
        ({"mode": 0o600}, 2),
        ({"uid": 7}, 1),
        ({"mode": 0o660}, 1),
        ({"job": "train-2"}, 1),
        ({"node": "gpu-2"}, 1),
    ],
)
def test_only_segments_with_the_same_team_class_place_and_readers_share_an_archive(
    other: dict[str, Any], batches: int
) -> None:
    plan = plan_segments(a_segment("30h"), a_segment("30h", **other))
    assert len(plan.of(*MOVES)) == batches


def test_readable_by_all_means_that_the_group_does_not_matter() -> None:
    one, other = a_segment("30h", mode=0o644, gid=20), a_segment("30h", mode=0o644, gid=10)
    (batch,) = plan_segments(one, other).of(*MOVES)
    assert (batch.mode, batch.gid) == (0o644, 10)


def test_a_file_that_others_but_not_its_group_may_read_becomes_one_for_its_owner() -> None:
    (batch,) = plan_segments(a_segment("30h", mode=0o604)).of(*MOVES)
    assert batch.mode == 0o600


def test_days_do_not_mix_unless_the_merge_window_is_wider() -> None:
    segments = [a_segment("30h"), a_segment("54h"), a_segment("78h")]
    assert len(plan_segments(*segments).of(*MOVES)) == 3
    warm = a_tier(TierName.WARM)
    wide = replace(warm, merge=replace(warm.merge, window_days=7))
    batches = plan_segments(*segments, policy=a_policy(tiers=[wide, TierName.COLD])).of(*MOVES)
    assert {batch.day % 7 for batch in batches} == {0}
    assert len(batches) < 3


def test_an_empty_file_is_stored_like_any_other() -> None:
    segment = a_segment("30h", size=0)
    assert plan_segments(segment).ids(*MOVES) == [segment.id]


def test_a_team_may_keep_its_segments_in_hot_for_longer_or_shorter() -> None:
    longer = a_team("nlp", classes=[a_class(warm_after="72h", cold_after="9d")])
    shorter = a_team("speech", classes=[a_class(warm_after="1h")])
    policy = a_policy(teams=["vision", longer, shorter])
    vision, nlp, speech = (a_segment("30h", team=team) for team in ("vision", "nlp", "speech"))
    plan = plan_segments(vision, nlp, speech, a_segment("30m", team="speech"), policy=policy)
    assert plan.ids(*MOVES) == sorted((vision.id, speech.id))


def test_an_unlisted_team_and_a_class_that_policy_dropped_are_kept_and_counted() -> None:
    plan = plan_segments(
        a_segment("90d", team="stranger"), a_segment("90d", class_name="traces"), policy=a_policy(teams=["vision"])
    )
    assert plan.batches == ()
    assert plan.kept_codes == {ReasonCode.UNLISTED_TEAM: 1, ReasonCode.UNKNOWN_CLASS: 1}


def test_an_unlisted_team_is_not_reported_before_anything_would_be_due() -> None:
    assert plan_segments(a_segment("20h", team="stranger"), policy=a_policy(teams=["vision"])).kept == ()


# --- archives -----------------------------------------------------------------------------------------------------


def test_an_archive_moves_when_its_newest_member_is_old_enough() -> None:
    due, due_members = an_archive_of(a_segment("9d"), a_segment("7d"))
    young, young_members = an_archive_of(a_segment("9d"), a_segment("6d"))
    plan = plan_of(a_view(*due_members, *young_members, archives=[due, young]))
    (batch,) = plan.of(*MOVES)
    assert batch.archive_ids == (due.id,)
    assert (batch.kind, batch.tier_from, batch.tier_to) == (ActionKind.TRANSITION, TierName.WARM, TierName.COLD)
    assert (batch.place_id, batch.segments, batch.members) == (due.place_id, 2, ())


def test_small_archives_of_one_day_and_the_same_readers_merge_into_one() -> None:
    made = [an_archive_of(a_segment("8d")) for _ in range(3)]
    other, other_members = an_archive_of(a_segment("8d"), mode=0o600)
    members = [segment for _, members in made for segment in members]
    plan = plan_of(a_view(*members, *other_members, archives=[*(archive for archive, _ in made), other]))
    found = {batch.archive_ids: batch.kind for batch in plan.of(*MOVES)}
    assert found == {tuple(a.id for a, _ in made): ActionKind.MERGE, (other.id,): ActionKind.TRANSITION}


def test_an_archive_of_the_merge_size_moves_alone() -> None:
    policy = a_policy(tiers=[TierName.WARM, a_tier(TierName.COLD, below="2MiB", target="9MiB")])
    at, at_members = an_archive_of(a_segment("8d", size="2MiB"))
    under = [an_archive_of(a_segment("8d", size=2 * MIB - 1)) for _ in range(2)]
    members = [*at_members, *(segment for _, found in under for segment in found)]
    plan = plan_of(a_view(*members, archives=[at, *(archive for archive, _ in under)]), policy)
    assert sorted(batch.archive_ids for batch in plan.of(*MOVES)) == [(at.id,), tuple(a.id for a, _ in under)]


def test_archives_that_hold_the_same_path_do_not_merge() -> None:
    twice = [a_segment("8d", place_id=1, directory=b"vision/a", name=b"rank_3.log.1") for _ in range(2)]
    (one, first), (two, second) = (an_archive_of(segment) for segment in twice)
    third, rest = an_archive_of(a_segment("8d"))
    plan = plan_of(a_view(*first, *second, *rest, archives=[one, two, third]))
    assert sorted(batch.archive_ids for batch in plan.of(*MOVES)) == sorted([(one.id, third.id), (two.id,)])


def test_an_archive_of_which_everything_is_marked_waits_for_its_purge() -> None:
    archive, members = an_archive_of(a_segment("40d", marked="1d"))
    plan = plan_of(a_view(*members, archives=[archive]))
    assert plan.batches == ()
    assert plan.kept_codes == {ReasonCode.IN_GRACE: 1}


def test_a_damaged_archive_stays_where_it_is() -> None:
    archive, members = an_archive_of(a_segment("8d"), state=ArchiveState.QUARANTINED)
    assert plan_of(a_view(*members, archives=[archive])).batches == ()


def test_what_is_in_cold_never_comes_back_when_policy_changes() -> None:
    policy = a_policy(classes=[a_class(cold_after=None)])
    archive, members = an_archive_of(a_segment("9d"), tier=TierName.COLD)
    assert plan_of(a_view(*members, archives=[archive]), policy).batches == ()


def test_moves_come_hot_to_warm_first_then_hot_to_cold_then_warm_to_cold() -> None:
    archive, members = an_archive_of(a_segment("8d"))
    plan = plan_of(a_view(a_segment("9d"), *members, a_segment("2d"), archives=[archive]))
    ways = [(batch.tier_from, batch.tier_to) for batch in plan.batches]
    hot, warm, cold = TierName
    assert ways == [(hot, warm), (hot, cold), (warm, cold)]


def test_a_move_names_the_limit_its_line_and_the_age_of_its_youngest() -> None:
    (batch,) = plan_segments(a_segment("30h"), a_segment("26h")).of(*MOVES)
    reason = batch.reason
    assert (reason.code, reason.required, reason.current) == (ReasonCode.AGED, "24h", "last write 26 h ago")
    assert str(reason.rule) == "platform.yaml:12"


def test_a_restored_original_is_released_when_its_stay_is_over() -> None:
    archive, (stored,) = an_archive_of(a_segment("9d"))
    over = replace(stored, original=Original.SETTLED, tier=TierName.HOT, stay_until_ns=NOON_NS)
    (batch,) = plan_of(a_view(over, archives=[replace(archive, newest_write_ns=ago_ns("1d"))])).batches
    assert (batch.kind, batch.place_id, batch.tier_from, batch.tier_to) == (
        ActionKind.RELEASE, over.place_id, TierName.HOT, TierName.WARM,
    )  # fmt: skip
    still = replace(over, stay_until_ns=NOON_NS + 1)
    assert plan_of(a_view(still, archives=[replace(archive, newest_write_ns=ago_ns("1d"))])).batches == ()


def test_only_the_named_actions_are_planned() -> None:
    archive, (member,) = an_archive_of(a_segment("40d"), tier=TierName.COLD)
    view = a_view(member, a_segment("2d"), archives=[archive])
    assert {b.kind for b in plan_of(view, only=[ActionKind.MARK]).batches} == {ActionKind.MARK}
    assert {b.kind for b in plan_of(view, only=[ActionKind.TRANSITION]).batches} == {ActionKind.TRANSITION}


def test_a_batch_lists_its_members_by_path() -> None:
    names = [b"b.log", b"a.log", b"c.log"]
    segments = [a_segment(f"{30 + i}h", directory=b"d", name=name) for i, name in enumerate(names)]
    segments = [replace(s, last_write_ns=ago_ns("30h") - i) for i, s in enumerate(segments)]
    (batch,) = plan_segments(*segments).of(*MOVES)
    assert [member.path for member in batch.members] == [b"d/a.log", b"d/b.log", b"d/c.log"]
