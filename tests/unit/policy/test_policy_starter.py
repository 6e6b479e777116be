"""The starter policy that ``lifecycle init`` writes."""

from __future__ import annotations

from pathlib import Path

from lifecycle.model import TierName
from lifecycle.policy.load import load_policy, starter_files


def test_a_starter_takes_more_sources_and_does_without_a_warm_tier(tmp_path):
    for name, text in starter_files(
        logs=Path("/data/a"), more_logs=[Path("/data/b c")], warm=None, cold=Path("/x/cold"), catalog=Path("/x/c.db")
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    policy = load_policy(tmp_path, environ={})
    assert [source.path for source in policy.sources] == ["/data/a", "/data/b c"]
    assert list(policy.tiers) == [TierName.COLD]
