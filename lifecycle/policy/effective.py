"""The policy as it takes effect: every figure with its file and line, and what governs one path."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lifecycle.model import Labels, RuleRef, TierName
from lifecycle.policy.classes import LIMITS
from lifecycle.policy.layouts import SourceLayouts
from lifecycle.policy.never import is_never_claimed
from lifecycle.policy.rules import DEFAULT, ClassRule, FillRule, HoldRule, Policy, QuotaRule, SourceRule
from lifecycle.policy.schema import NEVER, NONE
from lifecycle.policy.selecting import describe_selector
from lifecycle.units import format_limit, format_size, format_size_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveFigure:
    """One line of ``policy show``. ``at`` is None where the figure is the program's own default."""

    subject: str  # "source lustre", "tier warm", "class eval", "team vision, class training", ""
    figure: str  # "expire_after"
    value: str  # as policy writes it
    at: RuleRef | None  # text DEFAULT: the line that takes the default

    @property
    def where(self) -> str:
        return DEFAULT if self.at is None or self.at.text == DEFAULT else str(self.at)


def effective_policy(policy: Policy) -> tuple[EffectiveFigure, ...]:
    """All figures in the order of the file; of a team's classes those that differ from the platform's."""
    return (
        EffectiveFigure(subject="", figure="catalog", value=policy.catalog_url, at=policy.catalog_at),
        *(figure for source in policy.sources for figure in _source(source)),
        *_fill("tier hot", policy.hot),
        *(figure for name in policy.tiers for figure in _tier(policy, name)),
        *(figure for name in policy.classes for figure in _class(policy, name)),
        *_quotas("team_defaults", policy.default_quota),
        *(figure for name in policy.teams for figure in _team(policy, name)),
        *map(_hold, policy.holds),
        EffectiveFigure(subject="expire", figure="grace", value=format_limit(policy.grace), at=policy.grace_at),
        *_limits(policy),
        EffectiveFigure(subject="", figure="timezone", value=policy.timezone, at=policy.timezone_at),
    )


def _limits(policy: Policy) -> Iterator[EffectiveFigure]:
    limits = policy.limits
    share = f"{limits.share_of_team:.3%}".rstrip("%").rstrip("0").rstrip(".") + "%"
    yield EffectiveFigure(
        subject="expire", figure="limits.share_of_team", value=share, at=limits.at.get("share_of_team")
    )
    if limits.size_bytes is not None:
        size = format_size_limit(limits.size_bytes)
        yield EffectiveFigure(subject="expire", figure="limits.bytes", value=size, at=limits.at.get("bytes"))


def _source(source: SourceRule) -> Iterator[EffectiveFigure]:
    values: dict[str, str] = {
        "path": source.path,
        "under": source.under or "–",
        "layout": ", ".join(source.layouts),
        "settle": format_limit(source.settle),
        "release_after": format_limit(source.release_after),
        "exclude": ", ".join(source.exclude),
        "mounts": ", ".join(source.mounts),
        "labels": ", ".join(f"{key}={value}" for key, value in source.labels.items()),
        "copy_after": format_limit(source.copy_after) if source.copy_after is not None else "",
        "free_space": shlex.join(source.free_space),
    }
    for figure, value in values.items():
        if value:
            yield EffectiveFigure(
                subject=f"source {source.name}", figure=figure, value=value, at=source.at.get(figure)
            )  # fmt: skip


def _tier(policy: Policy, name: TierName) -> Iterator[EffectiveFigure]:
    tier = policy.tiers[name]
    values = {
        "path": tier.path,
        "zstd": str(tier.zstd_level),
        "merge": f"below {format_size(tier.merge.below_bytes)} into {format_size(tier.merge.target_bytes)}, "
        f"{tier.merge.window_days}d of last write",
    }
    for figure, value in values.items():
        yield EffectiveFigure(subject=f"tier {name}", figure=figure, value=value, at=tier.at.get(figure))
    yield from _fill(f"tier {name}", tier.fill)


def _fill(subject: str, rule: FillRule | None) -> Iterator[EffectiveFigure]:
    if rule is None:
        return
    for figure, share in (("high", rule.high), ("low", rule.low)):
        if share is not None:
            yield EffectiveFigure(subject=subject, figure=figure, value=f"{share * 100:.4g}%", at=rule.at.get(figure))
    if rule.reserve_bytes is not None:
        shown = format_size_limit(rule.reserve_bytes)
        yield EffectiveFigure(subject=subject, figure="reserve", value=shown, at=rule.at.get("reserve"))


def _quotas(
    subject: str, quotas: Mapping[str, QuotaRule], base: Mapping[str, QuotaRule] = MappingProxyType({})
) -> Iterator[EffectiveFigure]:
    """Those that are not from ``base``."""
    for name, rule in quotas.items():
        for figure, size in (("soft", rule.soft_bytes), ("hard", rule.hard_bytes)):
            at = rule.at.get(figure)
            if size is not None and (name not in base or base[name].at.get(figure) != at):
                shown = format_size_limit(size)
                yield EffectiveFigure(subject=subject, figure=f"quota {name} {figure}", value=shown, at=at)


def _class(policy: Policy, name: str) -> Iterator[EffectiveFigure]:
    rule = policy.classes[name]
    match = next((match for match in policy.matches if match.class_name == name), None)
    if match is not None:
        shown = ", ".join(match.patterns) or "all the rest"
        yield EffectiveFigure(subject=f"class {name}", figure="match", value=shown, at=match.at)
    for figure, value in figures_of(rule).items():
        yield EffectiveFigure(subject=f"class {name}", figure=figure, value=value, at=rule.at.get(figure))


def _team(policy: Policy, name: str) -> Iterator[EffectiveFigure]:
    team = policy.teams[name]
    if team.aliases:
        yield EffectiveFigure(subject=f"team {name}", figure="aliases", value=", ".join(team.aliases), at=team.at)
    yield from _quotas(f"team {name}", team.quota, policy.default_quota)
    for class_name, rule in team.classes.items():
        base = policy.classes.get(class_name)
        for figure, value in figures_of(rule).items():
            if base is None or rule.at.get(figure) != base.at.get(figure):
                subject = f"team {name}, class {class_name}"
                yield EffectiveFigure(subject=subject, figure=figure, value=value, at=rule.at.get(figure))


def _hold(rule: HoldRule) -> EffectiveFigure:
    until = f", until {rule.ends:%Y-%m-%d %H:%M}" if rule.ends else ""
    if rule.lasts_at_most is not None:
        until += f", for {format_limit(rule.lasts_at_most)} at the most"
    value = f"{describe_selector(rule.selector)}{until}: {rule.reason}"
    return EffectiveFigure(subject=f"hold of {rule.owner}", figure="holds", value=value, at=rule.at)


def figures_of(rule: ClassRule) -> Mapping[str, str]:
    """A class's figures as policy writes them; a tier it never goes to and an end it never meets are ``never``."""
    limits = {figure: getattr(rule, figure) for figure in LIMITS}
    shown = {figure: NEVER if value is None else format_limit(value) for figure, value in limits.items()}
    shown |= {"expire_from": rule.expire_from.value, "evict": "true" if rule.evict else "false"}
    shown |= {"keep_errors_as": rule.keep_errors_as or NONE}
    shown |= {"keep_last": str(rule.keep_last)} if rule.keep_last is not None else {}
    return shown | ({"expire_early": format_limit(rule.expire_early)} if rule.expire_early is not None else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class PathExplanation:
    """What policy says of one path below a source. Without a claim, ``foreign`` says why, and the rest is empty."""

    source: str
    path: bytes
    foreign: str  # '' where a layout claims it
    is_excluded: bool = False
    layout: str
    labels: Labels
    class_name: str
    class_rule: RuleRef | None
    rotation_base: bytes | None
    is_listed_team: bool
    rule: ClassRule | None  # the figures for this team and class
    figures: tuple[EffectiveFigure, ...]


def explain_path(policy: Policy, source: SourceRule, path: bytes, *, host: str = "") -> PathExplanation:
    """Layout, labels, class, rule and figures for a path relative to the source's root. Looks at no file."""
    directory, _, name = path.rpartition(b"/")
    folder = SourceLayouts(policy, source, host).enter(directory)
    claim = None if folder.excluded else folder.claim(name)
    if claim is None:
        return PathExplanation(
            source=source.name,
            path=path,
            foreign=_why_foreign(folder.excluded, path, source),
            is_excluded=folder.excluded,
            layout="",
            labels=Labels(),
            class_name="",
            class_rule=None,
            rotation_base=None,
            is_listed_team=False,
            rule=None,
            figures=(),
        )
    rule = policy.rule_for(claim.labels.team, claim.class_name)
    shown = figures_of(rule) if rule is not None else {}
    subject = f"team {claim.labels.team}, class {claim.class_name}"
    return PathExplanation(
        source=source.name,
        path=path,
        foreign="",
        layout=claim.layout,
        labels=claim.labels,
        class_name=claim.class_name,
        class_rule=claim.class_rule,
        rotation_base=claim.rotation_base,
        is_listed_team=policy.is_listed(claim.labels.team),
        rule=rule,
        figures=tuple(
            EffectiveFigure(subject=subject, figure=figure, value=value, at=rule.at.get(figure) if rule else None)
            for figure, value in shown.items()
        ),
    )


def _why_foreign(is_excluded: bool, path: bytes, source: SourceRule) -> str:
    *folders, name = path.split(b"/")
    if is_excluded:
        return f"excluded by source {source.name}"
    if any(folder.startswith(b".") for folder in folders):
        return "below a hidden folder"
    if is_never_claimed(name):
        return "a name that no layout may take: hidden, half-written, a live buffer, a binary record or kept errors"
    return f"no layout of source {source.name} claims it: {', '.join(source.layouts)}"
