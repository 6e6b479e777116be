"""``lifecycle scan``."""

from __future__ import annotations

import click

from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.times import WHEN, When
from lifecycle.errors import ExitCode


@click.command("scan", cls=HouseCommand, examples=("scan", "scan --json | jq '.scans[].new'"))
@click.option("--now", type=WHEN, metavar="TIME", help="Move the clock; only on a catalog made with init --rehearsal.")
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def command(call: Invocation, *, now: When | None, form: Form) -> ExitCode:
    """Bring the catalog up to date with the trees. Moves nothing.

    Every run begins with a scan; this one is for looking at the figures before the first run, and for hosts that only
    report what is on their own disks.
    """
    from lifecycle.report.json import SCAN_SCHEMA, render_run_line

    call.promise_last_line(SCAN_SCHEMA, on_stdout=not form.is_table)
    with open_app(call, read_only=False, now=now) as app:
        # Imported now: the catalog's pages are being looked at meanwhile.
        from lifecycle.report.runs import fold_scan
        from lifecycle.scan_only import scan_once

        report = scan_once(app, call.progress())
    call.last_line(render_run_line(report))
    deliver(call, form, blocks=lambda: fold_scan(report), json=list)
    return report.exit_code
