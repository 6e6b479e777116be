"""The sizing sheet by the real command, from figures and from a catalog."""

from __future__ import annotations

import json
from pathlib import Path

from tests.site import Site


def test_the_sheet_shows_what_it_assumes_and_needs_no_catalog(tmp_path: Path) -> None:
    sheet = Site(tmp_path)("estimate")
    for words in ("GPUs of a job", "jobs a day", "compressed to", "480 GB raw, 100–150 GB compressed", "3–4.5 TB"):
        assert words in sheet


def test_a_figure_that_was_given_counts(tmp_path: Path) -> None:
    site = Site(tmp_path)
    found = json.loads(site("estimate", "--gpus", "8", "--rate", "1GB", "--hours", "10", "--ratio", "10%", "--json"))
    assert found["job_raw_bytes"] == 80e9 and found["job_stored_bytes"] == {"low": 8e9, "high": 8e9}
    assert "as --rate 200MB" in site.run("estimate", "--rate", "200", code=2).stderr
    assert "cold_after must be above" in site.run("estimate", "--cold-after", "1h", code=2).stderr


def test_rates_and_ratios_are_measured_from_a_team_or_a_job(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for job, day in (("a", 3.0), ("b", 2.0)):
        for rank in range(4):
            site.write(b"nlp/%s/rank_%d.log" % (job.encode(), rank), b"loss 1.25\n" * 100_000, days=day)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site("run", "--now", "+2h")
    found = json.loads(site("estimate", "--from", "nlp", "--json"))["assumptions"]
    assert (found["gpus"], found["jobs_per_day"], found["files_per_gpu"]) == (4, 1.0, 1.0)
    assert found["bytes_per_gpu_hour"] * found["job_hours"] == 1e6 and 0 < found["ratio"]["high"] < 0.05
    assert "of nlp/a: 1 jobs in 1 days, measured" in site("estimate", "--from", "nlp/a")
    assert "nothing of speech is known" in site.run("estimate", "--from", "speech", code=8).stderr
