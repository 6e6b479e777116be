"""``lifecycle explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.selectors import parse_path
from lifecycle.cli.times import WHEN, When
from lifecycle.errors import ExitCode

if TYPE_CHECKING:
    from datetime import datetime

    from lifecycle.model import Segment
    from lifecycle.wiring import App


@click.command(
    "explain",
    cls=HouseCommand,
    examples=("explain /lustre/logs/nlp/rlhf-9/gpu-114/rank_3.log.1", "explain 4711  # an id that ls shows"),
)
@click.argument("what", metavar="PATH|ID")
@click.option("--now", type=WHEN, metavar="TIME", help="Explain as of another time, as +30d.")
@report_form(has_csv=False, has_out=False)
@click.pass_obj
def command(call: Invocation, *, what: str, now: When | None, form: Form) -> ExitCode:
    """Say all about one segment: state, next step, when and why.

    Every condition with its present and its required value, and the line of policy that asks for it. Where several
    segments had the path (a rotation shifted, the file was written anew), the present one is explained and the others
    are named.
    """
    from lifecycle.report.past import find_by_id, find_segments

    with open_app(call, read_only=True, now=now) as app:
        if what.removeprefix("#").isdecimal():
            found = [find_by_id(app.catalog, int(what.removeprefix("#")))]
        else:
            found = find_segments(app.catalog, parse_path(what))
        _deliver(call, form, app, found, app.now())
    return ExitCode.DONE


def _deliver(call: Invocation, form: Form, app: App, found: list[Segment], now: datetime) -> None:
    from lifecycle.catalog.holds import holds_of
    from lifecycle.catalog.places import place_by_id
    from lifecycle.catalog.segments import archives_by_ids
    from lifecycle.plan.explain import explain
    from lifecycle.report.blocks import Line, Tone
    from lifecycle.report.explanation import fold_explanation
    from lifecycle.report.holds import hold_lines
    from lifecycle.report.json import render_json
    from lifecycle.report.past import iter_past, kept_errors

    first, *others = found
    with app.catalog.read() as conn:
        archives = archives_by_ids(conn, [first.archive_id] if first.archive_id is not None else [])
        root = place_by_id(conn, first.place_id).root
        standing = holds_of(conn, first.id)
    holds = hold_lines(app.catalog, app.policy, now, standing)
    errors = kept_errors(app.catalog, first, app.policy)
    explained = explain(first, archives[0] if archives else None, app.policy, now)
    past = list(iter_past(app.catalog, [first]))
    names = ", ".join(f"{other.id} ({other.original.value})" for other in others)
    tail = [Line(text=f"the same path was also: segment {names}", tone=Tone.QUIET)] if others else []
    deliver(
        call,
        form,
        blocks=lambda: [
            *fold_explanation(explained, root=root, past=past, now=now, holds=holds, errors=errors),
            *tail,
        ],
        json=lambda: [
            render_json(
                "lifecycle.explanation/1", {"explanation": explained, "past": past, "holds": holds, "errors": errors}
            )
        ],
    )
