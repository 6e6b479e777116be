"""The benchmark's catalog is a sound one: its books balance, and exactly what it says is due."""

from __future__ import annotations

from benchmarks.fill_catalog import DUE, fill
from lifecycle.catalog.store import Catalog, copy_for_preview
from lifecycle.catalog.usage import recount, rollups
from lifecycle.units import DAY_NS, to_ns
from tests.builders import NOON, NOON_NS


def scalar(catalog: Catalog, sql: str) -> int:
    with catalog.read() as conn:
        return int(conn.exec_driver_sql(sql).scalar_one())


OLD = f"{NOON_NS} - last_write_ns >= {DAY_NS}"
UNBALANCED = """
    SELECT count(*) FROM (
        SELECT a.id FROM archives a LEFT JOIN segments s ON s.archive_id = a.id GROUP BY a.id
        HAVING count(s.id) <> a.live_members OR max(s.last_write_ns) <> a.newest_write_ns
        OR sum(s.size_bytes) <> a.live_raw_bytes)"""
DUE_FOR_WARM = f"SELECT count(*) FROM segments WHERE original = 'settled' AND archive_id IS NULL AND {OLD}"
DUE_FOR_COLD = f"""
    SELECT count(*) FROM archives WHERE tier = 'warm' AND class_id <> 2
    AND {NOON_NS} - newest_write_ns >= {7 * DAY_NS}"""
DUE_FOR_MARK = f"""
    SELECT count(*) FROM segments s JOIN jobs j ON j.id = s.job_id WHERE s.marked = 0
    AND {NOON_NS} - CASE s.class_id WHEN 3 THEN j.last_write_ns ELSE s.last_write_ns END
    >= CASE s.class_id WHEN 1 THEN 90 WHEN 2 THEN 7 ELSE 30 END * {DAY_NS}"""


def test_a_filled_catalog_is_in_steady_state() -> None:
    with copy_for_preview(None, now=NOON) as catalog:
        fill(catalog, 60_000, now=NOON, seed=7)
        catalog.check()
        assert scalar(catalog, "SELECT count(*) FROM segments") == 60_000
        assert scalar(catalog, DUE_FOR_WARM) == DUE
        assert scalar(catalog, DUE_FOR_COLD) == 0
        assert scalar(catalog, DUE_FOR_MARK) == 0
        assert scalar(catalog, f"SELECT count(*) FROM segments WHERE original = 'open' AND {OLD}") == 0
        marked = scalar(catalog, "SELECT count(*) FROM segments WHERE marked = 1")
        assert 0 < marked == scalar(catalog, "SELECT count(*) FROM marks")
        assert scalar(catalog, f"SELECT count(*) FROM marks WHERE purge_after_ns <= {NOON_NS}") == 0
        assert scalar(catalog, UNBALANCED) == 0
        with catalog.read() as conn:
            assert conn.exec_driver_sql("PRAGMA foreign_key_check").all() == []
            assert recount(conn) == rollups(conn)


def test_the_same_seed_fills_the_same_rows() -> None:
    found = []
    for seed in (1, 1, 2):
        with copy_for_preview(None, now=NOON) as catalog:
            fill(catalog, 4000, now=NOON, seed=seed)
            with catalog.read() as conn:
                found.append(conn.exec_driver_sql("SELECT * FROM segments ORDER BY id").all())
    assert found[0] == found[1] != found[2]
    assert to_ns(NOON) == NOON_NS
