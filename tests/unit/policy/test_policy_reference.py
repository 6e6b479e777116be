"""The reference beside the examples names every key and every layout that there is."""

from __future__ import annotations

import re

import pytest

from lifecycle.policy.builtin import BUILT_IN, NO_LAYOUT
from lifecycle.policy.load import json_schema
from lifecycle.policy.starter import policies_folder

REFERENCE = (policies_folder() / "README.md").read_text(encoding="utf-8")
KEYS = sorted({key for model in json_schema()["$defs"].values() for key in model["properties"]})


@pytest.mark.parametrize("word", [*KEYS, *BUILT_IN])
def test_every_key_and_layout_is_described(word: str) -> None:
    assert re.search(rf"`{re.escape(word)}`", REFERENCE)


def test_no_name_is_both_a_layout_and_none() -> None:
    assert not set(NO_LAYOUT) & set(BUILT_IN)
