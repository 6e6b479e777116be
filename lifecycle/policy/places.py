"""Sources and tiers of a platform file: typed keys to rules, each figure with its line, paths made absolute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lifecycle.model import RuleRef, TierName
from lifecycle.policy.builtin import BUILT_IN
from lifecycle.policy.defaults import MERGE_BELOW, MERGE_TARGET, ZSTD_LEVEL
from lifecycle.policy.document import Document, Loc, Mistake
from lifecycle.policy.limits import make_fill
from lifecycle.policy.match import STANDARD_LABELS
from lifecycle.policy.roots import resolve_path
from lifecycle.policy.rules import MergeRule, SourceRule, TierRule
from lifecycle.policy.schema import PlatformKeys, SourceKeys, TierKeys, Wrong
from lifecycle.policy.template import parse_template
from lifecycle.units import format_size

_SOURCE_FIGURES: Final = tuple(SourceKeys.model_fields)


def make_sources(keys: PlatformKeys, document: Document, base: str, mistakes: list[Mistake]) -> dict[int, SourceRule]:
    """By their number in the file. What cannot be used is a mistake and left out."""
    made: dict[int, SourceRule] = {}
    lines: dict[str, int] = {}
    for number, source in enumerate(keys.sources):
        loc: Loc = ("sources", number)
        if source.name in lines:
            message = f"source {source.name}: is here twice, first in line {lines[source.name]}"
            mistakes.append(document.mistake((*loc, "name"), message, "give each source its own name"))
        lines.setdefault(source.name, document.line_of((*loc, "name")))
        _check_labels(source, document, loc, mistakes)
        try:
            path = resolve_path(source.path, base)
        except Wrong as error:
            mistakes.append(document.mistake((*loc, "path"), f"source {source.name}: {error}", error.hint))
            continue
        made[number] = SourceRule(
            name=source.name,
            path=path,
            under=source.under or "",
            layouts=tuple(source.layout),
            settle=source.settle,
            release_after=source.release_after,
            exclude=tuple(source.exclude),
            mounts=(),
            each_node=False,
            labels=dict(source.labels),
            copy_after=source.copy_after,
            removes_emptied=source.emptied_folders == "remove",
            free_space=_command(source, document, loc, mistakes),
            at=_refs(document, loc, _SOURCE_FIGURES),
        )
    return made


def _command(source: SourceKeys, document: Document, loc: Loc, mistakes: list[Mistake]) -> tuple[str, ...]:
    """A run by cron has another PATH than the person who wrote it: the program is named in full."""
    words = tuple(source.free_space.command) if source.free_space is not None else ()
    if words and not words[0].startswith("/"):
        where = (*loc, "free_space", "command", 0)
        message = f"source {source.name}: {words[0]!r} is not the absolute path of a program"
        mistakes.append(document.mistake(where, message, "write it in full, as /usr/local/bin/fullest-ost"))
    return words


def _refs(document: Document, loc: Loc, figures: Iterable[str]) -> dict[str, RuleRef]:
    return {figure: document.figure_ref((*loc, figure)) for figure in figures}


def _check_labels(source: SourceKeys, document: Document, loc: Loc, mistakes: list[Mistake]) -> None:
    """One label, one place that says it."""
    above = parse_template(source.under, may_float=False).labels if source.under else ()
    said = {*above, *source.labels}
    twice: list[tuple[str, Loc]] = [(label, ("labels", label)) for label in above if label in source.labels]
    for index, text in enumerate(source.layout):
        labels = parse_template(text).labels if text not in BUILT_IN else ()
        twice.extend((label, ("layout", index)) for label in labels if label in said)
    for label, where in twice:
        message = f"source {source.name}: label {label!r} is read twice"
        hint = "read each label in one of under, layout and labels"
        mistakes.append(document.mistake((*loc, *where), message, hint))
    for label, value in source.labels.items():
        is_wrong_rank = label == "rank" and not value.isdigit()
        if is_wrong_rank or (label == "stream" and value not in ("stdout", "stderr")):
            hint = "rank is a number; stream is stdout or stderr"
            message = f"source {source.name}: {label} cannot be {value!r}"
            mistakes.append(document.mistake((*loc, "labels", label), message, hint))


def extra_labels(sources: Iterable[SourceRule]) -> frozenset[str]:
    """Labels beyond the standard ones that some path or source of this policy can give."""
    found: set[str] = set()
    for source in sources:
        found.update(source.labels)
        if source.under:
            found.update(parse_template(source.under, may_float=False).labels)
        for text in source.layouts:
            layout = BUILT_IN.get(text)
            found.update(layout.extra_labels if layout is not None else parse_template(text).labels)
    return frozenset(found.difference(STANDARD_LABELS))


def make_tiers(keys: PlatformKeys, document: Document, base: str, mistakes: list[Mistake]) -> dict[TierName, TierRule]:
    """Warm and cold as far as the policy has them, in this order."""
    made: dict[TierName, TierRule] = {}
    for name, tier in ((TierName.WARM, keys.tiers.warm), (TierName.COLD, keys.tiers.cold)):
        if tier is None:
            continue
        loc: Loc = ("tiers", name.value)
        merge = _merge(name, tier, document, (*loc, "merge"), mistakes)
        try:
            path = resolve_path(tier.path, base)
        except Wrong as error:
            mistakes.append(document.mistake((*loc, "path"), f"tier {name}: {error}", error.hint))
            continue
        made[name] = TierRule(
            name=name,
            path=path,
            zstd_level=tier.zstd if tier.zstd is not None else ZSTD_LEVEL[name.value],
            merge=merge,
            fill=make_fill(f"tier {name}", tier, document, loc, mistakes),
            at=_refs(document, loc, TierKeys.model_fields) | {"name": document.ref(loc)},
        )
    return made


def _merge(name: TierName, tier: TierKeys, document: Document, loc: Loc, mistakes: list[Mistake]) -> MergeRule:
    below = tier.merge.below if tier.merge.below is not None else MERGE_BELOW[name.value]
    target = tier.merge.target if tier.merge.target is not None else MERGE_TARGET[name.value]
    if below > target:
        message = f"tier {name}: merge below {format_size(below)} is above its target {format_size(target)}"
        mistakes.append(document.mistake(loc, message, "make below smaller, or target larger"))
    return MergeRule(below_bytes=below, target_bytes=target, window_days=tier.merge.window, at=document.ref(loc))
