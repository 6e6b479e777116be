"""Reading originals for a packer: by handle, whole where they are small, and said in words where they cannot be had.

Knows one order's files below one root. Never writes, and decides nothing: what is refused here is left as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final, Self

from lifecycle.archive import MemberFacts
from lifecycle.errors import LifecycleError, Skipped
from lifecycle.execute.orders import OriginalFile, Refusal, Trouble
from lifecycle.scan.handles import Root, ThreadRoots

WHOLE_BYTES: Final = 4 * 2**20  # up to here a member is one read; above it is streamed
_CHUNK_BYTES: Final = 2**20
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Originals:
    """Reads originals, from several threads at once where each has to wait: every thread has handles of its own."""

    def __init__(self, root: str, mounts: Sequence[bytes]) -> None:
        self._root = Root(root, mounts=mounts)
        self._roots = ThreadRoots(self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._roots.__exit__(*error)
        self._root.close()

    def open(self, member: OriginalFile) -> int:
        """A descriptor, the caller's to close. Raises OSError, and Skipped or PlaceUnavailable for its folder."""
        return os.open(member.name, _READ_FLAGS, dir_fd=self._roots.here().directory(member.directory))

    def read(self, member: OriginalFile) -> bytes | Refusal | None:
        """One open, one read, one close. Whether it is still the same file is asked again before it is released.

        None for a large one, which is streamed when its turn has come.
        """
        return self._read(member, asks_first=False)

    def read_same(self, member: OriginalFile) -> bytes | Refusal | None:
        """As ``read``, of a file that is not released afterwards: whether it is the same is asked now."""
        return self._read(member, asks_first=True)

    def _read(self, member: OriginalFile, *, asks_first: bool) -> bytes | Refusal | None:
        if member.size_bytes > WHOLE_BYTES:
            return None
        try:
            fd = self.open(member)
            try:
                if asks_first and (trouble := changed(member, fd)) is not None:
                    return trouble
                data = os.read(fd, member.size_bytes + 1)
            finally:
                os.close(fd)
        except (OSError, LifecycleError) as error:
            return refusal_of(member, error)
        if len(data) != member.size_bytes:
            return refusal(member, Trouble.CHANGED, f"{len(data)} bytes or more read, {member.size_bytes} expected")
        return data


def facts_of(member: OriginalFile, source: str, place_uid: str, class_name: str) -> MemberFacts:
    """What an archive says of an original."""
    return MemberFacts(
        member.segment_id, member.path, source, place_uid, member.size_bytes, member.mtime_ns, member.mode, member.uid,
        member.gid, member.labels, class_name, member.last_write_ns,
    )  # fmt: skip


def changed(member: OriginalFile, fd: int) -> Refusal | None:
    """Why an open file is not the one that its order means; None if it is."""
    found = os.fstat(fd)
    if (found.st_ino, found.st_size, found.st_mtime_ns) == (member.inode, member.size_bytes, member.mtime_ns):
        return None
    detail = f"size {found.st_size}, {member.size_bytes} expected, or another file or time"
    return refusal(member, Trouble.CHANGED, detail)


def chunks_of(fd: int) -> Iterator[bytes]:
    while chunk := os.read(fd, _CHUNK_BYTES):
        yield chunk


def refusal_of(member: OriginalFile, error: OSError | LifecycleError) -> Refusal:
    if isinstance(error, FileNotFoundError):
        return refusal(member, Trouble.VANISHED, "no longer there")
    if isinstance(error, Skipped):
        return refusal(member, Trouble.CLASH, error.message)
    return refusal(member, Trouble.UNREADABLE, str(error))


def refusal(member: OriginalFile, trouble: Trouble, detail: str) -> Refusal:
    return Refusal(segment_id=member.segment_id, trouble=trouble, detail=detail)
