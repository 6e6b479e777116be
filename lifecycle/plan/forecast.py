"""When it gets tight: growth out of the samples that runs leave, with a range, and the days to each limit.

Pure figures in, figures out. Growth is what came in net of what moved on, with what was purged added back; purges are
counted as they are scheduled, by the age of what is there. So a tier in balance is never "full in 90 days", and one
that has no purge yet is not said to grow for ever. What comes in later goes later, after the longest retention there.

Example: cold grows by 1 TiB a day and keeps 30 days. On day 10 it has 10 TiB: in 20 days 30, and then no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from lifecycle.units import DAY_NS

HORIZON_DAYS: Final = 365
SHORTEST_NS: Final = DAY_NS // 24  # of history: less says nothing of a day
_BUCKET_NS: Final = DAY_NS * 20 // 24  # rates of hourly runs are added up to days: nights are not days


class Level(NamedTuple):
    """What there was at an instant, and what was taken out between the instant before and this one."""

    at_ns: int
    used_bytes: int
    taken_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Bytes a day: the mean, and what half of the days lie between."""

    low: float
    expected: float
    high: float
    days: float  # of history

    @property
    def is_range(self) -> bool:
        return self.low != self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Days from now to a limit; None where it is not met within a year. 0: it is over already."""

    expected: float | None
    earliest: float | None
    latest: float | None


class Purge(NamedTuple):
    """What goes by the age of what is there."""

    day: float  # from now; 0 for what is over
    size_bytes: int


def growth_rate(levels: Sequence[Level]) -> Rate | None:
    """Out of samples in order of time. None where they say nothing: fewer than two, or less than an hour of them."""
    buckets: list[list[float]] = []  # bytes, nanoseconds
    for before, after in pairwise(levels):
        length, came = after.at_ns - before.at_ns, after.used_bytes - before.used_bytes + after.taken_bytes
        if length <= 0:
            continue
        if not buckets or buckets[-1][1] >= _BUCKET_NS:
            buckets.append([0.0, 0.0])
        buckets[-1][0] += came
        buckets[-1][1] += length
    history = sum(bucket[1] for bucket in buckets)
    if history < SHORTEST_NS:
        return None
    if len(buckets) > 1 and buckets[-1][1] < _BUCKET_NS:  # a part of a day is no day of its own
        rest = buckets.pop()
        buckets[-1][0] += rest[0]
        buckets[-1][1] += rest[1]
    rates = sorted(bucket[0] / bucket[1] * DAY_NS for bucket in buckets)
    expected = sum(bucket[0] for bucket in buckets) / history * DAY_NS
    low, high = rates[0], rates[-1]
    if len(rates) >= 4:
        low, high = _quantile(rates, 0.25), _quantile(rates, 0.75)
    return Rate(low=min(low, expected), expected=expected, high=max(high, expected), days=history / DAY_NS)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between the two values that it lies between. (The module for this costs every command its import.)"""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One thing that fills: a team in a tier, a file system. ``lives_days``: how long what comes in stays at most."""

    used_bytes: int
    rate: Rate | None
    purges: Sequence[Purge] = ()
    lives_days: float | None = None  # None: for ever, or not known

    def level(self, day: float, rate: float) -> float:
        """Bytes on a day to come, at a rate of growth."""
        gone = sum(purge.size_bytes for purge in self.purges if purge.day <= day)
        grows = day if self.lives_days is None else min(day, self.lives_days)
        return self.used_bytes - gone + rate * grows

    def _level_at(self, rate: float, day: float) -> float:
        return self.level(day, rate)

    def days_to(self, limit_bytes: float) -> Days | None:
        """Days until more than ``limit_bytes`` is used. None where its growth is not known."""
        if self.used_bytes > limit_bytes:
            return Days(expected=0.0, earliest=0.0, latest=0.0)
        if self.rate is None:
            return None
        rates = (self.rate.expected, self.rate.high, self.rate.low)
        expected, earliest, latest = (_first_day(partial(self._level_at, rate), limit_bytes) for rate in rates)
        return Days(expected=expected, earliest=earliest, latest=latest)


def _first_day(level: Callable[[float], float], limit: float) -> float | None:
    """When a line over the days first is above the limit, to the part of a day."""
    before = level(0.0)
    for day in range(1, HORIZON_DAYS + 1):
        now = level(float(day))
        if now > limit:
            return day - 1 + max(0.0, limit - before) / (now - before) if now > before else float(day)
        before = now
    return None
