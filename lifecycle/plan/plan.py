"""A plan summed up: the lines of ``lifecycle plan``, added up while its batches pass by.

Knows sums and words. Never holds a batch: memory is that of the lines.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lifecycle.model import ActionKind, Kept, PlannedBatch, ReasonCode, RuleRef, TierName
from lifecycle.plan.reasons import render_reason
from lifecycle.policy.rules import Policy
from lifecycle.units import day_of_ns, format_count, format_day, format_size_limit, to_ns

KEPT: Final = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """One line: an action on a class, on one way, by one rule."""

    action: str  # a value of ActionKind, or "kept"
    class_name: str
    teams: tuple[str, ...]  # sorted
    segments: int
    batches: int  # 0 for kept; archives to be made, for a merge
    logical_bytes: int
    stored_bytes: int  # what it takes now where it is; 0 for kept, which is not known
    tier_from: TierName
    tier_to: TierName | None  # None: gone; for kept and unmark the tier itself
    why: str
    rule: RuleRef | None
    relief: str = ""  # what it makes room for; empty for what is due

    @property
    def way(self) -> str:
        """``hot → warm``, ``warm → gone``, or ``cold`` where nothing moves."""
        if self.tier_to == self.tier_from:
            return self.tier_from.value
        return f"{self.tier_from.value} → {self.tier_to.value if self.tier_to else 'gone'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTotals:
    """Over all batches; what is kept is not in it. One segment can be in two: moved to a tier and marked later."""

    batches: int = 0
    segments: int = 0
    logical_bytes: int = 0
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """What ``lifecycle plan`` shows. ``lines`` in the order of a run, kept ones last."""

    plan_id: str
    policy_digest: str
    now: datetime
    lines: tuple[PlanLine, ...]
    kept: tuple[Kept, ...]  # the same as the kept lines, one per team
    totals: PlanTotals

    @property
    def is_empty(self) -> bool:
        """Nothing is due; there may be things that are kept."""
        return self.totals.batches == 0

    def segments_of(self, *kinds: ActionKind) -> int:
        return sum(line.segments for line in self.lines if line.action in kinds)


def make_plan_id(catalog_id: str, policy_digest: str, now: datetime) -> str:
    """Eight hex digits; the same for the same catalog, policy and instant."""
    text = f"{catalog_id}\0{policy_digest}\0{to_ns(now)}"
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


@dataclass(slots=True)
class _Line:
    teams: set[str]
    segments: int = 0
    batches: int = 0
    logical_bytes: int = 0
    stored_bytes: int = 0
    purge_after_ns: int | None = None


@dataclass(frozen=True, slots=True)
class _Key:
    """What one line has in common. ``order`` is that of its first batch: the order of a run."""

    action: str
    class_name: str
    tier_from: TierName
    tier_to: TierName | None
    why: str
    rule: RuleRef | None
    relief: str = ""


class PlanTally:
    """Add every item of ``iter_batches`` once, then ask for the summary."""

    def __init__(self, policy: Policy, *, plan_id: str, now: datetime) -> None:
        self._policy = policy
        self._plan_id = plan_id
        self._now = now
        self._lines: dict[_Key, _Line] = {}
        self._kept: list[Kept] = []
        self._batches = 0

    def add(self, item: PlannedBatch | Kept) -> None:
        if isinstance(item, Kept):
            self._kept.append(item)
            line = self._line(_kept_key(item), item.team)
        else:
            self._batches += 1
            line = self._line(self._key(item), item.team)
            line.batches += 1
            line.stored_bytes += item.stored_bytes
            line.purge_after_ns = item.purge_after_ns
        line.segments += item.segments
        line.logical_bytes += item.logical_bytes

    def _line(self, key: _Key, team: str) -> _Line:
        line = self._lines.setdefault(key, _Line(set()))
        line.teams.add(team)
        return line

    def _key(self, batch: PlannedBatch) -> _Key:
        why, rule = render_reason(batch.reason), batch.reason.rule
        is_by_age = batch.reason.code is ReasonCode.AGED
        if batch.kind is ActionKind.MERGE and batch.tier_to is not None and is_by_age:
            merge = self._policy.tiers[batch.tier_to].merge
            why, rule = f"under {format_size_limit(merge.below_bytes)}", merge.at
        return _Key(batch.kind.value, batch.class_name, batch.tier_from, batch.tier_to, why, rule, batch.relief)

    def summary(self) -> PlanSummary:
        done = [self._finish(key, line) for key, line in self._lines.items()]
        totals = [line for line in done if line.action != KEPT]
        return PlanSummary(
            plan_id=self._plan_id,
            policy_digest=self._policy.digest,
            now=self._now,
            lines=tuple(sorted(done, key=_line_order)),
            kept=tuple(self._kept),
            totals=PlanTotals(
                batches=self._batches,
                segments=sum(line.segments for line in totals),
                logical_bytes=sum(line.logical_bytes for line in totals),
                stored_bytes=sum(line.stored_bytes for line in totals),
            ),
        )

    def _finish(self, key: _Key, line: _Line) -> PlanLine:
        return PlanLine(
            action=key.action,
            class_name=key.class_name,
            teams=tuple(sorted(line.teams)),
            segments=line.segments,
            batches=line.batches,
            logical_bytes=line.logical_bytes,
            stored_bytes=line.stored_bytes,
            tier_from=key.tier_from,
            tier_to=key.tier_to,
            why=key.why + _ending(key, line),
            rule=key.rule,
            relief=key.relief,
        )


def _kept_key(kept: Kept) -> _Key:
    return _Key(KEPT, kept.class_name, kept.tier, kept.tier, render_reason(kept.reason), kept.reason.rule)


def _ending(key: _Key, line: _Line) -> str:
    if key.action in (ActionKind.MERGE, ActionKind.REWRITE, ActionKind.COPY):
        return f", into {format_count(line.batches)} {'archive' if line.batches == 1 else 'archives'}"
    if line.purge_after_ns is not None:
        return f"; purge from {format_day(day_of_ns(line.purge_after_ns))}"
    return ""


_RUN_ORDER: Final = (
    ActionKind.UNMARK, ActionKind.RELEASE, ActionKind.PURGE, ActionKind.MARK, ActionKind.EXTRACT, ActionKind.TRANSITION,
    ActionKind.MERGE, ActionKind.REWRITE, ActionKind.COPY, KEPT,
)  # fmt: skip


def _line_order(line: PlanLine) -> tuple[object, ...]:
    coldest = line.tier_to.warmth if line.tier_to else 3
    # Relief comes after what is due, and before what is kept.
    part = 2 if line.action == KEPT else int(line.relief != "")
    return (
        part,
        _RUN_ORDER.index(line.action),
        line.tier_from.warmth,
        coldest,
        line.class_name,
        str(line.rule),
        line.why,
    )
