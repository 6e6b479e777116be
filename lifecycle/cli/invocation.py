"""One call of the program: common options, where reports and logs go, what happens at the end.

Reports go to stdout, the log and errors to stderr. ``--quiet`` keeps both back until the exit code is known and drops
them when it is 0. Whoever reads stdout may go away (``| head``): then the rest is not printed, and nothing fails.
"""

from __future__ import annotations

import io
import os
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lifecycle.errors import ExitCode

if TYPE_CHECKING:
    from lifecycle.report.blocks import Block
    from lifecycle.report.figures import Progress

_KEPT_LINES: Final = 20_000  # of a quiet report; more would be a listing, which nobody asks to be quiet


@dataclass(slots=True, kw_only=True)
class Invocation:
    policies: Path | None = None
    quiet: bool = False
    verbose: bool = False
    log_format: str = "text"
    command: str = ""
    _kept_out: list[str] = field(default_factory=list)
    _kept_err: deque[str] = field(default_factory=lambda: deque(maxlen=5_000))
    _schema: str = ""  # of the last line that was promised
    _is_last_on_stdout: bool = False
    _last_line: str | None = None
    _has_begun: bool = False
    _is_reader_gone: bool = False

    def begin(self, command: str) -> None:
        """The options are known: set up the log. A second call, as for a sub-command, changes nothing."""
        self.command = command
        if self._has_begun:
            return
        self._has_begun = True
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a locale without → must not end a report half way
                stream.reconfigure(errors="backslashreplace")
        from lifecycle.cli.log import start_log

        start_log(self)

    # --- stdout: the report ---------------------------------------------------------------------------------------

    @property
    def is_terminal(self) -> bool:
        """People look at stdout right now."""
        return not self.quiet and sys.stdout.isatty()

    def print_blocks(self, blocks: Iterable[Block]) -> None:
        """A report for people: with colours on a terminal, plain elsewhere."""
        from lifecycle.report.text import print_rich, render_text

        if not self.is_terminal:
            self.print_lines(render_text(blocks))
        elif not self._is_reader_gone:
            from rich.console import Console

            with _PipeGuard(self):
                print_rich(blocks, Console(file=sys.stdout))

    def print_lines(self, lines: Iterable[str]) -> None:
        """Lines as they are, read lazily; no more are asked for once the reader of stdout has left."""
        if self.quiet:
            self._kept_out.extend(islice(lines, max(0, _KEPT_LINES - len(self._kept_out))))
        elif not self._is_reader_gone:
            with _PipeGuard(self):
                for line in lines:
                    sys.stdout.write(line + "\n")
                sys.stdout.flush()

    # --- stderr: log and errors -----------------------------------------------------------------------------------

    def err(self, line: str) -> None:
        if self.quiet:
            self._kept_err.append(line)
        else:
            _write_err(line)

    def promise_last_line(self, schema: str, *, on_stdout: bool) -> None:
        """The machine's line comes last, whatever happens from here on: on stdout where JSON was asked for, else on
        stderr unless that is a terminal, where it would be noise."""
        self._schema, self._is_last_on_stdout = schema, on_stdout

    def last_line(self, line: str) -> None:
        self._last_line = line

    def failed(self, error: BaseException, code: ExitCode) -> None:
        """What was promised comes also from a run that ended in an error."""
        if self._schema and self._last_line is None:
            from lifecycle.clock import SystemClock
            from lifecycle.report.json import render_failure_line

            self._last_line = render_failure_line(self._schema, error, code, now=SystemClock().now())

    def progress(self) -> Progress:
        from lifecycle.cli.progress import make_progress

        return make_progress(is_wanted=not self.quiet and self.log_format == "text" and sys.stderr.isatty())

    def end(self, code: int) -> int:
        """Print what was kept back if the code is not 0, flush, and give the code to leave with."""
        try:
            if code and self.quiet:
                for line in self._kept_err:
                    _write_err(line)
                with _PipeGuard(self):
                    sys.stdout.writelines(line + "\n" for line in self._kept_out)
            if self._last_line is not None and (code or not self.quiet):
                self._write_last(self._last_line)
            with _PipeGuard(self):
                sys.stdout.flush()
        except OSError as error:  # a full disk under stdout: a report that is not there must not look like success
            _write_err(f"lifecycle: report not written: {(error.strerror or str(error)).lower()}")
            _silence(sys.stdout)
            return code or ExitCode.FAILED
        return code

    def _write_last(self, line: str) -> None:
        if self._is_last_on_stdout:
            with _PipeGuard(self):
                sys.stdout.write(line + "\n")
        elif self.log_format == "json" or not sys.stderr.isatty():
            _write_err(line)


class _PipeGuard:
    """Swallows a broken pipe on stdout, and keeps the interpreter's exit from complaining about it."""

    def __init__(self, call: Invocation) -> None:
        self._call = call

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, BrokenPipeError):
            return False
        self._call._is_reader_gone = True
        _silence(sys.stdout)
        return True


def _silence(stream: object) -> None:
    try:
        number = stream.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _write_err(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        # stderr is closed or full: there is nobody left to tell.
        _silence(sys.stderr)
