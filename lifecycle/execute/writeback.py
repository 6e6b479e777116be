"""One restored file: written whole without a name, made like its original, then given its name.

Nothing is replaced unless told, and then not under somebody who writes to it. A restored file is never readable by more
people than its original was: where the folder that kept others out is gone, a new one keeps them out, and where the
file goes into a wider one, its own mode does. A crash leaves nothing outside our own folder, but on file systems that
know no unnamed files, where a name with our prefix stays.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Final, NamedTuple

from lifecycle.errors import Skipped
from lifecycle.execute.putback import PutBackFolder
from lifecycle.execute.readers import mode_for_readers
from lifecycle.execute.release import rename_without_replacing
from lifecycle.names import show_name
from lifecycle.scan.evidence import OpenFiles, files_open_for_writing, has_writer
from lifecycle.scan.handles import Root
from lifecycle.units import duration_ns, format_duration

QUIET: Final = timedelta(hours=1)  # where writers cannot be seen, what was written since then is not replaced
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GROUP, _OTHERS = 0o070, 0o007
_HOLE: Final = 64 * 2**10  # zeros of this length in a sparse file are not written
_ZEROS: Final = bytes(_HOLE)
_NO_UNNAMED: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL})


class Original(NamedTuple):
    """What the file was like. ``readers``: mode and group that say who could read it where it lay."""

    size_bytes: int
    mtime_ns: int
    mode: int
    uid: int
    gid: int
    is_sparse: bool
    readers: tuple[int, int]

    @property
    def reach(self) -> int:
        """The permission bits of those whom its folders let in."""
        mode, gid = self.readers
        group = _GROUP if mode & stat.S_IRGRP and gid == self.gid else 0
        return 0o700 | group | (_OTHERS if mode & stat.S_IROTH else 0)


class Written(NamedTuple):
    found: os.stat_result
    lacks_group: bool  # without what only the original's group may do, since its group could not be set
    is_guarded: bool  # without what its mode allowed and its folder did not


class WriteBack:
    """Writes files of one restore. Looks at /proc once, and only where something is to be replaced."""

    def __init__(self, *, overwrite: bool) -> None:
        self._overwrite = overwrite
        self._open_files: OpenFiles | None = None

    def write(
        self,
        root: bytes,
        directory: bytes,
        name: bytes,
        original: Original,
        chunks: Iterator[bytes],
        ours: PutBackFolder | None,
        number: int,
    ) -> Written:
        """``root/directory/name``, checked by whoever makes ``chunks``. ``ours``: where its second name stays until the
        catalog knows it, called ``number``. Raises FileExistsError where a file is there and must stay, Skipped."""
        folder = make_folders(root, directory, original)
        try:
            if is_taken(name, folder):
                if not self._overwrite:
                    raise FileExistsError(show_name(os.path.join(directory, name)))
                self._require_no_writer(name, folder)
            mode = _mode_in(root, directory, original)
            if ours is not None:
                done = _put_back(ours, b"%d" % number, name, folder, original, mode, chunks, overwrite=self._overwrite)
            else:
                done = _unnamed(name, folder, original, mode, chunks, overwrite=self._overwrite)
            os.fsync(folder)
            return done
        finally:
            os.close(folder)

    def _require_no_writer(self, name: bytes, folder: int) -> None:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            raise Skipped("a folder of that name is there", hint="only files are overwritten; move it away")
        if not stat.S_ISREG(found.st_mode):
            return  # a link is replaced itself, and what it leads to stays as it is
        try:
            fd = os.open(name, _LOOK, dir_fd=folder)
        except OSError as error:
            raise Skipped(f"what is there cannot be looked at: {error.strerror}") from error
        try:
            is_written = has_writer(fd)
        finally:
            os.close(fd)
        if is_written is None:
            self._open_files = self._open_files or files_open_for_writing()
            if (found.st_dev, found.st_ino) in self._open_files.identities:
                is_written = True
            elif self._open_files.complete:
                is_written = False
        hint = "end the writer, or restore --to another folder"
        if is_written:
            raise Skipped("somebody has the file that is there open for writing", hint=hint)
        quiet_ns = time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns)
        if is_written is None and quiet_ns < duration_ns(QUIET):
            ago = format_duration(timedelta(microseconds=max(0, quiet_ns) // 1000))
            raise Skipped(
                f"the file that is there was written {ago} ago, and whether somebody still writes cannot be seen here",
                hint=f"wait until it is {format_duration(QUIET)} old, or restore --to another folder",
            )


def make_folders(root: bytes, directory: bytes, original: Original) -> int:
    """A handle of ``root/directory``. The file's own folder, where it is made, belongs to the file's owner and lets in
    who could read the file; a link in the way is refused."""
    os.makedirs(root, mode=0o755, exist_ok=True)
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    *above, last = list(filter(None, directory.split(b"/"))) or [b""]
    for part in filter(None, (*above, last)):
        try:
            below = _enter(part, current, original if part is last else None)
        except OSError as error:
            raise Skipped(
                f"folder {show_name(directory)}: {error.strerror}", hint="a link or a file is in the way"
            ) from error
        finally:
            os.close(current)
        current = below
    return current


def _enter(part: bytes, above: int, original: Original | None) -> int:
    """Those above the last one are shared with other files: they get no owner and hide nothing."""
    try:
        os.mkdir(part, 0o755 if original is None else 0o700, dir_fd=above)
    except FileExistsError:
        return os.open(part, _FOLDER, dir_fd=above)
    made = os.open(part, _FOLDER, dir_fd=above)
    if original is not None:
        mode = 0o755 & original.reach
        if os.geteuid() == 0:
            os.fchown(made, original.uid, original.gid)
        elif os.fstat(made).st_gid != original.gid:
            mode = without_group(mode)
        os.fchmod(made, mode)
    return made


def without_group(mode: int) -> int:
    """Without what only the original's group may do: the file has another group, which may do what all may."""
    return mode & ~_GROUP | (mode & _OTHERS) << 3 & mode


def is_taken(name: bytes, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _mode_in(root: bytes, directory: bytes, original: Original) -> int:
    """Its own mode where the folders below ``root`` keep out whom its old ones kept out; else without those."""
    narrow = original.mode & original.reach
    if narrow == original.mode:
        return narrow
    with Root(root) as there:
        reaches = mode_for_readers(there, [directory], mode=original.mode, gid=original.gid)
    return original.mode if reaches & ~narrow == 0 else narrow


def _put_back(
    ours: PutBackFolder,
    temporary: bytes,
    name: bytes,
    folder: int,
    original: Original,
    mode: int,
    chunks: Iterator[bytes],
    *,
    overwrite: bool,
) -> Written:
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=ours.fd)
    try:
        lacks_group = _fill(fd, original, mode, chunks)
        ours.give_name(temporary, name, folder, overwrite=overwrite)
        return Written(os.fstat(fd), lacks_group, mode != original.mode)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=ours.fd)
        raise
    finally:
        os.close(fd)


def _unnamed(
    name: bytes, folder: int, original: Original, mode: int, chunks: Iterator[bytes], *, overwrite: bool
) -> Written:
    temporary = b".lifecycle-restore-" + secrets.token_hex(6).encode()
    fd = _open_unnamed(folder)
    has_name = fd is None
    if fd is None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        lacks_group = _fill(fd, original, mode, chunks)
        if not has_name:
            # Without --overwrite at once under its own name: linkat replaces nothing.
            os.link(f"/proc/self/fd/{fd}", temporary if overwrite else name, dst_dir_fd=folder, follow_symlinks=True)
            has_name = overwrite
        if overwrite:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        elif has_name:
            rename_without_replacing(temporary, folder, name, folder)
        has_name = False
        return Written(os.fstat(fd), lacks_group, mode != original.mode)
    finally:
        os.close(fd)
        if has_name:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)


def _open_unnamed(folder: int) -> int | None:
    """A file without a name, which a crash leaves nothing of; None where there are none."""
    if not os.path.exists("/proc/self/fd"):
        return None  # it could not be given a name
    try:
        return os.open(b".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno not in _NO_UNNAMED:
            raise
        return None


def _fill(fd: int, original: Original, mode: int, chunks: Iterator[bytes]) -> bool:
    """Content, owner, mode and times, all durable. Whether the group's rights had to be left out."""
    write = _write_sparse if original.is_sparse else _write
    for chunk in chunks:
        write(fd, memoryview(chunk))
    if original.is_sparse:
        os.ftruncate(fd, original.size_bytes)
    lacks_group = False
    if os.geteuid() == 0:
        os.fchown(fd, original.uid, original.gid)
    elif os.fstat(fd).st_gid != original.gid:
        lacks_group = without_group(mode) != mode
        mode = without_group(mode)
    os.fchmod(fd, mode)
    os.utime(fd, ns=(original.mtime_ns, original.mtime_ns))
    os.fsync(fd)
    return lacks_group


def _write(fd: int, view: memoryview) -> None:
    while view:
        view = view[os.write(fd, view) :]


def _write_sparse(fd: int, view: memoryview) -> None:
    while view:
        part, view = view[:_HOLE], view[_HOLE:]
        if part == _ZEROS[: len(part)]:
            os.lseek(fd, len(part), os.SEEK_CUR)
        else:
            _write(fd, part)
