"""What only a disk can show of the local tier: links, full disks, durability, permissions, folders that come and go."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifecycle.errors import AlreadyExists, PlaceUnavailable, Skipped, StorageFull
from lifecycle.tiers import make_key, posix
from lifecycle.tiers.local import LocalTier

KEY = make_key("vision", "training", 20_513, "a.tar.zst")
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="not root: cannot mount or change owners")


def put(tier: LocalTier, key: str = KEY, data: bytes = b"content", *, temporary: str = "t") -> None:
    writer = tier.create(key, temporary=temporary, mode=0o640)
    writer.write(data)
    writer.seal()
    writer.publish()


def files_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


@pytest.fixture
def tier(tmp_path: Path) -> Iterator[LocalTier]:
    root = tmp_path / "tier"
    root.mkdir()
    opened = LocalTier(str(root))
    yield opened
    opened.close()


@contextlib.contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_root_that_is_not_there_is_unavailable_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(PlaceUnavailable, match="No such file"):
        LocalTier(str(tmp_path / "unmounted"))
    assert not (tmp_path / "unmounted").exists()


def test_two_roots_that_are_one_folder_have_one_identity(tier: LocalTier, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tier.root)
    (tmp_path / "other").mkdir()
    assert LocalTier(str(tmp_path / "link")).identity == tier.identity
    assert LocalTier(str(tmp_path / "other")).identity != tier.identity


# full disks


@needs_root
def test_a_full_disk_leaves_nothing_and_other_objects_alone(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=1m") as disk:
        tier = LocalTier(str(disk))
        put(tier, data=b"x" * 100_000)
        writer = tier.create(KEY + "2", temporary="t2", mode=0o640)
        with pytest.raises(StorageFull, match="No space left"):
            for _ in range(100):
                writer.write(os.urandom(64 * 1024))
        assert files_below(disk) == [KEY]
        put(tier, KEY + "3", b"there is room again" * 1000)
        writer.abort()
        tier.close()


@needs_root
def test_a_disk_without_inodes_for_folders_leaves_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=1m,nr_inodes=6") as disk:  # root, ours, tmp, the object: two are left
        tier = LocalTier(str(disk))
        writer = tier.create(KEY, temporary="t", mode=0o640)
        writer.write(b"content")
        writer.seal()
        with pytest.raises(StorageFull):
            writer.publish()
        assert [path for path in disk.rglob("*") if ".lifecycle" not in str(path)] == []
        assert files_below(disk) == []
        tier.close()


# links


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_link_in_the_way_is_never_followed(tier: LocalTier, tmp_path: Path, depth: int) -> None:
    outside = tmp_path / "outside"
    inside = outside.joinpath(*KEY.split("/")[depth:-1])
    inside.mkdir(parents=True)
    (inside / "a.tar.zst").write_bytes(b"12345")
    parts = KEY.split("/")[:depth]
    Path(tier.root).joinpath(*parts[:-1]).mkdir(parents=True, exist_ok=True)
    Path(tier.root).joinpath(*parts).symlink_to(outside)
    for act in (
        lambda: tier.open(KEY),
        lambda: tier.facts(KEY),
        lambda: tier.remove(KEY, size_bytes=5),
        lambda: put(tier, KEY + "2"),
    ):
        with pytest.raises(PlaceUnavailable, match="links are not followed"):
            act()
    assert list(tier.iter_objects()) == []
    assert files_below(outside) == [str((inside / "a.tar.zst").relative_to(outside))]
    assert not tier.sweep("t")


def test_our_own_folder_may_not_be_a_link(tier: LocalTier, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "tmp").mkdir(parents=True)
    (outside / "tmp" / "t").write_bytes(b"somebody's")
    (Path(tier.root) / ".lifecycle").symlink_to(outside)
    with pytest.raises(PlaceUnavailable):
        put(tier)
    with pytest.raises(PlaceUnavailable):
        tier.sweep("t")
    assert (outside / "tmp" / "t").read_bytes() == b"somebody's"


def test_an_object_that_is_a_link_or_a_pipe_is_no_object(tier: LocalTier, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"12345")
    root = Path(tier.root)
    (root / "link").symlink_to(secret)
    os.mkfifo(root / "pipe")
    os.link(secret, root / "file")
    assert [facts.key for facts in tier.iter_objects()] == ["file"]
    for key in ("link", "pipe"):
        assert tier.facts(key) is None
        with pytest.raises(PlaceUnavailable):
            tier.open(key)
        with pytest.raises(Skipped):
            tier.remove(key, size_bytes=5)
    assert secret.read_bytes() == b"12345"


def test_names_that_are_no_text_are_nobodys_objects(tier: LocalTier) -> None:
    Path(os.fsdecode(os.fsencode(tier.root) + b"/odd\xff")).write_bytes(b"x")
    put(tier)
    assert [facts.key for facts in tier.iter_objects()] == [KEY]


def test_a_temporary_that_was_swapped_is_not_published(tier: LocalTier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    writer.write(b"content")
    writer.seal()
    path = Path(tier.root) / ".lifecycle" / "tmp" / "t"
    path.unlink()
    path.write_bytes(b"another")
    with pytest.raises(PlaceUnavailable, match="replaced by somebody else"):
        writer.publish()
    assert tier.facts(KEY) is None


def test_a_temporary_that_vanished_is_not_published(tier: LocalTier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    writer.seal()
    assert tier.sweep("t")
    with pytest.raises(PlaceUnavailable, match="vanished"):
        writer.publish()
    assert files_below(Path(tier.root)) == []


# durability


def test_everything_a_new_object_needs_is_synced_in_order(tier: LocalTier, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, bool]] = []
    sync, target = os.fsync, Path(tier.root) / KEY

    def observed(fd: int) -> None:
        synced.append((os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), tier.root), target.exists()))
        sync(fd)

    monkeypatch.setattr(os, "fsync", observed)
    put(tier)
    before = [path for path, is_published in synced if not is_published]
    after = [path for path, is_published in synced if is_published]
    assert before.index(".lifecycle/tmp/t") < before.index(".lifecycle/tmp", before.index(".lifecycle/tmp/t"))
    assert after == ["vision/training/2026-03-01", "vision/training", "vision", "."]


def test_removal_is_synced(tier: LocalTier, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tier)
    synced: list[str] = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), sync(fd)))
    tier.remove(KEY, size_bytes=7)
    assert synced == [f"{tier.root}/vision/training/2026-03-01"]


def test_what_is_sealed_is_read_from_the_disk_and_not_from_the_cache(tier: LocalTier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640)
    writer.write(os.urandom(2**20))
    reader = writer.seal()
    cached = cached_pages(Path(tier.root) / ".lifecycle" / "tmp" / "t")
    writer.abort()
    if cached and os.statvfs(tier.root).f_fsid == 0:
        pytest.skip("this file system has nothing below its cache")
    assert cached == 0
    reader.close()


def cached_pages(path: Path) -> int:
    size = path.stat().st_size
    with (
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE) as mapped,
    ):
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        address = libc.mmap(
            None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_PRIVATE, file.fileno(), ctypes.c_long(0)
        )
        assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), pages) == 0
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
        del mapped
    return sum(page & 1 for page in pages)


# names without replacing, where renameat2 cannot


@pytest.fixture
def no_renameat2(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that does not know RENAME_NOREPLACE, as NFS is one."""
    monkeypatch.setattr(posix, "renameat2", lambda *_: errno.EINVAL)


@pytest.mark.usefixtures("no_renameat2")
def test_without_renameat2_publishing_still_replaces_nothing(tier: LocalTier) -> None:
    put(tier, data=b"first")
    writer = tier.create(KEY, temporary="t2", mode=0o640)
    writer.write(b"second")
    writer.seal()
    with pytest.raises(AlreadyExists):
        writer.publish()
    writer.abort()
    path = Path(tier.root) / KEY
    assert path.read_bytes() == b"first" and path.stat().st_nlink == 1
    assert files_below(Path(tier.root)) == [KEY]


@pytest.mark.usefixtures("no_renameat2")
def test_an_answer_lost_on_the_way_is_no_clash(tier: LocalTier) -> None:
    """NFS may send a link call twice: the second finds our own file there."""
    writer = tier.create(KEY, temporary="t", mode=0o640)
    writer.write(b"content")
    writer.seal()
    path = Path(tier.root) / KEY
    path.parent.mkdir(parents=True)
    os.link(Path(tier.root) / ".lifecycle" / "tmp" / "t", path)
    writer.publish()
    assert path.read_bytes() == b"content" and path.stat().st_nlink == 1


# permissions


def test_the_mode_is_what_was_asked_for_whatever_the_umask(tier: LocalTier) -> None:
    before = os.umask(0o077)
    try:
        put(tier)
    finally:
        os.umask(before)
    assert stat.S_IMODE((Path(tier.root) / KEY).stat().st_mode) == 0o640


def test_nobody_else_reads_a_temporary(tier: LocalTier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o666)
    folder = Path(tier.root) / ".lifecycle"
    assert stat.S_IMODE((folder / "tmp").stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "tmp" / "t").stat().st_mode) == 0o600
    writer.abort()


@needs_root
def test_the_group_is_what_was_asked_for(tier: LocalTier) -> None:
    writer = tier.create(KEY, temporary="t", mode=0o640, gid=4242)
    writer.seal()
    writer.publish()
    facts = (Path(tier.root) / KEY).stat()
    assert (facts.st_gid, stat.S_IMODE(facts.st_mode)) == (4242, 0o640)


@needs_root
def test_where_the_group_cannot_be_given_no_group_may_read(tmp_path: Path) -> None:
    """Better unreadable to its team than readable to somebody else's."""
    root = tmp_path / "tier"
    root.mkdir()
    root.chmod(0o777)
    for above in (tmp_path, *tmp_path.parents):
        if above == above.parent or above == Path("/tmp"):
            break
        above.chmod(0o755)
    os.setegid(65534)
    os.seteuid(65534)
    try:
        tier = LocalTier(str(root))
        writer = tier.create(KEY, temporary="t", mode=0o640, gid=4242)
        writer.seal()
        writer.publish()
    finally:
        os.seteuid(0)
        os.setegid(0)
    assert stat.S_IMODE((root / KEY).stat().st_mode) == 0o600


# folders that come and go


def test_folders_that_became_empty_go_and_others_stay(tier: LocalTier) -> None:
    other = make_key("vision", "error", 20_513, "b.tar.zst")
    put(tier)
    put(tier, other)
    tier.remove(KEY, size_bytes=7)
    assert sorted(path.name for path in (Path(tier.root) / "vision").iterdir()) == ["error"]
    tier.remove(other, size_bytes=7)
    assert [path.name for path in Path(tier.root).iterdir()] == [".lifecycle"]


def test_folders_may_go_while_others_publish_into_them(tier: LocalTier) -> None:
    errors: list[Exception] = []

    def work(worker: int) -> None:
        try:
            for turn in range(60):
                key = make_key("vision", "training", 20_513, f"{worker}-{turn}")
                put(tier, key, temporary=f"t{worker}")
                assert tier.remove(key, size_bytes=7)
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []
    assert files_below(Path(tier.root)) == []


@pytest.mark.skipif(IS_ROOT, reason="root sees everything")
def test_a_folder_that_cannot_be_read_ends_the_listing(tier: LocalTier) -> None:
    put(tier)
    (Path(tier.root) / "vision").chmod(0o000)
    try:
        with pytest.raises(PlaceUnavailable):
            list(tier.iter_objects())
    finally:
        (Path(tier.root) / "vision").chmod(0o755)


def test_no_handle_is_left_open(tier: LocalTier) -> None:
    put(tier)
    before = len(os.listdir("/proc/self/fd"))
    for turn in range(5):
        put(tier, KEY + str(turn))
        with pytest.raises(AlreadyExists):
            put(tier, KEY + str(turn), temporary="t2")
        tier.sweep("t2")
        tier.open(KEY).close()
        with pytest.raises(FileNotFoundError):
            tier.open(KEY + "-none")
        tier.facts("a/b/c/d")
        tier.remove(KEY + str(turn), size_bytes=7)
        list(tier.iter_objects())
    after = len(os.listdir("/proc/self/fd"))
    assert after - before == 5 * 2  # the five that were neither published nor aborted hold folder and file
