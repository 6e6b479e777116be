"""``lifecycle audit``: the report of record."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, deliver_lines, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.selectors import Filters, selectors
from lifecycle.cli.times import WHEN, When
from lifecycle.errors import ExitCode

if TYPE_CHECKING:
    from datetime import datetime

    from lifecycle.report.audit import AuditFilter
    from lifecycle.report.figures import AuditReport
    from lifecycle.wiring import App

_SECTIONS = (
    "teams", "usage", "due", "retention", "holds", "beyond", "pressure", "folders", "errors", "runs",
    "places", "findings",
)  # fmt: skip
_BY_LOOKING = ("pressure", "folders")
_OF_HOLDS = ("holds", "beyond")


@click.command(
    "audit",
    cls=HouseCommand,
    examples=(
        "audit",
        "audit --section teams",
        "audit --team nlp --section usage --format csv --out nlp.csv",
        "audit --json | jq '.attention[]'",
        "audit --format prometheus --out /var/lib/node_exporter/lifecycle.prom",
        "audit --quiet --check   # for monitoring: silent and 0, or the report and 7",
    ),
)
@click.option(
    "--section", type=click.Choice(_SECTIONS), help="Add one table below the screen; CSV holds this one alone."
)
@click.option(
    "--check", "is_check", is_flag=True, help="Exit code 7 when a line of the report asks for a person at once (!!)."
)
@click.option("--now", type=WHEN, metavar="TIME", help="Report as of another time: what is due, how long ago.")
@selectors("team", "class", "tier")
@report_form(has_prometheus=True)
@click.pass_obj
def command(
    call: Invocation, *, section: str | None, is_check: bool, now: When | None, filters: Filters, form: Form
) -> ExitCode:
    """Report usage, attention points and savings on one screen.

    Of what the last scan saw; the trees are not read. LOGICAL is what the logs hold, STORED what they take: blocks in
    hot, shares of archives in warm and cold.
    """
    from lifecycle.report.json import AUDIT_SCHEMA, render_json
    from lifecycle.report.prometheus import render_prometheus
    from lifecycle.report.screen import fold_audit, table_for_csv

    with open_app(call, read_only=True, now=now) as app:
        report = _gather(app, filters, app.now(), section)
        if section in _OF_HOLDS or form.format == "prometheus":
            report = _with_holds(app, filters, report)
    if form.format == "prometheus":
        deliver_lines(call, form, render_prometheus(report))
        return _exit_code(report, is_check=is_check)
    deliver(
        call,
        form,
        blocks=lambda: fold_audit(report, section),
        json=lambda: [render_json(AUDIT_SCHEMA, report)],
        table=lambda: table_for_csv(report, section),
    )
    return _exit_code(report, is_check=is_check)


def _exit_code(report: AuditReport, *, is_check: bool) -> ExitCode:
    has_alarm = any(line.is_urgent for line in report.attention)
    return ExitCode.ATTENTION if is_check and has_alarm else ExitCode.DONE


def _only(app: App, filters: Filters) -> AuditFilter:
    from lifecycle.report.audit import AuditFilter

    teams = tuple(map(app.policy.team_of, filters.teams))
    return AuditFilter(teams=teams, classes=filters.classes, tiers=filters.tiers, words=filters.describe())


def _with_holds(app: App, filters: Filters, report: AuditReport) -> AuditReport:
    from lifecycle.report.audit import gather_holds

    return gather_holds(app.catalog, app.policy, report, only=_only(app, filters))


def _gather(app: App, filters: Filters, now: datetime, section: str | None) -> AuditReport:
    from lifecycle.app import copy_rules
    from lifecycle.report.audit import gather_audit, gather_due, gather_errors, gather_pressure

    only = _only(app, filters)
    report = gather_audit(app.catalog, app.policy, now=now, only=only)
    if section in _BY_LOOKING:
        return gather_pressure(app.catalog, report, only=only)
    if section == "errors":
        return gather_errors(app.catalog, app.policy, report, only=only)
    if section != "due":
        return report
    due = gather_due(app.catalog, app.policy, host=app.host, now=now, only=only, copies=copy_rules(app))
    return dataclasses.replace(report, due=due)
