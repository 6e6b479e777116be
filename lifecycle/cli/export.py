"""``lifecycle export logrotate``."""

from __future__ import annotations

from pathlib import Path

import click

from lifecycle.cli.command import HouseGroup
from lifecycle.cli.door import read_policy
from lifecycle.cli.forms import write_atomically
from lifecycle.cli.invocation import Invocation
from lifecycle.errors import ExitCode


@click.group("export", cls=HouseGroup, examples=("export logrotate --out /etc/logrotate.d/training-logs",))
def command() -> None:
    """Write the policy in the form of another tool."""


@command.command("logrotate", examples=("export logrotate", "export logrotate --out /etc/logrotate.d/training-logs"))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it there, or nothing.",
)
@click.pass_obj
def logrotate(call: Invocation, *, out: Path | None) -> ExitCode:
    """Write a logrotate configuration: live files of the sources cut at 100 MB, 10 rotations kept.

    It takes care of what jobs still write; everything that is settled is lifecycle's. Kubernetes pods are left out, as
    the kubelet rotates them.
    """
    from lifecycle.report.logrotate import render_logrotate

    lines = list(render_logrotate(read_policy(call)))
    if out is None:
        call.print_lines(lines)
    else:
        write_atomically(out, lines)
    return ExitCode.DONE
