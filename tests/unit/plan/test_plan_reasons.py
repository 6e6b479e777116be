"""Every reason has words, its rule and the value it needs."""

from __future__ import annotations

import pytest

from lifecycle.model import Reason, ReasonCode, TierName
from lifecycle.plan.figures import make_figures
from lifecycle.plan.reasons import TEXTS, make_reason, render_reason
from tests.builders import a_class, a_policy


@pytest.mark.parametrize("code", ReasonCode)
def test_every_code_has_a_sentence_without_open_places(code: ReasonCode) -> None:
    text = render_reason(Reason(code=code, current="40 d", required="30d"))
    assert text and "{" not in text and text[0].islower()


def test_no_two_codes_read_the_same() -> None:
    assert len(set(TEXTS.values())) == len(ReasonCode)


@pytest.mark.parametrize(
    ("code", "rule", "required"),
    [
        (ReasonCode.AGED, "platform.yaml:12", "7d"),
        (ReasonCode.NOT_IN_REQUIRED_TIER, "platform.yaml:12", "cold"),
        (ReasonCode.EXPIRED, "platform.yaml:12", "30d"),
        (ReasonCode.JOB_STILL_WRITES, "platform.yaml:12", "30d"),
        (ReasonCode.GRACE_OVER, "platform.yaml:16", "3d"),
        (ReasonCode.FIRST_SEEN_RECENTLY, "None", "24h"),
        (ReasonCode.MISSING, "None", ""),
    ],
)
def test_a_reason_names_its_line_and_the_value_it_needs(code: ReasonCode, rule: str, required: str) -> None:
    policy = a_policy()
    reason = make_reason(code, policy=policy, figures=make_figures(a_class(), policy), tier=TierName.COLD)
    assert (str(reason.rule), reason.required) == (rule, required)
