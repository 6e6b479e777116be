"""One large segment as its own ``.zst``: the stream is the segment, so ``zstdcat`` and ``zgrep`` work on it.

The same frames, index record and seek table as the tar form; the manifest is a skippable frame of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from blake3 import blake3

from lifecycle.archive.framing import FRAME_BYTES, Framing
from lifecycle.archive.manifest import (
    INDEX_MAGIC,
    MANIFEST_MAGIC,
    ArchiveContext,
    Form,
    IndexRecord,
    MemberFacts,
    encode_index,
    encode_manifest,
)
from lifecycle.archive.seekable import SeekableWriter
from lifecycle.archive.tar import is_safe_path
from lifecycle.archive.writer import ArchiveFacts
from lifecycle.errors import LifecycleError, Skipped
from lifecycle.names import show_name
from lifecycle.ports import ObjectWriter


class SingleWriter:
    """Takes exactly one member, by ``add_member`` or ``add_stream``. Otherwise as ``ArchiveWriter``."""

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
        self._level = level
        self._context = context
        self._member: MemberFacts | None = None
        self._digest: bytes | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._sink.close()

    def add_member(self, facts: MemberFacts, data: bytes) -> None:
        self.add_stream(facts, (data,))

    def add_stream(self, facts: MemberFacts, chunks: Iterable[bytes]) -> None:
        if self._member is not None:
            raise LifecycleError(f"{show_name(facts.path)}: a file of its own holds one segment")
        if not is_safe_path(facts.path):
            raise Skipped(f"{show_name(facts.path)} is no path below its source")
        self._member = facts
        self._digest = self._framing.append_text(facts, chunks)

    @property
    def last_digest(self) -> bytes:
        if self._digest is None:
            raise LifecycleError("a file of its own has no segment yet")
        return self._digest

    def finish(self) -> ArchiveFacts:
        member, content_digest = self._member, self._digest
        if member is None or content_digest is None:
            raise LifecycleError("a file of its own without its segment cannot be finished")
        self._framing.flush()
        frames = self._sink.frame_sizes()
        manifest = encode_manifest(
            form=Form.SINGLE,
            context=self._context,
            zstd_level=self._level,
            members=(member,),
            offsets=(0,),
            digests=(content_digest,),
            frame_bytes=frames,
        )
        manifest_offset = self._sink.add_skippable(MANIFEST_MAGIC, manifest)
        record = IndexRecord(
            form=Form.SINGLE,
            data_frames=len(frames),
            manifest_offset=manifest_offset,
            manifest_size=len(manifest),
            manifest_digest=blake3(manifest).digest(),
            stored_digest=self._sink.digest(),
        )
        self._sink.add_skippable(INDEX_MAGIC, encode_index(record))
        digest = self._sink.finish()
        return ArchiveFacts(
            form=Form.SINGLE,
            size_bytes=self._sink.size_bytes,
            raw_bytes=member.size,
            stream_bytes=member.size,
            zstd_level=self._level,
            digest=digest,
            manifest_digest=record.manifest_digest,
            offsets=(0,),
            sizes=(member.size,),
            digests=(content_digest,),
        )
