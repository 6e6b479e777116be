"""Reaching into a place through handles: never through a link, never to another device, never outside (B31)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lifecycle.errors import PlaceUnavailable, Skipped
from lifecycle.scan.handles import Root, _mount_points_below


def test_a_folder_is_opened_once_and_read_through_its_handle(tmp_path: Path) -> None:
    (tmp_path / "vis/job1").mkdir(parents=True)
    (tmp_path / "vis/job1/a.log").write_text("x")
    with Root(str(tmp_path)) as root:
        fd = root.directory(b"vis/job1")
        assert os.listdir(fd) == ["a.log"]
        assert root.directory(b"vis/job1") == fd
        assert root.directory(b"") == root.fd


@pytest.mark.parametrize("path", [b"inside", b"inside/keys", b"vis/up"])
def test_a_link_in_the_way_is_not_followed(tmp_path: Path, path: bytes) -> None:
    outside = tmp_path / "outside"
    (outside / "keys").mkdir(parents=True)
    base = tmp_path / "root"
    (base / "vis").mkdir(parents=True)
    (base / "inside").symlink_to(outside)
    (base / "vis/up").symlink_to("..")
    with Root(str(base)) as root, pytest.raises(Skipped, match="not followed"):
        root.directory(path)


def test_a_folder_swapped_for_a_link_leads_nowhere_new(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.log").write_text("key")
    base = tmp_path / "root"
    (base / "job").mkdir(parents=True)
    with Root(str(base)) as root:
        held = root.directory(b"job")
        (base / "job").rename(base / "job.old")
        (base / "job").symlink_to(outside)
        assert root.directory(b"job") == held  # still the folder that was there
        assert os.listdir(held) == []
    with Root(str(base)) as root, pytest.raises(Skipped):
        root.directory(b"job")


@pytest.mark.parametrize("path", [b"..", b"vis/..", b"vis/../..", b"/etc", b"vis//job", b"."])
def test_no_path_leads_outside(tmp_path: Path, path: bytes) -> None:
    (tmp_path / "vis").mkdir()
    with Root(str(tmp_path)) as root, pytest.raises((Skipped, FileNotFoundError)):
        root.directory(path)


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with Root(str(tmp_path)) as root, pytest.raises(FileNotFoundError):
        root.directory(b"nobody/here")


def test_a_root_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(PlaceUnavailable, match="cannot be opened"):
        Root(str(tmp_path / "gone"))


def test_handles_are_few_however_many_folders_are_asked_for_and_all_closed(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"job{number}").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    root = Root(os.fsencode(tmp_path))
    for number in range(400):
        root.directory(b"job%d" % number)
    assert len(os.listdir("/proc/self/fd")) < before + 200
    root.close()
    root.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_mounted_below_is_not_entered_unless_listed(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    with Root(str(tmp_path)) as root:
        assert root.may_enter(b"x", root.device, root.device)
        assert not root.may_enter(b"x", root.device + 1, root.device)
    with Root(str(tmp_path), mounts=[b"x"]) as root:
        assert root.may_enter(b"x", root.device + 1, root.device)
        assert not root.may_enter(b"y", root.device + 1, root.device)


def test_bind_mounts_are_known_by_the_mount_table(tmp_path: Path) -> None:
    """They have the device of the tree around them, and would show the same files twice."""
    table = tmp_path / "mountinfo"
    table.write_text(
        f"36 35 8:1 / {tmp_path}/a\\040b rw - ext4 /dev/sda1 rw\n36 35 8:1 / {tmp_path}-other rw - ext4 /dev/sda1 rw\n"
        f"36 35 8:1 / {tmp_path} rw - ext4 /dev/sda1 rw\n"
    )
    assert _mount_points_below(os.fsencode(tmp_path), str(table)) == {b"a b"}
    assert _mount_points_below(os.fsencode(tmp_path), str(tmp_path / "none")) == frozenset()
