"""From due candidates, policy and ``now`` to batches with reasons. Pure: the same inputs give the same batches.

Knows the order of a run and what may lie together. Never knows where candidates come from, and never acts; ages and
obstacles are ``decide``'s and ``figures``'s, sums and reasons are ``batches``'s.

Order of what comes out, and why
1. unmarks: nothing may be purged on a mark whose reason is gone
2. releases and purges: they free space, and a full disk needs it before anything is written
3. marks: rows only
4. extractions: what was stored without its errors being kept; the next run marks it
5. moves: hot to warm, hot to cold, warm to cold; within them by team, class and day, oldest first
   after them what is beyond the newest of its rotation set, and tiny archives that become one in the last tier
6. rewrites: held members leave archives whose others may go; they need room, which moves may have given
7. copies: stored early, the original stays (``copy_after``)
8. what was kept and why, summed up
What leaves ahead of its time because room is needed is ``relief``'s, and comes between 7 and 8.
Batches come as they fill. Memory is that of the open bins, which are bounded, however much is due.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from lifecycle.model import ActionKind, Kept, PlannedBatch, Reason, ReasonCode, TierName, Usage
from lifecycle.plan.batches import ArchiveKey, BatchMaker, PlaceKey, reader_set
from lifecycle.plan.bins import MAX_MEMBERS, Bins
from lifecycle.plan.compaction import iter_compactions
from lifecycle.plan.decide import (
    copy_blocker,
    is_due_to_move,
    keeps_its_archive,
    leaving_place,
    mark_blocker,
    mark_fault,
    move_blocker,
    purge_blocker,
    reached_tier,
    retention_blocker,
    room_for,
)
from lifecycle.plan.extraction import iter_extractions
from lifecycle.plan.figures import FigureBook, Figures
from lifecycle.plan.kept import KeptCounter
from lifecycle.plan.rewriting import is_worth_it, iter_rewrites
from lifecycle.plan.rotations import iter_surplus_moves
from lifecycle.plan.source import ArchiveMarks, Candidate, CopyRule, DueArchive, DueSource, TeamClass
from lifecycle.policy.rules import Policy, TierRule
from lifecycle.units import day_of_ns, duration_ns, format_limit, to_ns

EVERY_ACTION: Final = frozenset(ActionKind)


def iter_batches(
    source: DueSource,
    policy: Policy,
    now: datetime,
    *,
    only: Collection[ActionKind] | None = None,
    unclassified: Collection[int] = (),
    braked: Collection[TeamClass] = (),
    full: Collection[TierName] = (),
    copies: Mapping[int, CopyRule] = MappingProxyType({}),
) -> Iterator[PlannedBatch | Kept]:
    """Everything that is due at ``now``, batch by batch in the order of a run, then one ``Kept`` per group.

    ``only`` names the actions to plan; None or all of them plan everything. What the others would do is then not
    looked at, nor counted as kept. Of places in ``unclassified`` nothing is marked or purged: policy's class rules
    changed, and their segments were not all judged by them. Of teams and classes in ``braked`` nothing is marked. What
    would go to a tier in ``full`` goes to the next colder one of its class. ``copies``: sources, by place, that want a
    stored copy early. A second call with the same inputs gives the same values in the same order.
    """
    wanted = EVERY_ACTION if only is None else frozenset(only)
    limits = (frozenset(unclassified), frozenset(braked), frozenset(full))
    planner = _Planner(source, policy, to_ns(now), wanted, *limits, copies)
    for item in planner.run():
        if isinstance(item, Kept) or item.kind in wanted:
            yield item


class _Planner:
    def __init__(
        self,
        source: DueSource,
        policy: Policy,
        now_ns: int,
        wanted: frozenset[ActionKind],
        unclassified: frozenset[int],
        braked: frozenset[TeamClass],
        full: frozenset[TierName],
        copies: Mapping[int, CopyRule],
    ) -> None:
        self._source = source
        self._policy = policy
        self._now_ns = now_ns
        self._wanted = wanted
        self._unclassified = unclassified
        self._braked = braked
        self._full = full
        self._copies = copies
        self._book = FigureBook(policy)
        self._grace_ns = duration_ns(policy.grace)
        self._surplus: set[int] = set()  # beyond the newest of their rotation sets
        self._make = BatchMaker(policy, now_ns)
        self._saw_keeping = False  # members that keep an archive beside some that may go
        self._kept = KeptCounter(policy, now_ns)
        self._pairs = sorted(source.pairs())
        known = ((pair, self._book.of(*pair)) for pair in self._pairs)
        self._known = [(pair, figures) for pair, figures in known if isinstance(figures, Figures)]

    def run(self) -> Iterator[PlannedBatch | Kept]:
        if ActionKind.UNMARK in self._wanted:
            yield from self._unmarks()
        if ActionKind.RELEASE in self._wanted:
            yield from self._releases()
            yield from self._releases_of_copied()
        if ActionKind.PURGE in self._wanted:
            yield from self._purges_of_originals()
            yield from self._purges_of_archives()
        if ActionKind.MARK in self._wanted:
            yield from self._marks()
        if ActionKind.EXTRACT in self._wanted:
            yield from iter_extractions(self._source, self._policy, self._now_ns, self._known, self._book, self._full)
        if ActionKind.TRANSITION in self._wanted or ActionKind.MERGE in self._wanted:
            yield from self._moves()
        if ActionKind.TRANSITION in self._wanted or ActionKind.MERGE in self._wanted:
            yield from self._moves_of_rotations()
        if ActionKind.MERGE in self._wanted:
            for pair, figures in self._known:
                yield from iter_compactions(
                    self._source, self._policy, self._now_ns, self._make, pair, figures, self._full
                )
        if ActionKind.REWRITE in self._wanted and (self._saw_keeping or ActionKind.PURGE not in self._wanted):
            yield from iter_rewrites(
                self._source, self._now_ns, self._make, self._may_go, self._moves_on, self._keeps, self._full
            )
        if ActionKind.COPY in self._wanted and self._copies:
            yield from self._early_copies()
        self._count_standing()
        yield from self._kept.lines()

    # --- marks taken off, originals released, purges ------------------------------------------------------------

    def _unmarks(self) -> Iterator[PlannedBatch]:
        bins: Bins[tuple[PlaceKey, ReasonCode], Candidate] = Bins()
        for candidate in self._source.iter_doubtful_marks(
            policy_digest=self._policy.digest, now_ns=self._now_ns, jobs=self._doubtful_jobs()
        ):
            code = self._mark_is_wrong(candidate)
            if code is not None:
                yield from map(self._unmark, bins.add((place_key(candidate), code), candidate))
        yield from map(self._unmark, bins.drain())

    def _doubtful_jobs(self) -> list[tuple[TeamClass, int]]:
        """A job that wrote later than this may have made marks wrong, where retention counts from the job."""
        return [
            (pair, self._now_ns - figures.expire_ns)
            for pair, figures in self._known
            if figures.by_job and figures.expire_ns is not None
        ]

    def _mark_is_wrong(self, candidate: Candidate) -> ReasonCode | None:
        return mark_fault(candidate, self._book.of(candidate.team, candidate.class_name), self._now_ns)

    def _unmark(self, closed: tuple[tuple[PlaceKey, ReasonCode], list[Candidate]]) -> PlannedBatch:
        (key, code), candidates = closed
        figures = self._book.of(key.team, key.class_name)
        return self._make.unmark(key, code, figures if isinstance(figures, Figures) else None, candidates)

    def _releases(self) -> Iterator[PlannedBatch]:
        bins: Bins[PlaceKey, Candidate] = Bins()
        for candidate in self._source.iter_returned(now_ns=self._now_ns):
            code = move_blocker(candidate, self._now_ns)
            if code is not None:
                self._keep(candidate, code)
                continue
            key = place_key(candidate)._replace(place_id=candidate.place_id)
            for closed in bins.add(key, candidate):
                yield self._make.release(*closed)
        for closed in bins.drain():
            yield self._make.release(*closed)

    def _releases_of_copied(self) -> Iterator[PlannedBatch]:
        """Originals whose stored copy was made early: they go when the segment would have moved."""
        for pair, figures in self._known:
            if figures.first_move_ns is None:
                continue
            bins: Bins[PlaceKey, Candidate] = Bins()
            until_ns = self._now_ns - figures.first_move_ns
            for candidate in self._source.iter_copied(pair, after_ns=None, until_ns=until_ns):
                code = copy_blocker(candidate, self._now_ns)
                if code is not None:
                    self._kept.add(candidate, code, figures)
                    continue
                for closed in bins.add(place_key(candidate)._replace(place_id=candidate.place_id), candidate):
                    yield self._make.release_copied(figures, *closed)
            for closed in bins.drain():
                yield self._make.release_copied(figures, *closed)

    def _purges_of_originals(self) -> Iterator[PlannedBatch]:
        bins: Bins[PlaceKey, Candidate] = Bins()
        for candidate in self._source.iter_marked_originals(now_ns=self._now_ns):
            if self._mark_is_wrong(candidate) is not None:
                continue  # unmarked by this very plan
            code = self._purge_blocker(candidate)
            if code is not None:
                self._keep(candidate, code)
                continue
            for closed in bins.add(place_key(candidate), candidate):
                yield self._make.purge_originals(*closed)
        for closed in bins.drain():
            yield self._make.purge_originals(*closed)

    def _purge_blocker(self, candidate: Candidate) -> ReasonCode | None:
        figures = self._book.of(candidate.team, candidate.class_name)
        code = purge_blocker(candidate, figures, self._grace_ns, self._now_ns)
        return self._class_doubt(candidate) if code is None else code

    def _class_doubt(self, candidate: Candidate) -> ReasonCode | None:
        return ReasonCode.RECLASSIFYING if candidate.place_id in self._unclassified else None

    def _purges_of_archives(self) -> Iterator[PlannedBatch]:
        bins: Bins[PlaceKey, tuple[DueArchive, int]] = Bins()
        for marks in self._source.iter_marked_archives(now_ns=self._now_ns):
            archive = marks.archive
            if not self._goes_whole(marks):
                continue
            key = PlaceKey(archive.team, archive.class_name, archive.place_id, TierName(archive.tier))
            last_marked_ns = max(member.marked_ns or 0 for member in marks.members)
            for closed in bins.add(key, (archive, last_marked_ns), count=archive.live_members):
                yield self._make.purge_archives(*closed)
        for closed in bins.drain():
            yield self._make.purge_archives(*closed)

    def _goes_whole(self, marks: ArchiveMarks) -> bool:
        """Whether every live member is past its grace; if not, those that are become "kept" (bug case B12)."""
        ready: list[Candidate] = []
        for member in marks.members:
            if (member.purge_after_ns or self._now_ns + 1) > self._now_ns or self._mark_is_wrong(member) is not None:
                continue  # its time has not come
            code = self._purge_blocker(member)
            if code is None:
                ready.append(member)
            else:
                self._keep(member, code)
        # Books that disagree about the members bar the purge as well.
        if ready and len(ready) == len(marks.members) == marks.archive.live_members:
            return True
        if ready:
            self._keep_beside(marks, ready)
        return False

    def _keep_beside(self, marks: ArchiveMarks, ready: list[Candidate]) -> None:
        """Members whose archive cannot go: kept, unless it is rewritten without them."""
        going = {member.id for member in ready}
        staying = [member for member in marks.members if member.id not in going]
        is_held = any(member.hold_id is not None for member in staying)
        self._saw_keeping = self._saw_keeping or any(map(self._keeps, staying))
        is_rewritten = ActionKind.REWRITE in self._wanted and TierName(marks.archive.tier) not in self._full
        is_worth = is_worth_it(marks.archive.state, ready, staying, self._keeps)
        if is_rewritten and is_worth and not any(map(self._moves_on, staying)):
            return
        for member in ready:
            self._keep(member, ReasonCode.BESIDE_HELD if is_held else ReasonCode.ARCHIVE_SHARED)

    def _keeps(self, member: Candidate) -> bool:
        return keeps_its_archive(member, self._book.of(member.team, member.class_name))

    def _moves_on(self, member: Candidate) -> bool:
        figures = self._book.of(member.team, member.class_name)
        return isinstance(figures, Figures) and is_due_to_move(member, figures, self._now_ns)

    def _may_go(self, member: Candidate) -> bool:
        """Marked, past its grace, and nothing against it."""
        if (member.purge_after_ns or self._now_ns + 1) > self._now_ns or self._mark_is_wrong(member) is not None:
            return False
        return self._purge_blocker(member) is None

    # --- marks --------------------------------------------------------------------------------------------------

    def _marks(self) -> Iterator[PlannedBatch]:
        for pair, figures in self._known:
            bins: Bins[PlaceKey, Candidate] = Bins()
            for candidate in self._expiring(pair, figures):
                if retention_blocker(candidate, figures, self._now_ns) is not None:
                    continue  # the source's range may be wider than the rule
                code = self._mark_blocker(pair, candidate, figures)
                if code is None:
                    for closed in bins.add(place_key(candidate), candidate):
                        yield self._make.mark(figures, *closed)
                elif not is_due_to_move(candidate, figures, self._now_ns):
                    self._kept.add(candidate, code, figures)
            for closed in bins.drain():
                yield self._make.mark(figures, *closed)

    def _mark_blocker(self, pair: TeamClass, candidate: Candidate, figures: Figures) -> ReasonCode | None:
        code = mark_blocker(candidate, figures, self._now_ns) or self._class_doubt(candidate)
        return ReasonCode.BRAKED if code is None and pair in self._braked else code

    def _expiring(self, pair: TeamClass, figures: Figures) -> Iterator[Candidate]:
        if figures.expire_ns is None:
            return iter(())
        return self._source.iter_expiring(
            pair,
            write_until_ns=self._now_ns - figures.longest_retention_ns,
            job_until_ns=self._now_ns - figures.expire_ns if figures.by_job else None,
            with_originals=figures.expires_in_hot,
        )

    # --- moves --------------------------------------------------------------------------------------------------

    def _moves(self) -> Iterator[PlannedBatch]:
        for tier in (TierName.WARM, TierName.COLD):
            for pair, figures in self._known:
                if tier in self._policy.tiers:
                    yield from self._moves_of_originals(pair, figures, tier, self._policy.tiers[tier])
        if TierName.COLD in self._policy.tiers:
            for pair, figures in self._known:
                yield from self._moves_of_archives(pair, figures, self._policy.tiers[TierName.COLD])

    def _moves_of_originals(
        self, pair: TeamClass, figures: Figures, tier: TierName, target: TierRule
    ) -> Iterator[PlannedBatch]:
        limit_ns = figures.limit_ns(tier)
        if limit_ns is None:
            return
        to = tier
        if tier in self._full and (colder := room_for(figures, tier, self._full)) is not None:
            to, target = colder, self._policy.tiers[colder]
        colder_ns = figures.cold_ns if tier is TierName.WARM else None
        after_ns = None if colder_ns is None else self._now_ns - colder_ns
        bins: Bins[ArchiveKey, Candidate] = Bins(max_bytes=target.merge.target_bytes)
        window: int | None = None
        for candidate in self._source.iter_settled(pair, after_ns=after_ns, until_ns=self._now_ns - limit_ns):
            code = move_blocker(candidate, self._now_ns)
            if code is not None:
                self._kept.add(candidate, code, figures)
                continue
            key = archive_key(candidate, target)
            if window is not None and key.window != window:
                for closed in bins.drain():  # candidates come by last write: that window is over
                    yield self._move(pair, figures, tier, to, *closed)
            window = key.window
            if candidate.size_bytes >= target.merge.below_bytes:
                yield self._move(pair, figures, tier, to, key, [candidate])
                continue
            for closed in bins.add(key, candidate, size_bytes=candidate.size_bytes):
                yield self._move(pair, figures, tier, to, *closed)
        for closed in bins.drain():
            yield self._move(pair, figures, tier, to, *closed)

    def _move(
        self,
        pair: TeamClass,
        figures: Figures,
        tier: TierName,
        to: TierName,
        key: ArchiveKey,
        candidates: list[Candidate],
    ) -> PlannedBatch:
        """By the limit of ``tier``, into ``to``: the same, unless that one is full."""
        return replace(self._make.move_originals(pair, figures, tier, key, candidates), tier_to=to)

    def _moves_of_rotations(self) -> Iterator[PlannedBatch]:
        """What is beyond the newest of its rotation set; not copied early as well."""
        for pair, figures in self._known:
            for batch in iter_surplus_moves(
                self._source, self._policy, self._now_ns, self._make, pair, figures, self._full, archive_key
            ):
                self._surplus.update(member.segment_id for member in batch.members)
                yield batch

    def _early_copies(self) -> Iterator[PlannedBatch]:
        """What is settled and too young to move gets a stored copy where its source asks for it."""
        soonest_ns = min(rule.after_ns for rule in self._copies.values())
        for pair, figures in self._known:
            to = room_for(figures, TierName.HOT, self._full)
            if to is None or figures.first_move_ns is None:
                continue
            target = self._policy.tiers[to]
            bins: Bins[ArchiveKey, Candidate] = Bins(max_bytes=target.merge.target_bytes)
            after_ns, until_ns = self._now_ns - figures.first_move_ns, self._now_ns - soonest_ns
            for candidate in self._source.iter_settled(pair, after_ns=after_ns, until_ns=until_ns):
                rule = self._copies.get(candidate.place_id)
                if rule is None or (candidate.last_write_ns or 0) > self._now_ns - rule.after_ns:
                    continue
                if move_blocker(candidate, self._now_ns) is not None or candidate.id in self._surplus:
                    continue
                key = archive_key(candidate, target)
                if candidate.size_bytes >= target.merge.below_bytes:
                    yield self._copy(pair, figures, to, key, [candidate])
                    continue
                for closed in bins.add(key, candidate, size_bytes=candidate.size_bytes):
                    yield self._copy(pair, figures, to, *closed)
            for closed in bins.drain():
                yield self._copy(pair, figures, to, *closed)

    def _copy(
        self, pair: TeamClass, figures: Figures, to: TierName, key: ArchiveKey, candidates: list[Candidate]
    ) -> PlannedBatch:
        rule = self._copies[key.place_id]
        reason = Reason(
            code=ReasonCode.COPY_DUE, rule=rule.at, required=format_limit(timedelta(microseconds=rule.after_ns // 1000))
        )
        batch = self._make.move_originals(pair, figures, to, key, candidates)
        return replace(batch, kind=ActionKind.COPY, reason=reason)

    def _moves_of_archives(self, pair: TeamClass, figures: Figures, target: TierRule) -> Iterator[PlannedBatch]:
        if figures.cold_ns is None:
            return
        bins: Bins[ArchiveKey, DueArchive] = Bins(max_bytes=target.merge.target_bytes)
        for archive in self._source.iter_archives(pair, TierName.WARM, until_ns=self._now_ns - figures.cold_ns):
            if not archive.has_unmarked:
                self._kept_archive(archive, figures)
                continue
            for each in bins.drain(self._is_over(archive.newest_write_ns, target)):
                yield from self._without_repeats(pair, figures, target.name, *each)
            mode, gid = reader_set(archive.mode, archive.gid)
            key = ArchiveKey(archive.place_id, window_of(archive.day, target), mode, gid)
            if archive.live_raw_bytes >= target.merge.below_bytes or archive.live_members >= MAX_MEMBERS:
                yield self._make.move_archives(pair, figures, target.name, key, [archive])
                continue
            closed = bins.add(key, archive, size_bytes=archive.live_raw_bytes, count=archive.live_members)
            for each in closed:
                yield from self._without_repeats(pair, figures, target.name, *each)
        for each in bins.drain():
            yield from self._without_repeats(pair, figures, target.name, *each)

    def _is_over(self, newest_write_ns: int, target: TierRule) -> Callable[[ArchiveKey], bool]:
        """Archives come by their newest write, and carry the first day of the window they were made for: after both
        windows have passed, no archive for that day follows."""
        warm = self._policy.tiers.get(TierName.WARM)
        days = target.merge.window_days + (warm.merge.window_days if warm else 1)
        over = day_of_ns(newest_write_ns) - days
        return lambda key: key.window <= over

    def _without_repeats(
        self, pair: TeamClass, figures: Figures, tier: TierName, key: ArchiveKey, archives: list[DueArchive]
    ) -> Iterator[PlannedBatch]:
        """No path twice in one archive: shifting rotations give ``rank_3.log.1`` a new content every night."""
        while archives:
            out = self._source.repeated_paths([archive.id for archive in archives]) if len(archives) > 1 else ()
            together = [archive for archive in archives if archive.id not in out]
            yield self._make.move_archives(pair, figures, tier, key, together)
            archives = [archive for archive in archives if archive.id in out]

    # --- what is kept -------------------------------------------------------------------------------------------

    def _keep(self, candidate: Candidate, code: ReasonCode) -> None:
        self._kept.add(candidate, code, self._book.of(candidate.team, candidate.class_name))

    def _count_standing(self) -> None:
        """Groups that look due by age and that no rule lets go: counted, never read one by one."""
        moves = bool(self._wanted & {ActionKind.TRANSITION, ActionKind.MERGE})
        if moves:
            self._count_open()
        if not moves and ActionKind.MARK not in self._wanted:
            return
        for pair in self._pairs:
            figures = self._book.of(*pair)
            if isinstance(figures, ReasonCode):
                for tier, usage in self._source.usage(pair, before_day=self._stranger_day(pair)):
                    self._kept.add_usage(pair, tier, figures, usage)
            else:
                for tier, usage in self._source.unknown_age_usage(pair):
                    self._kept.add_usage(pair, tier, ReasonCode.AGE_UNKNOWN, usage, figures)

    def _count_open(self) -> None:
        cutoffs = [
            (pair, self._now_ns - figures.first_move_ns)
            for pair, figures in self._known
            if figures.first_move_ns is not None
        ]
        for pair, usage in self._source.open_usage(cutoffs):
            self._kept.add_usage(pair, TierName.HOT, ReasonCode.NOT_SETTLED, usage)

    def _stranger_day(self, pair: TeamClass) -> int | None:
        """The day before which an unlisted team's segments would be due by the platform's figures."""
        rule = self._policy.classes.get(pair.class_name)
        limits = [limit for limit in (rule.warm_after, rule.cold_after, rule.expire_after) if limit] if rule else []
        return day_of_ns(self._now_ns - duration_ns(min(limits))) if limits else None

    def _kept_archive(self, archive: DueArchive, figures: Figures) -> None:
        usage = Usage(segments=archive.live_members, logical_bytes=archive.live_raw_bytes)
        pair = TeamClass(archive.team, archive.class_name)
        self._kept.add_usage(pair, TierName(archive.tier), ReasonCode.IN_GRACE, usage, figures)


def place_key(candidate: Candidate) -> PlaceKey:
    return PlaceKey(candidate.team, candidate.class_name, leaving_place(candidate), reached_tier(candidate))


def window_of(day: int, target: TierRule) -> int:
    days = target.merge.window_days
    return day // days * days


def archive_key(candidate: Candidate, target: TierRule) -> ArchiveKey:
    mode, gid = reader_set(candidate.mode, candidate.gid)
    return ArchiveKey(candidate.place_id, window_of(day_of_ns(candidate.last_write_ns or 0), target), mode, gid)
