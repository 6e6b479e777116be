"""On a narrow terminal no figure is cut, no column is lost, and words stay whole."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lifecycle.errors import ExitCode
from lifecycle.report.blocks import Column, Table
from lifecycle.report.figures import ScanOnceReport
from lifecycle.report.runs import fold_scan
from lifecycle.report.text import print_rich, render_text
from tests.builders import NOON
from tests.unit.report.figures_for_tests import a_scan

REPORT = ScanOnceReport(
    run_id=7, now=NOON, started=NOON, ended=NOON, exit_code=ExitCode.DONE,
    scans=(a_scan(new=991, changed=1234), a_scan(place="a-source-with-a-long-name", new=311_240)),
)  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 300])
def test_every_figure_of_a_table_is_there_whatever_the_width(width: int) -> None:
    out = io.StringIO()
    print_rich(fold_scan(REPORT), Console(file=out, width=width, force_terminal=False))
    missing = set(" ".join(render_text(fold_scan(REPORT))).split()) - set(out.getvalue().split())
    assert missing == set()


def _on_a_terminal(table: Table, width: int) -> list[str]:
    out = io.StringIO()
    print_rich([table], Console(file=out, width=width, force_terminal=False))
    return out.getvalue().splitlines()


def test_words_that_find_no_room_go_on_below_their_column() -> None:
    text = "transition to warm  due since 2026-10-03, kept back: its job still writes"
    table = Table(columns=(Column(key="when"), Column(key="what")), rows=[("next", text)], has_heading=False)
    assert _on_a_terminal(table, 44) == [
        "next  transition to warm  due since",
        "      2026-10-03, kept back: its job still",
        "      writes",
    ]


def test_a_name_longer_than_a_line_stays_in_one_piece() -> None:
    path = "nlp/eval/2026-10-24/71ff7eb7815f6df7_and_much_more_than_fits.zst"
    table = Table(columns=(Column(key="when"), Column(key="what")), rows=[("past", f"stored as {path} then")])
    assert [line.strip() for line in _on_a_terminal(table, 40)][1:] == ["past  stored as", path, "then"]
