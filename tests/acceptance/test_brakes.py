"""A platform with old logs, and a retention that was shortened overnight: nothing goes before somebody has looked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.site import Site

MANY = 60


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def write(site: Site, team: str, count: int, *, days: float, job: str = "job") -> None:
    for rank in range(count):
        site.write(f"{team}/{job}/rank_{rank}.log".encode(), b"line %d\n" % rank, days=days)


def marked(site: Site) -> dict[str, int]:
    """Marked segments by team."""
    done = site.run("ls", "--json", code=None)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"] if done.returncode == 0 else []
    found: dict[str, int] = {}
    for row in rows:
        if row["expires"].startswith("marked"):
            found[row["team"]] = found.get(row["team"], 0) + 1
    return found


def test_first_adoption_waits_for_acceptance_while_moves_go_on(site: Site) -> None:
    write(site, "vision", MANY, days=40)
    write(site, "nlp", 5, days=40)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    first = site("run", "--now", "+2h", code=4)
    assert "merge" in first and f"brake: vision: {MANY} segments" in first and "for the first time here" in first
    hint = re.search(r'lifecycle policy accept (\w{6}) --reason "…"', first)
    assert hint is not None
    site("run", "--now", "+2d", code=4)
    assert marked(site) == {"nlp": 5}  # a small team, and not braked
    plan = site("plan", "--now", "+2d", code=4)
    assert "a brake: newly over 30d for too many at once" in plan
    said = site("policy", "accept", hint[1], "--reason", "first adoption", "--by", "chen")
    assert f"vision: {MANY} segments" in said and "chen: first adoption" in said
    site("run", "--now", "+50h")
    assert marked(site)["vision"] == MANY
    site("run", "--now", "+6d")
    assert site.run("ls", "--team", "vision", code=8).stdout == ""


def test_a_retention_that_was_shortened_is_braked_once_and_for_its_team(site: Site) -> None:
    write(site, "vision", MANY, days=12)
    write(site, "nlp", MANY, days=1.5)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site("run", "--now", "+2h")
    site("run", "--now", "+26h")  # its retention is in force: nothing was due
    site.edit_policy("expire_after: 30d", "expire_after: 14d")
    site.edit_policy("training: {expire_after: [14d, 180d]}", "training: {expire_after: [1d, 180d]}")
    braked = site("run", "--now", "+3d", code=4)
    assert f"vision: {MANY} segments" in braked and "only since policy changed" in braked and "nlp" not in braked
    assert marked(site) == {}
    site("policy", "accept", "000000", "--reason", "no", code=2)
    digest = re.search(r"policy accept (\w{6})", braked)
    assert digest is not None
    site("policy", "accept", digest[1], "--reason", "MR 214")
    site("run", "--now", "+73h")
    assert marked(site) == {"vision": MANY}
    site("run", "--now", "+15d")  # nlp's logs grow old under the same policy: no brake
    site("run", "--now", "+16d")
    assert marked(site)["nlp"] == MANY


def test_nothing_waits_where_nothing_is_braked(site: Site) -> None:
    write(site, "vision", 3, days=1)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site("run", "--now", "+2h")
    digest = json.loads(site("policy", "show", "--json"))["digest"]
    assert "nothing waits to be accepted" in site("policy", "accept", digest[:6], "--reason", "tidy")


def test_a_class_that_may_expire_early_from_tonight_on_waits_as_a_shorter_retention_does(site: Site) -> None:
    write(site, "vision", MANY, days=20)
    write(site, "vision", MANY, days=1.5, job="young")
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site("run", "--now", "+2h")
    site("run", "--now", "+26h")
    site.edit_policy("expire_after: 30d", "expire_after: 30d\n    expire_early: {keep_at_least: 10d}")
    braked = site("run", "--now", "+27h", code=4)
    assert f"vision: {MANY} segments" in braked and "old enough to expire early, only since policy changed" in braked
    digest = re.search(r"policy accept (\w{6})", braked)
    assert digest is not None
    said = site("policy", "accept", digest[1], "--reason", "MR 215")
    assert f"{MANY} segments" in said and "past retention or old enough to expire early" in said
    site("run", "--now", "+28h")
    site("run", "--now", "+29h")  # in force since the last run, and no news
