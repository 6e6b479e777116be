"""Rotated files that went before they were stored: a set that rotates faster than runs come, or that somebody trims.

Pure. What is gone was known in the scan before, had no stored copy, and belongs to a set that goes on: another file of
it is there. Absence proves nothing, so that no state follows from it; it is said, once, since what is missing already
is not new. A live file that was replaced counts where its set has rotated files: then a rotation took it away. What a
rotator has compressed meanwhile did not go: each compressed rotation that is new, and was not written before, is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from lifecycle.catalog.scanning import KnownFile
from lifecycle.model import Original
from lifecycle.names import show_name
from lifecycle.policy.rotation import COMPRESSED, rotation_bases
from lifecycle.scan.walk import Entry, Found

GAP: Final = "rotation_gap"
_MOST_SETS: Final = 50  # that are named one by one


class Gap(NamedTuple):
    """One file that went, and the set that it was of."""

    base: bytes
    name: bytes
    size_bytes: int


Packed = dict[bytes, list[int]]  # by set: last writes of its compressed rotations that are new


def new_packed(entries: Iterable[Entry], known: Iterable[KnownFile]) -> Packed:
    """Compressed rotations in a folder that were not known there, under whatever name. An inode alone proves nothing:
    it is given to the next new file at once."""
    found: Packed = {}
    there = {(file.inode, file.size_bytes, file.mtime_ns) for file in known}
    for entry in entries:
        if entry[1:4] not in there and (name := os.fsencode(entry[0])).endswith(COMPRESSED):
            for base in rotation_bases(name):
                found.setdefault(base, []).append(entry[3])
    return found


def iter_gaps(gone: Iterable[KnownFile], entries: Iterable[Entry], packed: Packed) -> Iterator[Gap]:
    """``gone``: files that were there in the last scan; ``entries``: what their folder has now. Each of ``packed`` is
    taken for one of them, and counts no more for the next."""
    suspects = [file for file in gone if file.archive_id is None and file.original != Original.MISSING]
    if not suspects:
        return
    names = [os.fsencode(entry[0]) for entry in entries]
    rotated = {base for name in names for base in rotation_bases(name)}
    here = rotated.union(names)
    for file in suspects:
        bases = rotation_bases(file.name)
        base = next((each for each in bases if each in here), None) if bases else None
        if base is None and not bases and file.name in rotated:
            base = file.name
        if base is not None and not _is_packed(packed.get(base, []), file.mtime_ns):
            yield Gap(base, file.name, file.size_bytes)


def _is_packed(writes: list[int], last_write_ns: int) -> bool:
    """Takes the oldest that fits: rotators keep a log's time, and a log may have gone on after it was seen."""
    fitting = sorted(at for at in writes if at >= last_write_ns)
    if fitting:
        writes.remove(fitting[0])
    return bool(fitting)


def note_gap(found: Found, directory: bytes, gap: Gap) -> None:
    """Add it to a scan's findings, by set."""
    path = directory + b"/" + gap.name if directory else gap.name
    known = [detail for kind, detail in found.sums if kind == GAP]
    detail = show_name(directory + b"/" + gap.base if directory else gap.base)
    if detail not in known and len(known) >= _MOST_SETS:
        detail = "other sets"
    found.add(GAP, detail, path, size_bytes=gap.size_bytes)
