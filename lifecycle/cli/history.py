"""``lifecycle history``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.selectors import parse_path
from lifecycle.errors import ExitCode, NothingFound, UsageError

if TYPE_CHECKING:
    from lifecycle.report.blocks import Table
    from lifecycle.wiring import App


@click.command(
    "history",
    cls=HouseCommand,
    examples=(
        "history                      # the last runs",
        "history 1882 --problems      # what went wrong in one run",
        "history /lustre/logs/nlp/rlhf-9/rank_3.log.1",
    ),
)
@click.argument("what", required=False, metavar="[RUN|PATH]")
@click.option(
    "--problems", is_flag=True, help="What went wrong or could not be seen: of RUN, or of the last one that had any."
)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Runs to list.")
@report_form()
@click.pass_obj
def command(call: Invocation, *, what: str | None, problems: bool, limit: int, form: Form) -> ExitCode:
    """List runs, what one run did, or what happened to one path."""
    with open_app(call, read_only=True) as app:
        if what is not None and not what.isdecimal():
            if problems:
                raise UsageError("--problems is about a run, not about a path", hint=f"lifecycle history {what}")
            _show_path(call, form, app, what)
        elif problems:
            _show_problems(call, form, app, int(what) if what else None)
        elif what is not None:
            _show_run(call, form, app, int(what))
        else:
            _show_runs(call, form, app, limit)
    return ExitCode.DONE


def _show_table(call: Invocation, form: Form, schema: str, make: Callable[[], Table]) -> None:
    from lifecycle.report.json import iter_table_json

    deliver(call, form, blocks=lambda: [make()], json=lambda: iter_table_json(schema, make()), table=make)


def _show_runs(call: Invocation, form: Form, app: App, limit: int) -> None:
    from lifecycle.catalog.reporting import count_problems
    from lifecycle.catalog.runs import list_runs
    from lifecycle.report.history import table_of_runs
    from lifecycle.report.summaries import make_run_line

    with app.catalog.read() as conn:
        records = list_runs(conn, limit=limit)
        counts = count_problems(conn, [record.id for record in records])
    if not records:
        raise NothingFound("there was no run yet", hint="lifecycle plan, then lifecycle run")
    lines = [make_run_line(record, counts.get(record.id, 0)) for record in records]
    _show_table(call, form, "lifecycle.history/1", lambda: table_of_runs(lines))


def _show_run(call: Invocation, form: Form, app: App, run_id: int) -> None:
    from lifecycle.report.history import fold_stored_run, table_of_phases
    from lifecycle.report.json import render_json
    from lifecycle.report.summaries import read_run

    run = read_run(app.catalog, run_id)
    deliver(
        call,
        form,
        blocks=lambda: fold_stored_run(run),
        json=lambda: [render_json("lifecycle.history-run/1", run)],
        table=lambda: table_of_phases(run),
    )


def _show_problems(call: Invocation, form: Form, app: App, run_id: int | None) -> None:
    from lifecycle.report.history import table_of_problems
    from lifecycle.report.summaries import read_problems

    lines = read_problems(app.catalog, run_id)
    if not lines:
        name = f"run {run_id}" if run_id is not None else "any of the last runs"
        raise NothingFound(f"no problem in {name}", hint="lifecycle history lists the runs")
    _show_table(call, form, "lifecycle.problems/1", lambda: table_of_problems(lines))


def _show_path(call: Invocation, form: Form, app: App, path: str) -> None:
    from lifecycle.report.past import find_segments, iter_past, table_of_past

    segments = find_segments(app.catalog, parse_path(path))
    _show_table(call, form, "lifecycle.history-path/1", lambda: table_of_past(iter_past(app.catalog, segments)))
