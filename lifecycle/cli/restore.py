"""``lifecycle restore``."""

from __future__ import annotations

from pathlib import Path

import click

from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.selectors import Filters, selectors
from lifecycle.errors import ExitCode, UsageError


@click.command(
    "restore",
    cls=HouseCommand,
    examples=(
        "restore --job 'pretrain-70b*' --rank 1733 --since 2026-09-10 --to ./logs",
        "restore --path /lustre/logs/nlp/rlhf-9/rank_3.log --in-place",
    ),
)
@selectors()
@click.option(
    "--path", "paths", multiple=True, metavar="PATH", help="Only the segment that had this path; may be repeated."
)
@click.option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write DIR/SOURCE/PATH; nothing else is touched.",
)
@click.option("--in-place", is_flag=True, help="Write where the originals were. They are left alone for 7 days.")
@click.option("--overwrite", is_flag=True, help="Replace files that are there. Without it they are left and counted.")
@click.option("--all", "everything", is_flag=True, help="Restore everything; needed when no selector is given.")
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def command(
    call: Invocation,
    *,
    filters: Filters,
    paths: tuple[str, ...],
    to: Path | None,
    in_place: bool,
    overwrite: bool,
    everything: bool,
    form: Form,
) -> ExitCode:
    """Bring segments back as files, exactly as they were.

    Bytes, name, time of last write and mode come back, checked against the digest that was recorded when the segment
    was stored. The stored copy stays.
    """
    from lifecycle.report.done import fold_restore
    from lifecycle.report.json import render_json
    from lifecycle.restore import RestoreOptions, restore

    if filters.is_empty and not paths and not everything:
        raise UsageError("nothing is selected", hint="give a selector, as --job NAME, or --all")
    # Only a restore in place is noted in the catalog; elsewhere a catalog that cannot be written will do.
    with open_app(call, read_only=not in_place) as app:
        selector = filters.resolve(now=app.now(), zone=app.policy.timezone, team_of=app.policy.team_of, paths=paths)
        options = RestoreOptions(to=to.absolute() if to else None, in_place=in_place, overwrite=overwrite)
        report = restore(app, selector, options, call.progress())
    deliver(call, form, blocks=lambda: fold_restore(report), json=lambda: [render_json("lifecycle.restore/1", report)])
    return report.exit_code
