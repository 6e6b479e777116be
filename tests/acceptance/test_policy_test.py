"""``policy test`` as people type it: a starter has a first test, and a change of a figure shows."""

from __future__ import annotations

import json
from pathlib import Path

from tests.site import Site


def test_policy_test_passes_on_a_starter_and_fails_with_the_line_that_decided(tmp_path: Path) -> None:
    site = Site(tmp_path)
    (tmp_path / "logs").mkdir()
    site("init", "--source", "logs", "--tiers", "tiers")
    assert "1 test in 1 file" in site("policy", "test")
    site.edit_policy("expire_after: 30d", "expire_after: 20d")
    failed = site("policy", "test", code=1)
    assert "fate at 31d" in failed and "marked" in failed and "gone" in failed and "platform.yaml:" in failed
    rows = json.loads(site("policy", "test", "--json", code=1))["failures"]
    assert [(row["what"], row["expected"], row["found"]) for row in rows] == [("fate at 31d", "marked", "gone")]
    (tmp_path / "policies/tests/paths.yaml").unlink()
    assert "lifecycle init writes a first one" in site.run("policy", "test", code=8).stderr
