"""Which change of class may count at once: one that can make nothing removable earlier."""

from __future__ import annotations

import pytest

from lifecycle.model import ReasonCode
from lifecycle.plan.figures import Figures, make_figures
from lifecycle.policy.rules import ExpireFrom
from lifecycle.scan.reclassify import keeps_as_long
from tests.builders import a_class, a_policy


def figures(expire_after: str | None, expire_from: ExpireFrom = ExpireFrom.WRITE) -> Figures:
    return make_figures(a_class(expire_after=expire_after, expire_from=expire_from), a_policy())


JOB = ExpireFrom.JOB


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (figures("30d"), figures("90d"), True),
        (figures("30d"), figures("30d"), True),
        (figures("90d"), figures("30d"), False),
        (figures("90d"), figures(None), True),
        (figures(None), figures("90d"), False),
        (figures("30d"), figures("30d", JOB), True),
        (figures("30d", JOB), figures("31d"), False),
        (figures("30d", JOB), figures("90d"), True),
        (figures("31d", JOB), figures("30d", JOB), False),
        (ReasonCode.UNLISTED_TEAM, figures("7d"), True),
        (ReasonCode.UNKNOWN_CLASS, figures("90d"), False),
        (figures("7d"), ReasonCode.UNKNOWN_CLASS, True),
    ],
)
def test_a_class_counts_at_once_only_if_it_keeps_as_long(
    old: Figures | ReasonCode, new: Figures | ReasonCode, expected: bool
) -> None:
    assert keeps_as_long(old, new) is expected
