"""No extract, no delete, whatever is in the catalog: found by hypothesis."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.model import ActionKind, ArchiveState, Segment, TierName
from tests.builders import NOON_NS, a_class, a_policy, a_tier
from tests.property.test_plan_properties import CLASSES, touched, views
from tests.unit.plan.views import View, plan_of

KEEPING = {"training", "eval"}
POLICY = a_policy(
    classes=[
        replace(CLASSES[0]),
        # One that goes from where it lies, one by way of both tiers.
        a_class("eval", warm_after=None, cold_after=None, expire_after="7d", keep_errors_as="error"),
        replace(CLASSES[2], keep_errors_as="error"),
    ],
    tiers=[a_tier(TierName.WARM, below="4MiB", target="9MiB"), a_tier(TierName.COLD, below="8MiB", target="20MiB")],
)


@st.composite
def looked(draw: st.DrawFn) -> View:
    """Views in which some were looked through and some were not."""
    view = draw(views())
    blocks = st.sampled_from([None, None, 0, 3])
    segments = tuple(replace(segment, error_blocks=draw(blocks)) for segment in view.segments)
    return replace(view, segments=segments, marked_under=POLICY.digest)


def lacks(segment: Segment) -> bool:
    return segment.class_name in KEEPING and segment.error_blocks is None


@given(looked())
@settings(max_examples=200, deadline=None)
def test_nothing_that_policy_keeps_the_errors_of_is_marked_or_purged_before_it_was_looked_through(view: View) -> None:
    by_id = {segment.id: segment for segment in view.segments}
    plan = plan_of(view, POLICY)
    for segment_id in touched(plan, view, ActionKind.MARK, ActionKind.PURGE):
        assert not lacks(by_id[segment_id])


@given(looked())
@settings(max_examples=200, deadline=None)
def test_what_is_stored_without_it_is_looked_through_once_and_nothing_else_is(view: View) -> None:
    states = {archive.id: archive.state for archive in view.archives}
    due = {
        (s.archive_id, s.class_name)
        for s in view.segments
        if s.archive_id is not None
        and lacks(s)
        and states[s.archive_id] is ArchiveState.LIVE
        and (s.set_aside_until_ns or 0) <= NOON_NS
    }
    batches = plan_of(view, POLICY).of(ActionKind.EXTRACT)
    planned = [(archive, batch.class_name) for batch in batches for archive in batch.archive_ids]
    assert sorted(planned) == sorted(due)
    by_id = {segment.id: segment for segment in view.segments}
    originals = [member.segment_id for batch in batches for member in batch.members]
    assert len(originals) == len(set(originals))
    assert all(lacks(by_id[each]) and by_id[each].archive_id is None for each in originals)


def test_the_views_reach_both_ways_to_be_looked_through() -> None:
    seen: set[TierName] = set()

    @given(looked())
    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    def look(view: View) -> None:
        seen.update(batch.tier_from for batch in plan_of(view, POLICY).of(ActionKind.EXTRACT))

    look()
    assert seen == set(TierName)
