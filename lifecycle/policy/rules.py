"""The typed policy: what the rest of the program is given after the YAML has been read and checked.

Values only. ``at`` maps the name of a figure (``"warm_after"``) to the file and line it was written in, so that
every reason can name its rule. Built by ``lifecycle.policy.load``; never by hand outside tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from lifecycle.model import RuleRef, Selector, TierName


class ExpireFrom(StrEnum):
    WRITE = "write"  # the segment's own last write
    JOB = "job"  # the last write of the job's newest segment, at most three times expire_after


ERROR_CLASS: Final = "error"  # never expires early, and is the last to leave a full tier
TOTAL: Final = "total"  # a quota over all tiers
DEFAULT: Final = "default"  # the text of a RuleRef where the program's own default counts, at the line that takes it


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRule:
    """The figures of one class for one team, platform's and team's put together."""

    name: str
    warm_after: timedelta | None
    cold_after: timedelta | None
    expire_after: timedelta | None  # None: kept for ever
    expire_from: ExpireFrom
    at: Mapping[str, RuleRef]  # "name", "warm_after", "cold_after", "expire_after", "expire_from", ...
    evict: bool = True  # under pressure the original of a stored copy may go before its time
    expire_early: timedelta | None = None  # under pressure the only copy may go from this age on; None: never
    keep_last: int | None = None  # rotated files of a set that stay in hot; None: all
    keep_errors_as: str | None = None  # the class of the companion that holds its error lines; None: not kept

    def after(self, tier: TierName) -> timedelta | None:
        """The age at which this class belongs in ``tier``; None when it never does."""
        return {TierName.WARM: self.warm_after, TierName.COLD: self.cold_after}.get(tier)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRule:
    """One ``match`` list of a class, tried in order; the last class of a policy has none and takes the rest."""

    class_name: str
    patterns: tuple[str, ...]  # gitignore patterns or LABEL:GLOB
    at: RuleRef
    pattern_at: tuple[RuleRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRule:
    below_bytes: int
    target_bytes: int
    window_days: int = 1
    at: RuleRef


@dataclass(frozen=True, slots=True, kw_only=True)
class FillRule:
    """Marks of a file system, as shares of it; None where policy has none. ``low`` is there where ``high`` is."""

    high: float | None = None
    low: float | None = None
    reserve_bytes: int | None = None
    at: Mapping[str, RuleRef] = field(default_factory=dict)  # "high", "low", "reserve"

    def start_bytes(self, total_bytes: int) -> int:
        """Relief starts above so many used bytes: min(high, capacity − reserve); what it has of them."""
        marks = [round(total_bytes * self.high)] if self.high is not None else []
        marks += [max(0, total_bytes - self.reserve_bytes)] if self.reserve_bytes is not None else []
        return min(marks, default=total_bytes)

    def stop_bytes(self, total_bytes: int) -> int:
        """And stops at so many: low, but never above where it starts."""
        start = self.start_bytes(total_bytes)
        return start if self.low is None else min(start, round(total_bytes * self.low))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRule:
    """A team's allowance in one tier or in all. Over soft it is first in line, over hard it is relieved at once."""

    soft_bytes: int | None = None
    hard_bytes: int | None = None
    at: Mapping[str, RuleRef] = field(default_factory=dict)  # "soft", "hard"

    @property
    def aim_bytes(self) -> int | None:
        """Where relief of a team that is over hard stops."""
        return self.hard_bytes if self.soft_bytes is None else self.soft_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRule:
    """A warm or cold tier. Hot is the sources; its marks are ``Policy.hot``."""

    name: TierName
    path: str
    zstd_level: int
    merge: MergeRule
    at: Mapping[str, RuleRef]
    fill: FillRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRule:
    name: str
    path: str
    under: str  # "{team}/{job}" or "": the folders above what the layouts read
    layouts: tuple[str, ...]  # built-in names or own patterns, tried in order
    settle: timedelta
    release_after: timedelta  # how long a renamed original waits where writers cannot be seen
    exclude: tuple[str, ...]
    mounts: tuple[str, ...]  # devices below the root that may be entered, relative paths
    each_node: bool
    labels: Mapping[str, str]
    at: Mapping[str, RuleRef]
    copy_after: timedelta | None = None  # a stored copy early, while the original stays
    removes_emptied: bool = True  # folders that lose their last file by our hand go, too
    free_space: tuple[str, ...] = ()  # the program that knows how full it is; empty: the file system says

    @property
    def job_depth(self) -> int:
        """How many folders below the root a job's folder lies at the least."""
        return len(self.under.split("/")) if self.under else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRule:
    name: str
    aliases: tuple[str, ...]
    classes: Mapping[str, ClassRule]
    contacts: tuple[str, ...] = ()
    at: RuleRef | None = None  # None: the team has no file and takes the platform's figures
    quota: Mapping[str, QuotaRule] = field(default_factory=dict)  # by tier, and TOTAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a team may be marked at once because its retention changed; ``plan.brakes`` says what counts."""

    share_of_team: float = 0.3  # of its segments or its bytes
    size_bytes: int | None = None  # of anything at once; None: no limit
    at: Mapping[str, RuleRef] = field(default_factory=dict)  # "share_of_team", "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRule:
    """An entry of ``holds``."""

    selector: Selector
    reason: str
    owner: str
    ends: datetime | None
    pending: bool
    at: RuleRef
    lasts_at_most: timedelta | None = None  # a team's: ``bounds.hold``


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    digest: str  # hex, of the text before ${VAR}; shown by its first six characters
    files: tuple[tuple[str, str], ...]  # (name as shown, text), what the catalog keeps under the digest
    catalog_url: str
    timezone: str
    sources: tuple[SourceRule, ...]
    tiers: Mapping[TierName, TierRule]  # warm and cold as far as there are any
    matches: tuple[MatchRule, ...]
    classes: Mapping[str, ClassRule]  # the platform's figures, in order
    teams: Mapping[str, TeamRule]  # by name; aliases are resolved by ``team_of``
    grace: timedelta
    grace_at: RuleRef | None
    aliases: Mapping[str, str] = field(default_factory=dict)
    catalog_at: RuleRef | None = None
    timezone_at: RuleRef | None = None
    limits: Limits = Limits()
    hot: FillRule | None = None  # of each file system under the sources
    default_quota: Mapping[str, QuotaRule] = field(default_factory=dict)  # of teams without a file
    holds: tuple[HoldRule, ...] = ()  # the platform's, then those of teams
    hold_bound: timedelta | None = None  # how long the hold of a team or a file lasts at most

    def team_of(self, name: str) -> str:
        """The team a folder name means: itself, or the team it is an alias of."""
        return self.aliases.get(name, name)

    def is_listed(self, team: str) -> bool:
        """With no team listed at all, every folder is a team and none is unlisted."""
        return not self.teams or team in self.teams

    def quota_of(self, team: str) -> Mapping[str, QuotaRule]:
        """By tier, and TOTAL. Of a team that is not listed there is none: it is reported, and nothing is done."""
        own = self.teams.get(team)
        if own is not None:
            return own.quota
        return self.default_quota if self.is_listed(team) else {}

    def fill_of(self, tier: TierName) -> FillRule | None:
        """The marks of the file systems under a tier."""
        if tier is TierName.HOT:
            return self.hot
        return self.tiers[tier].fill if tier in self.tiers else None

    def rule_for(self, team: str, class_name: str) -> ClassRule | None:
        """The figures for a team's class; None when policy no longer knows the class (then it is kept)."""
        own = self.teams.get(team)
        return (own.classes if own else self.classes).get(class_name)

    def keeping_errors(self, team: str) -> frozenset[str]:
        """A team's classes whose logs are looked through before they go."""
        own = self.teams.get(team)
        classes = own.classes if own else self.classes
        return frozenset(name for name, rule in classes.items() if rule.keep_errors_as is not None)

    def tier_at(self, rule: ClassRule, age: timedelta) -> TierName:
        """The tier that a segment of this age belongs in; tiers that are not there are passed over."""
        for tier in (TierName.COLD, TierName.WARM):
            limit = rule.after(tier)
            if tier in self.tiers and limit is not None and age >= limit:
                return tier
        return TierName.HOT
