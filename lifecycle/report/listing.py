"""``ls``: segments as rows, or counted by one dimension. Expiry comes from the plan's own rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from lifecycle.catalog.places import Place
from lifecycle.catalog.reporting import SegmentGroup
from lifecycle.model import ReasonCode, Segment
from lifecycle.names import show_name
from lifecycle.plan.explain import mark_due_ns, purge_due_ns
from lifecycle.plan.figures import FigureBook
from lifecycle.report.blocks import Cell, CellKind, Column, Table
from lifecycle.units import format_day, format_duration, format_left, from_ns

_SEGMENT_COLUMNS: Final = (
    Column(key="id", kind=CellKind.NUMBER), Column(key="team"), Column(key="job"),
    Column(key="attempt", title="RUN"), Column(key="node"), Column(key="rank", kind=CellKind.NUMBER),
    Column(key="stream"), Column(key="class"), Column(key="state"),
    Column(key="last_write", kind=CellKind.INSTANT), Column(key="size_bytes", title="SIZE", kind=CellKind.SIZE),
    Column(key="stored_bytes", title="STORED", kind=CellKind.SIZE, in_text=False), Column(key="tier"),
    Column(key="expires"), Column(key="expires_at", kind=CellKind.INSTANT, in_text=False),
    Column(key="place", in_text=False), Column(key="layout", in_text=False),
    Column(key="name"), Column(key="path", in_text=False),
)  # fmt: skip
_HIDDEN_IF_EMPTY: Final = frozenset(("attempt", "node", "rank", "stream"))


def table_of_segments(
    segments: Iterable[Segment], *, book: FigureBook, now: datetime, known: Iterable[Place], is_long: bool = False
) -> Table:
    """Lazily, one row a segment. ``is_long`` shows whole paths in text, too."""
    places = {place.id: place for place in known}
    columns = tuple(_shown(column, is_long=is_long) for column in _SEGMENT_COLUMNS)
    return Table(columns=columns, rows=(_segment_row(segment, book, now, places) for segment in segments))


def hide_empty_columns(table: Table, rows: list[tuple[Cell, ...]]) -> Table:
    """For a page that is shown whole: label columns that hold nothing are left out of the text."""
    columns = tuple(
        Column(key=column.key, title=column.title, kind=column.kind, in_text=False)
        if column.key in _HIDDEN_IF_EMPTY and all(row[at] in (None, "") for row in rows)
        else column
        for at, column in enumerate(table.columns)
    )
    return Table(columns=columns, rows=rows)


def _shown(column: Column, *, is_long: bool) -> Column:
    if column.key not in ("name", "path", "place") or not is_long:
        return column
    return Column(key=column.key, title=column.title, kind=column.kind, in_text=column.key != "name")


def _segment_row(segment: Segment, book: FigureBook, now: datetime, places: dict[int, Place]) -> tuple[Cell, ...]:
    labels, place = segment.labels, places.get(segment.place_id)
    ends, words = _expiry(segment, book, now)
    path = show_name(segment.path)
    return (
        segment.id, labels.team, labels.job, labels.attempt, labels.node, labels.rank, labels.stream,
        segment.class_name,
        _state(segment), None if segment.last_write_ns is None else from_ns(segment.last_write_ns),
        segment.size_bytes, segment.stored_bytes, segment.tier.value if segment.tier else "gone", words, ends,
        place.name if place else "", segment.layout, show_name(segment.name),
        f"{place.root.rstrip('/')}/{path}" if place else path,
    )  # fmt: skip


def _state(segment: Segment) -> str:
    """Of its original; a companion never had one."""
    is_kept = segment.companion_of is not None and segment.tier is not None
    return "companion" if is_kept else segment.original.value


def _expiry(segment: Segment, book: FigureBook, now: datetime) -> tuple[datetime | None, str]:
    """When its mark is due, or its purge once it is marked; and the same in words: ``10-11 (8 d left)``."""
    if segment.tier is None:
        return None, "gone"
    if segment.hold_id is not None:
        return None, f"held by {segment.hold_id}"
    if segment.purge_after_ns is not None:
        purge = from_ns(purge_due_ns(segment, book.grace_ns))
        return purge, f"marked, purge {_in_words(purge, now)}"
    figures = book.of(segment.labels.team, segment.class_name)
    if isinstance(figures, ReasonCode):
        return None, "kept: " + figures.value.replace("_", " ")
    if segment.last_write_ns is None:
        return None, "kept: age unknown"
    end_ns = mark_due_ns(segment, figures)
    if end_ns is None:
        return None, "never"
    return from_ns(end_ns), _in_words(from_ns(end_ns), now)


def _in_words(end: datetime, now: datetime) -> str:
    if end <= now:
        return "due"
    day = end.strftime("%m-%d" if end.year == now.year else "%Y-%m-%d")
    left = timedelta(seconds=round((end - now).total_seconds()))
    return f"{day} ({format_left(left)} left)"


def table_of_groups(groups: Iterable[SegmentGroup], dimension: str, *, now: datetime) -> Table:
    keys = ("team", "job") if dimension == "job" else (dimension,)
    columns = (
        *(Column(key=key, kind=CellKind.NUMBER if key == "rank" else CellKind.TEXT) for key in keys),
        Column(key="segments", kind=CellKind.COUNT),
        Column(key="logical_bytes", title="LOGICAL", kind=CellKind.SIZE),
        Column(key="stored_bytes", title="STORED", kind=CellKind.SIZE),
        Column(key="open_bytes", title="OPEN", kind=CellKind.SIZE),
        Column(key="oldest_write", kind=CellKind.INSTANT, in_text=False),
        Column(key="newest_write", kind=CellKind.INSTANT, in_text=False),
        Column(key="oldest", title="OLDEST WRITE"), Column(key="newest", title="NEWEST WRITE"),
    )  # fmt: skip
    return Table(columns=columns, rows=_group_rows(groups, dimension, now))


def _group_rows(groups: Iterable[SegmentGroup], dimension: str, now: datetime) -> Iterator[tuple[Cell, ...]]:
    for group in groups:
        key = tuple(format_day(int(part)) if dimension == "day" and part is not None else part for part in group.key)
        oldest, newest = (None if at is None else from_ns(at) for at in (group.oldest_write_ns, group.newest_write_ns))
        yield (*key, group.segments, group.logical_bytes, group.stored_bytes, group.open_bytes, oldest, newest,
               _ago(oldest, now), _ago(newest, now))  # fmt: skip


def _ago(instant: datetime | None, now: datetime) -> str:
    if instant is None:
        return "age unknown"
    seconds = round((now - instant).total_seconds())
    return f"{format_duration(timedelta(seconds=seconds))} ago" if seconds >= 0 else "in the future"
