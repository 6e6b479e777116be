"""The reference beside the examples names every key and every layout that there is."""

from __future__ import annotations

import re

import pytest

from lifecycle.policy.builtin import BUILT_IN, NOT_YET
from lifecycle.policy.load import json_schema
from lifecycle.policy.starter import policies_folder

REFERENCE = (policies_folder() / "README.md").read_text(encoding="utf-8")
KEYS = sorted({key for model in json_schema()["$defs"].values() for key in model["properties"]})


@pytest.mark.parametrize("word", [*KEYS, *BUILT_IN])
def test_every_key_and_layout_is_described(word: str) -> None:
    assert re.search(rf"`{re.escape(word)}`", REFERENCE)


def test_no_layout_is_both_there_and_not_yet_there() -> None:
    assert not set(NOT_YET) & set(BUILT_IN)
