from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from rich.console import Console

from lifecycle.report.blocks import Cell, CellKind, Column, Line, Table, Tone
from lifecycle.report.text import format_cell, format_share, print_rich, render_text

NAMES = Column(key="name")
SIZES = Column(key="size_bytes", title="SIZE", kind=CellKind.SIZE)


def test_columns_line_up_and_figures_are_right_aligned() -> None:
    table = Table(columns=(NAMES, SIZES), rows=[("a", 512), ("longer", 2**40)])
    assert list(render_text([table])) == ["NAME        SIZE", "a          512 B", "longer  1.00 TiB"]


def test_lines_have_no_trailing_blanks_and_no_escape_codes() -> None:
    table = Table(columns=(SIZES, NAMES), rows=[(1, "x"), (2, "")])
    text = list(render_text([Line(text="head", tone=Tone.ALARM), table]))
    assert all(line == line.rstrip() and "\x1b" not in line for line in text)


def test_a_table_without_rows_shows_its_heading() -> None:
    assert list(render_text([Table(columns=(NAMES, SIZES), rows=[])])) == ["NAME  SIZE"]


def test_columns_for_machines_are_not_in_the_text() -> None:
    hidden = Column(key="secret", in_text=False)
    assert list(render_text([Table(columns=(NAMES, hidden), rows=[("a", "b")])])) == ["NAME", "a"]


def test_rows_are_read_as_they_are_asked_for() -> None:
    read: list[int] = []

    def rows() -> Iterator[tuple[Cell, ...]]:
        for number in range(100_000):
            read.append(number)
            yield (number,)

    lines = render_text([Table(columns=(NAMES,), rows=rows())])
    next(lines)
    assert len(read) < 2_000


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, CellKind.SIZE, "–"),
        (None, CellKind.TEXT, ""),
        (0, CellKind.COUNT, "0"),
        (1_850_400, CellKind.COUNT, "1,850,400"),
        (1882, CellKind.NUMBER, "1882"),
        (9660.0, CellKind.SECONDS, "2 h 41 min"),
        (0.205, CellKind.SHARE, "20.5 %"),
        (datetime(2026, 10, 3, 4, 45, tzinfo=UTC), CellKind.INSTANT, "2026-10-03 04:45 UTC"),
    ],
)
def test_a_cell_reads_as_its_kind(value: Cell, kind: CellKind, text: str) -> None:
    assert format_cell(value, kind) == text


def test_a_little_less_than_all_never_reads_as_all() -> None:
    assert (format_share(0.99999), format_share(1.0), format_share(0.0)) == ("99.9 %", "100 %", "0.0 %")


def test_names_that_look_like_markup_stay_names_on_a_terminal() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, color_system="standard")
    print_rich([Line(text="[bold]job[/bold]"), Table(columns=(NAMES,), rows=[("[red]",)])], console)
    assert "[bold]job[/bold]" in stream.getvalue() and "[red]" in stream.getvalue()


def test_a_terminal_shows_the_same_words_as_plain_text() -> None:
    stream = io.StringIO()
    table = Table(columns=(NAMES, SIZES), rows=[("a", 512), ("b", 2**40)])
    print_rich([table], Console(file=stream, width=80))
    assert [line.split() for line in stream.getvalue().splitlines()] == [line.split() for line in render_text([table])]
