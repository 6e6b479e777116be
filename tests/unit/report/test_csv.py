from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.report.blocks import CellKind, Column, Table
from lifecycle.report.csv import make_harmless, render_csv

COLUMNS = (Column(key="job"), Column(key="size_bytes", kind=CellKind.SIZE))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "=cmd|' /C calc'!A0"])
def test_what_a_spreadsheet_would_run_is_only_shown(text: str) -> None:
    assert make_harmless(text) == "'" + text


@pytest.mark.parametrize("text", ["", "train-1", "a=b", "x@y", "1-2"])
def test_ordinary_names_are_left_as_they_are(text: str) -> None:
    assert make_harmless(text) == text


def test_figures_are_raw_and_not_taken_for_formulas() -> None:
    columns = (*COLUMNS, Column(key="at", kind=CellKind.INSTANT), Column(key="none"))
    row = ("-evil", -5, datetime(2026, 3, 1, 12, tzinfo=UTC), None)
    assert list(render_csv(Table(columns=columns, rows=[row]))) == [
        "job,size_bytes,at,none",
        "'-evil,-5,2026-03-01T12:00:00Z,",
    ]


def test_columns_for_machines_are_in_it() -> None:
    table = Table(columns=(Column(key="a"), Column(key="b", in_text=False)), rows=[("1", "2")])
    assert list(render_csv(table)) == ["a,b", "1,2"]


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.integers()), max_size=5))
def test_any_text_comes_back_through_a_csv_reader(rows: list[tuple[str, int]]) -> None:
    text = "\r\n".join(render_csv(Table(columns=COLUMNS, rows=rows))) + "\r\n"
    back = list(csv.reader(io.StringIO(text, newline="")))
    assert [(name, int(size)) for name, size in back[1:]] == [(make_harmless(name), size) for name, size in rows]
