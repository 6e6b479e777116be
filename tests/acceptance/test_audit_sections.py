"""The audit's deeper sections, and its figures for Prometheus."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from tests.site import Site

SAMPLE = re.compile(r'lifecycle_[a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*\})? -?[0-9.e+]+\Z')


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    for rank in range(6):
        site.write(b"vision/old/rank_%d.log" % rank, b"line\n" * 400, days=40)
    for rank in range(48):
        site.write(b"vision/new/rank_%d.log" % rank, b"line\n" * 800, days=1)
    site.write(b'nlp/we"ird\\job/eval_1.log', b"acc 1\n", days=9)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site("run", "--only", "mark")  # seen; nothing is moved yet
    return site


def table(site: Site, section: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(site("audit", "--section", section, "--format", "csv"))))


def test_retention_shows_the_oldest_beside_what_policy_asks_for(site: Site) -> None:
    rows = {(row["team"], row["class"]): row for row in table(site, "retention")}
    old = rows["vision", "training"]
    assert (old["expire_after"], old["past_segments"]) == ("30d", "6") and 40 <= int(old["oldest_age_days"]) <= 41
    assert "platform.yaml:" in old["rule"]
    assert (rows["nlp", "eval"]["expire_after"], rows["nlp", "eval"]["past_segments"]) == ("7d", "1")


def test_pressure_shows_what_was_written_and_how_small(site: Site) -> None:
    (vision,) = [row for row in table(site, "pressure") if row["team"] == "vision"]
    assert (vision["hot_files"], vision["files_per_job"], vision["files_per_hour"]) == ("54", "27.0", "2.0")
    assert float(vision["bytes_per_hour"]) == 48 * 4000 / 24
    assert int(vision["mean_bytes"]) == (48 * 4000 + 6 * 2000) // 54


def test_the_fullest_folders_come_first(site: Site) -> None:
    rows = table(site, "folders")
    assert [(row["path"], row["files"]) for row in rows][:2] == [("vision/new", "48"), ("vision/old", "6")]


def test_prometheus_gets_every_figure_once_and_any_name(site: Site) -> None:
    site("run", "--now", "+2h")
    site("audit", "--format", "prometheus", "--out", "lifecycle.prom")
    lines = (site.folder / "lifecycle.prom").read_text(encoding="utf-8").splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert [line for line in samples if not SAMPLE.match(line)] == []
    names = [line.split("{")[0].split(" ")[0] for line in samples]
    helped = [line.split()[2] for line in lines if line.startswith("# HELP")]
    assert list(dict.fromkeys(names)) == helped and len(set(helped)) == len(helped)
    assert len({line.rpartition(" ")[0] for line in samples}) == len(samples)
    total = json.loads(site("audit", "--json"))["total"]["usage"]
    sums = sum(int(line.rpartition(" ")[2]) for line in samples if line.startswith("lifecycle_segments{"))
    assert sums == total["segments"]
    assert "lifecycle_last_run_exit_code 0" in samples
