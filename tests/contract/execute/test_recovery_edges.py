"""What a dead run left, when the world has changed before the next one: nothing is undone that may be the only copy."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from blake3 import blake3

from lifecycle.catalog.expiry import Expiry
from lifecycle.catalog.journal import Journal
from lifecycle.errors import ExitCode
from lifecycle.execute.orders import OriginalFile, ReleaseOrder, Trouble
from lifecycle.execute.release import run_release
from lifecycle.model import ActionKind, Labels, TierName
from lifecycle.tiers.faulty import Crashed
from tests.crash.world import World, digest_of, work_done

NAME = "vision/train-1/rank_0.log"
FILES = ((NAME, "3d", 300), ("vision/train-1/rank_1.log", "3d", 411))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", files=FILES).make()


def die(
    world: World, after: str, monkeypatch: pytest.MonkeyPatch, step: str, books: type[Journal | Expiry] = Journal
) -> None:
    """A run that ends before a step of its journal, and can tell nobody."""

    def crash(*_: object, **__: object) -> None:
        raise Crashed(step)

    with monkeypatch.context() as patch:
        patch.setattr(books, step, crash)
        with pytest.raises(Crashed):
            world.run(after)


class TestAnArchiveThatWasPublishedAndNotCommitted:
    @pytest.fixture(autouse=True)
    def dead(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        die(world, "2h", monkeypatch, "commit_packed")
        assert len(world.objects()[TierName.WARM]) == 1

    def test_is_undone_while_every_original_is_there(self, world: World) -> None:
        report = world.run("2h")
        assert (report.recovery.undone, report.recovery.adopted) == (1, 0)
        assert world.readable() == world.manifest()
        assert world.broken_books() == []

    def test_is_adopted_when_an_original_has_gone(self, world: World) -> None:
        (world.logs / NAME).unlink()
        report = world.run("2h")
        assert (report.recovery.undone, report.recovery.adopted) == (0, 1)
        assert world.readable() == world.manifest()  # it was the only copy
        assert world.broken_books() == []
        assert work_done(world.run("2h")) == 0

    def test_keeps_what_was_written_after_it(self, world: World) -> None:
        with (world.logs / NAME).open("ab") as file:
            file.write(b"the last words\n")
        world.run("2h")
        content = world.content(NAME, 300) + b"the last words\n"
        assert world.readable() == world.manifest(FILES[1][0]) + Counter([(NAME, digest_of(content))])
        assert world.broken_books() == []

    def test_waits_for_a_tier_that_is_not_there_and_blocks_nobody(self, world: World) -> None:
        (world.folder / "warm").rename(world.folder / "unplugged")
        world.write("nlp/train-2/rank_0.log", b"x" * 100, age="9d")
        report = world.run("2h")
        assert report.exit_code is ExitCode.PARTIAL
        assert report.recovery.parked == 1
        assert world.segments()["nlp/train-2/rank_0.log"].tier is TierName.COLD

        (world.folder / "unplugged").rename(world.folder / "warm")
        world.run("2h")
        assert world.broken_books() == []
        assert world.manifest() <= world.readable()

    def test_is_surplus_when_its_segments_were_stored_elsewhere_meanwhile(self, world: World) -> None:
        (world.folder / "warm").rename(world.folder / "unplugged")
        world.run("8d")  # straight to cold
        assert world.segments()[NAME].tier is TierName.COLD
        (world.folder / "unplugged").rename(world.folder / "warm")
        world.run("8d")
        assert world.readable() == world.manifest()
        assert world.broken_books() == []
        assert work_done(world.run("8d")) == 0


class TestANewArchiveOfAMoveBetweenTiers:
    @pytest.fixture(autouse=True)
    def dead(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.run("2h")
        die(world, "8d", monkeypatch, "commit_repacked")
        assert len(world.objects()[TierName.COLD]) == 1

    def test_is_undone_while_the_older_one_is_there(self, world: World) -> None:
        assert world.run("8d").recovery.undone == 1
        assert world.readable() == world.manifest()
        assert world.broken_books() == []

    def test_is_adopted_when_the_older_one_has_gone(self, world: World) -> None:
        (key,) = world.objects()[TierName.WARM]
        (world.folder / "warm" / key).unlink()
        assert world.run("8d").recovery.adopted == 1
        assert world.readable() == world.manifest()
        assert world.broken_books() == []


class TestAPurgeThatDied:
    """Recovery finishes no deletion and forgets none: a run that may only move must leave true books."""

    @pytest.fixture(autouse=True)
    def marked(self, world: World) -> None:
        for after in ("2h", "8d", "40d"):
            world.run(after)

    def test_before_anything_went_is_no_purge(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        die(world, "44d", monkeypatch, "record_purge", Expiry)
        world.run("44d", only=frozenset([ActionKind.MERGE]))
        assert world.readable() == world.manifest()
        assert world.broken_books() == []

    def test_after_the_archive_went_is_one(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        die(world, "44d", monkeypatch, "close_purge", Expiry)
        assert world.objects()[TierName.COLD] == []
        world.run("44d", only=frozenset([ActionKind.MERGE]))
        assert world.readable() == Counter()
        assert world.broken_books() == []


class TestARunThatDiedBeforeItsReleases:
    @pytest.fixture(autouse=True)
    def dead(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        die(world, "2h", monkeypatch, "close_release")
        assert world.our_files() == []

    def test_has_released_what_its_successor_records(self, world: World) -> None:
        assert world.run("2h").recovery.finished == 1
        assert world.readable() == world.manifest()
        assert world.broken_books() == []

    def test_leaves_a_name_that_was_taken_anew_alone(self, world: World) -> None:
        world.write(NAME, b"a new beginning\n")
        world.run("2h")
        assert (world.logs / NAME).read_bytes() == b"a new beginning\n"
        readable = world.readable()
        assert world.broken_books() == []
        assert (NAME, digest_of(b"a new beginning\n")) in readable
        assert world.manifest() <= readable


def test_a_restore_between_a_crash_and_its_recovery_breaks_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    die(world, "2h", monkeypatch, "close_release")
    world.restore("2h", in_place=True)
    world.run("3h")
    assert world.readable() == world.manifest()
    assert world.broken_books() == []


@pytest.mark.parametrize(
    ("text", "trouble"), [(b"old words, and new", Trouble.CHANGED), (b"another file", Trouble.REPLACED)]
)
def test_after_a_crash_the_same_inode_is_no_proof_of_the_same_file(
    text: bytes, trouble: Trouble, tmp_path: Path
) -> None:
    (tmp_path / "rank_0.log").write_bytes(text)
    stored = OriginalFile(
        segment_id=7, directory=b"", name=b"rank_0.log", inode=(tmp_path / "rank_0.log").stat().st_ino, size_bytes=9,
        mtime_ns=1, ctime_ns=1, allocated_bytes=4096, mode=0o644, uid=0, gid=0, labels=Labels(team="vision"),
        digest=blake3(b"old words").digest(),
    )  # fmt: skip
    order = ReleaseOrder(batch_id=1, root=str(tmp_path), members=(stored,), park=False, after_crash=True)
    (refusal,) = run_release(order).refused
    assert refusal.trouble is trouble


def test_a_copy_that_is_adopted_releases_no_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the only copy of the one that went; of the others it is what it was to be: a copy beside them."""
    files = ((NAME, "5h", 300), ("vision/train-1/rank_1.log", "5h", 411))
    world = World(tmp_path / "world", files=files, source={"copy_after": timedelta(hours=1)}).make()
    die(world, "2h", monkeypatch, "commit_packed")
    (world.logs / NAME).unlink()
    report = world.run("2h")
    assert report.recovery.adopted == 1
    assert (world.logs / files[1][0]).exists()
    segments = world.segments()
    assert {path: segment.original.value for path, segment in segments.items()} == {
        NAME: "missing",
        files[1][0]: "settled",
    }
    assert all(segment.archive_tier is TierName.WARM for segment in segments.values())
    assert world.broken_books() == []
