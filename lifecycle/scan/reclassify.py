"""A place's known segments judged again after policy's class rules changed: page by page, before anything is planned.

Knows claims and the order of retentions. Never opens a file: a segment's class comes of its path, so what was stored
long ago is judged as well, and a place need not be there.

Worked example: ``train/nan_error.log`` was taken for training (30d); a new pattern makes it error (90d). It is error
at once, and a mark on it comes off by the planner's own rule. Were it the other way about, the segment would stay
error, with training noted as the class it waits for, until somebody accepts the change: the longer of old and new
retention counts (promise: nothing becomes removable because a line was edited).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from blake3 import blake3

from lifecycle import __version__
from lifecycle.catalog.acceptance import is_accepted
from lifecycle.catalog.interning import render_extra
from lifecycle.catalog.lease import Lease
from lifecycle.catalog.places import Place, places
from lifecycle.catalog.reclassifying import (
    Classified,
    ClassWriter,
    Progress,
    Verdicts,
    has_folders,
    in_unfinished_batches,
    iter_classified,
    progress_of,
)
from lifecycle.catalog.store import Catalog
from lifecycle.model import Original, PlaceKind, ReasonCode
from lifecycle.plan.figures import FigureBook, Figures
from lifecycle.policy.layouts import HOST, Claim, SourceLayouts
from lifecycle.policy.rules import Policy, SourceRule
from lifecycle.units import to_ns

_OURS_TO_LEAVE = frozenset((Original.OPEN.value, Original.SETTLED.value, Original.MISSING.value))


@dataclass(slots=True)
class Reclassified:
    """What one pass over a place did."""

    looked_at: int = 0
    changed: int = 0  # have another class, team, job or label now
    waiting: int = 0  # keep their class until the change is accepted
    unclaimed: int = 0  # originals that policy no longer takes for logs
    is_whole: bool = True  # False: stopped, or some are in a batch on its way; the next run goes on

    def add(self, page: list[Classified], verdicts: Verdicts) -> None:
        self.looked_at += len(page)
        self.changed += len(verdicts.taken)
        self.waiting += len(verdicts.waiting)
        self.unclaimed += len(verdicts.unclaimed)
        self.is_whole = self.is_whole and not verdicts.spared


def claims_key(policy: Policy, source: SourceRule, host: str) -> bytes:
    """What decides which files are ours and what they are: no part of it is where a rule stands in its file, nor who
    scans, unless a label says so (a pod has another name every day)."""
    host = host if any(HOST in value for value in source.labels.values()) else ""
    matches = [(rule.class_name, rule.patterns) for rule in policy.matches]
    parts = (
        __version__, host, source.under, source.layouts, source.exclude, source.mounts, sorted(source.labels.items()),
        sorted(policy.aliases.items()), matches,
    )  # fmt: skip
    return blake3(repr(parts).encode("utf-8", "surrogatepass")).digest(length=16)


def unclassified_places(catalog: Catalog, policy: Policy, host: str) -> frozenset[int]:
    """Places with segments that were not all judged by the policy's present class rules. None of them is removed.

    A source that policy no longer has cannot be judged: its segments keep the class they have.
    """
    sources = {source.name: source for source in policy.sources}
    with catalog.read() as conn:
        known = progress_of(conn)
        return frozenset(
            place.id
            for place in places(conn)
            if place.kind is PlaceKind.SOURCE
            and (source := sources.get(place.name)) is not None
            and known.get(place.id, Progress()).done_key != claims_key(policy, source, place.host or host)
            and has_folders(conn, place.id)
        )


def reclassify_place(
    catalog: Catalog,
    place: Place,
    source: SourceRule,
    policy: Policy,
    *,
    host: str,
    now: datetime,
    run_id: int | None,
    lease: Lease | None,
    begin: Callable[[], None] = lambda: None,
    progress: Callable[[int], None] = lambda segments: None,
    stop: Callable[[], str] = lambda: "",
) -> Reclassified:
    """Give the place's segments the class, team and labels that policy says now. Nothing to do costs one look.

    A second call with the same rules looks only at what waits for an acceptance, which may have come, or be needed no
    more since policy keeps the other class longer now. ``begin`` is called before the first
    page, ``progress`` told of each, ``stop`` asked between two. Raises what the catalog raises.
    """
    key = claims_key(policy, source, host)
    writer = ClassWriter(catalog, place.id, now_ns=to_ns(now), run_id=run_id, lease=lease, policy_digest=policy.digest)
    with catalog.read() as conn:
        reached = progress_of(conn).get(place.id, Progress())
        accepted = is_accepted(conn, policy.digest)
        is_new = not has_folders(conn, place.id)
    is_again = reached.done_key == key
    done = Reclassified()
    if is_new:
        if not is_again:
            writer.record_progress(Progress(done_key=key))
        return done
    judge = _Judge(catalog, policy, SourceLayouts(policy, source, host), accepted)
    after_id = reached.done_id if reached.target_key == key and not is_again else 0
    for page in iter_classified(catalog, place.id, after_id=after_id, only_waiting=is_again):
        if stop():
            done.is_whole = False
            return done
        if not done.looked_at:
            begin()
        verdicts = judge.look_at(page)
        if not is_again:
            writer.write(verdicts, Progress(reached.done_key, key, page[-1].id))
        elif not verdicts.is_nothing_new:
            writer.write(verdicts, reached)
        done.add(page, verdicts)
        progress(len(page))
    if not is_again:
        # Where some were left to a batch on its way, the next run begins anew.
        writer.record_progress(Progress(done_key=key) if done.is_whole else Progress(reached.done_key))
    if accepted and done.changed:
        writer.note_acceptance()
    return done


class _Judge:
    """What becomes of each segment of a page."""

    def __init__(self, catalog: Catalog, policy: Policy, layouts: SourceLayouts, accepted: bool) -> None:
        self._catalog = catalog
        self._layouts = layouts
        self._book = FigureBook(policy)
        self._accepted = accepted

    def look_at(self, page: list[Classified]) -> Verdicts:
        found = Verdicts()
        for directory, segments in groupby(page, key=lambda segment: segment.directory):
            layout = self._layouts.enter(directory)
            for segment in segments:
                self._judge(segment, None if layout.excluded else layout.claim(segment.name), found)
        self._spare_those_on_their_way(found)
        return found

    def _judge(self, segment: Classified, claim: Claim | None, found: Verdicts) -> None:
        if claim is None:
            if segment.original in _OURS_TO_LEAVE:
                found.unclaimed.append(segment)
        elif _is_as_claimed(segment, claim):
            if segment.claimed_class is not None:
                found.taken.append((segment, claim))  # policy says again what it is: nothing to wait for
        elif self._accepted or keeps_as_long(
            self._book.of(segment.team, segment.class_name), self._book.of(claim.labels.team, claim.class_name)
        ):
            found.taken.append((segment, claim))
        else:
            found.waiting.append((segment, claim))

    def _spare_those_on_their_way(self, found: Verdicts) -> None:
        """An original that an unfinished batch has is that batch's for now."""
        if found.unclaimed:
            with self._catalog.read() as conn:
                busy = in_unfinished_batches(conn, [segment.id for segment in found.unclaimed])
            found.spared = len(busy)
            found.unclaimed = [segment for segment in found.unclaimed if segment.id not in busy]


def keeps_as_long(old: Figures | ReasonCode, new: Figures | ReasonCode) -> bool:
    """Whether no segment can become removable earlier by ``new`` than by ``old``.

    A team that policy does not list was promised nothing; a class that policy no longer has kept for a time that is not
    known any more.
    """
    if isinstance(new, ReasonCode) or old is ReasonCode.UNLISTED_TEAM:
        return True
    return not isinstance(old, ReasonCode) and new.retention.keeps_as_long_as(old.retention)


def _is_as_claimed(segment: Classified, claim: Claim) -> bool:
    labels = claim.labels
    return (
        segment.class_name == claim.class_name
        and segment.team == labels.team
        and segment.job == labels.job
        and segment.layout == claim.layout
        and segment.rotation_base == claim.rotation_base
        and (segment.node, segment.rank, segment.stream, segment.attempt)
        == (labels.node, labels.rank, labels.stream, labels.attempt)
        and segment.extra == render_extra(labels.extra)
    )
