"""Policy's figures for one team and class in nanoseconds, and the rules of age that follow from them.

Knows ages and limits. Never knows who asks: planner and explain share these rules, so that both give one answer.
At the limit exactly it is due: 24 h after its last write, to the nanosecond, a segment with ``warm_after: 24h`` moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from lifecycle.model import ReasonCode, RuleRef, TierName
from lifecycle.policy.rules import ERROR_CLASS, ClassRule, ExpireFrom, Policy
from lifecycle.units import duration_ns

JOB_FACTOR: Final = 3  # expire_from: job never keeps longer than this many times expire_after
FIRST_SIGHT: Final = timedelta(hours=24)  # an unpacked old tree is not marked on the day it is found
FIRST_SIGHT_NS: Final = duration_ns(FIRST_SIGHT)


class Retention(NamedTuple):
    """How long a class keeps, and from where it counts. ``expire_ns`` None: for ever.

    ``early_ns``: the age from which the only copy may go where room is needed (``expire_early``); None: never.
    """

    expire_ns: int | None
    by_job: bool
    early_ns: int | None = None

    def end_ns(self, last_write_ns: int, job_last_write_ns: int) -> int | None:
        """When the segment may be marked; None: never.

        Example: expire_after 30d from job. Last write day 0, the job's last write day 20: day 50. The job writes on
        until day 200: day 90, three times 30 after the segment's own last write.
        """
        if self.expire_ns is None:
            return None
        if not self.by_job:
            return last_write_ns + self.expire_ns
        job_end = max(last_write_ns, job_last_write_ns) + self.expire_ns
        return min(job_end, last_write_ns + JOB_FACTOR * self.expire_ns)

    def removable_ns(self, last_write_ns: int, job_last_write_ns: int) -> int | None:
        """When the segment may go at the earliest: marked at its end, or sooner where room is needed. None: never."""
        end_ns = self.end_ns(last_write_ns, job_last_write_ns)
        if self.early_ns is None:
            return end_ns
        early_ns = last_write_ns + self.early_ns
        return early_ns if end_ns is None else min(end_ns, early_ns)

    def keeps_as_long_as(self, other: Retention) -> bool:
        """Whether no segment can become removable earlier by this than by ``other``. 30d from the job is longer than
        30d from the write, and may be as long as 90d; 30d of which 16 are given up under pressure is shorter."""
        if self.expire_ns is not None:
            factor = JOB_FACTOR if other.by_job and not self.by_job else 1
            if other.expire_ns is None or self.expire_ns < factor * other.expire_ns:
                return False
        if self.early_ns is None:
            return True
        ends = [other.early_ns] if other.early_ns is not None else []
        if other.expire_ns is not None:
            ends.append(other.expire_ns * (JOB_FACTOR if other.by_job else 1))
        return bool(ends) and self.early_ns >= min(ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Limits of a class for a team; None where policy has none, or where the tier is not there."""

    rule: ClassRule
    warm_ns: int | None
    cold_ns: int | None
    expire_ns: int | None
    by_job: bool

    def required_tier(self, age_ns: int) -> TierName:
        """Where a segment of this age belongs. A tier that is not there is passed over."""
        if self.cold_ns is not None and age_ns >= self.cold_ns:
            return TierName.COLD
        if self.warm_ns is not None and age_ns >= self.warm_ns:
            return TierName.WARM
        return TierName.HOT

    def limit_ns(self, tier: TierName) -> int | None:
        return {TierName.WARM: self.warm_ns, TierName.COLD: self.cold_ns}.get(tier)

    @property
    def keep_at_least_ns(self) -> int | None:
        """The age from which the only copy may go where room is needed; None: never before its time."""
        return None if self.rule.expire_early is None else duration_ns(self.rule.expire_early)

    @property
    def first_move_ns(self) -> int | None:
        """The age at which an original leaves hot."""
        return min((limit for limit in (self.warm_ns, self.cold_ns) if limit is not None), default=None)

    @property
    def expires_in_hot(self) -> bool:
        """Whether a segment may reach the end of its retention where no tier asks for it."""
        return self.expire_ns is not None and self.required_tier(self.expire_ns) is TierName.HOT

    @property
    def keeps_errors(self) -> bool:
        """Whether nothing of the class goes before its error lines are kept."""
        return self.rule.keep_errors_as is not None

    @property
    def extract_in_hot_ns(self) -> int | None:
        """The age from which an original is looked through where it lies, since it may go from there; None: it is
        looked through when it is stored."""
        if self.expire_ns is None or not self.keeps_errors or not self.expires_in_hot:
            return None
        return self.expire_ns if self.keep_at_least_ns is None else min(self.expire_ns, self.keep_at_least_ns)

    @property
    def longest_retention_ns(self) -> int:
        """The age at which nothing but an obstacle keeps a segment; 0 where it never expires."""
        return (self.expire_ns or 0) * (JOB_FACTOR if self.by_job else 1)

    @property
    def retention(self) -> Retention:
        early_ns = None if self.rule.name == ERROR_CLASS else self.keep_at_least_ns
        return Retention(self.expire_ns, self.by_job, early_ns)

    def retention_end_ns(self, last_write_ns: int, job_last_write_ns: int) -> int | None:
        """When the segment may be marked; None: never."""
        return self.retention.end_ns(last_write_ns, job_last_write_ns)

    def at(self, figure: str) -> RuleRef | None:
        """Where ``warm_after`` and its like stand; the class's own line where the figure has none."""
        return self.rule.at.get(figure) or self.rule.at.get("name")

    def after(self, tier: TierName) -> RuleRef | None:
        return self.at(f"{tier.value}_after")


def make_figures(rule: ClassRule, policy: Policy) -> Figures:
    def limit(tier: TierName) -> int | None:
        after = rule.after(tier)
        return duration_ns(after) if after is not None and tier in policy.tiers else None

    return Figures(
        rule=rule,
        warm_ns=limit(TierName.WARM),
        cold_ns=limit(TierName.COLD),
        expire_ns=None if rule.expire_after is None else duration_ns(rule.expire_after),
        by_job=rule.expire_from is ExpireFrom.JOB,
    )


class FigureBook:
    """The figures of every team and class that is asked for, worked out once each."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._known: dict[tuple[str, str], Figures | ReasonCode] = {}
        self.grace_ns = duration_ns(policy.grace)

    def of(self, team: str, class_name: str) -> Figures | ReasonCode:
        """The figures, or why there are none: UNLISTED_TEAM or UNKNOWN_CLASS. Without figures everything is kept."""
        key = (team, class_name)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._look_up(team, class_name)
        return found

    def _look_up(self, team: str, class_name: str) -> Figures | ReasonCode:
        if not self._policy.is_listed(team):
            return ReasonCode.UNLISTED_TEAM
        rule = self._policy.rule_for(team, class_name)
        return ReasonCode.UNKNOWN_CLASS if rule is None else make_figures(rule, self._policy)
