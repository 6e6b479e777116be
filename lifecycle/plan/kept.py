"""What looks due and is not acted on, counted by reason: a few lines however many segments there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lifecycle.model import Kept, Reason, ReasonCode, TierName, Usage
from lifecycle.plan.decide import reached_tier
from lifecycle.plan.figures import Figures
from lifecycle.plan.reasons import make_reason, required_tier_of, until_ns
from lifecycle.plan.source import Candidate, TeamClass
from lifecycle.policy.rules import Policy


@dataclass(slots=True)
class _Group:
    reason: Reason
    segments: int = 0
    logical_bytes: int = 0
    until_ns: int | None = None  # the earliest of the group


class KeptCounter:
    """Adds up candidates by team, class, tier and reason. Memory is that of the groups."""

    def __init__(self, policy: Policy, now_ns: int) -> None:
        self._policy = policy
        self._now_ns = now_ns
        self._groups: dict[tuple[TeamClass, TierName, ReasonCode, str], _Group] = {}

    def add(self, candidate: Candidate, code: ReasonCode, figures: Figures | ReasonCode) -> None:
        known = figures if isinstance(figures, Figures) else None
        pair = TeamClass(candidate.team, candidate.class_name)
        required = required_tier_of(candidate, known, self._now_ns) if known else None
        group = self._group(pair, reached_tier(candidate), code, known, required)
        group.segments += 1
        group.logical_bytes += candidate.size_bytes
        until = until_ns(code, candidate, known, self._policy.grace)
        if until is not None:
            group.until_ns = until if group.until_ns is None else min(group.until_ns, until)

    def add_usage(
        self, pair: TeamClass, tier: TierName, code: ReasonCode, usage: Usage, figures: Figures | None = None
    ) -> None:
        """Segments that were counted by the source and never read."""
        if usage.segments:
            group = self._group(pair, tier, code, figures, None)
            group.segments += usage.segments
            group.logical_bytes += usage.logical_bytes

    def _group(
        self, pair: TeamClass, tier: TierName, code: ReasonCode, figures: Figures | None, required: TierName | None
    ) -> _Group:
        # The required tier is part of the key: one group must not speak for "not in warm" and "not in cold".
        named = required.value if required and code is ReasonCode.NOT_IN_REQUIRED_TIER else ""
        key = (pair, tier, code, named)
        group = self._groups.get(key)
        if group is None:
            reason = make_reason(code, policy=self._policy, figures=figures, tier=required)
            group = self._groups[key] = _Group(reason)
        return group

    def lines(self) -> Iterator[Kept]:
        """One value per group, in an order that depends on nothing but the groups."""
        for (pair, tier, _, _), group in sorted(self._groups.items(), key=lambda entry: entry[0]):
            reason = group.reason
            yield Kept(
                team=pair.team,
                class_name=pair.class_name,
                tier=tier,
                reason=Reason(
                    code=reason.code,
                    rule=reason.rule,
                    current=reason.current,
                    required=reason.required,
                    until_ns=group.until_ns,
                ),
                segments=group.segments,
                logical_bytes=group.logical_bytes,
            )
