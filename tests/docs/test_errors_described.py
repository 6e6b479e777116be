"""The tables of docs/errors.md: what they call an error is one, and what they call none is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lifecycle.extract import ErrorFinder

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "errors.md"


def _examples(column: int) -> list[str]:
    rows = [
        line.strip("|").split(" | ") for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line[:1] == "|"
    ]
    rows = [row for row in rows if not row[0].startswith((" an error", " ---"))]
    return [text for row in rows for text in re.findall(r"`([^`]+)`", row[column])]


def _is_error(text: str) -> bool:
    finder = ErrorFinder()
    finder.feed(text.encode())
    return bool(finder.finish().blocks)


@pytest.mark.parametrize("text", _examples(0))
def test_what_is_called_an_error_is_one(text: str) -> None:
    assert _is_error(text)


@pytest.mark.parametrize("text", _examples(1))
def test_what_is_called_none_is_none(text: str) -> None:
    assert not _is_error(text)


def test_there_are_examples() -> None:
    assert len(_examples(0)) > 12 < len(_examples(1))
