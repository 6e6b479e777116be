"""Limits to the nanosecond, and what the source is asked for: never more than may be due."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lifecycle.model import ReasonCode, Segment, TierName
from lifecycle.plan.figures import FigureBook, Figures, make_figures
from lifecycle.plan.memory import MemoryDue
from lifecycle.plan.planner import iter_batches
from lifecycle.plan.source import Candidate, TeamClass
from lifecycle.policy.rules import ExpireFrom
from lifecycle.units import DAY_NS
from tests.builders import NOON, a_class, a_policy, a_segment, a_team, ago_ns
from tests.unit.plan.views import a_view


def figures(*tiers: TierName, **rule: str | ExpireFrom | None) -> Figures:
    return make_figures(a_class(**rule), a_policy(tiers=tiers or (TierName.WARM, TierName.COLD)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("age_ns", "tier"),
    [
        (DAY_NS - 1, TierName.HOT),
        (DAY_NS, TierName.WARM),
        (7 * DAY_NS - 1, TierName.WARM),
        (7 * DAY_NS, TierName.COLD),
        (-DAY_NS, TierName.HOT),  # written a little in the future
    ],
)
def test_at_the_limit_exactly_the_next_tier_is_asked_for(age_ns: int, tier: TierName) -> None:
    assert figures().required_tier(age_ns) is tier


def test_a_tier_that_is_not_there_is_passed_over() -> None:
    assert figures(TierName.COLD).required_tier(3 * DAY_NS) is TierName.HOT
    assert figures(TierName.WARM).required_tier(30 * DAY_NS) is TierName.WARM


@pytest.mark.parametrize(
    ("written", "job_written", "end"),
    [(0, 0, 30), (0, 20, 50), (0, 60, 90), (0, 200, 90), (10, 0, 40)],
)
def test_retention_from_the_job_ends_at_most_three_times_after_the_own_write(
    written: int, job_written: int, end: int
) -> None:
    found = figures(expire_from=ExpireFrom.JOB).retention_end_ns(written * DAY_NS, job_written * DAY_NS)
    assert found == end * DAY_NS


def test_retention_from_the_write_does_not_ask_the_job() -> None:
    assert figures().retention_end_ns(0, 20 * DAY_NS) == 30 * DAY_NS
    assert figures(expire_after=None).retention_end_ns(0, 0) is None


def test_a_segment_may_expire_in_hot_only_where_no_tier_asks_for_it_by_then() -> None:
    assert not figures().expires_in_hot
    assert figures(warm_after="40d", cold_after="50d").expires_in_hot
    assert not figures(warm_after="30d", cold_after=None).expires_in_hot
    assert not figures(expire_after=None).expires_in_hot


def test_a_team_has_its_own_figures_and_strangers_have_a_reason_instead() -> None:
    book = FigureBook(a_policy(teams=["vision", a_team("nlp", classes=[a_class(warm_after="48h")])]))
    nlp, vision = book.of("nlp", "training"), book.of("vision", "training")
    assert isinstance(nlp, Figures) and nlp.warm_ns == 2 * DAY_NS
    assert isinstance(vision, Figures) and vision.warm_ns == DAY_NS
    assert book.of("speech", "training") is ReasonCode.UNLISTED_TEAM
    assert book.of("nlp", "traces") is ReasonCode.UNKNOWN_CLASS


class Asked(MemoryDue):
    """Notes the ranges it is asked for, and how far it was read."""

    def __init__(self, *args: Candidate) -> None:
        super().__init__(args)
        self.ranges: list[tuple[TeamClass, int | None, int]] = []
        self.read = 0

    def iter_settled(self, pair: TeamClass, *, after_ns: int | None, until_ns: int) -> Iterator[Candidate]:
        self.ranges.append((pair, after_ns, until_ns))
        for candidate in super().iter_settled(pair, after_ns=after_ns, until_ns=until_ns):
            self.read += 1
            yield candidate

    def iter_expiring(
        self, pair: TeamClass, *, write_until_ns: int, job_until_ns: int | None, with_originals: bool
    ) -> Iterator[Candidate]:
        self.ranges.append((pair, job_until_ns, write_until_ns))
        return super().iter_expiring(
            pair, write_until_ns=write_until_ns, job_until_ns=job_until_ns, with_originals=with_originals
        )


def asked_of(*segments: Segment) -> Asked:
    return Asked(*a_view(*segments).candidates())


def test_each_team_is_asked_for_by_its_own_limit() -> None:
    policy = a_policy(tiers=[TierName.WARM], teams=["vision", a_team("nlp", classes=[a_class(warm_after="72h")])])
    source = asked_of(a_segment("1h"), a_segment("1h", team="nlp"))
    list(iter_batches(source, policy, NOON))
    moves = {pair.team: until for pair, after, until in source.ranges if after is None}
    assert moves["vision"] == ago_ns("24h")
    assert moves["nlp"] == ago_ns("72h")


def test_a_job_that_writes_for_months_is_not_read_from_the_first_limit_on() -> None:
    source = asked_of(a_segment("1h"))
    list(iter_batches(source, a_policy(tiers=[]), NOON))
    assert source.ranges == [(TeamClass("vision", "training"), ago_ns("30d"), ago_ns("90d"))]


def test_hot_to_warm_and_hot_to_cold_share_no_range() -> None:
    source = asked_of(a_segment("1h"))
    list(iter_batches(source, a_policy(), NOON))
    ranges = [(after, until) for _, after, until in source.ranges if until != ago_ns("90d")]
    assert ranges == [(ago_ns("7d"), ago_ns("24h")), (None, ago_ns("7d"))]


def test_a_batch_comes_as_soon_as_its_day_is_over() -> None:
    days = [a_segment(f"{2 + day}d") for day in range(4) for _ in range(2)]
    source = asked_of(*days)
    next(iter(iter_batches(source, a_policy(), NOON)))
    assert source.read == 3  # the two of the oldest day, and the first of the next


def test_planning_an_instant_does_not_depend_on_the_one_before() -> None:
    source = asked_of(a_segment("2d"))
    assert list(iter_batches(source, a_policy(), NOON)) == list(iter_batches(source, a_policy(), NOON))
