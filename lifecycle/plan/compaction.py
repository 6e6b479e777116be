"""Small archives of neighbouring days put into one, in the last tier of their class. Pure.

A team that writes three files a day makes an archive a day, and with hourly runs three: the archive is made when the
segment is due, since nothing moves later than policy says. Once all of some days have arrived, those archives become
one. How many days: a tenth of ``expire_after``, since an archive goes whole, when its newest member may go; thirty at
the most, and never fewer than ``merge.window``. Worked example: training keeps 30d, so that archives of three days lie
together and the first day's logs stay two days longer than asked.

Each archive is read and written once more, so that only tiny ones are: under an eighth of ``merge.below``. What has
lived half of its retention is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from lifecycle.model import PlannedBatch, ReasonCode, TierName
from lifecycle.plan.batches import ArchiveKey, BatchMaker, reader_set
from lifecycle.plan.bins import MAX_MEMBERS, Bins
from lifecycle.plan.figures import Figures
from lifecycle.plan.reasons import make_reason
from lifecycle.plan.source import SMALL_BYTES, DueArchive, DueSource, TeamClass
from lifecycle.policy.rules import Policy, TierRule
from lifecycle.units import DAY_NS, day_of_ns

SHARE: Final = 10  # of expire_after that the days of one archive may span
MOST_DAYS: Final = 30
TINY: Final = 8  # part of merge.below under which an archive is worth another writing


def days_together(figures: Figures, target: TierRule) -> int:
    """How many days of last write share an archive of tiny ones."""
    days = MOST_DAYS if figures.expire_ns is None else min(MOST_DAYS, figures.expire_ns // DAY_NS // SHARE)
    return max(target.merge.window_days, days)


def last_tier(figures: Figures) -> tuple[TierName, int] | None:
    """Where a class ends and the age from which it is there; None where it goes nowhere."""
    if figures.cold_ns is not None:
        return TierName.COLD, figures.cold_ns
    return None if figures.warm_ns is None else (TierName.WARM, figures.warm_ns)


def iter_compactions(
    source: DueSource,
    policy: Policy,
    now_ns: int,
    make: BatchMaker,
    pair: TeamClass,
    figures: Figures,
    full: Collection[TierName] = (),
) -> Iterator[PlannedBatch]:
    """Of one team and class; in a full tier none: the new archive needs room first. What was put together is not
    looked at again: alone in its days there is nothing to do."""
    found = last_tier(figures)
    if found is None or found[0] not in policy.tiers or found[0] in full:
        return
    tier, limit_ns = found
    target = policy.tiers[tier]
    days = days_together(figures, target)
    spread = max(rule.merge.window_days for rule in policy.tiers.values())
    until_ns = now_ns - limit_ns
    bins: Bins[ArchiveKey, DueArchive] = Bins(max_bytes=target.merge.target_bytes)
    small = source.iter_small(
        pair,
        tier,
        after_ns=None if figures.expire_ns is None else now_ns - figures.expire_ns // 2,
        until_ns=until_ns,
        below_bytes=min(target.merge.below_bytes // TINY, SMALL_BYTES),
    )
    for archive in small:
        window = archive.day // days * days
        if window + days + spread > day_of_ns(until_ns) or archive.live_members >= MAX_MEMBERS:
            continue  # more of these days may come
        mode, gid = reader_set(archive.mode, archive.gid)
        key = ArchiveKey(archive.place_id, window, mode, gid)
        for closed in bins.add(key, archive, size_bytes=archive.live_raw_bytes, count=archive.live_members):
            yield from _together(source, policy, make, pair, figures, tier, days, *closed)
    for closed in bins.drain():
        yield from _together(source, policy, make, pair, figures, tier, days, *closed)


def _together(
    source: DueSource,
    policy: Policy,
    make: BatchMaker,
    pair: TeamClass,
    figures: Figures,
    tier: TierName,
    days: int,
    key: ArchiveKey,
    archives: list[DueArchive],
) -> Iterator[PlannedBatch]:
    """No path twice in one archive."""
    while len(archives) > 1:
        apart = source.repeated_paths([archive.id for archive in archives])
        together = [archive for archive in archives if archive.id not in apart]
        if len(together) > 1:
            reason = make_reason(ReasonCode.SMALL_ARCHIVES, policy=policy, figures=figures, current=f"{days}d")
            yield replace(make.move_archives(pair, figures, tier, key, together), reason=reason)
        archives = [archive for archive in archives if archive.id in apart]
