"""Blocks to text for people: plain aligned text anywhere, rich on a terminal. The same words in both.

Plain text has no ANSI codes and no line longer than its content; a table of many rows is aligned page by page, so
that memory stays flat. Knows nothing of figures, catalogs or files.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from lifecycle.report.blocks import Block, Cell, CellKind, Column, Line, Table, Tone
from lifecycle.units import format_count, format_duration, format_instant, format_size

if TYPE_CHECKING:
    from rich.console import Console

NOTHING: Final = "–"
_PAGE: Final = 500  # rows that are aligned together
_ROOM: Final = 24  # columns of a terminal; with less for the last column of a table, its words are not wrapped
_STYLES: Final = {
    Tone.PLAIN: "", Tone.HEAD: "bold", Tone.QUIET: "dim", Tone.GOOD: "green",
    Tone.WARNING: "yellow", Tone.ALARM: "bold red",
}  # fmt: skip


def format_share(share: float) -> str:
    """``20.5 %``, ``0.4 %``; never ``100 %`` for a little less, which would claim that nothing is left."""
    percent = share * 100
    if 99.95 <= percent < 100:
        return "99.9 %"
    return f"{percent:.1f} %" if percent < 99.95 else f"{percent:.0f} %"


def format_cell(value: Cell, kind: CellKind) -> str:
    if value is None or value == "":
        return NOTHING if kind is not CellKind.TEXT else ""
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, str):
        return value
    match kind:
        case CellKind.COUNT:
            return format_count(int(value))
        case CellKind.SIZE:
            return format_size(int(value))
        case CellKind.SHARE:
            return format_share(value)
        case CellKind.SECONDS:
            return format_duration(timedelta(seconds=round(value, 1)))
        case _:
            return str(value)


def render_text(blocks: Iterable[Block]) -> Iterator[str]:
    """Plain lines without line ends."""
    for block in blocks:
        if isinstance(block, Line):
            yield block.text
        else:
            yield from _render_table(block.for_text())


def _render_table(table: Table) -> Iterator[str]:
    rows = iter(table.rows)
    floor = [len(column.heading) if table.has_heading else 0 for column in table.columns]
    is_first = True
    while page := _format_rows(table, rows):
        widths = [max(least, *(len(row[at]) for row in page)) for at, least in enumerate(floor)]
        head = [[column.heading for column in table.columns]] if is_first and table.has_heading else []
        for row in chain(head, page):
            yield _align(row, widths, table)
        floor, is_first = widths, False
    if is_first and table.has_heading:
        yield _align([column.heading for column in table.columns], floor, table)


def _format_row(row: tuple[Cell, ...], columns: tuple[Column, ...]) -> list[str]:
    return [format_cell(value, column.kind) for value, column in zip(row, columns, strict=True)]


def _format_rows(table: Table, rows: Iterator[tuple[Cell, ...]]) -> list[list[str]]:
    """The next page. Without a heading nothing says what a dash would stand for, so that nothing is shown."""
    page = [_format_row(row, table.columns) for row in islice(rows, _PAGE)]
    return page if table.has_heading else [["" if cell == NOTHING else cell for cell in row] for row in page]


def _align(cells: list[str], widths: list[int], table: Table) -> str:
    parts = (
        cell.rjust(width) if column.kind.is_right_aligned else cell.ljust(width)
        for cell, width, column in zip(cells, widths, table.columns, strict=True)
    )
    return (table.indent + "  ".join(parts)).rstrip()


def print_rich(blocks: Iterable[Block], console: Console) -> None:
    """The same blocks on a terminal. Text is never read as markup: a job may be called ``[red]``."""
    from rich.text import Text

    for block in blocks:
        if isinstance(block, Line):
            console.print(Text(block.text, style=_STYLES[block.tone]), highlight=False)
        else:
            _print_table(block.for_text(), console)


def _print_table(table: Table, console: Console) -> None:
    from rich.table import Table as RichTable
    from rich.text import Text

    rows = iter(table.rows)
    is_first = True
    while page := _format_rows(table, rows):
        if not _fits(page, table, console.width):
            # Rich would cut figures and drop columns: the plain lines lose nothing. What the last column says goes on
            # below it; where even that has no room, the terminal breaks the lines.
            for line in _plain_lines(page, table, console.width, with_heading=is_first):
                console.print(Text(line), soft_wrap=True)
            is_first = False
            continue
        rich_table = RichTable(
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            header_style="bold",
            show_header=is_first and table.has_heading,
        )
        for column in table.columns:
            right = column.kind.is_right_aligned
            rich_table.add_column(
                Text(column.heading), justify="right" if right else "left", no_wrap=right, overflow="fold"
            )
        for row in page:
            rich_table.add_row(*(Text(cell) for cell in row))
        console.print(rich_table)
        is_first = False
    if is_first and table.has_heading:
        console.print(Text("  ".join(column.heading for column in table.columns), style="bold"))


def _widths(page: list[list[str]], table: Table) -> list[int]:
    headings = [column.heading if table.has_heading else "" for column in table.columns]
    return [max(map(len, column)) for column in zip(headings, *page, strict=True)]


def _fits(page: list[list[str]], table: Table, width: int) -> bool:
    widths = _widths(page, table)
    return sum(widths) + 2 * len(widths) <= width


def _plain_lines(page: list[list[str]], table: Table, width: int, *, with_heading: bool) -> Iterator[str]:
    widths = _widths(page, table)
    room = width - len(table.indent) - sum(widths[:-1]) - 2 * (len(widths) - 1)
    wraps = room >= _ROOM and not table.columns[-1].kind.is_right_aligned
    if with_heading and table.has_heading:
        yield _align([column.heading for column in table.columns], widths, table)
    for *cells, last in page:
        first, *more = _wrap(last, room) if wraps else [last]
        yield _align([*cells, first], widths, table)
        for part in more:
            yield _align([*[""] * len(cells), part], widths, table)


def _wrap(words: str, room: int) -> list[str]:
    """Whole words on each line; a path longer than a line stays in one piece, to be copied."""
    return textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False) or [""]
