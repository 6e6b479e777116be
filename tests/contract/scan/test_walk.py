"""The walk: every folder once, in the catalog's order, with a signature that nothing can hide behind."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from lifecycle.scan.handles import Root
from lifecycle.scan.walk import Walk


@dataclass
class Everything:
    """Layouts that leave out the folders named."""

    out: frozenset[bytes] = frozenset()
    excluded: bool = False

    def enter(self, directory: bytes) -> Everything:
        return Everything(excluded=directory in self.out)


def signatures(base: Path, *, out: frozenset[bytes] = frozenset(), key: bytes = b"") -> dict[bytes, bytes]:
    with Root(str(base)) as root:
        return {folder.path: folder.signature for folder in Walk(root, Everything(out), key)}


def test_folders_come_in_the_order_of_their_path_bytes(tmp_path: Path) -> None:
    for path in ("a/b", "a-b/c", "a.b", "a/b-c", "a0", "Z", "\u00e9", "a/b/c"):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
    paths = list(signatures(tmp_path))
    assert paths == sorted(paths)
    assert len(paths) == len(set(paths)) == 11  # with the root, "a" and "a-b"


def test_each_change_of_a_file_changes_the_signature_of_its_folder_alone(tmp_path: Path) -> None:
    job, other = tmp_path / "job", tmp_path / "other"
    job.mkdir()
    other.mkdir()
    log = job / "a.log"
    log.write_bytes(b"12345")
    (other / "b.log").write_bytes(b"1")
    stays = os.stat(log)

    def rewritten_with_its_time_put_back() -> None:
        log.write_bytes(b"54321")
        os.utime(log, ns=(stays.st_atime_ns, stays.st_mtime_ns))

    def replaced_by_a_copy() -> None:
        (job / "new").write_bytes(b"54321")
        os.utime(job / "new", ns=(stays.st_atime_ns, stays.st_mtime_ns))
        (job / "new").rename(log)

    changes = (
        lambda: log.chmod(0o600), rewritten_with_its_time_put_back, replaced_by_a_copy,
        lambda: log.write_bytes(b"123456"), (job / "x.log").touch, lambda: (job / "x.log").rename(job / "y.log"),
        (job / "y.log").unlink, lambda: os.link(log, tmp_path / "link"),
    )  # fmt: skip
    seen = [signatures(tmp_path)]
    for change in changes:
        time.sleep(0.02)  # the kernel's clock for files ticks every few ms
        change()
        seen.append(signatures(tmp_path))
    assert all(before[b"job"] != after[b"job"] for before, after in pairwise(seen))
    assert len({item[b"other"] for item in seen}) == 1


def test_what_decides_whose_files_are_ours_is_part_of_the_signature(tmp_path: Path) -> None:
    assert signatures(tmp_path, key=b"1") != signatures(tmp_path, key=b"2")


def test_links_and_special_files_are_counted_and_nothing_more(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.log").write_text("key")
    base = tmp_path / "base"
    base.mkdir()
    (base / "keys").symlink_to(outside)
    (base / "a.log").symlink_to(outside / "secret.log")
    (base / "loop").symlink_to(base)
    (base / "nowhere").symlink_to("missing")
    os.mkfifo(base / "pipe.log")
    os.mknod(base / "s.log", stat.S_IFSOCK | 0o600)  # bind() takes 107 bytes of path
    with Root(str(base)) as root:
        walk = Walk(root, Everything())
        folders = list(walk)
    assert [(folder.path, folder.entries) for folder in folders] == [(b"", [])]
    assert (walk.found.count("link"), walk.found.count("special")) == (4, 2)


def test_an_excluded_folder_is_not_entered_and_ours_not_even_counted(tmp_path: Path) -> None:
    for path in ("checkpoints/deep", "logs", ".lifecycle/release", "lost+found", "logs/lost+found"):
        (tmp_path / path).mkdir(parents=True)
    with Root(str(tmp_path)) as root:
        walk = Walk(root, Everything(frozenset({b"checkpoints"})))
        assert [folder.path for folder in walk] == [b"", b"logs", b"logs/lost+found"]
    assert walk.found.count("excluded") == 1
    assert walk.blind_spot(b"checkpoints/deep") == "excluded"
    assert walk.blind_spot(b"logs") is None


def failing_after(count: int, error: OSError) -> object:
    """A listing that breaks off, as a network file system does."""

    @contextmanager
    def listing(fd: int) -> Iterator[Iterator[os.DirEntry[str]]]:
        def some() -> Iterator[os.DirEntry[str]]:
            for number, entry in enumerate(sorted(entries, key=lambda item: item.name)):
                if number == count:
                    raise error
                yield entry

        with os.scandir(fd) as entries:
            yield some()

    return listing


def test_nothing_of_a_half_read_listing_counts(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b.log").write_text("x")
    (tmp_path / "c.log").symlink_to("b.log")
    (tmp_path / "d.log").write_text("x")
    with Root(str(tmp_path)) as root:
        walk = Walk(root, Everything(), list_folder=failing_after(3, OSError(5, "Input/output error")))  # type: ignore[arg-type]
        assert list(walk) == []
    assert walk.unseen == {b"": "Input/output error"}
    assert walk.blind_spot(b"a/deep") == "unseen"
    assert (walk.files, walk.found.count("link")) == (0, 0)


def test_a_folder_that_becomes_a_link_before_it_is_listed_is_one(tmp_path: Path) -> None:
    (tmp_path / "my device").mkdir()
    (tmp_path / "outside").mkdir()
    with Root(str(tmp_path)) as root:
        walk = Walk(root, Everything(frozenset({b"outside"})))
        folders = iter(walk)
        next(folders)
        (tmp_path / "my device").rmdir()
        (tmp_path / "my device").symlink_to("outside")
        assert list(folders) == []
    assert walk.hidden == {b"my device": "link", b"outside": "excluded"}


def test_another_device_is_counted_and_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounted/job").mkdir(parents=True)
    with Root(str(tmp_path)) as root:
        monkeypatch.setattr(root, "_mounted", frozenset({b"mounted"}))
        walk = Walk(root, Everything())
        assert [folder.path for folder in walk] == [b""]
    assert walk.hidden == {b"mounted": "other_device"}
    with Root(str(tmp_path), mounts=[b"mounted"]) as root:
        monkeypatch.setattr(root, "_mounted", frozenset({b"mounted"}))
        assert [folder.path for folder in Walk(root, Everything())] == [b"", b"mounted", b"mounted/job"]


def test_a_folder_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root sees everything")
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "open").mkdir()
    with Root(str(tmp_path)) as root:
        walk = Walk(root, Everything())
        assert [folder.path for folder in walk] == [b"", b"open"]
    (tmp_path / "closed").chmod(0o700)
    assert list(walk.unseen) == [b"closed"]
