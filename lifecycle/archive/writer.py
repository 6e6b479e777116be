"""Writing an archive: members into frames, a manifest as the last one, index record and seek table behind it.

Knows the archive format; never which segments belong together, where the object lies, or what becomes of it.
An archive without a finished manifest is not an archive: whoever stops half-way aborts the object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, Self

from blake3 import blake3

from lifecycle.archive.framing import FRAME_BYTES, Framing
from lifecycle.archive.manifest import (
    INDEX_MAGIC,
    MANIFEST_FOLDER,
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    ArchiveContext,
    Form,
    IndexRecord,
    MemberFacts,
    encode_index,
    encode_manifest,
)
from lifecycle.archive.seekable import SeekableWriter
from lifecycle.archive.tar import BLOCK, END, PADDING, TarHeaders
from lifecycle.errors import LifecycleError, Skipped
from lifecycle.names import show_name
from lifecycle.ports import ObjectWriter

_NO_NAMES: Final = frozenset({b"", b".", b".."})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFacts:
    """What was written: enough to verify it and to find every member again without its manifest."""

    form: Form
    size_bytes: int  # of the object
    raw_bytes: int  # of all members' content
    stream_bytes: int  # of the decompressed stream
    zstd_level: int
    digest: bytes  # BLAKE3 of the object
    manifest_digest: bytes  # BLAKE3 of the manifest document
    offsets: tuple[int, ...]  # of each member's content in the decompressed stream
    sizes: tuple[int, ...]
    digests: tuple[bytes, ...]  # BLAKE3 of each member's content


class MemberWriter(Protocol):
    """What every form of archive is written through."""

    def add_member(self, facts: MemberFacts, data: bytes) -> None: ...
    def add_stream(self, facts: MemberFacts, chunks: Iterable[bytes]) -> None: ...
    @property
    def last_digest(self) -> bytes:
        """BLAKE3 of the content that was added last."""

    def finish(self) -> ArchiveFacts: ...
    def close(self) -> None: ...


class ArchiveWriter:
    """A tar of many members. Use as a context manager, or ``close`` it: it holds threads, never the object.

    ``add_member`` and ``add_stream`` refuse with Skipped, and add nothing, what is not as its facts say, a name that is
    there already, and a name that would need a file and a folder at one place. After a Skipped out of ``add_stream``
    that has read anything the archive is unusable and ``finish`` refuses.
    """

    def __init__(
        self,
        out: ObjectWriter,
        *,
        level: int,
        threads: int = 1,
        frame_bytes: int = FRAME_BYTES,
        context: ArchiveContext,
    ) -> None:
        self._sink = SeekableWriter(out, level=level, threads=threads)
        self._framing = Framing(self._sink, frame_bytes)
        self._frame_bytes = frame_bytes
        self._level = level
        self._context = context
        self._headers = TarHeaders()
        self._names = _Names()
        self._members: list[MemberFacts] = []
        self._offsets: list[int] = []
        self._digests: list[bytes] = []
        self._is_broken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads. Safe at any time, also twice."""
        self._sink.close()

    def add_member(self, facts: MemberFacts, data: bytes) -> None:
        """Add a segment whose content is at hand. The fast path for small ones."""
        size = len(data)
        if size != facts.size:
            raise Skipped(f"{show_name(facts.path)}: {facts.size} bytes were expected and {size} read: it has changed")
        if size > self._frame_bytes:
            self.add_stream(facts, (data,))
            return
        header = self._header(facts)
        framing = self._framing
        framing.make_room(size)
        self._offsets.append(framing.position + len(header))
        framing.append((header, data, PADDING[size % BLOCK]), len(header) + size + -size % BLOCK)
        self._members.append(facts)
        self._digests.append(blake3(data).digest())

    def add_stream(self, facts: MemberFacts, chunks: Iterable[bytes]) -> None:
        """Add a segment of any size; ``chunks`` must not change after they are given."""
        header = self._header(facts)
        framing = self._framing
        framing.make_room(facts.size)
        framing.append((header,), len(header))
        offset = framing.position
        self._is_broken = True
        digest = framing.append_text(facts, chunks)
        framing.append((PADDING[facts.size % BLOCK],), -facts.size % BLOCK)
        self._is_broken = False
        self._members.append(facts)
        self._offsets.append(offset)
        self._digests.append(digest)

    @property
    def last_digest(self) -> bytes:
        return self._digests[-1]

    def finish(self) -> ArchiveFacts:
        """Write manifest, index record and seek table. The object is complete then, not yet durable."""
        if self._is_broken:
            raise LifecycleError("an archive with a half-written member cannot be finished")
        framing = self._framing
        framing.flush()
        frames = self._sink.frame_sizes()
        manifest = encode_manifest(
            form=Form.TAR,
            context=self._context,
            zstd_level=self._level,
            members=self._members,
            offsets=self._offsets,
            digests=self._digests,
            frame_bytes=frames,
        )
        if len(manifest) > MAX_MANIFEST_BYTES:
            raise LifecycleError(f"the manifest would have {len(manifest)} bytes, {MAX_MANIFEST_BYTES} are allowed")
        header = self._headers.make(
            MANIFEST_FOLDER,
            MANIFEST_NAME,
            size=len(manifest),
            mtime_ns=self._context.created_ns,
            mode=self._context.mode & 0o666 | 0o400,
            uid=0,
            gid=0,
        )
        manifest_offset = framing.position + len(header)
        framing.append((header, manifest, PADDING[len(manifest) % BLOCK], END), 0)
        framing.flush()
        manifest_digest = blake3(manifest).digest()
        record = IndexRecord(
            form=Form.TAR,
            data_frames=len(frames) + 1,
            manifest_offset=manifest_offset,
            manifest_size=len(manifest),
            manifest_digest=manifest_digest,
            stored_digest=self._sink.digest(),
        )
        self._sink.add_skippable(INDEX_MAGIC, encode_index(record))
        digest = self._sink.finish()
        return ArchiveFacts(
            form=Form.TAR,
            size_bytes=self._sink.size_bytes,
            raw_bytes=sum(member.size for member in self._members),
            stream_bytes=manifest_offset + len(manifest) + -len(manifest) % BLOCK + len(END),
            zstd_level=self._level,
            digest=digest,
            manifest_digest=manifest_digest,
            offsets=tuple(self._offsets),
            sizes=tuple(member.size for member in self._members),
            digests=tuple(self._digests),
        )

    def _header(self, facts: MemberFacts) -> bytes:
        if self._is_broken:
            raise LifecycleError("an archive with a half-written member takes no more members")
        folder, slash, name = facts.path.rpartition(b"/")
        if slash and not folder:
            raise Skipped(f"{show_name(facts.path)} is no path below its source")
        return self._headers.make(
            self._names.add(facts.source, folder, name),
            name,
            size=facts.size,
            mtime_ns=facts.mtime_ns,
            mode=facts.mode,
            uid=facts.uid,
            gid=facts.gid,
        )


class _Names:
    """Which names an archive has: each once, none at a place where another member needs a folder."""

    def __init__(self) -> None:
        self._folders: dict[tuple[str, bytes], bytes] = {}
        self._needed: set[bytes] = set()
        self._taken: set[bytes] = set()

    def add(self, source: str, folder: bytes, name: bytes) -> bytes:
        """The member's folder within the archive, ``source/folder``. Raises Skipped, and then nothing was added."""
        inside = self._folders.get((source, folder)) or self._add_folder(source, folder)
        path = inside + b"/" + name
        if name in _NO_NAMES or b"\0" in name:
            raise Skipped(f"{show_name(path)} is no path below its source")
        if path in self._taken or path in self._needed:
            raise Skipped(f"{show_name(path)} is in the archive already: it has to go to another one")
        self._taken.add(path)
        return inside

    def _add_folder(self, source: str, folder: bytes) -> bytes:
        base = source.encode("utf-8", "surrogateescape")
        inside = base + b"/" + folder if folder else base
        if not base or b"/" in base or b"\0" in inside or base == MANIFEST_FOLDER:
            raise Skipped(f"{show_name(inside)} is no path below its source")
        needed, above = [], inside
        while above and above not in self._needed:  # of a folder that is needed, those above it are
            needed.append(above)
            above, _, part = above.rpartition(b"/")
            if part in _NO_NAMES or needed[-1] in self._taken:
                raise Skipped(f"{show_name(inside)} is no folder, or a file in the archive: its members go elsewhere")
        self._needed.update(needed)
        self._folders[source, folder] = inside
        return inside
