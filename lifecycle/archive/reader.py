"""Reading an archive: its manifest, one member by ranged reads of the frames it needs, or all of them in one pass.

Knows the archive format; never where the object lies or who asks. Input is hostile until its checksum and digest say
otherwise: output is bounded by the seek table and the manifest, and a member name that leads out of its folder makes
the archive Damaged. Content is yielded before its digest is known; use it only once the iterator has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import NamedTuple, Self

from blake3 import blake3

from lifecycle.archive.manifest import (
    INDEX_MAGIC,
    MANIFEST_MAGIC,
    Form,
    IndexRecord,
    Manifest,
    ManifestError,
    MemberFacts,
    StoredMember,
    decode_index,
    decode_manifest,
)
from lifecycle.archive.seekable import SeekableReader, SeekTable
from lifecycle.errors import Damaged
from lifecycle.names import show_name
from lifecycle.ports import ObjectReader


class ReadMember(NamedTuple):
    """A member met on the way through: read ``chunks`` before going on to the next one, or do not read it at all."""

    number: int  # in the manifest
    facts: MemberFacts
    digest: bytes
    chunks: Iterator[bytes]


def open_archive(reader: ObjectReader, *, name: str = "object", owns_reader: bool = True) -> ArchiveReader:
    """Open an archive of either form. ``name`` is what messages call it. Raises Damaged.

    Takes one ranged read. The manifest is read when it is first asked for.
    """
    try:
        frames = SeekableReader(reader, name)
        return ArchiveReader(reader, frames, _read_index(frames), owns_reader=owns_reader)
    except BaseException:
        if owns_reader:
            reader.close()
        raise


class ArchiveReader:
    def __init__(self, reader: ObjectReader, frames: SeekableReader, index: IndexRecord, *, owns_reader: bool) -> None:
        self._reader = reader
        self._frames = frames
        self._index = index
        self._owns_reader = owns_reader
        self._held: tuple[int, bytes] | None = None  # the frame read last: neighbours share it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._owns_reader:
            self._reader.close()

    @property
    def form(self) -> Form:
        return self._index.form

    @property
    def index(self) -> IndexRecord:
        return self._index

    @property
    def table(self) -> SeekTable:
        return self._frames.table

    @property
    def frames(self) -> SeekableReader:
        return self._frames

    @cached_property
    def manifest(self) -> Manifest:
        """Raises Damaged when it is not what the index record says, or says what cannot be."""
        raw = self.manifest_bytes()
        if blake3(raw).digest() != self._index.manifest_digest:
            raise self._frames.damaged("its manifest's digest differs")
        try:
            manifest = decode_manifest(raw, stream_bytes=self._content_bytes())
        except ManifestError as error:
            raise self._frames.damaged(f"its manifest: {error}") from None
        if manifest.form is not self._index.form or (len(manifest.members) != 1 and manifest.form is Form.SINGLE):
            raise self._frames.damaged("its manifest is of another form of archive")
        return manifest

    def read_member(self, index: int) -> Iterator[bytes]:
        """One member's content by its number in the manifest. Raises Damaged, at the latest at the end."""
        member = self.manifest.members[index]
        return self.read_at(member.offset, member.facts.size, digest=member.digest, member=member.facts.path)

    def read_at(
        self, offset: int, size: int, *, digest: bytes | None = None, member: bytes | None = None
    ) -> Iterator[bytes]:
        """Content at a place of the stream that the catalog knows, without the manifest. ``member`` is for messages.

        With a digest the last chunk is followed by Damaged if the content is another one.
        """
        shown = f"member {show_name(member)}: " if member is not None else ""
        if offset < 0 or size < 0 or offset + size > self.table.raw_bytes:
            raise self._frames.damaged(f"{shown}bytes {offset} to {offset + size} are not in it")
        hasher = blake3()
        for chunk in self._ranges(offset, size, shown):
            hasher.update(chunk)
            yield chunk
        if digest is not None and hasher.digest() != digest:
            raise self._frames.damaged(f"{shown}the content's digest differs")

    def iter_members(self, wanted: Collection[int] | None = None, *, threads: int = 0) -> Iterator[ReadMember]:
        """Members in stored order, each frame decompressed once; frames nobody wants are not read.

        ``wanted`` are numbers in the manifest; None means all. Each member's digest is checked at its end.
        """
        members = self.manifest.members
        numbers = sorted(range(len(members)) if wanted is None else wanted)
        cursor = _Cursor(self, [members[number] for number in numbers], threads)
        try:
            for number in numbers:
                member = members[number]
                yield ReadMember(number, member.facts, member.digest, cursor.read(member))
        finally:
            cursor.close()

    def _ranges(self, offset: int, size: int, shown: str) -> Iterator[bytes]:
        end = offset + size
        while offset < end:
            frame = self.table.frame_at(offset)
            content = self._content(frame, shown)
            start = offset - self.table.raw_starts[frame]
            chunk = content[start : start + end - offset]
            offset += len(chunk)
            yield chunk

    def _content(self, frame: int, shown: str) -> bytes:
        if self._held is not None and self._held[0] == frame:
            return self._held[1]
        self._held = None
        try:
            content = self._frames.content(frame)
        except Damaged as error:
            raise self._frames.damaged(f"{shown}{error.message.partition(': ')[2]}") from None if shown else error
        self._held = (frame, content)
        return content

    def _content_bytes(self) -> int:
        """Where members must end: before the manifest."""
        return self._index.manifest_offset if self._index.form is Form.TAR else self.table.raw_bytes

    def manifest_bytes(self) -> bytes:
        """The manifest document as it stands; its digest is not checked here."""
        record, table = self._index, self.table
        if record.form is Form.SINGLE:
            frame = table.count - 2
            payload = self._frames.skippable(frame, MANIFEST_MAGIC) if frame >= 0 else b""
            if table.starts[frame] + 8 != record.manifest_offset or len(payload) != record.manifest_size:
                raise self._frames.damaged("its manifest is not where the index record says")
            return payload
        end = record.manifest_offset + record.manifest_size
        if not table.raw_starts[table.count - 2] <= record.manifest_offset <= end <= table.raw_bytes:
            raise self._frames.damaged("its manifest is not where the index record says")
        return b"".join(self._ranges(record.manifest_offset, record.manifest_size, "manifest: "))


class _Cursor:
    """One pass over the frames that some members need."""

    def __init__(self, archive: ArchiveReader, members: list[StoredMember], threads: int) -> None:
        self._archive = archive
        self._table = archive.table
        self._frames = archive.frames
        self._threads = threads
        self._runs = _runs_of_frames(self._table, members)
        self._source: Iterator[tuple[int, bytes, bytes]] = iter(())
        self._frame, self._content = -1, b""

    def read(self, member: StoredMember) -> Iterator[bytes]:
        shown = f"member {show_name(member.facts.path)}: "
        hasher = blake3()
        offset, end = member.offset, member.offset + member.facts.size
        while offset < end:
            frame = self._table.frame_at(offset)
            self._advance(frame, shown)
            start = offset - self._table.raw_starts[frame]
            chunk = self._content[start : start + end - offset]
            offset += len(chunk)
            hasher.update(chunk)
            yield chunk
        if hasher.digest() != member.digest:
            raise self._frames.damaged(f"{shown}the content's digest differs")

    def close(self) -> None:
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def _advance(self, frame: int, shown: str) -> None:
        if frame < self._frame:
            raise ValueError("members are read in stored order")
        while self._frame < frame:
            try:
                self._frame, _, self._content = next(self._source)
            except StopIteration:
                self.close()
                first, last = next(self._runs)
                if last < frame:
                    continue
                self._source = self._frames.iter_frames(max(first, frame), last + 1, threads=self._threads)
            except Damaged as error:
                raise self._frames.damaged(f"{shown}{error.message.partition(': ')[2]}") from None


def _runs_of_frames(table: SeekTable, members: list[StoredMember]) -> Iterator[tuple[int, int]]:
    """Stretches of neighbouring frames, first and last, that hold the members' content."""
    run: tuple[int, int] | None = None
    for member in members:
        if not member.facts.size:
            continue
        first = table.frame_at(member.offset)
        last = table.frame_at(member.offset + member.facts.size - 1)
        if run is not None and first > run[1] + 1:
            yield run
            run = None
        run = (first, last) if run is None else (run[0], max(run[1], last))
    if run is not None:
        yield run


def _read_index(frames: SeekableReader) -> IndexRecord:
    table = frames.table
    if not table.count:
        raise frames.damaged("it has no frames")
    try:
        record = decode_index(frames.skippable(table.count - 1, INDEX_MAGIC))
    except ManifestError as error:
        raise frames.damaged(str(error)) from None
    skippable = 1 if record.form is Form.TAR else 2
    if record.data_frames + skippable != table.count:
        raise frames.damaged(f"it has {table.count - skippable} data frames and was written with {record.data_frames}")
    if any(table.raw_size(frame) == 0 for frame in range(record.data_frames)):
        raise frames.damaged("an empty frame is among its data")
    return record
