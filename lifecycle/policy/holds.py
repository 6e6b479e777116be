"""Entries of ``holds``: each a selector with reason, owner and end; a team's own select nothing of other teams."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from lifecycle.model import Labels, RuleRef, Selector
from lifecycle.policy.document import Document, Loc, Mistake
from lifecycle.policy.rules import HoldRule
from lifecycle.policy.schema import HoldKeys
from lifecycle.units import to_ns

_SELECTING = ("team", "job", "node", "rank", "class", "path", "since", "until")


def make_holds(
    entries: Sequence[HoldKeys],
    document: Document,
    mistakes: list[Mistake],
    *,
    timezone: str,
    team_of: Callable[[str], str],
    seen: dict[Selector, RuleRef],
    team: str | None = None,
    lasts_at_most: timedelta | None = None,
) -> Iterator[HoldRule]:
    """``team``: whose file it is; None for the platform's. Times without a zone are in ``timezone``. ``seen``: what the
    entries before, of all files, select: an entry is known by that, and so it may stand only once."""
    for index, keys in enumerate(entries):
        loc: Loc = ("holds", index)
        selector = _selector(keys, document, loc, mistakes, timezone, team_of, team)
        if selector is None:
            continue
        if selector in seen:
            message = f"the same segments are held by {seen[selector]}"
            mistakes.append(document.mistake(loc, message, "keep one entry, with the later end"))
            continue
        seen[selector] = document.ref(loc)
        yield HoldRule(
            selector=selector,
            reason=keys.reason.strip(),
            owner=keys.owner.strip(),
            ends=_at(keys.ends, timezone),
            pending=keys.pending,
            at=document.ref(loc),
            lasts_at_most=lasts_at_most,
        )


def _selector(
    keys: HoldKeys,
    document: Document,
    loc: Loc,
    mistakes: list[Mistake],
    timezone: str,
    team_of: Callable[[str], str],
    team: str | None,
) -> Selector | None:
    if team is not None and any(team_of(name) != team for name in keys.team):
        message = f"a hold of team {keys.team[0]!r} in the file of team {team!r}"
        mistakes.append(document.mistake((*loc, "team"), message, "leave team out: a team holds its own logs only"))
        return None
    if not any(document.node_at((*loc, key)) is not None for key in _SELECTING):
        if not document.is_partial(loc):
            message = "selects nothing by itself"
            hint = f"give one of {', '.join(_SELECTING)}; team: '*' holds everything"
            mistakes.append(document.mistake(loc, f"hold: {message}", hint))
        return None
    for index, path in enumerate(keys.path):
        if not path.startswith("/"):
            message = f"hold: path {path!r} is not absolute"
            mistakes.append(document.mistake((*loc, "path", index), message, "write the whole path, as ls shows it"))
            return None
    since, until = _at(keys.since, timezone), _at(keys.until, timezone)
    if since is not None and until is not None and since >= until:
        mistakes.append(document.mistake((*loc, "until"), "hold: until is not after since", "write the later time"))
        return None
    return Selector(
        teams=(team,) if team is not None else tuple(map(team_of, keys.team)),
        jobs=tuple(keys.job),
        nodes=tuple(keys.node),
        ranks=tuple(sorted({rank for ranks in keys.rank for rank in ranks})),
        classes=tuple(keys.class_),
        paths=tuple(os.fsencode(os.path.normpath(path)) for path in keys.path),
        since_ns=None if since is None else to_ns(since),
        until_ns=None if until is None else to_ns(until),
    )


def _at(instant: datetime | None, timezone: str) -> datetime | None:
    if instant is None or instant.tzinfo is not None:
        return instant
    try:
        return instant.replace(tzinfo=ZoneInfo(timezone)).astimezone(UTC)
    except (KeyError, ValueError, OSError):
        return instant.replace(tzinfo=UTC)  # a zone that is not known is a mistake of its own


def holds_path(rule: HoldRule, path: str, labels: Labels, class_name: str) -> bool:
    """Whether an entry covers a log of this path and these labels, whenever it was written."""
    selector = rule.selector
    named = (
        (selector.teams, labels.team), (selector.jobs, labels.job), (selector.nodes, labels.node),
        (selector.classes, class_name),
    )  # fmt: skip
    return (
        all(not globs or any(_fits(glob, name) for glob in globs) for globs, name in named)
        and (not selector.ranks or labels.rank in selector.ranks)
        and (not selector.paths or os.fsencode(path) in selector.paths)
    )


def _fits(glob: str, name: str) -> bool:
    return fnmatchcase(name, glob.replace("[", "[[]"))
