"""One segment's past, and the segments that a path or an id means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lifecycle.catalog.places import Place, places
from lifecycle.catalog.segments import Touch, companion_of, history_of, segment_at, segments_by_ids
from lifecycle.catalog.store import Catalog
from lifecycle.errors import NothingFound
from lifecycle.model import PlaceKind, Segment
from lifecycle.names import parse_name, show_name
from lifecycle.plan.explain import mark_due_ns
from lifecycle.plan.figures import FigureBook, Figures
from lifecycle.policy.rules import Policy
from lifecycle.report.blocks import CellKind, Column, Table
from lifecycle.units import from_ns

_COLUMNS: Final = (
    Column(key="at", kind=CellKind.INSTANT), Column(key="segment_id", title="SEGMENT", kind=CellKind.NUMBER),
    Column(key="run_id", title="RUN", kind=CellKind.NUMBER), Column(key="what"), Column(key="outcome"),
    Column(key="detail"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PastStep:
    at: datetime
    segment_id: int
    run_id: int | None
    what: str
    outcome: str = ""
    detail: str = ""


def find_segments(catalog: Catalog, path: bytes) -> list[Segment]:
    """Every segment that had this absolute path, the present one first. Raises NothingFound, with what may be why."""
    with catalog.read() as conn:
        sources = [place for place in places(conn) if place.kind is PlaceKind.SOURCE]
        around = [(place, below) for place in sources if (below := _below(place, path)) is not None]
        found = [segment for place, below in around for segment in segment_at(conn, place.id, below)]
    if found:
        return found
    if not around:
        roots = ", ".join(sorted({place.root for place in sources})) or "none yet"
        raise NothingFound(f"{show_name(path)} is below no source", hint=f"sources: {roots}")
    raise NothingFound(
        f"{show_name(path)} is not in the catalog: foreign, excluded, a folder, or newer than the last scan",
        hint="lifecycle scan, then again; lifecycle audit --section findings shows what is left alone and why",
    )


def find_by_id(catalog: Catalog, segment_id: int) -> Segment:
    """Raises NothingFound."""
    with catalog.read() as conn:
        found = segments_by_ids(conn, [segment_id])
    if not found:
        raise NothingFound(f"there is no segment {segment_id}", hint="lifecycle ls shows ids")
    return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptErrors:
    """What is kept of a segment's errors: the companion of a source, or the source of a companion."""

    other: Segment
    until: datetime | None  # a companion's: when it may be marked; None: never, or it is gone


def kept_errors(catalog: Catalog, segment: Segment, policy: Policy) -> KeptErrors | None:
    """None where there is nothing of the kind."""
    with catalog.read() as conn:
        if segment.companion_of is not None:
            return KeptErrors(other=segments_by_ids(conn, [segment.companion_of])[0], until=None)
        kept = companion_of(conn, segment.id)
    if kept is None:
        return None
    figures = FigureBook(policy).of(kept.labels.team, kept.class_name)
    end_ns = mark_due_ns(kept, figures) if isinstance(figures, Figures) and kept.tier is not None else None
    return KeptErrors(other=kept, until=None if end_ns is None else from_ns(end_ns))


def _below(place: Place, path: bytes) -> bytes | None:
    root = parse_name(place.root).rstrip(b"/") + b"/"
    return path[len(root) :] if path.startswith(root) and len(path) > len(root) else None


def iter_past(catalog: Catalog, segments: Iterable[Segment]) -> Iterator[PastStep]:
    """What happened to each segment, oldest first."""
    for segment in segments:
        yield PastStep(at=from_ns(segment.first_seen_ns), segment_id=segment.id, run_id=None, what="first seen")
        with catalog.read() as conn:
            touches = history_of(conn, segment.id)
        yield from (_step(segment, touch) for touch in touches)


def _step(segment: Segment, touch: Touch) -> PastStep:
    what = touch.action.value
    if touch.archive_tier is not None:
        what += f" to {touch.archive_tier}"
    detail = "; ".join(part for part in (touch.archive_key, touch.detail) if part)
    outcome = touch.outcome.value if touch.outcome else touch.state.value
    return PastStep(
        at=from_ns(touch.created_ns),
        segment_id=segment.id,
        run_id=touch.run_id,
        what=what,
        outcome=outcome,
        detail=detail,
    )


def table_of_past(steps: Iterable[PastStep]) -> Table:
    rows = ((step.at, step.segment_id, step.run_id, step.what, step.outcome, step.detail) for step in steps)
    return Table(columns=_COLUMNS, rows=rows)
