"""The faulty tier fails exactly where it is told to, and as a real store would."""

from __future__ import annotations

import pytest

from lifecycle.errors import AlreadyExists, PlaceUnavailable, StorageFull, UsageError
from lifecycle.ports import TierSpec
from lifecycle.tiers import open_tier
from lifecycle.tiers.faulty import Crashed, Effect, Fault, FaultyTier, Step, parse_spec
from lifecycle.tiers.memory import MemoryStore, MemoryTier


def a_tier(*faults: Fault, capacity: int | None = None) -> tuple[FaultyTier, MemoryStore]:
    store = MemoryStore(capacity_bytes=capacity)
    return FaultyTier(MemoryTier(store), faults), store


def put(tier: FaultyTier, key: str = "a/b", data: bytes = b"0123456789") -> None:
    writer = tier.create(key, temporary="t", mode=0o600)
    writer.write(data)
    writer.seal()
    writer.publish()


@pytest.mark.parametrize("step", [Step.CREATE, Step.WRITE, Step.SEAL, Step.PUBLISH])
@pytest.mark.parametrize(("effect", "error"), [(Effect.FULL, StorageFull), (Effect.UNAVAILABLE, PlaceUnavailable)])
def test_a_failed_step_of_a_new_object_leaves_nothing(step: Step, effect: Effect, error: type[Exception]) -> None:
    tier, store = a_tier(Fault(step=step, effect=effect))
    with pytest.raises(error):
        put(tier)
    assert not store.objects and not store.temporaries


@pytest.mark.parametrize("step", [Step.WRITE, Step.SEAL, Step.PUBLISH])
def test_a_crash_leaves_the_temporary(step: Step) -> None:
    tier, store = a_tier(Fault(step=step, effect=Effect.CRASH))
    with pytest.raises(Crashed):
        put(tier)
    assert not store.objects and list(store.temporaries) == ["t"]


def test_a_crash_after_publishing_leaves_the_object() -> None:
    tier, store = a_tier(Fault(step=Step.PUBLISH, effect=Effect.CRASH_AFTER))
    with pytest.raises(Crashed):
        put(tier)
    assert list(store.objects) == ["a/b"]


def test_a_crash_is_caught_by_no_handler_of_errors() -> None:
    assert not issubclass(Crashed, Exception)


def test_removal_crashes_on_either_side() -> None:
    for effect, is_left in ((Effect.CRASH, True), (Effect.CRASH_AFTER, False)):
        tier, store = a_tier(Fault(step=Step.REMOVE, effect=effect))
        put(tier)
        with pytest.raises(Crashed):
            tier.remove("a/b", size_bytes=10)
        assert bool(store.objects) == is_left


def test_the_nth_call_fails_and_no_other() -> None:
    tier, store = a_tier(Fault(step=Step.PUBLISH, effect=Effect.EXISTS, nth=2))
    put(tier, "a/1")
    with pytest.raises(AlreadyExists):
        put(tier, "a/2")
    store.temporaries.clear()
    put(tier, "a/3")
    assert sorted(store.objects) == ["a/1", "a/3"]


def test_every_call_fails_where_nth_is_0() -> None:
    tier, _ = a_tier(Fault(step=Step.LIST, effect=Effect.UNAVAILABLE, nth=0))
    for _ in range(2):
        with pytest.raises(PlaceUnavailable):
            list(tier.iter_objects())


def test_flipped_and_cut_bytes_go_in_and_come_out() -> None:
    tier, store = a_tier(Fault(step=Step.WRITE, effect=Effect.FLIP), Fault(step=Step.READ, effect=Effect.CUT))
    put(tier)
    assert store.objects["a/b"][0] == b"01234\x346789"
    reader = tier.open("a/b")
    assert reader.read_range(0, 10) == b"01234\x34678"
    assert reader.read_range(0, 10) == b"01234\x346789"


def test_memory_runs_full_and_leaves_nothing() -> None:
    tier, store = a_tier(capacity=15)
    put(tier)
    with pytest.raises(StorageFull):
        put(tier, "a/c")
    assert list(store.objects) == ["a/b"] and not store.temporaries


def test_a_spec_says_it_all() -> None:
    options = (("inner", "memory"), ("inner.capacity", "5"), ("fault", "publish:full:2"), ("fault", "read:flip"))
    inner, faults = parse_spec(TierSpec(kind="faulty", root="r", options=options))
    assert inner == TierSpec(kind="memory", root="r", options=(("capacity", "5"),))
    assert faults == (
        Fault(step=Step.PUBLISH, effect=Effect.FULL, nth=2),
        Fault(step=Step.READ, effect=Effect.FLIP),
    )
    tier = open_tier(TierSpec(kind="faulty", root="says-it-all", options=options[:2]))
    with pytest.raises(StorageFull):
        tier.create("a", temporary="t", mode=0o600).write(b"123456")


@pytest.mark.parametrize(
    "options", [(), (("inner", "memory"), ("fault", "publish")), (("inner", "memory"), ("fault", "x:full"))]
)
def test_a_spec_that_makes_no_sense_is_refused(options: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(UsageError):
        open_tier(TierSpec(kind="faulty", root="r", options=options))
