"""The seekable zstd container: independent frames, and a table of them in a skippable frame at the end.

Knows frames, threads and checksums; never what the bytes mean. The format is the published one (zstd's
``contrib/seekable_format``), so ``zstd -d`` and other seekable readers open it. Our own records travel in further
skippable frames, which the table lists with a decompressed size of 0: readers of the format pass over them.

What is read back is hostile until proven: every size is bounded before memory is taken for it.
"""

from __future__ import annotations

import struct
import threading
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import zstandard
from blake3 import blake3

from lifecycle.errors import Damaged
from lifecycle.ports import ObjectReader, ObjectWriter

MAX_FRAME_BYTES: Final = 64 * 2**20  # of content; ours hold a tenth of it
MAX_WINDOW_BYTES: Final = 8 * 2**20  # what every decoder must accept (RFC 8878, section 3.1.1.1.2)
MIN_LEVEL: Final = 1
MAX_LEVEL: Final = 19  # above it windows grow past MAX_WINDOW_BYTES
SAMPLE_EVERY: Final = 64  # frames between two comparisons of ways to compress
SECOND_SAMPLE: Final = 8  # what a log begins with is often not what it is full of
LOOK_EVERY: Final = 16  # frames between two looks whether the text still compresses as the sample did
QUICK: Final = 0  # instead of a level: a search that remembers little, best on lines full of numbers

_FRAME_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_TABLE_MAGIC: Final = 0x184D2A5E
_FOOTER_MAGIC: Final = 0x8F92EAB1
_HAS_CHECKSUMS: Final = 0x80
_SKIPPABLE: Final = struct.Struct("<II")
_FOOTER: Final = struct.Struct("<IBI")
_ENTRY_BYTES: Final = 12
_CHECKSUM_OF_NOTHING: Final = 0x51D8E999  # low half of XXH64 of no bytes
_TAIL_BYTES: Final = 64 * 1024
# A table of 8 KiB forgets most of what it saw. Random digits then find no short matches that cost more than they save,
# and what repeats from line to line is still found: smaller than level 1 and 3 on such lines, and faster than level 1.
_QUICK_SEARCH: Final = zstandard.ZstdCompressionParameters(
    window_log=19,
    chain_log=11,
    hash_log=11,
    search_log=1,
    min_match=7,
    strategy=zstandard.STRATEGY_FAST,
    write_checksum=True,
    write_content_size=True,
)
_MAX_TABLE_BYTES: Final = 256 * 2**20

Buffer = bytes | memoryview


class SeekableWriter:
    """Compresses frames in ``threads`` threads (0: in the caller's) and writes them in order.

    ``level`` is the most effort that is spent. Now and then, and where the text has changed, a frame is compressed
    ``QUICK`` too, and where that is not larger the next frames are as well: on lines full of numbers it often wins, in
    half the time of level 3. The same frames give the same bytes, whatever the number of threads. At most
    ``threads + 1`` frames wait. ``close`` ends the threads, also after an error.
    """

    def __init__(self, out: ObjectWriter, *, level: int, threads: int) -> None:
        if not MIN_LEVEL <= level <= MAX_LEVEL:
            raise ValueError(f"zstd level {level} is not between {MIN_LEVEL} and {MAX_LEVEL}")
        self._out = out
        self._level = level
        self._chosen = level
        self._sampling: Future[bytes] | None = None
        self._frames = 0
        self._sampled = 0
        self._threads = threads
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="zstd") if threads else None
        self._waiting: deque[tuple[Future[bytes], int]] = deque()
        self._hasher = blake3()
        self._entries = array("I")
        self.size_bytes = 0

    def add_frame(self, raw: Buffer) -> None:
        """Take one frame's content, which must not change any more."""
        is_sample = self._is_sample(self._frames)
        if is_sample:
            self._sampled = self._frames
        self._frames += 1
        if self._pool is None:
            self._record(self._encode_sample(raw) if is_sample else self._encode(raw, self._chosen), len(raw))
            return
        while len(self._waiting) > self._threads or (self._waiting and self._waiting[0][0].done()):
            self._write_oldest()
        if is_sample:
            future = self._sampling = self._pool.submit(self._encode_sample, raw)
        else:
            if self._sampling is not None:
                self._sampling.result()  # what it chooses counts from this frame on
                self._sampling = None
            future = self._pool.submit(self._encode, raw, self._chosen)
        self._waiting.append((future, len(raw)))

    def add_skippable(self, magic: int, payload: bytes) -> int:
        """Write a frame that decoders pass over; returns the payload's position in the object."""
        self._drain()
        self._write(_SKIPPABLE.pack(magic, len(payload)) + payload)
        self._entries.extend((len(payload) + 8, 0, _CHECKSUM_OF_NOTHING))
        return self.size_bytes - len(payload)

    def frame_sizes(self) -> list[int]:
        """Content bytes of every frame so far, skippable ones as 0."""
        self._drain()
        return self._entries[1::3].tolist()

    def digest(self) -> bytes:
        """BLAKE3 of what is written so far."""
        self._drain()
        return self._hasher.digest()

    def finish(self) -> bytes:
        """Write the seek table; returns the BLAKE3 of the whole object."""
        self._drain()
        count = len(self._entries) // 3
        body = struct.pack(f"<{len(self._entries)}I", *self._entries)
        footer = _FOOTER.pack(count, _HAS_CHECKSUMS, _FOOTER_MAGIC)
        self._write(_SKIPPABLE.pack(_TABLE_MAGIC, len(body) + len(footer)) + body + footer)
        self.close()
        return self._hasher.digest()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _is_sample(self, frame: int) -> bool:
        if frame % SAMPLE_EVERY == 0 or frame == SECOND_SAMPLE:
            return True
        seen = frame - LOOK_EVERY
        if frame % LOOK_EVERY or seen <= self._sampled:
            return False
        while len(self._waiting) >= LOOK_EVERY:  # the frame to look at is the same for any number of threads
            self._write_oldest()
        sample, now = self._share(self._sampled), self._share(seen)
        return abs(now - sample) > sample / 8

    def _share(self, frame: int) -> float:
        """What is left of a frame after compressing, of 1."""
        return self._entries[3 * frame] / self._entries[3 * frame + 1]

    def _encode_sample(self, raw: Buffer) -> bytes:
        quick, full = self._encode(raw, QUICK), self._encode(raw, self._level)
        self._chosen = QUICK if len(quick) <= len(full) else self._level
        return quick if len(quick) <= len(full) else full

    def _encode(self, raw: Buffer, level: int) -> bytes:
        compressors = vars(self._local)
        compressor: zstandard.ZstdCompressor | None = compressors.get(f"level {level}")
        if compressor is None:
            compressor = compressors[f"level {level}"] = _compressor(level)
        return compressor.compress(raw)

    def _drain(self) -> None:
        while self._waiting:
            self._write_oldest()

    def _write_oldest(self) -> None:
        future, raw_bytes = self._waiting.popleft()
        self._record(future.result(), raw_bytes)

    def _record(self, frame: bytes, raw_bytes: int) -> None:
        # The table's checksum and the frame's own are the same 32 bits: the low half of XXH64 over the content.
        self._write(frame)
        self._entries.extend((len(frame), raw_bytes, int.from_bytes(frame[-4:], "little")))

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._hasher.update(data)
        self.size_bytes += len(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeekTable:
    """Where frames start, stored and decompressed. Both lists are one longer than ``count``."""

    starts: array[int]  # in the object
    raw_starts: array[int]  # in the decompressed stream
    checksums: array[int]
    table_bytes: int  # size of the table's own frame

    @property
    def count(self) -> int:
        return len(self.checksums)

    @property
    def raw_bytes(self) -> int:
        return self.raw_starts[-1]

    def raw_size(self, frame: int) -> int:
        return self.raw_starts[frame + 1] - self.raw_starts[frame]

    def frame_at(self, raw_offset: int) -> int:
        """The data frame that holds this byte of the stream; ``raw_offset`` must be below ``raw_bytes``."""
        return bisect_right(self.raw_starts, raw_offset) - 1


class SeekableReader:
    """Frames of one stored object by number. ``name`` is what messages call the object."""

    def __init__(self, reader: ObjectReader, name: str) -> None:
        self._reader = reader
        self.name = name
        self._local = threading.local()
        self._tail_at = max(0, reader.size_bytes - _TAIL_BYTES)
        self._tail = self._read(self._tail_at, reader.size_bytes - self._tail_at)
        self.table = self._read_table()

    def damaged(self, what: str) -> Damaged:
        return Damaged(
            f"archive {self.name}: {what}", hint="the archive is left as it is; restore it from a copy of the tier"
        )

    def stored(self, frame: int) -> bytes:
        """A frame as it lies in the object, compressed."""
        start = self.table.starts[frame]
        return self.read_stored(start, self.table.starts[frame + 1] - start)

    def read_stored(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` stored bytes; from the tail that opening has read, where it reaches that far."""
        if offset >= self._tail_at:
            at = offset - self._tail_at
            data = self._tail[at : at + length]
        else:
            data = self._read(offset, length)
        if len(data) != length:
            raise self.damaged(f"{length} bytes at {offset} were asked for and {len(data)} are there: it has been cut")
        return data

    def content(self, frame: int) -> bytes:
        """A data frame's content, checked against its own checksum and the table."""
        return self.decode(frame, self.stored(frame))

    def decode(self, frame: int, stored: bytes) -> bytes:
        """Decompress a frame within the table's bounds. Safe in any thread. Raises Damaged naming the frame."""
        raw_size = self.table.raw_size(frame)
        flaw = self._flaw(frame, stored, raw_size)
        if flaw is None:
            decoder: zstandard.ZstdDecompressor | None = getattr(self._local, "decoder", None)
            if decoder is None:
                decoder = self._local.decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
            try:
                raw = decoder.decompress(stored, max_output_size=raw_size, allow_extra_data=False)
            except zstandard.ZstdError as error:
                flaw = str(error)
            else:
                if len(raw) == raw_size:
                    return raw
                flaw = f"it holds {len(raw)} bytes and the seek table says {raw_size}"
        raise self.damaged(f"frame {frame} at byte {self.table.starts[frame]}: {flaw}")

    def iter_frames(self, first: int, end: int, *, threads: int) -> Iterator[tuple[int, bytes, bytes]]:
        """Frames ``first`` to ``end`` (exclusive) in order: number, stored bytes, content (empty for skippable ones).

        ``threads`` decompress ahead of the caller; at most ``threads + 1`` frames are held.
        """
        if threads == 0:
            for frame in range(first, end):
                stored = self.stored(frame)
                yield frame, stored, self.decode(frame, stored) if self.table.raw_size(frame) else b""
            return
        pool = ThreadPoolExecutor(threads, thread_name_prefix="unzstd")
        waiting: deque[tuple[int, bytes, Future[bytes] | None]] = deque()
        try:
            for frame in range(first, end):
                stored = self.stored(frame)
                has_content = self.table.raw_size(frame) > 0
                waiting.append((frame, stored, pool.submit(self.decode, frame, stored) if has_content else None))
                if len(waiting) > threads:
                    yield _settled(waiting.popleft())
            while waiting:
                yield _settled(waiting.popleft())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def skippable(self, frame: int, magic: int) -> bytes:
        """The payload of a skippable frame that must have this magic number. Raises Damaged."""
        stored = self.stored(frame)
        if self.table.raw_size(frame) or len(stored) < 8 or _SKIPPABLE.unpack_from(stored) != (magic, len(stored) - 8):
            raise self.damaged(f"frame {frame} at byte {self.table.starts[frame]} is not the record expected there")
        if self.table.checksums[frame] != _CHECKSUM_OF_NOTHING:
            raise self.damaged(f"frame {frame}: the seek table has another checksum")
        return stored[8:]

    def _flaw(self, frame: int, stored: bytes, raw_size: int) -> str | None:
        if stored[:4] != _FRAME_MAGIC:
            return "it is no zstd frame"
        try:
            facts = zstandard.get_frame_parameters(stored)
        except zstandard.ZstdError as error:
            return str(error)
        if facts.window_size > MAX_WINDOW_BYTES:
            return f"it asks for a window of {facts.window_size} bytes, {MAX_WINDOW_BYTES} are allowed"
        if facts.content_size != raw_size:
            return f"its header says {facts.content_size} bytes and the seek table {raw_size}"
        if not facts.has_checksum or facts.dict_id:
            return "it has no checksum or needs a dictionary"
        if int.from_bytes(stored[-4:], "little") != self.table.checksums[frame]:
            return "its checksum and that of the seek table differ"
        return None

    def _read(self, offset: int, length: int) -> bytes:
        return self._reader.read_range(offset, length)

    def _read_table(self) -> SeekTable:
        size = self._reader.size_bytes
        no_table = "no seek table at its end: it has been cut, or something follows it"
        if len(self._tail) < _FOOTER.size + 8:
            raise self.damaged(no_table)
        count, descriptor, magic = _FOOTER.unpack(self._tail[-_FOOTER.size :])
        table_bytes = 8 + count * _ENTRY_BYTES + _FOOTER.size
        if magic != _FOOTER_MAGIC or descriptor != _HAS_CHECKSUMS or table_bytes > min(size, _MAX_TABLE_BYTES):
            raise self.damaged(no_table)
        frame = self.read_stored(size - table_bytes, table_bytes)
        if _SKIPPABLE.unpack_from(frame) != (_TABLE_MAGIC, table_bytes - 8):
            raise self.damaged(no_table)
        entries = struct.unpack_from(f"<{count * 3}I", frame, 8)
        starts, raw_starts = _running_sums(entries[0::3]), _running_sums(entries[1::3])
        if starts[-1] + table_bytes != size:
            raise self.damaged(f"its seek table covers {starts[-1] + table_bytes} bytes and it has {size}")
        if max(entries[1::3], default=0) > MAX_FRAME_BYTES:
            raise self.damaged(f"a frame claims {max(entries[1::3])} bytes of content, {MAX_FRAME_BYTES} are allowed")
        if min(entries[0::3], default=8) < 8:
            raise self.damaged("its seek table lists a frame that is too short to be one")
        return SeekTable(
            starts=starts, raw_starts=raw_starts, checksums=array("I", entries[2::3]), table_bytes=table_bytes
        )


def readable_bytes(reader: ObjectReader) -> int:
    """How many bytes of the stream can be decoded from the front, seek table or not: what a cut object still has."""
    decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    whole = position = 0
    try:
        while position < reader.size_bytes:
            frame, in_frame = decoder.decompressobj(), 0
            while not frame.eof:
                piece = reader.read_range(position, _TAIL_BYTES)
                if not piece:
                    return whole
                in_frame += len(frame.decompress(piece))
                position += len(piece) - len(frame.unused_data)
            whole += in_frame
    except zstandard.ZstdError:
        pass
    return whole


def _compressor(level: int) -> zstandard.ZstdCompressor:
    if level == QUICK:
        return zstandard.ZstdCompressor(compression_params=_QUICK_SEARCH)
    return zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)


def _settled(item: tuple[int, bytes, Future[bytes] | None]) -> tuple[int, bytes, bytes]:
    frame, stored, future = item
    return frame, stored, future.result() if future is not None else b""


def _running_sums(sizes: tuple[int, ...]) -> array[int]:
    sums = array("Q", [0])
    total = 0
    for size in sizes:
        total += size
        sums.append(total)
    return sums
