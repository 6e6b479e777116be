"""Results as JSON and as the table of ``docs/performance.md``, between two markers; the text around it is kept."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import MIB, Result

BAR = "\\|"  # a bar inside a cell
BEGIN, END = "<!-- table: written by make bench -->", "<!-- end of the table -->"


def machine() -> str:
    """What it was measured on, without a name that says where."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1024 * MIB)
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"
    )


def render_json(results: Sequence[Result], *, day: str, rounds: int) -> str:
    rows = [dataclasses.asdict(result) for result in results]
    return json.dumps({"day": day, "machine": machine(), "rounds": rounds, "rows": rows}, indent=1, ensure_ascii=False)


def read_results(path: Path) -> list[Result]:
    """What an earlier run wrote; none when there is no such file."""
    if not path.exists():
        return []
    return [Result(**row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def together(before: Sequence[Result], new: Sequence[Result], order: Sequence[str]) -> list[Result]:
    """Benchmarks that were not run again keep the rows they had."""
    again = {row.benchmark for row in new}
    rows = [row for row in before if row.benchmark and row.benchmark not in again] + list(new)
    return sorted(rows, key=lambda row: order.index(row.benchmark) if row.benchmark in order else len(order))


def render_table(results: Sequence[Result], *, day: str, rounds: int) -> str:
    lines = [
        f"{day}, {machine()}; medians of {rounds} pairs, unless a note says otherwise.",
        "",
        "| work | program | peer | ratio | aim | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [render_line(row) for row in results]
    notes = [f"- {row.name}: {row.note}." for row in results if row.note]
    return "\n".join([*lines, "", *notes])


def render_line(row: Result) -> str:
    peer = row.peer if row.theirs is None else f"{row.peer}: {_figure(row.theirs, row.unit)}"
    ratio = "–" if row.ratio is None else f"{row.ratio:.2f}"
    verdict = {True: "met", False: "**missed**", None: ""}[row.is_met]
    cells = (row.name, _figure(row.ours, row.unit), peer, ratio, row.aim, verdict)
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def _figure(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:.2f} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def put_table(path: Path, table: str) -> None:
    """Replace what is between the markers. Raises ValueError when they are not there."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no markers for the table")
    path.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
