"""What holds for every plan, whatever is in the catalog. Found by hypothesis; the oracle below says the rules again."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.model import ActionKind, Archive, ArchiveState, Original, PlannedBatch, Segment, TierName
from lifecycle.plan.batches import reader_set
from lifecycle.policy.rules import ExpireFrom, Policy
from lifecycle.units import day_of_ns, duration_ns
from tests.builders import NOON_NS, a_class, a_policy, a_segment, a_team, a_tier, ago_ns
from tests.unit.plan.views import MOVES, Plan, View, an_archive_of, plan_of

HOUR_NS = 3600 * 10**9
DAY = 24
# Limits, and an hour on both sides of each: where plans go wrong.
HOURS = sorted({h + d for h in (24, 48, 7 * DAY, 30 * DAY, 60 * DAY, 90 * DAY) for d in (-1, 0, 1)} | {2})

CLASSES = (
    a_class("error", expire_after="90d", expire_from=ExpireFrom.WRITE),
    a_class("eval", cold_after=None, expire_after="7d", expire_from=ExpireFrom.WRITE),
    a_class("training", expire_after="30d", expire_from=ExpireFrom.JOB),
)
POLICY = a_policy(
    classes=CLASSES,
    tiers=[a_tier(TierName.WARM, below="4MiB", target="9MiB"), a_tier(TierName.COLD, below="8MiB", target="20MiB")],
    teams=["vision", a_team("nlp", base=CLASSES, classes=[a_class(expire_after="60d", warm_after="48h")])],
)
TIERLESS = replace(POLICY, tiers={})

hours = st.sampled_from(HOURS)


@st.composite
def segments(draw: st.DrawFn, *, may_be_unlisted: bool = True) -> Segment:
    age, team = (
        draw(hours),
        draw(st.sampled_from(["vision", "nlp", "stranger"] if may_be_unlisted else ["vision", "nlp"])),
    )
    marked = draw(st.sampled_from([None, None, None, 1, 71, 72, 73]))
    return a_segment(
        timedelta(hours=age),
        size=draw(st.sampled_from([0, 1, 2**20, 3 * 2**20, 4 * 2**20, 9 * 2**20, 10 * 2**20])),
        team=team,
        class_name=draw(st.sampled_from(["error", "eval", "training", "dropped"])),
        job_age=timedelta(hours=draw(st.sampled_from([1, *[h for h in HOURS if h <= age]]))),
        first_seen=timedelta(hours=draw(st.sampled_from([1, 23, 24, 100 * DAY]))),
        marked=None if marked is None else timedelta(hours=marked),
        place_id=draw(st.sampled_from([1, 8, 9])),
        mode=draw(st.sampled_from([0o600, 0o640, 0o644, 0o664, 0o604])),
        gid=draw(st.sampled_from([10, 20])),
        original=draw(st.sampled_from([Original.SETTLED] * 6 + [Original.OPEN, Original.MISSING])),
        set_aside_until_ns=draw(st.sampled_from([None, None, None, NOON_NS, NOON_NS + 1])),
        hold_id=draw(st.sampled_from([None] * 5 + [7])),
    )  # fmt: skip


def likes(draw: st.DrawFn, segment: Segment) -> list[Segment]:
    """The segment and up to three more that differ from it in nothing that keeps them apart, but perhaps in readers."""
    found = [segment]
    for _ in range(draw(st.integers(0, 3))):
        other = a_segment(size=draw(st.sampled_from([0, 2**20, 3 * 2**20])))
        identity = segment.identity._replace(inode=other.identity.inode, size_bytes=other.size_bytes)
        mode = draw(st.sampled_from([segment.mode, segment.mode, 0o600]))
        found.append(replace(segment, id=other.id, name=other.name, identity=identity, mode=mode))
    return found


@st.composite
def views(draw: st.DrawFn) -> View:
    """Originals, and archives that each hold segments of one team and class."""
    found = [each for segment in draw(st.lists(segments(), max_size=8)) for each in likes(draw, segment)]
    archives: list[Archive] = []
    for group in draw(st.lists(st.lists(segments(), min_size=1, max_size=3), max_size=4)):
        first = group[0]
        alike = [replace(s, labels=first.labels, class_name=first.class_name) for s in group]
        for some in likes(draw, first):
            archive, members = an_archive_of(
                *[some, *alike[1:]],
                tier=draw(st.sampled_from([TierName.WARM, TierName.COLD])),
                state=draw(st.sampled_from([ArchiveState.LIVE] * 5 + [ArchiveState.QUARANTINED])),
                mode=draw(st.sampled_from([0o640, 0o644])),
            )
            archives.append(archive)
            found.extend(members)
            alike = alike[:1]
    for _ in range(draw(st.integers(0, 2))):  # a held member, and neighbours that may go
        sizes = draw(st.lists(st.sampled_from([0, 2**20, 3 * 2**20]), min_size=1, max_size=3))
        goes = [a_segment("100d", size=size, marked=draw(st.sampled_from(["80h", "71h"]))) for size in sizes]
        held = a_segment("100d", size=draw(st.sampled_from([2**20, 3 * 2**20])), hold_id=7)
        archive, members = an_archive_of(held, *goes, tier=draw(st.sampled_from([TierName.WARM, TierName.COLD])))
        archives.append(archive)
        found.extend(members)
    return View(tuple(found), tuple(archives), POLICY.digest)


policies = st.sampled_from([POLICY, TIERLESS])


# --- the oracle: the rules once more, one segment at a time, as plainly as can be ------------------------------------


def age_ns(segment: Segment) -> int:
    return NOON_NS - (segment.last_write_ns or 0)


def required_warmth(segment: Segment, policy: Policy, age: int) -> int:
    rule = policy.rule_for(segment.labels.team, segment.class_name)
    return policy.tier_at(rule, timedelta(microseconds=age // 1000)).warmth if rule else 0


def is_known(segment: Segment, policy: Policy) -> bool:
    return policy.is_listed(segment.labels.team) and segment.class_name in policy.classes


def has_expired(segment: Segment, policy: Policy) -> bool:
    rule = policy.rule_for(segment.labels.team, segment.class_name)
    if not is_known(segment, policy) or rule is None or rule.expire_after is None:
        return False
    limit = duration_ns(rule.expire_after)
    if rule.expire_from is ExpireFrom.WRITE:
        return age_ns(segment) >= limit
    job_age = NOON_NS - max(segment.job_last_write_ns, segment.last_write_ns or 0)
    return job_age >= limit or age_ns(segment) >= 3 * limit


def moved_archives(view: View, policy: Policy) -> set[int]:
    found = set()
    for archive in view.archives:
        members = [s for s in view.segments if s.archive_id == archive.id]
        newest = min(members, key=age_ns)
        is_behind = required_warmth(newest, policy, age_ns(newest)) > archive.tier.warmth
        unmarked = any(s.marked_ns is None for s in members)
        if archive.state is ArchiveState.LIVE and is_known(newest, policy) and is_behind and unmarked:
            found.add(archive.id)
    return found


def moved_originals(view: View, policy: Policy) -> set[int]:
    return {
        s.id
        for s in view.segments
        if s.archive_id is None
        and s.marked_ns is None
        and s.original is Original.SETTLED
        and (s.set_aside_until_ns or 0) <= NOON_NS
        and is_known(s, policy)
        and required_warmth(s, policy, age_ns(s)) > 0
    }


def marked_segments(view: View, policy: Policy) -> set[int]:
    states = {archive.id: archive.state for archive in view.archives}
    return {
        s.id
        for s in view.segments
        if s.marked_ns is None
        and s.hold_id is None
        and has_expired(s, policy)
        and s.first_seen_ns <= ago_ns("24h")
        and required_warmth(s, policy, age_ns(s)) <= (s.archive_tier or TierName.HOT).warmth
        and s.original in (Original.SETTLED, Original.RELEASED)
        and states.get(s.archive_id or 0) is not ArchiveState.QUARANTINED
    }


def purged_segments(view: View, policy: Policy) -> set[int]:
    def is_ready(s: Segment) -> bool:
        if s.hold_id is not None:
            return False
        return s.purge_after_ns is not None and s.purge_after_ns <= NOON_NS and has_expired(s, policy)

    gone = {
        s.id
        for s in view.segments
        if s.archive_id is None
        and is_ready(s)
        and s.original is Original.SETTLED
        and (s.set_aside_until_ns or 0) <= NOON_NS
    }
    for archive in view.archives:
        members = [s for s in view.segments if s.archive_id == archive.id]
        if archive.state is ArchiveState.LIVE and all(map(is_ready, members)):
            gone |= {s.id for s in members}
    return gone


def rewritten_archives(view: View, policy: Policy) -> set[int]:
    """Archives of which at least half the bytes could go, but for a held member."""
    found = set()
    for archive in view.archives:
        members = [s for s in view.segments if s.archive_id == archive.id]
        goes = [
            s
            for s in members
            if s.hold_id is None and (s.purge_after_ns or NOON_NS + 1) <= NOON_NS and has_expired(s, policy)
        ]
        size = sum(s.size_bytes for s in goes)
        is_half = size > 0 and 2 * size >= sum(s.size_bytes for s in members)
        is_behind = archive.id in moved_archives(view, policy)
        is_held = any(s.hold_id is not None for s in members)
        if archive.state is ArchiveState.LIVE and is_half and is_held and not is_behind:
            found.add(archive.id)
    return found


# --- what a batch touches -------------------------------------------------------------------------------------------


def touched(plan: Plan, view: View, *kinds: ActionKind) -> list[int]:
    """Ids of every segment in batches of these kinds, those of whole archives too; twice if it is there twice."""
    members = [member.segment_id for batch in plan.of(*kinds) for member in batch.members]
    in_archives = Counter(archive for batch in plan.of(*kinds) for archive in batch.archive_ids)
    stored = [s.id for s in view.segments for _ in range(in_archives[s.archive_id or 0])]
    return sorted(members + stored)


@given(views(), policies)
@settings(max_examples=200, deadline=None)
def test_every_due_segment_is_in_exactly_one_batch_and_no_other_is(view: View, policy: Policy) -> None:
    plan = plan_of(view, policy)
    archives = moved_archives(view, policy)
    moved = moved_originals(view, policy) | {s.id for s in view.segments if s.archive_id in archives}
    assert touched(plan, view, *MOVES) == sorted(moved)
    assert touched(plan, view, ActionKind.MARK) == sorted(marked_segments(view, policy))
    assert touched(plan, view, ActionKind.PURGE) == sorted(purged_segments(view, policy))
    rewritten = [archive for batch in plan.of(ActionKind.REWRITE) for archive in batch.archive_ids]
    assert sorted(rewritten) == sorted(rewritten_archives(view, policy))
    marked = [s for s in view.segments if s.marked_ns is not None]
    wrong = {s.id for s in marked if s.hold_id is not None or not has_expired(s, policy)}
    found = touched(plan, view, ActionKind.UNMARK)
    assert len(found) == len(set(found)) and set(found) <= wrong
    assert {s.id for s in marked if s.hold_id is not None} <= set(found)
    # Under one policy a mark goes wrong by its job, or is looked at when its grace is over.
    assert {s.id for s in view.segments if s.id in wrong and (s.purge_after_ns or 0) <= NOON_NS} <= set(found)


@given(views(), policies)
@settings(max_examples=100, deadline=None)
def test_whatever_is_over_its_retention_is_acted_on_or_kept_with_a_reason(view: View, policy: Policy) -> None:
    plan = plan_of(view, policy)
    acted = set(touched(plan, view, *ActionKind))
    expired = {
        s.id: s
        for s in view.segments
        if s.id not in acted and s.marked_ns is None and has_expired(s, policy) and s.original is not Original.MISSING
    }
    over = {s.id for s in view.segments if (s.purge_after_ns or NOON_NS + 1) <= NOON_NS and s.id not in acted}
    assert sum(kept.segments for kept in plan.kept) >= len(expired) + len(over)
    assert all(kept.segments > 0 for kept in plan.kept)


@given(views(), policies)
@settings(max_examples=100, deadline=None)
def test_no_plan_purges_what_is_not_marked_or_has_a_reason_to_stay(view: View, policy: Policy) -> None:
    by_id = {s.id: s for s in view.segments}
    for segment_id in touched(plan_of(view, policy), view, ActionKind.PURGE):
        segment = by_id[segment_id]
        assert segment.marked_ns is not None and segment.hold_id is None
        assert (segment.purge_after_ns or NOON_NS + 1) <= NOON_NS
        assert has_expired(segment, policy)


@given(views(), policies, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_of_rows_never_matters(view: View, policy: Policy, chance: random.Random) -> None:
    rows, archives = list(view.segments), list(view.archives)
    chance.shuffle(rows)
    chance.shuffle(archives)
    assert plan_of(View(tuple(rows), tuple(archives), view.marked_under), policy) == plan_of(view, policy)


@given(views())
@settings(max_examples=100, deadline=None)
def test_no_batch_mixes_what_must_lie_apart_or_outgrows_its_limits(view: View) -> None:
    by_id, archives = {s.id: s for s in view.segments}, {a.id: a for a in view.archives}
    for batch in plan_of(view, POLICY).batches:
        members = [by_id[member.segment_id] for member in batch.members]
        whole = [archives[number] for number in batch.archive_ids]
        inside = [s for s in view.segments if s.archive_id in batch.archive_ids]
        assert {s.labels.team for s in (*members, *inside)} == {batch.team}
        assert {s.class_name for s in (*members, *inside)} == {batch.class_name}
        if batch.kind is ActionKind.REWRITE:
            inside = [s for s in inside if s.hold_id is not None or (s.purge_after_ns or NOON_NS + 1) > NOON_NS]
        assert batch.segments == len(members) + len(inside) <= 4096
        assert batch.logical_bytes == sum(s.size_bytes for s in (*members, *inside))
        assert {a.place_id for a in whole} <= {batch.place_id}
        if batch.kind.moves and batch.tier_to is not None:
            check_archive(batch, members, whole, inside)


def check_archive(batch: PlannedBatch, members: list[Segment], whole: list[Archive], inside: list[Segment]) -> None:
    assert batch.tier_to is not None
    assert batch.tier_to.warmth - batch.tier_from.warmth >= (batch.kind is not ActionKind.REWRITE)
    merge = POLICY.tiers[batch.tier_to].merge
    if batch.kind is ActionKind.MERGE:
        assert len(members) + len(whole) > 1
        assert batch.logical_bytes <= merge.target_bytes
        assert all(
            size < merge.below_bytes for size in (*(s.size_bytes for s in members), *(a.live_raw_bytes for a in whole))
        )
    else:
        assert len(members) + len(whole) == 1
    readers = {reader_set(s.mode, s.gid) for s in members} | {reader_set(a.mode, a.gid) for a in whole}
    assert len(readers) == 1
    assert {day_of_ns(s.last_write_ns or 0) for s in members} | {a.day for a in whole} == {batch.day}
    # Never readable by more people than each of its members was.
    for member in members:
        assert batch.mode & 0o044 & ~member.mode == 0
        assert batch.mode & 0o004 or not batch.mode & 0o040 or batch.gid == member.gid
    paths = [(s.place_id, s.path) for s in (*members, *inside)]
    assert len(paths) == len(set(paths))


def apply(view: View, plan: Plan) -> View:
    """The catalog after every batch did what it says."""
    now = {s.id: s for s in view.segments}
    archives = {a.id: a for a in view.archives}
    for batch in plan.batches:
        inside = [s for s in now.values() if s.archive_id in batch.archive_ids]
        members = [now[member.segment_id] for member in batch.members] + inside
        changes = _changes(batch, members, archives)
        now |= {s.id: s for s in changes}
    live = {s.archive_id for s in now.values()}
    return View(tuple(now.values()), tuple(a for a in archives.values() if a.id in live), view.marked_under)


def _changes(batch: PlannedBatch, members: list[Segment], archives: dict[int, Archive]) -> list[Segment]:
    match batch.kind:
        case ActionKind.MARK:
            return [replace(s, marked_ns=NOON_NS, purge_after_ns=batch.purge_after_ns) for s in members]
        case ActionKind.UNMARK:
            return [replace(s, marked_ns=None, purge_after_ns=None) for s in members]
        case ActionKind.RELEASE:
            return [replace(s, original=Original.RELEASED, tier=s.archive_tier, stay_until_ns=None) for s in members]
        case ActionKind.PURGE:
            return [
                replace(s, original=Original.PURGED, tier=None, archive_id=None, marked_ns=None, purge_after_ns=None)
                for s in members
            ]
        case ActionKind.REWRITE:
            stay = [s for s in members if s.hold_id is not None or (s.purge_after_ns or NOON_NS + 1) > NOON_NS]
            assert len(stay) == batch.segments
            archive, stored = an_archive_of(*stay, tier=batch.tier_to, mode=batch.mode, gid=batch.gid)
            archives[archive.id] = archive
            old = archives[batch.archive_ids[0]]
            left = [s for s in members if s not in stay]
            archives[old.id] = replace(old, live_members=len(left), live_raw_bytes=sum(s.size_bytes for s in left))
            return [*stored, *(replace(s, purge_after_ns=NOON_NS + duration_ns(POLICY.grace)) for s in left)]
        case _:
            assert batch.tier_to is not None
            archive, stored = an_archive_of(*members, tier=batch.tier_to, mode=batch.mode, gid=batch.gid)
            archives[archive.id] = archive
            return list(stored)


@given(views(), policies)
@settings(max_examples=150, deadline=None)
def test_after_a_clean_run_nothing_is_planned_again(view: View, policy: Policy) -> None:
    first = plan_of(view, policy)
    after = apply(view, first)
    second = plan_of(after, policy)
    done = {kind: set(touched(first, view, kind)) for kind in ActionKind}
    # A second run at the same instant has only what the first made possible: marks of what is now in its tier,
    # moves of what is no longer marked.
    assert set(touched(second, after, ActionKind.MARK)) <= set().union(*(done[kind] for kind in MOVES))
    assert not second.of(ActionKind.PURGE, ActionKind.UNMARK, ActionKind.RELEASE)
    moved_again = {s for s in touched(second, after, *MOVES) if s not in done[ActionKind.UNMARK]}
    unmarked_archives = {s.archive_id for s in after.segments if s.id in done[ActionKind.UNMARK]}
    assert {s.archive_id for s in after.segments if s.id in moved_again} <= unmarked_archives
    third = apply(after, second)
    assert plan_of(third, policy).batches == ()


@given(views())
@settings(max_examples=50, deadline=None)
def test_no_plan_loses_a_segment_that_it_does_not_purge(view: View) -> None:
    plan = plan_of(view, POLICY)
    after = {s.id: s for s in apply(view, plan).segments}
    purged = set(touched(plan, view, ActionKind.PURGE))
    assert {s for s, segment in after.items() if segment.tier is None} == purged


def test_the_strategies_reach_every_action() -> None:
    """Guards the properties above against views in which nothing ever happens."""
    seen: set[ActionKind] = set()

    @given(views(), policies)
    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    def look(view: View, policy: Policy) -> None:
        seen.update(batch.kind for batch in plan_of(view, policy).batches)

    look()
    assert seen >= set(ActionKind) - {ActionKind.RELEASE, ActionKind.COPY, ActionKind.EXTRACT}
