"""Progress on a terminal's stderr, silence anywhere else: cron, pipes, ``--quiet``, a log in JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lifecycle.report.figures import Progress, Silence
from lifecycle.units import format_count, format_size

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


def make_progress(*, is_wanted: bool) -> Progress:
    return TerminalProgress() if is_wanted else Silence()


class TerminalProgress:
    """One line a phase until ``done``; a phase that comes again goes on where it was. A note stays, bars go."""

    def __init__(self) -> None:
        self._bars: RichProgress | None = None
        self._lines: dict[str, _Line] = {}
        self._name = ""

    def phase(self, name: str, total_segments: int | None = None) -> None:
        if self._bars is None:
            self._bars = _make_bars()
            self._bars.start()
        if name not in self._lines:
            task = self._bars.add_task(name, total=total_segments or None, seen="")
            self._lines[name] = _Line(task)
        self._name = name

    def advance(self, segments: int, size_bytes: int = 0) -> None:
        if self._bars is None:
            return
        line = self._lines[self._name]
        line.segments += segments
        line.size_bytes += size_bytes
        size = f", {format_size(line.size_bytes)}" if line.size_bytes else ""
        self._bars.update(line.task, completed=line.segments, seen=f"{format_count(line.segments)}{size}")

    def done(self, note: str = "") -> None:
        if self._bars is None:
            return
        self._bars.stop()
        if note:
            from rich.text import Text

            self._bars.console.print(Text(f"{self._name}  {note}", style="dim"), soft_wrap=True)
        self._bars = None
        self._lines.clear()


@dataclass(slots=True)
class _Line:
    task: TaskID
    segments: int = 0
    size_bytes: int = 0


def _make_bars() -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    name = TextColumn("{task.description}", markup=False)
    seen = TextColumn("{task.fields[seen]}", markup=False)
    columns = (SpinnerColumn(), name, BarColumn(bar_width=24), seen, TimeElapsedColumn())
    return RichProgress(*columns, console=Console(stderr=True), transient=True)
