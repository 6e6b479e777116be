"""Folders as open handles below one root: the only way this program reaches into a place.

Knows descriptors, links and devices. Never knows what the files are. A path is opened component by component, each
relative to the handle above it and without following links, so that nobody can lead us outside by swapping a folder
for a link (bug case B31). Other devices are not entered unless their mount point is listed.
"""

from __future__ import annotations

import errno
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from copy import copy
from typing import Final

from lifecycle.errors import PlaceUnavailable, Skipped
from lifecycle.names import show_name

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CAPACITY: Final = 128
_OCTAL: Final = re.compile(rb"\\([0-7]{3})")  # how the mount table writes spaces and the like


class OtherDevice(Skipped):
    """A mount point below the root that is not listed under ``mounts``."""


class Root:
    """A place's root, held open. Not for sharing between threads or across a fork: each worker opens its own.

    ``mounts`` are relative paths of mount points that may be entered. The descriptor that ``directory`` gives belongs
    to this object and stays open for at least the next 100 calls; nobody else closes it. Raises PlaceUnavailable when
    the root is not there, is no folder or cannot be read.
    """

    def __init__(self, path: bytes | str, *, mounts: Iterable[bytes] = ()) -> None:
        self.path = os.fsencode(path)
        self._mounts = frozenset(mounts)
        self._open: OrderedDict[bytes, tuple[int, int]] = OrderedDict()  # path → (descriptor, device), least used first
        try:
            self.fd = _open(self.path, _FOLDER)  # the root itself may be a link: the operator named it
        except OSError as error:
            raise PlaceUnavailable(
                f"root {show_name(self.path)} cannot be opened: {error.strerror}",
                hint="check that it is mounted and that this user may read it",
            ) from error
        self.device = os.fstat(self.fd).st_dev
        self._mounted = _mount_points_below(self.path)

    def twin(self) -> Root:
        """The same folder, whatever its path leads to by now, with handles of its own. Raises OSError."""
        twin = copy(self)
        twin._open = OrderedDict()
        twin.fd = _open(b".", _FOLDER, self.fd)
        return twin

    def directory(self, path: bytes) -> int:
        """The descriptor of a folder, ``b""`` for the root itself. A second call gives the same one, without I/O.

        Raises OSError when it is not there or cannot be read, and Skipped when a link, a file or another device is in
        the way.
        """
        return self._find(path)[0]

    def may_enter(self, path: bytes, device: int, above: int) -> bool:
        """Whether a folder on ``device`` may be entered from its parent folder on the device ``above``."""
        # A folder mounted from the same file system (bind mount) has the same device and shows the same files twice.
        return path in self._mounts or (device == above and path not in self._mounted)

    def device_of(self, path: bytes) -> int:
        """The device a folder lies on; opens the folder if need be and raises what ``directory`` raises."""
        return self._find(path)[1]

    def close(self) -> None:
        """Close every handle. A second call does nothing."""
        while self._open:
            os.close(self._open.popitem()[1][0])
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _find(self, path: bytes) -> tuple[int, int]:
        if not path:
            return self.fd, self.device
        found = self._open.get(path)
        if found is not None:
            self._open.move_to_end(path)
            return found
        parent, _, name = path.rpartition(b"/")
        if name in (b"", b".", b".."):
            raise Skipped(f"{show_name(path)} is not a path below the root")
        fd, device = self._enter(path, name, *self._find(parent))
        self._open[path] = (fd, device)
        if len(self._open) > _CAPACITY:
            os.close(self._open.popitem(last=False)[1][0])
        return fd, device

    def _enter(self, path: bytes, name: bytes, parent_fd: int, parent_device: int) -> tuple[int, int]:
        try:
            fd = _open(name, _FOLDER | os.O_NOFOLLOW, parent_fd)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise Skipped(
                    f"{show_name(path)} is not a folder but a link or a file, which is not followed"
                ) from error
            raise
        device = os.fstat(fd).st_dev
        if not self.may_enter(path, device, parent_device):
            os.close(fd)
            raise OtherDevice(
                f"{show_name(path)} lies on another device, which is not entered",
                hint="list it under mounts of its source",
            )
        return fd, device


class ThreadRoots:
    """A root for several threads: the one it is made with for the thread that made it, twins for the others."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._local = threading.local()
        self._local.root = root
        self._twins: list[Root] = []

    def here(self) -> Root:
        """The root of the calling thread. Raises OSError when no descriptor is left for a twin."""
        found: Root | None = getattr(self._local, "root", None)
        if found is None:
            found = self._local.root = self._root.twin()
            self._twins.append(found)
        return found

    def __enter__(self) -> ThreadRoots:
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the twins, when no other thread uses one any more."""
        for twin in self._twins:
            twin.close()


def _open(name: bytes, flags: int, parent_fd: int | None = None) -> int:
    """Leaves the access time alone where we may: only a folder's owner may."""
    try:
        return os.open(name, flags | os.O_NOATIME, dir_fd=parent_fd)
    except PermissionError:
        return os.open(name, flags, dir_fd=parent_fd)


def _mount_points_below(root: bytes, mountinfo: str = "/proc/self/mountinfo") -> frozenset[bytes]:
    """Paths, relative to the root, where something is mounted; none where the mount table cannot be read."""
    try:
        with open(mountinfo, "rb") as lines:
            points = [_OCTAL.sub(_unescape, fields[4]) for line in lines if len(fields := line.split(b" ", 5)) > 5]
    except OSError:
        return frozenset()
    above = os.path.realpath(root).rstrip(b"/") + b"/"
    return frozenset(point[len(above) :] for point in points if point.startswith(above) and len(point) > len(above))


def _unescape(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8)])
