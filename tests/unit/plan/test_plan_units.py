"""Sizes in a plan's lines read as policy wrote them."""

from __future__ import annotations

import pytest

from lifecycle.units import format_size_limit, parse_size


@pytest.mark.parametrize("text", ["64MiB", "1TB", "500MB", "1GiB", "999B", "1KiB", "1536MiB"])
def test_a_limit_is_shown_as_it_was_written(text: str) -> None:
    assert format_size_limit(parse_size(text)) == text
