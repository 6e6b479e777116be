"""A place's tree side by side with the catalog's folders: what changed is compared and written, the rest passed by.

Knows the order of it and carries values between walk, folder updates and the catalog. Never judges a file, never
decides whether absence is believed.

What a crash leaves: pages of changes are whole, and a folder's signature is written with the page that its last file is
in, so that a folder of which only half is written is compared again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from lifecycle.catalog import scanning
from lifecycle.catalog.places import Place
from lifecycle.catalog.scanning import FolderRef, KnownFile, KnownFolder, OpenFile, ScanPage
from lifecycle.catalog.sightings import ScanWriter
from lifecycle.catalog.store import Catalog
from lifecycle.errors import Skipped
from lifecycle.model import Original
from lifecycle.scan.absence import Absences
from lifecycle.scan.compare import last_write_of
from lifecycle.scan.evidence import OpenFiles
from lifecycle.scan.folder import Changes, FolderUpdate
from lifecycle.scan.gaps import Gap, iter_gaps, new_packed, note_gap
from lifecycle.scan.handles import ThreadRoots
from lifecycle.scan.holdfile import HoldFile, has_hold, read_hold_file
from lifecycle.scan.sniff import ask_writer
from lifecycle.scan.waiting import Waiting
from lifecycle.scan.walk import Folder, Walk

_PAGE_ROWS: Final = 8_000  # of one transaction: its commit costs some ms, its rows some MB


class TreeScan:
    """One scan on its way: what it gathered so far, and what is still to be written."""

    def __init__(
        self,
        catalog: Catalog,
        place: Place,
        walk: Walk,
        writer: ScanWriter,
        *,
        settle_ns: int,
        now_ns: int,
        open_files: Callable[[], OpenFiles],
        timezone: str = "UTC",
    ) -> None:
        self._catalog = catalog
        self._place = place
        self._walk = walk
        self._writer = writer
        self._is_first = not scanning.has_files(catalog, place.id)
        self._changes = Changes(
            settle_ns=settle_ns,
            now_ns=now_ns,
            open_files=open_files,
            find_by_inode=self._find_by_inode,
            make_room=self._make_room,
            found=walk.found,
            overlap=walk.overlap,
            waits=Waiting(walk.root).holds,
        )
        self.counts = self._changes.counts
        self.problems = self._changes.problems
        self.folders = 0
        self.unchanged = 0
        self.absences = Absences()
        self.hold_files: list[HoldFile] = []
        self._timezone = timezone
        self._displaced_gaps: dict[int, tuple[bytes, Gap]] = {}  # by inode: it may turn up in a folder that comes later

    def compare_all(self, progress: Callable[[int, int], None] | None) -> None:
        """Walk the tree beside the catalog's folders; every change but absences and time is written afterwards."""
        for known, folder in _side_by_side(scanning.iter_known_folders(self._catalog, self._place.id), self._walk):
            if folder is None:
                assert known is not None
                self._miss_folder(known)
                continue
            self.folders += 1
            if has_hold(folder.entries):
                self.hold_files.append(read_hold_file(folder.path, folder.fd, timezone=self._timezone))
            if known is not None and known.signature == folder.signature:
                self._pass_by(known)
            else:
                self._update(known, folder)
            if progress:
                progress(len(folder.entries), folder.size_bytes)
        self._flush()
        for inode, (directory, gap) in self._displaced_gaps.items():
            if inode in self._changes.displaced:
                note_gap(self._walk.found, directory, gap)

    def settle_quiet(self) -> None:
        """Files that nothing happened to since they were last seen open, and that are quiet for long enough now."""
        if self._is_first:
            return  # each was asked a moment ago
        changes = self._changes
        self._writer.learn_ages(lambda mtime_ns, seen_ns: last_write_of(mtime_ns, changes.now_ns, seen_ns))
        quiet_since_ns = changes.now_ns - changes.settle_ns
        with ThreadRoots(self._walk.root) as roots, self._walk.overlap as overlap:
            for quiet in scanning.pages_of_quiet_files(self._catalog, self._place.id, quiet_since_ns):
                page = [file for file in quiet if not changes.waits(file.directory)]
                found = zip(page, overlap.map(partial(self._settled_facts, roots), page), strict=True)
                settled = [(file, facts.st_blocks * 512) for file, facts in found if facts is not None]
                changes.counts.settled += self._writer.settle(settled)

    def _settled_facts(self, roots: ThreadRoots, file: OpenFile) -> os.stat_result | None:
        """Facts of a file that is settled by now; several threads ask at once where each has to wait."""
        if self._walk.blind_spot(file.directory):
            return None
        try:
            facts, written = ask_writer(file.name, roots.here().directory(file.directory))
        except (OSError, Skipped):
            return None  # gone, or not to be read: it stays open
        is_same = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns) == file[3:5] + file[6:8]
        if not is_same or facts.st_nlink != 1 or self._changes.has_writer(written, facts.st_dev, facts.st_ino):
            return None
        return facts

    def _pass_by(self, known: KnownFolder) -> None:
        """Nothing changed here; what is foreign is counted all the same."""
        self.unchanged += 1
        self.absences.expected += known.files
        found, clear = self._walk.found, known.foreign_files - known.binary_files
        if clear:
            size = known.foreign_bytes - known.binary_bytes
            found.add("foreign", "no layout claims it", known.path, files=clear, size_bytes=size)
        if known.binary_files:
            size = known.binary_bytes
            found.add("foreign", "its content is no text", known.path, files=known.binary_files, size_bytes=size)

    def _update(self, known: KnownFolder | None, folder: Folder) -> None:
        ref = FolderRef(folder.path, None if known is None else known.id)
        files: list[KnownFile] = []
        if ref.id is not None and not self._is_first:
            with self._catalog.read() as conn:
                files = scanning.known_files(conn, ref.id)
        files = [file for file in files if file.id not in self._changes.page.taken_ids]
        update = FolderUpdate(self._changes, folder, ref, self._walk.root.device_of(folder.path))
        update.run(files, may_know=not self._is_first)
        self.absences.expected += sum(file.original != Original.MISSING for file in files)
        packed = new_packed(folder.entries, files) if update.gone or self._changes.displaced else {}
        for gap in iter_gaps(update.gone.values(), folder.entries, packed):
            note_gap(self._walk.found, folder.path, gap)
        for file in self._changes.displaced.values():
            for gap in iter_gaps([file], folder.entries, packed) if file.directory_id == ref.id else ():
                self._displaced_gaps[file.inode] = (folder.path, gap)
        missed = self.absences.add(((file.id, file.original) for file in update.gone.values()), ref.id or 0)
        # Compared again next time, so that these absences are seen again whether this scan is believed or not.
        self._changes.page.folders.append(update.state(again=missed > 0))
        self._make_room()

    def _miss_folder(self, known: KnownFolder) -> None:
        """A known folder that the walk did not come by: gone, or not looked at."""
        blind = self._walk.blind_spot(known.path)
        if blind is None:
            if not known.files and known.signature is None:
                return  # gone for long, and with it all its files
            with self._catalog.read() as conn:
                present = scanning.present_ids(conn, known.id)
            moved = self._changes.page.taken_ids
            here = [(number, original) for number, original in present if number not in moved]
            self.absences.expected += sum(original != Original.MISSING for _, original in here)
            self.absences.add(here, known.id)
            self.absences.folders.append(known.id)
        elif blind == "other_device" and known.files:
            self._walk.cover(known.path, known.files)
        elif blind == "excluded" and (known.files or known.signature):
            with self._catalog.write(*self._writer.leases) as conn:
                scanning.reopen_folder(conn, known.id)

    def _find_by_inode(self, inodes: Sequence[int]) -> list[KnownFile]:
        with self._catalog.read() as conn:
            return scanning.files_by_inode(conn, self._place.id, inodes)

    def _make_room(self) -> None:
        if len(self._changes.page) >= _PAGE_ROWS:
            self._flush()

    def _flush(self) -> None:
        self._writer.write(self._changes.page)
        self._changes.page = ScanPage()


def _side_by_side(
    known: Iterator[KnownFolder], walk: Iterable[Folder]
) -> Iterator[tuple[KnownFolder | None, Folder | None]]:
    """Folders of the catalog and of the tree, both in order of path bytes; each path comes once."""
    ahead = next(known, None)
    for folder in walk:
        while ahead is not None and ahead.path < folder.path:
            yield ahead, None
            ahead = next(known, None)
        if ahead is not None and ahead.path == folder.path:
            yield ahead, folder
            ahead = next(known, None)
        else:
            yield None, folder
    while ahead is not None:
        yield ahead, None
        ahead = next(known, None)
