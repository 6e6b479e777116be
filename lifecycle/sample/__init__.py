"""A sample: a tree of logs as a training platform has it, made in seconds, and a policy that fits.

Travels in the wheel, so that anybody can look at the tool before pointing it at logs of their own:
``python -m lifecycle.sample make --into DIR`` and ``python -m lifecycle.sample demo --into DIR``. Knows file names,
lines and ages; must never know the catalog, a tier's inside or what the planner will say.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from lifecycle.sample.jobs import JOBS, PODS, SHARED, SLURM
from lifecycle.sample.lines import FORMATS, Writer, render_lines
from lifecycle.sample.policy import write_sample_policy
from lifecycle.sample.tree import Counts, Tree
from lifecycle.units import to_ns

__all__ = ["SOURCES", "SampleFacts", "grow_sample", "make_sample", "write_sample_policy"]

SOURCES = (SHARED, SLURM, PODS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFacts:
    """What was made. ``logs`` are regular files with one name that a layout claims and whose content is text, empty
    or compressed text; ``foreign`` are files between them that are none; hard-linked names are in neither."""

    root: Path
    now: datetime
    teams: tuple[str, ...]
    jobs: int
    logs: int
    log_bytes: int
    empty: int
    compressed: int
    foreign: int
    foreign_bytes: int
    excluded: int  # files in folders that the sample's policy does not enter
    links: int
    hard_links: int  # names
    largest_bytes: int
    live: tuple[Path, ...]  # files of the job that still writes


def make_sample(root: Path, *, now: datetime, seed: int, scale: float = 1.0) -> SampleFacts:
    """Make the tree below ``root``, which must not hold one yet: one folder for each of ``SOURCES``.

    The last writes lie between half a minute and 120 days before ``now``. The same seed and ``now`` give the same
    names, bytes, modes and times. ``scale`` multiplies ranks and large files (1.0: some 2,000 files and 200 MB, made
    in a few seconds; 0.05: some 200 files and a few MB). Raises FileExistsError where a file is in the way.
    """
    counts = Counts()
    for source in SOURCES:
        (root / source).mkdir(parents=True, exist_ok=True)
    for job in JOBS:
        rng = Random(f"{seed}/{job.write.__name__}")  # a job's files do not change when another job is added
        tree = Tree(root=root / job.source, now=now, rng=rng, scale=scale, counts=counts)
        job.write(tree.below(*job.folder))
    return SampleFacts(
        root=root,
        now=now,
        teams=tuple(sorted({job.team for job in JOBS})),
        jobs=len(JOBS),
        logs=counts.logs,
        log_bytes=counts.log_bytes,
        empty=counts.empty,
        compressed=counts.compressed,
        foreign=counts.foreign,
        foreign_bytes=counts.foreign_bytes,
        excluded=counts.excluded,
        links=counts.links,
        hard_links=counts.hard_links,
        largest_bytes=counts.largest_bytes,
        live=tuple(counts.live),
    )


def grow_sample(facts: SampleFacts, *, now: datetime) -> int:
    """Let the live job write on until ``now``: rank 0 rotates, the others append. Returns the bytes written.

    Called again it writes again; the rotation needs the older one (``.1``) to have left the tree, and is passed over
    while that is still there.
    """
    written = 0
    for rank, path in enumerate(facts.live):
        older = path.with_name(path.name + ".1")
        if rank == 0 and not older.exists():
            path.rename(older)
        rng = Random(f"{now}/{rank}")
        lines = render_lines(FORMATS["rank"], rng, size_bytes=4096, end=now, writer=Writer(rank=rank))
        with path.open("ab") as file:
            written += file.write(lines)
        end_ns = to_ns(now - timedelta(minutes=rank % 20))
        os.utime(path, ns=(end_ns, end_ns))
    return written
