"""The policy in force and what it makes of one path, folded to tables and lines."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from lifecycle.errors import NothingFound
from lifecycle.model import Labels, RuleRef, TierName
from lifecycle.names import show_name
from lifecycle.policy.effective import PathExplanation, effective_policy, explain_path
from lifecycle.policy.rules import ClassRule, FillRule, Policy, QuotaRule, SourceRule
from lifecycle.report.blocks import Block, Cell, Column, Line, Table, Tone
from lifecycle.report.figures import AcceptanceReport
from lifecycle.report.runs import count_of, describe_waiting
from lifecycle.units import format_limit, format_size, format_size_limit


def fold_checked(policy: Policy, directory: str) -> Iterator[Block]:
    """``policy check`` with nothing to complain of."""
    files = ", ".join(name for name, _ in policy.files)
    teams = count_of(len(policy.teams), "team") if policy.teams else "any team"
    parts = (
        count_of(len(policy.sources), "source"),
        f"{len(policy.tiers)} tiers below hot",
        f"{len(policy.classes)} classes",
        teams,
    )
    yield Line(text=f"policy {policy.digest[:6]} holds: {', '.join(parts)}", tone=Tone.GOOD)
    yield Line(text=f"{directory}: {files}", tone=Tone.QUIET)


def fold_acceptance(done: AcceptanceReport) -> Iterator[Block]:
    """``policy accept``: the figures, and who wanted it why."""
    if not (done.changes or done.removals or done.holds):
        yield Line(text=f"policy {done.policy_digest[:6]}: nothing waits to be accepted", tone=Tone.GOOD)
        return
    for change in done.changes:
        yield Line(text=describe_waiting(change))
    for newly in done.removals:
        usage = f"{count_of(newly.usage.segments, 'segment')} ({format_size(newly.usage.logical_bytes)})"
        since = "for the first time here" if newly.is_first else "since policy changed"
        past = "past retention or old enough to expire early" if newly.is_early else "past retention"
        yield Line(text=f"{newly.team}: {usage} of class {newly.class_name}, {past} {since}")
    for hold in done.holds:
        usage = f"{count_of(hold.segments, 'segment')} ({format_size(hold.logical_bytes)})"
        yield Line(text=f"hold {hold.id}: {usage} of {hold.selector}, {hold.awaits.partition('; ')[0]}")
    yield Line(text=f"accepted by {done.accepted_by}: {done.reason}; the next run carries it out", tone=Tone.GOOD)


def fold_policy(policy: Policy) -> Iterator[Block]:
    """The figures in force, with the line that each comes from."""
    yield Line(
        text=f"policy {policy.digest[:6]} · catalog {policy.catalog_url} · time zone {policy.timezone}", tone=Tone.HEAD
    )
    quotas = table_of_quotas(policy)
    yield table_of_places(policy)
    yield Line(text="")
    yield table_of_classes(policy)
    if any(quotas.rows):
        yield Line(text="")
        yield quotas
    grace = f" ({policy.grace_at})" if policy.grace_at else ""
    yield Line(text=f"purge {format_limit(policy.grace)} after the mark{grace}; until then everything is readable")


def table_of_places(policy: Policy) -> Table:
    columns = tuple(Column(key=key) for key in ("tier", "name", "path", "details", "rule"))
    rows: list[tuple[Cell, ...]] = [_source_row(source) for source in policy.sources]
    if policy.hot is not None:
        rows.append(("hot", "*", "each file system under the sources", _marks(policy.hot), _any_at(policy.hot.at)))
    for tier in policy.tiers.values():
        merge = f"under {format_size(tier.merge.below_bytes)} into {format_size(tier.merge.target_bytes)}"
        marks = f"; {_marks(tier.fill)}" if tier.fill is not None else ""
        details = f"zstd {tier.zstd_level}, {merge}{marks}"
        rows.append((tier.name.value, tier.name.value, tier.path, details, _any_at(tier.at)))
    return Table(columns=columns, rows=rows)


def _marks(fill: FillRule) -> str:
    """``high 80%, low 70%, reserve 40TiB``."""
    parts = [f"{name} {share * 100:.4g}%" for name, share in (("high", fill.high), ("low", fill.low)) if share]
    return ", ".join([*parts, *([f"reserve {format_size_limit(fill.reserve_bytes)}"] if fill.reserve_bytes else [])])


def table_of_quotas(policy: Policy) -> Table:
    """One row a team and tier; ``*`` is every team whose file does not say."""
    columns = tuple(Column(key=key) for key in ("team", "quota_of", "soft", "hard", "rule"))
    rows = [_quota_row("*", scope, rule) for scope, rule in policy.default_quota.items()]
    rows += [
        _quota_row(team.name, scope, rule)
        for team in policy.teams.values()
        for scope, rule in team.quota.items()
        if rule != policy.default_quota.get(scope)
    ]
    return Table(columns=columns, rows=rows)


def _quota_row(team: str, scope: str, rule: QuotaRule) -> tuple[Cell, ...]:
    soft, hard = ("" if size is None else format_size_limit(size) for size in (rule.soft_bytes, rule.hard_bytes))
    return (team, scope, soft, hard, _any_at(rule.at))


def _source_row(source: SourceRule) -> tuple[Cell, ...]:
    under = f"{source.under}/" if source.under else ""
    details = f"{under}[{', '.join(source.layouts)}], settled after {format_limit(source.settle)}"
    details += f", copied after {format_limit(source.copy_after)}" if source.copy_after is not None else ""
    return ("hot", source.name, source.path, details, _any_at(source.at))


def _any_at(at: Mapping[str, RuleRef]) -> str:
    """Where the entry begins."""
    return str(min(at.values(), key=lambda ref: ref.line)) if at else ""


def table_of_classes(policy: Policy) -> Table:
    """One row a team and class; teams that take the platform's figures are one row, ``*``."""
    columns = tuple(
        Column(key=key)
        for key in (
            "team", "class", "warm_after", "cold_after", "expire_after", "expire_from", "errors_as", "matches", "rule"
        )
    )  # fmt: skip
    own = [team for team in policy.teams.values() if team.classes != policy.classes]
    rows = [_class_row("*", rule, policy) for rule in policy.classes.values()]
    rows += [
        _class_row(team.name, rule, policy)
        for team in own
        for name, rule in team.classes.items()
        if rule != policy.classes.get(name)
    ]
    return Table(columns=columns, rows=rows)


def _class_row(team: str, rule: ClassRule, policy: Policy) -> tuple[Cell, ...]:
    patterns = [pattern for match in policy.matches if match.class_name == rule.name for pattern in match.patterns]
    shown = ", ".join(patterns) if team == "*" and patterns else "all the rest" if team == "*" else ""
    limits = (_limit(rule.warm_after), _limit(rule.cold_after), _limit(rule.expire_after) or "never")
    at = str(rule.at.get("name") or "")
    return (team, rule.name, *limits, rule.expire_from.value, rule.keep_errors_as or "", shown, at)


def _limit(limit: timedelta | None) -> str:
    return "" if limit is None else format_limit(limit)


def table_of_figures(policy: Policy) -> Table:
    """Every figure with the line that it comes from: ``policy show --all``, and what CSV holds."""
    columns = (Column(key="subject"), Column(key="figure"), Column(key="value"), Column(key="rule"))
    rows = ((it.subject, it.figure, it.value, it.where) for it in effective_policy(policy))
    return Table(columns=columns, rows=rows)


# --- policy explain PATH --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFate:
    """What policy makes of a path, whether the file is there or not, and where it belongs at the age asked for."""

    path: str
    explained: PathExplanation
    tier_at_age: TierName | None = None
    is_over: bool = False


def find_fate(policy: Policy, path: bytes, *, host: str, age: timedelta | None) -> PathFate:
    """Raises NothingFound for a path below no source."""
    for source in policy.sources:
        root = os.fsencode(source.path).rstrip(b"/") + b"/"
        if path.startswith(root) and len(path) > len(root):
            explained = explain_path(policy, source, path[len(root) :], host=host)
            rule = explained.rule
            if rule is None or age is None:
                return PathFate(path=show_name(path), explained=explained)
            is_over = rule.expire_after is not None and age >= rule.expire_after
            tier = policy.tier_at(rule, age)
            return PathFate(path=show_name(path), explained=explained, tier_at_age=tier, is_over=is_over)
    roots = ", ".join(source.path for source in policy.sources)
    raise NothingFound(f"{show_name(path)} is below no source", hint=f"sources: {roots}")


def fold_fate(fate: PathFate, age: timedelta | None) -> Iterator[Block]:
    explained = fate.explained
    yield Line(text=fate.path, tone=Tone.HEAD)
    if explained.foreign:
        yield Line(text=f"foreign: {explained.foreign}; counted and left alone")
        return
    rows = [
        ("layout", f"{explained.layout} of source {explained.source}", ""),
        *((name, value, "") for name, value in _label_rows(explained.labels)),
        ("class", explained.class_name, str(explained.class_rule or "")),
        *((it.figure, it.value, it.where) for it in explained.figures),
    ]
    if age is not None and fate.tier_at_age is not None:
        over = "; its retention is over" if fate.is_over else ""
        rows.append((f"at {format_limit(age)}", f"belongs in {fate.tier_at_age}{over}", ""))
    yield Table(columns=(Column(key="what"), Column(key="value"), Column(key="rule")), rows=rows, has_heading=False)
    if not explained.is_listed_team:
        text = f"team {explained.labels.team} is not listed in policy: kept, nothing is done"
        yield Line(text=text, tone=Tone.WARNING)


def _label_rows(labels: Labels) -> Iterator[tuple[str, str]]:
    rank = "" if labels.rank is None else str(labels.rank)
    pairs = [("team", labels.team), ("job", labels.job), ("run", labels.attempt), ("node", labels.node), ("rank", rank),
             ("stream", labels.stream), *labels.extra]  # fmt: skip
    return ((name, value) for name, value in pairs if value)
