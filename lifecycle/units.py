"""Sizes, durations, instants and days: text to value and back, nothing ambiguous accepted.

``1T`` is refused (decimal or binary?), ``10`` is refused (of what?), ``0`` and negative values are refused where a
positive one is asked for. Instants are nanoseconds since 1970 UTC in the catalog and aware datetimes elsewhere.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

NS: Final = 1_000_000_000
DAY_NS: Final = 86_400 * NS
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1)

_BINARY: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_DECIMAL: Final = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_SIZE_UNITS: Final = _BINARY | _DECIMAL
_DURATION_UNITS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_NUMBER_UNIT: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z%]*)\Z")


def parse_size(text: str) -> int:
    """Bytes of ``64MiB``, ``1.5TB``. Raises ValueError whose text is a message with the hint in it."""
    match = _NUMBER_UNIT.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write a number and a unit, as 64MiB")
    number, unit = match.groups()
    if unit not in _SIZE_UNITS:
        guess = unit[:1].upper()
        near = f", did you mean {number}{guess}iB or {number}{guess}B" if guess in "KMGTP" and guess else ""
        raise ValueError(f"size {text!r} has no clear unit{near}; units are {', '.join(_SIZE_UNITS)}")
    size = round(float(number) * _SIZE_UNITS[unit])
    if size <= 0:
        raise ValueError(f"size {text!r} must be above 0")
    return size


def parse_duration(text: str) -> timedelta:
    """A positive duration from ``90s``, ``30m``, ``24h``, ``7d``, ``2w``. Raises ValueError with the hint in it."""
    match = _NUMBER_UNIT.match(text.strip())
    if match is None or match[2] not in _DURATION_UNITS:
        raise ValueError(f"{text!r} is not a duration; write a number and one of s, m, h, d, w, as 24h or 7d")
    try:
        duration = float(match[1]) * _DURATION_UNITS[match[2]]
    except OverflowError:
        raise ValueError(f"duration {text!r} is too long") from None
    if duration <= timedelta(0):
        raise ValueError(f"duration {text!r} must be above 0")
    if duration > timedelta(days=36_500):
        raise ValueError(f"duration {text!r} is longer than 100 years")
    return duration


def parse_percent(text: str) -> float:
    """A share between 0 and 1 from ``80%``. Raises ValueError."""
    match = _NUMBER_UNIT.match(text.strip())
    if match is None or match[2] != "%" or not 0 < float(match[1]) <= 100:
        raise ValueError(f"{text!r} is not a percentage above 0% and up to 100%, as 80%")
    return float(match[1]) / 100


def format_size(size_bytes: int) -> str:
    """Three figures and a binary unit: ``8.72 TiB``, ``512 B``. Negative sizes keep their sign."""
    value, unit = float(abs(size_bytes)), "B"
    for unit in ("B", *_BINARY):
        if value < 999.5 or unit == "PiB":
            break
        value /= 1024
    figures = f"{value:.0f}" if unit == "B" or value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    return f"{'-' if size_bytes < 0 else ''}{figures} {unit}"


def format_decimal_size(size_bytes: float) -> str:
    """At most three figures and a decimal unit, as disks are sold: ``480 GB``, ``4.5 TB``."""
    value, unit = float(size_bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if value < 999.5 or unit == "PB":
            break
        value /= 1000
    return f"{value:.3g} {unit}"


def format_duration(duration: timedelta) -> str:
    """The shortest exact-enough form for people: ``45 s``, ``38 min``, ``2 h 41 min``, ``9 d``."""
    seconds = duration.total_seconds()
    if seconds < 0:
        return "-" + format_duration(-duration)
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{hours / 24:.3g} d"


def format_left(duration: timedelta) -> str:
    """Time that is left, never more than there is: whole days from two on, ``28 d``, else as ``format_duration``."""
    return f"{duration.days} d" if duration.days >= 2 else format_duration(duration)


def format_limit(duration: timedelta) -> str:
    """A duration as policy writes it: ``24h``, ``7d``, ``90s``."""
    seconds = int(duration.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds % size == 0 and (unit != "d" or seconds > size):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def format_size_limit(size_bytes: int) -> str:
    """A size as policy writes it, the shortest that says it exactly: ``64MiB``, ``1TB``, ``999B``."""
    exact = [f"{size_bytes // size}{unit}" for unit, size in _SIZE_UNITS.items() if size_bytes % size == 0]
    return min(exact, key=len)


def format_count(count: int) -> str:
    return f"{count:,}"


def to_ns(instant: datetime) -> int:
    """Nanoseconds since 1970 UTC of an aware datetime, exact to the microsecond."""
    delta = instant - _EPOCH
    return ((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds) * 1000


def from_ns(instant_ns: int) -> datetime:
    """Aware UTC datetime; what no datetime can hold is clamped to years 1 and 9999 (file times may be anything)."""
    try:
        return _EPOCH + timedelta(microseconds=instant_ns // 1000)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC) if instant_ns < 0 else datetime.max.replace(tzinfo=UTC)


def duration_ns(duration: timedelta) -> int:
    return ((duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds) * 1000


def day_of_ns(instant_ns: int) -> int:
    """Days since 1970 in UTC; rollups, archive keys and merge windows are by this number."""
    return instant_ns // DAY_NS


def format_day(day: int) -> str:
    """``2026-03-12``; a day that no calendar date can hold is shown as its number."""
    try:
        return (_EPOCH_DAY + timedelta(days=day)).isoformat()
    except OverflowError:
        return f"day{day}"


def format_instant(instant: datetime | None) -> str:
    return "–" if instant is None else instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
