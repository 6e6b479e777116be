"""How much storage a platform's logs need: from GPUs, rates and retention to bytes per tier. Pure arithmetic.

Every assumption is a field, so that whoever shows the result can show what it rests on. Sizes are bytes; the sheet
speaks of them in powers of ten, as disks and budgets do.

The published example: 100 GPUs at 200 MB an hour for 24 hours write 480 GB; compressed to 21 to 31 % that is 100 to
150 GB, and 3 to 4.5 TB if one such job a day is kept 30 days.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from lifecycle.model import TierName

DAY: Final = timedelta(days=1)
LINE_BYTES: Final = 150  # a line of a training log with its time and level; only for writes a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a figure lies between."""

    low: float
    high: float

    def times(self, factor: float) -> Span:
        return Span(low=self.low * factor, high=self.high * factor)

    def plus(self, other: Span) -> Span:
        return Span(low=self.low + other.low, high=self.high + other.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the sheet rests on. Measured where they come from a catalog, else as given."""

    gpus: int = 100  # of one job
    bytes_per_gpu_hour: float = 200e6
    job_hours: float = 24.0
    jobs_per_day: float = 1.0
    ratio: Span = Span(low=100 / 480, high=150 / 480)  # compressed to raw
    index_share: float = 0.005  # of raw, for the search index
    files_per_gpu: float = 2.0  # of one job: stdout and stderr
    retention: timedelta = timedelta(days=30)
    warm_after: timedelta | None = DAY  # None: passed over
    cold_after: timedelta | None = timedelta(days=7)

    @property
    def job_bytes(self) -> float:
        return self.gpus * self.bytes_per_gpu_hour * self.job_hours

    @property
    def raw_per_day(self) -> float:
        return self.job_bytes * self.jobs_per_day


@dataclass(frozen=True, slots=True, kw_only=True)
class TierNeed:
    """The steady state of one tier: what it holds once as much leaves as comes."""

    tier: TierName
    days: float  # of logs
    stored_bytes: Span
    segments: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    assumptions: Assumptions
    job_raw_bytes: float
    job_stored_bytes: Span  # compressed, with the index
    total_stored_bytes: Span  # of all days of the retention, compressed
    tiers: tuple[TierNeed, ...]
    running_jobs: float  # at a time
    raw_bytes_per_second: float
    files_per_second: float
    writes_per_second: float  # of one line each, unbuffered


def estimate(given: Assumptions) -> Estimate:
    """The sheet for these assumptions. Raises ValueError for figures that cannot be."""
    _check(given)
    ratio = given.ratio.plus(Span(low=given.index_share, high=given.index_share))
    days = given.retention / DAY
    per_second = given.raw_per_day / DAY.total_seconds()
    files_per_day = given.gpus * given.files_per_gpu * given.jobs_per_day
    return Estimate(
        assumptions=given,
        job_raw_bytes=given.job_bytes,
        job_stored_bytes=given.ratio.times(given.job_bytes),
        total_stored_bytes=given.ratio.times(given.raw_per_day * days),
        tiers=tuple(_tiers(given, ratio, files_per_day)),
        running_jobs=given.jobs_per_day * given.job_hours / 24,
        raw_bytes_per_second=per_second,
        files_per_second=files_per_day / DAY.total_seconds(),
        writes_per_second=per_second / LINE_BYTES,
    )


def _tiers(given: Assumptions, ratio: Span, files_per_day: float) -> list[TierNeed]:
    """Hot holds raw bytes until the first move; a job that runs for days is in hot from its beginning."""
    ends = [given.warm_after, given.cold_after, given.retention]
    first = min(end for end in ends if end is not None)
    hot_days = min(first, given.retention) / DAY + given.job_hours / 24 / 2
    raw = given.raw_per_day * hot_days
    found = [TierNeed(tier=TierName.HOT, days=hot_days, stored_bytes=Span(low=raw, high=raw),
                      segments=files_per_day * hot_days)]  # fmt: skip
    starts = {TierName.WARM: given.warm_after, TierName.COLD: given.cold_after}
    for tier, start in starts.items():
        if start is None or start >= given.retention:
            continue
        end = given.cold_after if tier is TierName.WARM and given.cold_after is not None else given.retention
        days = (min(end, given.retention) - start) / DAY
        stored = ratio.times(given.raw_per_day * days)
        found.append(TierNeed(tier=tier, days=days, stored_bytes=stored, segments=files_per_day * days))
    return found


def _check(given: Assumptions) -> None:
    positive = {
        "gpus": given.gpus, "rate": given.bytes_per_gpu_hour, "hours": given.job_hours,
        "jobs a day": given.jobs_per_day, "files per GPU": given.files_per_gpu,
    }  # fmt: skip
    for name, value in positive.items():
        if value <= 0:
            raise ValueError(f"{name} {value:g} must be above 0")
    if not 0 < given.ratio.low <= given.ratio.high <= 2:
        raise ValueError(f"ratio {given.ratio.low:g}-{given.ratio.high:g} is no range of shares between 0 and 2")
    if given.warm_after is not None and given.cold_after is not None and given.cold_after <= given.warm_after:
        raise ValueError("cold_after must be above warm_after")
