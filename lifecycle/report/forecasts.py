"""The forecast folded to lines and tables: how it grows, and in how many days which limit is met."""

from __future__ import annotations

from collections.abc import Iterator

from lifecycle.plan.forecast import HORIZON_DAYS, Days, Rate
from lifecycle.report.blocks import Block, Cell, CellKind, Column, Line, Table, Tone
from lifecycle.report.figures import FileSystemForecast, ForecastReport, TeamForecast
from lifecycle.report.text import format_share
from lifecycle.units import format_count, format_instant, format_size


def fold_forecast(report: ForecastReport) -> Iterator[Block]:
    yield Line(text=_header(report), tone=Tone.HEAD)
    if report.filtered_by:
        yield Line(text=f"only {report.filtered_by}", tone=Tone.QUIET)
    if report.runs < 2:
        yield Line(text="growth is not known yet: it needs the samples of two runs, an hour apart", tone=Tone.WARNING)
    if report.file_systems:
        yield table_of_file_systems(report)
    if report.teams:
        if report.file_systems:
            yield Line(text="")
        yield table_of_teams(report)
    text = f"in days from now, (from–to); – not within {HORIZON_DAYS} days; ? not known; growth is net of what moves on"
    yield Line(text=text, tone=Tone.QUIET)


def _header(report: ForecastReport) -> str:
    count = format_count(report.runs)
    return f"forecast {format_instant(report.at)} · from the samples of {count} runs over {report.days:.1f} d"


def table_of_file_systems(report: ForecastReport) -> Table:
    columns = (
        Column(key="file_system"), Column(key="used_bytes", title="USED", kind=CellKind.SIZE),
        Column(key="total_bytes", title="TOTAL", kind=CellKind.SIZE), Column(key="fill"),
        Column(key="growth", title="GROWTH/DAY"), Column(key="high", title="HIGH IN"),
        Column(key="reserve", title="RESERVE IN"), Column(key="full", title="FULL IN"),
    )  # fmt: skip
    return Table(columns=columns, rows=[_file_system_row(each) for each in report.file_systems])


def _file_system_row(each: FileSystemForecast) -> tuple[Cell, ...]:
    fill = format_share(each.used_bytes / each.total_bytes) if each.total_bytes else "–"
    limits = ((each.high_bytes, each.high), (each.reserve_bytes, each.reserve), (each.total_bytes, each.full))
    marks = [_limit(limit, days) for limit, days in limits]
    return (each.name, each.used_bytes, each.total_bytes, fill, format_growth(each.growth), *marks)


def table_of_teams(report: ForecastReport) -> Table:
    columns = (
        Column(key="team"), Column(key="tier"), Column(key="used_bytes", title="USED", kind=CellKind.SIZE),
        Column(key="growth", title="GROWTH/DAY"), Column(key="soft_bytes", title="SOFT", kind=CellKind.SIZE),
        Column(key="soft", title="SOFT IN"), Column(key="hard_bytes", title="HARD", kind=CellKind.SIZE),
        Column(key="hard", title="HARD IN"),
    )  # fmt: skip
    return Table(columns=columns, rows=[_team_row(each) for each in report.teams])


def _team_row(each: TeamForecast) -> tuple[Cell, ...]:
    soft, hard = _limit(each.soft_bytes, each.soft), _limit(each.hard_bytes, each.hard)
    growth = format_growth(each.growth)
    return (each.team, each.tier, each.used_bytes, growth, each.soft_bytes, soft, each.hard_bytes, hard)


def _limit(limit_bytes: int | None, days: Days | None) -> str:
    """Nothing where there is no limit, ``?`` where growth is not known."""
    if limit_bytes is None:
        return ""
    return "?" if days is None else format_days(days)


def format_days(days: Days) -> str:
    """``18 d (14–25)``, ``now``, ``–`` where it is not met within a year."""
    if days.expected == 0:
        return "now"
    shown = "–" if days.expected is None else f"{_figure(days.expected)} d"
    if days.earliest == days.expected and days.latest == days.expected:
        return shown
    last = "…" if days.latest is None else _figure(days.latest)
    return shown if days.earliest is None else f"{shown} ({_figure(days.earliest)}–{last})"


def _figure(days: float) -> str:
    return f"{days:.1f}" if days < 10 else f"{days:.0f}"


def format_growth(rate: Rate | None) -> str:
    """``+1.20 TiB (0.9 TiB–1.5 TiB)``."""
    if rate is None:
        return "?"
    shown = _signed(rate.expected)
    return f"{shown} ({_signed(rate.low)} to {_signed(rate.high)})" if rate.is_range else shown


def _signed(size: float) -> str:
    return f"{'+' if size >= 0 else ''}{format_size(round(size))}"
