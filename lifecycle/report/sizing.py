"""The sizing sheet folded to lines and tables: what it rests on first, then what it comes to."""

from __future__ import annotations

from collections.abc import Iterator

from lifecycle.plan.estimate import Assumptions, Estimate, Span
from lifecycle.report.blocks import Block, Cell, Column, Line, Table, Tone
from lifecycle.report.text import format_share
from lifecycle.units import format_count, format_decimal_size, format_limit


def fold_estimate(found: Estimate, source: str) -> Iterator[Block]:
    """``source`` says where the assumptions come from."""
    yield Line(text=f"estimate {source}", tone=Tone.HEAD)
    yield Table(columns=(Column(key="assumed"), Column(key="value")), rows=_assumed(found.assumptions))
    yield Line(text="")
    yield table_of_needs(found)
    yield Line(text="")
    yield Table(columns=(Column(key="what"), Column(key="value")), rows=_sums(found), has_heading=False)


def table_of_needs(found: Estimate) -> Table:
    columns = (
        Column(key="tier"), Column(key="days"), Column(key="stored"), Column(key="segments"), Column(key="form"),
    )  # fmt: skip
    rows = [
        (
            need.tier.value, f"{need.days:.3g}", show_span(need.stored_bytes), format_count(round(need.segments)),
            "as written" if need.tier == "hot" else "compressed, with its index",
        )
        for need in found.tiers
    ]  # fmt: skip
    return Table(columns=columns, rows=rows)


def _assumed(given: Assumptions) -> list[tuple[Cell, ...]]:
    return [
        ("GPUs of a job", f"{given.gpus:g}"),
        ("a GPU writes", f"{format_decimal_size(given.bytes_per_gpu_hour)} an hour"),
        ("a job runs", f"{given.job_hours:g} h"),
        ("jobs a day", f"{given.jobs_per_day:.3g}"),
        ("compressed to", f"{format_share(given.ratio.low)} to {format_share(given.ratio.high)} of raw"),
        ("search index", f"{format_share(given.index_share)} of raw"),
        ("files of a GPU", f"{given.files_per_gpu:.3g} a job"),
        ("kept for", format_limit(given.retention)),
        ("warm after", "never" if given.warm_after is None else format_limit(given.warm_after)),
        ("cold after", "never" if given.cold_after is None else format_limit(given.cold_after)),
    ]


def _sums(found: Estimate) -> list[tuple[Cell, ...]]:
    jobs, days = found.assumptions.jobs_per_day, format_limit(found.assumptions.retention)
    raw, stored = format_decimal_size(found.job_raw_bytes), show_span(found.job_stored_bytes)
    rates = f"{found.writes_per_second:,.0f} lines and {found.files_per_second:.2g} new files a second"
    return [
        ("one job", f"{raw} raw, {stored} compressed"),
        (f"{jobs:.3g} such jobs a day, kept {days}", f"{show_span(found.total_stored_bytes)} compressed"),
        ("at a time", f"{found.running_jobs:.3g} jobs running"),
        ("written", f"{format_decimal_size(found.raw_bytes_per_second)}, about {rates}"),
    ]


def show_span(span: Span) -> str:
    """``100–150 GB``, the unit once where both have it."""
    low, high = format_decimal_size(span.low), format_decimal_size(span.high)
    if low == high:
        return low
    number, unit = low.split(" ")
    return f"{number}–{high}" if high.endswith(f" {unit}") else f"{low} – {high}"
