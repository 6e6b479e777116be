"""Where frames begin and end: at member boundaries where a frame is full enough, else at a line end.

Knows sizes and newlines; never what a member is to anyone. A frame holds about ``frame_bytes`` and at most half as much
again; a line longer than a frame is cut where the frame is full.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from blake3 import blake3

from lifecycle.archive.manifest import MemberFacts
from lifecycle.archive.seekable import SeekableWriter
from lifecycle.errors import Skipped
from lifecycle.names import show_name

FRAME_BYTES: Final = 4 * 2**20
MIN_FRAME_BYTES: Final = 1024  # tests make many frames of little text
MAX_FRAME_BYTES: Final = 16 * 2**20


class Framing:
    def __init__(self, sink: SeekableWriter, frame_bytes: int) -> None:
        if not MIN_FRAME_BYTES <= frame_bytes <= MAX_FRAME_BYTES:
            raise ValueError(f"frames of {frame_bytes} bytes are not between {MIN_FRAME_BYTES} and {MAX_FRAME_BYTES}")
        self._sink = sink
        self._frame_bytes = frame_bytes
        self._parts: list[bytes] = []
        self._held = 0  # bytes in _parts
        self.position = 0  # bytes of the stream so far, those held included

    def make_room(self, size: int) -> None:
        """Begin a frame if ``size`` more bytes would overfill this one and it is full enough to stand alone."""
        if self._held + size > self._frame_bytes and self._held >= self._frame_bytes // 2:
            self.flush()

    def append(self, parts: tuple[bytes, ...], size: int) -> None:
        """Add what stays in one frame; ``size`` is the length of the parts together."""
        self._parts += parts
        self._held += size
        self.position += size

    def append_text(self, facts: MemberFacts, chunks: Iterable[bytes]) -> bytes:
        """Add one segment's content, cut at line ends; returns its BLAKE3. Raises Skipped at another size."""
        hasher = blake3()
        left = facts.size
        low = self._held  # cuts only within this segment
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                break
            hasher.update(chunk)
            self.append((chunk,), len(chunk))
            if self._held >= self._frame_bytes:
                self._cut(low)
                low = 0
        if left:
            raise Skipped(
                f"{show_name(facts.path)}: {facts.size} bytes were expected and "
                f"{'more were' if left < 0 else f'{facts.size - left}'} read: it has changed"
            )
        return hasher.digest()

    def flush(self) -> None:
        """Make one frame of what is held, none of nothing."""
        raw = b"".join(self._parts)
        self._parts = []
        self._held = 0
        if raw:
            self._sink.add_frame(raw)

    def _cut(self, low: int) -> None:
        """Make frames of what is held and keep the rest, which is all of this segment; it begins at ``low``."""
        held = b"".join(self._parts)
        view = memoryview(held)
        start, full = 0, self._frame_bytes
        while len(held) - start >= full:
            least = max(start + full // 4, low)
            end = held.rfind(b"\n", least, start + full) + 1 or start + full
            self._sink.add_frame(view[start:end])
            start = end
        rest = held[start:]
        self._parts = [rest] if rest else []
        self._held = len(rest)
