"""``lifecycle hold add|list|end``."""

from __future__ import annotations

import os

import click

from lifecycle.cli.command import HouseGroup
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.selectors import Filters, selectors
from lifecycle.cli.times import WHEN, When
from lifecycle.errors import ExitCode, UsageError


@click.group(
    "hold",
    cls=HouseGroup,
    examples=(
        'hold add --job train-task-2026-0312 --reason "paper, table 3" --owner chen --ends 2027-03-01',
        "hold list",
        "hold end 3",
    ),
)
def command() -> None:
    """Keep segments whatever their age: add, list and end holds.

    What is held is neither marked nor purged nor expired early. It still moves to colder tiers.
    """


@command.command(
    "add",
    examples=(
        "hold add --team vision --job 'detr-*' --reason \"incident 4711\" --ends +90d",
        'hold add --path /lustre/logs/nlp/rlhf-9/rank_3.log --reason "for the vendor" --owner chen',
        'hold add --job pretrain-70b --pending --reason "audit of 2027" --owner legal',
    ),
)
@selectors()
@click.option(
    "--path", "paths", multiple=True, metavar="PATH", help="Only the segment that had this path; may be repeated."
)
@click.option("--reason", required=True, metavar="TEXT", help="Why it is kept; plan, explain and audit say it.")
@click.option("--owner", metavar="NAME", help="Whom to ask before it ends; the login name if not given.")
@click.option("--ends", type=WHEN, metavar="TIME", help="When it ends by itself, as 2027-03-01 or +90d.")
@click.option("--pending", is_flag=True, help="It may select nothing yet: it holds what comes.")
@click.option("--now", type=WHEN, metavar="TIME", help="As of then, in a rehearsal.")
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def add(
    call: Invocation,
    *,
    filters: Filters,
    paths: tuple[str, ...],
    reason: str,
    owner: str | None,
    ends: When | None,
    pending: bool,
    now: When | None,
    form: Form,
) -> ExitCode:
    """Hold what the selectors select, now and later; in force at once, for a run that is at work, too.

    A mark on it comes off with the next run. The selectors are those of ls: look there first.
    """
    from lifecycle.holding import add as add_hold
    from lifecycle.report.holds import fold_added
    from lifecycle.report.json import render_json

    if filters.is_empty and not paths:
        raise UsageError("nothing is selected", hint="give a selector, as --job NAME; --team '*' for everything")
    with open_app(call, read_only=False, now=now) as app:
        policy, at = app.policy, app.now()
        selector = filters.resolve(now=at, zone=policy.timezone, team_of=policy.team_of, paths=paths)
        until = ends.resolve(now=at, zone=policy.timezone) if ends else None
        who = owner or os.environ.get("USER") or f"uid {os.getuid()}"
        report = add_hold(app, selector, reason=reason, owner=who, ends=until, pending=pending)
    deliver(call, form, blocks=lambda: fold_added(report), json=lambda: [render_json("lifecycle.holds/1", report)])
    return ExitCode.DONE


@command.command("list", examples=("hold list", "hold list --all --format csv"))
@click.option("--all", "with_ended", is_flag=True, help="Those that have ended as well.")
@report_form()
@click.pass_obj
def list_(call: Invocation, *, with_ended: bool, form: Form) -> ExitCode:
    """List the holds: what they cover, until when, whose they are and why."""
    from lifecycle.holding import list_holds
    from lifecycle.report.holds import fold_holds, table_of_holds
    from lifecycle.report.json import render_json

    with open_app(call, read_only=True) as app:
        report = list_holds(app, ended=with_ended)
    deliver(
        call,
        form,
        blocks=lambda: fold_holds(report),
        json=lambda: [render_json("lifecycle.holds/1", report)],
        table=lambda: table_of_holds(report.holds),
    )
    return ExitCode.DONE


@command.command("end", examples=("hold end 3", 'hold end 3 4 --reason "paper is out"'))
@click.argument("ids", metavar="ID...", nargs=-1, required=True, type=click.IntRange(min=1))
@click.option("--reason", default="", metavar="TEXT", help="Why it is over; kept in the chain of events.")
@click.option("--by", "ended_by", metavar="NAME", help="Who says so; the login name if not given.")
@click.option("--now", type=WHEN, metavar="TIME", help="As of then, in a rehearsal.")
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def end(
    call: Invocation, *, ids: tuple[int, ...], reason: str, ended_by: str | None, now: When | None, form: Form
) -> ExitCode:
    """End holds. What is past its retention is marked by the next run, and purged after the grace time."""
    from lifecycle.holding import end as end_holds
    from lifecycle.report.holds import fold_ended
    from lifecycle.report.json import render_json

    with open_app(call, read_only=False, now=now) as app:
        who = ended_by or os.environ.get("USER") or f"uid {os.getuid()}"
        report = end_holds(app, ids, by=who, why=reason)
    deliver(call, form, blocks=lambda: fold_ended(report), json=lambda: [render_json("lifecycle.holds/1", report)])
    return ExitCode.DONE
