"""Fourteen days: jobs write, the command runs twice a day, and everything is held against the books."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.acceptance.fortnight import days
from tests.acceptance.fortnight.books import Books, Entry, Run
from tests.acceptance.fortnight.cluster import Cluster, Tick, when
from tests.acceptance.fortnight.command import Command, Done
from tests.acceptance.fortnight.journal import Journal
from tests.acceptance.fortnight.platform import Platform
from tests.acceptance.fortnight.policy import (
    DAY,
    GRACE,
    HIGH,
    HOUR,
    SOURCES,
    STAY,
    first_rules,
    later_rules,
    write_policy,
)
from tests.acceptance.fortnight.stored import Tier

DAYS: Final = 14
RUN_AT: Final = (2, 14)  # o'clock
HISTORY: Final = 6  # half days of logs that are there before the first run


@dataclass
class Result:
    """What came of it: findings by theme, what happened at all, and figures for people."""

    found: dict[str, list[str]]
    counts: dict[str, int]
    codes: list[tuple[str, int, int]] = field(default_factory=list)  # run, exit code, what the books expected
    audit: str = ""
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not any(self.found.values())


class Fortnight:
    """One simulation in one folder. ``run`` once."""

    def __init__(self, folder: Path, *, scale: int = 1, seed: int = 1, progress: Any = None) -> None:
        self.folder = folder
        self.scale = scale
        self._say = progress or (lambda text: None)
        self.begin_ns = _next_midnight()
        self.platform = Platform(folder / "logs")
        self.rules = first_rules(scale)
        tiers = {name: Tier(folder / "tiers" / name) for name in ("warm", "cold")}
        self.books = Books(self.platform, Journal(folder / "state/catalog.db"), tiers, self.rules)
        self.cluster = Cluster(self.platform, scale=scale, seed=seed, tick=self.tick(-HISTORY))
        self.jobs: list[Iterator[None]] = []
        self.codes: list[tuple[str, int, int]] = []
        self.audit_text = ""

    def tick(self, number: int) -> Tick:
        def end(of: int) -> int:
            # Each a minute later than the one before, by the clock: no limit is met to the second, for a moved clock
            # runs on for some milliseconds until the command asks for it.
            day, half = divmod(of, 2)
            return self.begin_ns + day * DAY + RUN_AT[half] * HOUR + of * HOUR // 60

        return Tick(number, end(number - 1), end(number))

    def run(self) -> Result:
        begun = time.monotonic()
        self._prepare()
        with Command(self.folder) as command:
            self.command = command
            try:
                command("init", "--rehearsal")
                for number in range(-HISTORY, 2 * DAYS):
                    self._half_day(self.tick(number))
                self._close()
            finally:
                self.platform.close()
        return Result(
            found=self.books.found, counts=dict(self.books.counts), codes=self.codes, audit=self.audit_text,
            seconds=time.monotonic() - begun,
        )  # fmt: skip

    def _prepare(self) -> None:
        for name in (*(f"logs/{source}" for source in SOURCES), "tiers", "state"):
            (self.folder / name).mkdir(parents=True)
        disk = self.folder / "disk"
        disk.write_text(_DISK.format(total=self.rules.disk))
        disk.chmod(0o755)
        (self.folder / "others").write_text("0")
        write_policy(self.folder, self.rules)

    # --- one half day -------------------------------------------------------------------------------------------------

    def _half_day(self, tick: Tick) -> None:
        self.cluster.tick = tick
        self.jobs += days.jobs_starting(self.cluster, tick)
        self.jobs = [job for job in self.jobs if _goes_on(job)]
        if tick.number < 0:
            return
        self.books.take_down()
        for act in days.BEFORE.get(tick.number, ()):
            act(self)
        stop = days.STOPPED.get(tick.number, "")
        self._run(tick.end_ns, f"day {tick.day} {'evening' if tick.number % 2 else 'morning'}", stop=stop)
        if stop:
            self._run(tick.end_ns + HOUR // 12, f"day {tick.day} after {stop}")
        for act in days.AFTER.get(tick.number, ()):
            act(self)
        if tick.number % 2 and not stop:
            self._run_again(tick)
        if tick.number % 2:
            self._compare_usage(tick)
        self._say(f"day {tick.day:2} {RUN_AT[tick.number % 2]:02}:00  {self.codes[-1]}")

    def _run(self, now_ns: int, label: str, *, stop: str = "") -> Done:
        done = self.command("run", "--now", show(now_ns), "--json", code=None, stop=stop)
        if done.code == -9:
            self.books.label = label
            self._nothing_is_lost(now_ns)
            self.books.see_missing(now_ns)
            self.codes.append((label, done.code, -9))
            return done
        summary = done.json()
        now_ns = parse(summary["now"])  # a moved clock runs on: some milliseconds after the time it was moved to
        total, free = self.disk()
        run = Run(
            label=label, now_ns=now_ns, summary=summary, is_whole=not summary["stopped"], disk=(total, total - free)
        )
        self.books.after(run)
        expected = self._expected_code()
        self.codes.append((label, done.code, expected))
        if done.code != expected or summary["problem_count"] != (1 if expected == 4 else 0):
            self.books.say("codes", f"exit {done.code}, expected {expected}: {summary['problems']} {summary['broken']}")
        if stop and stop.split()[0] not in summary["stopped"]:
            self.books.say("killed", f"it was told to stop by {stop} and says {summary['stopped']!r}")
        return done

    def _expected_code(self) -> int:
        if self.books.braked:
            return 4
        usage = self.books.usage_of_teams()
        tiers = ("hot", "warm", "cold")
        is_over = any(usage[team, "", "hot", "stored"] > quota.hard for team, quota in self.rules.hot.items())
        is_over |= any(
            sum(usage[team, "", tier, "stored"] for tier in tiers) > quota.hard
            for team, quota in self.rules.total.items()
        )
        total, free = self.disk()
        return 7 if is_over or total - free > HIGH * total else 0

    def disk(self) -> tuple[int, int]:
        """What the fake program tells of the disk now."""
        import subprocess

        said = subprocess.run([self.folder / "disk", self.folder], capture_output=True, text=True, check=True).stdout
        total, free = map(int, said.split())
        return total, free

    def _run_again(self, tick: Tick) -> None:
        """A second run at once has nothing to do."""
        was_full = self.books.last_run is not None and self.books.last_run.relieved_disk
        done = self._run(tick.end_ns, f"day {tick.day} again")
        self.books.counts["ran again"] += 1
        for phase in done.json()["phases"]:
            if was_full and phase["action"] == "copy":
                continue  # early copies take room: on a full disk they wait for a run that finds some
            if phase["segments"] or phase["archives"]:
                self.books.say("idle", f"it did something: {phase}")
        scans = done.json()["scans"]
        for name in ("new", "changed", "renamed", "replaced", "settled", "lost"):
            if any(scan[name] for scan in scans):
                self.books.say("idle", f"it saw something {name}: {scans}")

    def _compare_usage(self, tick: Tick) -> None:
        said = self.command("audit", "--json", "--now", show(tick.end_ns)).json()
        found: Counter[tuple[str, str, str, str]] = Counter()
        for row in said["teams"]:
            for figure in ("segments", "logical", "stored"):
                value = row["usage"]["segments" if figure == "segments" else f"{figure}_bytes"]
                found[row["team"], row["class_name"], row["tier"], figure] += value
        books = self.books.usage()
        for key in sorted(set(found) | set(books)):
            if found[key] != books[key]:
                self.books.say("usage", f"audit says {found[key]} of {'/'.join(key)}, the books {books[key]}")
        self.books.counts["audits compared"] += 1
        self.audit = said

    # --- kills --------------------------------------------------------------------------------------------------------

    def _nothing_is_lost(self, now_ns: int) -> None:
        """After a kill: everything is somewhere, wherever that is, but for what was to be purged."""
        there = Counter[bytes]()
        for path in (self.folder / "logs").rglob("*"):
            if path.is_file() and not path.is_symlink():
                there[hashlib.sha256(path.read_bytes()).digest()] += 1
        for tier in self.books.tiers.values():
            for stored in tier.read().values():
                there.update(member.digest for member in stored.members.values())
        for entry in self.books.entries:
            may_go = entry.marked_ns is not None and entry.marked_ns + GRACE <= now_ns
            if entry.state in ("hot", "stored") and not may_go and not there[entry.content[2]]:
                self.books.say("killed", f"{entry} is nowhere after the kill")
        self.books.counts["killed"] += 1

    # --- what people do with the command ------------------------------------------------------------------------------

    def change_policy(self) -> None:
        self.rules = later_rules(self.rules, self.scale)
        self.books.change_rules(self.rules)
        self.books.braked = True
        write_policy(self.folder, self.rules)

    def accept_policy(self) -> None:
        digest = self.command("policy", "show", "--json").json()["digest"]
        self.command("policy", "accept", digest, "--reason", "MR 214, robotics asked", "--by", "chen")
        self.books.accept(self.cluster.tick.end_ns)
        self.books.counts["accepted"] += 1

    def fill_disk(self) -> None:
        """Somebody's checkpoints: the disk is over its high mark by a MiB."""
        total, free = self.disk()
        (self.folder / "others").write_text(str(int(HIGH * total) - (total - free) + self.scale * 2**20))

    def empty_disk(self) -> None:
        (self.folder / "others").write_text("0")

    def restore_some(self) -> None:
        """A whole job into another folder, and two logs to where they were; one of these is written on."""
        now_ns = self.cluster.tick.end_ns
        job = [e for e in self._stored() if (e.log.team, e.log.job) == ("vision", "detr-2")]
        self.command("restore", "--team", "vision", "--job", "detr-2", "--to", "back")
        for entry in job:
            written = entry.content[2], entry.log.mtime_ns, entry.log.mode
            name = self.folder / "back" / entry.log.source / os.fsdecode(entry.name)
            # Several that had one path, as rotations do, have their number behind it.
            if written not in {_look(path) for path in (name, name.with_name(f"{name.name}.segment-{entry.row}"))}:
                self.books.say("restore", f"{entry} did not come back as it was written")
            self.books.counts["restored elsewhere"] += 1
        chosen = [e for e in job if e.source is None and e.log.place not in self.platform.logs and e.log.size][:2]
        for entry in chosen:
            path = os.fsdecode(self.platform.full(*entry.log.place))
            self.command("restore", "--path", path, "--in-place")
            self.books.restored(entry, now_ns + STAY)
        edited = chosen[0]
        assert edited.back is not None
        self.platform.append(edited.back, b"a remark by hand\n", at_ns=now_ns + HOUR)
        self.books.edited(edited)

    def _stored(self) -> list[Entry]:
        return [entry for entry in self.books.entries if entry.state == "stored"]

    # --- the end ------------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        now = show(self.cluster.tick.end_ns)
        self.audit_text = self.command("audit", "--now", now).out
        sums = Counter(entry.state for entry in self.books.entries)
        self.books.counts.update({f"in the end {state}": count for state, count in sums.items()})


def _goes_on(job: Iterator[None]) -> bool:
    """Let it work for a tick; whether it has more to do."""
    return next(job, _ENDED) is not _ENDED


def _look(path: Path) -> tuple[bytes, int, int] | None:
    """Digest, time and mode."""
    if not path.is_file():
        return None
    facts = path.stat()
    return hashlib.sha256(path.read_bytes()).digest(), facts.st_mtime_ns, facts.st_mode & 0o7777


_ENDED: Final = object()
# TOTAL FREE of a disk that holds logs and tiers, and what others have on it.
_DISK: Final = """\
#!/bin/sh
used=$(du -s -c -B 1 "$1/logs" "$1/tiers" | tail -n 1 | cut -f 1)
echo {total} $(({total} - used - $(cat "$1/others")))
"""


def _next_midnight() -> int:
    """At least two hours from now: files cannot be given an old ctime, and the first run is after it."""
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(hours=2)
    day = soon.replace(hour=0, minute=0, second=0, microsecond=0) + dt.timedelta(days=1)
    return int(day.timestamp()) * 10**9


def parse(text: str) -> int:
    at = dt.datetime.fromisoformat(text)
    return int(at.timestamp()) * 10**9 + at.microsecond * 1000


def show(at_ns: int) -> str:
    return f"{when(at_ns):%Y-%m-%dT%H:%M:%SZ}"


def as_dict(result: Result) -> dict[str, Any]:
    return asdict(result)
