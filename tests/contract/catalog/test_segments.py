"""Segments out of the catalog: pages, selectors, names as bytes, histories."""

from __future__ import annotations

import pytest

from lifecycle.catalog.bulk import chunks, insert_rows, insert_rows_returning_ids, select_in, update_rows, upsert_rows
from lifecycle.catalog.events import append_event
from lifecycle.catalog.segments import (
    archives_by_ids,
    count_segments,
    history_of,
    iter_members,
    iter_segments,
    segment_at,
    segments_by_ids,
)
from lifecycle.catalog.store import Catalog
from lifecycle.model import Content, Labels, Original, RuleRef, Selector, TierName
from tests.builders import NOON_NS, ago_ns
from tests.contract.catalog.rows import Rows


def selected(catalog: Catalog, selector: Selector, page: int = 2) -> list[int]:
    found = [segment.id for segment in iter_segments(catalog, selector, page=page)]
    assert count_segments(catalog, selector) == len(found)
    return found


def test_a_row_comes_back_as_the_value_it_was(catalog: Catalog, rows: Rows) -> None:
    labels = Labels(
        team="vision", job="train-1", node="gpu-1", rank=3, stream="stderr", attempt="2", extra=(("a", "b"),)
    )
    number = rows.segment(b"vision/train-1/rank_3.log", labels=labels, age="2d", set_aside_until_ns=5, problems=2)
    (segment,) = iter_segments(catalog, Selector())
    assert (segment.id, segment.path, segment.labels) == (number, b"vision/train-1/rank_3.log", labels)
    assert segment.class_rule == RuleRef(file="platform.yaml", line=12, text="training")
    assert (segment.content, segment.original, segment.tier) == (Content.TEXT, Original.SETTLED, TierName.HOT)
    assert (segment.identity.inode, segment.size_bytes, segment.identity.mtime_ns) == (1001, 5000, ago_ns("2d"))
    assert (segment.archive_id, segment.archive_tier, segment.marked_ns, segment.digest) == (None, None, None, None)
    assert (segment.set_aside_until_ns, segment.problems) == (5, 2)


@pytest.mark.parametrize(
    "name",
    [
        b"rank\xff.log",
        b"\xc0\xaf.log",
        b"a\nb.log",
        b"x" * 255,
        "日".encode() * 85,
        b"'; DROP TABLE segments; --",
        b"%s?",
    ],
)
def test_a_name_is_bytes_and_comes_back_as_it_was(catalog: Catalog, rows: Rows, name: bytes) -> None:
    number = rows.segment(b"vision/\xfe\xff/" + name)
    (segment,) = iter_segments(catalog, Selector())
    assert (segment.directory, segment.name) == (b"vision/\xfe\xff", name)
    assert selected(catalog, Selector(paths=(b"/logs/lustre/vision/\xfe\xff/" + name,))) == [number]


def test_a_file_in_the_root_itself_has_an_empty_directory(catalog: Catalog, rows: Rows) -> None:
    rows.segment(b"slurm-1.out")
    (segment,) = iter_segments(catalog, Selector())
    assert (segment.directory, segment.path) == (b"", b"slurm-1.out")


@pytest.mark.parametrize("page", [1, 2, 3, 7, 8, 100])
def test_pages_give_each_segment_once(catalog: Catalog, rows: Rows, page: int) -> None:
    ids = [rows.segment(b"vision/j/r%d.log" % n) for n in range(7)]
    assert selected(catalog, Selector(), page) == ids


def test_a_page_holds_no_lock_so_that_others_write_between_pages(catalog: Catalog, rows: Rows) -> None:
    for n in range(4):
        rows.segment(b"vision/j/r%d.log" % n)
    pages = iter_segments(catalog, Selector(), page=2)
    next(pages)
    rows.segment(b"vision/j/late.log")
    assert len(list(pages)) == 4


def test_each_filter_selects_what_it_names(catalog: Catalog, rows: Rows) -> None:
    archive = rows.archive()
    eval_job = Labels(team="nlp", job="eval-7", node="gpu-2", rank=1)
    a = rows.segment(b"v/a.log", age="10d")
    b = rows.segment(b"v/b.log", team="nlp", job="eval-7", class_name="eval", labels=eval_job, age="5d")
    c = rows.segment(b"v/c.log", age="2d", archive_id=archive, tier="warm", original="released", marked=1)
    for selector, expected in [
        (Selector(teams=("vision",)), [a, c]),
        (Selector(teams=("n*", "nobody")), [b]),
        (Selector(jobs=("eval-?",)), [b]),
        (Selector(jobs=("eval-?", "train-1")), [a, c, b]),  # by job, then id
        (Selector(teams=("vision",), jobs=("eval-7",)), []),
        (Selector(nodes=("gpu-*",)), [b]),
        (Selector(ranks=(1, 2)), [b]),
        (Selector(ranks=(0,)), [a, c]),
        (Selector(classes=("eval",)), [b]),
        (Selector(classes=("nothing",)), []),
        (Selector(tiers=(TierName.HOT,)), [a, b]),
        (Selector(states=("released",)), [c]),
        (Selector(states=("marked",)), [c]),
        (Selector(states=("stored", "settled")), [a, b, c]),
        (Selector(since_ns=ago_ns("5d")), [b, c]),
        (Selector(until_ns=ago_ns("5d")), [a]),
        (Selector(teams=("nlp",), ranks=(1,), classes=("eval",), since_ns=ago_ns("6d")), [b]),
    ]:
        assert selected(catalog, selector) == expected, selector


def test_a_glob_is_only_star_and_question_mark_and_minds_case(catalog: Catalog, rows: Rows) -> None:
    odd = rows.segment(b"v/a.log", job="a[1]*_%")
    rows.segment(b"v/b.log", job="a1")
    assert selected(catalog, Selector(jobs=("a[1]*",))) == [odd]
    assert selected(catalog, Selector(jobs=("a[1]?_%",))) == [odd]
    assert selected(catalog, Selector(jobs=("A*",))) == []
    assert selected(catalog, Selector(jobs=("a[1]",))) == []


def test_very_many_jobs_are_selected_in_one_pass(catalog: Catalog, rows: Rows) -> None:
    number = rows.segment(b"v/a.log", job="job-0500")
    with catalog.write() as conn:
        insert_rows(conn, "jobs", ("team_id", "name"), [(1, f"many-{n}") for n in range(1500)])
    assert selected(catalog, Selector(jobs=("many-*", "job-*"))) == [number]


def test_age_unknown_is_in_no_range_of_time(catalog: Catalog, rows: Rows) -> None:
    number = rows.segment(b"v/a.log", last_write_ns=None)
    assert selected(catalog, Selector()) == [number]
    assert selected(catalog, Selector(until_ns=NOON_NS)) == []


def test_a_path_finds_every_segment_that_had_it_the_present_one_first(catalog: Catalog, rows: Rows) -> None:
    oldest = rows.segment(b"v/a.log", original="replaced", tier=None)
    stored = rows.segment(b"v/a.log", original="released", tier="warm", archive_id=rows.archive())
    present = rows.segment(b"v/a.log", original="open")
    newest = rows.segment(b"v/a.log", original="purged", tier=None)
    rows.segment(b"v/b.log")
    with catalog.read() as conn:
        found = [segment.id for segment in segment_at(conn, rows.source.id, b"v/a.log")]
        assert segment_at(conn, rows.source.id, b"w/a.log") == []
        assert segment_at(conn, rows.warm.id, b"v/a.log") == []
    assert found == [present, newest, stored, oldest]


def test_looking_up_a_path_uses_indexes_only(catalog: Catalog) -> None:
    with catalog.read() as conn:
        plans = [
            row[3]
            for condition in ("original IN ('open', 'settled', 'missing')",
                              "original IN ('released', 'parked', 'lost', 'replaced', 'purged', 'unclaimed')")
            for row in conn.exec_driver_sql(
                f"EXPLAIN QUERY PLAN SELECT id FROM segments WHERE directory_id = 1 AND name = x'00' AND {condition}"
            )
        ]  # fmt: skip
    assert len(plans) == 2 and all("USING" in plan and "INDEX" in plan for plan in plans), plans


def test_every_state_of_an_original_is_in_one_of_the_two_indexes_by_path(catalog: Catalog, rows: Rows) -> None:
    for state in Original:
        rows.segment(b"v/%s.log" % state.value.encode(), original=state.value)
        with catalog.read() as conn:
            assert len(segment_at(conn, rows.source.id, b"v/%s.log" % state.value.encode())) == 1, state


def test_a_path_below_no_source_selects_nothing(catalog: Catalog, rows: Rows) -> None:
    rows.segment(b"v/a.log")
    assert selected(catalog, Selector(paths=(b"/elsewhere/v/a.log", b"/logs/lustr/v/a.log"))) == []


def test_ids_give_their_segments_in_the_order_asked(catalog: Catalog, rows: Rows) -> None:
    a, b = rows.segment(b"v/a.log"), rows.segment(b"v/b.log")
    with catalog.read() as conn:
        assert [segment.id for segment in segments_by_ids(conn, [b, 999, a])] == [b, a]


def test_members_of_an_archive_come_by_offset(catalog: Catalog, rows: Rows) -> None:
    archive = rows.archive()
    late = rows.segment(b"v/a.log", archive_id=archive, archive_offset=900)
    early = rows.segment(b"v/b.log", archive_id=archive, archive_offset=0)
    assert [member.id for member in iter_members(catalog, [archive], page=1)] == [early, late]
    with catalog.read() as conn:
        (value,) = archives_by_ids(conn, [archive, 77])
    assert (value.key, value.tier, value.team) == ("vision/a.tar.zst", TierName.WARM, "vision")


def test_the_history_of_a_segment_has_its_batches_and_their_events(catalog: Catalog, rows: Rows) -> None:
    segment, other = rows.segment(b"v/a.log"), rows.segment(b"v/b.log")
    batch = rows.batch([segment])
    rows.batch([other])
    with catalog.write() as conn:
        append_event(conn, place_id=rows.source.id, at_ns=NOON_NS, kind="merged", body={"n": 1}, batch_id=batch)
    with catalog.read() as conn:
        (touch,) = history_of(conn, segment)
    assert (touch.batch_id, touch.outcome, [event.kind for event in touch.events]) == (batch, "released", ["merged"])


def test_999_bound_values_are_enough_for_everything(catalog: Catalog, rows: Rows) -> None:
    with catalog.write() as conn:
        conn.connection.setlimit(9, 999)  # SQLITE_LIMIT_VARIABLE_NUMBER
        conn.connection.setlimit(9, 999)
        ids = insert_rows_returning_ids(conn, "teams", ("name",), [(f"t{n}",) for n in range(40_000)])
        assert len(list(select_in(conn, "SELECT id FROM teams WHERE id IN ({values})", ids))) == 40_000
        update_rows(conn, "teams", ("id",), ("name",), [(f"u{n}", n) for n in ids])
        assert segments_by_ids(conn, range(10**6, 10**6 + 3000)) == []
        assert conn.exec_driver_sql("SELECT count(*) FROM teams WHERE name LIKE 'u%'").scalar() == 40_000


def test_ids_that_are_reserved_follow_on_without_gaps(catalog: Catalog) -> None:
    with catalog.write() as conn:
        assert insert_rows_returning_ids(conn, "teams", ("name",), [("a",), ("b",)]) == range(1, 3)
        assert insert_rows_returning_ids(conn, "teams", ("name",), []) == range(3, 3)
        assert insert_rows_returning_ids(conn, "teams", ("name",), [("c",)]) == range(3, 4)
        names = [row[0] for row in conn.exec_driver_sql("SELECT name FROM teams ORDER BY id")]
    assert names == ["a", "b", "c"]


def test_an_upsert_inserts_or_sets(catalog: Catalog) -> None:
    with catalog.write() as conn:
        upsert_rows(conn, "catalog_facts", ("key",), ("value",), [("generation", "4"), ("new", "x")])
        found = {row[0]: row[1] for row in conn.exec_driver_sql("SELECT key, value FROM catalog_facts")}
    assert (found["generation"], found["new"]) == ("4", "x")


def test_chunks_keep_order_and_are_never_empty() -> None:
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(chunks([], 2)) == []
