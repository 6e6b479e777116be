"""A disk that gets full, and the real command on it: small file systems in memory, three teams, quotas and marks."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.site import Site

MIB = 2**20
HOUR = 3600


def mount(folder: Path, size: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this kernel does not let this user mount a tmpfs")


class Disk(Site):
    """``logs`` is a file system of 20 MiB of its own, of which a policy of the test's says where it is full."""

    def begin(self, policy: str = "", *, hot: str = "") -> None:
        self("init", "policies", "--source", "logs", "--tiers", "tiers", "--catalog", "state/c.db", "--rehearsal")
        if hot:
            self.edit_policy("tiers:\n", f"tiers:\n  hot: {hot}\n")
        path = self.folder / "policies/platform.yaml"
        path.write_text(path.read_text() + policy)

    def fill(self, team: str, files: int, *, job: str = "train-1", hours: float = 10, size: int = MIB // 2) -> None:
        """Logs of half a MiB; the first is the oldest."""
        for number in range(files):
            path = self.folder / "logs" / team / job / f"rank_{number}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            line = f"step {{}} loss 0.{number} {team}\n"
            text = "".join(line.format(step) for step in range(size // 20))[:size]
            path.write_text(text)
            at = time.time() - hours * HOUR + number * 60
            os.utime(path, (at, at))

    def left(self) -> dict[str, int]:
        """Logs in hot, by team."""
        logs = self.folder / "logs"
        counts: dict[str, int] = {}
        for path in logs.rglob("*.log"):
            if ".lifecycle" not in path.parts:
                team = path.relative_to(logs).parts[0]
                counts[team] = counts.get(team, 0) + 1
        return counts

    def used(self) -> float:
        found = os.statvfs(self.folder / "logs")
        return 1 - found.f_bavail / found.f_blocks

    def summary(self, done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
        facts = json.loads(done.stderr.splitlines()[-1])
        assert isinstance(facts, dict)
        return facts


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    mounts = [tmp_path / "logs"]
    mount(mounts[0], "20m")
    yield Disk(tmp_path)
    for folder in [*mounts, *tmp_path.glob("tiers/*")]:
        if os.path.ismount(folder):
            subprocess.run(["umount", str(folder)], check=False)


def test_a_full_disk_is_brought_down_to_low_and_no_further(disk: Disk) -> None:
    disk.fill("vision", 28)
    disk.begin(hot="{high: 60%, low: 40%}")
    before = disk.used()
    assert before > 0.6
    plan = disk("plan", "--now", "+2h")
    assert "relief: hot 70" in plan and "platform.yaml:" in plan
    assert disk.used() == before, "a preview changes nothing"
    out = disk("run", "--now", "+2h")
    assert 0.36 < disk.used() <= 0.4
    line = next(line for line in out.splitlines() if line.startswith("hot ") and "(high 60 %)" in line)
    assert line in plan, "what was planned is what came of it"
    assert "relief of hot: " in out
    assert disk("run", "--now", "+2h").count("relief") == 0


def test_three_teams_give_in_turn_until_they_are_level(disk: Disk) -> None:
    for team, files in (("vision", 14), ("nlp", 10), ("speech", 3)):
        disk.fill(team, files)
    disk.begin("team_defaults: {quota: {hot: {soft: 2MiB}}}\n", hot="{high: 60%, low: 40%}")
    out = disk("run", "--now", "+2h")
    left = disk.left()
    assert left["speech"] == 3
    assert abs(left["vision"] - left["nlp"]) <= 1
    assert "over: vision" in out and "soft quota 2MiB" in out
    names = sorted(path.name for path in (disk.folder / "logs/vision/train-1").glob("*.log"))
    assert f"rank_{13}.log" in names and "rank_0.log" not in names, "the oldest left"


def test_each_team_over_its_hard_quota_is_relieved_when_its_turn_comes_however_empty_the_disk(disk: Disk) -> None:
    disk.begin("team_defaults: {quota: {hot: {soft: 1MiB, hard: 2MiB}}}\n", hot="{high: 90%, low: 80%}")
    for day, team in enumerate(("vision", "nlp", "speech")):
        disk.fill(team, 6, job=f"train-{day}")
        out = disk("run", "--now", f"+{2 + day}h")
        assert f"relief of team {team} on hot" in out
        assert disk.left()[team] == 2
    forecast = json.loads(disk("forecast", "--json"))
    assert {row["team"] for row in forecast["teams"]} == {"vision", "nlp", "speech"}


def test_what_is_still_written_cannot_be_reached_and_is_an_alarm_by_name(disk: Disk) -> None:
    disk.fill("nlp", 28, hours=0)
    disk.begin("team_defaults: {quota: {hot: {hard: 8MiB}}}\n", hot="{high: 60%, low: 40%}")
    done = disk.run("run", "--now", "+1m", code=7)
    assert "still broken: hot 70" in done.stdout
    assert "still broken: nlp 14.0 MiB on hot, hard quota 8MiB, 14.0 MiB of it open" in done.stdout
    assert disk.summary(done)["exit"] == "attention"
    audit = disk("audit", "--check", code=7)
    assert "!! nlp  14.0 MiB on hot" in audit and "!! hot  70" in audit
    assert " 60.0 %" in audit, "the table has the mark"
    quiet = disk.run("run", "--now", "+2h", "--quiet")
    assert quiet.stdout == "", "settled by now: relieved, and nothing to say"
    assert disk("audit", "--check", "--quiet") == ""


def test_a_full_target_is_skipped_for_the_next_colder_one(disk: Disk) -> None:
    mount(disk.folder / "tiers/warm", "2m")
    disk.fill("vision", 28)
    disk.begin(hot="{high: 60%, low: 40%}")
    disk.edit_policy("    zstd: 3", "    high: 50%\n    low: 10%\n    zstd: 3")
    (disk.folder / "tiers/warm/somebody.elses").write_bytes(b"x" * (3 * MIB // 2))
    out = disk("run", "--now", "+2h", code=7)  # nothing of ours in warm can make room there
    assert "hot → cold" in out and "hot → warm" not in out
    assert "still broken: warm" in out
    assert disk.used() <= 0.4


def test_a_copy_made_early_lets_a_full_disk_breathe_without_any_writing(disk: Disk) -> None:
    disk.fill("vision", 20)
    disk.begin(hot="{high: 60%, low: 40%}")
    disk.edit_policy("    settle: 1h", "    settle: 1h\n    copy_after: 2h")
    assert "stored early, originals stay" in disk("run", "--now", "+80m")
    assert disk.left() == {"vision": 20}
    stored = sorted(str(path) for path in (disk.folder / "tiers").rglob("*.zst"))
    disk.fill("vision", 8, job="train-2", hours=0)
    assert "release" in disk("plan", "--now", "+90m")
    out = disk("run", "--now", "+90m")
    assert "originals out of hot, stored before" in out
    assert disk.used() <= 0.4
    assert sorted(str(path) for path in (disk.folder / "tiers").rglob("*.zst")) == stored
    back = disk.folder / "back"
    disk("restore", "--job", "train-1", "--to", str(back))
    assert len(list(back.rglob("rank_*.log"))) == 20


def test_relief_in_a_plan_file_is_left_undone_where_room_was_made_meanwhile(disk: Disk) -> None:
    disk.fill("vision", 28)
    disk.begin(hot="{high: 60%, low: 40%}")
    disk("run", "--now", "+1m", code=7)  # seen, all still open
    disk("plan", "--now", "+2h", "--out", "tonight.plan")
    for number in range(8):  # by hand, of those that would have stayed
        (disk.folder / f"logs/vision/train-1/rank_{27 - number}.log").unlink()
    disk("run", "--now", "+2h", "--plan", "tonight.plan")
    assert disk.left() == {"vision": 20}, "half full, and high is 60 %"
    disk.fill("vision", 8, job="train-2", hours=0)
    disk("plan", "--now", "+130m", "--out", "tonight.plan")
    disk("run", "--now", "+130m", "--plan", "tonight.plan")
    assert disk.used() <= 0.4


def test_sparse_and_linked_files_are_charged_for_what_they_occupy(disk: Disk) -> None:
    """Bug case B21: the quota is met by allocated bytes, each inode once."""
    disk.begin("team_defaults: {quota: {hot: {soft: 1MiB, hard: 2MiB}}}\n")
    disk.fill("nlp", 1, size=MIB // 4)
    sparse = disk.folder / "logs/nlp/train-1/rank_8.log"
    with sparse.open("wb") as file:
        file.write(b"step 1 loss 2.0\n" * 100)
        file.truncate(64 * MIB)
    linked = disk.folder / "logs/nlp/train-1/rank_9.log"
    linked.write_text("step 1 loss 2.0\n" * 100_000)
    other = disk.folder / "logs/vision/train-1/rank_9.log"
    other.parent.mkdir(parents=True)
    other.hardlink_to(linked)
    for path in (sparse, linked):
        at = time.time() - 10 * HOUR
        os.utime(path, (at, at))
    out = disk("run", "--now", "+2h")
    assert "relief" not in out
    assert linked.exists() and other.exists()
    usage = json.loads(disk("audit", "--json"))["tiers"][0]["usage"]
    assert usage["stored_bytes"] < MIB
    assert usage["logical_bytes"] > 64 * MIB, "the report has both measures, each by its name"


def test_nothing_is_removed_where_moves_fail_and_the_days_of_it_are_an_alarm(disk: Disk) -> None:
    """Bug case B23: the tier cannot be written, the disk is full, and every only copy stays."""
    disk.fill("vision", 28, hours=30)
    disk.begin(hot="{high: 60%, low: 40%}")
    (disk.folder / "tiers/warm/.lifecycle/place.json").rename(disk.folder / "hidden")
    (disk.folder / "tiers/cold/.lifecycle/place.json").rename(disk.folder / "hidden-too")
    for day in (1, 20, 40):
        done = disk.run("run", "--now", f"+{day}d", code=3)
        assert disk.left() == {"vision": 28}
        assert "still broken: hot" in done.stdout
    assert "overdue" in disk("audit", "--section", "due") or "!!" in disk("audit")


def test_a_forecast_after_some_days_says_when_which_limit_is_met(disk: Disk) -> None:
    disk.begin("team_defaults: {quota: {hot: {soft: 4MiB, hard: 12MiB}}}\n", hot="{high: 90%, low: 80%, reserve: 1MiB}")
    disk.edit_policy("    warm_after: 24h\n    cold_after: 7d\n    expire_after: 30d\n    expire_from: job",
                     "    expire_after: 30d")  # fmt: skip
    for day in range(5):
        disk.fill("vision", 2, job=f"train-{day}", hours=2)
        disk("run", "--now", f"+{24 * day + 2}h")
    forecast = json.loads(disk("forecast", "--json", "--now", "+4d"))
    hot = next(each for each in forecast["file_systems"] if each["name"] == "hot")
    assert 0.9 * MIB < hot["growth"]["expected"] < 1.1 * MIB
    assert 12 < hot["high"]["expected"] < 14  # 18 of 20 MiB, 5 used, 1 a day
    assert 13 < hot["reserve"]["expected"] < 15
    vision = next(each for each in forecast["teams"] if (each["team"], each["tier"]) == ("vision", "hot"))
    assert vision["soft"]["expected"] == 0
    assert 6 < vision["hard"]["expected"] < 8
    shown = disk("forecast", "--tier", "hot", "--now", "+4d")
    assert "HIGH IN" in shown and "vision" in shown and "cold" not in shown
    assert disk("forecast", "--team", "nobody", "--now", "+4d").count("vision") == 0
