"""The sizing sheet: the published example, and what each assumption changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lifecycle.model import TierName
from lifecycle.plan.estimate import Assumptions, Span, estimate
from lifecycle.report.sizing import show_span

DAYS = timedelta(days=1)


def test_the_published_example() -> None:
    """100 cards × 200 MB/h × 24 h = 480 GB raw, 100–150 GB compressed, 3–4.5 TB if one a day is kept 30 days."""
    found = estimate(Assumptions(gpus=100, bytes_per_gpu_hour=200e6, job_hours=24, jobs_per_day=1, retention=30 * DAYS))
    assert found.job_raw_bytes == 480e9
    assert show_span(found.job_stored_bytes) == "100–150 GB"
    assert show_span(found.total_stored_bytes) == "3–4.5 TB"


def test_the_tiers_share_the_days_of_the_retention() -> None:
    found = estimate(Assumptions())
    days = {need.tier: need.days for need in found.tiers}
    assert days == {TierName.HOT: 1.5, TierName.WARM: 6.0, TierName.COLD: 23.0}  # in hot also while the job runs


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"cold_after": None}, {TierName.HOT: 1.5, TierName.WARM: 29.0}),
        ({"warm_after": None}, {TierName.HOT: 7.5, TierName.COLD: 23.0}),
        ({"warm_after": None, "cold_after": None}, {TierName.HOT: 30.5}),
        ({"retention": 3 * DAYS}, {TierName.HOT: 1.5, TierName.WARM: 2.0}),
    ],
)
def test_a_tier_that_is_passed_over_leaves_its_days_to_the_next(
    change: dict[str, object], expected: dict[TierName, float]
) -> None:
    found = estimate(replace(Assumptions(), **change))  # type: ignore[arg-type]
    assert {need.tier: need.days for need in found.tiers} == expected


def test_hot_holds_raw_bytes_and_the_others_compressed_ones_with_the_index() -> None:
    given = Assumptions(ratio=Span(low=0.2, high=0.3), index_share=0.01)
    hot, warm, _ = estimate(given).tiers
    assert hot.stored_bytes.low == hot.stored_bytes.high == 480e9 * 1.5
    assert warm.stored_bytes.low == pytest.approx(480e9 * 6 * 0.21)
    assert warm.stored_bytes.high == pytest.approx(480e9 * 6 * 0.31)


@pytest.mark.parametrize(
    "change",
    [
        {"gpus": 0}, {"jobs_per_day": -1.0}, {"ratio": Span(low=0.3, high=0.2)}, {"ratio": Span(low=0, high=0.2)},
        {"warm_after": 8 * DAYS},
    ],
)  # fmt: skip
def test_figures_that_cannot_be_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"must be above|is no range"):
        estimate(replace(Assumptions(), **change))  # type: ignore[arg-type]
