"""Files put back under their names by a restore in place, and what a restore that died left of that.

A file is written whole in ``<root>/.lifecycle/restore/<restore>/<segment>``; then its own name is linked to it, and
both names stay until the catalog knows the file. A crash leaves our name alone (nothing was put back: it goes) or both
(recovery tells the catalog, then ours goes). Without that a scan would take the file for a new segment. A restore
holds a lock on its folder as long as it lives; recovery looks only into folders that nobody holds.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Iterator, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Final

from lifecycle.errors import LifecycleError
from lifecycle.execute.release import rename_without_replacing
from lifecycle.model import OUR_FOLDER
from lifecycle.scan.handles import Root

RESTORE_FOLDER: Final = OUR_FOLDER + b"/restore"
STAY: Final = timedelta(days=7)  # how long a segment restored in place is left alone
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class PutBackFolder:
    """Where one restore keeps what it puts back below one root. As a context manager it is let go of, not emptied."""

    def __init__(self, root: bytes) -> None:
        self._above = _enter(root, RESTORE_FOLDER)
        while True:
            self._name = secrets.token_hex(6).encode()
            os.mkdir(self._name, 0o700, dir_fd=self._above)
            self.fd = os.open(self._name, _FOLDER, dir_fd=self._above)
            fcntl.flock(self.fd, fcntl.LOCK_EX)
            if os.fstat(self.fd).st_nlink:
                return
            os.close(self.fd)  # a recovery took it for a dead one's, between the first and the third line

    def __enter__(self) -> PutBackFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)
        os.close(self._above)

    def give_name(self, ours: bytes, name: bytes, folder_fd: int, *, overwrite: bool) -> None:
        """The file called ``ours`` here gets its own name. Raises FileExistsError when that is taken and must stay."""
        try:
            if not overwrite:
                os.link(ours, name, src_dir_fd=self.fd, dst_dir_fd=folder_fd, follow_symlinks=False)
                return
            twin = ours + b".new"
            os.link(ours, twin, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
            os.rename(twin, name, src_dir_fd=self.fd, dst_dir_fd=folder_fd)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # No second name here: a crash before the record leaves a file that the next scan takes for a new one.
            if overwrite:
                os.rename(ours, name, src_dir_fd=self.fd, dst_dir_fd=folder_fd)
            else:
                rename_without_replacing(ours, self.fd, name, folder_fd)

    def clear(self) -> None:
        """The catalog knows the files by now: our names of them go. A second call does nothing."""
        _empty(self.fd)
        with contextlib.suppress(OSError):
            os.rmdir(self._name, dir_fd=self._above)


class DeadRestore:
    """The folder of a restore that died. ``clear`` it once the catalog knows what is in it."""

    def __init__(self, root: Root, above_fd: int, name: bytes, fd: int) -> None:
        self._root = root
        self._above_fd = above_fd
        self._name = name
        self._fd = fd

    def segment_ids(self) -> list[int]:
        return sorted(int(name) for name in os.listdir(self._fd) if name.isdigit())

    def put_back(self, segment_id: int, directory: bytes, name: bytes) -> os.stat_result | None:
        """The file under its own name, when that is the file that this restore made; None when it got none."""
        ours = os.stat(b"%d" % segment_id, dir_fd=self._fd, follow_symlinks=False)
        try:
            found = os.stat(name, dir_fd=self._root.directory(directory), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError, LifecycleError):
            return None
        return found if (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino) else None

    def clear(self) -> None:
        _empty(self._fd)
        with contextlib.suppress(OSError):
            os.rmdir(self._name, dir_fd=self._above_fd)


def iter_dead_restores(root_path: str, *, mounts: Sequence[bytes] = ()) -> Iterator[DeadRestore]:
    """Folders that restores left and nobody holds any more; each is ours until the next one is asked for."""
    with Root(root_path, mounts=mounts) as root:
        try:
            above = os.open(RESTORE_FOLDER, _FOLDER, dir_fd=root.fd)
        except FileNotFoundError:
            return
        try:
            for name in sorted(os.fsencode(name) for name in os.listdir(above)):
                fd = os.open(name, _FOLDER, dir_fd=above)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    yield DeadRestore(root, above, name, fd)
                except BlockingIOError:
                    continue  # its restore is at work
                finally:
                    os.close(fd)
        finally:
            os.close(above)


def _enter(root: bytes, path: bytes) -> int:
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in path.split(b"/"):
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=current)
            below = os.open(part, _FOLDER, dir_fd=current)
        finally:
            os.close(current)
        current = below
    return current


def _empty(folder_fd: int) -> None:
    for name in os.listdir(folder_fd):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder_fd)
