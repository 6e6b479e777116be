"""What every kind of tier promises. A new kind in ``TIER_KINDS`` gets a way to make one here, else this fails."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from lifecycle.errors import AlreadyExists, Skipped, UsageError
from lifecycle.ports import TierReader, TierSpec, TierWriter
from lifecycle.tiers import TIER_KINDS, Tier, make_key, open_tier

_names = itertools.count()


def _local(folder: Path) -> TierSpec:
    return TierSpec(kind="local", root=str(folder))


def _memory(_: Path) -> TierSpec:
    return TierSpec(kind="memory", root=f"contract-{next(_names)}")


def _faulty(_: Path) -> TierSpec:
    return TierSpec(kind="faulty", root=f"contract-{next(_names)}", options=(("inner", "memory"),))


SPECS: Final[dict[str, Callable[[Path], TierSpec]]] = {"local": _local, "memory": _memory, "faulty": _faulty}
KEY: Final = make_key("vision", "training", 20_513, "a.tar.zst")


@pytest.fixture(params=sorted(TIER_KINDS))
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> TierSpec:
    return SPECS[request.param](tmp_path)


@pytest.fixture
def tier(spec: TierSpec) -> Iterator[Tier]:
    opened = open_tier(spec)
    yield opened
    opened.close()


def put(tier: Tier, key: str = KEY, data: bytes = b"content", *, temporary: str = "t") -> None:
    writer = tier.create(key, temporary=temporary, mode=0o640)
    writer.write(data)
    writer.seal()
    writer.publish()


def read(tier: Tier, key: str = KEY) -> bytes:
    reader = tier.open(key)
    try:
        return reader.read_range(0, reader.size_bytes)
    finally:
        reader.close()


def keys(tier: Tier, prefix: str = "") -> list[str]:
    return [facts.key for facts in tier.iter_objects(prefix)]


def test_it_is_a_reader_and_a_writer(tier: Tier) -> None:
    assert isinstance(tier, TierReader) and isinstance(tier, TierWriter)


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 5000])
def test_bytes_in_are_bytes_out(tier: Tier, data: bytes) -> None:
    put(tier, data=data)
    assert read(tier) == data
    facts = tier.facts(KEY)
    assert facts is not None and facts.key == KEY and facts.size_bytes == len(data)


def test_many_writes_are_one_object(tier: Tier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    for piece in (b"one", bytearray(b"two"), memoryview(b"three")):
        writer.write(piece)
    writer.seal()
    writer.publish()
    assert read(tier) == b"onetwothree"


def test_an_object_is_not_there_before_it_is_published(tier: Tier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    writer.write(b"content")
    for step in (writer.seal, writer.publish):
        assert tier.facts(KEY) is None and keys(tier) == []
        with pytest.raises(FileNotFoundError):
            tier.open(KEY)
        step()
    assert keys(tier) == [KEY]


def test_what_is_sealed_can_be_read_before_it_is_published(tier: Tier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    writer.write(b"content")
    reader = writer.seal()
    assert reader.size_bytes == 7 and reader.read_range(3, 2) == b"te"
    writer.publish()


def test_a_range_is_exact_and_short_only_at_the_end(tier: Tier) -> None:
    put(tier, data=b"0123456789")
    reader = tier.open(KEY)
    assert reader.read_range(2, 3) == b"234"
    assert reader.read_range(8, 100) == b"89"
    assert reader.read_range(10, 1) == b"" == reader.read_range(500, 1)
    assert reader.read_range(0, 0) == b""
    reader.close()
    reader.close()


def test_an_object_is_never_overwritten(tier: Tier) -> None:
    put(tier, data=b"first")
    writer = tier.create(KEY, temporary="t2", mode=0o640)
    writer.write(b"second")
    writer.seal()
    with pytest.raises(AlreadyExists):
        writer.publish()
    assert read(tier) == b"first"
    writer.abort()
    assert read(tier) == b"first"
    assert not tier.sweep("t2")


def test_of_many_who_publish_one_key_one_wins(tier: Tier) -> None:
    writers = [tier.create(KEY, temporary=f"t{number}", mode=0o640) for number in range(8)]
    for number, writer in enumerate(writers):
        writer.write(b"%d" % number)
        writer.seal()
    outcomes: list[int] = []
    barrier = threading.Barrier(len(writers))

    def race(number: int) -> None:
        barrier.wait()
        try:
            writers[number].publish()
        except AlreadyExists:
            return
        outcomes.append(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(len(writers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1
    assert read(tier) == b"%d" % outcomes[0]


def test_abort_leaves_nothing_and_may_come_at_any_time(tier: Tier) -> None:
    for is_sealed in (False, True):
        writer = tier.create(KEY, temporary="t", mode=0o640)
        writer.write(b"content")
        if is_sealed:
            writer.seal()
        writer.abort()
        writer.abort()
        assert not tier.sweep("t")
        with pytest.raises(ValueError):
            writer.write(b"more")
    assert keys(tier) == []


def test_abort_after_publish_does_nothing(tier: Tier) -> None:
    put(tier)
    writer = tier.create(KEY + "2", temporary="t", mode=0o640)
    writer.seal()
    writer.publish()
    writer.abort()
    assert keys(tier) == [KEY, KEY + "2"]


def test_what_is_sealed_cannot_change(tier: Tier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    writer.write(b"content")
    writer.seal()
    for change in (lambda: writer.write(b"more"), writer.seal):
        with pytest.raises(ValueError):
            change()
    writer.publish()
    assert read(tier) == b"content"


def test_publish_needs_a_seal_and_works_once(tier: Tier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    with pytest.raises(ValueError):
        writer.publish()
    writer.seal()
    writer.publish()
    with pytest.raises(ValueError):
        writer.publish()


def test_two_attempts_cannot_share_a_temporary(tier: Tier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    with pytest.raises(AlreadyExists):
        tier.create(KEY + "2", temporary="t", mode=0o640)
    writer.abort()
    tier.create(KEY, temporary="t", mode=0o640).abort()


def test_what_a_crash_left_is_swept_by_its_name(tier: Tier, spec: TierSpec) -> None:
    writer = tier.create(KEY, temporary="left-behind", mode=0o640)
    writer.write(b"half of it")
    later = open_tier(spec)
    assert keys(later) == []
    assert later.sweep("left-behind")
    assert not later.sweep("left-behind")
    put(later, temporary="left-behind")
    assert keys(later) == [KEY]
    later.close()


def test_remove_takes_away_what_still_has_its_size(tier: Tier) -> None:
    put(tier, data=b"12345")
    with pytest.raises(Skipped):
        tier.remove(KEY, size_bytes=4)
    assert read(tier) == b"12345"
    assert tier.remove(KEY, size_bytes=5)
    assert not tier.remove(KEY, size_bytes=5)
    assert tier.facts(KEY) is None
    put(tier, data=b"again")
    assert read(tier) == b"again"


def test_an_open_object_can_be_read_after_its_removal(tier: Tier) -> None:
    put(tier, data=b"12345")
    reader = tier.open(KEY)
    tier.remove(KEY, size_bytes=5)
    assert reader.read_range(0, 5) == b"12345"
    reader.close()


def test_objects_are_listed_by_prefix_in_order_of_their_keys(tier: Tier) -> None:
    made = ["a/z", "a-b/x", "a.b/x", "a/b/c", "a", "ab/c", "é/x", "B/x", "a0/1"]
    made.remove("a")  # a file system cannot have both a file and a folder of one name
    for number, key in enumerate(made):
        put(tier, key, b"x" * number, temporary=f"t{number}")
    assert keys(tier) == sorted(made)
    for prefix in ("a", "a/", "a/b", "a-", "x", "a/b/c", "a/b/cc", "é/"):
        assert keys(tier, prefix) == sorted(key for key in made if key.startswith(prefix)), prefix
    assert {facts.key: facts.size_bytes for facts in tier.iter_objects()} == {
        key: number for number, key in enumerate(made)
    }


def test_temporaries_are_never_listed(tier: Tier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    writer.write(b"content")
    assert keys(tier) == [] == keys(tier, ".lifecycle") == keys(tier, ".")
    writer.abort()


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a/.", ".lifecycle/tmp/t", ".lifecycle", "a\0b", "x" * 256]
)
def test_a_key_that_could_leave_the_tier_is_refused(tier: Tier, key: str) -> None:
    for act in (
        lambda: tier.create(key, temporary="t", mode=0o640),
        lambda: tier.open(key),
        lambda: tier.facts(key),
        lambda: tier.remove(key, size_bytes=1),
    ):
        with pytest.raises(UsageError):
            act()


@pytest.mark.parametrize("temporary", ["", ".", "..", "a/b", "../x", "a\0b", "x" * 256])
def test_a_temporary_name_is_one_component(tier: Tier, temporary: str) -> None:
    with pytest.raises(UsageError):
        tier.create(KEY, temporary=temporary, mode=0o640)
    with pytest.raises(UsageError):
        tier.sweep(temporary)


def test_a_spec_opens_the_same_tier_again(tier: Tier, spec: TierSpec) -> None:
    put(tier)
    again = open_tier(spec)
    assert keys(again) == [KEY] and read(again) == b"content"
    again.close()


def test_an_unknown_option_is_refused(spec: TierSpec) -> None:
    options = (*spec.options, ("colour", "blue"))
    with pytest.raises(UsageError, match="colour"):
        open_tier(TierSpec(kind=spec.kind, root=spec.root, options=options))


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="'tape' is not known") as refused:
        open_tier(TierSpec(kind="tape", root="/"))
    assert "local" in (refused.value.hint or "")


def test_every_kind_is_in_this_suite() -> None:
    assert set(SPECS) == set(TIER_KINDS)
