"""``lifecycle policy check|show|explain|test|accept|schema``."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from lifecycle.cli.command import HouseGroup
from lifecycle.cli.door import find_policies, open_app, read_policy
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.selectors import parse_path
from lifecycle.cli.times import DURATION
from lifecycle.errors import ExitCode, NothingFound


@click.group(
    "policy",
    cls=HouseGroup,
    examples=(
        "policy check",
        "policy show",
        "policy explain /lustre/logs/nlp/rlhf-9/rank_3.log --age 9d",
        "policy test",
        'policy accept 3fa9c1 --reason "eval logs were misfiled as error"',
        "policy schema > policy.schema.json",
    ),
)
def command() -> None:
    """Check, show, explain, test and accept the policy; print its schema."""


@command.command("check", examples=("policy check", "--policies ./new policy check"))
@click.pass_obj
def check(call: Invocation) -> ExitCode:
    """Read the policy and report every mistake of all its files at once. Exit code 2 when there is one."""
    from lifecycle.report.policies import fold_checked

    policy = read_policy(call)
    call.print_blocks(fold_checked(policy, str(find_policies(call))))
    return ExitCode.DONE


@command.command("show", examples=("policy show", "policy show --all", "policy show --format csv"))
@click.option("--all", "is_all", is_flag=True, help="Every figure with its line, as JSON and CSV have it anyway.")
@report_form()
@click.pass_obj
def show(call: Invocation, *, is_all: bool, form: Form) -> ExitCode:
    """Show the figures in force, team by team, each with the line it comes from."""
    from lifecycle.report.json import render_policy
    from lifecycle.report.policies import fold_policy, table_of_figures

    policy = read_policy(call)
    deliver(
        call,
        form,
        blocks=lambda: [table_of_figures(policy)] if is_all else fold_policy(policy),
        json=lambda: [render_policy(policy)],
        table=lambda: table_of_figures(policy),
    )
    return ExitCode.DONE


@command.command("explain", examples=("policy explain /lustre/logs/nlp/rlhf-9/rank_3.log --age 9d",))
@click.argument("path")
@click.option("--age", type=DURATION, metavar="DURATION", help="Say also where it belongs at this age, as 9d.")
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def explain(call: Invocation, *, path: str, age: timedelta | None, form: Form) -> ExitCode:
    """Say what the policy makes of a path: layout, labels, class, limits. The file need not be there."""
    import socket

    from lifecycle.report.json import render_json
    from lifecycle.report.policies import find_fate, fold_fate

    fate = find_fate(read_policy(call), parse_path(path), host=socket.gethostname(), age=age)
    deliver(call, form, blocks=lambda: fold_fate(fate, age), json=lambda: [render_json("lifecycle.fate/1", fate)])
    return ExitCode.DONE


@command.command(
    "test", examples=("policy test", "policy test policies/tests/errors.yaml", "--policies ./new policy test --json")
)
@click.argument("files", nargs=-1, type=click.Path(dir_okay=False, path_type=Path))
@report_form(has_out=False)
@click.pass_obj
def test(call: Invocation, *, files: tuple[Path, ...], form: Form) -> ExitCode:
    """Check what the policy makes of paths against policies/tests/*.yaml. Exit code 1 when it is not as they say.

    A test names a path and what is expected of it: labels, class, and where it is at which age. No catalog is needed
    and no log is looked at; the rules are those that a run follows.
    """
    import socket

    from lifecycle.plan.cases import find_cases, run_cases
    from lifecycle.report.cases import fold_cases, table_of_failures
    from lifecycle.report.json import render_json

    folder = find_policies(call)
    paths = list(files) or find_cases(folder)
    if not paths:
        raise NothingFound(
            f"no tests in {folder}/tests", hint="docs: policies/README.md, Tests; lifecycle init writes a first one"
        )
    report = run_cases(read_policy(call), paths, host=socket.gethostname())
    deliver(
        call,
        form,
        blocks=lambda: fold_cases(report),
        json=lambda: [render_json("lifecycle.policy_test/1", report)],
        table=lambda: table_of_failures(report),
    )
    return ExitCode.FAILED if report.failures else ExitCode.DONE


@command.command("accept", examples=('policy accept 3fa9c1 --reason "eval logs were misfiled as error"',))
@click.argument("digest")
@click.option("--reason", required=True, metavar="TEXT", help="Why the change is wanted; kept in the catalog.")
@click.option("--by", "accepted_by", metavar="NAME", help="Who accepts it; the login name if not given.")
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def accept(call: Invocation, *, digest: str, reason: str, accepted_by: str | None, form: Form) -> ExitCode:
    """Accept that segments get a class that keeps them shorter. DIGEST is the policy's, as plan and audit show it.

    Until then they keep the class they have. The next run carries it out.
    """
    import os

    from lifecycle.accept import accept_policy
    from lifecycle.report.json import render_json
    from lifecycle.report.policies import fold_acceptance

    who = accepted_by or os.environ.get("USER") or f"uid {os.getuid()}"
    with open_app(call, read_only=False) as app:
        done = accept_policy(app, digest, reason=reason, accepted_by=who)
    deliver(
        call, form, blocks=lambda: fold_acceptance(done), json=lambda: [render_json("lifecycle.acceptance/1", done)]
    )
    return ExitCode.DONE


@command.command("schema", examples=("policy schema > policy.schema.json  # for editors",))
@click.pass_obj
def schema(call: Invocation) -> ExitCode:
    """Print the JSON Schema of the policy files."""
    import json

    from lifecycle.policy.load import json_schema

    call.print_lines([json.dumps(json_schema(), ensure_ascii=False, indent=2)])
    return ExitCode.DONE
