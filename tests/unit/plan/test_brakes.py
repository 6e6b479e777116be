"""What is newly past its retention is counted against the limits of its team; what merely grew old is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lifecycle.model import ActionKind, Kept, PlannedBatch, ReasonCode, Segment, Usage
from lifecycle.plan.brakes import FLOOR_SEGMENTS, Brake, describe_brake, find_brakes, iter_newly, present_figures
from lifecycle.plan.figures import Retention
from lifecycle.plan.planner import iter_batches
from lifecycle.plan.source import TeamClass
from lifecycle.policy.rules import Limits, Policy
from lifecycle.units import duration_ns, parse_duration
from tests.builders import NOON, NOON_NS, a_class, a_policy, a_segment
from tests.unit.plan.views import View, a_view, an_archive_of

MANY = FLOOR_SEGMENTS + 10
EVAL = TeamClass("nlp", "eval")
EARLY = parse_duration("14d")


def days(number: int, *, by_job: bool = False) -> Retention:
    return Retention(duration_ns(parse_duration(f"{number}d")), by_job)


def a_policy_of(expire_after: str = "7d", **limits: object) -> Policy:
    policy = a_policy(classes=[a_class("eval", warm_after="24h", cold_after=None, expire_after=expire_after)])
    return replace(policy, limits=Limits(**limits)) if limits else policy  # type: ignore[arg-type]


def a_view_of(*ages: tuple[str, int], team: str = "nlp", size: str = "1MiB") -> View:
    """So many stored eval segments of each age."""
    archives, segments = [], list[Segment]()
    for age, count in ages:
        archive, stored = an_archive_of(
            *(a_segment(age, team=team, class_name="eval", size=size) for _ in range(count))
        )
        archives.append(archive)
        segments.extend(stored)
    return a_view(*segments, archives=archives)


def brakes(view: View, policy: Policy, in_force: Retention | None, **accepted: Usage) -> tuple[Brake, ...]:
    given = {EVAL: in_force} if in_force else {}
    return find_brakes(
        view.source(), policy, NOON_NS, in_force=given,
        accepted={TeamClass("nlp", name): usage for name, usage in accepted.items()},
    )  # fmt: skip


def test_a_retention_that_was_shortened_brakes_what_is_newly_past_it() -> None:
    view = a_view_of(("10d", MANY), ("40d", 5), ("1d", MANY))
    (brake,) = brakes(view, a_policy_of("7d"), days(30))
    assert (brake.team, brake.classes, brake.usage.segments, brake.is_first) == ("nlp", ("eval",), MANY, False)
    assert "48% of what nlp has, 30% are allowed" in describe_brake(brake)


def test_what_grew_old_under_an_unchanged_policy_never_brakes() -> None:
    assert brakes(a_view_of(("400d", 10 * MANY)), a_policy_of("7d"), days(7)) == ()


def test_a_retention_that_was_lengthened_brakes_nothing() -> None:
    assert brakes(a_view_of(("400d", MANY)), a_policy_of("30d"), days(7)) == ()


def test_all_that_is_past_its_retention_is_new_where_nothing_was_in_force() -> None:
    (brake,) = brakes(a_view_of(("400d", MANY)), a_policy_of("7d"), None)
    assert brake.is_first and brake.usage.segments == MANY


@pytest.mark.parametrize(("count", "size", "is_braked"), [(FLOOR_SEGMENTS - 1, "1MiB", False), (2, "600MiB", True)])
def test_a_share_counts_only_above_a_floor(count: int, size: str, is_braked: bool) -> None:
    assert bool(brakes(a_view_of(("10d", count), size=size), a_policy_of(), None)) is is_braked


def test_a_share_below_the_limit_is_no_brake() -> None:
    view = a_view_of(("10d", MANY), ("1d", 10 * MANY))
    assert brakes(view, a_policy_of(), days(30)) == ()
    assert brakes(view, a_policy_of(share_of_team=0.05), days(30)) != ()


def test_one_team_s_brake_is_not_the_other_s() -> None:
    nlp, vision = a_view_of(("10d", MANY)), a_view_of(("10d", 3), team="vision")
    view = a_view(*nlp.segments, *vision.segments, archives=[*nlp.archives, *vision.archives])
    assert [brake.team for brake in brakes(view, a_policy_of(), None)] == ["nlp"]


def test_what_was_accepted_is_no_brake_until_it_is_much_more() -> None:
    usage = Usage(segments=MANY, logical_bytes=MANY * 2**20)
    assert brakes(a_view_of(("10d", MANY + 3)), a_policy_of(), None, eval=usage) == ()
    assert brakes(a_view_of(("10d", 3 * MANY)), a_policy_of(), None, eval=usage) != ()


def test_an_absolute_limit_counts_whatever_the_reason() -> None:
    view = a_view_of(("400d", 4))
    assert brakes(view, a_policy_of(size_bytes=8 * 2**20), days(7)) == ()
    (brake,) = brakes(view, a_policy_of(size_bytes=2 * 2**20), days(7))
    assert brake.classes == ("eval",) and "4.00 MiB at once, 2MiB are allowed" in describe_brake(brake)


def test_a_braked_class_is_moved_and_not_marked() -> None:
    view = a_view_of(("10d", MANY))
    (brake,) = brakes(view, a_policy_of(), None)
    items = list(iter_batches(view.source(), a_policy_of(), NOON, braked=brake.pairs))
    assert not any(isinstance(item, PlannedBatch) and item.kind is ActionKind.MARK for item in items)
    kept = [item for item in items if isinstance(item, Kept)]
    assert [(item.reason.code, item.segments) for item in kept] == [(ReasonCode.BRAKED, MANY)]


def test_an_unlisted_team_has_no_figures_to_be_in_force() -> None:
    policy = a_policy(teams=["vision"])
    assert present_figures([EVAL], policy) == {}
    assert list(iter_newly(a_view_of(("400d", MANY)).source(), policy, NOON_NS, in_force={})) == []


def test_a_class_that_may_expire_early_from_now_on_brakes_what_is_old_enough_for_it() -> None:
    policy = a_policy(
        classes=[a_class("eval", warm_after="24h", cold_after=None, expire_after="30d", expire_early=EARLY)]
    )
    view = a_view_of(("20d", MANY), ("1d", MANY))
    (brake,) = brakes(view, policy, days(30))
    assert (brake.usage.segments, brake.is_early) == (MANY, True)
    assert "old enough to expire early, only since policy changed" in describe_brake(brake)
    assert brakes(view, policy, days(30)._replace(early_ns=duration_ns(EARLY))) == ()
    assert brakes(view, policy, days(14)) == ()


def test_errors_never_expire_early_and_so_brake_nothing() -> None:
    rule = a_class("error", warm_after="24h", cold_after=None, expire_after="90d", expire_early=EARLY)
    archive, stored = an_archive_of(*(a_segment("20d", class_name="error", size="1MiB") for _ in range(MANY)))
    source = a_view(*stored, archives=[archive]).source()
    in_force = {TeamClass("vision", "error"): days(90), TeamClass("nlp", "error"): days(90)}
    assert list(iter_newly(source, a_policy(classes=[rule]), NOON_NS, in_force=in_force)) == []


DAYS_EARLY = (days(30)._replace(early_ns=days(14).expire_ns), days(30)._replace(early_ns=days(16).expire_ns))


@pytest.mark.parametrize(
    ("new", "old", "as_long"),
    [
        (days(30), DAYS_EARLY[0], True),
        (DAYS_EARLY[0], days(30), False),
        (DAYS_EARLY[1], DAYS_EARLY[0], True),
        (DAYS_EARLY[0], DAYS_EARLY[1], False),
        (DAYS_EARLY[1], days(15), True),
        (DAYS_EARLY[1], days(15, by_job=True), False),
        (Retention(None, False), DAYS_EARLY[0], True),
        (Retention(None, False, days(14).expire_ns), Retention(None, False), False),
    ],
)
def test_a_retention_is_as_long_only_where_its_early_age_is(new: Retention, old: Retention, as_long: bool) -> None:
    assert new.keeps_as_long_as(old) is as_long
