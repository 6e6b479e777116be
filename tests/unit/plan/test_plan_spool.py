"""A plan file comes back as it went in, or is refused: cut short, edited, of another policy or catalog, too old."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.errors import UsageError
from lifecycle.model import ActionKind, Kept, PlannedBatch
from lifecycle.plan.planner import iter_batches
from lifecycle.plan.spool import PlanFile, write_plan
from tests.builders import NOON, a_policy, a_segment
from tests.unit.plan.views import View, a_view, an_archive_of

POLICY = a_policy(teams=["vision"])


def a_mixed_view() -> View:
    archive, members = an_archive_of(a_segment("8d"))
    odd = [a_segment("2d", name=name) for name in (b"rank\xff.log", b"a\nb.log", b"back\\slash", "日志.log".encode())]
    return a_view(*odd, *members, a_segment("2d", team="stranger"), archives=[archive])


def items() -> list[PlannedBatch | Kept]:
    return list(iter_batches(a_mixed_view().source(), POLICY, NOON))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("plan") / "tonight.plan"
    write_plan(path, items(), policy=POLICY, catalog_id="c1", now=NOON)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, text: bytes) -> Path:
    path = tmp_path / "tonight.plan"
    path.write_bytes(text)
    return path


def opened(path: Path) -> PlanFile:
    return PlanFile(path, policy=POLICY, now=NOON, catalog_id="c1")


def test_what_goes_in_comes_out_equal(tmp_path: Path) -> None:
    path, planned = tmp_path / "p", items()
    summary = write_plan(path, planned, policy=POLICY, catalog_id="c1", now=NOON)
    plan = opened(path)
    assert list(plan.items()) == planned
    assert list(plan.items()) == planned  # a second reading
    assert plan.summary == summary
    assert [item.kind for item in plan.batches()] == [ActionKind.MERGE, ActionKind.TRANSITION]
    assert plan.header.now == NOON


def test_every_line_is_json_that_other_programs_can_read(text: bytes) -> None:
    lines = [json.loads(line) for line in text.decode().splitlines()]
    assert [next(iter(line)) for line in lines] == ["lifecycle_plan", "batch", "batch", "kept", "summary", "digest"]
    assert {"vision/train-1/rank\\xff.log", "vision/train-1/a\\x0ab.log"} <= {
        m[2] for m in lines[1]["batch"]["members"]
    }


def test_the_same_plan_is_the_same_file(tmp_path: Path) -> None:
    planned = items()
    for name in ("a", "b"):
        write_plan(tmp_path / name, planned, policy=POLICY, catalog_id="c1", now=NOON)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_cut_short_anywhere_is_refused(path: Path, text: bytes) -> None:
    ends = {
        0,
        1,
        len(text) - 2,
        *(i + d for i, byte in enumerate(text) if byte == 10 for d in (0, 1) if i + d < len(text)),
    }
    for end in sorted(ends - {len(text) - 1}):
        path.write_bytes(text[:end])
        with pytest.raises(UsageError, match=r"cut short|changed") as caught:
            opened(path)
        assert caught.value.hint


def test_an_edited_file_is_refused_wherever_the_edit_is(path: Path, text: bytes) -> None:
    for at in range(0, len(text) - 1, 37):
        path.write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
        with pytest.raises(UsageError):
            opened(path)


@pytest.mark.parametrize("line", [1, 2, 3, 4])
def test_a_line_that_is_missing_or_twice_there_is_refused(path: Path, text: bytes, line: int) -> None:
    lines = text.splitlines(keepends=True)
    for changed in (lines[:line] + lines[line + 1 :], lines[: line + 1] + lines[line:]):
        path.write_bytes(b"".join(changed))
        with pytest.raises(UsageError, match="changed"):
            opened(path)


@pytest.mark.parametrize("content", [b"", b"\n", b"hello\n", b"{}\n", b"[1]\n[2]\n", b"null\n" * 3, b"\xff\xfe\n"])
def test_what_is_no_plan_is_refused_with_a_hint(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(UsageError, match=str(path)) as caught:
        opened(path)
    assert "lifecycle plan --out" in (caught.value.hint or "")


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        opened(tmp_path / "nothing")


def test_a_plan_of_another_policy_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="made under policy 9c41e7, now it is b07d13"):
        PlanFile(path, policy=replace(POLICY, digest="b07d13" + "0" * 58), now=NOON)


def test_a_plan_of_another_catalog_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="of catalog c1, this is c2"):
        PlanFile(path, policy=POLICY, now=NOON, catalog_id="c2")


@pytest.mark.parametrize(
    ("later", "is_refused"),
    [(timedelta(hours=24), False), (timedelta(hours=24, seconds=1), True), (timedelta(minutes=-2), True)],
)
def test_a_plan_is_good_for_24_hours_and_not_before_its_time(path: Path, later: timedelta, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(UsageError, match=r"old|it is"):
            PlanFile(path, policy=POLICY, now=NOON + later)
    else:
        assert PlanFile(path, policy=POLICY, now=NOON + later).summary.totals.batches == 2


def test_a_file_that_changes_after_it_was_checked_is_refused(path: Path, text: bytes) -> None:
    plan = opened(path)
    path.write_bytes(text + b" ")
    with pytest.raises(UsageError, match="changed while it was in use"):
        next(plan.items())


def test_a_plan_that_fails_half_way_leaves_the_old_file_and_nothing_else(path: Path, text: bytes) -> None:
    def broken() -> Iterator[PlannedBatch | Kept]:
        yield items()[0]
        raise RuntimeError("the catalog went away")

    with pytest.raises(RuntimeError, match="went away"):
        write_plan(path, broken(), policy=POLICY, catalog_id="c1", now=NOON)
    assert path.read_bytes() == text
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_only_its_owner_may_read_a_plan(tmp_path: Path) -> None:
    write_plan(tmp_path / "p", [], policy=POLICY, catalog_id="c1", now=NOON)
    assert (tmp_path / "p").stat().st_mode & 0o777 == 0o600


def test_an_empty_plan_is_a_plan(tmp_path: Path) -> None:
    write_plan(tmp_path / "p", [], policy=POLICY, catalog_id="c1", now=NOON)
    assert opened(tmp_path / "p").summary.is_empty
    assert list(opened(tmp_path / "p").items()) == []
