"""Archives are readable by nobody who could not read the members where they lay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lifecycle.execute.readers import mode_for_readers
from lifecycle.scan.handles import Root


@pytest.mark.parametrize(
    ("folder_mode", "expected"),
    [(0o755, 0o644), (0o711, 0o644), (0o750, 0o640), (0o700, 0o600), (0o705, 0o604)],
)
def test_a_folder_keeps_out_whom_its_mode_keeps_out(tmp_path: Path, folder_mode: int, expected: int) -> None:
    (tmp_path / "team/job/deep").mkdir(parents=True)
    (tmp_path / "team/job").chmod(folder_mode)
    tmp_path.chmod(0o755)
    with Root(os.fsencode(tmp_path)) as root:
        assert mode_for_readers(root, [b"team/job/deep"], mode=0o644, gid=os.getgid()) == expected


def test_a_group_that_only_owns_the_file_needs_a_folder_open_to_all(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job").chmod(0o750)
    tmp_path.chmod(0o755)
    with Root(os.fsencode(tmp_path)) as root:
        assert mode_for_readers(root, [b"job"], mode=0o640, gid=os.getgid() + 1) == 0o600


def test_a_folder_that_is_gone_is_its_owners_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with Root(os.fsencode(tmp_path)) as root:
        assert mode_for_readers(root, [b"nowhere"], mode=0o644, gid=os.getgid()) == 0o600
