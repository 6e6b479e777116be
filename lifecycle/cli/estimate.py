"""``lifecycle estimate``."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from lifecycle.cli.command import HouseCommand
from lifecycle.cli.door import open_app
from lifecycle.cli.forms import Form, deliver, report_form
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.times import DURATION
from lifecycle.errors import ExitCode, NothingFound, UsageError
from lifecycle.units import parse_percent, parse_size

if TYPE_CHECKING:
    from lifecycle.plan.estimate import Assumptions, Span


@click.command(
    "estimate",
    cls=HouseCommand,
    examples=(
        "estimate --gpus 100 --rate 200MB --hours 24 --jobs 1 --retention 30d",
        "estimate --from nlp                    # rates and ratios as measured, of a whole team",
        "estimate --from nlp/pretrain-7b --jobs 3",
    ),
)
@click.option("--from", "measured", metavar="TEAM|TEAM/JOB", help="Take what the catalog knows of it.")
@click.option("--gpus", type=click.IntRange(min=1), metavar="N", help="GPUs of one job.  [default: 100]")
@click.option("--rate", metavar="SIZE", help="What one GPU writes in an hour.  [default: 200MB]")
@click.option("--hours", type=click.FloatRange(min=0.01), metavar="N", help="How long a job runs.  [default: 24]")
@click.option("--jobs", type=click.FloatRange(min=0.001), metavar="N", help="Such jobs a day.  [default: 1]")
@click.option("--ratio", metavar="LOW-HIGH", help="Compressed to raw, as 20%-31%.  [default: 20.8%-31.3%]")
@click.option("--index", metavar="SHARE", help="Of raw, for the search index.  [default: 0.5%]")
@click.option("--files", type=click.FloatRange(min=0.01), metavar="N", help="Files of a GPU in a job.  [default: 2]")
@click.option("--retention", type=DURATION, metavar="DURATION", help="How long logs are kept.  [default: 30d]")
@click.option("--warm-after", type=DURATION, metavar="DURATION", help="[default: 24h]")
@click.option("--cold-after", type=DURATION, metavar="DURATION", help="[default: 7d]")
@report_form()
@click.pass_obj
def command(
    call: Invocation,
    *,
    measured: str | None,
    gpus: int | None,
    rate: str | None,
    hours: float | None,
    jobs: float | None,
    ratio: str | None,
    index: str | None,
    files: float | None,
    retention: timedelta | None,
    warm_after: timedelta | None,
    cold_after: timedelta | None,
    form: Form,
) -> ExitCode:
    """Say how much storage logs will need: raw, compressed, per tier in the steady state.

    The sheet shows what it assumes. Sizes are powers of ten, as disks are sold. Needs no catalog but for --from.
    """
    from lifecycle.plan.estimate import Assumptions, estimate
    from lifecycle.report.json import render_json
    from lifecycle.report.sizing import fold_estimate, table_of_needs

    base, source = _measured(call, measured) if measured else (Assumptions(), "of what was given")
    given: dict[str, Any] = {
        "gpus": gpus, "bytes_per_gpu_hour": _size(rate), "job_hours": hours, "jobs_per_day": jobs,
        "ratio": _ratio(ratio), "index_share": _share(index), "files_per_gpu": files, "retention": retention,
        "warm_after": warm_after, "cold_after": cold_after,
    }  # fmt: skip
    known = dataclasses.replace(base, **{name: value for name, value in given.items() if value is not None})
    try:
        found = estimate(known)
    except ValueError as error:
        raise UsageError(f"estimate: {error}", hint="lifecycle estimate --help") from None
    deliver(
        call,
        form,
        blocks=lambda: fold_estimate(found, source),
        json=lambda: [render_json("lifecycle.estimate/1", found)],
        table=lambda: table_of_needs(found),
    )
    return ExitCode.DONE


def _measured(call: Invocation, name: str) -> tuple[Assumptions, str]:
    from lifecycle.catalog.measuring import measure
    from lifecycle.plan.estimate import Assumptions, Span

    team, _, job = name.partition("/")
    with open_app(call, read_only=True) as app, app.catalog.read() as conn:
        found = measure(conn, app.policy.team_of(team), job or None)
    if found is None:
        raise NothingFound(f"nothing of {name} is known", hint="lifecycle ls --by team, or --by job, shows what is")
    default = Assumptions()
    ratio = default.ratio
    if found.ratio_low is not None and found.ratio_high is not None:
        ratio = Span(low=max(found.ratio_low, 0.0001), high=max(found.ratio_high, 0.0001))
    made = Assumptions(
        gpus=max(1, round(found.gpus)),
        bytes_per_gpu_hour=max(found.raw_bytes / found.jobs / max(1, round(found.gpus)) / found.job_hours, 1.0),
        job_hours=found.job_hours,
        jobs_per_day=found.jobs / found.days,
        ratio=ratio,
        files_per_gpu=found.files / found.jobs / max(1, round(found.gpus)),
    )
    kind = "measured" if found.ratio_low is not None else "measured, but nothing is stored yet: the ratio is assumed"
    return made, f"of {name}: {found.jobs} jobs in {found.days} days, {kind}"


def _size(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(parse_size(text))
    except ValueError as error:
        raise UsageError(f"--rate: {error}", hint="as --rate 200MB") from None


def _ratio(text: str | None) -> Span | None:
    from lifecycle.plan.estimate import Span

    if text is None:
        return None
    low, dash, high = text.partition("-")
    try:
        return Span(low=parse_percent(low), high=parse_percent(high if dash else low))
    except ValueError as error:
        raise UsageError(f"--ratio: {error}", hint="as --ratio 20%-31%") from None


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_percent(text)
    except ValueError as error:
        raise UsageError(f"--index: {error}", hint="as --index 0.5%") from None
