"""``policy test`` folded: each thing that is not as a test says, with the line that decided."""

from __future__ import annotations

from collections.abc import Iterator

from lifecycle.plan.cases import CasesReport
from lifecycle.report.blocks import Block, Column, Line, Table, Tone
from lifecycle.report.runs import count_of


def fold_cases(report: CasesReport) -> Iterator[Block]:
    what = f"{count_of(report.tests, 'test')} in {count_of(report.files, 'file')}, {count_of(report.checks, 'check')}"
    if not report.failures:
        yield Line(text=f"{what}: all as expected", tone=Tone.GOOD)
        return
    yield table_of_failures(report)
    yield Line(text="")
    yield Line(text=f"{what}: {count_of(len(report.failures), 'failure')}", tone=Tone.ALARM)


def table_of_failures(report: CasesReport) -> Table:
    columns = (
        Column(key="at", title="TEST"), Column(key="path"), Column(key="what"), Column(key="expected"),
        Column(key="found"), Column(key="rule", title="DECIDED BY"),
    )  # fmt: skip
    rows = [(f"{it.file}:{it.line}", it.path, it.what, it.expected, it.found, it.rule) for it in report.failures]
    return Table(columns=columns, rows=rows)
