"""The lines of ``lifecycle plan``: what is added up, what stays apart, how it reads."""

from __future__ import annotations

from lifecycle.model import ActionKind, Kept, PlannedBatch, TierName
from lifecycle.plan.plan import PlanSummary, PlanTally, make_plan_id
from lifecycle.plan.planner import iter_batches
from lifecycle.policy.rules import Policy
from tests.builders import NOON, a_class, a_policy, a_segment, a_team
from tests.unit.plan.views import View, a_view, an_archive_of


def summary_of(view: View, policy: Policy | None = None) -> PlanSummary:
    policy = policy or a_policy()
    tally = PlanTally(policy, plan_id="7c1e", now=NOON)
    for item in iter_batches(view.source(), policy, NOON):
        tally.add(item)
    return tally.summary()


def lines_of(summary: PlanSummary) -> list[str]:
    return [
        f"{line.action} {line.class_name} {'+'.join(line.teams)} {line.segments} {line.way}: {line.why} ({line.rule})"
        for line in summary.lines
    ]


def test_lines_read_as_people_expect_them() -> None:
    cold, (marked,) = an_archive_of(a_segment("40d"), tier=TierName.COLD)
    gone, (purged,) = an_archive_of(a_segment("50d", marked="4d"), tier=TierName.COLD)
    small = [a_segment("30h", team=team) for team in ("nlp", "nlp", "vision", "vision")]
    large = a_segment("30h", size="1GiB")
    young = a_segment("40d", first_seen="1h", job_id=9)
    recent, (kept,) = an_archive_of(young, tier=TierName.COLD)
    view = a_view(marked, purged, *small, large, kept, archives=[cold, gone, recent])
    assert lines_of(summary_of(view)) == [
        "purge training vision 1 cold → gone: marked, grace of 3d over (platform.yaml:16)",
        "mark training vision 1 cold → gone: over 30d; purge from 2026-03-04 (platform.yaml:12)",
        "transition training vision 1 hot → warm: last write over 24h ago (platform.yaml:12)",
        "merge training nlp+vision 4 hot → warm: under 64MiB, into 2 archives (platform.yaml:7)",
        "kept training vision 1 cold: first seen less than 24h ago (None)",
    ]


def test_teams_with_figures_of_their_own_have_lines_of_their_own() -> None:
    own = a_team("nlp", classes=[a_class(warm_after="12h", file="teams/nlp.yaml", line=3)])
    policy = a_policy(teams=["vision", own])
    view = a_view(a_segment("30h", size="1GiB"), a_segment("30h", size="1GiB", team="nlp"))
    assert lines_of(summary_of(view, policy)) == [
        "transition training vision 1 hot → warm: last write over 24h ago (platform.yaml:12)",
        "transition training nlp 1 hot → warm: last write over 12h ago (teams/nlp.yaml:3)",
    ]


def test_totals_add_up_the_batches_and_leave_out_what_is_kept() -> None:
    archive, members = an_archive_of(a_segment("8d"))
    view = a_view(
        *[a_segment("2d", size=1000) for _ in range(3)], *members, a_segment("2d", team="x"), archives=[archive]
    )
    summary = summary_of(view, a_policy(teams=["vision"]))
    assert (summary.totals.batches, summary.totals.segments) == (2, 4)
    assert summary.totals.logical_bytes == 3000 + archive.live_raw_bytes
    assert summary.totals.stored_bytes == 3 * 4096 + archive.size_bytes
    assert summary.segments_of(ActionKind.MERGE) == 3
    assert [kept.team for kept in summary.kept] == ["x"]
    assert not summary.is_empty


def test_a_plan_with_nothing_due_is_empty_even_if_something_is_kept() -> None:
    summary = summary_of(a_view(a_segment("9d", team="x")), a_policy(teams=["vision"]))
    assert summary.is_empty
    assert [line.action for line in summary.lines] == ["kept"]


def test_the_summary_does_not_depend_on_the_order_of_what_it_adds_up() -> None:
    policy = a_policy(teams=["vision", "nlp"])
    view = a_view(*(a_segment(f"{30 + i}h", team=team) for i in range(3) for team in ("nlp", "vision", "x")))
    planned: list[PlannedBatch | Kept] = list(iter_batches(view.source(), policy, NOON))
    tallies = [PlanTally(policy, plan_id="1", now=NOON) for _ in range(2)]
    for tally, order in zip(tallies, (planned, planned[::-1]), strict=True):
        for item in order:
            tally.add(item)
    assert tallies[0].summary().lines == tallies[1].summary().lines


def test_a_plan_id_tells_catalog_policy_and_instant_apart() -> None:
    ids = {make_plan_id(catalog, digest, NOON) for catalog in "ab" for digest in "cd"}
    assert len(ids) == 4
    assert make_plan_id("a", "c", NOON) in ids
