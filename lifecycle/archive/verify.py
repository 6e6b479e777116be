"""Proving that a stored object holds what was written, by reading all of it again.

``verify_archive`` compares with what the writer recorded, before anything is released. ``check_archive`` has nothing
but the archive: frame checksums, digests and structure prove that it is whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from lifecycle.archive.manifest import Form
from lifecycle.archive.reader import ArchiveReader, open_archive
from lifecycle.archive.seekable import readable_bytes
from lifecycle.archive.tar import BLOCK
from lifecycle.archive.writer import ArchiveFacts
from lifecycle.errors import Damaged
from lifecycle.names import show_name
from lifecycle.ports import ObjectReader

_MAGIC_BEFORE: Final = BLOCK - 257  # of a header's magic, before the content it stands for


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extents:
    """Members' content in the decompressed stream, and its digests."""

    offsets: Sequence[int]
    sizes: Sequence[int]
    digests: Sequence[bytes]


def verify_archive(
    reader: ObjectReader,
    facts: ArchiveFacts,
    *,
    name: str = "object",
    threads: int = 1,
    names: Sequence[bytes] | None = None,
) -> None:
    """Read every frame back and compare all of it with ``facts``. Raises Damaged naming what differs.

    ``names`` are the members' paths for messages, where the manifest may be what is damaged. ``reader`` stays open.
    """
    if reader.size_bytes != facts.size_bytes:
        flaw = f"archive {name}: has {reader.size_bytes} bytes and {facts.size_bytes} were written"
        raise Damaged(flaw + _first_broken(reader, facts, names))
    archive = open_archive(reader, name=name, owns_reader=False)
    table, damaged = archive.table, archive.frames.damaged
    if archive.form is not facts.form or table.raw_bytes != facts.stream_bytes:
        raise damaged(f"its stream has {table.raw_bytes} bytes and {facts.stream_bytes} were written")
    if archive.index.manifest_digest != facts.manifest_digest:
        raise damaged("its manifest is another one than was written")
    extents = _Extents(offsets=facts.offsets, sizes=facts.sizes, digests=facts.digests)
    digest = _check_stream(archive, extents, threads=threads, names=names)
    if digest != facts.digest:
        raise damaged("its digest differs from what was written")


def check_archive(reader: ObjectReader, *, name: str = "object", threads: int = 1) -> bytes:
    """Read an archive against its own manifest; returns the object's BLAKE3. Raises Damaged naming what differs."""
    archive = open_archive(reader, name=name, owns_reader=False)
    members = archive.manifest.members
    extents = _Extents(
        offsets=[member.offset for member in members],
        sizes=[member.facts.size for member in members],
        digests=[member.digest for member in members],
    )
    data_frames = range(archive.index.data_frames - (archive.form is Form.TAR))
    if archive.manifest.frame_bytes != tuple(archive.table.raw_size(frame) for frame in data_frames):
        raise archive.frames.damaged("its frames are not those that its manifest lists")
    return _check_stream(archive, extents, threads=threads, names=None)


def _check_stream(archive: ArchiveReader, extents: _Extents, *, threads: int, names: Sequence[bytes] | None) -> bytes:
    """Every frame, every member, the manifest; the object's BLAKE3."""
    hasher = _FrameHasher(archive.table.count - 1)
    try:
        _check_members(archive, extents, _hashed_frames(archive, hasher, threads), names)
    except _FrameDamage as damage:
        raise archive.frames.damaged(damage.what + _members_near(archive, damage.frame, extents, names)) from None
    if blake3(archive.manifest_bytes()).digest() != archive.index.manifest_digest:
        raise archive.frames.damaged("its manifest's digest differs")
    if hasher.before_index != archive.index.stored_digest:
        raise archive.frames.damaged("its stored bytes are not those that were written, though its content is")
    table = archive.table
    hasher.all.update(archive.frames.read_stored(table.starts[-1], table.table_bytes))
    return hasher.all.digest()


class _FrameHasher:
    """BLAKE3 over stored frames, with its value in front of the last one, which is the index."""

    def __init__(self, index_frame: int) -> None:
        self._index_frame = index_frame
        self.all = blake3()
        self.before_index = b""

    def add(self, frame: int, stored: bytes) -> None:
        if frame == self._index_frame:
            self.before_index = self.all.digest()
        self.all.update(stored)


class _FrameDamage(Exception):
    def __init__(self, frame: int, what: str) -> None:
        super().__init__(what)
        self.frame = frame
        self.what = what


def _hashed_frames(archive: ArchiveReader, hasher: _FrameHasher, threads: int) -> Iterator[bytes]:
    frames = archive.frames.iter_frames(0, archive.table.count, threads=threads)
    frame = -1
    while True:
        try:
            frame, stored, content = next(frames)
        except StopIteration:
            return
        except Damaged as error:
            raise _FrameDamage(frame + 1, error.message.partition(": ")[2]) from None
        hasher.add(frame, stored)
        if content:
            yield content


def _check_members(
    archive: ArchiveReader, extents: _Extents, contents: Iterator[bytes], names: Sequence[bytes] | None
) -> None:
    """One walk along members and frames together; a member that spans frames is hashed piece by piece."""
    start, number = 0, 0
    offsets, sizes, digests = extents.offsets, extents.sizes, extents.digests
    count = len(offsets)
    begun: blake3 | None = None
    is_tar = archive.form is Form.TAR
    for content in contents:
        view, end = memoryview(content), start + len(content)
        while (number < count and offsets[number] < end) or begun is not None:
            at = offsets[number] - start
            if begun is None and at + sizes[number] <= len(content):  # the common case: all of it in one frame
                found = blake3(view[at : at + sizes[number]]).digest()
            else:
                begun = blake3() if begun is None else begun
                begun.update(view[max(at, 0) : at + sizes[number]])
                if offsets[number] + sizes[number] > end:
                    break
                found, begun = begun.digest(), None
            if found != digests[number]:
                raise archive.frames.damaged(f"{_shown(archive, number, names)}: the content's digest differs")
            if is_tar and at >= BLOCK and content[at - _MAGIC_BEFORE : at - _MAGIC_BEFORE + 5] != b"ustar":
                raise archive.frames.damaged(f"{_shown(archive, number, names)}: no tar header before it")
            number += 1
        start = end
    if number < count and (any(sizes[number:]) or digests[number] != blake3().digest()):
        raise archive.frames.damaged(f"{_shown(archive, number, names)}: the stream ends before it does")


def _shown(archive: ArchiveReader, number: int, names: Sequence[bytes] | None) -> str:
    return f"member {show_name(names[number] if names else archive.manifest.members[number].facts.path)}"


def _members_near(archive: ArchiveReader, frame: int, extents: _Extents, names: Sequence[bytes] | None) -> str:
    """``; it holds member a/b.log and 3 more``, or nothing where nobody can tell."""
    if frame >= archive.table.count or not archive.table.raw_size(frame):
        return ""
    start, end = archive.table.raw_starts[frame], archive.table.raw_starts[frame + 1]
    inside = [
        number
        for number, (offset, size) in enumerate(zip(extents.offsets, extents.sizes, strict=True))
        if offset < end and offset + size > start
    ]
    try:
        shown = _shown(archive, inside[0], names) if inside else "the manifest"
    except Damaged:
        return ""
    return f"; it holds {shown}" + (f" and {len(inside) - 1} more" if len(inside) > 1 else "")


def _first_broken(reader: ObjectReader, facts: ArchiveFacts, names: Sequence[bytes] | None) -> str:
    """``; member a/b.log is the first that is not whole``, found without a seek table by decoding from the front."""
    whole = readable_bytes(reader)
    for number, (offset, size) in enumerate(zip(facts.offsets, facts.sizes, strict=True)):
        if names and offset + size > whole:
            return f"; member {show_name(names[number])} is the first that is not whole"
    return "; all its members are whole" if whole >= facts.stream_bytes else ""
