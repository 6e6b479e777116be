"""Views of a catalog for planner tests: segments and archives as the planner sees them, a plan in one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from lifecycle.model import ActionKind, Archive, Kept, Original, PlannedBatch, ReasonCode, Segment, TierName
from lifecycle.plan.decide import candidate_of
from lifecycle.plan.memory import MemoryDue
from lifecycle.plan.planner import iter_batches
from lifecycle.plan.source import Candidate, DueArchive
from lifecycle.policy.rules import Policy
from lifecycle.units import DAY_NS, day_of_ns
from tests.builders import NOON, NOON_NS, a_policy, a_segment, an_archive


@dataclass(frozen=True, slots=True)
class View:
    """Segments and archives of a catalog. ``marked_under`` is the policy digest of every mark."""

    segments: tuple[Segment, ...]
    archives: tuple[Archive, ...] = ()
    marked_under: str = field(default_factory=lambda: a_policy().digest)

    def candidates(self) -> list[Candidate]:
        archives = {archive.id: archive for archive in self.archives}
        return [candidate_of(s, archives.get(s.archive_id or 0)) for s in self.segments if s.tier is not None]

    def source(self) -> MemoryDue:
        archives = map(self._due, self.archives)
        return MemoryDue(self.candidates(), archives, digests=lambda candidate: self.marked_under)

    def _due(self, archive: Archive) -> DueArchive:
        return DueArchive(
            id=archive.id,
            place_id=archive.place_id,
            tier=archive.tier,
            team=archive.team,
            class_name=archive.class_name,
            day=archive.day,
            gid=archive.gid,
            mode=archive.mode,
            size_bytes=archive.size_bytes,
            live_members=archive.live_members,
            live_raw_bytes=archive.live_raw_bytes,
            newest_write_ns=archive.newest_write_ns,
            state=archive.state,
            has_unmarked=any(s.archive_id == archive.id and s.marked_ns is None for s in self.segments),
        )


def a_view(*segments: Segment, archives: Iterable[Archive] = (), **overrides: str) -> View:
    return View(segments, tuple(archives), **overrides)


def an_archive_of(
    *segments: Segment, tier: TierName = TierName.WARM, **overrides: Any
) -> tuple[Archive, tuple[Segment, ...]]:
    """An archive that holds just these, and the segments as they then are: stored in it, their originals released."""
    first = segments[0]
    writes = [segment.last_write_ns or 0 for segment in segments]
    archive = an_archive(
        tier=tier,
        team=first.labels.team,
        class_name=first.class_name,
        members=len(segments),
        live_raw_bytes=sum(segment.size_bytes for segment in segments),
        newest_write_ns=max(writes),
        oldest_write_ns=min(writes),
        day=day_of_ns(max(writes)),
        **overrides,
    )
    return archive, tuple(stored_in(archive, segment) for segment in segments)


def stored_in(archive: Archive, segment: Segment) -> Segment:
    return replace(
        segment,
        original=Original.RELEASED,
        tier=archive.tier,
        archive_id=archive.id,
        archive_tier=archive.tier,
        stored_bytes=segment.size_bytes // 5,
        digest=b"d" * 32,
        error_blocks=0,
    )


@dataclass(frozen=True, slots=True)
class Plan:
    batches: tuple[PlannedBatch, ...]
    kept: tuple[Kept, ...]

    def of(self, *kinds: ActionKind) -> list[PlannedBatch]:
        return [batch for batch in self.batches if batch.kind in kinds]

    def ids(self, *kinds: ActionKind) -> list[int]:
        """Segments named by batches of these kinds, sorted; not those of whole archives."""
        return sorted(member.segment_id for batch in self.of(*kinds) for member in batch.members)

    @property
    def kept_codes(self) -> dict[ReasonCode, int]:
        found: Counter[ReasonCode] = Counter()
        for kept in self.kept:
            found[kept.reason.code] += kept.segments
        return dict(found)


def plan_of(view: View, policy: Policy | None = None, *, only: Collection[ActionKind] | None = None) -> Plan:
    items = list(iter_batches(view.source(), policy or a_policy(), NOON, only=only))
    batches = tuple(item for item in items if isinstance(item, PlannedBatch))
    return Plan(batches, tuple(item for item in items if isinstance(item, Kept)))


def plan_segments(*segments: Segment, policy: Policy | None = None) -> Plan:
    return plan_of(a_view(*segments), policy)


MOVES = (ActionKind.TRANSITION, ActionKind.MERGE)
__all__ = [
    "DAY_NS",
    "MOVES",
    "NOON_NS",
    "Plan",
    "View",
    "a_segment",
    "a_view",
    "an_archive_of",
    "plan_of",
    "plan_segments",
]
