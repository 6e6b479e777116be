"""View and policy to plan, whole. After a wanted change: ``UPDATE_GOLDEN=1 pytest tests/golden/test_plan.py``.

A view has a line for each segment: tier, team, class, name, age, size, and what else is not as usual. Segments with
the same ``archive`` lie in one. The policy is read from ``plan/policies`` by the program's own loader.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lifecycle.model import Archive, Kept, Original, PlannedBatch, Segment, TierName
from lifecycle.names import show_name
from lifecycle.plan.plan import PlanTally
from lifecycle.plan.planner import iter_batches
from lifecycle.plan.reasons import render_reason
from lifecycle.policy.load import load_policy
from lifecycle.policy.rules import Policy
from lifecycle.units import format_day, format_size, from_ns, parse_duration
from tests.builders import NOON, NOON_NS, a_segment
from tests.unit.plan.views import View, an_archive_of

FOLDER = Path(__file__).parent / "plan"
VIEWS = sorted(path.stem for path in FOLDER.glob("*.view"))


def read_view(text: str, policy: Policy) -> View:
    segments: list[Segment] = []
    groups: dict[str, list[tuple[TierName, Segment]]] = defaultdict(list)
    for number, line in enumerate((line for line in text.splitlines() if not line.startswith("#")), 1):
        tier, team, class_name, name, age, size, *rest = line.split()
        more = dict(item.split("=") for item in rest)
        group = more.pop("archive", None)
        segment = a_segment(
            None if age == "none" else age,
            id=number,
            size=size,
            team=team,
            class_name=class_name,
            name=name.encode(),
            job_id=number,
            **dict(map(_setting, more, more.values())),
        )
        if group is None:
            segments.append(segment)
        else:
            groups[group].append((TierName(tier), segment))
    return _with_archives(segments, groups, policy)


def _setting(name: str, value: str) -> tuple[str, Any]:
    match name:
        case "mode":
            return name, int(value, 8)
        case "gid":
            return name, int(value)
        case "original":
            return name, Original(value)
        case "set_aside":
            return "set_aside_until_ns", NOON_NS + parse_duration(value) // parse_duration("1s") * 10**9
        case _:
            return name, value  # ages, as the builder takes them


def _with_archives(segments: list[Segment], groups: dict[str, list[tuple[TierName, Segment]]], policy: Policy) -> View:
    archives: list[Archive] = []
    for number, group in groups.items():
        archive, members = an_archive_of(*(segment for _, segment in group), tier=group[0][0], id=int(number))
        archives.append(archive)
        segments.extend(members)
    return View(tuple(segments), tuple(archives), policy.digest)


def render_plan(view: View, policy: Policy) -> Iterator[str]:
    tally = PlanTally(policy, plan_id="golden", now=NOON)
    for item in iter_batches(view.source(), policy, NOON):
        tally.add(item)
        yield from _kept(item) if isinstance(item, Kept) else _batch(item)
    yield ""
    for line in tally.summary().lines:
        figures = [str(line.segments), format_size(line.logical_bytes), line.way, line.why, str(line.rule)]
        yield " · ".join([line.action, line.class_name, ", ".join(line.teams), *figures])


def _batch(batch: PlannedBatch) -> Iterator[str]:
    way = f"{batch.tier_from} → {batch.tier_to or 'gone'}"
    readers = f"{format_day(batch.day)} gid {batch.gid} mode {batch.mode:o}" if batch.kind.moves else ""
    yield f"{batch.kind} {batch.team}/{batch.class_name} {way} place {batch.place_id} {readers}".rstrip()
    names = [show_name(member.path.rpartition(b"/")[2]) for member in batch.members]
    names += [f"archive {archive_id}" for archive_id in batch.archive_ids]
    yield f"    {batch.segments} segments, {format_size(batch.logical_bytes)}: {', '.join(names)}"
    purge = f"; purge after {from_ns(batch.purge_after_ns):%m-%d %H:%M}" if batch.purge_after_ns else ""
    reason = batch.reason
    yield f"    {render_reason(reason)}; {reason.current or '–'} ({reason.rule}){purge}"


def _kept(kept: Kept) -> Iterator[str]:
    until = f", until {from_ns(kept.reason.until_ns):%m-%d %H:%M}" if kept.reason.until_ns else ""
    size, why = format_size(kept.logical_bytes), render_reason(kept.reason)
    yield f"kept {kept.team}/{kept.class_name} {kept.tier}: {kept.segments}, {size}: {why}{until}"


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_gives_the_plan_as_agreed(name: str) -> None:
    policy = load_policy(FOLDER / "policies", environ={})
    view = read_view((FOLDER / f"{name}.view").read_text(encoding="utf-8"), policy)
    text = "\n".join(render_plan(view, policy)) + "\n"
    path = FOLDER / f"{name}.plan"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_golden_plan_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.plan")} == set(VIEWS)
