"""A large catalog: planning and audit at ten times the segments, memory there and at large files, start-up."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fill_catalog import TEAMS
from benchmarks.measure import (
    CHECKOUT,
    MIB,
    Result,
    Side,
    environment,
    measure_pairs,
    peak_memory,
    program,
    run_timed,
)
from benchmarks.world import make_large_files, make_once, make_world, settle, write_policy
from lifecycle.policy.load import load_policy

NOON = "2026-03-01T12:00:00Z"  # the filler's present
_POLICY = """\
catalog: "sqlite:///{root}/catalog.db"
teams: [{teams}]
sources:
  - {{name: hot, path: /synthetic/hot, under: "{{team}}/{{job}}", layout: [rank-files, plain], settle: 1h}}
tiers:
  warm: {{path: /synthetic/warm, zstd: 3, merge: {{below: 4MiB, target: 64MiB}}}}
  cold: {{path: /synthetic/cold, zstd: 9, merge: {{below: 16MiB, target: 256MiB}}}}
defaults: seed-1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A filled catalog and the policy that goes with it. Kept between runs: 10 M segments take minutes to make."""

    root: Path

    def command(self, *arguments: str) -> list[str]:
        return program("--policies", str(self.root / "policies"), *arguments, "--now", NOON)

    def seconds(self, *arguments: str) -> float:
        return run_timed(self.command(*arguments), cwd=self.root)


def filled(work: Path, segments: int) -> Filled:
    def make(root: Path) -> Path:
        path = str(root / "catalog.db")
        command = [sys.executable, "-m", "benchmarks.fill_catalog", path, str(segments)]
        subprocess.run(command, cwd=CHECKOUT, env=environment(), check=True, capture_output=True)
        policy = _POLICY.format(root=work / f"filled-{segments}", teams=", ".join(TEAMS))
        write_policy(root / "policies", policy, TEAMS)
        return root

    found = Filled(root=make_once(work / f"filled-{segments}", make))
    _agree(found.root)
    return found


def _agree(root: Path) -> None:
    """Marks are of the policy that plans: after a change of policy every mark is looked at again, once."""
    digest = load_policy(root / "policies", environ={}).digest
    with closing(sqlite3.connect(root / "catalog.db")) as raw, raw:
        if raw.execute("SELECT 1 FROM marks WHERE policy_digest <> ? LIMIT 1", (digest,)).fetchone():
            raw.execute("UPDATE marks SET policy_digest = ?", (digest,))


def plan_and_audit(work: Path, memory: Path | None, *, quick: bool, rounds: int) -> Iterator[Result]:
    """The peer is the same command at a tenth of the segments; 1,000 are due in both."""
    many, few = (1_000_000, 100_000) if quick else (10_000_000, 1_000_000)
    large, small = filled(work, many), filled(work, few)
    for name, arguments in (("plan, 1,000 due", ("plan", "--no-scan")), ("audit, one screen", ("audit",))):
        large.seconds(*arguments)  # once for the page cache
        small.seconds(*arguments)
        pair = measure_pairs(
            Side(work=lambda a=arguments: large.seconds(*a)),  # type: ignore[misc]
            Side(work=lambda a=arguments: small.seconds(*a)),  # type: ignore[misc]
            rounds,
        )
        yield Result(
            name=f"{name}, of {many:,} segments", peer=f"the same of {few:,}", aim="same time, < 1 s",
            ours=pair.ours, theirs=pair.theirs, ratio=pair.ratio, is_met=pair.ratio <= 1.25 and pair.ours < 1,
            note="counted as the same time up to 1.25; marks are of the policy that plans",
        )  # fmt: skip


def memory_of_runs(work: Path, memory: Path | None, *, quick: bool, rounds: int) -> Iterator[Result]:
    """The highest sum over the command and its workers; pages that they share are counted once."""
    many = 1_000_000 if quick else 10_000_000
    size = 256 * MIB if quick else 3072 * MIB
    large = filled(work, many)
    tree = make_once(work / f"one-{size // MIB}", lambda root: make_large_files(root, [size]))
    world = make_world(work / "memory", tree)
    settle(world)
    files = 6_400 if quick else 25_600
    figures = {
        f"plan at {many:,} segments": peak_memory(large.command("plan", "--no-scan"), cwd=large.root),
        f"audit at {many:,} segments": peak_memory(large.command("audit"), cwd=large.root),
        f"run on one file of {size // MIB:,} MiB": peak_memory(program("run"), cwd=world.root),
    }
    world.remove()
    if (small := work / f"small-{files}").exists():
        world = make_world(work / "memory", small)
        figures[f"run on {files:,} small files"] = peak_memory(program("run"), cwd=world.root)
        world.remove()
    for name, figure in figures.items():
        allowed = 300 + 12 * 2
        yield Result(
            name=f"memory: {name}", peer="–", aim="≤ 300 MiB + 12 a thread", unit="MiB", ours=figure / MIB,
            theirs=None, ratio=None, is_met=figure / MIB <= allowed, note="one run",
        )  # fmt: skip


def start_up(work: Path, memory: Path | None, *, quick: bool, rounds: int) -> Iterator[Result]:
    pair = measure_pairs(
        Side(work=lambda: run_timed(program("--help"), cwd=work)),
        Side(work=lambda: run_timed([sys.executable, "-c", "pass"], cwd=work)),
        rounds,
    )
    yield Result(
        name="lifecycle --help", peer="python -c pass", aim="0.3 s", ours=pair.ours, theirs=pair.theirs,
        ratio=pair.ratio, is_met=pair.ours <= 0.3,
    )  # fmt: skip
    world = make_world(work / "idle", None)
    pair = measure_pairs(
        Side(work=lambda: world.lifecycle("run")),
        Side(work=lambda: run_timed([sys.executable, "-c", "pass"], cwd=work)),
        rounds,
    )
    world.remove()
    yield Result(
        name="lifecycle run, nothing to do", peer="python -c pass", aim="–", ours=pair.ours, theirs=pair.theirs,
        ratio=pair.ratio, note="what start-up, policy, catalog and leases cost each of the figures above",
    )  # fmt: skip
