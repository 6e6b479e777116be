"""A view under pressure, planned in one call. Segments of 1 MiB, a file system of 1000 MiB, high 80 %, low 70 %."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lifecycle.model import ActionKind, Kept, PlannedBatch, Segment, TierName
from lifecycle.plan.pressure import FileSystem, Pressure
from lifecycle.plan.relief import iter_plan
from lifecycle.plan.source import CopyRule, TeamClass
from lifecycle.policy.rules import Policy, QuotaRule
from tests.builders import NOON, a_fill, a_policy
from tests.unit.plan.views import View

MIB = 2**20


def a_policy_with_marks(*, quotas: Mapping[str, QuotaRule] | None = None, **overrides: Any) -> Policy:
    return a_policy(**{"hot": a_fill(), "default_quota": quotas or {}} | overrides)


def a_pressure(view: View, *file_systems: FileSystem, **overrides: Any) -> Pressure:
    """The usage is that of the view."""
    usage: dict[tuple[str, TierName], int] = {}
    for segment in view.segments:
        if segment.tier is TierName.HOT or (segment.archive_tier and segment.original.is_present):
            key = (segment.labels.team, TierName.HOT)
            usage[key] = usage.get(key, 0) + segment.allocated_bytes
    for archive in view.archives:
        usage[archive.team, archive.tier] = usage.get((archive.team, archive.tier), 0) + archive.size_bytes
    return replace(Pressure(file_systems=file_systems, usage=usage), **overrides)


@dataclass(frozen=True, slots=True)
class Relieved:
    batches: tuple[PlannedBatch, ...]
    kept: tuple[Kept, ...]
    expected: Pressure

    @property
    def ahead(self) -> list[PlannedBatch]:
        return [batch for batch in self.batches if batch.is_ahead]

    @property
    def due(self) -> list[PlannedBatch]:
        return [batch for batch in self.batches if not batch.is_ahead]

    def ids(self, *kinds: ActionKind) -> list[int]:
        """Segments that leave ahead of their time, sorted; of all kinds where none is named."""
        found = [batch for batch in self.ahead if not kinds or batch.kind in kinds]
        return sorted(member.segment_id for batch in found for member in batch.members)

    def archives(self, *kinds: ActionKind) -> list[int]:
        found = [batch for batch in self.ahead if not kinds or batch.kind in kinds]
        return sorted(archive for batch in found for archive in batch.archive_ids)

    def used(self, name: str = "hot") -> int:
        return next(each.used_bytes for each in self.expected.file_systems if each.name == name)


def relieve(
    view: View,
    policy: Policy,
    *file_systems: FileSystem,
    pressure: Pressure | None = None,
    only: Collection[ActionKind] | None = None,
    unclassified: Iterable[int] = (),
    braked: Iterable[TeamClass] = (),
    copies: Mapping[int, CopyRule] | None = None,
) -> Relieved:
    expected: list[Pressure] = []
    items = list(
        iter_plan(
            view.source(), policy, NOON, only=only, unclassified=frozenset(unclassified),
            braked=frozenset(braked), copies=copies or {},
            pressure=pressure or a_pressure(view, *file_systems), after=expected.append,
        )
    )  # fmt: skip
    batches = tuple(item for item in items if isinstance(item, PlannedBatch))
    return Relieved(batches, tuple(item for item in items if isinstance(item, Kept)), expected[-1])


def ids_of(segments: Iterable[Segment]) -> list[int]:
    return sorted(segment.id for segment in segments)
