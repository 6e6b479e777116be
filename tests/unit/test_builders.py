"""The builders keep their word: what they say in a name is what the value holds."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.model import Original, TierName
from lifecycle.units import from_ns
from tests.builders import NOON, a_batch, a_policy, a_segment, a_team, an_archive


def test_a_segments_age_counts_back_from_noon() -> None:
    segment = a_segment(age="90d")
    assert segment.last_write_ns is not None
    assert NOON - from_ns(segment.last_write_ns) == timedelta(days=90)


def test_a_segment_in_a_colder_tier_has_a_stored_copy_and_no_original() -> None:
    segment = a_segment(tier=TierName.COLD, size="10MiB")
    assert segment.original is Original.RELEASED
    assert (segment.archive_tier, segment.stored_bytes) == (TierName.COLD, 2 * 2**20)


def test_two_segments_are_never_the_same_one() -> None:
    one, other = a_segment(), a_segment()
    assert one.id != other.id
    assert one.identity != other.identity
    assert one.path != other.path


def test_overrides_win_over_what_the_builder_works_out() -> None:
    assert a_segment(age="1d", original=Original.MISSING, id=7, name=b"x").path == b"vision/train-1/x"
    assert an_archive(members=10, live_members=3).live_members == 3


def test_a_batchs_archive_is_readable_by_nobody_who_could_not_read_every_member() -> None:
    assert a_batch([a_segment(mode=0o644), a_segment(mode=0o600)]).mode == 0o600


def test_a_policy_with_named_teams_lists_only_them() -> None:
    policy = a_policy(teams=["nlp", a_team("vision", aliases=("prj0421",))])
    assert policy.is_listed("nlp")
    assert not policy.is_listed("speech")
    assert policy.team_of("prj0421") == "vision"
    assert a_policy().is_listed("speech")
