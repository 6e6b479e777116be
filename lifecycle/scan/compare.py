"""A folder as it is against the folder as it was known: values in, values out.

Knows names, inodes, sizes and times. Never opens anything: where these cannot tell a file from another one, it asks for
a look into the file, and judges what the look found.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Final

from lifecycle.catalog.scanning import KnownFile
from lifecycle.model import Content, Original
from lifecycle.scan.sniff import EMPTY_FINGERPRINT, Look
from lifecycle.scan.walk import Entry
from lifecycle.units import DAY_NS, day_of_ns

_EARLIEST_NS: Final = 7305 * DAY_NS  # 1990-01-01: no file of these logs was written before; some tools leave 0 or 1980
_LONGEST_BEFORE_NS: Final = 3653 * DAY_NS  # before first sight: no log waited ten years for its first scan
_STORABLE: Final = 2**63 - 1  # what a database takes; file systems take more (year 2262 and later)
_LATEST_AHEAD_NS: Final = DAY_NS  # a clock may be wrong by its time zone; beyond that the time means nothing
SHRUNKEN_SHARE: Final = 0.5  # so much of a place missing at once is a mount gone wrong before it is a clean-up
SHRUNKEN_FLOOR: Final = 10
LOST_SCANS: Final = 3
LOST_AFTER_NS: Final = 7 * DAY_NS


@dataclass(slots=True)
class Comparison:
    """What names and inodes alone can tell of one folder. Each listed file is counted in exactly one of them."""

    same: int = 0
    changed: list[tuple[Entry, KnownFile]] = field(default_factory=list)  # same name and inode; or back from missing
    unknown: list[tuple[Entry, KnownFile | None]] = field(default_factory=list)  # and the file that had the name
    gone: list[KnownFile] = field(default_factory=list)  # known, and its name is not listed


def compare_folder(entries: Iterable[Entry], hard_linked: Set[str], known: Iterable[KnownFile]) -> Comparison:
    """Sort one listing against what the catalog has of the folder. Order of either does not matter.

    A hard-linked file that is not known is left out: it is counted by the walk, and nothing else.
    """
    by_name = {os.fsdecode(file.name): file for file in known}
    result = Comparison()
    for entry in entries:
        file = by_name.pop(entry[0], None)
        is_linked = entry[0] in hard_linked
        if file is None or file.inode != entry[1]:
            if file is not None or not is_linked:
                result.unknown.append((entry, file))
        elif is_as_known(entry, file) and is_linked == (file.nlink != 1) and file.original != Original.MISSING:
            result.same += 1
        else:
            result.changed.append((entry, file))
    result.gone = list(by_name.values())
    return result


def is_as_known(entry: Entry, file: KnownFile) -> bool:
    return entry[1:] == (file.inode, file.size_bytes, file.mtime_ns, file.ctime_ns)


def is_as_listed(look: Look, entry: Entry) -> bool:
    """Whether the file that was opened is the one that was listed, untouched since."""
    facts = look.facts
    return entry[1:] == (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def may_be_moved(entry: Entry, file: KnownFile) -> bool:
    """Whether a file under a new name can be a known one, by what is cheap to see. A look must confirm it.

    The inode alone proves nothing, since it is given to the next new file at once; and an empty file has no
    fingerprint to speak of, so that its time must agree.
    """
    if file.inode != entry[1] or entry[2] < file.size_bytes or file.fingerprint is None:
        return False
    return file.fingerprint != EMPTY_FINGERPRINT or (entry[2] == 0 and entry[3] == file.mtime_ns)


def may_be_put_back(entry: Entry, file: KnownFile) -> bool:
    """Whether another inode under a known name can be the same file copied back (``cp -a``, a restored mount)."""
    return entry[2] == file.size_bytes and entry[3] == file.mtime_ns and file.fingerprint is not None


def goes_on(file: KnownFile, look: Look) -> bool:
    """Whether the file under a known name is still the same segment: as it was, or only longer.

    A restored segment does not grow: copy and original would differ. What was written since is a new one. One whose
    stored copy was made early does, and the copy is surplus then: the original has all of it, and more. A file that
    turns out to be no text (it was empty when it was claimed) is none of ours any more.
    """
    if not look.kept_old or look.content is Content.BINARY:
        return False
    unchanged = (look.facts.st_size, look.facts.st_mtime_ns) == (file.size_bytes, file.mtime_ns)
    return file.archive_id is None or is_copied(file) or unchanged


def is_copied(file: KnownFile) -> bool:
    """Whether its stored copy was made early, while the original stayed; not one that a restore put there."""
    return file.archive_id is not None and file.stay_until_ns is None


def is_surplus(file: KnownFile, look: Look) -> bool:
    """Whether a copy that was made early is no longer the original's: any touch counts, since the release reads
    neither of them again."""
    facts = look.facts
    seen = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    return is_copied(file) and seen != (file.inode, file.size_bytes, file.mtime_ns, file.ctime_ns)


def last_write_of(mtime_ns: int, now_ns: int, first_seen_ns: int) -> int | None:
    """The last write, or None where the time is impossible: such a segment has no age, is kept and reported (B22)."""
    earliest = max(_EARLIEST_NS, first_seen_ns - _LONGEST_BEFORE_NS)
    return mtime_ns if earliest <= mtime_ns <= now_ns + _LATEST_AHEAD_NS else None


def storable(instant_ns: int) -> int:
    """The nearest instant that a database can hold. Whatever has one that it cannot has no age either."""
    return max(-_STORABLE, min(instant_ns, _STORABLE))


def day_of(last_write_ns: int | None, first_seen_ns: int) -> int:
    """The day a segment counts under: of its last write; of first sight where its age is unknown."""
    return day_of_ns(first_seen_ns if last_write_ns is None else last_write_ns)


def is_quiet(mtime_ns: int, ctime_ns: int, settle_ns: int, now_ns: int) -> bool:
    """Quiet for the whole settle time, at the limit exactly it is. A time in the future is never quiet."""
    return max(mtime_ns, ctime_ns) + settle_ns <= now_ns


def is_shrunken(absent: int, expected: int) -> bool:
    """Whether so much is missing at once that absence is not believed (B01). ``absent`` are part of ``expected``."""
    return absent >= SHRUNKEN_FLOOR and absent > expected * SHRUNKEN_SHARE


def is_lost(missing_scans: int, missing_since_ns: int, now_ns: int) -> bool:
    """Missing in three complete scans over seven days. ``missing_scans`` counts this one too."""
    return missing_scans >= LOST_SCANS and now_ns - missing_since_ns >= LOST_AFTER_NS
