"""How full things are and who is over what: file systems against their marks, teams against their quotas.

Knows measured figures and policy's. Never knows who leaves (``relief`` does) or where figures come from. Written
measure: allocated bytes in hot, stored bytes in warm and cold; a file system is one however many places lie on it. A
file system whose figures could not be had is unknown: it is reported, and nothing is done for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from lifecycle.model import Reason, ReasonCode, RuleRef, TierName
from lifecycle.policy.rules import TOTAL, FillRule, Policy
from lifecycle.units import format_size, format_size_limit

DEFAULT_RATIO: Final = 0.25  # stored to logical bytes, where a tier holds nothing yet to tell

TeamTier = tuple[str, TierName]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """One file system under places, as it was measured."""

    name: str  # "hot", or "hot nvme" where a tier has several
    tiers: tuple[TierName, ...]  # of the places on it, warmest first
    place_ids: tuple[int, ...]
    total_bytes: int = 0
    free_bytes: int = 0  # for anybody but root
    total_inodes: int = 0  # 0: it counts none
    free_inodes: int = 0
    unknown: str = ""  # why its figures could not be had

    @property
    def used_bytes(self) -> int:
        return self.total_bytes - self.free_bytes

    @property
    def used_inodes(self) -> int:
        return self.total_inodes - self.free_inodes

    @property
    def coldest(self) -> TierName:
        return self.tiers[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """All that relief is decided by. ``growth`` is what a file system is expected to take in until the next run."""

    file_systems: tuple[FileSystem, ...] = ()
    usage: Mapping[TeamTier, int] = field(default_factory=dict)  # bytes of each team in each tier
    ratios: Mapping[TierName, float] = field(default_factory=dict)  # stored to logical bytes, of archives
    growth: Mapping[str, int] = field(default_factory=dict)  # by file system
    growth_text: Mapping[str, str] = field(default_factory=dict)

    def ratio(self, tier: TierName) -> float:
        return self.ratios.get(tier, DEFAULT_RATIO)


class Mark(NamedTuple):
    """A mark of a file system: over ``start_bytes`` used bytes it is broken."""

    code: ReasonCode
    start_bytes: int
    required: str
    rule: RuleRef | None


def rules_of(file_system: FileSystem, policy: Policy) -> list[FillRule]:
    """Of every tier that lies on it: where two tiers share a file system, the stricter mark counts."""
    return [rule for tier in file_system.tiers if (rule := policy.fill_of(tier)) is not None]


def marks_of(file_system: FileSystem, policy: Policy) -> list[Mark]:
    """The lowest first; none where policy has none or where its size is unknown."""
    total, found = file_system.total_bytes, list[Mark]()
    if file_system.unknown or not total:
        return found
    for rule in rules_of(file_system, policy):
        if rule.high is not None:
            mark = round(total * rule.high)
            found.append(Mark(ReasonCode.OVER_HIGH, mark, show_share(rule.high), rule.at.get("high")))
        if rule.reserve_bytes is not None:
            text, mark = format_size_limit(rule.reserve_bytes), max(0, total - rule.reserve_bytes)
            found.append(Mark(ReasonCode.OVER_RESERVE, mark, text, rule.at.get("reserve")))
    return sorted(found, key=lambda mark: (mark.start_bytes, mark.code))


def stop_bytes(file_system: FileSystem, policy: Policy) -> int:
    """Relief stops when no more than this is used."""
    total = file_system.total_bytes
    return min((rule.stop_bytes(total) for rule in rules_of(file_system, policy)), default=total)


def inode_marks(file_system: FileSystem, policy: Policy) -> tuple[int, int, FillRule] | None:
    """(used inodes above which relief starts, where it stops, the rule); None where inodes do not count."""
    found = [
        (round(file_system.total_inodes * rule.high), round(file_system.total_inodes * (rule.low or rule.high)), rule)
        for rule in rules_of(file_system, policy)
        if rule.high is not None and file_system.total_inodes and not file_system.unknown
    ]
    return min(found, key=lambda each: each[:2], default=None)


def is_over(file_system: FileSystem, policy: Policy) -> bool:
    """Whether a mark of it is broken, by bytes or by inodes."""
    inodes = inode_marks(file_system, policy)
    if inodes is not None and file_system.used_inodes > inodes[0]:
        return True
    return any(file_system.used_bytes > mark.start_bytes for mark in marks_of(file_system, policy)[:1])


def full_tiers(file_systems: Iterable[FileSystem], policy: Policy) -> frozenset[TierName]:
    """Warm and cold tiers over a mark: what would go there goes to the next colder one."""
    over = (each for each in file_systems if is_over(each, policy))
    return frozenset(tier for each in over for tier in each.tiers if tier is not TierName.HOT)


def show_share(share: float) -> str:
    """``80%``, as policy writes it."""
    return f"{share * 100:.4g}%"


def show_fill(used: int, total: int) -> str:
    return f"{used / total * 100:.1f} %" if total else "–"


# --- what is needed -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Room that is to be made: on a file system down to low, or by a team down to its soft quota."""

    name: str
    reason: Reason
    file_system: FileSystem | None = None
    team: str | None = None
    tiers: tuple[TierName, ...]  # where bytes may leave, coldest first
    stop_bytes: int
    stop_inodes: int | None = None  # of a file system whose inodes run out


def need_of(
    file_system: FileSystem, policy: Policy, pressure: Pressure, *, used_bytes: int, used_inodes: int
) -> Need | None:
    """What a file system needs when so much of it is used; None when nothing."""
    marks, inodes = marks_of(file_system, policy), inode_marks(file_system, policy)
    reason = _why(file_system, marks, pressure, used_bytes)
    stop_inodes = None
    if inodes is not None and used_inodes > inodes[0]:
        stop_inodes = inodes[1]
        current = f"{file_system.name} {show_fill(used_inodes, file_system.total_inodes)} of inodes"
        rule = inodes[2].at.get("high")
        required = show_share(inodes[2].high or 0)
        reason = reason or Reason(code=ReasonCode.OVER_INODES, rule=rule, current=current, required=required)
    if reason is None:
        return None
    is_bytes = reason.code is not ReasonCode.OVER_INODES
    return Need(
        name=file_system.name,
        reason=reason,
        file_system=file_system,
        tiers=tuple(reversed(file_system.tiers)),
        stop_bytes=stop_bytes(file_system, policy) if is_bytes else file_system.total_bytes,
        stop_inodes=stop_inodes,
    )


def _why(file_system: FileSystem, marks: list[Mark], pressure: Pressure, used_bytes: int) -> Reason | None:
    """The mark that is broken, or that growth will break before the next run."""
    if not marks:
        return None
    lowest, name, total = marks[0], file_system.name, file_system.total_bytes
    if used_bytes > lowest.start_bytes:
        current = f"{name} {show_fill(used_bytes, total)} full"
        if lowest.code is ReasonCode.OVER_RESERVE:
            current = f"{name} {format_size(total - used_bytes)} free"
        return Reason(code=lowest.code, rule=lowest.rule, current=current, required=lowest.required)
    growth = pressure.growth.get(name, 0)
    if growth and used_bytes + growth > lowest.start_bytes:
        said = pressure.growth_text.get(name, f"{format_size(growth)} expected before the next run")
        return Reason(
            code=ReasonCode.GROWING,
            rule=lowest.rule,
            current=f"{name} {show_fill(used_bytes, total)}, {said}",
            required=show_fill(lowest.start_bytes, total),
        )
    return None


def iter_team_needs(usage: Mapping[TeamTier, int], policy: Policy) -> Iterator[Need]:
    """Teams over a hard quota, whatever the fill: coldest tier first, then over all tiers; by name."""
    teams = sorted({team for team, _ in usage})
    scopes: list[tuple[str, tuple[TierName, ...]]] = [(tier.value, (tier,)) for tier in reversed(TierName)]
    for scope, tiers in (*scopes, (TOTAL, tuple(reversed(TierName)))):
        for team in teams:
            rule = policy.quota_of(team).get(scope)
            used = sum(usage.get((team, tier), 0) for tier in tiers)
            if rule is None or rule.hard_bytes is None or rule.aim_bytes is None or used <= rule.hard_bytes:
                continue
            where = "in all" if scope == TOTAL else f"on {scope}"
            yield Need(
                name=f"team {team} {where}",
                reason=Reason(
                    code=ReasonCode.OVER_QUOTA,
                    rule=rule.at.get("hard"),
                    current=f"{team} has {format_size(used)} {where}",
                    required=format_size_limit(rule.hard_bytes),
                ),
                team=team,
                tiers=tiers,
                stop_bytes=rule.aim_bytes,
            )


# --- what is broken -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A mark, a reserve or a quota that does not hold. Over a soft quota is worth a line; the others are an alarm."""

    subject: str  # "hot", "nlp"
    text: str  # "81.9 % full, high 80%"
    is_alarm: bool
    team: str | None = None
    tier: TierName | None = None  # None: over all tiers
    open_bytes: int = 0  # of what is used, still written: relief cannot reach it
    rule: RuleRef | None = None


def find_broken(
    file_systems: Iterable[FileSystem],
    usage: Mapping[TeamTier, int],
    policy: Policy,
    *,
    open_bytes: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Broken, ...]:
    """File systems first, coldest first, then teams by name. ``open_bytes`` is of each team in hot."""
    ordered = sorted(file_systems, key=lambda each: (-each.coldest.warmth, each.name))
    # Where hot lies on several, nobody has counted on which of them the open ones are.
    is_one = sum(TierName.HOT in each.tiers for each in ordered) == 1
    opened = sum(open_bytes.values()) if is_one else 0
    return (*_broken_marks(ordered, policy, opened), *_broken_quotas(usage, policy, open_bytes))


def _broken_marks(file_systems: Iterable[FileSystem], policy: Policy, open_bytes: int) -> Iterator[Broken]:
    for file_system in file_systems:
        opened = open_bytes if TierName.HOT in file_system.tiers else 0
        total, used = file_system.total_bytes, file_system.used_bytes
        said = [
            f"high {mark.required}" if mark.code is ReasonCode.OVER_HIGH else f"reserve {mark.required}"
            for mark in marks_of(file_system, policy)
            if used > mark.start_bytes
        ]
        rule = marks[0].rule if (marks := marks_of(file_system, policy)) else None
        if said:
            text = f"{show_fill(used, total)} full, {format_size(file_system.free_bytes)} free: over {', '.join(said)}"
            yield Broken(
                subject=file_system.name, text=text, is_alarm=True, tier=file_system.tiers[0], open_bytes=opened,
                rule=rule,
            )  # fmt: skip
        inodes = inode_marks(file_system, policy)
        if inodes is not None and file_system.used_inodes > inodes[0]:
            share = show_fill(file_system.used_inodes, file_system.total_inodes)
            text = f"{share} of inodes used: over high {show_share(inodes[2].high or 0)}"
            yield Broken(
                subject=file_system.name, text=text, is_alarm=True, tier=file_system.tiers[0],
                rule=inodes[2].at.get("high"),
            )  # fmt: skip


def _broken_quotas(usage: Mapping[TeamTier, int], policy: Policy, open_bytes: Mapping[str, int]) -> Iterator[Broken]:
    for team in sorted({team for team, _ in usage}):
        for scope, rule in policy.quota_of(team).items():
            tiers = tuple(TierName) if scope == TOTAL else (TierName(scope),)
            used = sum(usage.get((team, tier), 0) for tier in tiers)
            is_hard = rule.hard_bytes is not None and used > rule.hard_bytes
            limit = rule.hard_bytes if is_hard else rule.soft_bytes
            if limit is None or used <= limit:
                continue
            kind, where = "hard" if is_hard else "soft", "in all" if scope == TOTAL else f"on {scope}"
            yield Broken(
                subject=team,
                text=f"{format_size(used)} {where}, {kind} quota {format_size_limit(limit)}",
                is_alarm=is_hard,
                team=team,
                tier=None if scope == TOTAL else TierName(scope),
                open_bytes=open_bytes.get(team, 0) if TierName.HOT in tiers else 0,
                rule=rule.at.get(kind),
            )
