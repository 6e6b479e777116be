"""Evidence that nobody writes to a file: read leases, /proc, and on which file systems either of them means anything.

Knows the kernel's ways of telling. Never decides when a file is quiet enough. Without evidence there is quiet time
alone, and then a released original waits renamed for ``release_after``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lifecycle.catalog.sqlite import file_system_type
from lifecycle.model import OUR_FOLDER
from lifecycle.scan.handles import Root

# A lease or /proc speaks for this host only. On any other type, writers elsewhere must be expected: some network file
# systems (Lustre among them) even grant a lease locally while another host writes.
LOCAL_TYPES: Final = frozenset({
    "bcachefs", "btrfs", "ext2", "ext3", "ext4", "exfat", "f2fs", "hfsplus", "jfs", "nilfs2", "ntfs", "ntfs3",
    "overlay", "ramfs", "reiserfs", "tmpfs", "vfat", "xfs", "zfs",
})  # fmt: skip
_OUR_PID_NAMESPACE: Final = Path("/proc/self/ns/pid")
_HOST_PID_NAMESPACE: Final = "pid:[4026531836]"  # the number that the kernel gives the host's own
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFiles:
    """One look at /proc: (device, inode) of every regular file that a visible process may write to."""

    identities: frozenset[tuple[int, int]]
    complete: bool  # every process of this host was seen, down to its open files


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterEvidence:
    """Which evidence works for a place."""

    file_system: str  # "" where the mount table cannot be read
    lease: bool
    proc: bool

    @property
    def sees_writers(self) -> bool:
        return self.lease or self.proc


def has_writer(fd: int) -> bool | None:
    """Whether some process of this host has the file open for writing; None when a lease cannot tell.

    A read lease is taken and dropped at once. ``fd`` must be open read-only. None: the file is another user's, the file
    system has no leases.
    """
    try:
        # A writer who comes between the two calls breaks the lease, and the signal for that must not end the program.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def files_open_for_writing(proc: Path = Path("/proc")) -> OpenFiles:
    """Look at every process once: open descriptors, and shared mappings that can be written. Never raises.

    Takes some ms per thousand open files: once per run, and kept.
    """
    identities: set[tuple[int, int]] = set()
    complete = _sees_whole_host(proc)
    try:
        processes = [name for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return OpenFiles(identities=frozenset(), complete=False)
    for process in processes:
        folder = f"{proc}/{process}"
        try:
            identities.update(_written_descriptors(f"{folder}/fd"))
            identities.update(_written_mappings(f"{folder}/maps"))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile, and so did its writing
        except OSError:
            complete = False
    return OpenFiles(identities=frozenset(identities), complete=complete)


def probe(root: Root, open_files: OpenFiles | None = None) -> WriterEvidence:
    """Which evidence works below a root. Reads only; tries a lease on one of the files that are there.

    ``open_files`` is the run's look at /proc; without one it is taken now.
    """
    open_files = open_files or files_open_for_writing()
    kind = file_system_type(Path(os.fsdecode(root.path)))
    local = kind in LOCAL_TYPES
    return WriterEvidence(file_system=kind, lease=local and _lease_works(root), proc=local and open_files.complete)


def _sees_whole_host(proc: Path) -> bool:
    """In a container, and under hidepid, other processes are not even listed."""
    if not (proc / "1").exists():
        return False
    try:
        return str(_OUR_PID_NAMESPACE.readlink()) == _HOST_PID_NAMESPACE
    except OSError:
        return False


def _written_descriptors(folder: str) -> list[tuple[int, int]]:
    """The permission bits of a link in ``fd/`` say how the descriptor was opened: no need to read ``fdinfo``."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mode & stat.S_IWUSR:
                    target = entry.stat()
                    if stat.S_ISREG(target.st_mode):
                        found.append((target.st_dev, target.st_ino))
    return found


def _written_mappings(path: str) -> list[tuple[int, int]]:
    """Files that are mapped shared and writable; their descriptor may be closed already."""
    found = []
    with open(path, "rb") as lines:
        for line in lines:
            fields = line.split(maxsplit=5)
            if len(fields) < 6 or fields[1][1:2] != b"w" or fields[1][3:4] != b"s" or fields[4] == b"0":
                continue
            major, _, minor = fields[3].partition(b":")
            found.append((os.makedev(int(major, 16), int(minor, 16)), int(fields[4])))
            with contextlib.suppress(OSError, ValueError):  # btrfs and overlay show another device here than stat does
                target = os.stat(fields[5].rstrip(b"\n"))
                found.append((target.st_dev, target.st_ino))
    return found


def _lease_works(root: Root) -> bool:
    """Tried on our own marker, else on the first file found at the root or one folder below."""
    for folder in (OUR_FOLDER, b"", *_some_folders(root)):
        with contextlib.suppress(OSError, RuntimeError):
            fd = root.directory(folder) if folder else root.fd
            if (name := _first_file(fd)) is not None:
                return _try_lease(name, fd)
    return False


def _some_folders(root: Root) -> list[bytes]:
    with contextlib.suppress(OSError), os.scandir(root.fd) as entries:
        return sorted(os.fsencode(entry.name) for entry in entries if entry.is_dir(follow_symlinks=False))[:20]
    return []


def _first_file(folder_fd: int) -> str | None:
    with os.scandir(folder_fd) as entries:
        return next((entry.name for entry in entries if entry.is_file(follow_symlinks=False)), None)


def _try_lease(name: str, folder_fd: int) -> bool:
    fd = os.open(name, _READ, dir_fd=folder_fd)
    try:
        return has_writer(fd) is not None
    finally:
        os.close(fd)
