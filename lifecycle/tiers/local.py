"""A tier that is a directory of a local or mounted file system.

Knows directory handles and durable renames; never the catalog, policy, or what an object means. Every path is opened
component by component below the root's handle and no link is followed. An object is written under
``.lifecycle/tmp`` and gets its key by a rename that cannot replace anything: a crash leaves a temporary, never half an
object. Directories that a new object needed are made durable before ``publish`` returns.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Final

from lifecycle.errors import AlreadyExists, LifecycleError, PlaceUnavailable, Skipped, UsageError
from lifecycle.ports import ObjectFacts, TierSpec
from lifecycle.tiers.keys import check_key, check_temporary
from lifecycle.tiers.posix import DIRECTORY, enter, forget_pages, open_file, rename_new, sorted_entries, told

KIND: Final = "local"
_OURS: Final = ".lifecycle"
_TEMPORARY: Final = "tmp"
_TRIES: Final = 50  # a folder that was empty may be pruned between making it and using it


class LocalTier:
    """Reader and writer of the tier at ``root``, which must be there: a missing root is an unmounted disk."""

    def __init__(self, root: str) -> None:
        self.root = root
        try:
            self._root_fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise PlaceUnavailable(
                f"tier {root}: {error.strerror}", hint="is its disk mounted? new tiers are made by `lifecycle init`"
            ) from None

    def __repr__(self) -> str:
        return f"LocalTier({self.root!r})"

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode of the root: two tiers with the same one are the same place."""
        facts = os.fstat(self._root_fd)
        return facts.st_dev, facts.st_ino

    def close(self) -> None:
        """Safe twice; the tier is unusable afterwards."""
        if self._root_fd >= 0:
            os.close(self._root_fd)
            self._root_fd = -1

    # reading

    def open(self, key: str) -> LocalReader:
        parts = check_key(key)
        with told(f"{self.root}/{key}", absent_is_error=True), self._folder(parts[:-1]) as folder:
            return LocalReader(open_file(folder, parts[-1]), f"{self.root}/{key}")

    def facts(self, key: str) -> ObjectFacts | None:
        parts = check_key(key)
        try:
            with told(f"{self.root}/{key}", absent_is_error=True), self._folder(parts[:-1]) as folder:
                found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return ObjectFacts(key=key, size_bytes=found.st_size, mtime_ns=found.st_mtime_ns)

    def iter_objects(self, prefix: str = "") -> Iterator[ObjectFacts]:
        """Raises PlaceUnavailable at a folder that cannot be read: a short listing is never taken for a whole one."""
        yield from self._walk(self._root_fd, "", prefix)

    def _walk(self, folder: int, above: str, prefix: str) -> Iterator[ObjectFacts]:
        with told(f"{self.root}/{above}"):
            names = sorted_entries(folder)
        for name, is_folder in names:
            key = above + name
            if key == _OURS or not (key.startswith(prefix) or prefix.startswith(key + "/")):
                continue
            if is_folder:
                with told(f"{self.root}/{key}"):
                    below = os.open(name, DIRECTORY, dir_fd=folder)
                try:
                    yield from self._walk(below, key + "/", prefix)
                finally:
                    os.close(below)
            elif key.startswith(prefix):
                with contextlib.suppress(FileNotFoundError), told(f"{self.root}/{key}", absent_is_error=True):
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    yield ObjectFacts(key=key, size_bytes=found.st_size, mtime_ns=found.st_mtime_ns)

    # writing

    def create(self, key: str, *, temporary: str, mode: int, gid: int | None = None) -> LocalWriter:
        parts = check_key(key)
        name = check_temporary(temporary)
        with told(f"{self.root}/{key}"):
            folder = self._temporary_folder()
            try:
                return LocalWriter(self, parts, folder=folder, temporary=name, mode=mode & 0o777, gid=gid)
            except BaseException:
                os.close(folder)
                raise

    def remove(self, key: str, *, size_bytes: int) -> bool:
        parts = check_key(key)
        try:
            with told(f"{self.root}/{key}", absent_is_error=True), self._folder(parts[:-1]) as folder:
                found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISREG(found.st_mode) or found.st_size != size_bytes:
                    raise Skipped(f"{self.root}/{key}: has {found.st_size} bytes and {size_bytes} were expected")
                os.unlink(parts[-1], dir_fd=folder)
                os.fsync(folder)
        except FileNotFoundError:
            return False
        self.prune(parts[:-1])
        return True

    def sweep(self, temporary: str) -> bool:
        name = check_temporary(temporary)
        try:
            with told(self.root, absent_is_error=True), self._folder((_OURS, _TEMPORARY)) as folder:
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
        except FileNotFoundError:
            return False
        return True

    # handles

    @contextlib.contextmanager
    def _folder(self, parts: tuple[str, ...]) -> Iterator[int]:
        """A handle on a folder below the root, no link followed. Raises FileNotFoundError."""
        fd = os.open(".", DIRECTORY, dir_fd=self._root_fd)
        try:
            for part in parts:
                below = os.open(part, DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    def _temporary_folder(self) -> int:
        fd = os.open(".", DIRECTORY, dir_fd=self._root_fd)
        for part, mode in ((_OURS, 0o755), (_TEMPORARY, 0o700)):
            fd = enter(fd, part, mode)
        return fd

    def prune(self, parts: tuple[str, ...]) -> None:
        """Remove folders that became empty; harmless if somebody was quicker or puts something there."""
        for length in range(len(parts), 0, -1):
            try:
                with self._folder(parts[: length - 1]) as folder:
                    os.rmdir(parts[length - 1], dir_fd=folder)
            except FileNotFoundError:
                continue
            except OSError:
                return

    def place(self, parts: tuple[str, ...], *, folder: int, temporary: str, identity: tuple[int, int]) -> None:
        """Give a sealed temporary its key, durably, replacing nothing. For ``LocalWriter``."""
        for _ in range(_TRIES):
            found = os.stat(temporary, dir_fd=folder, follow_symlinks=False)
            if (found.st_dev, found.st_ino) != identity:
                raise PlaceUnavailable(f"tier {self.root}: temporary {temporary} was replaced by somebody else")
            chain: list[int] = []
            try:
                self._make_folders(parts[:-1], chain)
                rename_new(folder, temporary, chain[-1], parts[-1])
                for fd in reversed(chain):
                    os.fsync(fd)
                return
            except FileNotFoundError:
                continue  # a folder was pruned meanwhile
            finally:
                for fd in chain:
                    os.close(fd)
        raise PlaceUnavailable(f"tier {self.root}: the folder of {'/'.join(parts)} vanishes while it is used")

    def _make_folders(self, parts: tuple[str, ...], chain: list[int]) -> None:
        """Fill ``chain`` with handles from the root down to the folder of a key, which is made where missing."""
        chain.append(os.open(".", DIRECTORY, dir_fd=self._root_fd))
        for part in parts:
            chain.append(enter(os.dup(chain[-1]), part, 0o755))


class LocalWriter:
    """One object in the making, see ``ports.ObjectWriter``."""

    def __init__(
        self,
        tier: LocalTier,
        parts: tuple[str, ...],
        *,
        folder: int,
        temporary: str,
        mode: int,
        gid: int | None,
    ) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(temporary, flags, 0o600, dir_fd=folder)
        self._tier = tier
        self._parts = parts
        self._folder = folder
        self._temporary = temporary
        self._mode = mode
        self._gid = gid
        self._name = f"{tier.root}/{'/'.join(parts)}"
        self._reader: LocalReader | None = None
        self._is_over = False

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Raises StorageFull, and then nothing of the object is left."""
        with self._undone_on_error():
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]

    def seal(self) -> LocalReader:
        with self._undone_on_error():
            os.fchmod(self._fd, self._mode & self._own_group())
            os.fsync(self._fd)
            os.fsync(self._folder)
            forget_pages(self._fd)
            written = os.fstat(self._fd)
            self._close_fd()
            reader = LocalReader(open_file(self._folder, self._temporary), self._name)
            self._reader = reader
            if reader.identity != (written.st_dev, written.st_ino):
                raise PlaceUnavailable(f"{self._name}: its temporary was replaced by somebody else")
            return reader

    def publish(self) -> None:
        if self._reader is None or self._is_over:
            raise ValueError("only a sealed object can be published, once")
        identity = self._reader.identity
        try:
            with told(self._name):
                self._tier.place(self._parts, folder=self._folder, temporary=self._temporary, identity=identity)
        except AlreadyExists:
            raise
        except LifecycleError:
            self.abort()
            self._tier.prune(self._parts[:-1])
            raise
        self._end()

    def abort(self) -> None:
        if self._is_over:
            return
        with contextlib.suppress(OSError):
            os.unlink(self._temporary, dir_fd=self._folder)
        self._end()

    def _own_group(self) -> int:
        """Give the object its group; the permission bits that may stay: without the group, not the group's."""
        if self._gid is None or os.fstat(self._fd).st_gid == self._gid:
            return 0o777
        try:
            os.fchown(self._fd, -1, self._gid)
        except PermissionError:
            return 0o707
        return 0o777

    @contextlib.contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        if self._is_over or self._reader is not None:
            raise ValueError("the object is sealed, published or aborted")
        try:
            with told(self._name):
                yield
        except LifecycleError:
            self.abort()
            raise

    def _close_fd(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _end(self) -> None:
        self._is_over = True
        self._close_fd()
        if self._reader is not None:
            self._reader.close()
        os.close(self._folder)


class LocalReader:
    """One open object. Its size is that of the moment it was opened."""

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        facts = os.fstat(fd)
        self.size_bytes = facts.st_size
        self.identity = (facts.st_dev, facts.st_ino)

    def read_range(self, offset: int, length: int) -> bytes:
        with told(self._name):
            data = os.pread(self._fd, length, offset)
            if len(data) == length or not data:
                return data
            parts = [data]
            done = len(data)
            while done < length and (data := os.pread(self._fd, length - done, offset + done)):
                parts.append(data)
                done += len(data)
            return b"".join(parts)

    def close(self) -> None:
        """Safe twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_local(spec: TierSpec) -> LocalTier:
    """``identity`` in the options is the device and inode that the root must have: a worker opens by path what the run
    looked at before, and a file system that was unmounted meanwhile leaves an ordinary directory behind."""
    options = dict(spec.options)
    identity = options.pop("identity", "")
    if options:
        raise UsageError(f"tier {spec.root}: a local tier has no option {next(iter(options))!r}")
    tier = LocalTier(spec.root)
    if identity and identity != "{}:{}".format(*tier.identity):
        tier.close()
        raise PlaceUnavailable(f"tier {spec.root} is not the directory it was at the start of the run: unmounted?")
    return tier
