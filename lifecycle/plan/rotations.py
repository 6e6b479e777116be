"""``keep_last``: of each rotation set at most so many rotated files stay in hot, older ones are stored early.

Pure. A job that rotates every ten minutes fills hot within a day, whatever ages say. Nothing is removed by this but
what has a verified stored copy: those beyond the newest are moved as if their age had come, and no byte is lost. The
live file is no rotation and never counts. The order is that of last write, since numbers shift with every rotation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from lifecycle.model import PlannedBatch, ReasonCode, TierName
from lifecycle.plan.batches import ArchiveKey, BatchMaker
from lifecycle.plan.bins import Bins
from lifecycle.plan.decide import move_blocker, room_for
from lifecycle.plan.figures import Figures
from lifecycle.plan.reasons import make_reason
from lifecycle.plan.source import Candidate, DueSource, TeamClass
from lifecycle.policy.rules import Policy, TierRule


def iter_surplus_moves(
    source: DueSource,
    policy: Policy,
    now_ns: int,
    make: BatchMaker,
    pair: TeamClass,
    figures: Figures,
    full: Collection[TierName],
    archive_key: Callable[[Candidate, TierRule], ArchiveKey],
) -> Iterator[PlannedBatch]:
    """Of one team and class. What its age moves anyway is left to that."""
    keep, to = figures.rule.keep_last, room_for(figures, TierName.HOT, full)
    if keep is None or to is None or figures.first_move_ns is None:
        return
    target = policy.tiers[to]
    reason = make_reason(ReasonCode.ROTATED_OUT, policy=policy, figures=figures)
    bins: Bins[ArchiveKey, Candidate] = Bins(max_bytes=target.merge.target_bytes)
    for candidate in source.iter_rotated_out(pair, keep=keep, after_ns=now_ns - figures.first_move_ns):
        if move_blocker(candidate, now_ns) is not None:
            continue
        key = archive_key(candidate, target)
        if candidate.size_bytes >= target.merge.below_bytes:
            yield replace(make.move_originals(pair, figures, to, key, [candidate]), reason=reason)
            continue
        for closed in bins.add(key, candidate, size_bytes=candidate.size_bytes):
            yield replace(make.move_originals(pair, figures, to, *closed), reason=reason)
    for closed in bins.drain():
        yield replace(make.move_originals(pair, figures, to, *closed), reason=reason)
