"""Nothing is removed but the very file that was stored, whatever happens to its name meanwhile (promise 2)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from lifecycle.errors import ExitCode
from tests.contract.execute.meddling import a_writer, once_before, once_renamed, say
from tests.crash.world import World, digest_of, work_done

NAME = "vision/train-1/rank_0.log"
OTHERS = (
    "vision/train-1/rank_1.log",
    "vision/train-1/rank_2.log",
    "vision/train-1/rank_3.log",
    "nlp/train-2/rank_0.log",
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world").make()


def grow(file: Path) -> None:
    with file.open("ab") as out:
        out.write(b"one more line\n")


def shrink(file: Path) -> None:
    os.truncate(file, 100)


def rewrite_keeping_size_and_time(file: Path) -> None:
    found = file.stat()
    with file.open("r+b") as out:
        out.write(b"X" * found.st_size)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))


def replace_by_another(file: Path) -> None:
    found = file.stat()
    other = file.with_name("other.tmp")
    other.write_bytes(b"Y" * found.st_size)
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    other.replace(file)


def link_elsewhere(file: Path) -> None:
    os.link(file, file.parent.parent / "keep-this")


def released_but(world: World, kept: str) -> bool:
    originals = world.originals()
    return {path for path in OTHERS if originals[path] == "released"} == set(OTHERS) - {kept}


CHANGES = [grow, shrink, rewrite_keeping_size_and_time, link_elsewhere]


@pytest.mark.parametrize("deed", CHANGES)
def test_a_file_that_is_not_what_was_stored_stays_and_its_stored_copy_does_not_count(
    deed: Callable[[Path], None], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.logs / NAME
    once_before(monkeypatch, "run_release", NAME, lambda: deed(file))
    report = world.run("2h")
    content = file.read_bytes()

    assert report.exit_code is ExitCode.PARTIAL
    assert released_but(world, NAME)
    assert world.broken_books() == []
    segment = world.segments()[NAME]
    assert (segment.tier, segment.archive_id) == ("hot", None)

    world.run("4h")  # its change has settled by then
    assert world.broken_books() == []
    assert [path for path, _ in world.readable().elements()].count(NAME) == 1
    assert (NAME, digest_of(content)) in world.readable()
    assert work_done(world.run("4h")) == 0


def test_a_file_that_another_one_replaced_is_read_from_its_stored_copy_beside_the_new_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.logs / NAME
    once_before(monkeypatch, "run_release", NAME, lambda: replace_by_another(file))
    world.run("2h")
    world.run("4h")

    assert world.readable() == world.manifest() + Counter([(NAME, digest_of(b"Y" * 300))])
    assert world.broken_books() == []


@pytest.mark.parametrize("begins_anew", [True, False])
def test_a_file_that_was_rotated_before_its_release_exists_once(
    begins_anew: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.logs / NAME

    def rotate() -> None:
        file.rename(f"{file}.1")
        if begins_anew:
            file.write_bytes(b"a new beginning\n")

    once_before(monkeypatch, "run_release", NAME, rotate)
    world.run("2h")
    world.run("4h")

    content = digest_of(world.content(NAME, 300))
    assert [path for path, digest in world.readable().elements() if digest == content] == [f"{NAME}.1"]
    assert world.broken_books() == []


@pytest.mark.parametrize("deed", [grow, shrink])
def test_a_file_that_changes_in_our_folder_gets_its_name_back(
    deed: Callable[[Path], None], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.logs / NAME
    once_renamed(monkeypatch, file, deed)
    report = world.run("2h")

    assert report.exit_code is ExitCode.PARTIAL
    assert file.read_bytes() != world.content(NAME, 300)
    assert world.segments()[NAME].archive_id is None
    assert world.broken_books() == []


def test_a_file_that_vanished_after_it_was_stored_is_read_from_its_stored_copy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    once_before(monkeypatch, "run_release", NAME, (world.logs / NAME).unlink)
    world.run("2h")

    assert world.segments()[NAME].tier == "warm"
    assert world.readable() == world.manifest()
    assert world.broken_books() == []


def test_a_file_that_a_process_has_open_for_writing_stays_and_loses_no_line(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.logs / NAME
    with ExitStack() as stack:
        writers = []
        once_before(monkeypatch, "run_release", NAME, lambda: writers.append(stack.enter_context(a_writer(file))))
        report = world.run("2h")
        say(writers[0], "the last words")

    assert report.exit_code is ExitCode.PARTIAL
    assert file.read_bytes() == world.content(NAME, 300) + b"the last words\n"
    assert released_but(world, NAME)
    assert world.broken_books() == []

    world.run("26h")  # a day after those words
    assert not file.exists()
    content = world.content(NAME, 300) + b"the last words\n"
    assert world.readable() == world.manifest(*OTHERS, "nlp/train-2/rank_1.log") + Counter([(NAME, digest_of(content))])


class TestANameThatIsTakenWhileItsFileIsInOurFolder:
    @pytest.fixture
    def file(self, world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The file is open (so that it must be given back) and its job has already begun a new one."""
        file = world.logs / NAME
        with ExitStack() as stack:
            writers = []
            once_before(monkeypatch, "run_release", NAME, lambda: writers.append(stack.enter_context(a_writer(file))))
            once_renamed(monkeypatch, file, lambda _: file.write_bytes(b"a new beginning\n"))
            self.report = world.run("2h")
            say(writers[0], "the last words")
        return file

    def test_stays_there_and_is_reported_by_every_run(self, world: World, file: Path) -> None:
        assert self.report.exit_code is ExitCode.PARTIAL
        (ours,) = world.our_files()
        assert ours.removeprefix("logs/") in str(self.report.problems)
        assert file.read_bytes() == b"a new beginning\n"

        again = world.run("3h")
        assert world.our_files() == [ours]
        assert again.exit_code is ExitCode.PARTIAL
        assert ours.removeprefix("logs/") in str(again.problems)
        assert (world.folder / ours).read_bytes() == world.content(NAME, 300) + b"the last words\n"

    def test_gets_its_name_back_once_that_is_free(self, world: World, file: Path) -> None:
        file.unlink()
        world.run("3h")

        assert world.our_files() == []
        assert file.read_bytes() == world.content(NAME, 300) + b"the last words\n"
        assert world.broken_books() == []


def test_a_file_that_could_not_get_its_name_back_goes_once_it_is_seen_to_be_what_was_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.logs / NAME
    with ExitStack() as stack:
        once_before(monkeypatch, "run_release", NAME, lambda: stack.enter_context(a_writer(file)))
        once_renamed(monkeypatch, file, lambda _: file.write_bytes(b"a new beginning\n"))
        world.run("2h")

    assert len(world.our_files()) == 1
    report = world.run("2h")
    assert report.exit_code is ExitCode.DONE
    assert world.our_files() == []
    assert world.readable() == world.manifest() + Counter([(NAME, digest_of(b"a new beginning\n"))])
    assert world.broken_books() == []


def test_a_look_alike_in_our_folder_is_reported_and_never_removed(world: World) -> None:
    world.run("2h")
    stranger = world.logs / ".lifecycle/release/77/5"
    stranger.parent.mkdir(parents=True)
    stranger.write_bytes(b"from another catalog's days\n")
    report = world.run("2h")

    assert report.exit_code is ExitCode.PARTIAL
    assert "release/77/5" in str(report.problems)
    assert stranger.exists()


class TestARestoredOriginalWhoseStayIsOver:
    @pytest.fixture
    def file(self, world: World) -> Path:
        world.run("2h")
        world.restore("3h", in_place=True)
        return world.logs / NAME

    def test_goes_without_another_copy(self, world: World, file: Path) -> None:
        world.run("4h")
        assert file.exists()
        world.run("8d")
        assert not file.exists()
        assert world.readable() == world.manifest()

    def test_that_was_edited_becomes_another_segment(self, world: World, file: Path) -> None:
        grow(file)
        world.run("6h")
        world.run("8d")
        edited = digest_of(world.content(NAME, 300) + b"one more line\n")
        assert world.readable() == world.manifest() + Counter([(NAME, edited)])
        assert world.broken_books() == []

    def test_that_is_edited_just_now_becomes_another_segment(
        self, world: World, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        once_before(monkeypatch, "run_release", NAME, lambda: grow(file))
        world.run("8d")
        world.run("8d")
        edited = digest_of(world.content(NAME, 300) + b"one more line\n")
        assert world.readable() == world.manifest() + Counter([(NAME, edited)])
        assert world.broken_books() == []

    def test_that_somebody_has_open_stays_the_same_segment(
        self, world: World, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with ExitStack() as stack:
            once_before(monkeypatch, "run_release", NAME, lambda: stack.enter_context(a_writer(file)))
            world.run("8d")
        assert file.exists()
        assert world.readable() == world.manifest()
        world.run("8d")
        assert not file.exists()
        assert world.readable() == world.manifest()
        assert world.broken_books() == []


def test_a_restore_over_a_newer_file_replaces_its_segment(world: World) -> None:
    world.run("2h")
    world.write(NAME, b"a new beginning\n")
    world.run("3h")
    world.restore("3h", in_place=True, overwrite=True)

    assert world.readable() == world.manifest()
    assert world.broken_books() == []


def test_a_missing_original_that_is_restored_counts_once(world: World) -> None:
    world.run("2h")
    world.restore("3h", in_place=True)
    (world.logs / NAME).unlink()
    world.run("4h")
    assert world.originals()[NAME] == "missing"
    world.restore("5h", in_place=True)

    assert world.originals()[NAME] == "settled"
    assert world.broken_books() == []
