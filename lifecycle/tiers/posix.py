"""The file-system calls of the local tier: folders by handle, renames that replace nothing, errors in our words.

Knows POSIX and Linux; never tiers, keys or objects.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from typing import Final

from lifecycle.errors import AlreadyExists, PlaceUnavailable, StorageFull

DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RENAME_NOREPLACE: Final = 1
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_IS_LINK: Final = frozenset({errno.ELOOP, errno.ENOTDIR})
_UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})

_libc = ctypes.CDLL(None, use_errno=True)


def enter(fd: int, name: str, mode: int) -> int:
    """A handle on a folder inside ``fd``, made durably where missing. Closes ``fd``."""
    try:
        with contextlib.suppress(FileNotFoundError):
            return os.open(name, DIRECTORY, dir_fd=fd)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=fd)
        os.fsync(fd)
        return os.open(name, DIRECTORY, dir_fd=fd)
    finally:
        os.close(fd)


def open_file(folder: int, name: str) -> int:
    """A handle on a regular file. O_NONBLOCK: a pipe of that name must not hang us."""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return fd


def sorted_entries(folder: int) -> list[tuple[str, bool]]:
    """Files and folders, in the order of the keys below them: ``a-b`` comes before what is in ``a``.

    Links, special files and names that are no text are nobody's objects and passed over.
    """
    with os.scandir(folder) as entries:
        found = [
            (entry.name, is_folder)
            for entry in entries
            if entry.name.isprintable()
            and ((is_folder := entry.is_dir(follow_symlinks=False)) or entry.is_file(follow_symlinks=False))
        ]
    return sorted(found, key=lambda item: item[0] + "/" if item[1] else item[0])


def renameat2(from_fd: int, name: bytes, to_fd: int, new_name: bytes) -> int:
    """The system call, refusing to replace: 0 or the error number."""
    if not hasattr(_libc, "renameat2"):
        return errno.ENOSYS
    done = _libc.renameat2(from_fd, name, to_fd, new_name, _RENAME_NOREPLACE)
    return 0 if done == 0 else ctypes.get_errno()


def rename_new(from_fd: int, name: str, to_fd: int, new_name: str) -> None:
    """Rename without replacing. Raises AlreadyExists, FileNotFoundError, other OSError."""
    code = renameat2(from_fd, os.fsencode(name), to_fd, os.fsencode(new_name))
    if code in _UNSUPPORTED:
        link_new(from_fd, name, to_fd, new_name)
    elif code == errno.EEXIST:
        raise AlreadyExists(f"{new_name} is there already; nothing was overwritten")
    elif code:
        raise OSError(code, os.strerror(code), new_name)


def link_new(from_fd: int, name: str, to_fd: int, new_name: str) -> None:
    """The same for file systems without renameat2 flags. A crash in between leaves the temporary, which is swept."""
    try:
        os.link(name, new_name, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)
    except FileExistsError:
        # Over NFS an answer can be lost and the call sent twice: then it is our own file that is in the way.
        ours, there = (os.stat(at, dir_fd=fd, follow_symlinks=False) for at, fd in ((name, from_fd), (new_name, to_fd)))
        if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
            raise AlreadyExists(f"{new_name} is there already; nothing was overwritten") from None
    os.unlink(name, dir_fd=from_fd)


def forget_pages(fd: int) -> None:
    """Drop the file's pages from the cache, so that verifying reads the disk, where the file system can do that."""
    with contextlib.suppress(OSError):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def told(name: str, *, absent_is_error: bool = False) -> Iterator[None]:
    """Say OSErrors in our words; FileNotFoundError passes where ``absent_is_error`` is the caller's to handle."""
    try:
        yield
    except FileNotFoundError:
        if absent_is_error:
            raise
        raise PlaceUnavailable(f"{name}: vanished while it was used") from None
    except FileExistsError:
        raise AlreadyExists(f"{name}: a temporary of this name is there already") from None
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise StorageFull(
                f"{name}: {error.strerror}", hint="purges and releases run first; see `lifecycle audit`"
            ) from None
        if error.errno in _IS_LINK:
            raise PlaceUnavailable(
                f"{name}: a link or another kind of file is in the way; links are not followed"
            ) from None
        raise PlaceUnavailable(f"{name}: {error.strerror}") from None
