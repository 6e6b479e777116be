"""Label values are other people's text."""

from __future__ import annotations

from lifecycle.report.prometheus import _escape, _number


def test_a_label_value_cannot_end_its_quotes_or_its_line() -> None:
    assert _escape('a"b\\c\nd') == 'a\\"b\\\\c\\nd'


def test_whole_numbers_have_no_point() -> None:
    assert [_number(value) for value in (3, 3.0, 0.5, 2**60)] == ["3", "3", "0.5", str(2**60)]
