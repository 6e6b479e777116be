"""Removing originals, conditionally. The only code in the program that unlinks a file of a source.

Order, and what a crash leaves at each step
1. compare inode, size, mtime and ctime in place; a difference leaves the file alone
2. rename into ``<root>/.lifecycle/release/<batch>/<segment>``: from here no new writer can open it by its name;
   a crash leaves the file whole in our folder, and recovery finishes or undoes it by the journal
3. ask who still has it open for writing: one look at /proc for the whole folder, read leases where /proc is blind
4. compare again (the rename itself changes ctime, so inode, size and mtime), then unlink
A file that differs or is open is renamed back without replacing; when its name was taken meanwhile it stays
in our folder and is reported. Where writers cannot be seen the file stays parked there for ``release_after``.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterator
from functools import partial
from itertools import compress

from blake3 import blake3

from lifecycle.errors import LifecycleError
from lifecycle.execute.orders import OriginalFile, Refusal, ReleaseOrder, ReleaseResult, Trouble
from lifecycle.model import OUR_FOLDER
from lifecycle.scan.evidence import OpenFiles, files_open_for_writing, has_writer
from lifecycle.scan.handles import Root, ThreadRoots
from lifecycle.scan.overlap import Overlap

RELEASE_FOLDER = OUR_FOLDER + b"/release"
_RENAME_NOREPLACE = 1
_CHUNK = 2**20
_libc = ctypes.CDLL(None, use_errno=True)


def release_folder(batch_id: int) -> bytes:
    """Relative to the place's root; named in the batch's intent."""
    return RELEASE_FOLDER + b"/%d" % batch_id


def rename_without_replacing(source: bytes, source_fd: int, target: bytes, target_fd: int) -> None:
    """renameat2 with RENAME_NOREPLACE. Raises FileExistsError when the target name is taken."""
    if _libc.renameat2(source_fd, source, target_fd, target, _RENAME_NOREPLACE) == 0:
        return
    code = ctypes.get_errno()
    if code not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(code, os.strerror(code), target)
    # A file system without the flag (some NFS): a hard link refuses a taken name too.
    os.link(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)
    os.unlink(source, dir_fd=source_fd)


def run_release(order: ReleaseOrder) -> ReleaseResult:
    """Carry out one order. Never raises for a single member; raises when the place itself is unusable."""
    with _opened(order) as release:
        return release.run()


@contextlib.contextmanager
def _opened(order: ReleaseOrder) -> Iterator[_Release]:
    """The place and the batch's folder in it, which goes when it is empty."""
    with Root(order.root, mounts=order.mounts) as root, ThreadRoots(root) as roots:
        folder_fd = _open_folder(root, release_folder(order.batch_id))
        try:
            yield _Release(order, roots, folder_fd)
        finally:
            os.close(folder_fd)
            with contextlib.suppress(OSError):  # not empty: something is parked or in the way
                os.rmdir(release_folder(order.batch_id), dir_fd=root.fd)


def _open_folder(root: Root, path: bytes) -> int:
    current = os.dup(root.fd)
    for part in path.split(b"/"):
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=current)
        try:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
        finally:
            os.close(current)
        current = below
    return current


def _same(found: os.stat_result, wanted: OriginalFile) -> bool:
    return (found.st_ino, found.st_size, found.st_mtime_ns) == (wanted.inode, wanted.size_bytes, wanted.mtime_ns)


class _Release:
    """One order on its way. Members are taken and removed by several threads where each call has to wait."""

    def __init__(self, order: ReleaseOrder, roots: ThreadRoots, folder_fd: int) -> None:
        self._order = order
        self._roots = roots
        self._folder_fd = folder_fd
        self._removed: list[int] = []
        self._parked: list[int] = []
        self._refused: list[Refusal] = []
        self._names: dict[bytes, dict[int, str]] = {}  # by folder: names by inode, read when a file is not found

    def run(self) -> ReleaseResult:
        members = self._order.members
        with Overlap() as overlap:
            if not self._order.finish:
                members = tuple(compress(members, overlap.map(self._take, members)))
            if self._order.park and not self._order.finish:
                self._parked = [member.segment_id for member in members]
            elif members:
                snapshot = files_open_for_writing()  # after the renames: who opens it later cannot find it by name
                for _ in overlap.map(partial(self._remove, snapshot), members):
                    pass
        return self._result()

    def undo(self) -> ReleaseResult:
        """Every file of our folder gets its name back; removed are those that are neither here nor there."""
        for member in self._order.members:
            if _exists(b"%d" % member.segment_id, self._folder_fd):
                self._give_back(member, Trouble.CHANGED, "given back after a crash")
            elif not _there(self._roots.here(), member):
                self._removed.append(member.segment_id)
        return self._result()

    def _result(self) -> ReleaseResult:
        return ReleaseResult(
            batch_id=self._order.batch_id,
            removed=tuple(self._removed),
            parked=tuple(self._parked),
            refused=tuple(self._refused),
        )

    def _take(self, member: OriginalFile) -> bool:
        """Rename one original into our folder; False when it was left alone or had gone."""
        try:
            directory = self._roots.here().directory(member.directory)
            found = os.stat(member.name, dir_fd=directory, follow_symlinks=False)
            if not _same(found, member) or found.st_ctime_ns != member.ctime_ns or found.st_nlink != 1:
                return self._refuse(member, self._what_became_of(member, directory, found), _difference(found, member))
            os.rename(member.name, b"%d" % member.segment_id, src_dir_fd=directory, dst_dir_fd=self._folder_fd)
        except FileNotFoundError:
            if self._has_moved_on(member):
                return self._refuse(member, Trouble.CHANGED, "has another name now")
            return self._refuse(member, Trouble.VANISHED, "no longer there")
        except (OSError, LifecycleError) as error:
            return self._refuse(member, Trouble.UNREADABLE, str(error))
        return True

    def _what_became_of(self, member: OriginalFile, directory: int, found: os.stat_result) -> Trouble:
        """CHANGED when the tree still has what was stored, so that the stored copy is surplus; else REPLACED."""
        if found.st_ino != member.inode:
            return Trouble.CHANGED if self._has_moved_on(member) else Trouble.REPLACED
        # A crash may have come after our own unlink, and the next file of that name may have been given its inode.
        if self._order.after_crash and not has_content(member, directory):
            return Trouble.REPLACED
        return Trouble.CHANGED

    def _has_moved_on(self, member: OriginalFile) -> bool:
        """Whether the file has another name in its folder: a rotation, which the next scan follows."""
        try:
            directory = self._roots.here().directory(member.directory)
            if member.directory not in self._names:
                with os.scandir(directory) as entries:
                    self._names[member.directory] = {entry.inode(): entry.name for entry in entries}
            name = self._names[member.directory].get(member.inode)
            return name is not None and _same(os.stat(name, dir_fd=directory, follow_symlinks=False), member)
        except (OSError, LifecycleError):
            return False

    def _remove(self, snapshot: OpenFiles, member: OriginalFile) -> None:
        """Unlink one file of our folder, or give it its name back."""
        name = b"%d" % member.segment_id
        try:
            found, writer = self._look(name, ask_lease=not snapshot.complete)
            if not _same(found, member):
                self._give_back(member, Trouble.CHANGED, _difference(found, member))
            elif writer or (found.st_dev, found.st_ino) in snapshot.identities:
                self._give_back(member, Trouble.OPEN, "a process has it open for writing")
            elif writer is None and not self._order.rested:
                # Another user's file: no lease is given, and /proc shows not all. A writer may hold it open.
                self._parked.append(member.segment_id)
            else:
                os.unlink(name, dir_fd=self._folder_fd)
                self._removed.append(member.segment_id)
        except FileNotFoundError:
            # Only recovery meets this: the unlink was done before the crash.
            self._removed.append(member.segment_id)
        except OSError as error:
            self._give_back(member, Trouble.UNREADABLE, str(error))

    def _look(self, name: bytes, *, ask_lease: bool) -> tuple[os.stat_result, bool | None]:
        """Facts of a file in our folder, and whether somebody writes to it; None where nothing can tell."""
        if not ask_lease:
            return os.stat(name, dir_fd=self._folder_fd, follow_symlinks=False), False
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder_fd)
        try:
            return os.fstat(fd), has_writer(fd)
        finally:
            os.close(fd)

    def _give_back(self, member: OriginalFile, trouble: Trouble, detail: str) -> None:
        try:
            directory = self._roots.here().directory(member.directory)
            rename_without_replacing(b"%d" % member.segment_id, self._folder_fd, member.name, directory)
        except (OSError, LifecycleError) as error:
            folder = release_folder(self._order.batch_id).decode()
            detail = (
                f"{detail}; and it could not be given its name back ({error}), it is kept as"
                f" {folder}/{member.segment_id}"
            )
            trouble = Trouble.IN_THE_WAY
        self._refuse(member, trouble, detail)

    def _refuse(self, member: OriginalFile, trouble: Trouble, detail: str) -> bool:
        self._refused.append(Refusal(segment_id=member.segment_id, trouble=trouble, detail=detail))
        return False


def has_content(member: OriginalFile, directory: int, *, whole: bool = False) -> bool:
    """Whether the file under the name begins with the content that was stored: it is as it was, or grew.

    ``whole``: it must be that content and nothing more.
    """
    hasher, left = blake3(), member.size_bytes
    fd = os.open(member.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        while left and (chunk := os.read(fd, min(left, _CHUNK))):
            hasher.update(chunk)
            left -= len(chunk)
        grew = whole and os.read(fd, 1) != b""
    finally:
        os.close(fd)
    return not left and not grew and hasher.digest() == member.digest


def _difference(found: os.stat_result, wanted: OriginalFile) -> str:
    pairs = (
        ("inode", found.st_ino, wanted.inode),
        ("size", found.st_size, wanted.size_bytes),
        ("mtime", found.st_mtime_ns, wanted.mtime_ns),
        ("ctime", found.st_ctime_ns, wanted.ctime_ns),
        ("links", found.st_nlink, 1),
    )
    return next((f"{name} is {now}, was {then}" for name, now, then in pairs if now != then), "differs")


def return_originals(
    root_path: str, batch_id: int, members: tuple[OriginalFile, ...], *, mounts: tuple[bytes, ...] = ()
) -> ReleaseResult:
    """Undo a removal that was begun: every file in the batch's folder gets its name back, nothing is unlinked.

    ``removed`` lists members that are neither in the folder nor under their name; ``parked`` is empty.
    """
    order = ReleaseOrder(batch_id=batch_id, root=root_path, mounts=mounts, members=members, park=False)
    with _opened(order) as release:
        return release.undo()


def _exists(name: bytes, dir_fd: int) -> bool:
    try:
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _there(root: Root, member: OriginalFile) -> bool:
    try:
        return _exists(member.name, root.directory(member.directory))
    except (FileNotFoundError, LifecycleError):
        return False


def originals_in_place(
    root_path: str, members: tuple[OriginalFile, ...], *, mounts: tuple[bytes, ...] = ()
) -> tuple[set[int], set[int]]:
    """(segments whose original is there with its recorded identity, segments whose name is there)."""
    same: set[int] = set()
    named: set[int] = set()
    with Root(root_path, mounts=mounts) as root:
        for member in members:
            try:
                found = os.stat(member.name, dir_fd=root.directory(member.directory), follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError, LifecycleError):
                continue
            named.add(member.segment_id)
            if _same(found, member):
                same.add(member.segment_id)
    return same, named


def batches_in_folder(root_path: str) -> list[int]:
    """Ids of the batches that have a folder of renamed originals."""
    with Root(root_path) as root:
        try:
            fd = os.open(RELEASE_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root.fd)
        except FileNotFoundError:
            return []
        try:
            return sorted(int(name) for name in os.listdir(fd) if name.isdigit())
        finally:
            os.close(fd)


def files_in_folder(root_path: str, batch_id: int) -> set[int]:
    """Segment ids of the files that a batch's folder holds; empty when there is no folder."""
    with Root(root_path) as root:
        try:
            fd = os.open(release_folder(batch_id), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root.fd)
        except FileNotFoundError:
            return set()
        try:
            return {int(name) for name in os.listdir(fd) if name.isdigit()}
        finally:
            os.close(fd)
