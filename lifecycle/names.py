"""File names are bytes. This module is the one place that turns them into text and back.

The text form is valid UTF-8 and reversible: a byte that is not part of a UTF-8 character is
written ``\\xNN``, control characters likewise, and a backslash is doubled. It is used in JSON,
tables, labels and messages; the bytes themselves stay in the catalog and in archives.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from lifecycle.errors import UsageError

_UNSAFE = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-f]{2}))")


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\\":
        return "\\\\"
    raw = bytes([ord(char) - 0xDC00]) if "\udc80" <= char <= "\udcff" else char.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in raw)


# The name of a companion is its source's with this behind it. No layout takes such a name for a log, so that no file
# of a source is ever mistaken for one.
ERRORS_ENDING: Final = b"#errors"
_LONGEST_NAME: Final = 255  # bytes, of every file system that we know


def companion_name(name: bytes) -> bytes:
    """What the error lines of a log are called. A name too long for it is cut, and told apart by a digest."""
    if len(name) + len(ERRORS_ENDING) <= _LONGEST_NAME:
        return name + ERRORS_ENDING
    ending = b"~" + blake2b(name, digest_size=8).hexdigest().encode() + ERRORS_ENDING
    return name[: _LONGEST_NAME - len(ending)] + ending


def show_name(raw: bytes) -> str:
    """Text of a name or path; ``parse_name`` gives the same bytes back."""
    text = raw.decode("utf-8", "surrogateescape")
    if text.isascii() and text.isprintable() and "\\" not in text:  # nearly all are
        return text
    return _UNSAFE.sub(_escape, text)


def parse_name(text: str) -> bytes:
    """Bytes of a text made by ``show_name``. Raises UsageError on a lone backslash."""

    def unescape(match: re.Match[bytes]) -> bytes:
        return b"\\" if match[1] is None else bytes([int(match[1], 16)])

    raw = text.encode("utf-8", "surrogateescape")
    if b"\\" not in raw:
        return raw
    if b"\\" in _ESCAPE.sub(b"", raw):
        raise UsageError(f"name {text!r}: a backslash must be doubled or start \\xNN", hint=r"write \\ for a backslash")
    return _ESCAPE.sub(unescape, raw)
