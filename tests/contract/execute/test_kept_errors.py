"""Errors kept, on disk: what is stored is looked through on the way, and nothing goes that was not."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lifecycle.acting import open_site
from lifecycle.catalog.batches import Intent
from lifecycle.catalog.holds import add_hold, apply_holds
from lifecycle.catalog.segments import history_of, iter_segments
from lifecycle.engine.local import LocalEngine
from lifecycle.errors import AlreadyExists, ExitCode, NothingFound, Skipped
from lifecycle.execute import companions, executor, extract
from lifecycle.execute.orders import ReleaseOrder, ReleaseResult
from lifecycle.execute.site import Site
from lifecycle.extract import parse
from lifecycle.model import ActionKind, Hold, Outcome, Segment, Selector, TierName
from lifecycle.report.figures import Silence
from lifecycle.restore import RestoreOptions, restore
from lifecycle.session import RunOptions, Session
from lifecycle.tiers.local import LocalTier, LocalWriter
from tests.builders import a_batch, a_class
from tests.contract.execute.test_copies import phases
from tests.crash.world import TRACEBACK, FaultyWorld

PATHS = ("vision/train-1/rank_0.log", "vision/train-1/rank_3.log", "nlp/train-2/rank_0.log")  # with a traceback
IN_HOT = a_class("training", warm_after=None, cold_after=None, expire_after="30d")
LATE = ("vision/train-1/rank_0.log", "32d", 300)


@pytest.fixture
def world(tmp_path: Path) -> FaultyWorld:
    made = FaultyWorld(tmp_path / "world")
    made.make()
    return made


def test_what_is_stored_is_looked_through_in_the_same_batch(world: FaultyWorld) -> None:
    report = world.run("2h")
    assert phases(report) == {"transition": 2, "merge": 3}
    segments = world.segments()
    assert {path: segments[path].error_blocks for path in (*PATHS, "vision/train-1/rank_2.log")} == {
        **dict.fromkeys(PATHS, 1),
        "vision/train-1/rank_2.log": 0,  # empty
    }
    assert segments["nlp/train-2/rank_1.log"].error_blocks is None  # still in hot
    assert world.broken_books() == []
    assert world.readable() == world.manifest()


def test_a_companion_has_what_its_source_has_and_says_which_it_is(world: FaultyWorld) -> None:
    world.run("2h")
    found = {os.fsdecode(source.path): (kept, source, text) for kept, source, text in world.companions()}
    assert set(found) == set(PATHS)
    kept, source, text = found[PATHS[0]]
    assert kept.path == source.path + b"#errors"
    assert kept.class_name == "error" and kept.error_blocks == 0
    assert (kept.labels, kept.job_id, kept.mode, kept.gid) == (source.labels, source.job_id, source.mode, source.gid)
    assert (kept.last_write_ns, kept.identity.mtime_ns) == (source.last_write_ns, source.identity.mtime_ns)
    assert kept.job_last_write_ns == source.job_last_write_ns
    blocks, facts = parse(text)
    content = world.content(PATHS[0], 300)
    assert facts.digest == source.digest and facts.size_bytes == len(content)
    (block,) = blocks.blocks
    assert block.text.endswith(TRACEBACK)
    assert block.last_line == content.count(b"\n")


def test_the_archive_of_companions_is_read_by_nobody_else(world: FaultyWorld) -> None:
    (world.logs / "vision/train-1").chmod(0o700)
    world.run("2h")
    kept = [key for key in world.objects()[TierName.WARM] if "/error/" in key]
    modes = {key.split("/")[0]: (world.folder / "warm" / key).stat().st_mode & 0o777 for key in kept}
    assert len(kept) == 3  # of two teams, and one of a segment that is stored alone
    assert modes == {"vision": 0o600, "nlp": 0o644}


def test_it_moves_on_and_goes_with_its_own_class(world: FaultyWorld) -> None:
    world.run("2h")
    assert world.run("8d").exit_code is ExitCode.DONE
    assert {kept.tier for kept, _, _ in world.companions()} == {TierName.COLD}
    assert world.broken_books() == []
    world.run("31d")
    world.run("35d")
    assert {source.tier for _, source, _ in world.companions()} == {None}
    world.run("70d")
    assert len(world.companions()) == 4
    world.run("91d")
    world.run("95d")
    assert world.companions() == []
    assert world.objects() == {TierName.WARM: [], TierName.COLD: []}
    assert world.broken_books() == []


def test_what_was_stored_before_policy_asked_is_looked_through_first_and_marked_next(world: FaultyWorld) -> None:
    world.asks = False
    world.run("2h")
    world.run("8d")
    world.asks = True
    assert phases(world.run("40d")) == {"extract": 6}
    assert {kept.tier for kept, _, _ in world.companions()} == {TierName.COLD}
    assert world.broken_books() == []
    assert phases(world.run("40d")) == {"mark": 6, "merge": 2}  # and two tiny archives of errors become one
    world.run("44d")
    assert len(world.companions()) == 4
    assert world.broken_books() == []


def test_switched_off_it_holds_nothing_back(world: FaultyWorld) -> None:
    world.asks = False
    world.run("2h")
    world.run("8d")
    assert phases(world.run("40d")) == {"mark": 6}


def test_marks_that_were_made_before_policy_asked_wait(world: FaultyWorld) -> None:
    world.asks = False
    for after in ("2h", "8d", "40d"):
        world.run(after)
    world.asks = True
    assert phases(world.run("44d")) == {"extract": 6}
    assert phases(world.run("44d")) == {"purge": 6}
    assert len(world.companions()) == 4


def test_the_catalog_is_asked_again_before_anything_is_marked_or_goes(world: FaultyWorld) -> None:
    """Whatever a plan says: of two runs that were planned before policy asked."""
    world.asks = False
    for after in ("2h", "8d"):
        world.run(after)
    world.asks = True
    members = [world.segments()[path] for path in PATHS if path.startswith("vision")]
    batch = a_batch(members, kind=ActionKind.MARK, tier_to=None, purge_after_ns=0, place_id=3)
    with site_of(world, "40d") as site:
        assert site.expiry.mark(site.lease_of(3), batch, "", site.policy.keeping_errors("vision")) == 0
        purge = a_batch(members, kind=ActionKind.PURGE, tier_to=None, place_id=3, archive_ids=(members[0].archive_id,))
        rows = [(m.id, *m.identity) for m in members]
        lease, keeping = site.lease_of(3), site.policy.keeping_errors("vision")
        head = site.journal.intend(lease, purge, Intent(), None, rows)
        assert site.expiry.record_purge(lease, head, [m.id for m in members], purge, keeping) is False


@contextmanager
def site_of(world: FaultyWorld, after: str) -> Iterator[Site]:
    with world.app(after) as app, Session(app, "run") as session:
        session.take_leases(RunOptions())
        with LocalEngine() as engine:
            yield open_site(session, engine, lambda: "")


def test_an_original_that_never_leaves_hot_is_looked_through_where_it_lies(tmp_path: Path) -> None:
    world = FaultyWorld(tmp_path / "world", files=(LATE, ("nlp/a/rank_0.log", "1d", 200)), classes=(IN_HOT,))
    world.make()
    assert phases(world.run("2h")) == {"extract": 1}
    assert [source.original.value for _, source, _ in world.companions()] == ["settled"]
    assert world.broken_books() == []
    assert phases(world.run("27h")) == {"mark": 1}
    assert phases(world.run("30h")) == {}
    world.run("5d")
    (kept,) = world.companions()
    assert kept[1].original.value == "purged"
    assert kept[0].tier is TierName.COLD


def test_an_original_that_changes_afterwards_is_looked_through_again(tmp_path: Path) -> None:
    world = FaultyWorld(tmp_path / "world", files=(LATE,), classes=(IN_HOT,))
    world.make()
    world.run("2h")
    world.write(LATE[0], world.content(LATE[0], 300) + TRACEBACK.replace(b"88", b"99"), age="31d")
    assert phases(world.run("4h")) == {"extract": 1}
    ((_, source, text),) = world.companions()
    assert b"step 99 failed" in text and source.error_blocks == len(parse(text)[0].blocks)
    world.run("5h")
    assert world.broken_books() == []
    assert sum(segment.companion_of is not None for segment in every(world)) == 2  # the former one is replaced


def every(world: FaultyWorld) -> list[Segment]:
    with world.app() as app:
        return list(iter_segments(app.catalog, Selector()))


def test_a_copy_made_early_has_its_companion_and_gets_another_when_its_job_writes_again(tmp_path: Path) -> None:
    world = FaultyWorld(
        tmp_path / "world", files=(("vision/a/rank_0.log", "5h", 300),), source={"copy_after": timedelta(hours=2)}
    )
    world.make()
    assert phases(world.run("2h")) == {"copy": 1}
    assert len(world.companions()) == 1
    with (world.logs / "vision/a/rank_0.log").open("ab") as log:
        log.write(b"fine again\n" * 20 + TRACEBACK.replace(b"88", b"99"))
    world.run("2h")
    assert world.segments()["vision/a/rank_0.log"].error_blocks is None
    assert phases(world.run("6h")) == {"copy": 1}
    ((_, source, text),) = world.companions()
    assert source.error_blocks == 2 and b"step 99" in text and b"step 88" in text
    world.run("7h")
    assert world.broken_books() == []
    assert phases(world.run("30h")) == {"release": 1}
    assert world.broken_books() == []


def test_a_log_that_changes_between_its_copy_and_its_release_is_looked_through_anew(
    world: FaultyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its copy is surplus, and so is what was kept of it, once there is more."""
    real = executor.run_release

    def meddled(order: ReleaseOrder) -> ReleaseResult:
        if any(member.path == PATHS[0].encode() for member in order.members):
            with (world.logs / PATHS[0]).open("ab") as log:
                log.write(b"and on\n" * 9 + TRACEBACK.replace(b"88", b"99"))
        return real(order)

    monkeypatch.setattr(executor, "run_release", meddled)
    world.run("2h")
    monkeypatch.undo()
    changed = world.segments()[PATHS[0]]
    assert (changed.tier, changed.error_blocks, changed.archive_id) == (TierName.HOT, None, None)
    world.run("26h")
    world.run("27h")
    by_path = {os.fsdecode(source.path): (source, text) for _, source, text in world.companions()}
    source, text = by_path[PATHS[0]]
    assert source.tier is TierName.WARM and source.error_blocks == 2 and b"step 99" in text
    assert world.broken_books() == []


@pytest.mark.parametrize("size", [300, 5_000_000])
def test_a_compressed_rotation_is_looked_through_in_clear(tmp_path: Path, size: int) -> None:
    """Small ones whole, large ones as they pass."""
    world = FaultyWorld(tmp_path / "world", files=(), below="16MiB")
    world.make()
    noise = os.urandom(size).hex().encode() if size > 1000 else b"x" * size
    packed = gzip.compress(noise + b"\n" + TRACEBACK)
    world.write("vision/a/rank_0.log.1.gz", packed, age="3d")
    assert world.run("2h").exit_code is ExitCode.DONE
    ((kept, source, text),) = world.companions()
    assert kept.name == b"rank_0.log.1.gz#errors" and kept.content.value == "text"
    assert parse(text)[0].blocks[0].text.endswith(TRACEBACK)
    assert parse(text)[1].digest == source.digest
    assert world.broken_books() == []


def test_a_damaged_one_is_stored_and_never_counts_as_looked_through(tmp_path: Path) -> None:
    world = FaultyWorld(tmp_path / "world", files=(("vision/a/rank_1.log", "3d", 300),))
    world.make()
    world.write("vision/a/rank_0.log.1.gz", gzip.compress(b"line\n" * 5000 + TRACEBACK)[:-12], age="3d")
    report = world.run("2h")
    assert report.exit_code is ExitCode.PARTIAL
    assert "rank_0.log.1.gz: errors not kept: gzip ends too early" in report.problems[0].message
    damaged = world.segments()["vision/a/rank_0.log.1.gz"]
    assert damaged.error_blocks is None and damaged.tier is TierName.WARM
    assert phases(world.run("2h")) == {}  # it rests
    pauses = []
    for after in ("4h", "7h", "11h"):
        assert world.run(after).exit_code is ExitCode.PARTIAL
        again = world.segments()["vision/a/rank_0.log.1.gz"]
        pauses.append((again.set_aside_until_ns or 0) - int((world.begun.timestamp() + hours(after)) * 1e9))
    assert pauses == sorted(set(pauses))  # longer each time
    for after in ("8d", "40d"):
        world.run(after)
    assert phases(world.run("44d"))["rewrite"] == 1  # alone in its archive, it keeps nobody else
    world.run("48d")
    world.run("80d")
    readable = {path: segment.tier for path, segment in world.segments().items()}
    assert readable["vision/a/rank_0.log.1.gz"] is TierName.COLD and readable["vision/a/rank_1.log"] is None
    assert world.broken_books() == []


def hours(after: str) -> int:
    return 3600 * int(after.removesuffix("h"))


def test_a_damaged_archive_is_set_aside_and_the_others_are_looked_through(world: FaultyWorld) -> None:
    world.asks = False
    world.run("2h")
    world.asks = True
    (key,) = (key for key in world.objects()[TierName.WARM] if key.startswith("nlp/"))
    path = world.folder / "warm" / key
    raw = bytearray(path.read_bytes())
    raw[100] ^= 255
    path.write_bytes(raw)
    report = world.run("3h")
    assert report.exit_code is ExitCode.DAMAGE
    assert phases(report) == {"extract": 4}
    assert {os.fsdecode(source.path) for _, source, _ in world.companions()} == set(PATHS[:2])
    assert world.segments()["nlp/train-2/rank_0.log"].error_blocks is None


def test_where_the_companions_cannot_be_stored_nothing_is(world: FaultyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The object of the originals is nothing without theirs: one commit, or none."""
    real = LocalWriter.publish

    def publish(self: LocalWriter) -> None:
        if "/error/" in self._name:
            raise AlreadyExists("somebody was there first")
        real(self)

    monkeypatch.setattr(LocalWriter, "publish", publish)
    report = world.run("2h")
    assert report.exit_code is ExitCode.PARTIAL
    assert world.objects()[TierName.WARM] == [] and world.companions() == []
    assert world.broken_books() == []
    monkeypatch.undo()
    assert world.run("3h").exit_code is ExitCode.DONE
    assert world.readable() == world.manifest() and len(world.companions()) == 3


def test_companions_are_taken_back_where_what_they_belong_to_fails(
    world: FaultyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LocalWriter.publish

    def publish(self: LocalWriter) -> None:
        if "/training/" in self._name:
            raise AlreadyExists("somebody was there first")
        real(self)

    monkeypatch.setattr(LocalWriter, "publish", publish)
    assert world.run("2h").exit_code is ExitCode.PARTIAL
    assert world.objects()[TierName.WARM] == []
    assert world.broken_books() == []


def test_what_could_not_be_taken_back_is_left_to_recovery(world: FaultyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    real_publish, real_remove = LocalWriter.publish, LocalTier.remove

    def publish(self: LocalWriter) -> None:
        if "/training/" in self._name:
            raise AlreadyExists("somebody was there first")
        real_publish(self)

    def remove(self: LocalTier, key: str, *, size_bytes: int) -> bool:
        if "/error/" in key:
            raise Skipped("not now")
        return real_remove(self, key, size_bytes=size_bytes)

    monkeypatch.setattr(LocalWriter, "publish", publish)
    monkeypatch.setattr(LocalTier, "remove", remove)
    report = world.run("2h")
    assert "is left behind" in " ".join(problem.message for problem in report.problems)
    assert len(world.objects()[TierName.WARM]) == 3
    monkeypatch.undo()
    report = world.run("3h")
    assert report.recovery.undone == 3
    assert world.readable() == world.manifest() and world.broken_books() == []


def test_what_holds_a_log_holds_what_is_kept_of_it(world: FaultyWorld) -> None:
    """Whatever the hold selects by: a companion is held from the commit that makes it."""
    world.run("1h", only=frozenset({ActionKind.MARK}))  # seen
    hold = Hold(
        id=0, selector=Selector(paths=(os.fsencode(world.logs / PATHS[0]),)), reason="paper", owner="chen",
        source="test", created_ns=0,
    )  # fmt: skip
    with world.app("1h") as app:
        with app.catalog.write() as conn:
            hold = add_hold(conn, hold)
        apply_holds(app.catalog, [hold])
    world.run("2h")
    held = {os.fsdecode(kept.path) for kept, _, _ in world.companions() if kept.hold_id == hold.id}
    assert held == {PATHS[0] + "#errors"}
    for after in ("8d", "40d", "44d", "100d", "104d"):
        world.run(after)
    left = {os.fsdecode(source.path): (kept, source) for kept, source, _ in world.companions()}
    kept, source = left[PATHS[0]]  # beside it only what lies in its archive
    assert kept.tier is source.tier is TierName.COLD and kept.marked_ns is None
    assert "nlp/train-2/rank_0.log" not in left


def test_history_of_a_companion_begins_with_the_batch_that_made_it(world: FaultyWorld) -> None:
    world.run("2h")
    world.run("8d")
    kept, source, _ = next(item for item in world.companions() if item[1].path == PATHS[0].encode())
    with world.app() as app, app.catalog.read() as conn:
        touches = {segment.id: history_of(conn, segment.id) for segment in (kept, source)}
    assert [(t.action, t.outcome, "/error/" in t.archive_key) for t in touches[kept.id]] == [
        (ActionKind.MERGE, Outcome.RELEASED, True),
        (ActionKind.MERGE, Outcome.RELEASED, True),
    ]
    assert [(t.action, "/training/" in t.archive_key) for t in touches[source.id]] == [
        (ActionKind.MERGE, True),
        (ActionKind.TRANSITION, True),
    ]


def test_a_restore_writes_companions_as_text_and_never_into_a_source(world: FaultyWorld, tmp_path: Path) -> None:
    world.run("2h")
    report = world.restore("3h", to=tmp_path / "back")
    assert report.exit_code is ExitCode.DONE
    text = (tmp_path / "back/lustre/vision/train-1/rank_0.log#errors").read_bytes()
    assert text.startswith(b"# lifecycle errors 1\n") and b"RuntimeError: CUDA error" in text
    report = world.restore("3h", in_place=True)
    assert (report.companions, report.files) == (3, 5)
    assert not list(world.logs.rglob("*#errors"))
    assert world.broken_books() == []


def test_a_restore_in_place_of_companions_alone_says_where_they_go(world: FaultyWorld) -> None:
    world.run("2h")
    with world.app("3h") as app, pytest.raises(NothingFound) as caught:
        restore(app, Selector(classes=("error",)), RestoreOptions(in_place=True), Silence())
    assert "--to DIR" in (caught.value.hint or "")


def test_a_name_that_a_folder_has_goes_to_another_archive(tmp_path: Path) -> None:
    files = (("vision/a/rank_0.log", "3d", 300), ("vision/a/rank_0.log#errors/rank_1.log", "3d", 300))
    world = FaultyWorld(tmp_path / "world", files=files)
    world.make()
    report = world.run("2h")
    assert "rank_0.log#errors is no folder" in report.problems[0].message
    assert len(world.companions()) == 1 and world.readable() == world.manifest()
    assert phases(world.run("4h")) == {"extract": 1}
    assert {kept.path for kept, _, _ in world.companions()} == {
        b"vision/a/rank_0.log#errors", b"vision/a/rank_0.log#errors/rank_1.log#errors"
    }  # fmt: skip
    assert world.run("8d").exit_code is ExitCode.DONE
    assert world.broken_books() == []


def test_memory_of_a_large_one_is_that_of_its_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is looked through is held as a whole."""
    pieces: list[int] = []
    real = companions.Look.take

    def take(self: companions.Look, chunk: bytes) -> None:
        pieces.append(len(chunk))
        real(self, chunk)

    monkeypatch.setattr(companions.Look, "take", take)
    size = 9_000_000
    world = FaultyWorld(tmp_path / "world", files=(("vision/a/rank_0.log", "3d", size),), below="1MiB")
    world.make()
    world.run("2h")
    assert sum(pieces) == len(world.content("vision/a/rank_0.log", size)) and max(pieces) <= 2**20
    assert len(world.companions()) == 1


def test_every_archive_is_opened_once(world: FaultyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.asks = False
    world.run("2h")
    world.asks = True
    opened: list[str] = []
    real = extract.open_archive

    def counted(reader: Any, *, name: str, **more: Any) -> Any:
        opened.append(name)
        return real(reader, name=name, **more)

    monkeypatch.setattr(extract, "open_archive", counted)
    world.run("3h")
    assert len(opened) == len(set(opened)) == 3
