"""Reasons as values and as text: which rule, the present value, the value it needs, and one sentence for each code.

Knows policy's figures and words. Never decides: ``decide`` says which code, this module says how it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from lifecycle.model import Reason, ReasonCode, RuleRef, TierName
from lifecycle.plan.decide import reached_tier
from lifecycle.plan.figures import FIRST_SIGHT, FIRST_SIGHT_NS, Figures
from lifecycle.plan.source import Candidate
from lifecycle.policy.rules import Policy
from lifecycle.units import duration_ns, format_duration, format_limit

# {required} is the figure of policy, {current} the segment's own, both as text.
TEXTS: Final[Mapping[ReasonCode, str]] = {
    ReasonCode.AGED: "last write over {required} ago",
    ReasonCode.TOO_YOUNG: "last write less than {required} ago",
    ReasonCode.EXPIRED: "over {required}",
    ReasonCode.GRACE_OVER: "marked, grace of {required} over",
    ReasonCode.IN_GRACE: "marked, grace of {required} not over",
    ReasonCode.NOT_SETTLED: "still written, or not quiet for long enough",
    ReasonCode.JOB_STILL_WRITES: "its job wrote less than {required} ago",
    ReasonCode.FIRST_SEEN_RECENTLY: "first seen less than {required} ago",
    ReasonCode.AGE_UNKNOWN: "age unknown: its time of last write cannot be true",
    ReasonCode.NOT_IN_REQUIRED_TIER: "over its retention, but not in {required} yet",
    ReasonCode.ARCHIVE_SHARED: "over its retention, but its archive has members whose time has not come",
    ReasonCode.NO_COLDER_TIER: "no colder tier",
    ReasonCode.NEVER_EXPIRES: "policy keeps it for ever",
    ReasonCode.SET_ASIDE: "set aside after failures",
    ReasonCode.STAY: "restored, its stay is not over",
    ReasonCode.STAY_OVER: "restored, its stay is over, its stored copy is whole",
    ReasonCode.UNLISTED_TEAM: "policy does not list its team",
    ReasonCode.RETENTION_CHANGED: "policy keeps it longer than when it was marked: {required}",
    ReasonCode.UNKNOWN_CLASS: "policy no longer has its class",
    ReasonCode.BRAKED: "a brake: newly over {required} for too many at once",
    ReasonCode.RECLASSIFYING: "its class is to be looked at again: the class rules changed",
    ReasonCode.MISSING: "its original was not there in the last scan",
    ReasonCode.QUARANTINED: "its archive is damaged and in quarantine",
    ReasonCode.HELD: "held",
    ReasonCode.ROTATED_OUT: "beyond the newest {required} of its rotation set",
    ReasonCode.SMALL_ARCHIVES: "tiny archives of {current} of last write share one",
    ReasonCode.BESIDE_HELD: "over its retention, kept beside a held one: less than half of its archive would go",
    ReasonCode.HELD_MEMBERS: "held members leave it, the rest goes after another grace of {required}",
    ReasonCode.UNLOOKED_MEMBERS: "members whose errors cannot be read leave it, the rest goes after {required} more",
    ReasonCode.HARD_LINKED: "has more than one name",
    ReasonCode.NOT_EXTRACTED: "its error lines are not kept as {required} yet",
    ReasonCode.COPY_DUE: "last write over {required} ago: stored early, its original stays",
    ReasonCode.OVER_HIGH: "relief: {current}, high {required}",
    ReasonCode.OVER_RESERVE: "relief: {current}, reserve {required}",
    ReasonCode.OVER_INODES: "relief: {current} used, high {required}",
    ReasonCode.GROWING: "relief: {current}, starts at {required}",
    ReasonCode.OVER_QUOTA: "relief: {current}, hard quota {required}",
    ReasonCode.EXPIRED_EARLY: "relief: {current}; expires early, kept for {required}",
}

_BY_RETENTION: Final = frozenset(
    (
        ReasonCode.EXPIRED,
        ReasonCode.TOO_YOUNG,
        ReasonCode.RETENTION_CHANGED,
        ReasonCode.NEVER_EXPIRES,
        ReasonCode.BRAKED,
    )
)
_BY_GRACE: Final = frozenset(
    (ReasonCode.GRACE_OVER, ReasonCode.IN_GRACE, ReasonCode.HELD_MEMBERS, ReasonCode.UNLOOKED_MEMBERS)
)
_BY_TIER: Final = frozenset((ReasonCode.AGED, ReasonCode.NOT_IN_REQUIRED_TIER))


def render_reason(reason: Reason) -> str:
    """One phrase for people, without the rule, which has a column of its own."""
    return TEXTS[reason.code].format(required=reason.required, current=reason.current)


def make_reason(
    code: ReasonCode,
    *,
    policy: Policy,
    figures: Figures | None = None,
    tier: TierName | None = None,
    current: str = "",
    until_ns: int | None = None,
) -> Reason:
    """The reason for a code, its rule and required value looked up. ``tier`` is the one that AGED moves to."""
    rule, required = _rule_of(code, policy, figures, tier)
    return Reason(code=code, rule=rule, current=current, required=required, until_ns=until_ns)


def _rule_of(
    code: ReasonCode, policy: Policy, figures: Figures | None, tier: TierName | None
) -> tuple[RuleRef | None, str]:
    if code in _BY_GRACE:
        return policy.grace_at, format_limit(policy.grace)
    if code is ReasonCode.FIRST_SEEN_RECENTLY:
        return None, format_limit(FIRST_SIGHT)
    if figures is None:
        return None, ""
    if code is ReasonCode.ROTATED_OUT:
        return figures.at("keep_last"), str(figures.rule.keep_last)
    if code in _BY_RETENTION:
        return figures.at("expire_after"), _limit(figures.rule.expire_after)
    if code is ReasonCode.NOT_EXTRACTED:
        return figures.at("keep_errors_as"), figures.rule.keep_errors_as or ""
    if code is ReasonCode.JOB_STILL_WRITES:
        return figures.at("expire_from"), _limit(figures.rule.expire_after)
    if code in _BY_TIER and tier is not None:
        required = _limit(figures.rule.after(tier)) if code is ReasonCode.AGED else tier.value
        return figures.after(tier), required
    return None, ""


def _limit(limit: timedelta | None) -> str:
    return "for ever" if limit is None else format_limit(limit)


def render_age(age_ns: int) -> str:
    return format_duration(timedelta(microseconds=age_ns // 1000))


def until_ns(code: ReasonCode, candidate: Candidate, figures: Figures | None, grace: timedelta) -> int | None:
    """When the obstacle goes away by time alone; None when time alone does not help."""
    write_ns = candidate.last_write_ns
    if code is ReasonCode.FIRST_SEEN_RECENTLY:
        return candidate.first_seen_ns + FIRST_SIGHT_NS
    if code is ReasonCode.SET_ASIDE:
        return candidate.set_aside_until_ns
    if code is ReasonCode.STAY:
        return candidate.stay_until_ns
    if code is ReasonCode.IN_GRACE and candidate.marked_ns is not None and candidate.purge_after_ns is not None:
        return max(candidate.purge_after_ns, candidate.marked_ns + duration_ns(grace))
    if code in (ReasonCode.TOO_YOUNG, ReasonCode.JOB_STILL_WRITES) and figures is not None and write_ns is not None:
        return figures.retention_end_ns(write_ns, candidate.job_last_write_ns)
    return None


def required_tier_of(candidate: Candidate, figures: Figures, now_ns: int) -> TierName:
    """The tier that its age asks for; the one it is in where the age is unknown."""
    if candidate.last_write_ns is None:
        return reached_tier(candidate)
    return figures.required_tier(now_ns - candidate.last_write_ns)
