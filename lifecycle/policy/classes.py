"""Classes put together: the seed's, the platform's over them, a team's over those, each figure with its line.

A rule comes from the last place that gives the figure. Mistakes are collected; what could not be read is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from typing import Final

from lifecycle.model import RuleRef
from lifecycle.policy import kept_errors
from lifecycle.policy.defaults import SEEDS
from lifecycle.policy.document import Document, Loc, Mistake, parse_document
from lifecycle.policy.match import STANDARD_LABELS, split_label_glob
from lifecycle.policy.mistakes import did_you_mean
from lifecycle.policy.rules import DEFAULT, ERROR_CLASS, ClassRule, ExpireFrom, MatchRule
from lifecycle.policy.schema import NEVER, BoundKeys, ClassKeys, Figures, PlatformKeys, TeamKeys
from lifecycle.units import format_limit

LIMITS: Final = ("warm_after", "cold_after", "expire_after")
UNDER_PRESSURE: Final = ("evict", "expire_early")  # figures that count only where a disk or a quota is full
KEEPING: Final = ("keep_errors_as", "keep_last")  # what is kept of a log that goes, and of a rotation set in hot
MAX_PATTERNS: Final = 1_000  # of all classes together


@dataclass(slots=True)
class PlatformClasses:
    """The platform's classes in their order, as far as they could be read."""

    matches: list[MatchRule] = field(default_factory=list)
    rules: dict[str, ClassRule] = field(default_factory=dict)
    is_complete: bool = True  # False: some entry was left out, so that "no such class" proves nothing
    has_tiers: bool = True


def make_classes(
    platform: PlatformKeys, document: Document, labels: Collection[str], mistakes: list[Mistake]
) -> PlatformClasses:
    """The ``match`` lists and figures of the platform. ``labels``: those that some layout or source can give."""
    has_tiers = platform.tiers.warm is not None or platform.tiers.cold is not None or document.is_partial(("tiers",))
    made = PlatformClasses(is_complete=not document.is_partial(("classes",)), has_tiers=has_tiers)
    if platform.defaults is not None:
        seed, keys = _seed(platform.defaults)
        for index, entry in enumerate(keys.classes):
            _add(made, entry, seed, ("classes", index), is_new=True)
    seeded = set(made.rules)
    own = PlatformClasses()
    for index, entry in enumerate(platform.classes):
        loc: Loc = ("classes", index)
        first = next((i for i, other in enumerate(platform.classes[:index]) if other.name == entry.name), None)
        if first is not None:
            line = document.line_of(("classes", first))
            hint = "keep one of them: order is meaning, and only one can count"
            mistakes.append(document.mistake(loc, f"class {entry.name}: is here twice, first in line {line}", hint))
            made.is_complete = False
        elif entry.name in seeded:
            _add(made, entry, document, loc, is_new=False)
        else:
            _add(own, entry, document, loc, is_new=True)
            _check_labels(entry, document, loc, labels, mistakes)
    # Own classes are tried before the seed's, whose last one takes the rest.
    made.matches = own.matches + made.matches
    made.rules = kept_errors.with_defaults(own.rules | made.rules, has_tiers=has_tiers)
    _check_platform(made, platform, document, mistakes)
    return made


def _seed(name: str) -> tuple[Document, PlatformKeys]:
    document = parse_document(name, SEEDS[name].encode())
    data, _ = document.data({})
    assert isinstance(data, dict)
    return document, PlatformKeys.model_validate({"catalog": "-", "sources": [{"name": "seed", "path": "-"}], **data})


def _add(made: PlatformClasses, entry: ClassKeys, document: Document, loc: Loc, *, is_new: bool) -> None:
    base = None if is_new else made.rules[entry.name]
    made.rules[entry.name] = with_figures(base, entry.name, entry, document, loc)
    if is_new or entry.match is not None:
        rule = MatchRule(
            class_name=entry.name,
            patterns=tuple(entry.match or ()),
            at=document.ref(loc),
            pattern_at=tuple(document.ref((*loc, "match", index)) for index in range(len(entry.match or ()))),
        )
        kept = [rule if other.class_name == entry.name else other for other in made.matches]
        made.matches = [*kept, rule] if is_new else kept


def with_figures(base: ClassRule | None, name: str, keys: Figures, document: Document, loc: Loc) -> ClassRule:
    """``base`` with the figures that ``keys`` gives, each pointing to its own line."""
    at: dict[str, RuleRef] = dict(base.at) if base is not None else {"name": document.ref(loc)}
    is_new = base is None
    if base is None:
        # Training counts from its job unless it says otherwise: the longer life.
        start = ExpireFrom.JOB if name == "training" else ExpireFrom.WRITE
        base = ClassRule(
            name=name, warm_after=None, cold_after=None, expire_after=None, expire_from=start, at={}
        )  # fmt: skip
    given = keys.model_fields_set
    for figure in (*LIMITS, "expire_from", *UNDER_PRESSURE, *KEEPING):
        if is_new or figure in given:
            at[figure] = document.figure_ref((*loc, figure))
    return replace(
        base,
        warm_after=keys.warm_after if "warm_after" in given else base.warm_after,
        cold_after=keys.cold_after if "cold_after" in given else base.cold_after,
        expire_after=keys.expire_after if "expire_after" in given else base.expire_after,
        expire_from=keys.expire_from if keys.expire_from is not None else base.expire_from,
        evict=keys.evict if "evict" in given else base.evict,
        expire_early=keys.expire_early.keep_at_least if keys.expire_early is not None else base.expire_early,
        keep_errors_as=keys.keep_errors_as if "keep_errors_as" in given else base.keep_errors_as,
        keep_last=keys.keep_last if "keep_last" in given else base.keep_last,
        at=at,
    )


def _check_labels(
    entry: ClassKeys, document: Document, loc: Loc, labels: Collection[str], mistakes: list[Mistake]
) -> None:
    known = [*STANDARD_LABELS, *sorted(labels)]
    for index, pattern in enumerate(entry.match or ()):
        split = split_label_glob(pattern)
        if split is not None and split[0] not in known:
            hint = did_you_mean(split[0], known, f"labels are {', '.join(known)}; for a name with a colon write [:]")
            where = (*loc, "match", index)
            mistakes.append(document.mistake(where, f"class {entry.name}: no label {split[0]!r} in {pattern!r}", hint))


def _check_platform(made: PlatformClasses, keys: PlatformKeys, document: Document, mistakes: list[Mistake]) -> None:
    if not made.rules:
        if made.is_complete and not document.is_partial(()):
            hint = "add defaults: seed-1 for error, eval and training, or a classes list"
            mistakes.append(document.mistake((), "no classes", hint))
        return
    if sum(len(rule.patterns) for rule in made.matches) > MAX_PATTERNS:
        hint = "shorten the match lists; * and ** stand for many names"
        mistakes.append(document.mistake(("classes",), f"more than {MAX_PATTERNS:,} match patterns", hint))
    last = made.matches[-1]
    if last.patterns and made.is_complete:
        index = next((i for i, entry in enumerate(keys.classes) if entry.name == last.class_name), 0)
        hint = "remove match, or add a last class without one: what nothing matches needs a class"
        message = f"class {last.class_name}: the last class has a match"
        mistakes.append(document.mistake(("classes", index, "match"), message, hint))
    seen: set[str] = set()
    for index, entry in enumerate(keys.classes):
        loc: Loc = ("classes", index)
        if entry.name in seen:
            continue
        seen.add(entry.name)
        rule = made.rules[entry.name]
        _check_figures(rule, document, loc, mistakes)
        _check_early(rule, document, loc, mistakes)
        _check_errors(rule, made.rules, made, {entry.name: (entry, loc)}, document, mistakes)
        if document.is_partial(loc) or rule.at["name"].file != document.file:
            continue  # its figures may be among what was taken out, or stand in the seed
        if rule.at["expire_after"].text == DEFAULT:
            hint = f"add expire_after: 30d, or expire_after: {NEVER} to keep it for ever"
            mistakes.append(document.mistake(loc, f"class {entry.name}: no 'expire_after'", hint))
        if not entry.match and entry.name != last.class_name and not document.is_partial((*loc, "match")):
            hint = f"add match: [...]; only {last.class_name}, the last one, takes the rest"
            mistakes.append(document.mistake(loc, f"class {entry.name}: no 'match', and it is not the last", hint))


def _check_figures(rule: ClassRule, document: Document, loc: Loc, mistakes: list[Mistake]) -> None:
    """An age that comes too late to be reached is a slip: warm after cold, cold after the end."""
    steps = [(name, value) for name in LIMITS if (value := getattr(rule, name)) is not None]
    for (name, value), (later_name, later) in pairwise(steps):
        given = [figure for figure in (later_name, name) if document.node_at((*loc, figure)) is not None]
        if later <= value and given:
            message = f"class {rule.name}: {later_name} {format_limit(later)} is not above {name} {format_limit(value)}"
            hint = f"{name} is from {rule.at[name]}; make it shorter, or {name}: {NEVER}"
            mistakes.append(document.mistake((*loc, given[0]), message, hint))


def _check_errors(
    rule: ClassRule,
    rules: Mapping[str, ClassRule],
    made: PlatformClasses,
    entries: Mapping[str, tuple[Figures, Loc]],
    document: Document,
    mistakes: list[Mistake],
) -> None:
    """``entries``: those of ``document`` by class."""
    own = (("keep_errors_as", "expire_after"), entries.get(rule.name))
    other = (("expire_after",), entries.get(rule.keep_errors_as or ""))
    figures = [
        (figure, (*entry[1], figure))
        for names, entry in (own, other)
        if entry is not None
        for figure in names
        if figure in entry[0].model_fields_set
    ]
    kept_errors.check_given(
        rule, rules, figures, document, mistakes, has_tiers=made.has_tiers, is_complete=made.is_complete
    )


def _check_early(rule: ClassRule, document: Document, loc: Loc, mistakes: list[Mistake]) -> None:
    """What may go before its time: never the errors, and not later than it goes anyway."""
    keep, where = rule.expire_early, (*loc, "expire_early", "keep_at_least")
    if keep is None or document.node_at(where) is None:
        return
    if rule.name == ERROR_CLASS:
        hint = "take it out: when room is needed, errors move to a colder tier and stay"
        mistakes.append(document.mistake(where, f"class {rule.name}: errors never expire early", hint))
    elif rule.expire_after is not None and keep >= rule.expire_after:
        message = f"class {rule.name}: keep_at_least {format_limit(keep)} is not below expire_after"
        hint = f"expire_after is {format_limit(rule.expire_after)}, from {rule.at['expire_after']}"
        mistakes.append(document.mistake(where, message, hint))


def check_bounds(platform: PlatformKeys, made: PlatformClasses, document: Document, mistakes: list[Mistake]) -> None:
    for name, keys in platform.bounds.classes.items():
        if name not in made.rules and made.is_complete:
            hint = did_you_mean(name, made.rules, f"classes are {', '.join(made.rules)}")
            mistakes.append(document.mistake(("bounds", name), f"bounds: no class {name!r}", hint))
        for figure in LIMITS:
            pair: tuple[timedelta, timedelta] | None = getattr(keys, figure)
            if pair is not None and pair[0] > pair[1]:
                message = f"bounds of {name}: {figure} from {format_limit(pair[0])} to {format_limit(pair[1])}"
                mistakes.append(document.mistake(("bounds", name, figure), message, "write the smaller one first"))


def make_team_classes(
    team: TeamKeys,
    document: Document,
    made: PlatformClasses,
    bounds: Mapping[str, BoundKeys],
    bounds_at: Document,
    mistakes: list[Mistake],
) -> dict[str, ClassRule]:
    """The platform's classes with this team's figures, within the platform's bounds."""
    rules = dict(made.rules)
    seen: dict[str, int] = {}
    entries: dict[str, tuple[Figures, Loc]] = {}
    for index, entry in enumerate(team.classes):
        loc: Loc = ("classes", index)
        if entry.name in seen:
            hint = "put the figures into one entry"
            message = f"class {entry.name}: is here twice, first in line {seen[entry.name]}"
            mistakes.append(document.mistake(loc, message, hint))
            continue
        seen[entry.name] = document.line_of(loc)
        base = made.rules.get(entry.name)
        if base is None:
            if made.is_complete:
                hint = did_you_mean(entry.name, made.rules, f"classes of platform.yaml are {', '.join(made.rules)}")
                mistakes.append(document.mistake(loc, f"class {entry.name}: not one of the platform's", hint))
            continue
        rule = with_figures(base, entry.name, entry, document, loc)
        rules[entry.name] = rule
        entries[entry.name] = (entry, loc)
        kept_errors.check_not_weakened(rule, base, document, (*loc, "keep_errors_as"), mistakes)
        _check_figures(rule, document, loc, mistakes)
        _check_early(rule, document, loc, mistakes)
        for figure in LIMITS:
            if figure in entry.model_fields_set:
                _check_bound(rule, figure, document, loc, bounds, bounds_at, mistakes)
    rules = kept_errors.with_defaults(rules, has_tiers=made.has_tiers)
    for rule in rules.values():
        _check_errors(rule, rules, made, entries, document, mistakes)
    return rules


def _check_bound(
    rule: ClassRule,
    figure: str,
    document: Document,
    loc: Loc,
    bounds: Mapping[str, BoundKeys],
    bounds_at: Document,
    mistakes: list[Mistake],
) -> None:
    pair = getattr(bounds.get(rule.name), figure, None)
    value: timedelta | None = getattr(rule, figure)
    if pair is None or (value is not None and pair[0] <= value <= pair[1]):
        return
    shown = NEVER if value is None else format_limit(value)
    at = bounds_at.ref(("bounds", rule.name, figure))
    message = (
        f"class {rule.name}: {figure} {shown} is outside {format_limit(pair[0])} to {format_limit(pair[1])} ({at})"
    )
    mistakes.append(
        document.mistake((*loc, figure), message, "stay within the bounds, or have the platform team widen them")
    )
