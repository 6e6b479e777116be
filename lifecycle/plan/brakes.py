"""Brakes: what becomes removable because policy changed, or because a platform is new here, waits for a person.

Pure: due candidates, the figures in force so far and policy go in; the teams and classes that are not marked come out.
Transitions are never braked, nor other teams' cleaning (promise 7).

What counts is what is *newly* past its retention: past the present figures, and not past those in force so far. A log
that grew old under an unchanged policy never counts, however many do. Worked example: eval keeps 7d instead of 30d from
tonight; of nlp's eval logs 31,000 are between 7 and 30 days old, 41 % of the team's bytes. 30 % are allowed: a brake.
A team with nothing in force was never cleaned here: all that is past its retention is new. A class that may
``expire_early`` counts from that age on: what may go only where room is needed may go, too.

In a small team one job is half of everything, so that shares count only above a floor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lifecycle.model import Usage
from lifecycle.plan.decide import retention_blocker
from lifecycle.plan.figures import FigureBook, Figures, Retention
from lifecycle.plan.source import Candidate, DueSource, TeamClass
from lifecycle.policy.rules import Policy
from lifecycle.units import format_count, format_size, format_size_limit

FLOOR_SEGMENTS: Final = 50
FLOOR_BYTES: Final = 2**30
GROWTH: Final = 0.1  # so much more than was accepted may have become due since


@dataclass(frozen=True, slots=True, kw_only=True)
class Newly:
    """Segments of one team and class that are past their retention only since it changed."""

    team: str
    class_name: str
    usage: Usage
    is_first: bool  # nothing was in force
    is_early: bool = False  # among them those that would go only where room is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """What is not marked in a team, and which limit says so."""

    team: str
    classes: tuple[str, ...]
    usage: Usage
    is_first: bool
    why: str
    is_early: bool = False

    @property
    def pairs(self) -> frozenset[TeamClass]:
        return frozenset(TeamClass(self.team, name) for name in self.classes)


def find_brakes(
    source: DueSource,
    policy: Policy,
    now_ns: int,
    *,
    in_force: Mapping[TeamClass, Retention],
    accepted: Mapping[TeamClass, Usage],
) -> tuple[Brake, ...]:
    """The teams that are over a limit, by name. Costs what is due where figures changed, and nothing where none did;
    with ``limits.bytes`` what is due at all."""
    newly = tuple(iter_newly(source, policy, now_ns, in_force=in_force))
    due = _due_by_team(source, policy, now_ns) if policy.limits.size_bytes is not None else {}
    teams = sorted({item.team for item in newly} | set(due))
    found = (_brake_of(team, newly, due.get(team), source, policy, accepted) for team in teams)
    return tuple(brake for brake in found if brake is not None)


def iter_newly(
    source: DueSource, policy: Policy, now_ns: int, *, in_force: Mapping[TeamClass, Retention]
) -> Iterator[Newly]:
    """By team and class; those with nothing new are left out."""
    book = FigureBook(policy)
    for pair in sorted(source.pairs()):
        figures, former = book.of(*pair), in_force.get(pair)
        if not isinstance(figures, Figures) or (former and figures.retention.keeps_as_long_as(former)):
            continue
        usage = _sum(
            candidate.size_bytes
            for candidate in _removable(source, pair, figures, now_ns)
            if former is None or not _is_past(former, candidate, now_ns)
        )
        if usage.segments:
            yield Newly(
                team=pair.team, class_name=pair.class_name, usage=usage, is_first=former is None,
                is_early=figures.retention.early_ns is not None,
            )  # fmt: skip


def present_figures(pairs: Collection[TeamClass], policy: Policy) -> dict[TeamClass, Retention]:
    """What is in force for these from now on, once nothing brakes it."""
    book = FigureBook(policy)
    known = ((pair, book.of(*pair)) for pair in pairs)
    return {pair: figures.retention for pair, figures in known if isinstance(figures, Figures)}


def _brake_of(
    team: str,
    newly: tuple[Newly, ...],
    due: Usage | None,
    source: DueSource,
    policy: Policy,
    accepted: Mapping[TeamClass, Usage],
) -> Brake | None:
    limits = policy.limits
    own = [item for item in newly if item.team == team]
    waiting = [item for item in own if not _is_accepted(item, accepted)]
    sums = sum((item.usage for item in waiting), Usage())
    if sums.segments >= FLOOR_SEGMENTS or sums.logical_bytes >= FLOOR_BYTES:
        whole = _whole(source, team)
        share = max(_share(sums.segments, whole.segments), _share(sums.logical_bytes, whole.logical_bytes))
        if share > limits.share_of_team:
            why = f"{share:.0%} of what {team} has, {limits.share_of_team:.0%} are allowed at once"
            classes = tuple(item.class_name for item in waiting)
            is_first, is_early = all(item.is_first for item in waiting), any(item.is_early for item in waiting)
            return Brake(team=team, classes=classes, usage=sums, is_first=is_first, why=why, is_early=is_early)
    if due is not None and limits.size_bytes is not None and due.logical_bytes > limits.size_bytes:
        pairs = [pair for pair in source.pairs() if pair.team == team]
        if any(pair not in accepted for pair in pairs):
            why = f"{format_size(due.logical_bytes)} at once, {format_size_limit(limits.size_bytes)} are allowed"
            classes = tuple(pair.class_name for pair in pairs)
            return Brake(team=team, classes=classes, usage=due, is_first=False, why=why)
    return None


def _is_accepted(item: Newly, accepted: Mapping[TeamClass, Usage]) -> bool:
    given = accepted.get(TeamClass(item.team, item.class_name))
    if given is None:
        return False
    segments = given.segments * (1 + GROWTH) + FLOOR_SEGMENTS
    size_bytes = given.logical_bytes * (1 + GROWTH) + FLOOR_BYTES
    return item.usage.segments <= segments and item.usage.logical_bytes <= size_bytes


def _due_by_team(source: DueSource, policy: Policy, now_ns: int) -> dict[str, Usage]:
    book, sums = FigureBook(policy), dict[str, Usage]()
    for pair in source.pairs():
        figures = book.of(*pair)
        if isinstance(figures, Figures):
            found = _sum(candidate.size_bytes for candidate in _expired(source, pair, figures, now_ns))
            sums[pair.team] = sums.get(pair.team, Usage()) + found
    return sums


def _expired(source: DueSource, pair: TeamClass, figures: Figures, now_ns: int) -> Iterator[Candidate]:
    """Unmarked ones past their retention, whatever else may keep them today."""
    if figures.expire_ns is None:
        return
    candidates = source.iter_expiring(
        pair,
        write_until_ns=now_ns - figures.longest_retention_ns,
        job_until_ns=now_ns - figures.expire_ns if figures.by_job else None,
        with_originals=True,
    )
    for candidate in candidates:
        if retention_blocker(candidate, figures, now_ns) is None:
            yield candidate


def _removable(source: DueSource, pair: TeamClass, figures: Figures, now_ns: int) -> Iterator[Candidate]:
    """Unmarked ones past their retention, and those that may go sooner where room is needed."""
    early_ns = figures.retention.early_ns
    if early_ns is None:
        yield from _expired(source, pair, figures, now_ns)
        return
    ages = [early_ns] if figures.expire_ns is None else [early_ns, figures.longest_retention_ns]
    candidates = source.iter_expiring(
        pair,
        write_until_ns=now_ns - min(ages),
        job_until_ns=now_ns - figures.expire_ns if figures.by_job and figures.expire_ns is not None else None,
        with_originals=True,
    )
    for candidate in candidates:
        if candidate.last_write_ns is not None and _is_past(figures.retention, candidate, now_ns):
            yield candidate


def _is_past(retention: Retention, candidate: Candidate, now_ns: int) -> bool:
    end_ns = retention.removable_ns(candidate.last_write_ns or 0, candidate.job_last_write_ns)
    return end_ns is not None and end_ns <= now_ns


def _sum(sizes: Iterable[int]) -> Usage:
    segments = size_bytes = 0
    for size in sizes:
        segments += 1
        size_bytes += size
    return Usage(segments=segments, logical_bytes=size_bytes)


def _whole(source: DueSource, team: str) -> Usage:
    sums = Usage()
    for pair in source.pairs():
        if pair.team == team:
            for _, usage in source.usage(pair, before_day=None):
                sums += usage
    return sums


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def describe_brake(brake: Brake) -> str:
    """``vision: 1,904 segments (61.0 GiB) of training are past retention for the first time and not marked: …``."""
    since = "for the first time here" if brake.is_first else "only since policy changed"
    size = f"{format_count(brake.usage.segments)} segments ({format_size(brake.usage.logical_bytes)})"
    past = "past retention, or old enough to expire early," if brake.is_early else "past retention"
    return f"{brake.team}: {size} of {', '.join(brake.classes)} are {past} {since} and not marked: {brake.why}"
