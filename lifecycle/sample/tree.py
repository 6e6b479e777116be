"""Writes the sample's files: logs with a last-write time, and everything else that lies between logs.

Knows names, bytes, modes and times. Must never know which job it writes for (``jobs.py``) or what a policy says.
Times of folders are left as they come; those of files are set after the content, to the nanosecond.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from lifecycle.sample.lines import FORMATS, Writer, render_lines
from lifecycle.units import to_ns

KIB = 1024
MIB = 1024 * KIB
EXCLUDED_FOLDER = "checkpoints"  # the sample's policy does not enter it


@dataclass(slots=True, kw_only=True)
class Counts:
    """What has been written so far."""

    logs: int = 0
    log_bytes: int = 0
    empty: int = 0
    compressed: int = 0
    foreign: int = 0
    foreign_bytes: int = 0
    excluded: int = 0
    links: int = 0
    hard_links: int = 0
    largest_bytes: int = 0
    live: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One root to write below. ``scale`` multiplies numbers of ranks and the size of large files."""

    root: Path
    now: datetime
    rng: Random
    scale: float
    counts: Counts

    def below(self, *parts: str) -> Tree:
        """The same tree, one or more folders down; the folder is made."""
        root = self.root.joinpath(*parts)
        root.mkdir(parents=True, exist_ok=True)
        return Tree(root=root, now=self.now, rng=self.rng, scale=self.scale, counts=self.counts)

    def ranks(self, full: int) -> range:
        """Rank numbers of a job that has ``full`` of them at scale 1, and never fewer than two."""
        return range(max(2, round(full * self.scale)))

    def small(self, median: int = 8 * KIB) -> int:
        """A size as log files have it: most near the median, few much larger."""
        return min(int(self.rng.lognormvariate(0, 0.9) * median), 40 * median)

    def large(self, size_bytes: int) -> int:
        return max(96 * KIB, int(size_bytes * self.scale))

    def minutes(self, low: float, high: float) -> timedelta:
        return timedelta(minutes=self.rng.uniform(low, high))

    def log(
        self,
        name: str | bytes,
        form: str,
        size_bytes: int,
        *,
        age: timedelta,
        writer: Writer | None = None,
        mode: int = 0o640,
        live: bool = False,
    ) -> Path:
        """One log file of about this size, last written ``age`` ago; a name that ends in ``.gz`` is compressed."""
        end = self.now - age
        content = render_lines(
            FORMATS[form],
            self.rng,
            size_bytes=size_bytes,
            end=end,
            writer=writer or Writer(pid=self.rng.randrange(30_000)),
        )
        path = self._path(name)
        if path.suffix == ".gz":
            content = gzip.compress(content, 3, mtime=0)
            self.counts.compressed += 1
        self._write(path, content, end=end, mode=mode)
        self.counts.logs += 1
        self.counts.log_bytes += len(content)
        self.counts.empty += not content
        self.counts.largest_bytes = max(self.counts.largest_bytes, len(content))
        if live:
            self.counts.live.append(path)
        return path

    def foreign(self, name: str | bytes, size_bytes: int, *, age: timedelta, magic: bytes = b"\x80\x02") -> Path:
        """A file that is no log, whatever it is called: numbers and zeros behind a magic number."""
        noise = magic + self.rng.randbytes(min(size_bytes, 64 * KIB))
        content = (noise * (size_bytes // len(noise) + 1))[:size_bytes]
        path = self._path(name)
        self._write(path, content, end=self.now - age, mode=0o640)
        self._count_foreign(len(content))
        return path

    def text(self, name: str, content: str, *, age: timedelta) -> Path:
        """A small text file that is no log: settings, a job script."""
        path = self._path(name)
        self._write(path, content.encode(), end=self.now - age, mode=0o640)
        self._count_foreign(len(content))
        return path

    def _count_foreign(self, size_bytes: int) -> None:
        if self.root.name == EXCLUDED_FOLDER:
            self.counts.excluded += 1
            return
        self.counts.foreign += 1
        self.counts.foreign_bytes += size_bytes

    def link(self, name: str, target: str) -> None:
        """A symbolic link, which may well lead nowhere."""
        self._make(lambda: self._path(name).symlink_to(target))
        self.counts.links += 1

    def hard_link(self, name: str, to: Path) -> None:
        """A second name of a file that was counted as a log: from now on neither name is one."""
        self._make(lambda: self._path(name).hardlink_to(to))
        self.counts.logs -= 1
        self.counts.log_bytes -= to.stat().st_size
        self.counts.hard_links += 2

    def _path(self, name: str | bytes) -> Path:
        return self.root / (name if isinstance(name, str) else os.fsdecode(name))

    def _write(self, path: Path, content: bytes, *, end: datetime, mode: int) -> None:
        self._make(lambda: _create(path, content))
        # Real clocks are finer than whole seconds, and a restore has to bring every nanosecond back.
        end_ns = to_ns(end) + self.rng.randrange(1000)
        path.chmod(mode)
        os.utime(path, ns=(end_ns, end_ns))

    def _make(self, make: Callable[[], object]) -> None:
        try:
            make()
        except FileNotFoundError:
            self.root.mkdir(parents=True, exist_ok=True)
            make()


def _create(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
