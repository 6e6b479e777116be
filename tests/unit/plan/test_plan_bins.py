"""Bins: everything in exactly one, in order, within the limits, and no more in memory than allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.plan.bins import Bins

Packed = list[tuple[tuple[str], list[tuple[int, int]]]]


def pack(items: list[tuple[str, int, int]], bins: Bins[tuple[str], tuple[int, int]]) -> Packed:
    closed: Packed = []
    for number, (key, size, count) in enumerate(items):
        closed += bins.add((key,), (number, size), size_bytes=size, count=count)
    return closed + list(bins.drain())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(1, 3))))
def test_every_item_is_in_one_bin_in_its_order_and_no_bin_outgrows_its_limits(
    items: list[tuple[str, int, int]],
) -> None:
    closed = pack(items, Bins(max_bytes=10, max_count=4, max_pending=5))
    for key in "abc":
        packed = [number for (name,), found in closed if name == key for number, _ in found]
        assert packed == [number for number, (name, _, _) in enumerate(items) if name == key]
    for _, found in closed:
        assert len(found) == 1 or sum(size for _, size in found) <= 10
        assert len(found) == 1 or sum(items[number][2] for number, _ in found) <= 4


@given(st.lists(st.sampled_from("abcdefgh"), max_size=60))
def test_open_bins_never_hold_more_than_allowed(keys: list[str]) -> None:
    bins: Bins[tuple[str], int] = Bins(max_pending=7)
    held = 0
    for number, key in enumerate(keys):
        held += 1 - sum(len(found) for _, found in bins.add((key,), number))
        assert held <= 7


def test_when_too_much_is_open_the_fullest_bin_goes() -> None:
    bins: Bins[tuple[str], int] = Bins(max_pending=3)
    for key in "aab":
        assert bins.add((key,), 0) == []
    assert bins.add(("c",), 0) == [(("a",), [0, 0])]


def test_an_item_larger_than_a_bin_gets_its_own() -> None:
    assert pack([("a", 3, 1), ("a", 50, 1), ("a", 3, 1)], Bins(max_bytes=10)) == [
        (("a",), [(0, 3)]), (("a",), [(1, 50)]), (("a",), [(2, 3)]),
    ]  # fmt: skip


def test_draining_some_keys_leaves_the_others_open() -> None:
    bins: Bins[tuple[str], int] = Bins()
    bins.add(("b",), 1)
    bins.add(("a",), 2)
    assert list(bins.drain(lambda key: key == ("a",))) == [(("a",), [2])]
    assert list(bins.drain()) == [(("b",), [1])]
    assert list(bins.drain()) == []
