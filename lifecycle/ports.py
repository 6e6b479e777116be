"""Protocols of what the flow needs from adapters. Knows values, never a class that fulfils them.

Writing is a handle, not a flag: whoever plans or previews is given a ``TierReader`` and no ``TierWriter``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable


class Clock(Protocol):
    """The one source of the present."""

    def now(self) -> datetime:
        """Aware, UTC."""

    def monotonic(self) -> float:
        """Seconds, for durations only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """One stored object as the tier lists it."""

    key: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSpec:
    """Enough to open a tier again in a worker process: kind, where, options. Holds no handle and no secret."""

    kind: str  # a name in lifecycle.tiers.TIER_KINDS
    root: str  # a directory for "local"
    options: tuple[tuple[str, str], ...] = ()


class ObjectReader(Protocol):
    """One open object, read by ranges."""

    @property
    def size_bytes(self) -> int: ...
    def read_range(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes; fewer only at the end of the object."""

    def close(self) -> None: ...


class ObjectWriter(Protocol):
    """One object in the making. It is not there under its key before ``publish``; ``abort`` leaves nothing."""

    def write(self, data: bytes | bytearray | memoryview, /) -> object: ...
    def seal(self) -> ObjectReader:
        """Make the bytes durable under the temporary name and re-open them for verifying, past the page cache."""

    def publish(self) -> None:
        """Give the sealed object its key, durably. Raises AlreadyExists, and then nothing was overwritten."""

    def abort(self) -> None:
        """Remove what was written. Safe at any time, also twice and after ``publish`` (then it does nothing)."""


@runtime_checkable
class TierReader(Protocol):
    """Keys are text, ``/`` separated, relative to the tier's root."""

    def open(self, key: str) -> ObjectReader:
        """Raises FileNotFoundError."""

    def facts(self, key: str) -> ObjectFacts | None: ...
    def iter_objects(self, prefix: str = "") -> Iterator[ObjectFacts]:
        """Published objects under a prefix, sorted by key; never temporary files or our own records."""


@runtime_checkable
class TierWriter(Protocol):
    def create(self, key: str, *, temporary: str, mode: int, gid: int | None = None) -> ObjectWriter:
        """Begin an object. ``temporary`` is the name (no ``/``) that the journal's intent carries, so that
        recovery finds what a crash left; ``mode`` is the permission bits the object will have."""

    def remove(self, key: str, *, size_bytes: int) -> bool:
        """Remove an object that still has this size, durably. False when it is not there; raises Skipped
        when it is another size."""

    def sweep(self, temporary: str) -> bool:
        """Remove a temporary of a dead attempt; True when one was there."""
