"""Where jobs run: the present half day, lines as jobs write them, and what rotators do every night.

One ``Tick`` lies between two runs of the command. Lines are those of the package's sample, which are made up of the
formats that real launchers write; tracebacks are put between them here, so that it is known which lines are errors.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from dataclasses import dataclass
from random import Random
from typing import Final

from lifecycle.sample.lines import FORMATS, Writer, render_lines
from tests.acceptance.fortnight.platform import Errors, Log, Platform, count_lines
from tests.acceptance.fortnight.policy import HOUR

KIB: Final = 1024
_NUMBERED: Final = re.compile(rb"\.(\d+)(\.gz)?\Z")


@dataclass(frozen=True)
class Tick:
    number: int  # from 0; two a day
    start_ns: int
    end_ns: int  # the present of the run that follows

    @property
    def day(self) -> int:
        return self.number // 2 + 1

    def at(self, share: float) -> int:
        """An instant of it. Up to 0.9 it is quiet for an hour before the run."""
        return self.start_ns + int((self.end_ns - self.start_ns) * share)

    @property
    def just_now(self) -> int:
        return self.end_ns - HOUR // 6


def when(at_ns: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(at_ns // 1000 / 1e6, dt.UTC)


def stamp(at_ns: int, form: str) -> bytes:
    return when(at_ns).strftime(form).encode()


class Cluster:
    """What a job has at hand. ``scale`` multiplies ranks, never the size of a file."""

    def __init__(self, platform: Platform, *, scale: int, seed: int, tick: Tick) -> None:
        self.platform = platform
        self.scale = scale
        self.tick = tick
        self._rng = Random(seed)

    def many(self, count: int) -> range:
        return range(count * self.scale)

    def share(self) -> float:
        """Some time of the tick, quiet for an hour and more when the run comes."""
        return self._rng.uniform(0.05, 0.9)

    def word(self, letters: str = "abcdefghijklmnopqrstuvwxyz0123456789", length: int = 8) -> str:
        return "".join(self._rng.choice(letters) for _ in range(length))

    def size(self, median: int = 4 * KIB) -> int:
        """Of a log: most near the median, few much larger."""
        return min(int(self._rng.lognormvariate(0, 0.7) * median), 8 * median)

    def noise(self, size: int) -> bytes:
        return b"\x80\x02\x00\x01" + self._rng.randbytes(size)

    def lines(self, form: str, size: int, *, at_ns: int, rank: int = 0, node: str = "gpu-001") -> bytes:
        writer = Writer(node=node, rank=rank, pid=self._rng.randrange(1000, 30_000))
        return render_lines(FORMATS[form], self._rng, size_bytes=size, end=when(at_ns), writer=writer)

    def failing(
        self, form: str, size: int, *, at_ns: int, rank: int = 0, node: str = "gpu-001"
    ) -> tuple[bytes, Errors]:
        """Lines with a traceback between them, and which lines that are."""
        whole = self.lines(form, size, at_ns=at_ns, rank=rank, node=node).splitlines(keepends=True)
        at = self._rng.randrange(len(whole) // 2, len(whole)) if whole else 0
        before, after = b"".join(whole[:at]), b"".join(whole[at:])
        block = self._traceback(at_ns, rank)
        if form == "container":
            head = stamp(at_ns, "%Y-%m-%dT%H:%M:%S.000000000Z stderr F ")
            block = [head + line for line in block]
        first = count_lines(before) + 1
        errors = [(first + number, line) for number, line in enumerate(block)]
        return before + b"".join(line + b"\n" for line in block) + after, errors

    def _traceback(self, at_ns: int, rank: int) -> list[bytes]:
        """Each with words of its own, as no two failures are the same."""
        step, word = self._rng.randrange(10**6), self.word()
        text = (
            f"{when(at_ns):%Y-%m-%d %H:%M:%S},000 ERROR [rank{rank}] train: step {step} of {word} failed\n"
            "Traceback (most recent call last):\n"
            f'  File "/work/{word}/train.py", line {step % 400 + 1}, in train_step\n'
            "    loss.backward()\n"
            f"RuntimeError: CUDA error: device-side assert triggered in {word}"
        )
        return text.encode().split(b"\n")

    # --- logs of a job ------------------------------------------------------------------------------------------------

    def log(
        self,
        source: str,
        path: str | bytes,
        form: str,
        size: int,
        *,
        team: str,
        job: str,
        kind: str = "log",
        node: str = "",
        rank: int | None = None,
        mode: int = 0o640,
        at_ns: int | None = None,
        fails: bool = False,
        keep_open: bool = False,
    ) -> Log:
        """A log of that much text; one that is there under this name is continued, as a job that was restarted does."""
        name = path.encode() if isinstance(path, str) else path
        at = self.tick.at(self.share()) if at_ns is None else at_ns
        make = self.failing if fails else self._clean
        content, errors = make(form, size, at_ns=at, rank=rank or 0, node=node or "gpu-001")
        there = self.platform.logs.get((source, name))
        if there is not None:
            self.platform.append(there, content, at_ns=max(at, there.mtime_ns), errors=errors)
            return there
        return self.platform.write(
            source, name, content, at_ns=at, team=team, job=job, kind=kind, node=node, rank=rank, mode=mode,
            keep_open=keep_open, errors=errors,
        )  # fmt: skip

    def _clean(self, form: str, size: int, *, at_ns: int, rank: int, node: str) -> tuple[bytes, Errors]:
        return self.lines(form, size, at_ns=at_ns, rank=rank, node=node), []

    def more(
        self, log: Log, form: str, size: int, *, path: bytes = b"", at_ns: int | None = None, fails: bool = False
    ) -> Log:
        """The same log, some lines longer; under the same name anew where it has left or was renamed meanwhile.

        With a time of its own it is still written, and a new one is kept open; without, its writer ends in this tick.
        """
        is_live = at_ns is not None
        log = self.log(
            log.source, path or log.path, form, size, team=log.team, job=log.job, kind=log.kind, node=log.node,
            rank=log.rank, mode=log.mode, at_ns=at_ns, fails=fails, keep_open=is_live,
        )  # fmt: skip
        if not is_live:
            self.platform.finish(log)
        return log

    # --- rotators -----------------------------------------------------------------------------------------------------

    def rotate(self, log: Log, *, keep: int = 4, packed: bool = True) -> bytes:
        """logrotate's numbers: what is there moves up by one, the second is compressed, the last goes. The name that is
        free then."""
        platform, base = self.platform, log.path
        if not log.is_here:
            return base
        set_ = [
            (int(match[1]), match[2] or b"", other)
            for (source, path), other in platform.logs.items()
            if source == log.source and path.startswith(base) and (match := _NUMBERED.fullmatch(path[len(base) :]))
        ]
        for number, ending, other in sorted(set_, key=lambda each: -each[0]):
            if number >= keep:
                platform.delete(other)
                continue
            platform.rename(other, base + b".%d" % (number + 1) + ending)
            if packed and not ending and not other.is_open and not other.has_links:
                platform.compress(other)
        platform.finish(log)
        platform.rename(log, base + b".1")
        return base

    def rotate_by_date(self, log: Log, *, packed: bool = True, dash: str = "-%Y%m%d%H") -> bytes:
        """dateext: one a tick, named by it; the one before is compressed. The name that is free then."""
        platform, base = self.platform, log.path
        if not log.is_here:
            return base
        for (source, path), other in list(platform.logs.items()):
            is_older = source == log.source and path.startswith(base + dash[:1].encode()) and not path.endswith(b".gz")
            if packed and is_older and not other.is_open:
                platform.compress(other)
        platform.finish(log)
        platform.rename(log, base + stamp(self.tick.start_ns, dash))
        return base

    def remove_folder(self, source: str, folder: bytes) -> None:
        """rmtree: what is still there of it."""
        for (other, path), log in list(self.platform.logs.items()):
            if other == source and path.startswith(folder + b"/"):
                self.platform.delete(log)
        full = self.platform.full(source, folder)
        for place, _, _ in os.walk(full, topdown=False):
            os.rmdir(place)
