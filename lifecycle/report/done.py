"""What ``init`` made and what ``restore`` wrote, folded to lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from lifecycle.report.blocks import Block, Column, Line, Table, Tone
from lifecycle.report.figures import InitReport, RestoreReport
from lifecycle.report.runs import count_of, iter_problem_lines
from lifecycle.units import format_duration, format_size


def fold_init(report: InitReport) -> Iterator[Block]:
    columns = (Column(key="kind"), Column(key="what"), Column(key="note"))
    rows = [(made.kind, made.what, made.note) for made in report.made]
    yield Table(columns=columns, rows=rows, has_heading=False)
    yield from iter_problem_lines(report.problems, len(report.problems))
    policies = f" --policies {report.policies}" if report.policies != "policies" else ""
    yield Line(text=f"next: read {report.policies}/platform.yaml, then lifecycle{policies} plan", tone=Tone.GOOD)


def fold_restore(report: RestoreReport) -> Iterator[Block]:
    where = report.to if report.to == "in place" else f"to {report.to}"
    took = format_duration(timedelta(seconds=round(report.seconds, 1)))
    read = f", {format_size(report.read_bytes)} read" if report.read_bytes else ""
    out_of = f" out of {count_of(report.archives, 'archive')}" if report.archives else ""
    what = (
        f"restored {count_of(report.files, 'file')}, {format_size(report.size_bytes)}, {where}{out_of}{read}, in {took}"
    )
    yield Line(text=what, tone=Tone.PLAIN if report.problem_count else Tone.GOOD)
    if report.renamed:
        shared = f"{count_of(report.renamed, 'file')} written as NAME.segment-ID: several segments had one path"
        yield Line(text=shared, tone=Tone.QUIET)
    if report.narrowed:
        fewer = f"{count_of(report.narrowed, 'file')} without the rights of a group that only root can give back"
        yield Line(text=fewer, tone=Tone.WARNING)
    if report.guarded:
        fewer = (
            f"{count_of(report.guarded, 'file')} readable by no more people than where they lay, whatever their mode"
        )
        yield Line(text=fewer, tone=Tone.QUIET)
    if report.companions:
        left_out = f"errors kept of {count_of(report.companions, 'segment')} left out: --to DIR writes them"
        yield Line(text=left_out, tone=Tone.QUIET)
    if report.skipped:
        yield Line(text=f"{count_of(report.skipped, 'file')} there already, left alone", tone=Tone.QUIET)
    yield from iter_problem_lines(report.problems, report.problem_count)
