"""Growth out of samples, and the days to a limit."""

from __future__ import annotations

import pytest

from lifecycle.plan.forecast import HORIZON_DAYS, Days, Level, Purge, Rate, Series, growth_rate
from lifecycle.units import DAY_NS

TIB = 2**40


def levels(*used: float, every: float = 1.0, taken: tuple[float, ...] = ()) -> list[Level]:
    """Samples ``every`` so many days, in TiB."""
    out = (*taken, *(0.0,) * (len(used) - len(taken)))
    return [
        Level(round(n * every * DAY_NS), round(size * TIB), round(gone * TIB))
        for n, (size, gone) in enumerate(zip(used, out, strict=True))
    ]  # fmt: skip


def tib(rate: Rate | None) -> tuple[float, float, float]:
    assert rate is not None
    return tuple(round(value / TIB, 3) for value in (rate.low, rate.expected, rate.high))  # type: ignore[return-value]


def test_growth_is_the_mean_with_what_half_of_the_days_lie_between() -> None:
    assert tib(growth_rate(levels(10, 11, 12, 13, 14))) == (1, 1, 1)
    assert tib(growth_rate(levels(0, 1, 3, 6, 10))) == (1.75, 2.5, 3.25)


def test_what_was_taken_out_meanwhile_had_come_in_too() -> None:
    assert tib(growth_rate(levels(10, 10, 10, taken=(0, 2, 2)))) == (2, 2, 2)


def test_a_shrinking_tier_has_a_negative_growth() -> None:
    assert tib(growth_rate(levels(10, 9, 8))) == (-1, -1, -1)


def test_hourly_runs_are_added_up_to_days() -> None:
    day = [0.1 if 8 <= hour < 20 else 0.0 for _ in range(4) for hour in range(24)]
    used = [sum(day[:n]) for n in range(len(day) + 1)]
    low, expected, high = tib(growth_rate(levels(*used, every=1 / 24)))
    assert expected == pytest.approx(1.2)
    assert high - low < 0.5, "nights are not days of their own"


@pytest.mark.parametrize("used", [(), (5,), (5, 6)])
def test_less_than_two_samples_or_an_hour_say_nothing(used: tuple[float, ...]) -> None:
    assert growth_rate(levels(*used, every=0.04)) is None


def test_samples_at_one_instant_do_not_divide_by_zero() -> None:
    assert growth_rate([Level(5, 1, 0), Level(5, 2, 0)]) is None


def a_rate(expected: float, low: float | None = None, high: float | None = None) -> Rate:
    return Rate(
        low=(expected if low is None else low) * TIB, expected=expected * TIB,
        high=(expected if high is None else high) * TIB, days=14,
    )  # fmt: skip


def test_days_to_a_limit_have_the_range_of_the_growth() -> None:
    series = Series(used_bytes=10 * TIB, rate=a_rate(1, 0.5, 2))
    assert series.days_to(20 * TIB) == Days(expected=10, earliest=5, latest=20)


def test_what_is_over_is_over_now_and_needs_no_growth() -> None:
    assert Series(used_bytes=10, rate=None).days_to(9) == Days(expected=0, earliest=0, latest=0)
    assert Series(used_bytes=10, rate=None).days_to(10) is None


def test_a_limit_that_is_not_met_within_a_year_is_none() -> None:
    series = Series(used_bytes=0, rate=a_rate(1))
    assert series.days_to((HORIZON_DAYS + 1) * TIB) == Days(expected=None, earliest=None, latest=None)
    assert Series(used_bytes=5 * TIB, rate=a_rate(-1)).days_to(6 * TIB) == Days(
        expected=None, earliest=None, latest=None
    )


def test_scheduled_purges_are_counted() -> None:
    purges = [Purge(float(day), TIB) for day in range(1, 11)]
    assert Series(used_bytes=10 * TIB, rate=a_rate(1)).days_to(12 * TIB) == Days(expected=2, earliest=2, latest=2)
    steady = Series(used_bytes=10 * TIB, rate=a_rate(1), purges=purges, lives_days=10)
    assert steady.days_to(12 * TIB) == Days(expected=None, earliest=None, latest=None)


def test_a_young_tier_grows_until_what_comes_in_is_purged() -> None:
    """The worked example of the module: 10 TiB on day 10, 30 in 20 days, and then no more."""
    purges = [Purge(20.0 + day, TIB) for day in range(1, 11)]
    series = Series(used_bytes=10 * TIB, rate=a_rate(1), purges=purges, lives_days=30)
    days = series.days_to(29 * TIB)
    assert days is not None and days.expected == pytest.approx(19)
    assert series.days_to(31 * TIB) == Days(expected=None, earliest=None, latest=None)
