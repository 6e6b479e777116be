"""Names that no layout may claim: each row of the table holds for its samples, for nothing that only looks alike."""

from __future__ import annotations

import pytest

from lifecycle.policy.builtin import BUILT_IN
from lifecycle.policy.layouts import SourceLayouts
from lifecycle.policy.never import NEVER, Never, is_never_claimed
from tests.builders import a_policy, a_source

SAMPLES = [pytest.param(row, name, id=name) for row in NEVER for name in row.samples]
LOOK_ALIKES = [pytest.param(row, name, id=name) for row in NEVER for name in row.look_alikes]


@pytest.mark.parametrize(("row", "name"), SAMPLES)
def test_a_sample_is_claimed_by_no_layout_and_by_no_own_pattern(row: Never, name: str) -> None:
    source = SourceLayouts(a_policy(), a_source(layouts=(*BUILT_IN, "**/{anything}")), "gpu-1")
    assert row.holds(name.encode())
    assert is_never_claimed(name.encode())
    assert source.enter(b"vision/train-1").claim(name.encode()) is None
    assert source.enter(b"vision/train-1").claim(b"train.log") is not None


@pytest.mark.parametrize(("row", "name"), LOOK_ALIKES)
def test_a_look_alike_is_left_to_the_layouts(row: Never, name: str) -> None:
    assert not row.holds(name.encode())
    assert not is_never_claimed(name.encode())
