"""Marks of file systems and quotas of teams put together, each figure with its line, and what a team may set.

A team's quota changes only the figures it gives; the others are those of ``team_defaults``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lifecycle.model import TierName
from lifecycle.policy.document import Document, Loc, Mistake
from lifecycle.policy.rules import TOTAL, FillRule, QuotaRule
from lifecycle.policy.schema import BoundsKeys, FillKeys, QuotaKeys, QuotasKeys, TeamKeys
from lifecycle.units import format_size_limit

QUOTAS: Final = (*(tier.value for tier in TierName), TOTAL)
LOW_BELOW_HIGH: Final = 0.1  # where policy does not say low


def make_fill(what: str, keys: FillKeys, document: Document, loc: Loc, mistakes: list[Mistake]) -> FillRule | None:
    """The marks of a tier's file systems; None where the policy has none."""
    if keys.high is None and keys.low is None and keys.reserve is None:
        return None
    if keys.high is None and keys.low is not None:
        message = f"{what}: low {_percent(keys.low)} and no high"
        mistakes.append(document.mistake((*loc, "low"), message, "add high: where relief starts; at low it stops"))
    if keys.high is not None and keys.low is not None and keys.low > keys.high:
        message = f"{what}: low {_percent(keys.low)} is above high {_percent(keys.high)}"
        mistakes.append(document.mistake((*loc, "low"), message, "relief starts above high and stops at low"))
    low = keys.low
    if low is None and keys.high is not None:
        low = max(keys.high - LOW_BELOW_HIGH, keys.high / 2)
    at = {figure: document.figure_ref((*loc, figure)) for figure in ("high", "low", "reserve")}
    return FillRule(high=keys.high, low=low, reserve_bytes=keys.reserve, at=at)


def _percent(share: float) -> str:
    return f"{share * 100:g}%"


def make_quotas(
    keys: QuotasKeys, document: Document, loc: Loc, base: Mapping[str, QuotaRule], mistakes: list[Mistake]
) -> dict[str, QuotaRule]:
    """``base`` with the figures that ``keys`` gives. Quotas without any figure are left out."""
    made: dict[str, QuotaRule] = {}
    for name in QUOTAS:
        own: QuotaKeys = getattr(keys, name)
        rule = _quota(own, base.get(name, QuotaRule()), document, (*loc, name))
        if rule.soft_bytes is None and rule.hard_bytes is None:
            continue
        made[name] = rule
        given = next((figure for figure in ("soft", "hard") if getattr(own, figure) is not None), None)
        if given and rule.soft_bytes is not None and rule.hard_bytes is not None and rule.soft_bytes > rule.hard_bytes:
            soft, hard = format_size_limit(rule.soft_bytes), format_size_limit(rule.hard_bytes)
            message = f"quota of {name}: soft {soft} is above hard {hard}"
            hint = f"soft is from {rule.at['soft']}, hard from {rule.at['hard']}"
            mistakes.append(document.mistake((*loc, name, given), message, hint))
    return made


def _quota(keys: QuotaKeys, base: QuotaRule, document: Document, loc: Loc) -> QuotaRule:
    at = dict(base.at)
    at.update({f: document.figure_ref((*loc, f)) for f in ("soft", "hard") if getattr(keys, f) is not None})
    return QuotaRule(
        soft_bytes=base.soft_bytes if keys.soft is None else keys.soft,
        hard_bytes=base.hard_bytes if keys.hard is None else keys.hard,
        at=at,
    )


def check_quotas(
    team: TeamKeys, document: Document, bounds: BoundsKeys, bounds_at: Document, mistakes: list[Mistake]
) -> None:
    """A team may ask for as much as the platform lets it."""
    for name in QUOTAS:
        highest: int | None = getattr(bounds, name)
        own: QuotaKeys = getattr(team.quota, name)
        for figure in ("soft", "hard"):
            asked: int | None = getattr(own, figure)
            if highest is None or asked is None or asked <= highest:
                continue
            at = bounds_at.ref(("bounds", name))
            message = (
                f"quota of {name}: {figure} {format_size_limit(asked)} is over {format_size_limit(highest)} ({at})"
            )
            hint = "stay within the bounds, or have the platform team widen them"
            mistakes.append(document.mistake(("quota", name, figure), message, hint))
