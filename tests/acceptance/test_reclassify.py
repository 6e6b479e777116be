"""Policy's class rules change while the catalog is full: what is known is judged again before anything goes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.site import Site

ERRORS = '["error/", "errors/", "error*.log", "error.json"]'
WIDER = '["error/", "errors/", "error*.log", "error.json", "grad*.log"]'
NARROWER = '["errors/"]'
GRAD = b"vision/job-1/grad_overflow.log"
ERROR = b"vision/job-1/error_3.log"
PLAIN = b"vision/job-1/rank_0.log"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    for path, days in ((GRAD, 40), (ERROR, 40), (PLAIN, 45)):  # of two days: no archive has members of both
        site.write(path, path + b"\n" + b"a line\n" * 300, days=days)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site("run", "--now", "+2h")
    return site


def classes(site: Site) -> dict[str, str]:
    """Name to class of what is still readable."""
    rows = json.loads(site("ls", "--json", code=0))["rows"]
    return {row["path"].rpartition("/")[2]: row["class"] for row in rows if row["tier"]}


def restored(site: Site, into: str) -> set[str]:
    site("restore", "--all", "--to", into)
    return {file.name for file in (site.folder / into).rglob("*") if file.is_file()}


def test_a_marked_segment_that_becomes_error_is_unmarked_and_kept(site: Site) -> None:
    assert "mark" in site("run", "--now", "+2d")
    site.edit_policy(ERRORS, WIDER)
    site("run", "--now", "+6d")
    assert classes(site) == {"grad_overflow.log": "error", "error_3.log": "error"}
    assert restored(site, "back") == {"grad_overflow.log", "error_3.log"}


def test_a_class_that_keeps_shorter_waits_until_it_is_accepted(site: Site) -> None:
    site.edit_policy(ERRORS, NARROWER)
    plan = site("plan", "--now", "+2d")
    assert re.search(r"kept as they are: vision: 1 segment .* of class error, which policy now calls training", plan)
    digest = re.search(r"lifecycle policy accept (\w{6}) ", plan)
    assert digest is not None
    site("run", "--now", "+2d")
    site("run", "--now", "+20d")
    assert classes(site) == {"error_3.log": "error"}
    assert "which policy now calls training" in site("audit")
    assert "training once that is accepted" in site("explain", "logs/" + ERROR.decode())

    site("policy", "accept", "0123456", "--reason", "a typo", code=2)
    accepted = site("policy", "accept", digest[1], "--reason", "those are no errors", "--by", "chen")
    assert "1 segment" in accepted and "chen: those are no errors" in accepted
    site("run", "--now", "+21d")
    assert classes(site) == {"error_3.log": "training"}
    site("run", "--now", "+22d")  # as training it is looked through for errors before it is marked
    site("run", "--now", "+26d")
    site("ls", code=8)


def test_nothing_waits_once_the_policy_says_again_what_it_said(site: Site) -> None:
    site.edit_policy(ERRORS, NARROWER)
    site("run", "--now", "+2d")
    site.edit_policy(NARROWER, ERRORS)
    site("run", "--now", "+3d")
    assert "which policy now calls" not in site("audit")
    assert classes(site)["error_3.log"] == "error"


def test_what_no_layout_claims_any_more_is_left_where_it_is(site: Site) -> None:
    path = b"vision/job-2/debug_trace.log"
    site.write(path, b"trace\n" * 100, days=20)
    site("run", "--now", "+3h", "--only", "mark")  # seen, and not moved
    site.edit_policy('exclude: ["checkpoints/"]', 'exclude: ["checkpoints/", "debug_*.log"]')
    site("run", "--now", "+4h")
    site("run", "--now", "+90d")
    assert Path(site.folder / "logs" / path.decode()).read_bytes() == b"trace\n" * 100
    assert "debug_trace.log" not in classes(site)


def test_a_folder_excluded_later_is_left_where_it_is_and_comes_back_as_new(site: Site) -> None:
    path = b"vision/job-3/raw/rank_0.log"
    site.write(path, b"raw\n" * 100, days=20)
    site("run", "--now", "+3h", "--only", "mark")
    site.edit_policy('exclude: ["checkpoints/"]', 'exclude: ["checkpoints/", "raw/"]')
    site("run", "--now", "+90d")
    assert Path(site.folder / "logs" / path.decode()).exists()
    site.edit_policy('exclude: ["checkpoints/", "raw/"]', 'exclude: ["checkpoints/"]')
    site("run", "--now", "+91d")
    assert not Path(site.folder / "logs" / path.decode()).exists()
    assert site("history", "logs/" + path.decode()).count("purge") == 0


def test_a_team_s_alias_reaches_what_is_stored(site: Site) -> None:
    site.edit_policy("# teams: [vision, nlp]", "teams: [sight]")
    team = site.folder / "policies/teams/sight.yaml"
    team.parent.mkdir(exist_ok=True)
    team.write_text("team: sight\naliases: [vision]\n")
    site("run", "--now", "+3h")
    assert {row["team"] for row in json.loads(site("ls", "--json"))["rows"]} == {"sight"}
    usage = json.loads(site("audit", "--json"))["teams"]
    assert {row["team"] for row in usage} == {"sight"} and sum(row["usage"]["segments"] for row in usage) == 3


def test_lines_that_move_in_the_file_change_nothing(site: Site) -> None:
    site.edit_policy("classes:\n", "# a comment\nclasses:\n")
    site("run", "--now", "+3h")
    events = site("history", "--json")
    assert "reclassified" not in events
