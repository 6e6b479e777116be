"""``lifecycle catalog status|upgrade|backup|accept``."""

from __future__ import annotations

from pathlib import Path

import click

from lifecycle.cli.command import HouseGroup
from lifecycle.cli.door import read_policy
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.errors import ExitCode


@click.group(
    "catalog", cls=HouseGroup, examples=("catalog status", "catalog backup --to /mnt/backup", "catalog upgrade")
)
def command() -> None:
    """Status, upgrade and backup of the catalog; accept one out of a backup."""


@command.command("status", examples=("catalog status", "catalog status --json"))
@report_form(has_csv=False)
@click.pass_obj
def status(call: Invocation, *, form: Form) -> ExitCode:
    """Which catalog it is, its schema and its size. Exit code 2 when its schema is not this program's."""
    from lifecycle.catalog.upgrade import catalog_status
    from lifecycle.report.catalogs import fold_status
    from lifecycle.report.json import render_json

    found = catalog_status(read_policy(call).catalog_url)
    deliver(call, form, blocks=lambda: fold_status(found), json=lambda: [render_json("lifecycle.catalog/1", found)])
    return ExitCode.DONE if found.is_current else ExitCode.USAGE


@command.command("upgrade", examples=("catalog upgrade",))
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def upgrade(call: Invocation, *, form: Form) -> ExitCode:
    """Bring the catalog to this program's schema, after a backup beside it.

    A second call finds nothing to do. While a run works on the catalog nothing is changed (exit code 5).
    """
    from lifecycle.catalog.upgrade import upgrade_catalog
    from lifecycle.clock import SystemClock
    from lifecycle.report.catalogs import fold_upgrade
    from lifecycle.report.json import render_json

    report = upgrade_catalog(read_policy(call).catalog_url, now=SystemClock().now())
    deliver(call, form, blocks=lambda: fold_upgrade(report), json=lambda: [render_json("lifecycle.upgrade/1", report)])
    return ExitCode.DONE


@command.command("accept", examples=('catalog accept --reason "restored the backup of 02:00"',))
@click.option("--reason", required=True, metavar="TEXT", help="Why it counts; kept in the chain of events.")
@click.option("--by", "accepted_by", metavar="NAME", help="Who says so; the login name if not given.")
@click.pass_obj
def accept(call: Invocation, *, reason: str, accepted_by: str | None) -> ExitCode:
    """Let a catalog that came back from a backup act again.

    Its places have markers that are ahead of it, so that runs scan and restore, and remove nothing. Scan first, look at
    the audit, then accept: what was stored since the backup comes up missing, and the objects of it belong to nobody.
    """
    import os

    from lifecycle.accept import accept_catalog
    from lifecycle.cli.door import open_app

    who = accepted_by or os.environ.get("USER") or f"uid {os.getuid()}"
    with open_app(call, read_only=False) as app:
        done = accept_catalog(app, reason=reason, accepted_by=who)
    lines = [f"{place}: accepted, it was {before} generations in" for place, before in done]
    call.print_lines(lines or ["no place is ahead of this catalog: nothing to accept"])
    return ExitCode.DONE


@command.command("backup", examples=("catalog backup --to /mnt/backup/", "catalog backup --to ./before-upgrade.db"))
@click.option(
    "--to",
    required=True,
    metavar="FILE|DIR/",
    help="Where the copy goes; in a folder under a name that ends in the time. Nothing is overwritten.",
)
@click.pass_obj
def backup(call: Invocation, *, to: str) -> ExitCode:
    """Copy the catalog as of one moment, while it may be in use."""
    from lifecycle.catalog.upgrade import backup_catalog
    from lifecycle.clock import SystemClock

    url, now = read_policy(call).catalog_url, SystemClock().now()
    made = backup_catalog(url, Path(to).absolute(), now=now, is_folder=to.endswith("/"))
    call.print_lines([f"backup {made}"])
    return ExitCode.DONE
