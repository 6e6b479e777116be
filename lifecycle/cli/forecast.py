"""``lifecycle forecast``."""

from __future__ import annotations

import click

from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.selectors import Filters, selectors
from lifecycle.cli.times import WHEN, When
from lifecycle.errors import ExitCode


@click.command(
    "forecast",
    cls=HouseCommand,
    examples=(
        "forecast",
        "forecast --tier hot",
        "forecast --team nlp --json",
    ),
)
@click.option("--now", type=WHEN, metavar="TIME", help="Report as of then.")
@selectors("team", "tier")
@report_form()
@click.pass_obj
def command(call: Invocation, *, now: When | None, filters: Filters, form: Form) -> ExitCode:
    """Show growth, and the days to each quota, mark and reserve.

    Out of the samples that runs leave, of the last 14 days: growth net of what moves to a colder tier, with the range
    of half of the days, and purges counted as they are scheduled. CSV holds the teams with --team, else the file
    systems.
    """
    from lifecycle.report.audit import is_match
    from lifecycle.report.forecasts import fold_forecast, table_of_file_systems, table_of_teams
    from lifecycle.report.json import FORECAST_SCHEMA, render_json
    from lifecycle.report.pressure import gather_forecast

    with open_app(call, read_only=True, now=now) as app:
        asked = tuple(map(app.policy.team_of, filters.teams))
        report = gather_forecast(
            app.catalog,
            app.policy,
            now=app.now(),
            is_wanted=(lambda team: is_match(team, asked)) if asked else None,
            tiers=filters.tiers,
            words=filters.describe(),
        )
    deliver(
        call,
        form,
        blocks=lambda: fold_forecast(report),
        json=lambda: [render_json(FORECAST_SCHEMA, report)],
        table=lambda: table_of_teams(report) if asked else table_of_file_systems(report),
    )
    return ExitCode.DONE
