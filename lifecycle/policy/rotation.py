"""Endings that rotation and compression put on a log's name.

``rank_3.log.1``, ``train.log-20260312.gz``, ``0.log.20260312-101010``, ``app.1.log.zst`` all belong to the set of
the name without them. Whether ``workerlog.0`` is a rotation depends on the layout: layouts try a name as it is first.
"""

from __future__ import annotations

import re
from typing import Final

COMPRESSED: Final = (b".gz", b".xz", b".zst", b".bz2")
# .0 to .9999 | -20260312, .20260312, with hour, minute and second, -HHMMSS or -epoch | .2026-03-12, with _HH-MM-SS
_STAMP: Final = (
    rb"(?:[-._](?:19|20)\d{6}(?:(?:\d{2}){1,3}|[-_T]\d{2,10})?"
    rb"|[-._](?:19|20)\d{2}-\d{2}-\d{2}(?:[T_-]\d{2}(?:[-:]?\d{2}){0,2})?)"
)
_NUMBERED: Final = re.compile(rb"(.+)\.\d{1,4}\Z", re.DOTALL)
_STAMPED: Final = re.compile(rb"(.+?)" + _STAMP + rb"\Z", re.DOTALL)
_INNER: Final = re.compile(rb"(.+?)(?:\.\d{1,3}|" + _STAMP + rb")(\.(?:log|out|err|txt|jsonl|ndjson))\Z", re.DOTALL)
_TEXT: Final = (b".log", b".out", b".err", b".txt", b".jsonl", b".ndjson")
_DIGITS: Final = frozenset(b"0123456789")


def rotation_bases(name: bytes) -> tuple[bytes, ...]:
    """The names that this may be a rotation of, the likeliest first; empty when it has no such ending.

    ``app.1.log.gz`` may belong to a set ``app.1.log`` that was compressed, or to ``app.log``.
    """
    base = name
    if name.endswith(COMPRESSED):
        base = name[: name.rindex(b".")]
    if base and base[-1] in _DIGITS:
        match = _STAMPED.match(base) or _NUMBERED.match(base)
        if match is not None:
            base = match[1]
    found = (base,) if base and base != name else ()
    if base.endswith(_TEXT):
        match = _INNER.match(base)
        if match is not None:
            return (*found, match[1] + match[2])
    return found
