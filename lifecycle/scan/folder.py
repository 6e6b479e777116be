"""One folder brought up to date: its comparison carried out, with a look into each file that names cannot tell.

Knows a folder's files, the looks into them, and the page of changes that comes of it. Never writes; never decides
whether absence is believed: it names what is gone.

Worked example, a rotation: ``train.log`` (inode 7) becomes ``train.log.1``, the former ``train.log.1`` (inode 5)
becomes ``train.log.2``, and a new ``train.log`` (inode 9) starts. By inode and fingerprint 7 and 5 are the same
segments under new names; 9 is a new one, and takes a name whose former owner has moved on: nothing was replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lifecycle.catalog.scanning import FolderRef, FolderState, KnownFile, ScanPage, Sighting
from lifecycle.model import Content, Original
from lifecycle.policy.layouts import Claim, DirectoryLayout
from lifecycle.scan import compare
from lifecycle.scan.evidence import OpenFiles
from lifecycle.scan.overlap import Overlap
from lifecycle.scan.sniff import Look, look
from lifecycle.scan.walk import Entry, Folder, Found

_DISPLACED_LIMIT = 100_000


@dataclass(slots=True)
class Counts:
    new: int = 0
    changed: int = 0
    renamed: int = 0
    replaced: int = 0
    settled: int = 0


@dataclass(slots=True, kw_only=True)
class Changes:
    """What a scan gathers over its folders, with what it needs to judge a file."""

    settle_ns: int
    now_ns: int
    open_files: Callable[[], OpenFiles]  # this run's one look at /proc
    find_by_inode: Callable[[Sequence[int]], list[KnownFile]]  # present files of the place, wherever they were
    make_room: Callable[[], None]  # called between two files whose changes may be in different transactions
    found: Found
    overlap: Overlap  # for looks into files that have to wait
    waits: Callable[[bytes], bool]  # whether a folder's files wait for something beside them, however quiet they are
    page: ScanPage = field(default_factory=ScanPage)
    counts: Counts = field(default_factory=Counts)
    problems: list[tuple[bytes, str]] = field(default_factory=list)
    # Files whose name another one took, by inode: they may turn up in a folder that comes later.
    displaced: dict[int, KnownFile] = field(default_factory=dict)

    def has_writer(self, written: bool | None, device: int, inode: int) -> bool:
        """A lease that could be tried is an answer; /proc is asked only where it could not."""
        return written if written is not None else (device, inode) in self.open_files().identities


class FolderUpdate:
    """The update of one folder. ``run`` once; then ``gone`` and ``state``."""

    def __init__(self, changes: Changes, folder: Folder, ref: FolderRef, device: int) -> None:
        assert isinstance(folder.layout, DirectoryLayout)
        self._changes = changes
        self._folder = folder
        self._layout = folder.layout
        self._ref = ref
        self._device = device
        self._is_stable = True  # False: something in it must be looked at again next time
        self._files = 0
        self._foreign = [0, 0, 0, 0]  # files, bytes; of them binary: files, bytes
        self.gone: dict[int, KnownFile] = {}

    def run(self, known: Sequence[KnownFile], *, may_know: bool) -> None:
        """``known`` is what the catalog has of the folder; without ``may_know`` it has nothing of the whole place."""
        result = compare.compare_folder(self._folder.entries, self._folder.hard_linked, known)
        self._files += result.same
        self.gone = {file.id: file for file in result.gone}
        for entry, file in result.changed:
            self._take_changed(entry, file)
        unknown = self._take_moved(result.unknown) if may_know and result.unknown else result.unknown
        claimed = ((entry, self._claim(entry)) for entry, _ in unknown)
        for entry, claim, opened in self._changes.overlap.map(self._open_claimed, claimed):
            self._changes.make_room()
            if claim is None:
                self._add_foreign(entry, binary=False)
            else:
                self._add_new(entry, claim, self._judge(entry, opened))

    def state(self, *, again: bool) -> FolderState:
        """The folder's row. ``again``: compare it next time even if nothing in it changes."""
        signature = self._folder.signature if self._is_stable and not again else None
        return FolderState(self._ref, signature, self._files, *self._foreign)

    # -- known names -----------------------------------------------------------------------------------------------

    def _take_changed(self, entry: Entry, file: KnownFile) -> None:
        """Same name and inode: the same segment as long as what was there is still there."""
        found = self._look(entry, file)
        if found is None:
            self._files += 1  # cannot be read, or went a moment ago: the next scan knows
        elif compare.goes_on(file, found):
            self._keep(entry, file, found)
        else:
            self._replace(file)
            self._take_new(entry, found)

    def _keep(self, entry: Entry, file: KnownFile, found: Look) -> None:
        seen = self._sighting(entry, found, file.first_seen_ns)
        self._files += 1
        self._changes.page.changed.append((file, seen))
        self._note_surplus(file, found)
        if (seen.size_bytes, seen.mtime_ns) != (file.size_bytes, file.mtime_ns):
            self._changes.counts.changed += 1
        if seen.original == Original.SETTLED != file.original:
            self._changes.counts.settled += 1

    def _note_surplus(self, file: KnownFile, found: Look) -> None:
        if compare.is_surplus(file, found):
            self._changes.page.surplus.append(file)

    def _replace(self, file: KnownFile) -> None:
        self._changes.page.replaced.append(file)
        self._changes.page.taken_ids.add(file.id)
        self._changes.counts.replaced += 1

    # -- new names -------------------------------------------------------------------------------------------------

    def _take_moved(self, unknown: Sequence[tuple[Entry, KnownFile | None]]) -> list[tuple[Entry, None]]:
        """Known files under new names. Returns the entries that are left, all of them under names that are free.

        All moves come first: whose name was taken has been replaced only if it did not move on itself.
        """
        candidates = self._candidates(unknown)
        moved: set[int] = set()
        rest: list[tuple[Entry, KnownFile | None]] = []
        owners: list[KnownFile] = []
        for entry, owner in unknown:
            file = candidates.get(entry[1])
            if file is not None and file.id not in moved and self._move(entry, file):
                moved.add(file.id)
                if owner is not None:
                    owners.append(owner)
            else:
                rest.append((entry, owner))
        for owner in owners:
            if owner.id not in moved:
                self._displace(owner)
        left: list[tuple[Entry, None]] = []
        for entry, owner in rest:
            if owner is None or owner.id in moved:
                left.append((entry, None))
            else:
                self._take_over(entry, owner)
        return left

    def _candidates(self, unknown: Sequence[tuple[Entry, KnownFile | None]]) -> dict[int, KnownFile]:
        """Known files by inode, for the inodes that turned up under names they did not have."""
        wanted = {entry[1] for entry, _ in unknown}
        here = [owner for _, owner in unknown if owner is not None] + list(self.gone.values())
        found = {file.inode: file for file in here if file.inode in wanted}
        for inode in wanted.difference(found).intersection(self._changes.displaced):
            found[inode] = self._changes.displaced[inode]
        elsewhere = wanted.difference(found)
        for file in self._changes.find_by_inode(sorted(elsewhere)) if elsewhere else ():
            if file.id not in self._changes.page.taken_ids:
                found[file.inode] = file
        return found

    def _move(self, entry: Entry, file: KnownFile) -> bool:
        """Take a file over under its new name, once the look confirms it. False: it is another file, or foreign here.

        Somebody who renames a log to a name that no layout claims wants it left alone. A restored segment stays what
        it was; the renamed file is another segment. One whose copy was made early moves on without it.
        """
        if (file.archive_id is not None and not compare.is_copied(file)) or not compare.may_be_moved(entry, file):
            return False
        claim = self._layout.claim(os.fsencode(entry[0]))
        found = self._look(entry, file) if claim is not None else None
        if claim is None or found is None or found.facts.st_nlink != 1 or not compare.goes_on(file, found):
            return False
        changes = self._changes
        changes.page.moved.append((file, self._sighting(entry, found, file.first_seen_ns), claim))
        self._note_surplus(file, found)
        changes.page.taken_ids.add(file.id)
        changes.counts.renamed += 1
        self._files += 1
        self.gone.pop(file.id, None)
        if changes.displaced.pop(file.inode, None) is not None:
            changes.counts.replaced -= 1  # it was not: it had moved here
        return True

    def _take_over(self, entry: Entry, owner: KnownFile) -> None:
        """Another inode under a known name: the same file copied back, or a new one that replaces it."""
        if compare.may_be_put_back(entry, owner):
            found = self._look(entry, owner)
            if found is not None and compare.goes_on(owner, found):
                self._changes.page.taken_ids.add(owner.id)
                self._keep(entry, owner, found)
                return
        if self._take_new(entry, None):
            self._displace(owner)
        else:
            self.gone[owner.id] = owner

    def _displace(self, owner: KnownFile) -> None:
        self._replace(owner)
        if len(self._changes.displaced) < _DISPLACED_LIMIT:
            self._changes.displaced[owner.inode] = owner._replace(original=Original.REPLACED.value)

    def _take_new(self, entry: Entry, found: Look | None) -> bool:
        """A file under a name that is free. False when it is foreign or cannot be read."""
        claim = self._claim(entry)
        if claim is None:
            self._add_foreign(entry, binary=False)
            return False
        return self._add_new(entry, claim, found or self._look(entry, None))

    def _claim(self, entry: Entry) -> Claim | None:
        return self._layout.claim(os.fsencode(entry[0]))

    def _add_new(self, entry: Entry, claim: Claim, found: Look | None) -> bool:
        if found is None or found.facts.st_nlink != 1:
            return False
        if found.content is Content.BINARY:
            self._add_foreign(entry, binary=True)
            return False
        seen = self._sighting(entry, found, self._changes.now_ns)
        self._files += 1
        self._changes.page.new.append((seen, claim))
        self._changes.counts.new += 1
        self._changes.counts.settled += seen.original == Original.SETTLED
        return True

    def _add_foreign(self, entry: Entry, *, binary: bool) -> None:
        self._foreign[0] += 1
        self._foreign[1] += entry[2]
        if binary:
            self._foreign[2] += 1
            self._foreign[3] += entry[2]
        detail = "its content is no text" if binary else "no layout claims it"
        self._changes.found.add("foreign", detail, self._path(entry), size_bytes=entry[2])

    # -- looks -----------------------------------------------------------------------------------------------------

    def _look(self, entry: Entry, file: KnownFile | None) -> Look | None:
        """Open the file once. None when it is gone, cannot be read, or is not on this folder's device."""
        return self._judge(entry, self._open(entry, file))

    def _open_claimed(self, pair: tuple[Entry, Claim | None]) -> tuple[Entry, Claim | None, Look | OSError | None]:
        """A look into a new file, unless no layout wants it. Changes nothing here: several threads do it at once."""
        entry, claim = pair
        return entry, claim, None if claim is None else self._open(entry, None)

    def _open(self, entry: Entry, file: KnownFile | None) -> Look | OSError:
        old, old_size = (None, 0) if file is None else (file.fingerprint, file.fingerprint_size)
        try:
            return look(entry[0], self._folder.fd, ask_writer=self._is_quiet(entry), old=old, old_size=old_size)
        except OSError as error:
            return error

    def _judge(self, entry: Entry, found: Look | OSError | None) -> Look | None:
        if found is None or isinstance(found, FileNotFoundError):
            self._is_stable = False
            return None
        if isinstance(found, OSError):
            self._is_stable = False
            reason = f"cannot be read: {found.strerror}"
            self._changes.found.add("unseen", reason, self._path(entry), size_bytes=entry[2])
            self._changes.problems.append((self._path(entry), reason))
            return None
        if found.facts.st_dev != self._device:  # a single file can be a mount point too
            self._is_stable = False
            self._changes.found.add("other_device", "a mounted file", self._path(entry), size_bytes=entry[2])
            return None
        if not compare.is_as_listed(found, entry):
            self._is_stable = False
        return found

    def _sighting(self, entry: Entry, found: Look, first_seen_ns: int) -> Sighting:
        facts = found.facts
        last_write = compare.last_write_of(facts.st_mtime_ns, self._changes.now_ns, first_seen_ns)
        mtime_ns, ctime_ns = compare.storable(facts.st_mtime_ns), compare.storable(facts.st_ctime_ns)
        return Sighting(
            self._ref, os.fsencode(entry[0]), facts.st_ino, facts.st_size, facts.st_blocks * 512, mtime_ns,
            ctime_ns, facts.st_mode & 0o7777, facts.st_uid, facts.st_gid, facts.st_nlink, found.content.value,
            found.fingerprint, last_write, compare.day_of(last_write, first_seen_ns),
            Original.SETTLED.value if self._is_settled(entry, found) else Original.OPEN.value,
        )  # fmt: skip

    def _is_quiet(self, entry: Entry) -> bool:
        return compare.is_quiet(entry[3], entry[4], self._changes.settle_ns, self._changes.now_ns)

    def _is_settled(self, entry: Entry, found: Look) -> bool:
        """Quiet, as listed, with no other name, and nobody seen writing: only of these a writer was asked for."""
        facts = found.facts
        if not self._is_quiet(entry) or facts.st_nlink != 1 or not compare.is_as_listed(found, entry):
            return False
        if self._changes.waits(self._folder.path):
            return False
        return not self._changes.has_writer(found.written, facts.st_dev, facts.st_ino)

    def _path(self, entry: Entry) -> bytes:
        name = os.fsencode(entry[0])
        return self._folder.path + b"/" + name if self._folder.path else name
