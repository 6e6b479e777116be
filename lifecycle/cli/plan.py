"""``lifecycle plan``; ``run --dry-run`` is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lifecycle.cli.actions import ACTIONS, parse_actions
from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_preview
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.selectors import NO_FILTERS, Filters, selectors
from lifecycle.cli.times import WHEN, When
from lifecycle.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from lifecycle.model import Kept, PlannedBatch, Selector
    from lifecycle.report.figures import PreviewReport
    from lifecycle.wiring import App


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What a preview is asked for."""

    out: Path | None = None
    is_listed: bool = False
    as_of: When | None = None
    root: Path | None = None
    no_scan: bool = False
    now: When | None = None
    only: tuple[str, ...] = ()
    filters: Filters = NO_FILTERS

    def check(self) -> None:
        """Raises UsageError for flags that contradict each other."""
        if self.root is not None and (self.no_scan or self.out is not None):
            raise UsageError("--root plans a tree that no catalog knows", hint="leave out --no-scan and --out")
        if self.out is not None and self.as_of is not None:
            raise UsageError("a plan for another day cannot be run", hint="leave out --out or --as-of")
        if not self.filters.is_empty and not self.is_listed:
            raise UsageError(
                f"{self.filters.describe()} selects items", hint="add --list; the plan itself is always whole"
            )


@click.command(
    "plan",
    cls=HouseCommand,
    examples=(
        "plan --out tonight.plan        # then: lifecycle run --plan tonight.plan",
        "plan --list --team nlp --action mark",
        "plan --as-of +30d --no-scan    # what will be due in a month, from the last scan",
        "plan --root /some/tree         # any tree; needs no catalog",
    ),
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the plan to FILE for run --plan.",
)
@click.option("--list", "is_listed", is_flag=True, help="Every segment of the plan instead of its summary.")
@click.option("--as-of", type=WHEN, metavar="TIME", help="Plan as if it were then, as +30d.")
@click.option(
    "--root",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="Plan this tree, without a catalog.",
)
@click.option("--no-scan", is_flag=True, help="From the last scan, without looking at the trees.")
@click.option("--now", type=WHEN, metavar="TIME", help="Move the clock, for the scan too.")
@click.option("--only", "--action", "only", multiple=True, type=click.Choice(ACTIONS), metavar="ACTION",
              help=f"Only these actions: {', '.join(ACTIONS)}. May be repeated.")  # fmt: skip
@selectors("team", "class", "tier")
@report_form(has_out=False)
@click.pass_obj
def command(
    call: Invocation,
    *,
    out: Path | None,
    is_listed: bool,
    as_of: When | None,
    root: Path | None,
    no_scan: bool,
    now: When | None,
    only: tuple[str, ...],
    filters: Filters,
    form: Form,
) -> ExitCode:
    """Show what a run would do, and why. Changes nothing.

    The trees are read, the catalog is copied to a private place and compared there: not a byte, a row or a lock of
    anybody is touched. --team, --class and --tier choose among the items of --list.
    """
    request = PlanRequest(
        out=out, is_listed=is_listed, as_of=as_of, root=root, no_scan=no_scan, now=now, only=only, filters=filters
    )
    return show_plan(call, form, request)


def show_plan(call: Invocation, form: Form, request: PlanRequest) -> ExitCode:
    """The preview and its report; ``run --dry-run`` calls it, too."""
    from lifecycle.run import PreviewOptions, preview

    request.check()
    with open_preview(call, now=request.now, root=request.root) as app:
        at, zone = app.now(), app.policy.timezone
        options = PreviewOptions(
            as_of=request.as_of.resolve(now=at, zone=zone) if request.as_of else None,
            no_scan=request.no_scan,
            root=request.root.absolute() if request.root else None,
            only=parse_actions(request.only),
            out=request.out.absolute() if request.out else None,
        )
        report = _with_time(preview(app, options, call.progress()), app, at)
        if request.is_listed:
            selector = request.filters.resolve(now=at, zone=zone, team_of=app.policy.team_of)
            _deliver_items(call, form, report, selector)
        else:
            _deliver_plan(call, form, report, at)
    return report.exit_code


def _with_time(report: PreviewReport, app: App, at: datetime) -> PreviewReport:
    """A rehearsal's time, if it is a minute or more ahead of the clock. Elsewhere a moved clock moves no run."""
    from lifecycle.clock import SystemClock
    from lifecycle.units import from_ns

    facts, minute = app.catalog.facts(), timedelta(minutes=1)
    ahead = at - SystemClock().now()
    if not facts.rehearsal or ahead < minute:
        return report
    # A run goes on from the last one by itself. The next whole minute is never before what was planned for.
    is_typed = at - from_ns(facts.clock_ns) >= minute
    return replace(report, clock_ahead=ahead, run_at=at + minute if is_typed else None)


def _deliver_plan(call: Invocation, form: Form, report: PreviewReport, now: datetime) -> None:
    from lifecycle.report.json import render_plan
    from lifecycle.report.plans import fold_preview, table_of_plan

    deliver(
        call,
        form,
        blocks=lambda: fold_preview(report, now=now),
        json=lambda: [render_plan(report)],
        table=lambda: table_of_plan(report.summary.lines),
    )


def _deliver_items(call: Invocation, form: Form, report: PreviewReport, selector: Selector) -> None:
    from lifecycle.report.json import iter_table_json
    from lifecycle.report.plans import table_of_items

    table = table_of_items(_matching(report, selector), report.place_roots)
    deliver(
        call,
        form,
        blocks=lambda: [table],
        json=lambda: iter_table_json("lifecycle.plan-items/1", table),
        table=lambda: table,
    )


def _matching(report: PreviewReport, selector: Selector) -> Iterator[PlannedBatch | Kept]:
    from lifecycle.model import Kept
    from lifecycle.report.audit import is_match

    for item in report.items():
        tier = item.tier if isinstance(item, Kept) else item.tier_from
        if (
            is_match(item.team, selector.teams)
            and is_match(item.class_name, selector.classes)
            and (not selector.tiers or tier in selector.tiers)
        ):
            yield item
