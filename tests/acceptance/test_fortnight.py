"""A fortnight simulated day by day, with books of its own that everything is held against: docs/fortnight.md.

It runs once for the whole module, whichever worker comes first; each test looks at one theme of what the books found.
A theme without findings proves something only where things happened at all: the counts say that they did.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.fortnight.simulate import Fortnight, Result, as_dict

MEMORY = Path("/dev/shm")  # a disk in memory where there is one: a hundred runs that wait for no disk to be quiet


@pytest.fixture(scope="module")
def fortnight(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Result]:
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent  # of all workers of this session
    said = shared / "fortnight.json"
    with (shared / "fortnight.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            said.write_text(json.dumps(as_dict(_simulate(shared))))
    facts = json.loads(said.read_text())
    yield Result(**facts | {"codes": [tuple(each) for each in facts["codes"]]})


def _simulate(shared: Path) -> Result:
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2**29
    folder = MEMORY / f"lifecycle-fortnight-{os.getpid()}" if roomy else shared / "fortnight"
    folder.mkdir()
    try:
        return Fortnight(folder).run()
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def clean(fortnight: Result) -> Callable[..., None]:
    """Whether themes have no findings, and things of these names happened."""

    def check(*themes: str, happened: tuple[str, ...]) -> None:
        found = [f"{theme}: {text}" for theme in themes for text in fortnight.found[theme]]
        assert not found, "\n".join(found[:20])
        assert {name: fortnight.counts.get(name, 0) for name in happened if not fortnight.counts.get(name)} == {}

    return check


Clean = Callable[..., None]


def test_every_byte_is_in_its_source_in_one_stored_copy_or_gone_by_a_named_rule(clean: Clean) -> None:
    clean("bytes", happened=("moved", "purged grace_over", "in the end hot", "in the end stored", "in the end purged"))


def test_nothing_goes_before_its_retention_its_mark_and_its_grace(clean: Clean) -> None:
    clean("retention", happened=("marked", "unmarked", "purged"))


def test_what_is_due_goes_with_the_next_run(clean: Clean) -> None:
    clean("due", happened=("moved", "copied early", "purged"))


def test_a_second_run_at_once_has_nothing_to_do(clean: Clean) -> None:
    clean("idle", happened=("ran again",))


def test_files_that_are_written_and_files_of_others_are_never_touched(clean: Clean) -> None:
    clean("open", "foreign", happened=("open files seen", "foreign files seen"))


def test_the_usage_of_the_audit_is_that_of_the_books_every_day(fortnight: Result, clean: Clean) -> None:
    clean("usage", happened=("in the end deleted", "in the end compressed", "in the end cut", "in the end rewritten"))
    assert fortnight.counts["audits compared"] == 14


def test_every_run_ends_with_the_code_that_the_books_expect(fortnight: Result, clean: Clean) -> None:
    clean("codes", happened=("relief of nlp",))
    assert {code for _, code, _ in fortnight.codes} == {0, 4, 7, -9}
    assert next(label for label, code, _ in fortnight.codes if code == 7) == "day 4 morning"


def test_teams_over_their_quota_give_in_turn_and_no_more_than_is_needed(clean: Clean) -> None:
    clean("relief", happened=("relief of vision", "relief of nlp", "relief of recsys", "moved early"))


def test_a_disk_over_its_high_mark_is_relieved_to_low(clean: Clean) -> None:
    clean("relief", happened=("relief of the disk",))


def test_what_logs_say_of_errors_is_kept_line_by_line(clean: Clean) -> None:
    clean("errors", happened=("errors kept",))


def test_a_change_of_policy_counts_at_once_where_it_keeps_longer_and_waits_where_it_does_not(
    fortnight: Result, clean: Clean
) -> None:
    clean("acceptance", "labels", happened=("reclassified", "waiting", "accepted"))
    assert [label for label, code, _ in fortnight.codes if code == 4] == [
        "day 7 morning", "day 7 evening", "day 7 again", "day 8 morning", "day 8 evening", "day 8 again",
    ]  # fmt: skip


def test_what_is_restored_is_what_was_written_and_stays_for_its_time(clean: Clean) -> None:
    clean("restore", happened=("restored", "restored elsewhere", "restored and released"))


def test_a_run_that_is_killed_or_stopped_loses_nothing(fortnight: Result, clean: Clean) -> None:
    clean("killed", happened=("killed",))
    assert ("day 5 morning", -9, -9) in fortnight.codes
    assert ("day 9 evening", 0, 0) in fortnight.codes
