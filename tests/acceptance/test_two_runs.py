"""Two runs at once, runs that are told to stop, runs of a plan file, and moved clocks: the real command."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lifecycle.catalog.lease import FileLock, lock_path, take_lease
from lifecycle.catalog.places import places
from lifecycle.catalog.store import open_catalog

CHECKOUT = Path(__file__).parents[2]
DAY = 86_400


class Site:
    """A tree of two teams, its policy, and the command."""

    def __init__(self, folder: Path, *, rehearsal: bool = True) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self.environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT), "LIFECYCLE_POLICIES": "policies"}
        for rank in range(4):
            self.write(f"vision/train-1/rank_{rank}.log")
        self.write("nlp/train-2/rank_0.log")
        options = ["--source", "logs", "--tiers", "tiers", "--catalog", "state/catalog.db"]
        made = self("init", "policies", *options, *(["--rehearsal"] if rehearsal else []))
        assert made.returncode == 0, made.stderr

    def write(self, path: str, *, days: float = 3) -> Path:
        file = self.logs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{path}: step 1 loss 2.0\n" * 20)
        at = time.time() - days * DAY
        os.utime(file, (at, at))
        return file

    def start(self, *arguments: str, code: str = "") -> subprocess.Popen[str]:
        """``code`` is run in that process before the command."""
        body = f"{code}\nimport sys\nfrom lifecycle.cli.main import main\nsys.argv[0] = 'lifecycle'\nmain()"
        return subprocess.Popen(
            [sys.executable, "-c", body, *arguments],
            cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(self, *arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, code=code) as process:
            out, err = process.communicate(timeout=120)
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/state/catalog.db"

    def hot(self) -> set[str]:
        return {str(path.relative_to(self.logs)) for path in self.logs.rglob("*.log") if ".lifecycle" not in path.parts}

    def objects(self) -> list[str]:
        tiers = self.folder / "tiers"
        return sorted(
            str(p.relative_to(tiers)) for p in tiers.rglob("*") if p.is_file() and ".lifecycle" not in p.parts
        )

    @contextmanager
    def held(self) -> Iterator[datetime]:
        """Another process's lease on the source, as a run would take it."""
        since = datetime.now(UTC)
        with open_catalog(self.url) as catalog:
            with catalog.read() as conn:
                source = next(place for place in places(conn) if place.kind == "source")
            with take_lease(catalog, source, holder="run 1882", now=since):
                yield since


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def summary(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found = json.loads(done.stderr.splitlines()[-1])
    assert isinstance(found, dict)
    return found


# --- somebody else holds a place ------------------------------------------------------------------------------------


def test_a_second_run_exits_5_and_says_who_holds_what_since_when(site: Site) -> None:
    with site.held() as since:
        done = site("run", "--now", "+2h")
    assert done.returncode == 5
    for words in ("run 1882", socket.gethostname(), str(os.getpid()), since.strftime("%Y-%m-%d %H:%M")):
        assert words in done.stderr
    assert len(site.hot()) == 5
    assert site.objects() == []


def test_a_run_that_really_runs_is_what_the_second_one_names(site: Site) -> None:
    pause = "import lifecycle.run as r, sys, time\nreal = r._execute\n"
    pause += "def slow(*a):\n    print('executing', flush=True); sys.stdin.readline(); return real(*a)\n"
    pause += "r._execute = slow"
    with subprocess.Popen(
        [sys.executable, "-c", f"{pause}\nfrom lifecycle.cli.main import main\nmain()", "run", "--now", "+2h"],
        cwd=site.folder, env=site.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as first:  # fmt: skip
        assert first.stdin and first.stdout and first.stdout.readline() == "executing\n"
        second = site("run", "--now", "+2h")
        first.communicate("go\n", timeout=60)
    assert second.returncode == 5
    assert f"pid {first.pid}" in second.stderr
    assert first.returncode == 0
    assert site.hot() == set()


def test_skip_leaves_a_held_place_alone_and_works_on_the_others(site: Site) -> None:
    with site.held():
        done = site("run", "--now", "+2h", "--if-held", "skip")
    assert done.returncode == 0
    assert "run 1882" in done.stdout
    assert len(site.hot()) == 5


def test_wait_begins_as_soon_as_the_place_is_free(site: Site) -> None:
    with site.held():
        process = site.start("run", "--now", "+2h", "--if-held", "wait:1m")
        time.sleep(1.5)
        assert process.poll() is None
        assert len(site.hot()) == 5
    with process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert site.hot() == set()


def test_wait_gives_up_in_the_end(site: Site) -> None:
    with site.held():
        done = site("run", "--now", "+2h", "--if-held", "wait:1s")
    assert done.returncode == 5


# --- told to stop ---------------------------------------------------------------------------------------------------

_STOP_AFTER_FIRST_BATCH = """
import os, signal
from lifecycle.execute import executor
real = executor.commit_move
def commit(*args):
    os.kill(os.getpid(), signal.SIGTERM)
    return real(*args)
executor.commit_move = commit
"""


def test_sigterm_finishes_the_current_batch_and_the_next_run_does_the_rest(site: Site) -> None:
    done = site("run", "--now", "+2h", code=_STOP_AFTER_FIRST_BATCH)

    assert done.returncode == 0, done.stderr
    assert "SIGTERM" in done.stdout
    assert summary(done)["stopped"] == "SIGTERM"
    assert len(site.objects()) == 1
    assert len(site.hot()) in (1, 4)  # one batch of two went, whole
    lock = FileLock(lock_path(site.folder / "state/catalog.db"), start=1, length=100)
    assert lock.try_take()
    lock.free()

    rest = site("run", "--now", "+2h")
    assert rest.returncode == 0
    assert site.hot() == set()


def test_a_signal_during_the_scan_ends_the_run_before_it_moves_anything(site: Site) -> None:
    code = "import os, signal, lifecycle.session as s\nreal = s.scan_place\n"
    code += "def scan(*a, **k):\n    os.kill(os.getpid(), signal.SIGTERM); return real(*a, **k)\ns.scan_place = scan"
    done = site("run", "--now", "+2h", code=code)
    assert done.returncode == 0, done.stderr
    assert site.objects() == []
    assert len(site.hot()) == 5


# --- a plan file ----------------------------------------------------------------------------------------------------


@pytest.fixture
def plan(site: Site) -> Path:
    site("run", "--now", "+0h")  # seen; nothing is settled yet
    done = site("plan", "--now", "+2h", "--out", "tonight.plan")
    assert done.returncode == 0, done.stderr
    return site.folder / "tonight.plan"


def test_a_run_of_a_plan_file_does_what_it_lists_and_nothing_else(site: Site, plan: Path) -> None:
    late = site.write("speech/train-9/rank_0.log")
    done = site("run", "--now", "+2h", "--plan", plan.name)
    assert done.returncode == 0, done.stderr
    assert site.hot() == {"speech/train-9/rank_0.log"}
    assert late.exists()
    assert site("run", "--now", "+2h", "--plan", plan.name).returncode == 0  # nothing is left of it
    assert site.hot() == {"speech/train-9/rank_0.log"}


def test_a_segment_that_changed_since_the_plan_is_skipped_and_counted(site: Site, plan: Path) -> None:
    changed = site.write("vision/train-1/rank_2.log", days=2)
    done = site("run", "--now", "+2h", "--plan", plan.name)
    assert site.hot() == {"vision/train-1/rank_2.log"}
    assert changed.exists()
    assert sum(phase["kept"] for phase in summary(done)["phases"]) == 1


def test_a_plan_of_another_policy_is_refused(site: Site, plan: Path) -> None:
    with (site.folder / "policies/platform.yaml").open("a") as policy:
        policy.write("\n# a remark\n")
    done = site("run", "--now", "+2h", "--plan", plan.name)
    assert done.returncode == 2
    assert len(site.hot()) == 5


def test_a_plan_of_yesterday_is_refused(site: Site, plan: Path) -> None:
    done = site("run", "--now", "+27h", "--plan", plan.name)
    assert done.returncode == 2
    assert len(site.hot()) == 5


# --- a moved clock --------------------------------------------------------------------------------------------------


def test_a_moved_clock_is_for_previews_and_rehearsals_only(tmp_path: Path) -> None:
    real = Site(tmp_path, rehearsal=False)
    refused = real("run", "--now", "+2h")
    assert refused.returncode == 2
    assert "rehearsal" in refused.stderr
    assert len(real.hot()) == 5

    shown = real("plan", "--now", "+2h")
    assert shown.returncode == 0
    assert "warm" in shown.stdout
    assert real.objects() == []


def test_a_clock_that_went_back_stops_all_removals(site: Site) -> None:
    site("run", "--now", "+2h")
    site("run", "--now", "+40d")
    before = site.objects()
    done = site("run", "--now", "+35d")
    assert done.returncode == 4
    assert site.objects() == before
