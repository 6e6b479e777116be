"""The container: order, bounds and levels when writing; nothing believed when reading."""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Callable

import pytest
import zstandard

from lifecycle.archive.seekable import (
    LOOK_EVERY,
    MAX_FRAME_BYTES,
    MAX_WINDOW_BYTES,
    QUICK,
    SAMPLE_EVERY,
    SECOND_SAMPLE,
    SeekableReader,
    SeekableWriter,
    readable_bytes,
)
from lifecycle.errors import Damaged
from tests.unit.archive.archives import Store, log_lines

_OURS = 0x184D2A5A


def write(frames: list[bytes], *, threads: int = 0, level: int = 3) -> bytes:
    store = Store()
    writer = SeekableWriter(store, level=level, threads=threads)
    for frame in frames:
        writer.add_frame(frame)
    writer.finish()
    return bytes(store.data)


def container(frames: list[tuple[bytes, int]], *, descriptor: int = 0x80) -> Store:
    """Stored frames as they are, each with the content size that the seek table claims for it."""
    body = b"".join(
        struct.pack("<III", len(stored), claimed, int.from_bytes(stored[-4:], "little")) for stored, claimed in frames
    )
    table = (
        struct.pack("<II", 0x184D2A5E, len(body) + 9) + body + struct.pack("<IBI", len(frames), descriptor, 0x8F92EAB1)
    )
    return Store(b"".join(stored for stored, _ in frames) + table)


def compress(content: bytes, **options: object) -> bytes:
    return zstandard.ZstdCompressor(**{"write_checksum": True, **options}).compress(content)


def quick(content: bytes) -> bytes:
    return SeekableWriter(Store(), level=1, threads=0)._encode(content, QUICK)


def frame_bytes(data: bytes) -> int:
    """Stored bytes of all frames, without the table."""
    return SeekableReader(Store(data), "a").table.starts[-1]


def prose(size: int, seed: int = 1) -> bytes:
    """Words in any order: what a quick search is bad at."""
    source = random.Random(seed)
    words = [bytes(source.choices(b"abcdefghij", k=source.randint(3, 9))) for _ in range(3000)]
    return b" ".join(source.choices(words, k=size // 5))[:size]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_frames_come_back_in_order_whatever_the_threads(threads: int) -> None:
    frames = [log_lines(5000, seed=number) for number in range(20)]
    data = write(frames, threads=threads)
    assert data == write(frames)
    reader = SeekableReader(Store(data), "a")
    assert [reader.content(frame) for frame in range(reader.table.count)] == frames
    assert [content for _, _, content in reader.iter_frames(3, 9, threads=threads)] == frames[3:9]


def test_no_more_frames_wait_than_there_are_threads_plus_one() -> None:
    gate, waiting = threading.Event(), []

    class Slow(SeekableWriter):
        def _encode(self, raw: bytes | memoryview, level: int) -> bytes:
            gate.wait(10)
            return super()._encode(raw, level)

    writer = Slow(Store(), level=1, threads=2)
    gate.set()
    writer.add_frame(b"x" * 100)  # a sample, which the next frame waits for
    writer.frame_sizes()
    gate.clear()
    feeder = threading.Thread(target=lambda: [(writer.add_frame(b"x" * 100), waiting.append(1)) for _ in range(6)])
    feeder.start()
    deadline = time.monotonic() + 10
    while len(waiting) < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    feeder.join(0.05)
    assert len(waiting) == 3
    gate.set()
    feeder.join(10)
    writer.finish()
    assert len(waiting) == 6


def test_an_error_of_the_store_reaches_the_caller_and_ends_the_threads() -> None:
    class Full(Store):
        def write(self, data: bytes | bytearray | memoryview, /) -> None:
            raise OSError("no space")

    writer = SeekableWriter(Full(), level=3, threads=2)
    with pytest.raises(OSError, match="no space"):
        for _ in range(10):
            writer.add_frame(b"x" * 10_000)
    writer.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("zstd")]


def test_the_level_given_is_a_ceiling_and_a_sample_may_go_below_it() -> None:
    # Lines full of random figures: level 1 is known to be smaller than level 3 here, and the quick search than both.
    frames = [log_lines(300_000, seed=number) for number in range(4)]
    sizes = {level: sum(len(compress(frame, level=level)) for frame in frames) for level in (1, 3)}
    assert sizes[1] <= sizes[3]
    for level in (1, 3):
        assert frame_bytes(write(frames, level=level)) < sizes[1]


@pytest.mark.parametrize("make", [lambda seed: log_lines(300_000, seed=seed), lambda seed: prose(300_000, seed=seed)])
def test_no_kind_of_text_is_larger_than_at_the_level_given(make: Callable[[int], bytes]) -> None:
    frames = [make(number) for number in range(4)]
    assert frame_bytes(write(frames)) <= sum(len(compress(frame, level=3)) for frame in frames)


def test_a_log_that_begins_unlike_the_rest_of_it_is_looked_at_again_soon() -> None:
    frames = [log_lines(100_000)] + [prose(100_000, seed=number) for number in range(SECOND_SAMPLE + 20)]
    wrong = len(compress(frames[0])) + sum(len(quick(frame)) for frame in frames[1:])
    right = len(compress(frames[0])) + sum(len(compress(frame, level=3)) for frame in frames[1:])
    assert right < frame_bytes(write(frames)) < right + (wrong - right) // 2


@pytest.mark.parametrize("threads", [0, 3, LOOK_EVERY + 3])
def test_text_that_turns_into_another_is_looked_at_again_long_before_its_time(threads: int) -> None:
    numbers = [log_lines(20_000, seed=number) for number in range(SECOND_SAMPLE + 4)]
    words = [prose(20_000, seed=number) for number in range(SAMPLE_EVERY - len(numbers))]
    data = write(numbers + words, threads=threads)
    wrong, right = sum(len(quick(frame)) for frame in words), sum(len(compress(frame, level=3)) for frame in words)
    assert frame_bytes(data) - sum(len(quick(frame)) for frame in numbers) < right + (wrong - right) * 2 // 3
    assert data == write(numbers + words)


def test_where_effort_pays_the_level_given_is_used() -> None:
    words = [bytes([65 + number % 26]) * (number % 11 + 2) for number in range(300)]
    frame = b" ".join(words[number * number % 300] for number in range(60_000))
    assert len(compress(frame, level=19)) < len(compress(frame, level=1))
    assert len(write([frame] * (SAMPLE_EVERY + 2), level=19)) < len(write([frame] * (SAMPLE_EVERY + 2), level=1))


@pytest.mark.parametrize("level", [0, -1, 20])
def test_levels_whose_windows_stock_decoders_refuse_are_refused(level: int) -> None:
    with pytest.raises(ValueError, match="level"):
        SeekableWriter(Store(), level=level, threads=0)


def test_windows_stay_within_what_every_decoder_accepts() -> None:
    data = write([log_lines(2**16) * 150], level=19)
    assert zstandard.get_frame_parameters(data).window_size <= MAX_WINDOW_BYTES


def test_a_frame_that_holds_more_than_the_table_says_is_not_decompressed() -> None:
    bomb = compress(bytes(200 * 2**20))
    with pytest.raises(Damaged, match=r"archive a: frame 0 at byte 0: its header says 209715200 bytes"):
        SeekableReader(container([(bomb, 1000)]), "a").content(0)


def test_a_table_that_claims_huge_frames_is_refused_at_once() -> None:
    with pytest.raises(Damaged, match="are allowed"):
        SeekableReader(container([(compress(b"x" * 100), MAX_FRAME_BYTES + 1)]), "a")


def test_a_frame_that_does_not_say_its_size_is_bounded_by_none_and_refused() -> None:
    frame = compress(bytes(1000), write_content_size=False)
    with pytest.raises(Damaged, match="frame 0"):
        SeekableReader(container([(frame, 1000)]), "a").content(0)


def test_a_frame_with_a_huge_window_is_refused() -> None:
    options = zstandard.ZstdCompressionParameters.from_level(1, window_log=27, write_checksum=True)
    compressor = zstandard.ZstdCompressor(compression_params=options).compressobj(size=20 * 2**20)
    frame = compressor.compress(bytes(20 * 2**20)) + compressor.flush()
    assert zstandard.get_frame_parameters(frame).window_size > MAX_WINDOW_BYTES
    with pytest.raises(Damaged, match="window"):
        SeekableReader(container([(frame, 20 * 2**20)]), "a").content(0)


def test_a_frame_without_its_checksum_is_refused() -> None:
    frame = compress(b"x" * 1000, write_checksum=False)
    with pytest.raises(Damaged, match="checksum"):
        SeekableReader(container([(frame, 1000)]), "a").content(0)


def test_two_frames_in_one_entry_are_never_read_as_the_first_of_them() -> None:
    both = compress(b"x" * 1000) + compress(b"x" * 1000)
    with pytest.raises(Damaged, match="frame 0"):
        SeekableReader(container([(both, 1000)]), "a").content(0)


def test_frames_that_changed_places_are_noticed() -> None:
    one, two = compress(b"a" * 1000), compress(b"b" * 1000)
    store = container([(one, 1000), (two, 1000)])
    store.data[: len(one) + len(two)] = two + one
    reader = SeekableReader(store, "a")
    with pytest.raises(Damaged, match="frame 0"):
        reader.content(0)


def test_ten_junk_bytes_at_the_end_are_damage() -> None:
    with pytest.raises(Damaged, match="archive a: no seek table at its end"):
        SeekableReader(Store(write([b"x" * 100]) + b"0123456789"), "a")


@pytest.mark.parametrize("size", [0, 1, 8, 16, 17])
def test_what_is_too_short_to_be_an_archive_is_damage(size: int) -> None:
    with pytest.raises(Damaged, match="archive a"):
        SeekableReader(Store(b"\0" * size), "a")


def test_reserved_bits_of_the_table_are_damage() -> None:
    with pytest.raises(Damaged):
        SeekableReader(container([(compress(b"x" * 100), 100)], descriptor=0x84), "a")


def test_a_table_larger_than_the_tail_that_is_read_first_is_read_whole() -> None:
    frames = [b"%08d" % number for number in range(7000)]
    reader = SeekableReader(Store(write(frames, level=1)), "a")
    assert reader.table.table_bytes > 64 * 1024
    assert reader.content(6999) == frames[6999]
    assert reader.table.frame_at(8 * 1234 + 7) == 1234


def test_opening_takes_one_read() -> None:
    store = Store(write([log_lines(100_000)] * 3))
    SeekableReader(store, "a")
    assert len(store.ranges) == 1


def test_what_can_be_decoded_from_the_front_is_counted_without_a_table() -> None:
    store = Store()
    writer = SeekableWriter(store, level=3, threads=0)
    writer.add_frame(b"a" * 1000)
    writer.add_skippable(_OURS, b"passed over")
    writer.add_frame(b"b" * 500)
    end_of_frames = writer.size_bytes
    writer.finish()
    data = bytes(store.data)
    assert readable_bytes(Store(data)) == 1500
    assert readable_bytes(Store(data[: end_of_frames - 1])) == 1000
    assert readable_bytes(Store(b"junk" + data)) == 0
