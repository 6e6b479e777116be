"""What the catalog has and a walk did not come by, and when that is believed (promise 5, bug case B01).

Absence proves nothing: it is believed only of folders that were listed to their end, in a place that has not lost more
than half of its files at once and whose catalog is not older than the place. Then a file is *missing*, which changes
nothing but that it is kept; in three complete scans over seven days it is *lost*: an event, off the usage of hot.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lifecycle.catalog import scanning
from lifecycle.catalog.bulk import chunks
from lifecycle.catalog.scanning import MissingFile
from lifecycle.catalog.sightings import ScanWriter
from lifecycle.catalog.store import Catalog
from lifecycle.model import Original
from lifecycle.scan import compare
from lifecycle.scan.walk import Walk

_PAGE = 5000


@dataclass(slots=True)
class Absences:
    """Files that the catalog has and the walk did not come by. Numbers only: a whole place may be missing."""

    expected: int = 0  # files that were believed to be there, in the folders that could be looked at
    folders: list[int] = field(default_factory=list)  # known ones that are gone
    _ids: array[int] = field(default_factory=lambda: array("q"))
    _directories: array[int] = field(default_factory=lambda: array("q"))

    def add(self, files: Iterable[tuple[int, str]], directory_id: int) -> int:
        """How many of (segment, state) are newly absent from that folder."""
        before = len(self._ids)
        for number, original in files:
            if original != Original.MISSING:
                self._ids.append(number)
                self._directories.append(directory_id)
        return len(self._ids) - before

    def __len__(self) -> int:
        return len(self._ids)

    def pages(self) -> Iterator[list[tuple[int, int]]]:
        yield from chunks(zip(self._ids, self._directories, strict=True), _PAGE)


def count_absent(catalog: Catalog, absences: Absences) -> int:
    """How many are absent after all renames were seen: a file may have moved to a folder that came later."""
    if not compare.is_shrunken(len(absences), absences.expected):
        return len(absences)  # it only matters when it looks like too many
    with catalog.read() as conn:
        return sum(scanning.count_still_there(conn, page) for page in absences.pages())


def record_missing(catalog: Catalog, writer: ScanWriter, absences: Absences, *, now_ns: int, complete: bool) -> None:
    """Absences that are believed. Only a complete scan counts towards *lost*."""
    for page in absences.pages():
        with catalog.write(*writer.leases) as conn:
            scanning.set_missing(conn, page, now_ns=now_ns, scans=1 if complete else 0)
    if absences.folders:
        with catalog.write(*writer.leases) as conn:
            scanning.forget_folders(conn, absences.folders)


def count_again(catalog: Catalog, writer: ScanWriter, walk: Walk, place_id: int, now_ns: int) -> int:
    """After a complete scan: what earlier scans missed already is missed once more, or lost. How many were lost."""
    lost = 0
    for page in scanning.pages_of_missing_files(catalog, place_id):
        still = [file for file in page if file.missing_since_ns < now_ns and not walk.blind_spot(file.directory)]
        gone = [file for file in still if _is_lost(file, now_ns)]
        with catalog.write(*writer.leases) as conn:
            writer.count_missing(conn, still)
            writer.lose(conn, gone)
        lost += len(gone)
    return lost


def _is_lost(file: MissingFile, now_ns: int) -> bool:
    return compare.is_lost(file.missing_scans + 1, file.missing_since_ns, now_ns)
