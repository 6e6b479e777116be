"""Tiny archives of neighbouring days become one in the last tier: when, of which days, and what never lies together."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lifecycle.model import ActionKind, Archive, ReasonCode, Segment, TierName
from lifecycle.plan.compaction import days_together
from lifecycle.plan.figures import FigureBook, Figures
from lifecycle.plan.reasons import render_reason
from lifecycle.policy.rules import Policy
from lifecycle.units import DAY_NS, day_of_ns, duration_ns
from tests.builders import NOON_NS, a_class, a_policy, a_segment, a_tier
from tests.unit.plan.views import Plan, a_view, an_archive_of, plan_of

POLICY = a_policy(
    classes=[a_class("training", warm_after="24h", cold_after="7d", expire_after="90d")],
    tiers=[a_tier(TierName.WARM), a_tier(TierName.COLD, below="8MiB", target="20MiB")],
)
TODAY = day_of_ns(NOON_NS)


def archives_of(*days: int, size: str = "1KiB", **more: object) -> tuple[list[Archive], list[Segment]]:
    """An archive in cold of one segment for each day of last write, all at noon."""
    archives, segments = [], []
    for day in days:
        age = timedelta(days=TODAY - day)
        archive, stored = an_archive_of(a_segment(age, size=size, **more), tier=TierName.COLD)
        archives.append(archive)
        segments.extend(stored)
    return archives, segments


def compactions(policy: Policy, archives: list[Archive], segments: list[Segment]) -> list[tuple[int, ...]]:
    plan: Plan = plan_of(a_view(*segments, archives=archives), policy)
    return [batch.archive_ids for batch in plan.of(ActionKind.MERGE) if batch.tier_from is batch.tier_to]


def window(days: int, back: int = 0) -> int:
    """The first day of the newest window that is over by now, or of one before it."""
    last = TODAY - 7 - 1 - days  # cold after 7 d, windows of a day in warm
    return last // days * days - back * days


def figures(policy: Policy) -> Figures:
    found = FigureBook(policy).of("vision", "training")
    assert isinstance(found, Figures)
    return found


@pytest.mark.parametrize(("expire", "days"), [("90d", 9), ("30d", 3), ("7d", 1), (None, 30), ("3650d", 30)])
def test_a_tenth_of_the_retention_lies_together(expire: str | None, days: int) -> None:
    policy = a_policy(classes=[a_class("training", warm_after="24h", cold_after=None, expire_after=expire)])
    assert days_together(figures(policy), policy.tiers[TierName.WARM]) == days
    assert days * DAY_NS * 10 <= (figures(policy).expire_ns or 10**30) or days == 1


def test_tiny_archives_of_a_window_that_is_over_become_one() -> None:
    first = window(9)
    archives, segments = archives_of(first, first + 4, first + 8)
    assert compactions(POLICY, archives, segments) == [tuple(archive.id for archive in archives)]
    plan = plan_of(a_view(*segments, archives=archives), POLICY)
    (batch,) = plan.of(ActionKind.MERGE)
    assert (batch.day, batch.segments, batch.reason.code) == (first, 3, ReasonCode.SMALL_ARCHIVES)
    assert render_reason(batch.reason) == "tiny archives of 9d of last write share one"


def test_what_may_get_company_waits_and_one_alone_is_left() -> None:
    archives, segments = archives_of(window(9) + 9, window(9) + 10)
    assert compactions(POLICY, archives, segments) == []
    assert compactions(POLICY, *archives_of(window(9))) == []


def test_days_of_two_windows_never_lie_together() -> None:
    archives, segments = archives_of(window(9, 1), window(9, 1) + 8, window(9), window(9) + 1)
    ids = [archive.id for archive in archives]
    assert compactions(POLICY, archives, segments) == [tuple(ids[:2]), tuple(ids[2:])]


def test_what_is_no_longer_tiny_is_not_written_again() -> None:
    archives, segments = archives_of(window(9), window(9) + 1, size="1MiB")  # an eighth of below
    assert compactions(POLICY, archives, segments) == []


def test_readers_classes_and_teams_stay_apart() -> None:
    first = window(9)
    mine, own = archives_of(first, team="vision")
    theirs, other = archives_of(first, team="nlp")
    private, kept = archives_of(first)
    private = [replace(archive, mode=0o600) for archive in private]
    assert compactions(POLICY, [*mine, *theirs, *private], [*own, *other, *kept]) == []


def test_a_marked_member_keeps_its_archive_out_of_it() -> None:
    archives, segments = archives_of(window(9), window(9) + 1)
    marked = replace(segments[0], marked_ns=NOON_NS, purge_after_ns=NOON_NS + duration_ns(POLICY.grace))
    assert compactions(POLICY, archives, [marked, segments[1]]) == []


def test_one_path_is_not_twice_in_an_archive() -> None:
    archives, segments = archives_of(window(9), window(9) + 1, window(9) + 2)
    same = [replace(s, directory=segments[0].directory, name=segments[0].name) for s in segments[:2]]
    found = compactions(POLICY, archives, [*same, segments[2]])
    assert found == [(archives[0].id, archives[2].id)]
