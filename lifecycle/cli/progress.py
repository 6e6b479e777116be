"""Progress on a terminal's stderr, silence anywhere else: cron, pipes, ``--quiet``, a log in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lifecycle.report.figures import Progress, Silence
from lifecycle.units import format_count, format_size

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


def make_progress(*, is_wanted: bool) -> Progress:
    return TerminalProgress() if is_wanted else Silence()


class TerminalProgress:
    """One line for the phase that runs; a line with a note stays, one without goes."""

    def __init__(self) -> None:
        self._bars: RichProgress | None = None
        self._task: TaskID | None = None
        self._name = ""
        self._segments = 0
        self._bytes = 0

    def phase(self, name: str, total_segments: int | None = None) -> None:
        self.done()
        self._name, self._segments, self._bytes = name, 0, 0
        self._bars = _make_bars(has_total=bool(total_segments))
        self._task = self._bars.add_task(name, total=total_segments or None, seen="")
        self._bars.start()

    def advance(self, segments: int, size_bytes: int = 0) -> None:
        if self._bars is None or self._task is None:
            return
        self._segments += segments
        self._bytes += size_bytes
        size = f", {format_size(self._bytes)}" if self._bytes else ""
        self._bars.update(self._task, completed=self._segments, seen=f"{format_count(self._segments)}{size}")

    def done(self, note: str = "") -> None:
        if self._bars is None:
            return
        self._bars.stop()
        if note:
            from rich.text import Text

            self._bars.console.print(Text(f"{self._name}  {note}", style="dim"), soft_wrap=True)
        self._bars = None


def _make_bars(*, has_total: bool) -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    name = TextColumn("{task.description}", markup=False)
    seen = TextColumn("{task.fields[seen]}", markup=False)
    middle = (BarColumn(bar_width=24), seen, TimeRemainingColumn()) if has_total else (seen, TimeElapsedColumn())
    return RichProgress(SpinnerColumn(), name, *middle, console=Console(stderr=True), transient=True)
