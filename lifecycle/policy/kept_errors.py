"""``keep_errors_as``: the class that a log's error lines are kept as, once the log itself goes.

What counts where policy is silent, and what a policy may not ask for. Training and eval keep theirs as ``error`` unless
they say otherwise, where that can be done: there is such a class, it keeps at least as long as they do (else the log
itself holds its errors for longer than their copy would), and there is a tier to keep them in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from lifecycle.policy.document import Document, Loc, Mistake
from lifecycle.policy.mistakes import did_you_mean
from lifecycle.policy.rules import DEFAULT, ERROR_CLASS, ClassRule
from lifecycle.policy.schema import NEVER, NONE
from lifecycle.units import format_limit

FIGURE: Final = "keep_errors_as"
ON_BY_DEFAULT: Final = ("eval", "training")
_OFF: Final = f"or {FIGURE}: {NONE}"


def with_defaults(rules: Mapping[str, ClassRule], *, has_tiers: bool) -> dict[str, ClassRule]:
    """The same rules, each that does not say what becomes of its error lines with what counts then."""
    error = rules.get(ERROR_CLASS)
    made = {}
    for name, rule in rules.items():
        if rule.at[FIGURE].text == DEFAULT:
            can = has_tiers and error is not None and error.keep_errors_as is None and not _outlives(rule, error)
            rule = replace(rule, keep_errors_as=ERROR_CLASS if can and name in ON_BY_DEFAULT else None)
        made[name] = rule
    return made


def check_given(
    rule: ClassRule,
    rules: Mapping[str, ClassRule],
    figures: Collection[tuple[str, Loc]],
    document: Document,
    mistakes: list[Mistake],
    *,
    has_tiers: bool,
    is_complete: bool = True,
) -> None:
    """Whether what a class asks for can be done. ``figures``: those of its own and of the class it names that
    ``document`` gives, with their places; where it gives none, the mistake is another file's. Without ``is_complete``
    a class that is not there proves nothing."""
    if rule.at[FIGURE].text == DEFAULT or not figures:
        return
    if rule.keep_errors_as not in rules and not is_complete:
        return
    found = _trouble(rule, rules, has_tiers=has_tiers)
    if found is not None:
        at = next((loc for figure, loc in figures if figure == FIGURE), next(iter(figures))[1])
        mistakes.append(document.mistake(at, *found))


def check_not_weakened(rule: ClassRule, base: ClassRule, document: Document, loc: Loc, mistakes: list[Mistake]) -> None:
    """A team may ask for more than the platform, never for less."""
    if base.keep_errors_as is not None and rule.keep_errors_as is None and document.node_at(loc) is not None:
        message = f"class {rule.name}: {FIGURE} {NONE}, and the platform keeps them as {base.keep_errors_as}"
        where = base.at[FIGURE]
        said = "by default" if where.text == DEFAULT else f"in {where}"
        hint = f"take the line out; the platform asks for it {said}, and only there it can be taken back"
        mistakes.append(document.mistake(loc, message, hint))


def _trouble(rule: ClassRule, rules: Mapping[str, ClassRule], *, has_tiers: bool) -> tuple[str, str] | None:
    """What is wrong and what to write; None where nothing is."""
    name = rule.keep_errors_as
    if name is None:
        return None
    said = f"class {rule.name}: {FIGURE} {name}"
    if name == rule.name:
        return f"{said} is the class itself", f"name the class that keeps them, {_OFF}"
    target = rules.get(name)
    if target is None:
        return f"{said}: no such class", did_you_mean(name, rules, f"classes are {', '.join(rules)}")
    if target.keep_errors_as is not None:
        why = f"{said}, and class {name} has {FIGURE} {target.keep_errors_as}"
        return why, f"errors are kept once: give class {name} {FIGURE}: {NONE}"
    if not has_tiers:
        return f"{said}, and there is no tier to keep them in", f"add a warm or a cold tier, {_OFF}"
    if _outlives(rule, target):
        own = NEVER if rule.expire_after is None else format_limit(rule.expire_after)
        kept = format_limit(target.expire_after) if target.expire_after is not None else NEVER
        why = f"{said}: kept {kept}, for less than the {own} of class {rule.name} itself"
        return why, f"make expire_after of class {name} at least as long ({target.at['expire_after']}), {_OFF}"
    return None


def _outlives(rule: ClassRule, target: ClassRule) -> bool:
    if target.expire_after is None:
        return False
    return rule.expire_after is None or rule.expire_after > target.expire_after
