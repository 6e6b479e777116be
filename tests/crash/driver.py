"""Walks one scenario: killed before step 1, rerun, looked at; killed before step 2 … until a run ends by itself.

    python -m tests.crash.driver FOLDER SCENARIO [--every K] [--first N] [--again M] [--pool] [--workers]

A process of its own, which forks one for each attempt, so that imports are paid once. Prints one JSON line per step:
whether it was killed, and what was broken after the rerun. ``--again``: a second kill M steps into the first rerun.
``--pool``: batches run in worker processes; with ``--workers`` it is one of these that is killed, not their parent.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import lifecycle.acting
import lifecycle.execute.release
import lifecycle.session
from lifecycle.errors import LifecycleError
from lifecycle.execute import executor
from lifecycle.scan.evidence import OpenFiles, WriterEvidence
from tests.crash.kills import Killer
from tests.crash.scenarios import SCENARIOS, Scenario
from tests.crash.world import World, work_done

_LIMIT = 2000  # steps; a walk that does not end by then never will


class Walk:
    def __init__(self, folder: Path, scenario: Scenario, *, in_workers: bool) -> None:
        self._folder = folder
        self._scenario = scenario
        self._in_workers = in_workers
        self._begun = datetime.now(UTC)
        if not scenario.sees_writers:
            blind = WriterEvidence(file_system="nfs4", lease=False, proc=False)
            vars(lifecycle.acting)["probe"] = lambda *_: blind
        # Nobody else writes here, and a look at every process of the host costs more than a run of this world.
        nobody = OpenFiles(identities=frozenset(), complete=True)
        for module in (lifecycle.session, lifecycle.execute.release):
            vars(module)["files_open_for_writing"] = lambda: nobody
        in_child(self._make_ready)

    def _make_ready(self) -> str:
        self.world().make()
        (self._folder / "world").rename(self._folder / "ready")
        return ""

    def world(self) -> World:
        world = self._scenario.make(self._folder / "world")
        world.begun = self._begun
        return world

    def kill(self, at: int) -> tuple[bool, str]:
        """A fresh world, and the command on it killed before step ``at``: whether it was, and which step that is."""

        def attempt() -> str:
            world = self.world()
            self._scenario.prepare(world)
            killer = Killer(at, in_workers=self._in_workers)
            killer.arm()
            try:
                return self._scenario.kill(world)
            except LifecycleError as error:
                if "worker process died" in error.message:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise

        shutil.rmtree(self._folder / "world", ignore_errors=True)
        shutil.copytree(self._folder / "ready", self._folder / "world")
        return in_child(attempt)

    def kill_rerun(self, at: int) -> bool:
        def attempt() -> str:
            killer = Killer(at)
            killer.arm()
            self._scenario.run(self.world())
            return ""

        return in_child(attempt)[0]

    def look(self) -> list[str]:
        """The rerun, then everything that must hold, then a run that must find nothing to do."""

        def rerun() -> str:
            world, scenario = self.world(), self._scenario
            first = scenario.run(world)
            broken = [] if not first.problems else [f"rerun: {first.problems}"]
            broken += world.broken_books(may_wait=scenario.parked > 0)
            parked = [path for path in world.our_files() if "/release/" in path]
            if len(parked) != scenario.parked:
                broken.append(f"parked are {parked}")
            kept, readable = scenario.kept(world), world.readable()
            broken += [f"lost {item}" for item in sorted((kept - readable).elements())]
            broken += [f"twice or too much {item}" for item in sorted((readable - kept).elements())]
            third = scenario.run(world)
            if work_done(third) or third.exit_code:
                broken.append(f"the third run did something: {third.exit_code!r} {third.recovery} {third.phases}")
            return json.dumps(broken)

        was_killed, said = in_child(rerun)
        return ["the rerun was killed"] if was_killed else list(json.loads(said))


def in_child(call: Callable[[], str]) -> tuple[bool, str]:
    """Run it in a forked process: (whether that was killed, what the call returned or its traceback)."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = call()
        except BaseException:
            said = json.dumps([traceback.format_exc()])
        with os.fdopen(writing, "w") as pipe:
            pipe.write(said)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, said


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--again", type=int, default=0)
    parser.add_argument("--pool", action="store_true")
    parser.add_argument("--workers", action="store_true")
    asked = parser.parse_args()
    gc.freeze()
    if asked.pool:
        executor.INLINE_SEGMENTS = executor.INLINE_BYTES = 0  # type: ignore[misc]
    walk = Walk(asked.folder, SCENARIOS[asked.scenario], in_workers=asked.workers)
    for at in range(asked.first, _LIMIT, asked.every):
        was_killed, said = walk.kill(at)
        if asked.again and was_killed:
            walk.kill_rerun(asked.again)
        line = {"at": at, "killed": was_killed, "said": said, "broken": walk.look()}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        if not was_killed:
            return


if __name__ == "__main__":
    main()
