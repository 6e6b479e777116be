"""A world to measure in: a tree of logs, a policy, a rehearsal catalog and two tiers in one folder.

Files are made once per size and copied with their times for every round, so that making them is never measured. By the
policy a file is settled a second after its copy was made.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from benchmarks.measure import program, run_timed, run_told
from lifecycle.sample.lines import FORMATS, Writer, render_lines
from lifecycle.units import to_ns

TEAMS = ("vision", "nlp", "speech", "recsys")

_POLICY = """\
catalog: "sqlite:///{root}/catalog.db"
teams: [vision, nlp, speech, recsys]
sources:
  - {{name: shared, path: "{root}/logs", under: "{{team}}/{{job}}", layout: [rank-files, plain], settle: 1s}}
tiers:
  warm: {{path: "{root}/warm", zstd: 3, merge: {{below: {below}, target: {target}}}}}
  cold: {{path: "{root}/cold", zstd: 9, merge: {{below: 16MiB, target: 256MiB}}}}
classes:{errors}
  - {{name: training, warm_after: 24h, cold_after: 30d, expire_after: 90d}}
"""
_ERRORS = """
  - {name: error, match: [error/], warm_after: 24h, cold_after: 30d, expire_after: 90d}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    root: Path

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def lifecycle(self, *arguments: str, ok: tuple[int, ...] = (0,), env: Mapping[str, str] = {}) -> float:
        """Seconds of one command."""
        return run_timed(program(*arguments), cwd=self.root, ok=ok, env=env)

    def told(self, *arguments: str, env: Mapping[str, str] = {}) -> tuple[float, float]:
        """Seconds of one command, and of those the seconds between the start and end of its run, as it says itself."""
        seconds, line = run_told(program(*arguments), cwd=self.root, env=env)
        return seconds, float(json.loads(line)["seconds"])

    def stored_bytes(self) -> int:
        """Bytes of the objects in both tiers."""
        objects = (path for tier in ("warm", "cold") for path in (self.root / tier).rglob("*.zst"))
        return sum(path.stat().st_size for path in objects)

    def files_left(self) -> int:
        return sum(path.is_file() and ".lifecycle" not in path.parts for path in self.logs.rglob("*"))

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def make_world(
    root: Path, tree: Path | None, *, below: str = "4MiB", target: str = "64MiB", keeps_errors: bool = False
) -> World:
    """A fresh world with a copy of ``tree`` as its logs, whatever was in ``root`` before. ``keeps_errors``: there is a
    class error, so that what is stored is looked through on the way."""
    world = World(root=root)
    world.remove()
    root.mkdir(parents=True)
    if tree is None:
        world.logs.mkdir()
    else:
        copy_tree(tree, world.logs)
    errors = _ERRORS if keeps_errors else ""
    write_policy(root / "policies", _POLICY.format(root=root, below=below, target=target, errors=errors), TEAMS)
    world.lifecycle("init", "--rehearsal")
    return world


def settle(world: World, *, scan: bool = True) -> None:
    """Wait until the files are old enough to be settled, as yesterday's are in every run; then scan them."""
    time.sleep(1.2)
    if scan:
        world.lifecycle("scan")


def write_policy(folder: Path, text: str, teams: Iterable[str]) -> None:
    (folder / "teams").mkdir(parents=True)
    (folder / "platform.yaml").write_text(text)
    for team in teams:
        (folder / "teams" / f"{team}.yaml").write_text(f"team: {team}\n")


def copy_tree(tree: Path, to: Path) -> None:
    subprocess.run(["cp", "-a", str(tree), str(to)], check=True)


def make_small_files(root: Path, files: int, *, size_bytes: int = 2048, seed: int = 1) -> Path:
    """``files`` logs of about 2 KB: 100 ranks to a folder, 1,600 to a job, four teams; all written one day."""
    for number in range(files):
        job, node = number // 1600, number // 100
        folder = root / TEAMS[job % 4] / f"train-{job:03d}" / f"node-{node:03d}"
        if number % 100 == 0:
            folder.mkdir(parents=True)
        rank = number % 1600
        _write(folder / f"rank_{rank}.log", _text("rank", size_bytes, Random(f"{seed}/{number}"), rank))
    return root


def make_large_files(root: Path, sizes: list[int], *, seed: int = 1, form: str = "") -> Path:
    """One log of each size, of several formats in turn."""
    forms = (form,) if form else ("rank", "megatron", "deepspeed", "plain")
    for number, size in enumerate(sizes):
        folder = root / TEAMS[number % 4] / f"train-{number:03d}"
        folder.mkdir(parents=True)
        _write(folder / f"rank_{number}.log", _text(forms[number % len(forms)], size, Random(f"{seed}/{number}"), 0))
    return root


def make_once(root: Path, make: Callable[[Path], Path]) -> Path:
    """The tree at ``root``, made unless an earlier benchmark of this session has made it."""
    if not root.exists():
        draft = root.with_name(root.name + ".draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        make(draft)
        draft.rename(root)
    return root


def _text(form: str, size_bytes: int, rng: Random, rank: int) -> bytes:
    end = datetime(2026, 2, 11, 3, tzinfo=UTC)
    text = render_lines(FORMATS[form], rng, size_bytes=size_bytes + 512, end=end, writer=Writer(rank=rank))
    return text[:size_bytes]


def _write(path: Path, text: bytes) -> None:
    """Written at noon two days ago: old enough for warm, all on one day."""
    path.write_bytes(text)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=2)
    os.utime(path, ns=(to_ns(noon), to_ns(noon)))
