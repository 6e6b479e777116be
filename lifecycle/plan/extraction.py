"""What is looked through on its own: what was stored without it, and originals that go from where they lie. Pure.

What is stored from now on is looked through on the way, and needs no line here. Archives come as they were made, oldest
first; companions of originals go to the tier of their age in the class that keeps them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from lifecycle.model import PlannedBatch, ReasonCode, TierName
from lifecycle.plan.batches import ArchiveKey, BatchMaker, reader_set
from lifecycle.plan.bins import Bins
from lifecycle.plan.decide import extraction_blocker, move_blocker, purge_blocker, room_for
from lifecycle.plan.figures import FigureBook, Figures
from lifecycle.plan.source import Candidate, DueSource, TeamClass, Unextracted
from lifecycle.policy.rules import Policy, TierRule
from lifecycle.units import day_of_ns, duration_ns


def iter_extractions(
    source: DueSource,
    policy: Policy,
    now_ns: int,
    known: Sequence[tuple[TeamClass, Figures]],
    book: FigureBook,
    full: Collection[TierName],
) -> Iterator[PlannedBatch]:
    """Batches of everything that policy keeps the errors of and that nobody has looked through."""
    make = BatchMaker(policy, now_ns)
    for pair, figures in known:
        if figures.keeps_errors:
            yield from _of_archives(source, policy, now_ns, pair, figures, make)
    marked = list(_marked_originals(source, policy, now_ns, book))
    for pair, figures in known:
        if figures.extract_in_hot_ns is not None:
            until_ns = now_ns - figures.extract_in_hot_ns
            settled = source.iter_settled(pair, after_ns=None, until_ns=until_ns)
            ready = (c for c in settled if move_blocker(c, now_ns) is None and extraction_blocker(c, figures))
            late = (c for c in marked if TeamClass(c.team, c.class_name) == pair)
            kept_as = book.of(pair.team, figures.rule.keep_errors_as or "")
            tiers = _Tiers(policy, kept_as, now_ns, full)
            yield from _of_originals(chain(ready, late), pair, figures, tiers, make)


class _Tiers:
    """Where companions of originals go: where their age asks for, or to the warmest tier of their class; to any other
    where there is none such, or all of these are full."""

    def __init__(self, policy: Policy, kept_as: Figures | ReasonCode, now_ns: int, full: Collection[TierName]) -> None:
        self.rules = policy.tiers
        self._kept_as = kept_as
        self._now_ns = now_ns
        self._full = full
        self._any = min(policy.tiers, key=lambda tier: (tier in full, tier.warmth))

    def of(self, candidate: Candidate) -> TierName:
        if not isinstance(self._kept_as, Figures):
            return self._any
        required = self._kept_as.required_tier(self._now_ns - (candidate.last_write_ns or 0))
        if required is not TierName.HOT and required not in self._full:
            return required
        return room_for(self._kept_as, TierName.HOT, self._full) or self._any


def _of_originals(
    candidates: Iterable[Candidate], pair: TeamClass, figures: Figures, tiers: _Tiers, make: BatchMaker
) -> Iterator[PlannedBatch]:
    bins: dict[TierName, Bins[ArchiveKey, Candidate]] = {
        name: Bins(max_bytes=tier.merge.target_bytes) for name, tier in tiers.rules.items()
    }
    for candidate in candidates:
        tier = tiers.of(candidate)
        for closed in bins[tier].add(_key_of(candidate, tiers.rules[tier]), candidate, size_bytes=candidate.size_bytes):
            yield make.extract_originals(pair, figures, tier, *closed)
    for tier, some in bins.items():
        for closed in some.drain():
            yield make.extract_originals(pair, figures, tier, *closed)


def _of_archives(
    source: DueSource, policy: Policy, now_ns: int, pair: TeamClass, figures: Figures, make: BatchMaker
) -> Iterator[PlannedBatch]:
    bins: dict[TierName, Bins[ArchiveKey, Unextracted]] = {
        name: Bins(max_bytes=tier.merge.target_bytes) for name, tier in policy.tiers.items()
    }
    for found in source.iter_unextracted(pair, now_ns=now_ns):
        archive, tier = found.archive, TierName(found.archive.tier)
        if tier not in bins:  # policy has that tier no more
            continue
        mode, gid = reader_set(archive.mode, archive.gid)
        key = ArchiveKey(archive.place_id, _window(archive.day, policy.tiers[tier]), mode, gid)
        for closed in bins[tier].add(key, found, size_bytes=found.logical_bytes, count=found.segments):
            yield make.extract_archives(pair, figures, *closed)
    for some in bins.values():
        for closed in some.drain():
            yield make.extract_archives(pair, figures, *closed)


def _marked_originals(source: DueSource, policy: Policy, now_ns: int, book: FigureBook) -> Iterator[Candidate]:
    """Marked before policy asked for their errors: this is all that keeps them."""
    for candidate in source.iter_marked_originals(now_ns=now_ns):
        figures = book.of(candidate.team, candidate.class_name)
        if purge_blocker(candidate, figures, duration_ns(policy.grace), now_ns) is ReasonCode.NOT_EXTRACTED:
            yield candidate


def _key_of(candidate: Candidate, target: TierRule) -> ArchiveKey:
    mode, gid = reader_set(candidate.mode, candidate.gid)
    return ArchiveKey(candidate.place_id, _window(day_of_ns(candidate.last_write_ns or 0), target), mode, gid)


def _window(day: int, target: TierRule) -> int:
    days = target.merge.window_days
    return day // days * days
