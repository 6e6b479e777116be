"""A place's tree, folder by folder in the order of path bytes, with a signature of each folder's files.

Knows listings and what they hide. Never opens a file, never knows the catalog. The order is that of the catalog's
folders, so that both are read side by side and neither is held in memory: what waits are the folders that are seen
and not yet listed, and one folder's files (some 300 bytes each).
"""

from __future__ import annotations

import heapq
import marshal
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from stat import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from typing import Final, Protocol, TypeAlias

from blake3 import blake3

from lifecycle.errors import Skipped
from lifecycle.model import OUR_FOLDER
from lifecycle.names import show_name
from lifecycle.scan.handles import OtherDevice, Root
from lifecycle.scan.overlap import SLOW_S, Overlap

# name, inode, size, mtime_ns, ctime_ns of a regular file. A tuple, and text as the listing gives it: this is the path
# that every file of an unchanged tree takes on every run.
Entry: TypeAlias = tuple[str, int, int, int, int]

_PROBE: Final = 16  # entries of each folder whose facts are asked for one by one, to see how long that takes
_OURS: Final = frozenset({OUR_FOLDER, b"lost+found"})  # at the root only; the second is the file system's own


_NOT_FOLLOWED: Final = "never followed"
_ELSEWHERE: Final = "another file system, not listed under mounts"


class FolderLayout(Protocol):
    @property
    def excluded(self) -> bool: ...


class Layouts(Protocol):
    """What the walk needs of ``policy.layouts.SourceLayouts``."""

    def enter(self, directory: bytes) -> FolderLayout: ...


@dataclass(slots=True, kw_only=True)
class Folder:
    """One listed folder. ``fd`` is open until the next one is asked for."""

    path: bytes
    fd: int
    layout: FolderLayout
    signature: bytes
    entries: list[Entry]  # by name
    size_bytes: int
    hard_linked: frozenset[str]  # names among the entries whose inode has other names too


@dataclass(slots=True)
class Found:
    """Sums of what was left alone or not seen, by kind and detail, with one example each."""

    sums: dict[tuple[str, str], tuple[int, int, str]] = field(default_factory=dict)

    def add(self, kind: str, detail: str, path: bytes, *, files: int = 1, size_bytes: int = 0) -> None:
        count, size, example = self.sums.get((kind, detail), (0, 0, ""))
        self.sums[kind, detail] = (count + files, size + size_bytes, example or show_name(path))

    def count(self, *kinds: str) -> int:
        return sum(files for (kind, _), (files, _, _) in self.sums.items() if kind in kinds)


@dataclass(slots=True)
class Walk:
    """One walk over a tree; iterate it once, then ask what it could not see.

    ``key`` goes into every signature: whatever decides which files are ours (layouts, excludes), so that a changed
    policy looks at every folder anew. ``list_folder`` is ``os.scandir``, or one that fails on purpose.
    """

    root: Root
    layouts: Layouts
    key: bytes = b""
    list_folder: Callable[[int], AbstractContextManager[Iterator[os.DirEntry[str]]]] = os.scandir
    found: Found = field(default_factory=Found)
    unseen: dict[bytes, str] = field(default_factory=dict)  # folder → why; nothing below it was looked at
    hidden: dict[bytes, str] = field(default_factory=dict)  # folders left out on purpose → excluded, other_device, link
    covered: dict[bytes, int] = field(default_factory=dict)  # mount points over known folders → files known there
    overlap: Overlap = field(default_factory=Overlap)
    files: int = 0
    size_bytes: int = 0

    def __iter__(self) -> Iterator[Folder]:
        # The smallest path of those waiting comes next, and its own folders sort after it: so all come in order.
        waiting: list[tuple[bytes, int]] = [(b"", self.root.device)]
        with self.overlap:
            yield from self._folders(waiting)

    def _folders(self, waiting: list[tuple[bytes, int]]) -> Iterator[Folder]:
        while waiting:
            path, device_above = heapq.heappop(waiting)
            layout = self.layouts.enter(path)
            if layout.excluded:
                self._hide("excluded", "excluded by policy", path)
            elif folder := self._list(path, device_above, layout, waiting):
                self.files += len(folder.entries)
                self.size_bytes += folder.size_bytes
                yield folder

    def blind_spot(self, path: bytes) -> str | None:
        """Why this walk did not look into a folder, so that absence there means nothing; None where it did."""
        while True:
            if path in self.unseen:
                return "unseen"
            if not path or path in self.hidden:
                return self.hidden.get(path)
            path = path.rpartition(b"/")[0]

    def cover(self, path: bytes, files: int) -> None:
        """Known files lie in a folder that another file system is mounted over: they are not seen, and that is no
        sign of anything. Said once for the mount point."""
        while path not in self.hidden:
            path = path.rpartition(b"/")[0]
        self.covered[path] = self.covered.get(path, 0) + files

    def _hide(self, kind: str, detail: str, path: bytes) -> None:
        self.hidden[path] = kind
        self.found.add(kind, detail, path)

    def _list(self, path: bytes, device: int, layout: FolderLayout, waiting: list[tuple[bytes, int]]) -> Folder | None:
        """None when it vanished, lies elsewhere, or could not be read to its end: half a listing is none."""
        try:
            fd = self.root.directory(path)
            device = self.root.device_of(path)
            return self._read(path, fd, device, layout, waiting)
        except FileNotFoundError:
            if path:
                return None  # removed since its parent was listed
            self.unseen[path] = "the root is gone"
        except OtherDevice:
            self._hide("other_device", _ELSEWHERE, path)
        except Skipped:
            self._hide("link", _NOT_FOLLOWED, path)  # it was a folder a moment ago
        except OSError as error:
            self.unseen[path] = error.strerror or str(error)
        return None

    def _read(
        self, path: bytes, fd: int, device: int, layout: FolderLayout, waiting: list[tuple[bytes, int]]
    ) -> Folder:
        entries: list[Entry] = []
        folders: list[tuple[bytes, int]] = []
        others: list[tuple[str, str, int]] = []
        linked: list[str] = []
        size_bytes = 0
        with self.list_folder(fd) as listing:
            for item, facts in self._stat_all(listing):
                if facts is None:
                    continue  # removed since it was listed
                kind = facts.st_mode & 0o170000
                if kind == S_IFREG:
                    size = facts.st_size
                    entries.append((item.name, facts.st_ino, size, facts.st_mtime_ns, facts.st_ctime_ns))
                    size_bytes += size
                    if facts.st_nlink != 1:
                        linked.append(item.name)
                elif kind == S_IFDIR:
                    folders.append((os.fsencode(item.name), facts.st_dev))
                else:
                    others.append((item.name, "link" if S_IFMT(facts.st_mode) == S_IFLNK else "special", facts.st_size))
        # Only now that the listing came to its end: nothing of a half-read one counts.
        self._queue(path, device, folders, waiting)
        for name, other, _ in others:
            self.found.add(other, _NOT_FOLLOWED if other == "link" else "no regular file", _join(path, name))
        entries.sort()
        hard_linked = frozenset(linked)
        for name, _, size, _, _ in entries if hard_linked else ():
            if name in hard_linked:
                self.found.add("hard_link", "has other names too", _join(path, name), size_bytes=size)
        signature = blake3(self.key + marshal.dumps(entries, 2)).digest(length=16)
        return Folder(
            path=path,
            fd=fd,
            layout=layout,
            signature=signature,
            entries=entries,
            size_bytes=size_bytes,
            hard_linked=hard_linked,
        )

    def _stat_all(
        self, listing: Iterator[os.DirEntry[str]]
    ) -> Iterator[tuple[os.DirEntry[str], os.stat_result | None]]:
        """Each entry with its facts; in threads where each has to wait for them."""
        is_slow = self.overlap.is_slow
        if not is_slow:
            first = list(islice(listing, _PROBE))
            started = time.perf_counter()
            facts = list(map(_stat, first))
            is_slow = time.perf_counter() - started > SLOW_S * len(first)
            yield from zip(first, facts, strict=True)
        if is_slow:
            rest = list(listing)
            yield from zip(rest, self.overlap.map(_stat, rest), strict=True)
        else:
            for item in listing:
                yield item, _stat(item)

    def _queue(
        self, path: bytes, device: int, folders: list[tuple[bytes, int]], waiting: list[tuple[bytes, int]]
    ) -> None:
        for name, below in folders:
            if not path and name in _OURS:
                continue
            inner = path + b"/" + name if path else name
            if self.root.may_enter(inner, below, device):
                heapq.heappush(waiting, (inner, device))
            else:
                self._hide("other_device", _ELSEWHERE, inner)


def _stat(item: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return item.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _join(path: bytes, name: str) -> bytes:
    return path + b"/" + os.fsencode(name) if path else os.fsencode(name)
