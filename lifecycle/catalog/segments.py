"""Segments and archives out of the catalog: one shared SELECT, one way from a row to a value, pages by id.

Knows the joins of the segment tables and how a Selector reads as SQL. Never keeps a cursor open between pages, and
never hands out a row. ``scanning.py``, ``due.py`` and ``journal.py`` reuse ``SEGMENT_SELECT`` and ``row_to_segment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, chunks, select_in
from lifecycle.catalog.events import Event, events_of_batches
from lifecycle.catalog.interning import parse_extra
from lifecycle.catalog.selecting import Condition, conditions, ids_at, job_ids
from lifecycle.catalog.store import Catalog
from lifecycle.model import (
    ActionKind,
    Archive,
    ArchiveState,
    BatchState,
    Content,
    Identity,
    Labels,
    Original,
    Outcome,
    RuleRef,
    Segment,
    Selector,
    TierName,
)

PAGE: Final = 2000

# Aliases that conditions may use: s segments, d directories, t teams, c classes, j jobs, l label_sets, r rules,
# p the class that waits to be accepted, a archives, m marks (may be absent).
SEGMENT_COLUMNS: Final = """
    s.id, s.place_id, d.path, s.name, t.name, j.name, l.node, l.rank, l.stream, l.attempt, l.extra,
    c.name, r.file, r.line, r.text, s.layout, s.content, s.inode, s.size_bytes, s.mtime_ns,
    s.allocated_bytes, s.ctime_ns, s.mode, s.uid, s.gid, s.last_write_ns, s.first_seen_ns, s.original, s.tier,
    s.archive_id, a.tier, s.stored_bytes, s.digest, s.job_id, j.last_write_ns,
    m.marked_ns, m.purge_after_ns, s.stay_until_ns, s.set_aside_until_ns, s.problems, p.name,
    s.companion_of, s.error_blocks,
    (SELECT min(h.hold_id) FROM hold_members h WHERE h.segment_id = s.id)"""
# CROSS JOIN fixes SQLite's order: the segments lead, the rest are look-ups by id.
SEGMENT_FROM: Final = """
    FROM segments s
    CROSS JOIN directories d ON d.id = s.directory_id
    CROSS JOIN teams t ON t.id = s.team_id
    CROSS JOIN classes c ON c.id = s.class_id
    CROSS JOIN jobs j ON j.id = s.job_id
    CROSS JOIN label_sets l ON l.id = s.labels_id
    CROSS JOIN rules r ON r.id = s.rule_id
    LEFT JOIN classes p ON p.id = s.claimed_class_id
    LEFT JOIN archives a ON a.id = s.archive_id
    LEFT JOIN marks m ON m.segment_id = s.id"""
SEGMENT_SELECT: Final = f"SELECT {SEGMENT_COLUMNS} {SEGMENT_FROM}"

ARCHIVE_SELECT: Final = """
    SELECT a.id, a.place_id, a.tier, a.key, t.name, c.name, a.day, a.gid, a.mode, a.size_bytes, a.members,
        a.live_members, a.live_raw_bytes, a.newest_write_ns, a.oldest_write_ns, a.state, a.zstd_level
    FROM archives a JOIN teams t ON t.id = a.team_id JOIN classes c ON c.id = a.class_id"""


def row_to_segment(row: Sequence[Any]) -> Segment:
    """The value of a row of ``SEGMENT_COLUMNS``, in that order."""
    return Segment(
        id=row[0],
        place_id=row[1],
        directory=row[2],
        name=row[3],
        labels=_labels(row[4], row[5], row[6], row[7], row[8], row[9], row[10]),
        class_name=row[11],
        class_rule=_rule(row[12], row[13], row[14]),
        layout=row[15],
        content=_CONTENTS[row[16]],
        identity=Identity(inode=row[17], size_bytes=row[18], mtime_ns=row[19]),
        allocated_bytes=row[20],
        ctime_ns=row[21],
        mode=row[22],
        uid=row[23],
        gid=row[24],
        last_write_ns=row[25],
        first_seen_ns=row[26],
        original=_ORIGINALS[row[27]],
        tier=_TIERS[row[28]],
        archive_id=row[29],
        archive_tier=_TIERS[row[30]],
        stored_bytes=row[31],
        digest=row[32],
        job_id=row[33],
        job_last_write_ns=row[34],
        marked_ns=row[35],
        purge_after_ns=row[36],
        stay_until_ns=row[37],
        set_aside_until_ns=row[38],
        problems=row[39],
        claimed_class=row[40],
        companion_of=row[41],
        error_blocks=row[42],
        hold_id=row[43],
    )


def row_to_archive(row: Sequence[Any]) -> Archive:
    """The value of a row of ``ARCHIVE_SELECT``."""
    return Archive(
        id=row[0], place_id=row[1], tier=TierName(row[2]), key=row[3], team=row[4], class_name=row[5], day=row[6],
        gid=row[7], mode=row[8], size_bytes=row[9], members=row[10], live_members=row[11], live_raw_bytes=row[12],
        newest_write_ns=row[13], oldest_write_ns=row[14], state=ArchiveState(row[15]), zstd_level=row[16],
    )  # fmt: skip


_CONTENTS: Final = {content.value: content for content in Content}
_ORIGINALS: Final = {original.value: original for original in Original}
_TIERS: Final[dict[str | None, TierName | None]] = {None: None, **{tier.value: tier for tier in TierName}}


@lru_cache(maxsize=50_000)
def _labels(team: str, job: str, node: str, rank: int | None, stream: str, attempt: str, extra: str) -> Labels:
    return Labels(team=team, job=job, node=node, rank=rank, stream=stream, attempt=attempt, extra=parse_extra(extra))


@lru_cache(maxsize=5_000)
def _rule(file: str, line: int, text: str) -> RuleRef:
    return RuleRef(file=file, line=line, text=text)


def iter_segments(catalog: Catalog, selector: Selector, *, page: int = PAGE) -> Iterator[Segment]:
    """What the selector selects, each once, in pages. By id; by job and id where the selector names jobs.

    Between pages others may write: a segment that changes meanwhile is seen as of its page.
    """
    for condition in scopes(catalog, selector):
        last = 0
        while True:
            sql = f"{SEGMENT_SELECT} WHERE s.id > ? AND {condition.sql} ORDER BY s.id LIMIT ?"
            with catalog.read() as conn:
                rows = conn.exec_driver_sql(bind(conn, sql), (last, *condition.values, page)).fetchall()
            yield from map(row_to_segment, rows)
            if len(rows) < page:
                break
            last = rows[-1][0]


def count_segments(catalog: Catalog, selector: Selector) -> int:
    """How many ``iter_segments`` would give."""
    total = 0
    for condition in scopes(catalog, selector):
        with catalog.read() as conn:
            sql = f"SELECT count(*) FROM segments s WHERE {condition.sql}"
            total += conn.exec_driver_sql(bind(conn, sql), condition.values).scalar_one()
    return total


def scopes(catalog: Catalog, selector: Selector) -> Iterator[Condition]:
    """One condition for each job where jobs are named, since that index then gives the order of ids as well."""
    with catalog.read() as conn:
        rest = conditions(conn, selector)
        named = job_ids(conn, selector)
    if rest is None or named == []:
        return
    if named is None:
        yield rest
        return
    for job_id in named:
        yield Condition(f"s.job_id = ? AND {rest.sql}", (job_id, *rest.values))


def segments_by_ids(conn: Connection, ids: Iterable[int]) -> list[Segment]:
    """In the order of the ids; an id that is not there is left out."""
    wanted = list(ids)
    rows = select_in(conn, f"{SEGMENT_SELECT} WHERE s.id IN ({{values}})", wanted)
    found = {row[0]: row_to_segment(row) for row in rows}
    return [found[number] for number in wanted if number in found]


def companion_of(conn: Connection, segment_id: int) -> Segment | None:
    """What is kept of a segment's errors, if it can be read; else what was, the newest; None if there never was any."""
    sql = bind(conn, "SELECT id FROM segments WHERE companion_of = ? ORDER BY tier IS NULL, id DESC LIMIT 1")
    found = segments_by_ids(conn, [row[0] for row in conn.exec_driver_sql(sql, (segment_id,))])
    return found[0] if found else None


def segment_at(conn: Connection, place_id: int, path: bytes) -> list[Segment]:
    """Every segment that had this path, relative to the place's root; the present one first, then the newest."""
    found = segments_by_ids(conn, ids_at(conn, place_id, path))
    return sorted(found, key=lambda segment: (not segment.original.is_present, -segment.id))


def archives_by_ids(conn: Connection, ids: Iterable[int]) -> list[Archive]:
    """In the order of the ids; an id that is not there is left out."""
    wanted = list(ids)
    rows = select_in(conn, f"{ARCHIVE_SELECT} WHERE a.id IN ({{values}})", wanted)
    found = {row[0]: row_to_archive(row) for row in rows}
    return [found[number] for number in wanted if number in found]


def iter_members(catalog: Catalog, archive_ids: Iterable[int], *, page: int = PAGE) -> Iterator[Segment]:
    """The live members of archives, archive by archive in the order given, by offset inside each."""
    for archive_id in archive_ids:
        with catalog.read() as conn:
            sql = "SELECT id FROM segments WHERE archive_id = ? ORDER BY archive_offset, id"
            ids = [row[0] for row in conn.exec_driver_sql(bind(conn, sql), (archive_id,))]
        for chunk in chunks(ids, page):
            with catalog.read() as conn:
                members = segments_by_ids(conn, chunk)
            yield from members


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One batch that had the segment as a member, and what came of it."""

    batch_id: int
    run_id: int
    action: ActionKind
    state: BatchState
    created_ns: int
    outcome: Outcome | None  # None: unfinished
    detail: str
    archive_id: int | None  # that the batch made
    archive_key: str
    archive_tier: TierName | None
    events: tuple[Event, ...]


def history_of(conn: Connection, segment_id: int) -> list[Touch]:
    """Every batch that touched a segment, oldest first, with the events that prove it. A companion's first one is that
    which made it, a batch of its source."""
    sql = """
        SELECT b.id, b.run_id, b.action, b.state, b.created_ns, m.outcome, m.detail, a.id, a.key, a.tier
        FROM batch_members m JOIN batches b ON b.id = m.batch_id LEFT JOIN archives a ON a.id =
            (SELECT min(made.id) FROM archives made WHERE made.batch_id = b.id)
        WHERE m.segment_id = ?
        UNION ALL
        SELECT b.id, b.run_id, b.action, b.state, b.created_ns, m.outcome, NULL, a.id, a.key, a.tier
        FROM segments s JOIN batch_members m ON m.segment_id = s.companion_of JOIN batches b ON b.id = m.batch_id
            JOIN archives a ON a.batch_id = b.id AND a.class_id = s.class_id AND a.created_ns = s.first_seen_ns
        WHERE s.id = ? ORDER BY 1"""
    rows = conn.exec_driver_sql(bind(conn, sql), (segment_id, segment_id)).fetchall()
    evidence = events_of_batches(conn, [row[0] for row in rows])
    return [
        Touch(
            batch_id=row[0],
            run_id=row[1],
            action=ActionKind(row[2]),
            state=BatchState(row[3]),
            created_ns=row[4],
            outcome=Outcome(row[5]) if row[5] else None,
            detail=row[6] or "",
            archive_id=row[7],
            archive_key=row[8] or "",
            archive_tier=_TIERS[row[9]],
            events=tuple(event for event in evidence if event.batch_id == row[0]),
        )
        for row in rows
    ]
