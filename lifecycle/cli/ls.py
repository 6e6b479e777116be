"""``lifecycle ls``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import click

from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.selectors import Filters, selectors
from lifecycle.errors import ExitCode, NothingFound

if TYPE_CHECKING:
    from lifecycle.model import Selector
    from lifecycle.report.blocks import Block, Table
    from lifecycle.wiring import App

_DIMENSIONS: Final = ("team", "job", "class", "tier", "state", "node", "rank", "day")
_SHOWN: Final = 1000


@click.command(
    "ls",
    cls=HouseCommand,
    examples=(
        "ls --job 'pretrain-70b*' --rank 1733 --since 2026-09-10 --until 2026-09-12",
        "ls --team nlp --tier hot --state open --by job",
        "ls --team vision --format csv > vision.csv",
    ),
)
@selectors()
@click.option("--by", type=click.Choice(_DIMENSIONS), help="Count by this instead of listing.")
@click.option("--long", "-l", "is_long", is_flag=True, help="Whole paths instead of names.")
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help=f"Rows to list; 0 for all.  [default: {_SHOWN} in a table]"
)
@report_form()
@click.pass_obj
def command(
    call: Invocation, *, filters: Filters, by: str | None, is_long: bool, limit: int | None, form: Form
) -> ExitCode:
    """List segments, or count them by job, team, class, tier.

    By last write: --since is inclusive, --until is not. What is gone (purged, lost, replaced) is listed only when
    --state asks for it.
    """
    with open_app(call, read_only=True) as app:
        selector = filters.resolve(now=app.now(), zone=app.policy.timezone, team_of=app.policy.team_of)
        if by is not None:
            _deliver_groups(call, form, app, selector, by)
        else:
            _deliver_segments(call, form, app, selector, is_long, limit)
    return ExitCode.DONE


def _deliver_groups(call: Invocation, form: Form, app: App, selector: Selector, by: str) -> None:
    from lifecycle.catalog.reporting import group_segments
    from lifecycle.report.json import iter_table_json
    from lifecycle.report.listing import table_of_groups

    with app.catalog.read() as conn:
        groups = group_segments(conn, selector, by)
    if not groups:
        raise NothingFound("no segment matches", hint="lifecycle audit --section usage shows what there is")
    table = table_of_groups(groups, by, now=app.now())
    deliver(
        call,
        form,
        blocks=lambda: [table],
        json=lambda: iter_table_json("lifecycle.ls-by/1", table),
        table=lambda: table,
    )


def _deliver_segments(
    call: Invocation, form: Form, app: App, selector: Selector, is_long: bool, limit: int | None
) -> None:
    from lifecycle.catalog.places import places
    from lifecycle.catalog.segments import iter_segments
    from lifecycle.plan.figures import FigureBook
    from lifecycle.report.json import iter_table_json
    from lifecycle.report.listing import table_of_segments

    with app.catalog.read() as conn:
        known = places(conn)
    found = (segment for segment in iter_segments(app.catalog, selector) if segment.tier is not None or selector.states)
    first = next(found, None)
    if first is None:
        raise NothingFound("no segment matches", hint="lifecycle ls --by team with fewer selectors shows what there is")
    shown = limit if limit is not None else _SHOWN if form.is_table else 0
    rest = found if shown == 0 else islice(found, shown - 1)
    table = table_of_segments(
        chain([first], rest), book=FigureBook(app.policy), now=app.now(), known=known, is_long=is_long
    )
    deliver(
        call,
        form,
        blocks=lambda: _blocks(table, shown, found),
        json=lambda: iter_table_json("lifecycle.ls/1", table),
        table=lambda: table,
    )


def _blocks(table: Table, shown: int, found: Iterator[object]) -> Iterator[Block]:
    from lifecycle.report.blocks import Line, Tone
    from lifecycle.report.listing import hide_empty_columns

    if not shown:
        yield table
        return
    yield hide_empty_columns(table, list(table.rows))
    if next(found, None) is not None:
        yield Line(
            text=f"only the first {shown:,} are shown: --limit 0 shows all, --by job counts them", tone=Tone.QUIET
        )
