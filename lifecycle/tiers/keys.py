"""Keys of stored objects: text, ``/`` separated, safe on every file system and in every bucket policy.

``TEAM/CLASS/DAY/UNIQUE``: one prefix per team, so that a policy of the store can grant one team its own archives.
"""

from __future__ import annotations

import hashlib
from typing import Final

from lifecycle.errors import UsageError
from lifecycle.units import format_day

_SAFE: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_LONGEST_PART: Final = 100  # of an encoded name; four of them stay below every limit
_MAX_KEY_BYTES: Final = 1024  # S3's
_MAX_PART_BYTES: Final = 255  # of file systems
_OUR_FOLDER: Final = ".lifecycle"


def encode_part(text: str) -> str:
    """One component of a key: other bytes than letters, digits, ``_``, ``-`` and inner ``.`` become ``=xx``.

    Two texts never share a component: what is too long ends in a digest of the whole.
    """
    raw = text.encode("utf-8", "surrogateescape")
    part = "".join(
        chr(byte) if byte in _SAFE and (index or byte != 0x2E) else f"={byte:02x}" for index, byte in enumerate(raw)
    )
    if len(part) <= _LONGEST_PART:
        return part or "="
    return f"{part[:64]}=={hashlib.blake2b(raw, digest_size=12).hexdigest()}"


def make_key(team: str, class_name: str, day: int, unique: str) -> str:
    """The key of a new object. ``day`` counts from 1970; ``unique`` is the caller's, ending in what says the form."""
    return "/".join((encode_part(team), encode_part(class_name), format_day(day), encode_part(unique)))


def check_key(key: str) -> tuple[str, ...]:
    """The components of a key. Raises UsageError for one that could leave the tier or reach our own records."""
    parts = tuple(key.split("/"))
    flaw = next((flaw for part in parts if (flaw := _part_flaw(part))), None)
    if flaw is None and parts[0] == _OUR_FOLDER:
        flaw = f"{_OUR_FOLDER} is ours"
    if flaw is None and len(key.encode("utf-8", "surrogateescape")) > _MAX_KEY_BYTES:
        flaw = f"longer than {_MAX_KEY_BYTES} bytes"
    if flaw is not None:
        raise UsageError(f"key {key[:200]!r}: {flaw}", hint="keys are relative, as team/class/day/name")
    return parts


def check_temporary(name: str) -> str:
    """A temporary name is one component. Raises UsageError."""
    if flaw := _part_flaw(name) or ("has a /" if "/" in name else None):
        raise UsageError(f"temporary name {name[:200]!r}: {flaw}")
    return name


def _part_flaw(part: str) -> str | None:
    if part in ("", ".", ".."):
        return "empty, . or .. is no component"
    if "\0" in part:
        return "has a NUL byte"
    if len(part.encode("utf-8", "surrogateescape")) > _MAX_PART_BYTES:
        return f"a component is longer than {_MAX_PART_BYTES} bytes"
    return None
