"""``lifecycle run``."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lifecycle.cli.actions import ACTIONS, parse_actions
from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.plan import PlanRequest, show_plan
from lifecycle.cli.times import DURATION, WHEN, When
from lifecycle.errors import ExitCode, UsageError
from lifecycle.units import parse_duration

if TYPE_CHECKING:
    from lifecycle.session import RunOptions


@click.command(
    "run",
    cls=HouseCommand,
    examples=(
        "run --quiet --max-duration 5h --if-held skip    # for cron",
        "run --plan tonight.plan                         # just what that file lists",
        "run --dry-run                                   # the same as lifecycle plan",
        "run --only moves --json",
    ),
)
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing: lifecycle plan.")
@click.option("--plan", "plan_file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Do what this file of plan --out lists, and nothing else.")  # fmt: skip
@click.option("--only", multiple=True, type=click.Choice(ACTIONS), metavar="ACTION",
              help=f"Only these actions: {', '.join(ACTIONS)}. May be repeated.")  # fmt: skip
@click.option(
    "--max-duration",
    type=DURATION,
    metavar="TIME",
    help="Begin no new batch after this time, as 5h. Ends well: exit code 0.",
)
@click.option("--if-held", default="fail", show_default=True, metavar="fail|skip|wait:10m",
              help="What to do where another run holds a place.")  # fmt: skip
@click.option("--now", type=WHEN, metavar="TIME", help="Move the clock; only on a catalog made with init --rehearsal.")
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def command(
    call: Invocation,
    *,
    dry_run: bool,
    plan_file: Path | None,
    only: tuple[str, ...],
    max_duration: timedelta | None,
    if_held: str,
    now: When | None,
    form: Form,
) -> ExitCode:
    """Scan, then move, merge, mark and purge what is due.

    The summary for people goes to stdout. The summary for machines is one JSON line, the last one: on stderr where
    stderr is no terminal, on stdout instead of the people's with --json. It comes also when the run fails.
    """
    if dry_run:
        if plan_file is not None:
            raise UsageError("--dry-run and --plan at once", hint="lifecycle plan shows what is due now")
        return show_plan(call, form, PlanRequest(now=now, only=only))
    return _run(call, form, _make_options(plan_file, only, max_duration, if_held), now)


def _make_options(
    plan_file: Path | None, only: tuple[str, ...], max_duration: timedelta | None, if_held: str
) -> RunOptions:
    from lifecycle.session import RunOptions

    mode, wait = parse_if_held(if_held)
    return RunOptions(only=parse_actions(only), max_duration=max_duration, plan_file=plan_file, if_held=mode, wait=wait)


def parse_if_held(text: str) -> tuple[str, timedelta]:
    """``fail``, ``skip``, or fail after a wait. Raises UsageError."""
    mode, colon, duration = text.partition(":")
    if mode in ("fail", "skip") and not colon:
        return mode, timedelta(0)
    if mode == "wait":
        try:
            return "fail", parse_duration(duration)
        except ValueError as error:
            raise UsageError(f"--if-held {text}: {error}", hint="as --if-held wait:10m") from None
    raise UsageError(f"--if-held {text!r} is not known", hint="fail, skip, or wait:10m")


def _run(call: Invocation, form: Form, options: RunOptions, now: When | None) -> ExitCode:
    from lifecycle.report.json import RUN_SCHEMA, render_run_line

    call.promise_last_line(RUN_SCHEMA, on_stdout=not form.is_table)
    with open_app(call, read_only=False, now=now) as app:
        # Imported now: the catalog's pages are being looked at meanwhile.
        from lifecycle.report.runs import fold_run
        from lifecycle.run import run_once

        report = run_once(app, options, call.progress())
    call.last_line(render_run_line(report))
    deliver(call, form, blocks=lambda: fold_run(report), json=list)
    return report.exit_code
