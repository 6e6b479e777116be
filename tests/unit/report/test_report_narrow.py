"""On a narrow terminal no figure is cut, no column is lost, and words stay whole."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lifecycle.errors import ExitCode
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
