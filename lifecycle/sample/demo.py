"""Shows the whole tool on the sample: the real command line, run by run, with the clock moved on in between.

Calls ``lifecycle`` as a person would, in the folder it makes, and says before each call what it is for. Afterwards it
looks for itself: what was restored is compared, byte for byte, with what the sample wrote. Knows the command line
and the sample; must never reach behind either.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from lifecycle.clock import SystemClock
from lifecycle.errors import ExitCode, LifecycleError, UsageError
from lifecycle.names import show_name
from lifecycle.sample import SOURCES, SampleFacts, grow_sample, make_sample, write_sample_policy
from lifecycle.units import format_count, format_size

OURS: Final = ".made-by-lifecycle-sample"  # a folder without it is never emptied
PURGING: Final = timedelta(days=6)  # a mark on the second day, three days of grace, and the day after
_GOOD: Final = (ExitCode.DONE, ExitCode.ATTENTION)


class DemoFailed(LifecycleError):
    """A command of the demo ended as it should not, or a restored file differs from what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """One file as the sample wrote it."""

    digest: bytes
    mode: int
    mtime_ns: int


def run_demo(into: Path, *, seed: int = 1, scale: float = 1.0) -> None:
    """Make the sample below ``into`` and take it through a week. What an earlier demo left there is removed first.

    Raises UsageError when ``into`` holds something else, DemoFailed when anything came out wrong.
    """
    _prepare(into)
    # The tree is made as of three hours from now: files cannot be given an old ctime, and settle looks at it.
    now = SystemClock().now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=4)
    facts = _make(into, now=now, seed=seed, scale=scale)
    written = _remember(facts)
    demo = _Shell(folder=into)
    _first_day(demo, now)
    grow_sample(facts, now=now + timedelta(days=2))
    _say("Two days later. The live job wrote on and rotated; what was in warm has aged, and expiration may begin.")
    demo.run("run", "--now", _when(now + timedelta(days=2)))
    grow_sample(facts, now=now + PURGING)
    _say("Four more days. The marks of the second day have had their three days of grace: they are purged now.")
    demo.run("run", "--now", _when(now + PURGING))
    _look_back(demo, now + PURGING)
    _restore(demo, facts, written)
    _close(demo)


def _prepare(into: Path) -> None:
    if into.exists() and not (into / OURS).exists() and any(into.iterdir()):
        raise UsageError(f"{into} holds something that the sample did not make", hint="give --into another folder")
    if into.exists():
        shutil.rmtree(into)
    into.mkdir(parents=True)
    (into / OURS).write_text("This folder is removed and made anew by the next demo.\n", encoding="utf-8")


def _make(into: Path, *, now: datetime, seed: int, scale: float) -> SampleFacts:
    clock = SystemClock()
    begun = clock.monotonic()
    facts = make_sample(into / "logs", now=now, seed=seed, scale=scale)
    state = into / "state"
    state.mkdir()
    write_sample_policy(
        into / "policies", logs=into / "logs", catalog=state / "catalog.db", warm=into / "warm", cold=into / "cold"
    )
    _say(
        f"A sample in {into}: {format_count(facts.logs)} logs of {facts.jobs} jobs and {len(facts.teams)} teams, "
        f"{format_size(facts.log_bytes)}, from minutes to 120 days old; {facts.foreign} files between them that are no "
        f"logs. Made in {clock.monotonic() - begun:.1f} s. Its policy: {into / 'policies'}"
    )
    return facts


def _first_day(demo: _Shell, now: datetime) -> None:
    _say("A catalog for rehearsals, whose clock may be moved, and a marker in each place.")
    demo.run("init", "--rehearsal")
    _say("What a run would do. Nothing is changed by asking.")
    demo.run("plan", "--now", _when(now))
    _say("The scan alone fills the catalog; the audit then shows how it stands before anything has moved.")
    demo.run("scan", "--now", _when(now))
    demo.run("audit", "--now", _when(now))
    _say("The first run: what is over its age moves to warm or cold. Nothing expires within a day of first sight.")
    demo.run("run", "--now", _when(now))


def _look_back(demo: _Shell, now: datetime) -> None:
    _say("The audit after: less, smaller, fewer objects, and each of them still found.")
    demo.run("audit", "--now", _when(now))
    _say("Where everything is, and what happened to one log of a finished job.")
    demo.run("ls", "--team", "nlp", "--by", "job")
    demo.run("explain", "logs/shared/vision/detr-r50/rank_1.log", "--now", _when(now))


def _restore(demo: _Shell, facts: SampleFacts, written: Mapping[str, _Written]) -> None:
    _say("What three teams have stored, back as files in another folder: bytes, names, times and modes.")
    demo.run(
        "restore", "--team", "nlp", "--team", "recsys", "--team", "speech", "--state", "stored", "--to", "restored"
    )
    restored = demo.folder / "restored"
    found = {name: path for path, name in _iter_files(restored) if name in written}
    unlike = [name for name, path in found.items() if _look_at(path) != written[name]]
    if unlike or not found:
        raise DemoFailed(f"{len(unlike)} of {len(found)} restored files differ from what was written: {unlike[:3]}")
    _say(f"Compared with what the sample wrote: {format_count(len(found))} files, every one the same.")


def _close(demo: _Shell) -> None:
    name = "lifecycle" if shutil.which("lifecycle") else shlex.join(_program())
    _say(
        f"All of it lies in {demo.folder}: logs, warm, cold, restored, policies, state/catalog.db. Look with\n"
        f"  cd {shlex.quote(str(demo.folder))} && {name} history && {name} audit --section teams\n"
        "Your own logs, without changing a byte of them:\n"
        f"  {name} plan --root /your/logs"
    )


# --- the files --------------------------------------------------------------------------------------------------------


def _remember(facts: SampleFacts) -> dict[str, _Written]:
    live = set(facts.live)
    return {name: _look_at(path) for path, name in _iter_files(facts.root) if path not in live}


def _iter_files(root: Path) -> Iterator[tuple[Path, str]]:
    """Regular files below a root, each with its path from the source's name on, as text."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".lifecycle"]
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path, _from_source(path.relative_to(root))


def _from_source(path: Path) -> str:
    parts = path.parts
    start = next((index for index, part in enumerate(parts) if part in SOURCES), 0)
    return show_name(os.fsencode(Path(*parts[start:])))


def _look_at(path: Path) -> _Written:
    facts = path.stat()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "blake2b").digest()
    return _Written(digest=digest, mode=facts.st_mode, mtime_ns=facts.st_mtime_ns)


# --- the command line -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shell:
    """Types commands in the demo's folder, where ./policies is found by itself."""

    folder: Path

    def run(self, *arguments: str) -> None:
        """Show the command, run it, let it print. Raises DemoFailed on an exit code other than 0 and 7."""
        sys.stdout.write(f"$ lifecycle {shlex.join(arguments)}\n")
        sys.stdout.flush()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LIFECYCLE_")}
        # A terminal gets the command's progress; elsewhere its last line is for machines, and there is none here.
        is_watched = sys.stderr.isatty()
        ended = subprocess.run(
            [*_program(), *arguments],
            cwd=self.folder, env=environment, check=False, text=True, stderr=None if is_watched else subprocess.PIPE,
        )  # fmt: skip
        for line in (ended.stderr or "").splitlines():
            if not line.startswith("{"):
                sys.stderr.write(line + "\n")
        sys.stderr.flush()
        if ended.returncode not in _GOOD:
            raise DemoFailed(
                f"lifecycle {shlex.join(arguments)}: exit {ended.returncode}",
                hint=f"look in {self.folder}; lifecycle history",
            )


def _program() -> list[str]:
    """This installation's own command: the script beside the interpreter, else what that script would call."""
    script = Path(sys.executable).with_name("lifecycle")
    if script.exists():
        return [str(script)]
    return [sys.executable, "-c", "from lifecycle.cli.main import main; main()"]


def _when(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _say(text: str) -> None:
    sys.stdout.write(f"\n# {text}\n")
    sys.stdout.flush()
