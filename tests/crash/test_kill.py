"""Killed before any step of any action, one rerun puts everything right (promise 3).

Every step that changes something durable is found by counting, see ``kills``; what must hold is in ``World``. The walks
run in processes of their own, since a kill must be a kill.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.scenarios import SCENARIOS

CHECKOUT = Path(__file__).parents[2]
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is some: a process dies, not the machine, so that fsync has nothing to prove here."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(prefix="lifecycle-crash-", dir=MEMORY))
    yield path
    shutil.rmtree(path)


def walk(folder: Path, scenario: str, *options: str) -> list[dict[str, Any]]:
    """Each attempt's line; the last one is of the command that came to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.driver", str(folder), scenario, *options],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["killed"] is False and all(line["killed"] for line in lines[:-1]), lines[-1]
    return lines


def broken(lines: list[dict[str, Any]]) -> dict[int, list[str]]:
    return {line["at"]: line["broken"] for line in lines if line["broken"]}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_one_rerun_after_a_kill_at_any_step_puts_everything_right(scenario: str, folder: Path) -> None:
    lines = walk(folder, scenario)

    assert broken(lines) == {}
    assert SCENARIOS[scenario].does in lines[-1]["said"]  # what was killed at every step is what it says
    assert len(lines) > 20


@pytest.mark.parametrize(
    ("scenario", "again"),
    [(scenario, 10 + 3 * number) for number, scenario in enumerate(SCENARIOS)] + [("warm to cold, archives merged", 6)],
)
def test_a_second_kill_during_recovery_changes_nothing_about_that(scenario: str, again: int, folder: Path) -> None:
    assert broken(walk(folder, scenario, "--every", "8", "--first", "7", "--again", str(again))) == {}


@pytest.mark.parametrize("killed", [[], ["--workers"]], ids=["parent", "worker"])
def test_the_same_holds_where_batches_run_in_worker_processes(killed: list[str], folder: Path) -> None:
    lines = walk(folder, "hot to warm, merged and single", "--pool", "--every", "2", *killed)

    assert broken(lines) == {}
    assert "merge" in lines[-1]["said"]
    assert len(lines) > 8
