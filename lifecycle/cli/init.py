"""``lifecycle init``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lifecycle.cli.command import HouseCommand
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.errors import ExitCode

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(
    "init",
    cls=HouseCommand,
    examples=(
        "init --source /lustre/logs --warm /mnt/warm --cold /mnt/backup/logs",
        "init --source ./logs --cold ./cold --rehearsal  # a place to practise: run --now +40d works here",
        "init                                            # policy is written: make catalog and markers for it",
    ),
)
@click.argument("folder", type=_FOLDER, required=False, metavar="[POLICIES]")
@click.option(
    "--source",
    "sources",
    type=_FOLDER,
    multiple=True,
    metavar="DIR",
    help="A tree that jobs write logs into; may be repeated.",
)
@click.option("--warm", type=_FOLDER, metavar="DIR", help="Directory of the warm tier.")
@click.option("--cold", type=_FOLDER, metavar="DIR", help="Directory of the cold tier.")
@click.option("--tiers", type=_FOLDER, metavar="DIR", help="Short for --warm DIR/warm --cold DIR/cold.")
@click.option(
    "--catalog", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="SQLite file of the catalog."
)
@click.option("--rehearsal", is_flag=True, help="A catalog whose clock may be moved by run --now. Never for real logs.")
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def command(
    call: Invocation,
    *,
    folder: Path | None,
    sources: tuple[Path, ...],
    warm: Path | None,
    cold: Path | None,
    tiers: Path | None,
    catalog: Path | None,
    rehearsal: bool,
    form: Form,
) -> ExitCode:
    """Make a starter policy, the catalog and the markers.

    What is there already is left as it is: a second call makes only what is missing.
    """
    from lifecycle import wiring
    from lifecycle.report.done import fold_init
    from lifecycle.report.json import render_json

    report = wiring.init(
        folder or call.policies or Path("policies"),
        sources=[Path(os.path.abspath(source)) for source in sources],
        warm=_absolute(warm or (tiers / "warm" if tiers else None)),
        cold=_absolute(cold or (tiers / "cold" if tiers else None)),
        catalog=_absolute(catalog),
        rehearsal=rehearsal,
        environ=os.environ,
    )
    deliver(call, form, blocks=lambda: fold_init(report), json=lambda: [render_json("lifecycle.init/1", report)])
    return report.exit_code


def _absolute(path: Path | None) -> Path | None:
    return Path(os.path.abspath(path)) if path is not None else None
