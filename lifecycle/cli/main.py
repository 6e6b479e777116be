"""``lifecycle``: the group, its options, and the entry point. Imports no command and nothing heavy."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

import lifecycle
from lifecycle.cli.command import MainGroup, common_options
from lifecycle.cli.invocation import Invocation

EXIT_CODES = """\b
Exit codes:
  0  done, nothing due, or stopped on purpose
  1  failed
  2  usage, settings, policy, schema version
  3  in part: something failed or was unseen
  4  a brake
  5  lease held by somebody else
  6  damage
  7  attention: a hard quota, high mark or reserve is still broken; audit --check found a line
  8  nothing found (ls, explain, restore)"""


@click.group(
    "lifecycle",
    cls=MainGroup,
    params=common_options(hidden=False),
    epilog=EXIT_CODES,
    examples=(
        "init --source /lustre/logs --tiers /mnt/backup  # a starter policy, a catalog, markers",
        "plan --root /some/tree                          # what would happen to my logs; changes nothing",
        "run                                             # what cron calls",
        "audit                                           # one screen: where we are",
    ),
)
@click.version_option(lifecycle.__version__, "--version", message="%(prog)s %(version)s")
@click.pass_obj
def group(call: Invocation) -> None:
    """Keep training logs for as long as they are worth it: hot, warm, cold, gone, by class and age.

    Reports go to stdout, the log to stderr. What is typed as TIME may be 2026-09-11, '2026-09-11 02:30',
    2026-09-11T02:30Z, -7d or +30d; without a zone it is in the policy's time zone.
    """
    if call.policies is None and (folder := os.environ.get("LIFECYCLE_POLICIES")):
        call.policies = Path(folder)


def main() -> None:
    """The console script."""
    # Rows come and go by the thousand and are in no cycles: with Python's own figures the collector looks through all
    # of them again and again, a third of a plan's time and a tenth of the start-up.
    gc.set_threshold(100_000, 20, 20)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us, as cron wrappers do with >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
    try:
        group.main()
    except SystemExit as done:
        _leave(done.code if isinstance(done.code, int) else 1)


def _leave(code: int) -> NoReturn:
    """Without taking the interpreter apart object by object, which takes as long as importing it all did."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # its reader has gone, or it was closed
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
