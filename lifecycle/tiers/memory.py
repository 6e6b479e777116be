"""A tier in this process's memory: the twin of the local one for tests and rehearsals, with the same promises.

Knows keys and bytes; never the disk or the clock: an object's ``mtime_ns`` counts publications. Tiers of one name share
their objects, so that a spec opens the same tier again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from lifecycle.errors import AlreadyExists, Skipped, StorageFull, UsageError
from lifecycle.ports import ObjectFacts, TierSpec
from lifecycle.tiers.keys import check_key, check_temporary

KIND: Final = "memory"


@dataclass(slots=True)
class MemoryStore:
    """What tiers of one name share. ``capacity_bytes`` bounds objects and temporaries together."""

    capacity_bytes: int | None = None
    objects: dict[str, tuple[bytes, ObjectFacts]] = field(default_factory=dict)
    temporaries: dict[str, bytearray] = field(default_factory=dict)
    publications: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def used_bytes(self) -> int:
        return sum(facts.size_bytes for _, facts in self.objects.values()) + sum(map(len, self.temporaries.values()))


_stores: Final[dict[str, MemoryStore]] = {}


class MemoryTier:
    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store if store is not None else MemoryStore()

    def close(self) -> None:
        """Nothing to close; the objects stay."""

    def open(self, key: str) -> MemoryReader:
        check_key(key)
        with self.store.lock:
            if key not in self.store.objects:
                raise FileNotFoundError(key)
            return MemoryReader(self.store.objects[key][0])

    def facts(self, key: str) -> ObjectFacts | None:
        check_key(key)
        with self.store.lock:
            found = self.store.objects.get(key)
        return found[1] if found is not None else None

    def iter_objects(self, prefix: str = "") -> Iterator[ObjectFacts]:
        with self.store.lock:
            found = sorted((key, facts) for key, (_, facts) in self.store.objects.items() if key.startswith(prefix))
        for _, facts in found:
            yield facts

    def create(self, key: str, *, temporary: str, mode: int, gid: int | None = None) -> MemoryWriter:
        check_key(key)
        check_temporary(temporary)
        with self.store.lock:
            if temporary in self.store.temporaries:
                raise AlreadyExists(f"{key}: a temporary of this name is there already")
            self.store.temporaries[temporary] = bytearray()
        return MemoryWriter(self.store, key, temporary)

    def remove(self, key: str, *, size_bytes: int) -> bool:
        check_key(key)
        with self.store.lock:
            found = self.facts(key)
            if found is None:
                return False
            if found.size_bytes != size_bytes:
                raise Skipped(f"{key}: has {found.size_bytes} bytes and {size_bytes} were expected")
            del self.store.objects[key]
            return True

    def sweep(self, temporary: str) -> bool:
        check_temporary(temporary)
        with self.store.lock:
            return self.store.temporaries.pop(temporary, None) is not None


class MemoryWriter:
    def __init__(self, store: MemoryStore, key: str, temporary: str) -> None:
        self._store = store
        self._key = key
        self._temporary = temporary
        self._sealed: bytes | None = None
        self._is_over = False

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self._check_unsealed()
        with self._store.lock:
            capacity = self._store.capacity_bytes
            if capacity is not None and self._store.used_bytes + len(data) > capacity:
                self.abort()
                raise StorageFull(f"{self._key}: no space left in {capacity} bytes of memory")
            self._store.temporaries[self._temporary] += data

    def seal(self) -> MemoryReader:
        self._check_unsealed()
        self._sealed = bytes(self._store.temporaries[self._temporary])
        return MemoryReader(self._sealed)

    def publish(self) -> None:
        if self._sealed is None or self._is_over:
            raise ValueError("only a sealed object can be published, once")
        store = self._store
        with store.lock:
            if self._key in store.objects:
                raise AlreadyExists(f"{self._key} is there already; nothing was overwritten")
            store.publications += 1
            facts = ObjectFacts(key=self._key, size_bytes=len(self._sealed), mtime_ns=store.publications)
            store.objects[self._key] = (self._sealed, facts)
            store.temporaries.pop(self._temporary, None)
        self._is_over = True

    def abort(self) -> None:
        if not self._is_over:
            self._is_over = True
            with self._store.lock:
                self._store.temporaries.pop(self._temporary, None)

    def _check_unsealed(self) -> None:
        if self._is_over or self._sealed is not None:
            raise ValueError("the object is sealed, published or aborted")


class MemoryReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size_bytes = len(data)

    def read_range(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]

    def close(self) -> None:
        """Nothing to close."""


def open_memory(spec: TierSpec) -> MemoryTier:
    """The tier of this name in this process. Option ``capacity``: bytes."""
    options = dict(spec.options)
    capacity = options.pop("capacity", None)
    if options:
        raise UsageError(f"tier {spec.root}: a memory tier has no option {next(iter(options))!r}")
    store = _stores.setdefault(spec.root, MemoryStore())
    if capacity is not None:
        store.capacity_bytes = int(capacity)
    return MemoryTier(store)
