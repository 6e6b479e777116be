"""Measuring in pairs: the program and its peer in turns, in the same minute, prepared outside the clock.

The figure that counts is the ratio of a pair, and of several pairs the median: what else the machine does meanwhile
meets both. Each side is a whole command, its start-up included, as a user or cron starts it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One line of the table. ``ratio`` is the program's figure by the peer's, or their inverse; the aim says which."""

    name: str
    peer: str
    aim: str
    ours: float | None  # median; None when it was not measured
    theirs: float | None
    ratio: float | None
    unit: str = "s"
    is_met: bool | None = None
    note: str = ""
    benchmark: str = ""  # which of them it is of; the runner fills it in


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a pair: ``prepare`` is not timed, ``work`` returns its figure (seconds, bytes)."""

    work: Callable[[], float]
    prepare: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    ours: float
    theirs: float
    ratio: float
    pairs: tuple[tuple[float, float], ...]

    def within(self, inside: Sequence[float]) -> tuple[float, float]:
        """Median and median ratio of what the program said of itself, one figure a round."""
        ratios = [mine / max(other, 1e-9) for mine, (_, other) in zip(inside, self.pairs, strict=True)]
        return statistics.median(inside), statistics.median(ratios)


def measure_pairs(ours: Side, theirs: Side, rounds: int) -> Paired:
    """Medians of ``rounds`` pairs. Who goes first changes every time; the disk is idle when a clock starts."""
    pairs = []
    for number in range(rounds):
        figures: dict[int, float] = {}
        for side in ((0, 1), (1, 0))[number % 2]:
            which = (ours, theirs)[side]
            which.prepare()
            os.sync()
            figures[side] = which.work()
        pairs.append((figures[0], figures[1]))
    ratios = tuple(mine / max(other, 1e-9) for mine, other in pairs)
    return Paired(
        ours=statistics.median(mine for mine, _ in pairs),
        theirs=statistics.median(other for _, other in pairs),
        ratio=statistics.median(ratios),
        pairs=tuple(pairs),
    )


def program(*arguments: str) -> list[str]:
    """The command line of the program, from this checkout and this interpreter."""
    return [sys.executable, "-c", "from lifecycle.cli.main import main; main()", *arguments]


def run_timed(command: Sequence[str], *, cwd: Path, ok: Sequence[int] = (0,), env: Mapping[str, str] = {}) -> float:
    """Seconds that a command takes from start to end. Raises RuntimeError with its last words when it fails."""
    return run_told(command, cwd=cwd, ok=ok, env=env)[0]


def run_told(
    command: Sequence[str], *, cwd: Path, ok: Sequence[int] = (0,), env: Mapping[str, str] = {}
) -> tuple[float, str]:
    """As ``run_timed``, with what the command wrote for machines: its last line on stderr."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=environment(env), capture_output=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode not in ok:
        words = (done.stderr or done.stdout).decode(errors="replace")[-2000:]
        raise RuntimeError(f"{' '.join(command[:6])} ended with {done.returncode}: {words}")
    return seconds, (done.stderr.decode().splitlines() or [""])[-1]


def run_shell(script: str, *, cwd: Path, env: Mapping[str, str] = {}) -> float:
    return run_timed(["/bin/bash", "-e", "-o", "pipefail", "-c", script], cwd=cwd, env=env)


def environment(more: Mapping[str, str] = {}) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(CHECKOUT), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"} | dict(more)


def peak_memory(command: Sequence[str], *, cwd: Path, ok: Sequence[int] = (0,)) -> float:
    """Highest memory of a command with all its children, in bytes: pages that several share are counted once."""
    process = subprocess.Popen(command, cwd=cwd, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    highest = 0
    over = threading.Event()

    def look() -> None:
        nonlocal highest
        while not over.wait(0.02):
            highest = max(highest, sum(_proportional_bytes(pid) for pid in _family(process.pid)))

    watcher = threading.Thread(target=look)
    watcher.start()
    _, words = process.communicate()
    over.set()
    watcher.join()
    if process.returncode not in ok:
        raise RuntimeError(f"{' '.join(command)}: {process.returncode}: {words.decode(errors='replace')[-2000:]}")
    return float(highest)


def _family(pid: int) -> list[int]:
    found = [pid]
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += _family(int(child))
    return found


def _proportional_bytes(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
