"""The real command, each call a process of its own, forked from one that has imported it already.

A fortnight has a hundred calls, and importing is most of what each would take. The forked process does what
``python -m lifecycle`` does from there on: its own arguments, working folder, output and exit code, and nothing of it
outlives the call. ``python -m tests.acceptance.fortnight.command`` is the process that forks.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

CHECKOUT: Final = Path(__file__).parents[3]
# What a run, an audit and a listing import by and by.
_IMPORTED: Final = (
    "cli.main", "cli.run", "cli.audit", "cli.ls", "wiring", "run", "restore", "report.runs", "report.json",
    "report.audit", "report.screen", "report.listing", "archive.writer", "archive.reader", "catalog.store",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of one call. ``code`` is negative for a signal, as with subprocess."""

    arguments: tuple[str, ...]
    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict), self
        return found

    def __str__(self) -> str:
        return f"lifecycle {' '.join(self.arguments)}: exit {self.code}\n{self.out[-3000:]}{self.err[-3000:]}"


class Command:
    """Calls ``lifecycle`` in one folder. A context manager: leaving it ends the process that forks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT), "USER": "operator"}
        self._server = subprocess.Popen(
            [sys.executable, "-m", __spec__.name], cwd=folder, env=environ, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._server:
            assert self._server.stdin is not None
            self._server.stdin.close()

    def __call__(self, *arguments: str, code: int | None = 0, stop: str = "") -> Done:
        """``code``: the exit code that it must have; None: any. ``stop``: "KILL 3": that signal before the process
        removes its third file of a source."""
        done = self._call(arguments, stop)
        if "Traceback (most recent" in done.err or (code is not None and done.code != code):
            raise AssertionError(f"expected exit {code}: {done}")
        return done

    def _call(self, arguments: tuple[str, ...], stop: str) -> Done:
        assert self._server.stdin is not None and self._server.stdout is not None
        with tempfile.TemporaryDirectory() as scratch:
            outputs = [str(Path(scratch, name)) for name in ("out", "err")]
            self._server.stdin.write(json.dumps([arguments, outputs, stop]) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            out, err = (Path(path).read_text() for path in outputs)
        return Done(arguments=arguments, code=code, out=out, err=err)


def serve() -> None:
    """Fork for each line of stdin, answer with the exit code. Ends with its input."""
    for name in _IMPORTED:
        importlib.import_module(f"lifecycle.{name}")
    gc.freeze()
    for line in sys.stdin:
        arguments, outputs, stop = json.loads(line)
        child = os.fork()
        if not child:
            _become(arguments, outputs, stop)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(arguments: list[str], outputs: list[str], stop: str) -> None:
    from lifecycle.cli.main import main

    for number, path in enumerate(outputs, 1):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(fd, number)
        os.close(fd)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    if stop:
        name, _, count = stop.partition(" ")
        _stop_at_removal(getattr(signal, f"SIG{name}"), int(count))
    sys.argv = ["lifecycle", *arguments]
    main()


def _stop_at_removal(number: signal.Signals, count: int) -> None:
    """Of originals: nothing else is unlinked by a number for its name, relative to a folder of ours."""
    unlink, left = os.unlink, [count]

    def removing(path: Any, *, dir_fd: int | None = None) -> None:
        if dir_fd is not None and isinstance(path, bytes) and path.isdigit():
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), number)
        unlink(path, dir_fd=dir_fd)

    vars(os)["unlink"] = removing


if __name__ == "__main__":
    serve()
