"""A team that writes three files a day, for a month: few archives, nothing late, everything comes back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.site import Site

DAYS = 30


def test_a_month_of_three_files_a_day_is_a_few_archives_and_all_come_back(tmp_path: Path) -> None:
    site, written = Site(tmp_path), dict[str, bytes]()
    for day in range(DAYS):
        for hour, name in ((2, "train"), (9, "eval_3"), (17, "errors/rank_0")):
            content = f"{day} {name} step 1 loss 2.5\n".encode() * 20
            path = f"nlp/job-{day}/{name}.log"
            site.write(path.encode(), content, days=DAYS - day + hour / 24)
            written[path] = content
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site.edit_policy("    expire_after: 30d", "    expire_after: 90d")
    site.edit_policy("expire_after: 7d", "expire_after: 90d")
    site.edit_policy("  eval: {expire_after: [3d, 30d]}", "  eval: {expire_after: [3d, 180d]}")
    # As hourly runs would have left it: an archive for each segment, since each was due at another hour.
    site.edit_policy("merge: {below: 64MiB, target: 512MiB}", "merge: {below: 1B, target: 512MiB}")
    site.edit_policy("merge: {below: 128MiB, target: 1GiB}", "merge: {below: 1B, target: 1GiB}")
    site("run", "--now", "+1h")
    alone = len(list(tmp_path.glob("tiers/*/**/*.zst")))
    assert alone >= 2 * DAYS
    site.edit_policy("merge: {below: 1B, target: 512MiB}", "merge: {below: 64MiB, target: 512MiB}")
    site.edit_policy("merge: {below: 1B, target: 1GiB}", "merge: {below: 128MiB, target: 1GiB}")
    plan = site("plan", "--now", "+9d")
    assert "tiny archives of 9d of last write share one" in plan
    said = site("run", "--now", "+9d")
    assert "out of tiny archives into one" in said
    for now in ("+18d", "+27d"):
        site("run", "--now", now)
    together = len(list(tmp_path.glob("tiers/*/**/*.zst")))
    assert together <= 15, (alone, together)  # four or five windows of nine days, three classes
    again = json.loads(site("run", "--now", "+27d", "--json"))
    assert not [phase for phase in again["phases"] if phase["action"] == "merge"]
    site("restore", "--all", "--to", "back")
    back = {
        str(path.relative_to(tmp_path / "back/logs")): path.read_bytes()
        for path in (tmp_path / "back/logs").rglob("*.log")
    }
    assert back == written
