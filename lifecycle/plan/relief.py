"""Who leaves a full tier ahead of its time. Pure: the same inputs give the same batches.

Relief starts for a file system over min(high, capacity − reserve), or that growth will bring there before the next run,
and for a team over a hard quota whatever the fill. It reckons with what is due anyway, takes the coldest tier first,
stops at low (a team: at its soft quota), and takes in this order
1. what is marked, oldest mark first, never before it was marked for 24 h
2. evict: originals whose stored copy is committed, without any I/O
3. early transitions of settled segments: teams by share, oldest first, errors after everything else
4. expire early, where the class allows it; never errors, never what a mark would not be allowed for

Share is used ÷ soft quota, worked out anew after every segment, so that teams over their quota give in turn until they
are level. Example: soft quotas of 1 TiB, vision has 3 TiB and nlp 2: vision gives 1 TiB, then both give by turns.
A team without a soft quota is given an equal part of the file system.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from lifecycle.model import ActionKind, Kept, PlannedBatch, Reason, ReasonCode, TierName
from lifecycle.plan.batches import ArchiveKey, BatchMaker, PlaceKey, reader_set
from lifecycle.plan.bins import MAX_MEMBERS, Bins
from lifecycle.plan.decide import (
    copy_blocker,
    early_expiry_blocker,
    early_purge_blocker,
    move_blocker,
    reached_tier,
    retention_blocker,
    room_for,
)
from lifecycle.plan.figures import FigureBook, Figures
from lifecycle.plan.planner import EVERY_ACTION, archive_key, iter_batches, place_key, window_of
from lifecycle.plan.pressure import (
    FileSystem,
    Need,
    Pressure,
    full_tiers,
    inode_marks,
    iter_team_needs,
    marks_of,
    need_of,
    stop_bytes,
)
from lifecycle.plan.source import ArchiveMarks, Candidate, CopyRule, DueArchive, DueSource, TeamClass
from lifecycle.policy.rules import ERROR_CLASS, TOTAL, Policy
from lifecycle.units import format_limit, to_ns

_EVER: Final = 2**62  # "by then" every grace is over
T = TypeVar("T")


def iter_plan(
    source: DueSource,
    policy: Policy,
    now: datetime,
    *,
    only: Collection[ActionKind] | None = None,
    unclassified: Collection[int] = (),
    braked: Collection[TeamClass] = (),
    copies: Mapping[int, CopyRule] = MappingProxyType({}),
    pressure: Pressure = Pressure(),
    after: Callable[[Pressure], None] = lambda pressure: None,
) -> Iterator[PlannedBatch | Kept]:
    """Everything of one run: what is due, then what has to leave early, then what is kept and why.

    ``after`` is told, before the first ``Kept``, how full everything is expected to be when all of it is done.
    """
    wanted = EVERY_ACTION if only is None else frozenset(only)
    ledger = Ledger(policy, pressure)
    kept: list[Kept] = []
    out_of_turn, rewritten = set[int](), set[int]()  # what moves for another reason than its age
    copying = dict[int, TierName]()
    full = full_tiers(pressure.file_systems, policy)
    due = iter_batches(
        source, policy, now, only=only, unclassified=unclassified, braked=braked, full=full, copies=copies
    )
    for item in due:
        if isinstance(item, Kept):
            kept.append(item)
            continue
        ledger.count(item)
        if item.kind is ActionKind.COPY and item.tier_to is not None:
            copying.update((member.segment_id, item.tier_to) for member in item.members)
        elif item.kind.moves and item.reason.code is not ReasonCode.AGED:
            out_of_turn.update(member.segment_id for member in item.members)
            rewritten.update(item.archive_ids)
        yield item
    relief = _Relief(source, policy, to_ns(now), wanted, frozenset(unclassified), frozenset(braked), ledger)
    relief.leave_alone(out_of_turn, rewritten)
    relief.count_on(copying)
    yield from relief.run()
    after(ledger.pressure())
    yield from kept


class Ledger:
    """How full everything will be when what was planned so far is done. Estimates: a stored copy is not made yet."""

    def __init__(self, policy: Policy, pressure: Pressure) -> None:
        self.policy = policy
        self.before = pressure
        self.file_systems = {each.name: each for each in pressure.file_systems if not each.unknown}
        self.used = {name: each.used_bytes for name, each in self.file_systems.items()}
        self.inodes = {name: each.used_inodes for name, each in self.file_systems.items()}
        self.usage = dict(pressure.usage)
        self._of_place = {place: each.name for each in self.file_systems.values() for place in each.place_ids}
        tiers = [(tier, each.name) for each in self.file_systems.values() for tier in each.tiers]
        self._of_tier: dict[TierName, str] = {tier: name for tier, name in tiers if tier is not TierName.HOT}
        self._starts = {
            name: (marks[0].start_bytes if (marks := marks_of(each, policy)) else None, inode_marks(each, policy))
            for name, each in self.file_systems.items()
        }
        self._teams = max(1, len({team for team, _ in pressure.usage if policy.is_listed(team)}))

    def count(self, batch: PlannedBatch) -> None:
        """A planned batch: what leaves, and what it puts elsewhere. Marks change nothing yet, kept errors little."""
        if batch.kind in (ActionKind.MARK, ActionKind.UNMARK, ActionKind.EXTRACT):
            return
        if batch.kind not in (ActionKind.COPY, ActionKind.REWRITE):  # what is left of a rewritten archive goes later
            files = len(batch.archive_ids) or batch.segments
            self.take(batch.place_id, batch.team, batch.tier_from, batch.stored_bytes, files)
        if batch.kind.moves and batch.tier_to is not None:
            logical = batch.logical_bytes
            self.put(batch.team, batch.tier_to, logical, 1, stored=batch.stored_bytes if batch.archive_ids else None)

    def take(self, place_id: int, team: str, tier: TierName, size_bytes: int, files: int) -> None:
        name = self._of_place.get(place_id)
        if name is not None:
            self.used[name] -= size_bytes
            self.inodes[name] -= files
        key = (team, tier)
        self.usage[key] = max(0, self.usage.get(key, 0) - size_bytes)

    def put(self, team: str, tier: TierName, logical_bytes: int, files: int, *, stored: int | None = None) -> None:
        """``stored``: what it takes compressed already; else what its tier's ratio makes of it."""
        size = round(logical_bytes * self.before.ratio(tier)) if stored is None else stored
        name = self._of_tier.get(tier)
        if name is not None:
            self.used[name] += size
            self.inodes[name] += files
        self.usage[team, tier] = self.usage.get((team, tier), 0) + size

    def pressure(self) -> Pressure:
        """As it is expected to be."""
        return replace(
            self.before, usage=self.usage, file_systems=tuple(self._expected(each) for each in self.before.file_systems)
        )

    def _expected(self, each: FileSystem) -> FileSystem:
        if each.name not in self.used:
            return each
        used, inodes = max(0, self.used[each.name]), max(0, self.inodes[each.name])
        return replace(each, free_bytes=each.total_bytes - used, free_inodes=each.total_inodes - inodes)

    def full(self, *, leaving: int | None = None) -> frozenset[TierName]:
        """Tiers that take no more by now. Asked for every segment. An original that leaves a place on the same file
        system is compressed on its way and takes less than it took: to that, no tier there is full."""
        own = None if leaving is None else self._of_place.get(leaving)
        return frozenset(tier for tier, name in self._of_tier.items() if name != own and self._is_full(name))

    def _is_full(self, name: str) -> bool:
        start_bytes, inodes = self._starts[name]
        is_over = start_bytes is not None and self.used[name] > start_bytes
        return is_over or (inodes is not None and self.inodes[name] > inodes[0])

    def is_needed(self, need: Need) -> bool:
        """Whether more has to leave."""
        if need.team is not None:
            return sum(self.usage.get((need.team, tier), 0) for tier in need.tiers) > need.stop_bytes
        is_short = need.stop_inodes is not None and self.inodes[need.name] > need.stop_inodes
        return is_short or self.used[need.name] > need.stop_bytes

    def share(self, team: str, tier: TierName, need: Need) -> float:
        """Used ÷ soft quota, of the tier or of all tiers, whichever is more."""
        quotas, shares = self.policy.quota_of(team), list[float]()
        scopes: dict[str, tuple[TierName, ...]] = {tier.value: (tier,), TOTAL: tuple(TierName)}
        for scope, tiers in scopes.items():
            rule = quotas.get(scope)
            if rule is not None and rule.soft_bytes is not None:
                shares.append(sum(self.usage.get((team, each), 0) for each in tiers) / rule.soft_bytes)
        if shares:
            return max(shares)
        room = stop_bytes(need.file_system, self.policy) if need.file_system is not None else need.stop_bytes
        return self.usage.get((team, tier), 0) / max(1, room // self._teams)


class RoomKey(NamedTuple):
    """What segments of one archive share, for bins that hold several teams' at once."""

    team: str
    class_name: str
    tier_to: str
    archive: ArchiveKey


@dataclass(frozen=True, slots=True)
class _Item:
    """One thing that can leave: a segment, or a whole archive."""

    candidate: Candidate | None
    archive: DueArchive | None
    figures: Figures

    @property
    def key(self) -> tuple[int, int]:
        """Oldest first."""
        if self.candidate is not None:
            return self.candidate.last_write_ns or 0, self.candidate.id
        assert self.archive is not None
        return self.archive.newest_write_ns, self.archive.id


@dataclass(slots=True)
class _Relief:
    source: DueSource
    policy: Policy
    now_ns: int
    wanted: frozenset[ActionKind]
    unclassified: frozenset[int]
    braked: frozenset[TeamClass]
    ledger: Ledger
    _book: FigureBook = field(init=False)
    _make: BatchMaker = field(init=False)
    _pairs: list[TeamClass] = field(init=False)
    _taken: set[int] = field(default_factory=set)  # archives that leave already
    _gone: set[int] = field(default_factory=set)  # segments that leave already, for an earlier need
    _copying: dict[int, TierName] = field(default_factory=dict)  # segments that this very plan stores early

    def leave_alone(self, segments: Iterable[int], archives: Iterable[int]) -> None:
        """These leave their place by the plan of what is due."""
        self._gone.update(segments)
        self._taken.update(archives)

    def count_on(self, copies: Mapping[int, TierName]) -> None:
        """These have a stored copy there by the time relief begins: they are evicted, not moved."""
        self._copying.update(copies)

    def run(self) -> Iterator[PlannedBatch]:
        if not self.ledger.before.file_systems and not self.ledger.before.usage:
            return
        self._book, self._make = FigureBook(self.policy), BatchMaker(self.policy, self.now_ns)
        self._pairs = sorted(self.source.pairs())
        for tier in reversed(TierName):
            for need in self._needs(tier):
                yield from self._relieve(need)
        for need in iter_team_needs(self.ledger.usage, self.policy):
            yield from self._relieve(need)

    def _needs(self, tier: TierName) -> Iterator[Need]:
        """Of file systems whose coldest tier it is; looked at one after the other, since one fills another."""
        ledger = self.ledger
        for name in sorted(name for name, each in ledger.file_systems.items() if each.coldest is tier):
            used, inodes = ledger.used[name], ledger.inodes[name]
            need = need_of(
                ledger.file_systems[name], self.policy, ledger.before, used_bytes=used, used_inodes=inodes
            )  # fmt: skip
            if need is not None:
                yield need

    def _relieve(self, need: Need) -> Iterator[PlannedBatch]:
        stages = (
            (ActionKind.PURGE, self._marked),
            (ActionKind.RELEASE, self._evict),
            (ActionKind.TRANSITION, self._early),
            (ActionKind.PURGE, self._expire),
        )
        for kind, stage in stages:
            for tier in need.tiers:
                if self._is_wanted(kind) and self.ledger.is_needed(need):
                    relieved = (replace(batch, relief=need.name) for batch in stage(need, tier))
                    yield from (batch for batch in relieved if batch.kind in self.wanted)

    def _is_wanted(self, kind: ActionKind) -> bool:
        return kind in self.wanted or (kind is ActionKind.TRANSITION and ActionKind.MERGE in self.wanted)

    # --- 1: marked ----------------------------------------------------------------------------------------------

    def _marked(self, need: Need, tier: TierName) -> Iterator[PlannedBatch]:
        if tier is TierName.HOT:
            yield from self._marked_originals(need)
            return
        ready = [
            found for marks in self.source.iter_marked_archives(now_ns=_EVER) if (found := self._ripe(need, marks))
        ]
        bins: Bins[PlaceKey, DueArchive] = Bins()
        for _, archive in sorted(ready, key=lambda found: (found[0], found[1].id)):
            if archive.tier != tier or not self.ledger.is_needed(need):
                continue
            self._take_archive(archive)
            key = PlaceKey(archive.team, archive.class_name, archive.place_id, tier)
            for closed in bins.add(key, archive, count=archive.live_members):
                yield self._purge_archives(need.reason, *closed)
        for closed in bins.drain():
            yield self._purge_archives(need.reason, *closed)

    def _marked_originals(self, need: Need) -> Iterator[PlannedBatch]:
        bins: Bins[PlaceKey, Candidate] = Bins()
        for candidate in self.source.iter_marked_originals(now_ns=_EVER):
            if not self.ledger.is_needed(need):
                break
            if not self._concerns(need, candidate.team, candidate.place_id) or not self._is_ripe(candidate):
                continue
            self._take(candidate)
            for closed in bins.add(place_key(candidate), candidate):
                yield self._of(ActionKind.PURGE, need.reason, *closed)
        for closed in bins.drain():
            yield self._of(ActionKind.PURGE, need.reason, *closed)

    def _is_ripe(self, candidate: Candidate) -> bool:
        """Marked for a day, its grace not over (then it is due), and rightly."""
        figures = self._book.of(candidate.team, candidate.class_name)
        return (
            self._stays(candidate)
            and (candidate.purge_after_ns or 0) > self.now_ns
            and candidate.place_id not in self.unclassified
            and retention_blocker(candidate, figures, self.now_ns) is None
            and early_purge_blocker(candidate, figures, self.now_ns) is None
        )

    def _ripe(self, need: Need, marks: ArchiveMarks) -> tuple[int, DueArchive] | None:
        """An archive whose members are all marked for a day, with its last mark."""
        archive, members = marks.archive, marks.members
        if not self._concerns(need, archive.team, archive.place_id) or archive.id in self._taken:
            return None
        # One whose grace is over all through is due, and planned already.
        if all((member.purge_after_ns or _EVER) <= self.now_ns for member in members):
            return None
        is_whole = len(members) == archive.live_members
        if not is_whole or not all(self._is_ripe_or_due(member) for member in members):
            return None
        return max(member.marked_ns or 0 for member in members), archive

    def _is_ripe_or_due(self, member: Candidate) -> bool:
        return self._is_ripe(member) or (
            (member.purge_after_ns or _EVER) <= self.now_ns and self._is_ripe(member._replace(purge_after_ns=_EVER))
        )

    # --- 2: evict -----------------------------------------------------------------------------------------------

    def _evict(self, need: Need, tier: TierName) -> Iterator[PlannedBatch]:
        if tier is not TierName.HOT:
            return
        bins: Bins[PlaceKey, Candidate] = Bins()
        for item in self._by_share(need, tier, self._evictable):
            candidate = item.candidate
            assert candidate is not None
            self._take(candidate)
            to = self._copying.get(candidate.id, reached_tier(candidate))
            key = place_key(candidate)._replace(place_id=candidate.place_id, tier=to)
            for closed in bins.add(key, candidate):
                yield self._release(need.reason, *closed)
        for closed in bins.drain():
            yield self._release(need.reason, *closed)

    def _evictable(self, pair: TeamClass, figures: Figures, need: Need, tier: TierName) -> Iterator[_Item]:
        if not figures.rule.evict:
            return
        after_ns = None if figures.first_move_ns is None else self.now_ns - figures.first_move_ns
        copied = self.source.iter_copied(pair, after_ns=after_ns, until_ns=self.now_ns)
        settled = self.source.iter_settled(pair, after_ns=after_ns, until_ns=self.now_ns) if self._copying else ()
        copying = (candidate for candidate in settled if candidate.id in self._copying)
        for candidate in heapq.merge(copied, copying, key=lambda each: (each.last_write_ns or 0, each.id)):
            is_free = candidate.id not in self._gone and copy_blocker(candidate, self.now_ns) is None
            if is_free and self._concerns(need, candidate.team, candidate.place_id):
                yield _Item(candidate, None, figures)

    # --- 3: early transitions -----------------------------------------------------------------------------------

    def _early(self, need: Need, tier: TierName) -> Iterator[PlannedBatch]:
        for part in (lambda name: name != ERROR_CLASS, lambda name: name == ERROR_CLASS):
            if tier is TierName.HOT:
                yield from self._early_originals(need, part)
            elif tier is TierName.WARM:
                yield from self._early_archives(need, part)

    def _early_originals(self, need: Need, part: Callable[[str], bool]) -> Iterator[PlannedBatch]:
        bins = {tier: Bins[RoomKey, Candidate](max_bytes=rule.merge.target_bytes) for tier, rule in self._targets()}
        for item in self._by_share(need, TierName.HOT, self._settled, part):
            candidate = item.candidate
            assert candidate is not None
            to = room_for(item.figures, TierName.HOT, self.ledger.full(leaving=candidate.place_id))
            if to is None:
                continue
            self._take(candidate)
            self.ledger.put(candidate.team, to, candidate.size_bytes, 0)
            target = self.policy.tiers[to]
            key = RoomKey(candidate.team, candidate.class_name, to.value, archive_key(candidate, target))
            if candidate.size_bytes >= target.merge.below_bytes:
                yield self._move(need.reason, key, [candidate])
                continue
            for closed in bins[to].add(key, candidate, size_bytes=candidate.size_bytes):
                yield self._move(need.reason, *closed)
        for closed in chain.from_iterable(each.drain() for each in bins.values()):
            yield self._move(need.reason, *closed)

    def _settled(self, pair: TeamClass, figures: Figures, need: Need, tier: TierName) -> Iterator[_Item]:
        """Not due yet: what is due moves anyway. Of a class that has a colder tier."""
        if figures.first_move_ns is None:
            return
        after_ns = self.now_ns - figures.first_move_ns
        for candidate in self.source.iter_settled(pair, after_ns=after_ns, until_ns=self.now_ns):
            is_free = self._stays(candidate) and move_blocker(candidate, self.now_ns) is None
            if is_free and self._concerns(need, candidate.team, candidate.place_id):
                yield _Item(candidate, None, figures)

    def _early_archives(self, need: Need, part: Callable[[str], bool]) -> Iterator[PlannedBatch]:
        bins = {tier: Bins[RoomKey, DueArchive](max_bytes=rule.merge.target_bytes) for tier, rule in self._targets()}
        for item in self._by_share(need, TierName.WARM, self._in_warm, part):
            archive, to = item.archive, room_for(item.figures, TierName.WARM, self.ledger.full())
            assert archive is not None
            if to is None or (need.file_system is not None and to in need.file_system.tiers):
                continue  # compressed already: on the same file system it takes what it took
            self._take_archive(archive)
            self.ledger.put(archive.team, to, archive.live_raw_bytes, 0, stored=archive.size_bytes)
            target = self.policy.tiers[to]
            mode, gid = reader_set(archive.mode, archive.gid)
            inner = ArchiveKey(archive.place_id, window_of(archive.day, target), mode, gid)
            key = RoomKey(archive.team, archive.class_name, to.value, inner)
            if archive.live_raw_bytes >= target.merge.below_bytes or archive.live_members >= MAX_MEMBERS:
                yield from self._move_archives(need.reason, key, [archive])
                continue
            closed_bins = bins[to].add(key, archive, size_bytes=archive.live_raw_bytes, count=archive.live_members)
            for closed in closed_bins:
                yield from self._move_archives(need.reason, *closed)
        for closed in chain.from_iterable(each.drain() for each in bins.values()):
            yield from self._move_archives(need.reason, *closed)

    def _in_warm(self, pair: TeamClass, figures: Figures, need: Need, tier: TierName) -> Iterator[_Item]:
        if figures.cold_ns is None:
            return
        for archive in self.source.iter_archives(pair, TierName.WARM, until_ns=self.now_ns):
            is_due = archive.newest_write_ns <= self.now_ns - figures.cold_ns
            if is_due or not archive.has_unmarked or archive.id in self._taken:
                continue
            if self._concerns(need, archive.team, archive.place_id):
                yield _Item(None, archive, figures)

    # --- 4: expire early ----------------------------------------------------------------------------------------

    def _expire(self, need: Need, tier: TierName) -> Iterator[PlannedBatch]:
        originals: Bins[PlaceKey, Candidate] = Bins()
        archives: Bins[PlaceKey, DueArchive] = Bins()
        for item in self._by_share(need, tier, self._expirable):
            if item.candidate is not None:
                self._take(item.candidate)
                for closed in originals.add(place_key(item.candidate), item.candidate):
                    yield self._expire_originals(need, *closed)
            elif item.archive is not None:
                archive = item.archive
                self._take_archive(archive)
                key = PlaceKey(archive.team, archive.class_name, archive.place_id, tier)
                for each in archives.add(key, archive, count=archive.live_members):
                    yield self._expire_archives(need, *each)
        for closed in originals.drain():
            yield self._expire_originals(need, *closed)
        for each in archives.drain():
            yield self._expire_archives(need, *each)

    def _expire_originals(self, need: Need, key: PlaceKey, found: list[Candidate]) -> PlannedBatch:
        return self._of(ActionKind.PURGE, self._early_reason(need, key), key, found)

    def _expire_archives(self, need: Need, key: PlaceKey, archives: list[DueArchive]) -> PlannedBatch:
        return self._purge_archives(self._early_reason(need, key), key, archives)

    def _expirable(self, pair: TeamClass, figures: Figures, need: Need, tier: TierName) -> Iterator[_Item]:
        keep_ns = figures.keep_at_least_ns
        if keep_ns is None or pair.class_name == ERROR_CLASS or pair in self.braked:
            return
        if tier is TierName.HOT:
            after_ns = None if figures.first_move_ns is None else self.now_ns - figures.first_move_ns
            for candidate in self.source.iter_settled(pair, after_ns=after_ns, until_ns=self.now_ns - keep_ns):
                is_free = self._stays(candidate) and self._may_expire(candidate, figures)
                if is_free and self._concerns(need, candidate.team, candidate.place_id):
                    yield _Item(candidate, None, figures)
            return
        for archive in self.source.iter_archives(pair, tier, until_ns=self.now_ns - keep_ns):
            if archive.id in self._taken or not self._concerns(need, archive.team, archive.place_id):
                continue
            for marks in self.source.iter_members([archive.id]):
                is_whole = len(marks.members) == archive.live_members
                if is_whole and archive.has_unmarked and all(self._may_expire(m, figures) for m in marks.members):
                    yield _Item(None, archive, figures)

    def _may_expire(self, candidate: Candidate, figures: Figures) -> bool:
        if candidate.place_id in self.unclassified:
            return False
        return early_expiry_blocker(candidate, figures, self.now_ns) is None

    def _early_reason(self, need: Need, key: PlaceKey) -> Reason:
        figures = self._figures_of(TeamClass(key.team, key.class_name))
        keep = figures.rule.expire_early
        required = format_limit(keep) if keep is not None else ""
        why = f"{need.reason.current}, over {need.reason.required}"
        return Reason(
            code=ReasonCode.EXPIRED_EARLY, rule=figures.at("expire_early"), current=why, required=required
        )  # fmt: skip

    # --- teams in turn ------------------------------------------------------------------------------------------

    def _by_share(
        self,
        need: Need,
        tier: TierName,
        items: Callable[[TeamClass, Figures, Need, TierName], Iterator[_Item]],
        part: Callable[[str], bool] = lambda name: True,
    ) -> Iterator[_Item]:
        """What can leave, one by one: always of the team whose share is the highest then, its oldest first. Ends when
        there is room enough. Whoever takes an item tells the ledger before asking for the next."""
        streams = self._streams(need, tier, items, part)
        line = [(-self.ledger.share(team, tier, need), team) for team in streams]
        heapq.heapify(line)
        while line and self.ledger.is_needed(need):
            _, team = heapq.heappop(line)
            item = next(streams[team], None)
            if item is None:
                continue
            yield item
            heapq.heappush(line, (-self.ledger.share(team, tier, need), team))

    def _streams(
        self,
        need: Need,
        tier: TierName,
        items: Callable[[TeamClass, Figures, Need, TierName], Iterator[_Item]],
        part: Callable[[str], bool],
    ) -> dict[str, Iterator[_Item]]:
        by_team: dict[str, list[Iterator[_Item]]] = {}
        for pair in self._pairs:
            figures = self._book.of(*pair)
            is_asked = need.team in (None, pair.team) and part(pair.class_name)
            if is_asked and isinstance(figures, Figures):
                by_team.setdefault(pair.team, []).append(items(pair, figures, need, tier))
        return {team: heapq.merge(*each, key=lambda item: item.key) for team, each in by_team.items()}

    def _concerns(self, need: Need, team: str, place_id: int) -> bool:
        if need.team is not None:
            return team == need.team
        return need.file_system is not None and place_id in need.file_system.place_ids

    # --- into the ledger, and out as batches --------------------------------------------------------------------

    def _stays(self, candidate: Candidate) -> bool:
        """Whether nothing of this plan has it leave or stores it early."""
        return candidate.id not in self._gone and candidate.id not in self._copying

    def _take(self, candidate: Candidate) -> None:
        self._gone.add(candidate.id)
        place_id, tier = candidate.place_id, TierName.HOT
        self.ledger.take(place_id, candidate.team, tier, candidate.allocated_bytes, 1)

    def _take_archive(self, archive: DueArchive) -> None:
        self._taken.add(archive.id)
        self.ledger.take(archive.place_id, archive.team, TierName(archive.tier), archive.size_bytes, 1)

    def _targets(self) -> Iterable[tuple[TierName, Any]]:
        return self.policy.tiers.items()

    def _of(self, kind: ActionKind, reason: Reason, key: PlaceKey, found: list[Candidate]) -> PlannedBatch:
        return self._make.of_segments(kind, key, found, reason, tier_to=None)

    def _release(self, reason: Reason, key: PlaceKey, found: list[Candidate]) -> PlannedBatch:
        hot = key._replace(tier=TierName.HOT)
        return self._make.of_segments(ActionKind.RELEASE, hot, found, reason, tier_to=key.tier)

    def _purge_archives(self, reason: Reason, key: PlaceKey, archives: list[DueArchive]) -> PlannedBatch:
        batch = self._make.purge_archives(key, [(archive, 0) for archive in archives])
        return replace(batch, reason=reason)

    def _move(self, reason: Reason, key: RoomKey, found: list[Candidate]) -> PlannedBatch:
        pair, to = TeamClass(key.team, key.class_name), TierName(key.tier_to)
        batch = self._make.move_originals(pair, self._figures_of(pair), to, key.archive, found)
        return replace(batch, reason=reason)

    def _move_archives(self, reason: Reason, key: RoomKey, archives: list[DueArchive]) -> Iterator[PlannedBatch]:
        """No path twice in one archive."""
        pair, to = TeamClass(key.team, key.class_name), TierName(key.tier_to)
        while archives:
            out = self.source.repeated_paths([archive.id for archive in archives]) if len(archives) > 1 else ()
            together = [archive for archive in archives if archive.id not in out]
            batch = self._make.move_archives(pair, self._figures_of(pair), to, key.archive, together)
            yield replace(batch, reason=reason)
            archives = [archive for archive in archives if archive.id in out]

    def _figures_of(self, pair: TeamClass) -> Figures:
        found = self._book.of(*pair)
        assert isinstance(found, Figures)
        return found
