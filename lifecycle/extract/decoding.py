"""A compressed rotation as text: gzip, zstd, xz and bzip2, all their members, in bounded memory.

Knows compressions; never what is in them. Input is hostile: windows have a limit, and so has how much may come out
of how little.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

import zstandard

from lifecycle.errors import Skipped
from lifecycle.model import Content
from lifecycle.units import format_size

PIECE_BYTES: Final = 2**20
MAX_WINDOW_BYTES: Final = 128 * 2**20  # what `zstd --long=27` needs; stock decoders take no more unasked
FREE_BYTES: Final = 256 * 2**20  # this much may come out of anything
MAX_EXPANSION: Final = 5_000  # beyond that; real logs stay below 500
_LZMA_MEMORY: Final = 256 * 2**20


class NotDecodable(Skipped):
    """A compressed log that is damaged, cut off, or would expand without end."""


class _Decoder(Protocol):
    """One member, frame or stream."""

    def take(self, data: bytes) -> Iterator[bytes]: ...
    @property
    def is_done(self) -> bool: ...
    @property
    def unused(self) -> bytes: ...


class Decoding:
    """A log on its way past: give it all bytes in order, then ``finish`` it. Text that is not compressed stays as it
    is. Memory is that of a piece of the text and of the decoder."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._make = _DECODERS.get(content)
        self._decoder: _Decoder | None = None
        self._taken = self._given = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The text that the next bytes give, in pieces of at most about 1 MiB. Raises NotDecodable at damage, and at an
        expansion that no log has; nothing may be fed afterwards."""
        if self._make is None:
            yield chunk
            return
        self._taken += len(chunk)
        try:
            yield from self._pieces(self._make, chunk)
        except (zlib.error, zstandard.ZstdError, lzma.LZMAError, OSError, EOFError) as error:
            message = f"{self._content} is damaged after {format_size(self._given)} of text: {error}"
            raise NotDecodable(message) from None

    def finish(self) -> None:
        """Nothing follows. Raises NotDecodable where the end comes too early."""
        if self._decoder is not None:
            raise NotDecodable(f"{self._content} ends too early, after {format_size(self._given)} of text")

    def _pieces(self, make: Callable[[], _Decoder], data: bytes) -> Iterator[bytes]:
        while data:
            if self._decoder is None:
                data = _between_members(self._content, data)
                if not data:
                    return
                self._decoder = make()
            decoder = self._decoder
            for piece in decoder.take(data):
                self._given += len(piece)
                if self._given > FREE_BYTES and self._given > self._taken * MAX_EXPANSION:
                    raise NotDecodable(
                        f"{format_size(self._given)} and more come out of {format_size(self._taken)} of "
                        f"{self._content}: no log shrinks by {MAX_EXPANSION:,}"
                    )
                yield piece
            data = decoder.unused if decoder.is_done else b""
            self._decoder = None if decoder.is_done else decoder


def decoded(content: Content, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The text in ``chunks``, in pieces of at most about 1 MiB; text that is not compressed passes as it is.

    Raises NotDecodable at damage, at an end that comes too early, and at an expansion that no log has.
    """
    decoding = Decoding(content)
    for chunk in chunks:
        yield from decoding.feed(chunk)
    decoding.finish()


def _between_members(content: Content, data: bytes) -> bytes:
    """What follows padding: gzip and xz files may be filled up with zero bytes."""
    return data.lstrip(b"\0") if content in (Content.GZIP, Content.XZ) else data


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def take(self, data: bytes) -> Iterator[bytes]:
        while data and not self._inner.eof:
            yield self._inner.decompress(data, PIECE_BYTES)
            data = self._inner.unconsumed_tail

    @property
    def is_done(self) -> bool:
        return self._inner.eof

    @property
    def unused(self) -> bytes:
        return self._inner.unused_data


class _Lzma:
    """xz and bzip2 have the same interface."""

    def __init__(self, inner: lzma.LZMADecompressor | bz2.BZ2Decompressor) -> None:
        self._inner = inner

    def take(self, data: bytes) -> Iterator[bytes]:
        yield self._inner.decompress(data, PIECE_BYTES)
        while not self._inner.eof and not self._inner.needs_input:
            yield self._inner.decompress(b"", PIECE_BYTES)

    @property
    def is_done(self) -> bool:
        return self._inner.eof

    @property
    def unused(self) -> bytes:
        return self._inner.unused_data


class _Zstd:
    """Input is given in small steps, since a step's output has no limit of its own: 4 bytes may give 128 KiB."""

    _STEP: Final = 512  # 16 MiB at the very worst

    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
        self._unused = b""

    def take(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), self._STEP):
            yield self._inner.decompress(data[start : start + self._STEP])
            if self._inner.eof:
                self._unused = self._inner.unused_data + data[start + self._STEP :]
                return

    @property
    def is_done(self) -> bool:
        return self._inner.eof

    @property
    def unused(self) -> bytes:
        return self._unused


_DECODERS: Final[dict[Content, Callable[[], _Decoder]]] = {
    Content.GZIP: _Gzip,
    Content.ZSTD: _Zstd,
    Content.XZ: lambda: _Lzma(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_LZMA_MEMORY)),
    Content.BZIP2: lambda: _Lzma(bz2.BZ2Decompressor()),
}
