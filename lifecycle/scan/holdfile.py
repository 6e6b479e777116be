"""``.lifecycle-hold`` in a job's folder: how somebody without access to the catalog keeps what lies below it.

The file says why, whose and until when, a line each, ``reason: …``, ``owner: …``, ``ends: 2027-03-01``; other text is
the reason. Whoever can write into the folder can hold it, and nothing else. A file that cannot be read, or whose end is
no date, holds all the same: in doubt it is kept. Knows the file and its words; never what a hold forbids.
"""

from __future__ import annotations

import os
import pwd
import stat
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from lifecycle.scan.sniff import open_quietly
from lifecycle.scan.walk import Entry

HOLD_NAME: Final = ".lifecycle-hold"
_MAX_BYTES: Final = 4096
_MAX_TEXT: Final = 200  # characters of a reason that are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldFile:
    """What one file asks for; ``problem`` is what in it could not be understood."""

    directory: bytes
    reason: str
    owner: str
    ends: datetime | None = None
    problem: str = ""


def has_hold(entries: Sequence[Entry]) -> bool:
    """Whether a folder's files, which are in order of names, have one."""
    at = bisect_left(entries, (HOLD_NAME,))
    return at < len(entries) and entries[at][0] == HOLD_NAME


def read_hold_file(directory: bytes, folder_fd: int, *, timezone: str) -> HoldFile:
    """Never raises. Links are not followed; what is no regular file has no words."""
    try:
        fd = open_quietly(os.fsencode(HOLD_NAME), folder_fd)
    except OSError as error:
        return HoldFile(directory=directory, reason=HOLD_NAME, owner="", problem=error.strerror or str(error))
    try:
        found = os.fstat(fd)
        text = os.read(fd, _MAX_BYTES).decode("utf-8", "replace") if stat.S_ISREG(found.st_mode) else ""
    except OSError as error:
        return HoldFile(directory=directory, reason=HOLD_NAME, owner="", problem=error.strerror or str(error))
    finally:
        os.close(fd)
    return parse_hold_file(directory, text, _name_of(found.st_uid), timezone=timezone)


def parse_hold_file(directory: bytes, text: str, owner: str, *, timezone: str) -> HoldFile:
    """``owner``: whose file it is, where it names nobody."""
    given: dict[str, str] = {}
    rest = []
    for line in text.splitlines():
        words = "".join(letter for letter in line if letter.isprintable()).strip()
        key, colon, value = words.partition(":")
        name = key.strip().lower()
        if colon and name in ("reason", "owner", "ends") and value.strip():
            given.setdefault(name, value.strip())
        elif words and not words.startswith("#"):
            rest.append(words)
    reason = (given.get("reason") or " ".join(rest) or HOLD_NAME)[:_MAX_TEXT]
    ends, problem = _end(given.get("ends", ""), timezone)
    return HoldFile(
        directory=directory, reason=reason, owner=given.get("owner", owner)[:_MAX_TEXT], ends=ends, problem=problem
    )


def _end(text: str, timezone: str) -> tuple[datetime | None, str]:
    if not text:
        return None, ""
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(timezone))).astimezone(UTC), ""
    except (ValueError, OverflowError, OSError):
        return None, f"ends: {text[:40]!r} is not a date; write 2027-03-01"


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
