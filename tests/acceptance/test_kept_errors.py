"""Errors kept, with the real command: from a job's traceback to its last day, and a catalog of an earlier version."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lifecycle.extract import parse
from tests.site import Site

TRACEBACK = b"""\
2026-03-01 10:00:01,000 ERROR train: step 301 failed
Traceback (most recent call last):
  File "train.py", line 88, in step
    loss.backward()
RuntimeError: CUDA error: device-side assert triggered
"""
FINE = b"2026-03-01 10:00:00,000 INFO train: 0 errors, grad_error=0.001\n"
LOG = FINE * 300 + TRACEBACK + FINE * 50
PATH = b"vision/job-1/rank_3.log"
SHOWN = "logs/vision/job-1/rank_3.log"
KEPT = "rank_3.log#errors"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write(PATH, LOG, days=1.2)
    site.write(b"vision/job-1/rank_0.log", FINE * 400, days=1.2)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    return site


def rows(site: Site, *arguments: str) -> list[dict[str, Any]]:
    done = site.run("ls", *arguments, "--json", code=None)
    return list(json.loads(done.stdout)["rows"]) if done.returncode == 0 else []


def kept(site: Site) -> list[tuple[str, str]]:
    return [(row["name"], row["tier"]) for row in rows(site, "--class", "error")]


def restored(site: Site, into: str) -> bytes:
    site("restore", "--class", "error", "--to", into)
    return (site.folder / into / "logs/vision/job-1" / KEPT).read_bytes()


def test_the_traceback_of_a_job_outlives_its_log_for_ninety_days(site: Site) -> None:
    site("run", "--now", "+2h")
    assert kept(site) == [(KEPT, "warm")]
    assert "1 error block kept in segment 3 (rank_3.log#errors, class error, warm), until" in site("explain", SHOWN)
    assert "errors   looked through, none found" in site("explain", "logs/vision/job-1/rank_0.log")
    site("run", "--now", "+8d")
    assert kept(site) == [(KEPT, "cold")]
    site("run", "--now", "+32d")
    site("run", "--now", "+36d")
    assert [row["name"] for row in rows(site)] == [KEPT]
    explained = site("explain", f"{SHOWN}#errors")
    assert "errors of  segment 2 · " in explained and "which is gone" in explained
    text = restored(site, "back")
    (block,) = parse(text)[0].blocks
    assert TRACEBACK in block.text and block.first_line == 298
    assert b"\n304:    loss.backward()\n305:RuntimeError: CUDA error" in text
    assert parse(text)[1].size_bytes == len(LOG)
    site("run", "--now", "+80d")
    assert kept(site) == [(KEPT, "cold")]
    site("run", "--now", "+92d")
    site("run", "--now", "+96d")
    assert rows(site) == []
    assert list((site.folder / "tiers").rglob("*.zst")) == []


def test_the_plan_says_what_it_waits_for_and_a_run_of_that_alone_does_it(site: Site) -> None:
    site.edit_policy("    expire_from: job ", "    keep_errors_as: none\n    expire_from: job ")
    for after in ("+2h", "+8d"):
        site("run", "--now", after)
    assert rows(site, "--class", "error") == []
    site.edit_policy("    keep_errors_as: none\n", "    keep_errors_as: error\n")
    plan = site("plan", "--now", "+35d")
    assert re.search(r"extract +training +vision +2 .* cold +its error lines are not kept as error yet", plan)
    assert re.search(r"kept +training +vision +2 .* its error lines are not kept as error yet", plan)
    assert not re.search(r"^mark ", plan, re.M)
    assert "extract errors" in site("explain", SHOWN, "--now", "+35d")
    done = site("run", "--now", "+35d", "--only", "extract")
    assert re.search(r"extract +2 in cold looked through, .*: errors kept in ", done)
    assert kept(site) == [(KEPT, "cold")]
    assert "mark " in site("run", "--now", "+35d")
    assert "extracted" in site("history", SHOWN)


def test_a_plan_file_can_hold_it(site: Site) -> None:
    site.edit_policy("    expire_from: job ", "    keep_errors_as: none\n    expire_from: job ")
    site("run", "--now", "+2h")
    site.edit_policy("    keep_errors_as: none\n", "")
    site("plan", "--now", "+4h", "--out", "plan.json")
    assert "extract" in site("run", "--plan", "plan.json", "--now", "+4h")
    assert kept(site) == [(KEPT, "warm")]
    assert "done already" in site("run", "--plan", "plan.json", "--now", "+4h")


def test_a_damaged_rotation_is_told_and_never_goes(site: Site) -> None:
    import gzip

    site.write(b"vision/job-2/rank_1.log.1.gz", gzip.compress(LOG)[:-9], days=1.2)
    done = site.run("run", "--now", "+2h", code=3)
    assert "rank_1.log.1.gz: errors not kept: gzip ends too early" in done.stdout
    explained = site("explain", "logs/vision/job-2/rank_1.log.1.gz")
    assert "kept back: set aside after failures" in explained
    assert "no   its errors are kept" in explained
    for after in ("+8d", "+40d", "+60d"):
        site.run("run", "--now", after, code=None)
    assert "rank_1.log.1.gz" in {row["name"] for row in rows(site)}


def test_the_audit_counts_what_is_kept_and_what_waits(site: Site) -> None:
    import gzip

    site.write(b"nlp/job-2/rank_1.log.1.gz", gzip.compress(LOG)[:-9], days=1.2)
    site.run("run", "--now", "+2h", code=3)
    audit = site("audit")
    assert "1 segment could not be looked through for errors: kept until they can be" in audit
    section = json.loads(site("audit", "--section", "errors", "--json"))["errors"]
    rows = {row["team"]: row for row in section}
    assert set(rows) == {"nlp", "vision"}
    figures = ("class_name", "kept_as", "stored", "waiting", "unreadable", "companions", "error_blocks")
    assert [rows["nlp"][key] for key in figures] == ["training", "error", 1, 1, 1, 0, 0]
    assert [rows["vision"][key] for key in figures] == ["training", "error", 2, 0, 0, 1, 1]
    assert rows["vision"]["kept_bytes"] > 0 and rows["vision"]["rule"] == "platform.yaml:60"
    prometheus = site("audit", "--format", "prometheus")
    assert 'lifecycle_errors_waiting_segments{team="nlp",class="training"} 1' in prometheus
    assert 'lifecycle_errors_unreadable_segments{team="vision",class="training"} 0' in prometheus
    assert "nlp,training,error,1,1," in site("audit", "--section", "errors", "--format", "csv")
    assert [
        row["team"] for row in json.loads(site("audit", "--section", "errors", "--team", "vision", "--json"))["errors"]
    ] == ["vision"]


def test_ls_knows_companions_and_what_nobody_looked_through(site: Site) -> None:
    site.write(b"nlp/job-2/error_1.log", b"an error log of its own\n", days=1.2)
    site("run", "--now", "+2h")
    assert [(row["name"], row["state"]) for row in rows(site, "--state", "companion")] == [(KEPT, "companion")]
    assert [row["name"] for row in rows(site, "--state", "unlooked")] == ["error_1.log"]  # its class keeps none


def test_a_policy_that_cannot_keep_them_is_refused(site: Site) -> None:
    site.edit_policy("    expire_from: job ", "    keep_errors_as: errors\n    expire_from: job ")
    said = site.run("policy", "check", code=2)
    assert "keep_errors_as errors: no such class" in said.stderr + said.stdout
    assert "did you mean 'error'" in said.stderr + said.stdout


def test_policy_show_and_explain_say_what_counts(site: Site) -> None:
    assert re.search(r"\*  +training +24h .* job +error +all the rest", site("policy", "show"))
    assert "keep_errors_as" in site("policy", "explain", SHOWN)
    assert '"keep_errors_as"' in site("policy", "schema")


def test_a_catalog_of_the_first_schema_is_looked_through_before_anything_goes(site: Site) -> None:
    """As an earlier version left it: archives, and nothing that says what is in them."""
    site.edit_policy("    expire_from: job ", "    keep_errors_as: none\n    expire_from: job ")
    site("run", "--now", "+2h")
    site.edit_policy("    keep_errors_as: none\n", "")
    catalog = site.folder / "policies/catalog.db"
    downgrade(catalog)
    site.run("run", "--now", "+35d", code=2)
    assert "0002" in site("catalog", "upgrade")
    done = site("run", "--now", "+35d")
    assert re.search(r"extract +2 in warm looked through", done) and "mark " not in done
    assert kept(site) == [(KEPT, "cold")] or kept(site) == [(KEPT, "warm")]
    for after in ("+36d", "+37d", "+41d"):
        site("run", "--now", after)
    assert [row["name"] for row in rows(site)] == [KEPT]
    assert TRACEBACK.splitlines()[-1] in restored(site, "back")


def downgrade(catalog: Path) -> None:
    """The tables as revision 0001 has them, with the rows that are there."""
    from lifecycle.catalog.upgrade import build_schema

    old = catalog.with_name("old.db")
    old.touch()
    build_schema(old, revision="0001")
    with sqlite3.connect(old) as connection:
        connection.execute("ATTACH ? AS new", (str(catalog),))
        tables = [row[0] for row in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")]
            connection.execute(f"DELETE FROM main.{table}")
            if table != "alembic_version":
                names = ", ".join(columns)
                connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM new.{table}")
        connection.execute("INSERT INTO main.alembic_version VALUES ('0001')")
    connection.close()
    shutil.move(old, catalog)
