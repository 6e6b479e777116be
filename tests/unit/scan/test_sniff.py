"""What the first bytes of a file say, and when a fingerprint holds. No disk."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.model import Content
from lifecycle.scan.sniff import EDGE_BYTES, classify, fingerprint_of

LINE = b"2026-03-01 12:00:00 step=1 loss=0.25\n"


def fingerprint(content: bytes, size: int | None = None) -> bytes:
    return fingerprint_of(
        lambda offset, length: content[offset : offset + length], len(content) if size is None else size
    )


@pytest.mark.parametrize(
    "head",
    [
        LINE,
        "训练日志 第一步 损失=0.25\n".encode(),
        "训练日志 第一步\n".encode("gbk"),
        "août 25 démarrage\n".encode("latin-1"),
        b"\x1b[31mERROR\x1b[0m out of memory\n",
        b" 10%|#         | 1/10\r 20%|##        | 2/10\r",
        "ln\r\n".encode("utf-16"),
        "训练日志".encode()[:-1],  # a character cut by the end of the head
        b"\x00" * 5000 + LINE,  # truncated under its writer: a hole, then text
        LINE + b"\x00" * 4000,  # a crashed host
    ],
)
def test_text_in_any_usual_encoding_is_text(head: bytes) -> None:
    assert classify(head) is Content.TEXT


@pytest.mark.parametrize(
    ("packed", "content"),
    [
        (gzip.compress(LINE), Content.GZIP),
        (zstandard.compress(LINE), Content.ZSTD),
        (lzma.compress(LINE), Content.XZ),
        (bz2.compress(LINE), Content.BZIP2),
    ],
)
def test_a_compressed_rotation_is_known_by_its_content_not_by_its_name(packed: bytes, content: Content) -> None:
    assert classify(packed) is content


@pytest.mark.parametrize(
    "head",
    [
        b"\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\xc5\x09brain.Event:2" + b"\x00" * 4,  # tfevents
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        b"PK\x03\x04\x00\x00\x08\x08\x00\x00archive/data.pkl",
        random.Random(7).randbytes(8192),
        LINE + b"\x00" + LINE,
    ],
)
def test_what_is_no_text_is_binary(head: bytes) -> None:
    assert classify(head) is Content.BINARY


def test_nothing_is_empty() -> None:
    assert classify(b"") is Content.EMPTY


@given(old=st.binary(min_size=0, max_size=3 * EDGE_BYTES), more=st.binary(max_size=3 * EDGE_BYTES))
def test_the_fingerprint_of_a_file_that_only_grew_still_holds_at_its_old_size(old: bytes, more: bytes) -> None:
    assert fingerprint(old + more, len(old)) == fingerprint(old)


@pytest.mark.parametrize("size", [1, 100, EDGE_BYTES, 2 * EDGE_BYTES, 2 * EDGE_BYTES + 1, 50_000])
@pytest.mark.parametrize("at", ["first", "last"])
def test_a_changed_edge_changes_the_fingerprint(size: int, at: str) -> None:
    content = bytearray(b"a" * size)
    before = fingerprint(bytes(content))
    content[0 if at == "first" else size - 1] = ord("b")
    assert fingerprint(bytes(content)) != before
