"""Compressed rotations as text: all members, in pieces, and damage or a bomb is an error and never a shorter text."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator
from typing import Final

import pytest
import zstandard

from lifecycle.extract import NotDecodable, decoded
from lifecycle.extract.decoding import FREE_BYTES, PIECE_BYTES
from lifecycle.model import Content

PACK: Final[dict[Content, Callable[[bytes], bytes]]] = {
    Content.GZIP: gzip.compress,
    Content.ZSTD: zstandard.ZstdCompressor(write_checksum=True).compress,
    Content.XZ: lzma.compress,
    Content.BZIP2: bz2.compress,
}
TEXT = b"".join(b"line %d\n" % number for number in range(50_000))


def _chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("content", PACK)
@pytest.mark.parametrize("size", [1, 7, 4096, 10**9])
def test_all_members_are_read_whatever_the_chunks(content: Content, size: int) -> None:
    text = TEXT[: 3000 if size < 10 else None]
    data = PACK[content](text) + PACK[content](b"") + PACK[content](b"more\n")
    pieces = list(decoded(content, _chunks(data, size)))
    assert b"".join(pieces) == text + b"more\n"


def test_text_passes_as_it_is() -> None:
    assert list(decoded(Content.TEXT, [b"a", b"b"])) == [b"a", b"b"]


@pytest.mark.parametrize("content", PACK)
def test_what_is_cut_off_or_damaged_is_refused(content: Content) -> None:
    data = PACK[content](TEXT)
    for bad in (data[:-3], data[: len(data) // 2], data + b"junk at the end", data[:40] + b"\xaa\x55\xaa" + data[43:]):
        with pytest.raises(NotDecodable):
            list(decoded(content, [bad]))


@pytest.mark.parametrize("content", [Content.GZIP, Content.XZ])
def test_zero_bytes_that_fill_a_file_up_are_no_damage(content: Content) -> None:
    assert b"".join(decoded(content, [PACK[content](b"x\n") + b"\0" * 512, b"\0" * 512])) == b"x\n"


@pytest.mark.parametrize("content", PACK)
def test_pieces_stay_small_however_much_comes_out(content: Content) -> None:
    data = PACK[content](bytes(64 * 2**20))
    assert max(map(len, decoded(content, _chunks(data, 2**20)))) <= 17 * PIECE_BYTES


def test_a_bomb_is_refused() -> None:
    data = zstandard.compress(bytes(FREE_BYTES + 2**24), 19)
    assert len(data) * 5000 < FREE_BYTES
    with pytest.raises(NotDecodable, match="no log shrinks"):
        for _ in decoded(Content.ZSTD, [data]):
            pass


def test_a_window_beyond_what_decoders_take_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=28, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = packer.compress(TEXT) + packer.flush()
    with pytest.raises(NotDecodable):
        list(decoded(Content.ZSTD, [data]))
