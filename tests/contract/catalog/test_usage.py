"""Usage: the kept sums are what a recount gives, and never negative."""

from __future__ import annotations

import pytest

from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import RollupDeltas, rebuild_rollups, recount, rollups, usage_by
from lifecycle.errors import Damaged
from lifecycle.model import TierName, Usage
from tests.contract.catalog.rows import Rows


@pytest.fixture
def filled(rows: Rows) -> Rows:
    """Two in hot, one of them open; one stored only; one stored with its original there; one gone; one missing."""
    archive = rows.archive()
    rows.segment(b"v/a.log")
    rows.segment(b"v/b.log", original="open", team="nlp")
    rows.segment(b"v/c.log", original="released", tier="warm", archive_id=archive, stored_bytes=700)
    rows.segment(b"v/d.log", archive_id=archive, stored_bytes=200)
    rows.segment(b"v/e.log", original="purged", tier=None)
    rows.segment(b"v/f.log", original="missing", age="3d")
    return rows


def test_hot_counts_originals_and_the_others_count_copies(catalog: Catalog, filled: Rows) -> None:
    with catalog.write() as conn:
        rebuild_rollups(conn)
    with catalog.read() as conn:
        by_tier = {row.tier: row.usage for row in usage_by(conn, "tier")}
    assert by_tier == {
        TierName.HOT: Usage(segments=4, logical_bytes=20_000, stored_bytes=4 * 8192),
        TierName.WARM: Usage(segments=2, logical_bytes=10_000, stored_bytes=900),
    }


def test_parts_add_up_to_the_total_whatever_the_dimensions(catalog: Catalog, filled: Rows) -> None:
    with catalog.write() as conn:
        rebuild_rollups(conn)
        (total,) = usage_by(conn)
        for dimensions in (("team",), ("class_name", "tier"), ("day",), ("team", "class_name", "tier", "day")):
            assert sum((row.usage for row in usage_by(conn, *dimensions)), Usage()) == total.usage
        teams = [row.team for row in usage_by(conn, "team")]
    assert (total.team, teams) == (None, ["nlp", "vision"])


def test_an_empty_catalog_uses_nothing(catalog: Catalog) -> None:
    with catalog.read() as conn:
        assert [row.usage for row in usage_by(conn)] == [Usage()]
        assert usage_by(conn, "team") == []


def test_deltas_add_up_in_any_order_and_zero_sums_go(catalog: Catalog, filled: Rows) -> None:
    deltas = RollupDeltas()
    with catalog.write() as conn:
        deltas.add(1, 1, TierName.HOT, 20_000, -1, -10, -20)  # what leaves is told before what comes
        deltas.add(1, 1, "hot", 20_000, 3, 30, 60)
        deltas.add(1, 1, "cold", 20_000, 1, 5, 5)
        deltas.apply(conn)
        deltas.apply(conn)  # nothing is left to apply
        assert rollups(conn)[(1, 1, "hot", 20_000)] == Usage(segments=2, logical_bytes=20, stored_bytes=40)
        deltas.add(1, 1, TierName.HOT, 20_000, -2, -20, -40)
        deltas.apply(conn)
        assert set(rollups(conn)) == {(1, 1, "cold", 20_000)}


@pytest.mark.parametrize("delta", [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (-2, -10, -10), (-1, -5, -5)])
def test_a_sum_below_zero_is_damage_and_nothing_is_written(
    catalog: Catalog, rows: Rows, delta: tuple[int, int, int]
) -> None:
    rows.segment()
    with catalog.write() as conn:
        deltas = RollupDeltas()
        deltas.add(1, 1, "warm", 20_000, 1, 5, 4)
        deltas.apply(conn)
    with pytest.raises(Damaged, match="would be"), catalog.write() as conn:
        deltas.add(1, 1, "warm", 20_000, *delta)
        deltas.apply(conn)
        if delta in ((0, -1, 0), (0, 0, -1)):
            deltas.add(1, 1, "warm", 20_000, 0, -9, -9)
            deltas.apply(conn)
    with catalog.read() as conn:
        assert rollups(conn) == {(1, 1, "warm", 20_000): Usage(segments=1, logical_bytes=5, stored_bytes=4)}


def test_a_recount_finds_what_the_kept_sums_miss(catalog: Catalog, filled: Rows) -> None:
    with catalog.write() as conn:
        rebuild_rollups(conn)
        assert recount(conn) == rollups(conn)
        conn.exec_driver_sql("UPDATE segments SET size_bytes = size_bytes + 1 WHERE name = x'612e6c6f67'")
        assert recount(conn) != rollups(conn)
