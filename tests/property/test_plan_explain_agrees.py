"""Explain and the planner follow the same rules: what one announces, the other does."""

from __future__ import annotations

from hypothesis import given, settings

from lifecycle.model import ActionKind, TierName
from lifecycle.plan.explain import explain
from tests.builders import NOON
from tests.property.test_plan_properties import POLICY, views
from tests.unit.plan.views import View, plan_of


@given(views())
@settings(max_examples=100, deadline=None)
def test_explain_and_the_planner_agree_about_originals(view: View) -> None:
    """What explain calls next and due, with nothing against it, is what the plan does; and nothing else is."""
    plan = plan_of(view, POLICY)
    planned = {member.segment_id: batch for batch in plan.batches for member in batch.members}
    for segment in (s for s in view.segments if s.archive_id is None):
        found = explain(segment, None, POLICY, NOON).next
        acts = found is not None and found.is_due and found.kept_back is None
        batch = planned.get(segment.id)
        if found is not None and found.kind is ActionKind.UNMARK and batch is None:
            continue  # the plan looks at marks again when their grace is over, or their job wrote
        assert acts == (batch is not None), (segment, found)
        if batch is not None and found is not None:
            kind = ActionKind.TRANSITION if batch.kind is ActionKind.MERGE else batch.kind
            assert (found.kind, found.tier_to) == (kind, batch.tier_to if kind is not ActionKind.MARK else TierName.HOT)


@given(views())
@settings(max_examples=100, deadline=None)
def test_explain_and_the_planner_agree_about_marks_of_stored_segments(view: View) -> None:
    marked = {m.segment_id for batch in plan_of(view, POLICY).of(ActionKind.MARK) for m in batch.members}
    archives = {archive.id: archive for archive in view.archives}
    for segment in (s for s in view.segments if s.archive_id is not None):
        found = explain(segment, archives[segment.archive_id or 0], POLICY, NOON)
        steps = [step for step in (found.next, *found.then) if step and step.kind is ActionKind.MARK]
        assert (segment.id in marked) == any(step.is_due and step.kept_back is None for step in steps)
