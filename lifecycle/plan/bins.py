"""Bins that fill up: items of one key together, up to a count and a size, handed out as soon as they are full.

Knows counts and sizes. Never knows what it packs. Next-fit, not best-fit: an item that does not fit closes the bin,
so that the same items in the same order always give the same bins, and only one bin per key is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

MAX_MEMBERS: Final = 4096  # of one batch: an intent, a manifest and a transaction stay small
# Over all open bins. Two thousand nodes' places, each with a bin half full, must not add up to a catalog in memory:
# the fullest bin goes early instead, as a smaller archive.
MAX_PENDING: Final = 65_536

Key = TypeVar("Key", bound="tuple[Any, ...]")
Item = TypeVar("Item")


@dataclass(slots=True)
class _Bin(Generic[Item]):
    items: list[Item] = field(default_factory=list)
    count: int = 0
    size_bytes: int = 0


class Bins(Generic[Key, Item]):
    """One open bin per key. Keys are tuples that can be compared."""

    def __init__(
        self, *, max_bytes: int | None = None, max_count: int = MAX_MEMBERS, max_pending: int = MAX_PENDING
    ) -> None:
        self._max_bytes = max_bytes
        self._max_count = max_count
        self._max_pending = max_pending
        self._open: dict[Key, _Bin[Item]] = {}
        self._pending = 0

    def add(self, key: Key, item: Item, *, size_bytes: int = 0, count: int = 1) -> Sequence[tuple[Key, list[Item]]]:
        """Put one item in. Returns the bins that this closed: none, the one it did not fit into, a fullest one.

        An item larger than a whole bin gets one of its own.
        """
        closed: list[tuple[Key, list[Item]]] = []
        current = self._open.get(key)
        if current is not None and not self._fits(current, size_bytes, count):
            closed.append((key, self._close(key)))
            current = None
        if current is None:
            current = self._open[key] = _Bin()
        current.items.append(item)
        current.count += count
        current.size_bytes += size_bytes
        self._pending += 1
        if current.count >= self._max_count:
            closed.append((key, self._close(key)))
        elif self._pending > self._max_pending:
            fullest = min(self._open, key=lambda each: (-self._open[each].count, each))
            closed.append((fullest, self._close(fullest)))
        return closed

    def drain(self, which: Callable[[Key], bool] = lambda key: True) -> Iterator[tuple[Key, list[Item]]]:
        """Close the open bins whose key is asked for, in the order of keys."""
        for key in sorted(filter(which, self._open)):
            yield key, self._close(key)

    def _fits(self, current: _Bin[Item], size_bytes: int, count: int) -> bool:
        if current.count + count > self._max_count:
            return False
        return self._max_bytes is None or current.size_bytes + size_bytes <= self._max_bytes

    def _close(self, key: Key) -> list[Item]:
        closed = self._open.pop(key)
        self._pending -= len(closed.items)
        return closed.items
