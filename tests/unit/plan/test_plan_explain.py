"""Explain: present and required value of each condition, what is next, what then; never against the planner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lifecycle.model import ActionKind, Archive, ArchiveState, Original, ReasonCode, Segment, TierName
from lifecycle.plan.explain import Condition, Explanation, explain
from lifecycle.policy.rules import Policy
from lifecycle.units import DAY_NS
from tests.builders import NOON, NOON_NS, a_class, a_policy, a_segment, ago_ns
from tests.unit.plan.views import an_archive_of

HOUR_NS = 3600 * 10**9


def explained(segment: Segment, archive: Archive | None = None, policy: Policy | None = None) -> Explanation:
    return explain(segment, archive, policy or a_policy(), NOON)


def steps_of(found: Explanation) -> list[tuple[str, str, float]]:
    """Kind, tier and days from noon."""
    steps = [found.next, *found.then] if found.next else []
    return [(s.kind.value, s.tier_to.value if s.tier_to else "gone", (s.at_ns - NOON_NS) / DAY_NS) for s in steps]


def condition(found: Explanation, name: str) -> Condition:
    return next(each for each in found.conditions if each.name == name)


def test_a_young_segment_has_its_whole_life_before_it() -> None:
    assert steps_of(explained(a_segment("1h"))) == [
        ("transition", "warm", 1 - 1 / 24),
        ("transition", "cold", 7 - 1 / 24),
        ("mark", "hot", 30 - 1 / 24),
        ("purge", "gone", 33 - 1 / 24),
    ]


def test_conditions_show_the_present_and_the_required_value_and_the_line() -> None:
    found = explained(a_segment("3h", job_age="1h"))
    warm = condition(found, "old enough for warm")
    assert (warm.is_met, warm.current, warm.required, str(warm.rule)) == (
        False, "last write 3 h ago", "24h", "platform.yaml:12",
    )  # fmt: skip
    job = condition(found, "its job is quiet")
    assert (job.is_met, job.current, job.required) == (
        False,
        "the job's last write 60 min ago",
        "30d, or 90d since its own",
    )
    assert condition(found, "quiet, no writer seen").is_met


def test_what_is_due_and_kept_back_says_since_when_and_why() -> None:
    found = explained(a_segment("2d", original=Original.OPEN))
    assert found.next is not None and found.next.kept_back is not None
    assert (found.next.is_due, found.next.at_ns) == (True, ago_ns("24h"))
    assert found.next.kept_back.code is ReasonCode.NOT_SETTLED
    assert not condition(found, "quiet, no writer seen").is_met


def test_an_old_original_goes_straight_to_the_tier_of_its_age() -> None:
    assert steps_of(explained(a_segment("8d")))[0][:2] == ("transition", "cold")


def test_an_archive_moves_by_its_newest_member() -> None:
    archive, (old, _) = an_archive_of(a_segment("9d"), a_segment("6d"))
    assert steps_of(explained(old, archive))[0] == ("transition", "cold", 1.0)


def test_a_segment_that_is_over_its_retention_is_moved_first_and_marked_then() -> None:
    archive, (segment,) = an_archive_of(a_segment("40d"))
    found = explained(segment, archive)
    assert [step[0] for step in steps_of(found)] == ["transition", "mark", "purge"]
    assert found.then[0].kept_back is not None
    assert found.then[0].kept_back.code is ReasonCode.NOT_IN_REQUIRED_TIER


def test_an_end_of_retention_before_the_next_tier_leaves_that_tier_out() -> None:
    policy = a_policy(classes=[a_class(cold_after="40d")])
    assert "cold" not in [step[1] for step in steps_of(explained(a_segment("1h"), policy=policy))]


def test_a_marked_segment_is_purged_when_the_longer_grace_is_over() -> None:
    archive, (segment,) = an_archive_of(a_segment("40d", marked="1d"), tier=TierName.COLD)
    assert steps_of(explained(segment, archive)) == [("purge", "gone", 2.0)]
    assert steps_of(explained(segment, archive, a_policy(grace="9d"))) == [("purge", "gone", 8.0)]
    assert condition(explained(segment, archive), "grace is over").current == "marked 24 h ago"


def test_a_purge_with_other_members_says_that_it_depends_on_them() -> None:
    archive, (segment, _, _) = an_archive_of(*(a_segment("40d", marked="1d") for _ in range(3)), tier=TierName.COLD)
    found = explained(segment, archive)
    assert found.next is not None and "2 other members" in found.next.note


def test_a_mark_that_policy_no_longer_backs_is_taken_off_next() -> None:
    archive, (segment,) = an_archive_of(a_segment("40d", marked="1d"), tier=TierName.COLD)
    found = explained(segment, archive, a_policy(classes=[a_class(expire_after="90d")]))
    assert found.next is not None and found.next.kind is ActionKind.UNMARK


def test_a_restored_segment_is_released_when_its_stay_ends() -> None:
    archive, (stored,) = an_archive_of(a_segment("9d"), tier=TierName.COLD)
    back = replace(stored, original=Original.SETTLED, tier=TierName.HOT, stay_until_ns=NOON_NS + DAY_NS)
    found = explained(back, archive)
    assert steps_of(found)[0] == ("release", "cold", 1.0)
    assert not condition(found, "stay is over").is_met


def test_a_marked_segment_that_was_restored_is_released_before_it_is_purged() -> None:
    archive, (stored,) = an_archive_of(a_segment("40d", marked="1d"), tier=TierName.COLD)
    back = replace(stored, original=Original.SETTLED, tier=TierName.HOT, stay_until_ns=NOON_NS + 5 * DAY_NS)
    assert steps_of(explained(back, archive)) == [("release", "cold", 5.0), ("purge", "gone", 5.0)]


@pytest.mark.parametrize(
    ("segment", "code"),
    [
        (a_segment("9d", team="stranger"), ReasonCode.UNLISTED_TEAM),
        (a_segment("9d", class_name="traces"), ReasonCode.UNKNOWN_CLASS),
        (replace(a_segment("9d"), last_write_ns=None), ReasonCode.AGE_UNKNOWN),
    ],
)
def test_where_nothing_will_ever_happen_the_reason_is_said(segment: Segment, code: ReasonCode) -> None:
    found = explained(segment, policy=a_policy(teams=["vision"]))
    assert found.next is None and found.then == ()
    assert found.nothing is not None and found.nothing.code is code
    assert not all(each.is_met for each in found.conditions)


def test_a_class_without_an_end_says_so_when_it_is_in_its_last_tier() -> None:
    archive, (segment,) = an_archive_of(a_segment("9d"), tier=TierName.COLD)
    found = explained(segment, archive, a_policy(classes=[a_class(expire_after=None)]))
    assert found.next is None
    assert found.nothing is not None and found.nothing.code is ReasonCode.NEVER_EXPIRES


def test_a_damaged_archive_keeps_its_members_back() -> None:
    archive, (segment,) = an_archive_of(a_segment("9d"), state=ArchiveState.QUARANTINED)
    found = explained(segment, archive)
    assert found.next is not None and found.next.kept_back is not None
    assert found.next.kept_back.code is ReasonCode.QUARANTINED


def test_what_is_gone_has_no_future_and_no_conditions() -> None:
    found = explained(a_segment("90d", tier=None))
    assert (found.next, found.then, found.nothing, found.conditions) == (None, (), None, ())


def test_an_original_whose_copy_was_made_early_goes_when_it_would_have_moved() -> None:
    archive, (stored,) = an_archive_of(a_segment("3h"))
    beside = replace(stored, original=Original.SETTLED, tier=TierName.HOT)
    assert steps_of(explained(beside, archive))[:2] == [
        ("release", "warm", 21 / 24),
        ("transition", "cold", 7 - 3 / 24),
    ]
    late = replace(beside, last_write_ns=ago_ns("30h"))
    found = explained(late, archive)
    assert found.next is not None and found.next.is_due
    assert "copy was made early" in found.next.note
