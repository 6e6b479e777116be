from __future__ import annotations

from dataclasses import replace

import pytest

from lifecycle.catalog.reporting import SegmentGroup
from lifecycle.model import ActionKind, Segment, TierName
from lifecycle.plan.explain import explain
from lifecycle.plan.figures import FigureBook
from lifecycle.report.listing import hide_empty_columns, table_of_groups, table_of_segments
from lifecycle.report.text import render_text
from lifecycle.units import DAY_NS, from_ns
from tests.builders import NOON, NOON_NS, a_policy, a_segment, ago_ns


def _row(segment: Segment, **policy: object) -> dict[str, object]:
    table = table_of_segments([segment], book=FigureBook(a_policy(**policy)), now=NOON, known=())  # type: ignore[arg-type]
    return dict(zip((column.key for column in table.columns), next(iter(table.rows)), strict=True))


@pytest.mark.parametrize(
    ("segment", "expires"),
    [
        (a_segment("10d", class_name="error"), "05-20 (80 d left)"),
        (a_segment("89d", class_name="error"), "03-02 (24 h left)"),
        (a_segment("91d", class_name="error"), "due"),
        (a_segment("20d", job_age="1d"), "03-30 (29 d left)"),
        (a_segment("80d", job_age="1d"), "03-11 (10 d left)"),
        (a_segment("40d", marked="1d"), "marked, purge 03-03 (2 d left)"),
        (a_segment("40d", tier=None), "gone"),
        (a_segment(None), "kept: age unknown"),
        (a_segment("40d", class_name="dropped"), "kept: unknown class"),
    ],
)
def test_a_segment_says_when_it_goes(segment: Segment, expires: str) -> None:
    assert _row(segment)["expires"] == expires


@pytest.mark.parametrize(
    ("segment", "expires"),
    [
        (replace(a_segment("91d", class_name="error"), first_seen_ns=ago_ns("1h")), "03-02 (23 h left)"),
        (replace(a_segment("91d", class_name="error"), stay_until_ns=NOON_NS + 5 * DAY_NS), "03-06 (5 d left)"),
        (replace(a_segment("40d", marked="1d"), stay_until_ns=NOON_NS + 5 * DAY_NS), "marked, purge 03-06 (5 d left)"),
    ],
)
def test_the_date_that_ls_shows_is_the_one_that_explain_foretells(segment: Segment, expires: str) -> None:
    assert _row(segment)["expires"] == expires
    found = explain(segment, None, a_policy(), NOON)
    kind = ActionKind.MARK if segment.marked_ns is None else ActionKind.PURGE
    assert _row(segment)["expires_at"] in [
        from_ns(it.at_ns) for it in (found.next, *found.then) if it and it.kind is kind
    ]


def test_a_team_that_policy_does_not_list_is_kept() -> None:
    assert _row(a_segment("90d", team="stray"), teams=("vision",))["expires"] == "kept: unlisted team"


def test_labels_that_nobody_has_are_no_columns() -> None:
    segments = [a_segment(node="", rank=None), a_segment(node="gpu-2", rank=None)]
    table = table_of_segments(segments, book=FigureBook(a_policy()), now=NOON, known=())
    heading = next(render_text([hide_empty_columns(table, list(table.rows))])).split()
    assert "NODE" in heading and "RANK" not in heading and "STREAM" not in heading


def test_segments_are_read_one_by_one() -> None:
    segments = iter([a_segment(), a_segment(tier=TierName.COLD)])
    rows = iter(table_of_segments(segments, book=FigureBook(a_policy()), now=NOON, known=()).rows)
    next(rows)
    assert next(segments).tier is TierName.COLD


def test_groups_say_how_old_they_are() -> None:
    group = SegmentGroup(
        key=("nlp", "rlhf-9"), segments=512, logical_bytes=10, stored_bytes=10, open_bytes=5,
        newest_write_ns=ago_ns("3m"), oldest_write_ns=None,
    )  # fmt: skip
    lines = list(render_text([table_of_groups([group], "job", now=NOON)]))
    assert lines[1].split()[:3] == ["nlp", "rlhf-9", "512"]
    assert lines[1].endswith("age unknown   3 min ago")


def test_what_is_held_has_no_date() -> None:
    """Also where it is marked: the mark comes off with the next run."""
    for segment in (a_segment("90d", hold_id=3), a_segment("90d", marked="1d", hold_id=3)):
        row = _row(segment)
        assert (row["expires"], row["expires_at"]) == ("held by 3", None)
