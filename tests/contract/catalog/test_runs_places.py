"""Runs with their problems and samples; places with their state and findings."""

from __future__ import annotations

from lifecycle.catalog.places import (
    Finding,
    ensure_place,
    find_place,
    findings,
    place_by_id,
    places,
    record_findings,
    record_scan,
    set_marker_generation,
    set_place_state,
)
from lifecycle.catalog.runs import (
    Problem,
    SpaceSample,
    begin_run,
    end_run,
    latest_space,
    list_runs,
    policy_files,
    problems_of,
    record_policy,
    record_problems,
    record_samples,
    record_space,
    run_by_id,
)
from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import rebuild_rollups
from lifecycle.errors import Consequence
from lifecycle.model import PlaceKind, TierName
from tests.builders import NOON_NS
from tests.contract.catalog.rows import Rows


def test_a_run_is_found_again_with_its_end_and_summary(catalog: Catalog) -> None:
    with catalog.write() as conn:
        ids = [
            begin_run(conn, command="run", host="h", pid=n, now_ns=n, started_ns=n, policy_digest="9c41e7")
            for n in (1, 2, 3)
        ]
        end_run(conn, ids[0], ended_ns=9, exit_code=3, summary={"b": 1, "a": [2]})
        listed = list_runs(conn, limit=2)
        first = run_by_id(conn, ids[0])
        assert [run.id for run in listed] == [ids[2], ids[1]]
        assert [run.id for run in list_runs(conn, before_id=ids[1])] == [ids[0]]
        assert run_by_id(conn, 99) is None
    assert first is not None
    assert (first.ended_ns, first.exit_code, first.summary, first.pid) == (9, 3, {"a": [2], "b": 1}, 1)
    assert listed[0].ended_ns is None


def test_the_catalogs_clock_only_goes_forward(catalog: Catalog) -> None:
    with catalog.write() as conn:
        for now_ns in (NOON_NS, 9, NOON_NS + 5, 10**18):
            begin_run(conn, command="run", host="h", pid=1, now_ns=now_ns, started_ns=now_ns)
    assert catalog.facts().clock_ns == NOON_NS + 5


def test_problems_keep_their_order_and_consequence(catalog: Catalog, rows: Rows) -> None:
    found = [
        Problem(
            phase="scan", subject="v/b", message="unreadable", consequence=Consequence.SKIP, place_id=rows.source.id
        ),
        Problem(phase="execute", subject="v/a", message="changed", consequence=Consequence.RETRY),
    ]
    run = rows.run()
    with catalog.write() as conn:
        record_problems(conn, run, found)
        assert problems_of(conn, run) == found
        assert problems_of(conn, run + 1) == []


def test_a_policy_is_kept_once_under_its_digest(catalog: Catalog, rows: Rows) -> None:
    run = rows.run()
    with catalog.write() as conn:
        record_policy(conn, "d1", [("platform.yaml", "a: 1\n"), ("teams/v.yaml", "")], now_ns=1, run_id=run)
        record_policy(conn, "d1", [("other.yaml", "x")], now_ns=2, run_id=run)
        assert policy_files(conn, "d1") == (("platform.yaml", "a: 1\n"), ("teams/v.yaml", ""))
        assert policy_files(conn, "d2") == ()


def test_usage_is_sampled_per_team_class_and_tier_once_a_run(catalog: Catalog, rows: Rows) -> None:
    rows.segment(b"v/a.log", age="2d")
    rows.segment(b"v/b.log", age="9d")
    run = rows.run()
    with catalog.write() as conn:
        rebuild_rollups(conn)
        record_samples(conn, run, NOON_NS)
        record_samples(conn, run, NOON_NS + 1)
        found = conn.exec_driver_sql(
            "SELECT tier, at_ns, segments, logical_bytes, stored_bytes FROM usage_samples"
        ).all()
    assert [tuple(row) for row in found] == [("hot", NOON_NS + 1, 2, 10_000, 16_384)]


def test_the_latest_space_of_each_place_counts(catalog: Catalog, rows: Rows) -> None:
    def sample(place_id: int, free: int) -> SpaceSample:
        return SpaceSample(place_id=place_id, total_bytes=100, free_bytes=free, total_inodes=10, free_inodes=5)

    first, second = rows.run(), rows.run()
    with catalog.write() as conn:
        record_space(conn, first, 1, [sample(rows.source.id, 50), sample(rows.warm.id, 60)])
        record_space(conn, second, 2, [sample(rows.source.id, 40)])
        assert [(s.place_id, s.free_bytes, s.at_ns) for s in latest_space(conn)] == [
            (rows.source.id, 40, 2),
            (rows.warm.id, 60, 1),
        ]


def test_a_place_is_made_once_and_keeps_its_uid(catalog: Catalog) -> None:
    def ensure(host: str = "", root: str = "/logs", uid: str = "u1") -> tuple[int, str, str]:
        with catalog.write() as conn:
            place = ensure_place(
                conn, kind=PlaceKind.SOURCE, name="nvme", host=host, root=root, tier=TierName.HOT, uid=uid
            )
        return place.id, place.root, place.uid

    assert ensure() == ensure() == (1, "/logs", "u1")
    assert ensure(root="/moved", uid="u2") == (1, "/moved", "u1")
    assert ensure(host="node-7", uid="u3") == (2, "/logs", "u3")
    with catalog.read() as conn:
        assert [place.host for place in places(conn)] == ["", "node-7"]
        assert find_place(conn, PlaceKind.TIER, "nvme", "") is None


def test_a_scan_that_did_not_see_everything_says_nothing_of_how_many_files_there_are(
    catalog: Catalog, rows: Rows
) -> None:
    with catalog.write() as conn:
        record_scan(conn, rows.source.id, ended_ns=5, files_seen=100, complete=True)
        record_scan(conn, rows.source.id, ended_ns=6, files_seen=3, complete=False)
        set_place_state(conn, rows.source.id, "shrunken", "97 of 100 files are gone")
        set_marker_generation(conn, rows.source.id, 4)
        place = place_by_id(conn, rows.source.id)
    assert (place.scanned_ns, place.complete_scan_ns, place.files_seen) == (6, 5, 100)
    assert (place.state, place.state_text, place.generation) == ("shrunken", "97 of 100 files are gone", 4)


def test_findings_of_a_scan_replace_those_of_the_one_before(catalog: Catalog, rows: Rows) -> None:
    run = rows.run()
    foreign = Finding(kind="foreign", detail="no layout", files=2, size_bytes=10, example="a.bin")
    with catalog.write() as conn:
        record_findings(conn, rows.source.id, run, [Finding(kind="link", files=9)])
        record_findings(conn, rows.warm.id, run, [Finding(kind="unseen", files=1)])
        record_findings(conn, rows.source.id, run, [foreign, foreign, Finding(kind="special", files=7)])
        found = [(f.kind, f.files, f.size_bytes, f.example) for f in findings(conn, rows.source.id)]
        assert len(findings(conn)) == 3
    assert found == [("special", 7, 0, ""), ("foreign", 4, 20, "a.bin")]
