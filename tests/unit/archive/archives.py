"""Small archives for tests: made in memory by the real writers, and readers that count what is asked of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from lifecycle.archive import ArchiveContext, ArchiveFacts, ArchiveWriter, MemberFacts, SingleWriter
from lifecycle.model import Labels
from tests.builders import NOON_NS

CONTEXT: Final = ArchiveContext(
    catalog_id="catalog-1",
    place_uid="place-warm",
    team="vision",
    class_name="training",
    day=20_513,
    created_ns=NOON_NS,
    gid=1000,
    mode=0o640,
)


def a_context(**overrides: Any) -> ArchiveContext:
    return replace(CONTEXT, **overrides)


def a_member(path: bytes = b"train-1/rank_0.log", data: bytes = b"", **overrides: Any) -> MemberFacts:
    facts = MemberFacts(
        segment_id=1,
        path=path,
        source="lustre",
        source_uid="place-1",
        size=len(data),
        mtime_ns=NOON_NS - 123_456_789,
        mode=0o640,
        uid=1000,
        gid=1000,
        labels=Labels(team="vision", job="train-1", rank=0),
        class_name="training",
        last_write_ns=NOON_NS - 123_456_789,
    )
    return facts._replace(**overrides)


def log_lines(size: int, seed: int = 1) -> bytes:
    """Exactly ``size`` bytes of lines that compress about as logs do."""
    source = random.Random(seed)
    lines = (
        b"2026-03-01T12:%02d:%02d INFO step=%d loss=%.5f\n" % (step // 60 % 60, step % 60, step, source.random())
        for step in range(size // 40 + 2)
    )
    text = b"".join(lines)[:size]
    return text[:-1] + b"\n" if text else text


class Store:
    """What an ObjectWriter is to the archive writers, and an ObjectReader of what they wrote."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.ranges: list[tuple[int, int]] = []
        self.is_closed = False

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self.data += data

    def read_range(self, offset: int, length: int) -> bytes:
        self.ranges.append((offset, length))
        return bytes(self.data[offset : offset + length])

    def close(self) -> None:
        self.is_closed = True

    def seal(self) -> Store:
        return self

    def publish(self) -> None:
        raise AssertionError("an archive writer never publishes")

    def abort(self) -> None:
        raise AssertionError("an archive writer never aborts: the object is its caller's")


def write_tar(
    members: Sequence[tuple[MemberFacts, bytes]],
    *,
    frame_bytes: int = 4096,
    threads: int = 0,
    level: int = 3,
    context: ArchiveContext = CONTEXT,
) -> tuple[bytes, ArchiveFacts]:
    store = Store()
    with ArchiveWriter(store, level=level, threads=threads, frame_bytes=frame_bytes, context=context) as writer:
        for facts, data in members:
            writer.add_member(facts, data)
        written = writer.finish()
    return bytes(store.data), written


def write_single(
    data: bytes, *, frame_bytes: int = 4096, threads: int = 0, level: int = 3, chunk: int = 1000, **overrides: Any
) -> tuple[bytes, ArchiveFacts]:
    store = Store()
    with SingleWriter(store, level=level, threads=threads, frame_bytes=frame_bytes, context=CONTEXT) as writer:
        facts = a_member(data=data, **overrides)
        writer.add_stream(facts, (data[at : at + chunk] for at in range(0, len(data), chunk)))
        written = writer.finish()
    return bytes(store.data), written


def some_members(count: int = 8, size: int = 1500) -> list[tuple[MemberFacts, bytes]]:
    """Members of different sizes, an empty one among them."""
    contents = [log_lines(size * (number % 4), seed=number) for number in range(count)]
    return [
        (a_member(b"train-1/node-%d/rank_%d.log" % (number % 3, number), data, segment_id=number), data)
        for number, data in enumerate(contents)
    ]
