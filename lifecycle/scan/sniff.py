"""What one look into a file tells: what kind of content it has, a fingerprint, and whether somebody writes to it.

Knows bytes and descriptors. Never knows names, policy or the catalog. One open, one read and one close for a file of
up to 8 KiB; a longer one costs one or two more reads, whatever its length.

The fingerprint is over the first ``size`` bytes; of more than 8 KiB, over the first and the last 4 KiB of them. A file
that has only grown still has its old fingerprint at its old size: so a grown log is told from one whose writer
truncated and rewrote it, which leaves name, inode, and perhaps even size alike (log-layouts section 5, trap 1).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from lifecycle.model import Content
from lifecycle.scan.evidence import has_writer

EDGE_BYTES: Final = 4096
_HEAD_BYTES: Final = 2 * EDGE_BYTES
_SAMPLE_BYTES: Final = 1024  # enough to count odd characters in; zero bytes are looked for in all of the head

_MAGIC: Final = (
    (b"\x1f\x8b", Content.GZIP),
    (b"\x28\xb5\x2f\xfd", Content.ZSTD),
    (b"\xfd7zXZ\x00", Content.XZ),
    (b"BZh", Content.BZIP2),
)
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
# Bytes that text in any usual encoding has: tab to carriage return, bell and backspace of progress bars, escape of
# colours, and everything from the space up, since the upper half may be UTF-8, GBK or Latin-1.
_TEXT: Final = bytes([7, 8, 9, 10, 11, 12, 13, 27, *range(32, 127), *range(128, 256)])
_ODD_SHARE: Final = 50  # one odd byte in so many is still text; random bytes have five

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_QUIET: Final = _READ | os.O_NOATIME  # a preview changes nothing, not even an access time


@dataclass(frozen=True, slots=True)
class Look:
    """What was found in one open file. ``facts`` are those of the open file: it may not be what the listing saw."""

    facts: os.stat_result
    content: Content
    fingerprint: bytes  # over the first facts.st_size bytes
    kept_old: bool  # the old fingerprint, if one was given, still holds
    written: bool | None  # has a writer; None when not asked or not to be told


EMPTY_FINGERPRINT: Final = blake3(b"").digest(length=16)


def open_quietly(name: bytes | str, folder_fd: int) -> int:
    """Open a file for reading, never through a link, never waiting, and leaving its access time where we may.

    Raises OSError.
    """
    try:
        return os.open(name, _QUIET, dir_fd=folder_fd)
    except PermissionError:  # another user's file: only its owner may leave the time alone
        return os.open(name, _READ, dir_fd=folder_fd)


def look(name: bytes | str, folder_fd: int, *, ask_writer: bool, old: bytes | None = None, old_size: int = 0) -> Look:
    """Open, read, close one file. Raises OSError; FileNotFoundError also when it is no regular file any more.

    ``old`` and ``old_size`` are the fingerprint that the catalog has; with None nothing is compared.
    """
    fd = open_quietly(name, folder_fd)
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            raise FileNotFoundError(f"no regular file any more: {name!r}")
        size = facts.st_size
        head = os.read(fd, _HEAD_BYTES) if size else b""
        kept = old is None or (old_size <= size and _fingerprint(fd, head, old_size) == old)
        fingerprint = old if old is not None and kept and old_size == size else _fingerprint(fd, head, size)
        content = classify(head) if size else Content.EMPTY
        written = has_writer(fd) if ask_writer else None
    finally:
        os.close(fd)
    return Look(facts=facts, content=content, fingerprint=fingerprint, kept_old=kept, written=written)


def ask_writer(name: bytes | str, folder_fd: int) -> tuple[os.stat_result, bool | None]:
    """Facts of a file and whether somebody has it open for writing, without reading it. Raises OSError."""
    fd = open_quietly(name, folder_fd)
    try:
        return os.fstat(fd), has_writer(fd)
    finally:
        os.close(fd)


def fingerprint_of(read_at: Callable[[int, int], bytes], size: int) -> bytes:
    """The fingerprint of the first ``size`` bytes of what ``read_at(offset, length)`` reads."""
    if size <= _HEAD_BYTES:
        return blake3(read_at(0, size)).digest(length=16)
    return blake3(read_at(0, EDGE_BYTES) + read_at(size - EDGE_BYTES, EDGE_BYTES)).digest(length=16)


def _fingerprint(fd: int, head: bytes, size: int) -> bytes:
    """As ``fingerprint_of``, but from what is read already as far as that goes. A shorter file gives another one."""
    if size <= _HEAD_BYTES:
        return blake3(head[:size]).digest(length=16)
    return blake3(head[:EDGE_BYTES] + os.pread(fd, EDGE_BYTES, size - EDGE_BYTES)).digest(length=16)


def classify(head: bytes) -> Content:
    """What the first bytes of a file are: a known compression, text, or neither. Nothing is decoded.

    A log that was truncated under its writer starts with a hole, and one of a crashed host may end in one: runs of
    zero bytes at both ends are forgiven, inside they are not. Short or odd text with few control characters is text.
    """
    if not head:
        return Content.EMPTY
    for magic, content in _MAGIC:
        if head.startswith(magic):
            return content
    if head.startswith(_UTF16_MARKS):
        return Content.TEXT
    text = head.strip(b"\x00")
    if b"\x00" in text:
        return Content.BINARY
    sample = text[:_SAMPLE_BYTES]
    odd = len(sample.translate(None, _TEXT))
    return Content.TEXT if odd * _ODD_SHARE <= len(sample) else Content.BINARY
