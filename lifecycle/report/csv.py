"""Tables to CSV (RFC 4180), one heading row, raw values: bytes, seconds, ISO instants.

A cell that a spreadsheet would run as a formula (``=``, ``+``, ``-``, ``@``, tab or carriage return first) gets an
apostrophe before it: names of jobs and files are other people's text. Numbers of our own are left alone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lifecycle.report.blocks import Cell, Table
from lifecycle.report.json import show_instant

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def make_harmless(text: str) -> str:
    """Spaces before a formula do not help a spreadsheet, so they do not help here."""
    return "'" + text if text.startswith(_FORMULA_STARTS) or text.lstrip(" ").startswith(_FORMULA_STARTS) else text


def _cell(value: Cell) -> str:
    match value:
        case None:
            return ""
        case str():
            return make_harmless(value)
        case datetime():
            return show_instant(value)
        case _:
            return str(value)


def render_csv(table: Table) -> Iterator[str]:
    """Lines without line ends; rows are read once, lazily."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")  # what is in it decides what is quoted
    for row in _iter_rows(table):
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(row)
        yield buffer.getvalue().removesuffix("\r\n")


def _iter_rows(table: Table) -> Iterator[list[str]]:
    yield [column.key for column in table.columns]
    for row in table.rows:
        yield [_cell(value) for value in row]
