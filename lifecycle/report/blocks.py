"""What a report is made of: lines and tables of typed cells. Every renderer walks these; nobody else formats.

A cell holds the value itself (bytes as an integer, an instant as a datetime), so that text shows ``8.72 TiB`` and
CSV shows ``9587706929152`` from the same table. Knows no figures and no output format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

Cell = str | int | float | datetime | None


class CellKind(StrEnum):
    TEXT = "text"
    COUNT = "count"
    SIZE = "size"  # bytes
    SHARE = "share"  # 0 to 1
    INSTANT = "instant"  # aware datetime
    SECONDS = "seconds"
    NUMBER = "number"  # an id: right aligned, no thousands separator

    @property
    def is_right_aligned(self) -> bool:
        return self not in (CellKind.TEXT, CellKind.INSTANT)


class Tone(StrEnum):
    """How a line is meant; a terminal gives it a colour, plain text shows it as it is."""

    PLAIN = "plain"
    HEAD = "head"
    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    ALARM = "alarm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    key: str  # in JSON and CSV
    title: str = ""  # in tables; the key in capitals when empty
    kind: CellKind = CellKind.TEXT
    in_text: bool = True  # False: for machines only

    @property
    def heading(self) -> str:
        return self.title or self.key.replace("_", " ").upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows may be an iterator; then the table can be rendered once, page by page, in flat memory."""

    columns: tuple[Column, ...]
    rows: Iterable[tuple[Cell, ...]]
    has_heading: bool = True
    indent: str = ""

    def for_text(self) -> Table:
        """The same without the columns that only machines read."""
        shown = [index for index, column in enumerate(self.columns) if column.in_text]
        if len(shown) == len(self.columns):
            return self
        columns = tuple(self.columns[index] for index in shown)
        rows = (tuple(row[index] for index in shown) for row in self.rows)
        return Table(columns=columns, rows=rows, has_heading=self.has_heading, indent=self.indent)


Block = Line | Table


def iter_tables(blocks: Iterable[Block]) -> Iterator[Table]:
    return (block for block in blocks if isinstance(block, Table))
