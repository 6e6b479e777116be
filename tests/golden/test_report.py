"""Reports as people read them, whole. After a wanted change: ``UPDATE_GOLDEN=1 pytest tests/golden/test_report.py``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.errors import ExitCode
from lifecycle.model import ReasonCode
from lifecycle.report.blocks import Block
from lifecycle.report.figures import AuditReport, PreviewReport
from lifecycle.report.forecasts import fold_forecast
from lifecycle.report.history import table_of_runs
from lifecycle.report.plans import fold_preview, table_of_items
from lifecycle.report.runs import fold_run
from lifecycle.report.screen import SECTIONS, fold_audit
from lifecycle.report.text import render_text
from tests.builders import NOON, a_batch, a_reason, a_segment
from tests.unit.report.figures_for_tests import (
    BROKEN,
    FILL,
    a_forecast,
    a_preview,
    a_run,
    a_run_line,
    a_run_under_pressure,
    an_audit,
)

FOLDER = Path(__file__).parent / "report"


def _items() -> Iterable[Block]:
    preview = a_preview()
    return [table_of_items(preview.items(), preview.place_roots)]


def _preview_under_pressure() -> PreviewReport:
    segments = [a_segment("5h", id=number, team="nlp", size="1GiB") for number in (1, 2)]
    reason = a_reason(ReasonCode.OVER_HIGH, current="hot 81.9 % full", required="80%")
    early = a_batch(segments, reason=reason, relief="hot")
    return a_preview(a_batch([a_segment("26h", id=3)]), early, fills=(FILL,), broken=BROKEN)


def _audit_under_pressure() -> AuditReport:
    audit = an_audit()
    hot, *others = audit.tiers
    return replace(audit, tiers=(replace(hot, high=0.8, reserve_bytes=2**30), *others))


REPORTS: dict[str, Callable[[], Iterable[Block]]] = {
    "run": lambda: fold_run(a_run()),
    "run_with_nothing_due": lambda: fold_run(
        replace(a_run(), phases=(), problems=(), problem_count=0, exit_code=ExitCode.DONE)
    ),
    "run_under_pressure": lambda: fold_run(a_run_under_pressure()),
    "plan_under_pressure": lambda: fold_preview(_preview_under_pressure(), now=NOON),
    "audit_under_pressure": lambda: fold_audit(_audit_under_pressure(), None),
    "forecast": lambda: fold_forecast(a_forecast()),
    "plan": lambda: fold_preview(a_preview(), now=NOON),
    "plan_items": _items,
    "audit": lambda: fold_audit(an_audit(), None),
    "history": lambda: [table_of_runs([a_run_line(), a_run_line(1881, exit_code=None, ended=None)])],
    **{f"audit_{name}": (lambda name=name: fold_audit(an_audit(), name)) for name in SECTIONS},
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_reads_as_agreed(name: str) -> None:
    text = "\n".join(render_text(REPORTS[name]())) + "\n"
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_golden_report_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(REPORTS)
