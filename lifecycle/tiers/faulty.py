"""A tier that fails when told to, wrapped around another one. Shipped, so that rehearsals and tests break the same way.

Knows steps and effects; never which kind it wraps. Without faults it keeps every promise of the tier inside. In a spec,
option ``inner`` names the kind inside, every other ``inner.X`` is its option ``X``, and each ``fault`` is written
``step:effect`` or ``step:effect:nth``, as ``publish:full:2``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from lifecycle.errors import AlreadyExists, PlaceUnavailable, StorageFull, UsageError
from lifecycle.ports import ObjectFacts, ObjectReader, ObjectWriter, TierReader, TierSpec, TierWriter

KIND: Final = "faulty"


class Step(StrEnum):
    CREATE = "create"
    WRITE = "write"
    SEAL = "seal"
    PUBLISH = "publish"
    REMOVE = "remove"
    SWEEP = "sweep"
    OPEN = "open"
    FACTS = "facts"
    LIST = "list"
    READ = "read"  # of what is sealed as well as of what is published


class Effect(StrEnum):
    FULL = "full"  # StorageFull, after which the object in the making is gone
    UNAVAILABLE = "unavailable"  # PlaceUnavailable, likewise
    EXISTS = "exists"  # AlreadyExists
    CRASH = "crash"  # the process dies before the step: nothing is undone
    CRASH_AFTER = "crash_after"  # the step was done, and nobody learned of it
    FLIP = "flip"  # write, read: one bit is another one
    CUT = "cut"  # write, read: the last byte is missing


class Crashed(BaseException):
    """Stands for the death of the process: no handler may tidy up after it, as none could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    step: Step
    effect: Effect
    nth: int = 1  # which call of the step, counted from 1; 0 for every one


class InnerTier(TierReader, TierWriter, Protocol):
    def close(self) -> None: ...


class _Script:
    """Counts calls and says what goes wrong at each."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self._faults = faults
        self._calls: dict[Step, int] = {}
        self._lock = threading.Lock()

    def effect(self, step: Step) -> Effect | None:
        with self._lock:
            call = self._calls[step] = self._calls.get(step, 0) + 1
        return next((fault.effect for fault in self._faults if fault.step is step and fault.nth in (0, call)), None)

    def fail(self, step: Step, writer: ObjectWriter | None = None) -> Effect | None:
        """Raise what the script says, undoing as a real tier would; else return the effect that changes data."""
        effect = self.effect(step)
        if effect is Effect.CRASH:
            raise Crashed(f"before {step}")
        if effect in (Effect.FULL, Effect.UNAVAILABLE) and writer is not None:
            writer.abort()
        if effect is Effect.FULL:
            raise StorageFull(f"faulty tier: no space left at {step}")
        if effect is Effect.UNAVAILABLE:
            raise PlaceUnavailable(f"faulty tier: input/output error at {step}")
        if effect is Effect.EXISTS:
            raise AlreadyExists(f"faulty tier: there already at {step}")
        return effect


class FaultyTier:
    def __init__(self, inner: InnerTier, faults: tuple[Fault, ...] = ()) -> None:
        self.inner = inner
        self._script = _Script(faults)

    def close(self) -> None:
        self.inner.close()

    def open(self, key: str) -> ObjectReader:
        self._script.fail(Step.OPEN)
        return _FaultyReader(self.inner.open(key), self._script)

    def facts(self, key: str) -> ObjectFacts | None:
        self._script.fail(Step.FACTS)
        return self.inner.facts(key)

    def iter_objects(self, prefix: str = "") -> Iterator[ObjectFacts]:
        self._script.fail(Step.LIST)
        yield from self.inner.iter_objects(prefix)

    def create(self, key: str, *, temporary: str, mode: int, gid: int | None = None) -> ObjectWriter:
        effect = self._script.fail(Step.CREATE)
        writer = _FaultyWriter(self.inner.create(key, temporary=temporary, mode=mode, gid=gid), self._script)
        _crash_if(effect, Step.CREATE)
        return writer

    def remove(self, key: str, *, size_bytes: int) -> bool:
        effect = self._script.fail(Step.REMOVE)
        was_there = self.inner.remove(key, size_bytes=size_bytes)
        _crash_if(effect, Step.REMOVE)
        return was_there

    def sweep(self, temporary: str) -> bool:
        effect = self._script.fail(Step.SWEEP)
        was_there = self.inner.sweep(temporary)
        _crash_if(effect, Step.SWEEP)
        return was_there


class _FaultyWriter:
    def __init__(self, inner: ObjectWriter, script: _Script) -> None:
        self._inner = inner
        self._script = script

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        effect = self._script.fail(Step.WRITE, self._inner)
        self._inner.write(_spoilt(bytes(data), effect))
        _crash_if(effect, Step.WRITE)

    def seal(self) -> ObjectReader:
        effect = self._script.fail(Step.SEAL, self._inner)
        reader = self._inner.seal()
        _crash_if(effect, Step.SEAL)
        return _FaultyReader(reader, self._script)

    def publish(self) -> None:
        effect = self._script.fail(Step.PUBLISH, self._inner)
        self._inner.publish()
        _crash_if(effect, Step.PUBLISH)

    def abort(self) -> None:
        self._inner.abort()


class _FaultyReader:
    def __init__(self, inner: ObjectReader, script: _Script) -> None:
        self._inner = inner
        self._script = script

    @property
    def size_bytes(self) -> int:
        return self._inner.size_bytes

    def read_range(self, offset: int, length: int) -> bytes:
        effect = self._script.fail(Step.READ)
        return _spoilt(self._inner.read_range(offset, length), effect)

    def close(self) -> None:
        self._inner.close()


def parse_spec(spec: TierSpec) -> tuple[TierSpec, tuple[Fault, ...]]:
    """The spec of the tier inside and the faults around it. Raises UsageError."""
    inner = next((value for name, value in spec.options if name == "inner"), None)
    if inner is None:
        raise UsageError(f"tier {spec.root}: a faulty tier needs the option 'inner', the kind inside")
    options = tuple((name[6:], value) for name, value in spec.options if name.startswith("inner."))
    unknown = [name for name, _ in spec.options if name not in ("inner", "fault") and not name.startswith("inner.")]
    if unknown:
        raise UsageError(f"tier {spec.root}: a faulty tier has no option {unknown[0]!r}")
    faults = tuple(_parse_fault(value) for name, value in spec.options if name == "fault")
    return TierSpec(kind=inner, root=spec.root, options=options), faults


def _parse_fault(text: str) -> Fault:
    step, _, rest = text.partition(":")
    effect, _, nth = rest.partition(":")
    try:
        return Fault(step=Step(step), effect=Effect(effect), nth=int(nth or 1))
    except ValueError:
        raise UsageError(
            f"fault {text!r} is not step:effect:nth",
            hint=f"steps are {', '.join(Step)}; effects are {', '.join(Effect)}",
        ) from None


def _crash_if(effect: Effect | None, step: Step) -> None:
    if effect is Effect.CRASH_AFTER:
        raise Crashed(f"after {step}")


def _spoilt(data: bytes, effect: Effect | None) -> bytes:
    if effect is Effect.FLIP and data:
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 0x01]) + data[middle + 1 :]
    return data[:-1] if effect is Effect.CUT else data
