"""Every ``DueSource`` gives the same answers in the same order; the catalog's gives them from its indexes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from lifecycle.catalog import tables
from lifecycle.catalog.bulk import insert_rows
from lifecycle.catalog.due import CatalogDue
from lifecycle.catalog.store import Catalog, copy_for_preview
from lifecycle.catalog.usage import RollupDeltas
from lifecycle.model import ArchiveState, Original, Segment, TierName
from lifecycle.plan.memory import MemoryDue
from lifecycle.plan.planner import iter_batches
from lifecycle.plan.source import DueSource, TeamClass
from lifecycle.units import day_of_ns
from tests.builders import NOON, NOON_NS, a_policy, a_segment, ago_ns
from tests.unit.plan.views import View, an_archive_of

VISION = TeamClass("vision", "training")
DIGEST = a_policy().digest


def a_mixed_view() -> View:
    """Some of everything that the questions tell apart, with instants that repeat."""
    made = [
        an_archive_of(a_segment("8d"), a_segment("9d", class_name="training", marked="4d")),
        an_archive_of(a_segment("8d", directory=b"same", name=b"rank_0.log.1")),
        an_archive_of(a_segment("8d", directory=b"same", name=b"rank_0.log.1")),
        an_archive_of(a_segment("40d", job_id=2, job_age="31d"), tier=TierName.COLD),
        an_archive_of(a_segment("95d", job_id=3, job_age="1h"), tier=TierName.COLD),
        an_archive_of(a_segment("41d", job_id=3, job_age="1h", marked="1d"), tier=TierName.COLD),
        an_archive_of(a_segment("42d", job_id=2, job_age="31d", marked="5d"), tier=TierName.COLD),
        an_archive_of(a_segment("42d", team="nlp", job_id=5, marked="5d"), tier=TierName.COLD),
        an_archive_of(
            a_segment("42d", team="nlp", job_id=5, marked="5d"), tier=TierName.COLD, state=ArchiveState.QUARANTINED
        ),
        an_archive_of(a_segment("9d", team="nlp", class_name="eval", job_id=4)),
    ]  # fmt: skip
    returned_archive, (returned,) = an_archive_of(a_segment("8d"))
    returned = replace(returned, original=Original.SETTLED, tier=TierName.HOT, stay_until_ns=NOON_NS - 1)
    written_archive, (written,) = an_archive_of(a_segment("8d"))
    written = replace(written, original=Original.OPEN, tier=TierName.HOT)
    copied_archive, copied = an_archive_of(a_segment("3h"), a_segment("5h", marked="2h"), a_segment("2d"))
    copied = tuple(replace(each, original=Original.SETTLED, tier=TierName.HOT) for each in copied)
    originals = [
        *(a_segment("2d") for _ in range(7)),
        *(a_segment(f"{days}d", team="nlp", job_id=4) for days in (1, 2, 8, 40)),
        a_segment("2d", original=Original.OPEN),
        a_segment("50d", original=Original.OPEN, job_id=2, job_age="31d", marked="1d"),
        a_segment("2d", original=Original.MISSING),
        a_segment("50d", job_id=2, job_age="31d", marked="4d"),
        replace(a_segment("2d"), last_write_ns=None),
        a_segment("2d", tier=None),
        a_segment("1h"),
    ]
    stored = [segment for _, members in made for segment in members]
    stored[::3] = [replace(segment, error_blocks=None) for segment in stored[::3]]
    stored[-1] = replace(stored[-1], error_blocks=None, set_aside_until_ns=NOON_NS + 1)
    archives = (*(archive for archive, _ in made), returned_archive, written_archive, copied_archive)
    return View(_of_one_mind((*originals, *stored, *copied, returned, written)), archives, DIGEST)


def _of_one_mind(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """A job has one last write, whichever of its segments is asked."""
    newest: dict[int, int] = {}
    for segment in segments:
        newest[segment.job_id] = max(newest.get(segment.job_id, 0), segment.job_last_write_ns)
    return tuple(replace(segment, job_last_write_ns=newest[segment.job_id]) for segment in segments)


def fill(catalog: Catalog, view: View) -> None:
    """Put a view's rows into an empty catalog, with the rollups that belong to them."""
    teams = sorted({segment.labels.team for segment in view.segments})
    classes = sorted({segment.class_name for segment in view.segments})
    folders = sorted({(segment.place_id, segment.directory) for segment in view.segments})
    with catalog.write() as conn:
        insert_rows(conn, tables.teams, ("id", "name"), [(9 - i, team) for i, team in enumerate(teams)])
        insert_rows(conn, tables.classes, ("id", "name"), [(i, name) for i, name in enumerate(classes, 1)])
        insert_rows(conn, tables.rules, ("id", "file", "line", "text"), [(1, "platform.yaml", 12, "")])
        place_rows = [(i, kind, f"place-{i}", "/", tier, f"u{i}") for i, kind, tier in _PLACES]
        insert_rows(conn, tables.places, ("id", "kind", "name", "root", "tier", "uid"), place_rows)
        run = (1, "run", "host", 1, NOON_NS, NOON_NS)
        insert_rows(conn, tables.runs, ("id", "command", "host", "pid", "now_ns", "started_ns"), [run])
        team_ids = {team: 9 - i for i, team in enumerate(teams)}
        class_ids = {name: i for i, name in enumerate(classes, 1)}
        folder_ids = {folder: i for i, folder in enumerate(folders, 1)}
        folder_rows = [(number, place, path) for (place, path), number in folder_ids.items()]
        insert_rows(conn, tables.directories, ("id", "place_id", "path"), folder_rows)
        jobs = {s.job_id: (s.job_id, team_ids[s.labels.team], f"job-{s.job_id}", 0) for s in view.segments}
        for segment in view.segments:
            head, newest = jobs[segment.job_id][:3], jobs[segment.job_id][3]
            jobs[segment.job_id] = (*head, max(newest, segment.job_last_write_ns))
        insert_rows(conn, tables.jobs, ("id", "team_id", "name", "last_write_ns"), list(jobs.values()))
        insert_rows(conn, tables.label_sets, ("id", "job_id"), [(job, job) for job in jobs])
        for archive in view.archives:
            values = {
                "id": archive.id, "place_id": archive.place_id, "key": archive.key, "tier": archive.tier.value,
                "team_id": team_ids[archive.team], "class_id": class_ids[archive.class_name], "day": archive.day,
                "gid": archive.gid, "mode": archive.mode, "form": "tar", "size_bytes": archive.size_bytes,
                "raw_bytes": archive.live_raw_bytes, "members": archive.members, "live_members": archive.live_members,
                "live_raw_bytes": archive.live_raw_bytes, "newest_write_ns": archive.newest_write_ns,
                "oldest_write_ns": archive.oldest_write_ns, "digest": b"d", "manifest_digest": b"m",
                "zstd_level": 3, "state": archive.state.value, "created_ns": NOON_NS,
            }  # fmt: skip
            insert_rows(conn, tables.archives, tuple(values), [tuple(values.values())])
        deltas = RollupDeltas()
        for s in view.segments:
            day = day_of_ns(s.first_seen_ns if s.last_write_ns is None else s.last_write_ns)
            values = {
                "id": s.id, "place_id": s.place_id, "directory_id": folder_ids[s.place_id, s.directory], "name": s.name,
                "team_id": team_ids[s.labels.team], "class_id": class_ids[s.class_name], "job_id": s.job_id,
                "labels_id": s.job_id, "rule_id": 1, "layout": s.layout, "content": s.content.value,
                "inode": s.identity.inode, "size_bytes": s.size_bytes, "allocated_bytes": s.allocated_bytes,
                "mtime_ns": s.identity.mtime_ns, "ctime_ns": s.ctime_ns, "mode": s.mode, "uid": s.uid, "gid": s.gid,
                "last_write_ns": s.last_write_ns, "day": day, "first_seen_ns": s.first_seen_ns,
                "original": s.original.value, "digest": s.digest, "archive_id": s.archive_id,
                "stored_bytes": s.stored_bytes, "tier": s.tier and s.tier.value,
                "marked": int(s.marked_ns is not None), "stay_until_ns": s.stay_until_ns,
                "set_aside_until_ns": s.set_aside_until_ns, "error_blocks": s.error_blocks,
            }  # fmt: skip
            insert_rows(conn, tables.segments, tuple(values), [tuple(values.values())])
            if s.marked_ns is not None:
                columns = ("segment_id", "marked_ns", "purge_after_ns", "run_id", "policy_digest", "reason")
                insert_rows(
                    conn, tables.marks, columns, [(s.id, s.marked_ns, s.purge_after_ns, 1, view.marked_under, "{}")]
                )
            for tier, stored in _rollups(s):
                key = (team_ids[s.labels.team], class_ids[s.class_name], tier, day)
                deltas.add(*key, 1, s.size_bytes, stored)
        deltas.apply(conn)


_PLACES = ((1, "source", "hot"), (2, "tier", "warm"), (3, "tier", "cold"), (9, "source", "hot"))


def _rollups(s: Segment) -> Iterator[tuple[TierName, int]]:
    """Where a segment is summed: with its original, with its stored copy, with both."""
    if s.original in (Original.OPEN, Original.SETTLED, Original.MISSING) and s.tier is not None:
        yield TierName.HOT, s.allocated_bytes
    if s.archive_tier is not None:
        yield s.archive_tier, s.stored_bytes


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    with copy_for_preview(None, now=NOON) as empty:
        yield empty


@pytest.fixture(params=["memory", "catalog", "catalog in pages of one"])
def source(request: pytest.FixtureRequest, catalog: Catalog) -> DueSource:
    view = a_mixed_view()
    if request.param == "memory":
        return view.source()
    fill(catalog, view)
    return CatalogDue(catalog, page=1 if "one" in request.param else 2000)


def _answers(source: DueSource) -> dict[str, Any]:
    """Every question, with cut-offs that leave something on both sides."""
    jobs = [(pair, ago_ns("30d")) for pair in source.pairs()]
    answers: dict[str, Any] = {
        "doubtful": list(source.iter_doubtful_marks(policy_digest=DIGEST, now_ns=NOON_NS, jobs=jobs)),
        "doubtful after a change": list(source.iter_doubtful_marks(policy_digest="other", now_ns=NOON_NS, jobs=jobs)),
        "marked originals": list(source.iter_marked_originals(now_ns=NOON_NS)),
        "marked archives": list(source.iter_marked_archives(now_ns=NOON_NS)),
        "returned": list(source.iter_returned(now_ns=NOON_NS)),
        "open": list(source.open_usage([(pair, ago_ns("24h")) for pair in source.pairs()])),
    }
    for pair in source.pairs():
        answers |= {
            f"{pair} settled": list(source.iter_settled(pair, after_ns=ago_ns("7d"), until_ns=ago_ns("24h"))),
            f"{pair} settled, all": list(source.iter_settled(pair, after_ns=None, until_ns=NOON_NS)),
            f"{pair} copied": list(source.iter_copied(pair, after_ns=ago_ns("24h"), until_ns=NOON_NS)),
            f"{pair} copied, all": list(source.iter_copied(pair, after_ns=None, until_ns=NOON_NS)),
            f"{pair} members": _members(source, pair),
            f"{pair} archives": list(source.iter_archives(pair, TierName.WARM, until_ns=ago_ns("7d"))),
            f"{pair} small": list(
                source.iter_small(
                    pair, TierName.WARM, after_ns=ago_ns("40d"), until_ns=ago_ns("2d"), below_bytes=3 * 2**20
                )
            ),
            f"{pair} expiring": list(_expiring(source, pair, None, originals=False)),
            f"{pair} expiring, originals": list(_expiring(source, pair, None, originals=True)),
            f"{pair} expiring by job": list(_expiring(source, pair, ago_ns("30d"), originals=False)),
            f"{pair} unextracted": list(source.iter_unextracted(pair, now_ns=NOON_NS)),
            f"{pair} unextracted later": list(source.iter_unextracted(pair, now_ns=NOON_NS + 1)),
            f"{pair} unknown": list(source.unknown_age_usage(pair)),
            f"{pair} usage": list(source.usage(pair, before_day=None)),
            f"{pair} old usage": list(source.usage(pair, before_day=day_of_ns(ago_ns("8d")))),
        }
    return answers


def _members(source: DueSource, pair: TeamClass) -> list[Any]:
    archives = [archive.id for archive in source.iter_archives(pair, TierName.WARM, until_ns=NOON_NS)]
    return list(source.iter_members(archives[::-1]))


def _expiring(source: DueSource, pair: TeamClass, job_until_ns: int | None, *, originals: bool) -> Iterator[Any]:
    return source.iter_expiring(pair, write_until_ns=ago_ns("30d"), job_until_ns=job_until_ns, with_originals=originals)


def test_the_catalog_answers_as_the_memory_does(catalog: Catalog) -> None:
    view = a_mixed_view()
    fill(catalog, view)
    wanted = _answers(view.source())
    assert all(wanted[question] for question in ("doubtful", "marked originals", "marked archives", "returned", "open"))
    assert _answers(CatalogDue(catalog)) == wanted
    assert _answers(CatalogDue(catalog, page=1)) == wanted
    assert _answers(CatalogDue(catalog, page=3)) == wanted


def test_the_plan_from_the_catalog_is_the_plan_from_memory(catalog: Catalog) -> None:
    view = a_mixed_view()
    fill(catalog, view)
    policy = a_policy(teams=["vision", "nlp"])
    wanted = list(iter_batches(view.source(), policy, NOON))
    assert len(wanted) > 10
    assert list(iter_batches(CatalogDue(catalog, page=2), policy, NOON)) == wanted


def test_settled_originals_come_by_last_write_and_only_those_of_the_range(source: DueSource) -> None:
    found = list(source.iter_settled(VISION, after_ns=ago_ns("7d"), until_ns=ago_ns("24h")))
    assert len(found) == 7
    assert [c.id for c in found] == sorted(c.id for c in found)
    assert {c.original for c in found} == {"settled"}


def test_copied_originals_come_by_last_write_and_no_restored_one_is_among_them(source: DueSource) -> None:
    found = list(source.iter_copied(VISION, after_ns=None, until_ns=NOON_NS))
    assert [(NOON_NS - (c.last_write_ns or 0)) // (3600 * 10**9) for c in found] == [48, 5, 3]
    assert {(c.original, c.stay_until_ns) for c in found} == {("settled", None)}
    (archive,) = {c.archive_id for c in found}
    ((_, members),) = source.iter_members([archive or 0])
    assert [m.id for m in members] == sorted(c.id for c in found)


def test_a_range_excludes_its_lower_end_and_includes_its_upper_one(source: DueSource) -> None:
    at = ago_ns("2d")
    assert list(source.iter_settled(VISION, after_ns=at, until_ns=NOON_NS - 2 * 3600 * 10**9)) == []
    assert len(list(source.iter_settled(VISION, after_ns=at - 1, until_ns=at))) == 7


def test_an_expiring_segment_comes_once_whether_its_job_or_its_age_lets_it_go(source: DueSource) -> None:
    found = [c.id for c in _expiring(source, VISION, ago_ns("30d"), originals=True)]
    assert len(found) == len(set(found)) == 2


def test_archives_that_repeat_a_path_of_an_earlier_one_are_named(source: DueSource) -> None:
    archives = [archive.id for archive in source.iter_archives(VISION, TierName.WARM, until_ns=NOON_NS)]
    repeated = source.repeated_paths(archives)
    assert len(repeated) == 1
    assert source.repeated_paths([a for a in archives if a not in repeated]) == frozenset()


def test_an_archive_with_one_mark_over_brings_all_its_members(source: DueSource) -> None:
    first = next(iter(source.iter_marked_archives(now_ns=NOON_NS)))
    assert first.archive.team == "nlp"
    shared = [marks for marks in source.iter_marked_archives(now_ns=NOON_NS) if len(marks.members) == 2]
    assert [[member.marked_ns is None for member in marks.members] for marks in shared] == [[True, False]]


def test_archives_with_members_that_nobody_looked_through_come_by_id_with_what_is_lacking(source: DueSource) -> None:
    found = [each for pair in source.pairs() for each in source.iter_unextracted(pair, now_ns=NOON_NS)]
    assert len(found) == 3
    assert {each.archive.state for each in found} == {"live"}
    assert all(each.segments == 1 and each.logical_bytes == 2**20 for each in found)
    rested = [each for pair in source.pairs() for each in source.iter_unextracted(pair, now_ns=NOON_NS + 1)]
    assert len(rested) == len(found) + 1


def test_a_team_or_class_that_is_not_there_has_no_answers(source: DueSource) -> None:
    nobody = TeamClass("nobody", "nothing")
    assert list(source.iter_settled(nobody, after_ns=None, until_ns=NOON_NS)) == []
    assert list(source.iter_archives(nobody, TierName.WARM, until_ns=NOON_NS)) == []
    assert list(_expiring(source, nobody, None, originals=True)) == []


def test_an_empty_catalog_has_nothing_to_plan(catalog: Catalog) -> None:
    assert list(iter_batches(CatalogDue(catalog), a_policy(), NOON)) == []
    assert list(iter_batches(MemoryDue(()), a_policy(), NOON)) == []


def test_every_read_of_segments_goes_through_an_index(catalog: Catalog) -> None:
    """A scan of all segments or archives would cost what is catalogued, not what is due."""
    fill(catalog, a_mixed_view())
    with catalog.read() as conn:
        conn.exec_driver_sql("SELECT 1")
        engine = conn.engine
    asked: dict[str, Any] = {}

    def note(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        asked[statement] = parameters

    event.listen(engine, "before_cursor_execute", note)
    _answers(CatalogDue(catalog))
    CatalogDue(catalog).repeated_paths([archive.id for archive in a_mixed_view().archives])
    event.remove(engine, "before_cursor_execute", note)
    walks = []
    for statement, parameters in asked.items():
        with catalog.read() as conn:
            steps = [row[3] for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
        walks += [(step, statement) for step in steps if re.match(r"SCAN [sa]\b(?!.*ix_segments_(open|stay))", step)]
    assert len(asked) > 10
    assert walks == []


@pytest.mark.parametrize(
    ("question", "index"),
    [
        ("s.original = 'settled' AND s.archive_id IS NULL", "ix_segments_due"),
        ("s.tier IS NOT NULL AND s.last_write_ns IS NOT NULL", "ix_segments_live_age"),
        ("a.state = 'live' AND a.tier = ?", "ix_archives_due"),
        ("a.live_raw_bytes > 0 AND", "ix_archives_small"),
        ("s.original = 'settled' AND s.archive_id IS NOT NULL AND s.stay_until_ns IS NULL", "ix_segments_copied"),
    ],
)
def test_the_ranges_use_the_index_made_for_them(catalog: Catalog, question: str, index: str) -> None:
    fill(catalog, a_mixed_view())
    with catalog.read() as conn:
        engine = conn.engine
    asked: dict[str, Any] = {}

    def note(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if question in statement and "LIMIT" in statement and "job_id = ?" not in statement:
            asked[statement] = parameters

    event.listen(engine, "before_cursor_execute", note)
    _answers(CatalogDue(catalog, page=1))
    event.remove(engine, "before_cursor_execute", note)
    assert asked
    for statement, parameters in asked.items():
        with catalog.read() as conn:
            first = next(iter(conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)))
        assert f"USING INDEX {index} (" in first[3], (first, statement)


def test_planning_reads_only(tmp_path: Path) -> None:
    from lifecycle.catalog.store import create_catalog, open_catalog

    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    with create_catalog(url, now=NOON) as catalog:
        fill(catalog, a_mixed_view())
    before = (tmp_path / "catalog.db").read_bytes()
    with open_catalog(url, read_only=True) as catalog:
        assert list(iter_batches(CatalogDue(catalog), a_policy(), NOON))
    assert (tmp_path / "catalog.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if "lock" not in path.name] == ["catalog.db"]
