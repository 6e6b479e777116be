"""What reports ask of a catalog, and the audit made of it: every total is a sum of what is there (bug case B30)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from lifecycle.catalog.places import Finding, record_findings, set_place_state
from lifecycle.catalog.reporting import (
    DIMENSIONS,
    count_archives,
    count_for_audit,
    count_problems,
    count_unlooked,
    group_segments,
    newest_space,
)
from lifecycle.catalog.runs import Problem, SpaceSample, begin_run, end_run, record_problem, record_space
from lifecycle.catalog.store import Catalog, copy_for_preview
from lifecycle.catalog.usage import rebuild_rollups
from lifecycle.errors import Consequence, ExitCode, NothingFound
from lifecycle.model import Selector, TierName
from lifecycle.report.audit import AuditFilter, gather_audit, tier_usage
from lifecycle.report.figures import AuditReport
from lifecycle.report.history import fold_stored_run
from lifecycle.report.json import run_summary
from lifecycle.report.past import find_by_id, find_segments, iter_past
from lifecycle.report.summaries import read_problems, read_run
from lifecycle.report.text import render_text
from lifecycle.units import to_ns
from tests.builders import NOON, NOON_NS, a_policy
from tests.contract.catalog.rows import Rows
from tests.unit.report.figures_for_tests import a_run


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    """A private one: these queries do not ask how it was made, and migrations take longer than all of them."""
    with copy_for_preview(None, now=NOON) as made:
        yield made


@pytest.fixture
def filled(rows: Rows) -> Rows:
    archive = rows.archive()
    rows.segment(b"vision/train-1/a.log")
    rows.segment(b"vision/train-1/b.log", original="open")
    stored: dict[str, Any] = {"archive_id": archive, "stored_bytes": 450, "tier": "warm", "archive_offset": 512}
    rows.segment(b"vision/train-1/c.log", original="released", **stored)
    rows.segment(b"nlp/eval-3/d.log", team="nlp", job="eval-3", class_name="eval")
    rows.segment(b"nlp/eval-3/e.log", team="nlp", job="eval-3", class_name="eval", original="missing")
    rows.segment(b"nlp/eval-3/f.log", team="nlp", job="eval-3", class_name="eval", original="purged", tier=None)
    rows.segment(b"nlp/eval-3/g.log", team="nlp", job="eval-3", class_name="eval", last_write_ns=None)
    with rows.catalog.write() as conn:
        rebuild_rollups(conn)
    return rows


def audit(rows: Rows, only: AuditFilter | None = None) -> AuditReport:
    return gather_audit(rows.catalog, a_policy(), now=NOON, only=only or AuditFilter())


def ended_run(rows: Rows, exit_code: ExitCode, *, at: timedelta = timedelta(hours=-1), **report: Any) -> int:
    now_ns = to_ns(NOON + at)
    with rows.catalog.write() as conn:
        run_id = begin_run(conn, command="run", host="h", pid=1, now_ns=now_ns, started_ns=now_ns, policy_digest="9c")
        summary = run_summary(a_run(run_id=run_id, exit_code=exit_code, **report))
        end_run(conn, run_id, ended_ns=now_ns + 1, exit_code=exit_code, summary=summary)
    return run_id


# --- queries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_groups_add_up_to_all_that_is_not_gone(dimension: str, filled: Rows) -> None:
    with filled.catalog.read() as conn:
        groups = group_segments(conn, Selector(), dimension)
    assert sum(group.segments for group in groups) == 6
    assert sum(group.logical_bytes for group in groups) == 6 * 5000


def test_what_is_gone_is_grouped_when_its_state_is_asked_for(filled: Rows) -> None:
    with filled.catalog.read() as conn:
        [gone] = group_segments(conn, Selector(states=("purged",)), "tier")
    assert (gone.key, gone.segments) == (("gone",), 1)


def test_groups_of_a_job_say_what_is_open(filled: Rows) -> None:
    with filled.catalog.read() as conn:
        [group] = group_segments(conn, Selector(jobs=("train-*",), teams=("vision",)), "job")
        none = group_segments(conn, Selector(jobs=("nobody",)), "job")
    assert (group.key, group.segments, group.open_bytes, group.stored_bytes) == (
        ("vision", "train-1"), 3, 8192, 2 * 8192 + 450,
    )  # fmt: skip
    assert none == []


def test_counters_count_each_thing_once(filled: Rows) -> None:
    with filled.catalog.read() as conn:
        counted = count_for_audit(conn)
    assert (counted.open_segments, counted.open_bytes, counted.missing, counted.age_unknown) == (1, 8192, 1, 1)
    assert (counted.marked, counted.held, counted.unfinished_batches, counted.quarantined_archives) == (0, 0, 0, 0)


def test_archives_that_hold_something_are_counted_by_tier_and_team(filled: Rows) -> None:
    filled.archive("vision/gone.tar.zst", state="removed")
    filled.archive("vision/damaged.tar.zst", state="quarantined")
    with filled.catalog.read() as conn:
        assert count_archives(conn) == {TierName.WARM: 2}
        assert count_archives(conn, teams=["nlp"]) == {}


def test_the_newest_space_sample_of_each_place_counts(filled: Rows) -> None:
    for free in (50, 20):
        run_id = filled.run()
        sample = SpaceSample(place_id=filled.source.id, total_bytes=100, free_bytes=free, total_inodes=1, free_inodes=1)
        with filled.catalog.write() as conn:
            record_space(conn, run_id, NOON_NS, [sample])
    with filled.catalog.read() as conn:
        [space] = newest_space(conn)
    assert (space.tier, space.free_bytes) == (TierName.HOT, 20)
    [hot] = [tier for tier in audit(filled).tiers if tier.tier is TierName.HOT]
    assert (hot.fill, hot.free_bytes) == (0.8, 20)


def test_problems_are_counted_by_run(filled: Rows) -> None:
    first, second = filled.run(), filled.run()
    problem = Problem(phase="scan", subject="x", message="unreadable", consequence=Consequence.SKIP)
    with filled.catalog.write() as conn:
        record_problem(conn, first, problem)
        record_problem(conn, first, problem)
    with filled.catalog.read() as conn:
        assert count_problems(conn, [first, second]) == {first: 2}


# --- the audit --------------------------------------------------------------------------------------------------------


def test_team_rows_add_up_to_the_tiers_and_the_tiers_to_the_total(filled: Rows) -> None:
    report = audit(filled)
    for figure in ("segments", "logical_bytes", "stored_bytes"):
        teams = sum(getattr(row.usage, figure) for row in report.teams)
        tiers = sum(getattr(tier.usage, figure) for tier in report.tiers)
        assert teams == tiers == getattr(report.total.usage, figure)


def test_a_filter_by_team_leaves_only_that_team(filled: Rows) -> None:
    report = audit(filled, AuditFilter(teams=("nl*",)))
    assert {row.team for row in report.teams} == {"nlp"}
    assert (report.total.usage.segments, report.total.objects) == (3, 3)


def test_a_glob_s_bracket_is_a_bracket(filled: Rows) -> None:
    assert audit(filled, AuditFilter(teams=("[vn]*",))).total.usage.segments == 0


def test_what_is_stored_is_what_is_saved(filled: Rows) -> None:
    saved = audit(filled).saved
    assert (saved.stored_segments, saved.logical_bytes, saved.stored_bytes, saved.archives) == (1, 5000, 450, 1)


def test_usage_of_a_run_is_usage_of_the_audit(filled: Rows) -> None:
    by_tier = {tier.tier: tier.usage for tier in tier_usage(filled.catalog)}
    assert by_tier == {
        tier.tier: tier.usage for tier in audit(filled).tiers if tier.usage.segments or tier.tier in by_tier
    }


def test_what_was_purged_is_summed_over_thirty_days_of_runs(filled: Rows) -> None:
    ended_run(filled, ExitCode.DONE)
    ended_run(filled, ExitCode.DONE, at=timedelta(days=-29))
    ended_run(filled, ExitCode.DONE, at=timedelta(days=-31))
    assert audit(filled).saved.purged_segments == 2 * 6_120


def test_an_audit_before_the_first_run_says_so(filled: Rows) -> None:
    report = audit(filled)
    assert report.last_run is None and any("no run yet" in line.text for line in report.attention)


def test_the_last_good_run_is_not_the_failed_one(filled: Rows) -> None:
    good = ended_run(filled, ExitCode.DONE, at=timedelta(days=-3))
    failed = ended_run(filled, ExitCode.FAILED)
    report = audit(filled)
    assert report.last_run is not None and report.last_good_run is not None
    assert (report.last_run.run_id, report.last_good_run.run_id) == (failed, good)
    assert [line.subject for line in report.attention if line.is_urgent] == ["run", "run"]


def test_a_place_that_cannot_be_reached_is_the_first_line(filled: Rows) -> None:
    ended_run(filled, ExitCode.PARTIAL)
    with filled.catalog.write() as conn:
        set_place_state(conn, filled.source.id, "unreachable", "no marker")
    first = audit(filled).attention[0]
    assert (first.is_urgent, first.subject, first.text) == (True, "lustre", "unreachable: no marker")


def test_foreign_files_and_unlisted_teams_are_counted(filled: Rows) -> None:
    run_id = filled.run()
    with filled.catalog.write() as conn:
        found = [
            Finding(kind="foreign", detail="no layout claims it", files=7, size_bytes=70),
            Finding(kind="link", files=2),
        ]
        record_findings(conn, filled.source.id, run_id, found)
    report = gather_audit(filled.catalog, a_policy(teams=("vision",)), now=NOON)
    assert (report.counters.foreign, report.counters.foreign_bytes, report.counters.unlisted_teams) == (7, 70, 1)


# --- the past ---------------------------------------------------------------------------------------------------------


def test_a_run_of_the_past_is_shown_as_it_was(filled: Rows) -> None:
    stored = read_run(filled.catalog, ended_run(filled, ExitCode.PARTIAL))
    assert stored.report is not None and "308,397 of 308,400" in "\n".join(render_text(fold_stored_run(stored)))


def test_a_run_that_was_killed_says_that_it_did_not_end(filled: Rows) -> None:
    text = "\n".join(render_text(fold_stored_run(read_run(filled.catalog, filled.run()))))
    assert "it has not ended" in text


def test_what_ended_a_run_is_its_problem(filled: Rows) -> None:
    run_id = filled.run()
    with filled.catalog.write() as conn:
        end_run(conn, run_id, ended_ns=NOON_NS, exit_code=ExitCode.DAMAGE, summary={"error": "digest differs"})
    assert [line.message for line in read_problems(filled.catalog, run_id)] == ["digest differs"]


def test_segments_are_found_by_their_absolute_path(filled: Rows) -> None:
    [found] = find_segments(filled.catalog, b"/logs/lustre/vision/train-1/a.log")
    assert find_by_id(filled.catalog, found.id) == found
    assert [step.what for step in iter_past(filled.catalog, [found])] == ["first seen"]


@pytest.mark.parametrize(
    ("path", "why"),
    [(b"/elsewhere/a.log", "below no source"), (b"/logs/lustre", "below no source"),
     (b"/logs/lustrex/a.log", "below no source"),
     (b"/logs/lustre/vision/none.log", "not in the catalog")],
)  # fmt: skip
def test_a_path_that_is_not_found_says_what_may_be_why(path: bytes, why: str, filled: Rows) -> None:
    with pytest.raises(NothingFound, match=why):
        find_segments(filled.catalog, path)


def test_an_empty_catalog_makes_a_report(catalog: Catalog) -> None:
    report = gather_audit(catalog, a_policy(), now=NOON)
    assert (report.total.usage.segments, report.saved.stored_segments) == (0, 0)


def test_what_waits_to_be_looked_through_is_counted_from_its_own_index(filled: Rows) -> None:
    with filled.catalog.read() as conn:
        plan = conn.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT count(*) FROM segments s WHERE s.archive_id IS NOT NULL"
            " AND s.error_blocks IS NULL AND s.team_id = 1 AND s.class_id = 1"
        ).fetchall()
        assert count_unlooked(conn, [("nobody", "training")]) == {}
    assert any("ix_segments_unextracted" in row[3] for row in plan)
