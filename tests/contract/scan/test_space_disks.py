"""File systems as they are measured: real small ones, shared ones, and what a command says instead."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifecycle.model import TierName
from lifecycle.scan.space import Ground, measure_space, run_command

MIB = 2**20


def ground(
    root: Path, number: int = 1, tier: TierName = TierName.HOT, *, name: str = "", command: tuple[str, ...] = ()
) -> Ground:
    return Ground(place_id=number, name=name or f"place-{number}", tier=tier, root=str(root), command=command)


def mount_tmpfs(folder: Path, size: str) -> None:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("this kernel does not let this user mount a tmpfs")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    folder = tmp_path / "small"
    mount_tmpfs(folder, "16m")
    yield folder
    subprocess.run(["umount", str(folder)], check=False)


def a_script(folder: Path, body: str) -> str:
    path = folder / "fullest"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_file_system_of_its_own_is_measured(small: Path, tmp_path: Path) -> None:
    (small / "log").write_bytes(b"x" * 5 * MIB)
    ours, others = measure_space([ground(small), ground(tmp_path, 2, TierName.WARM)])
    assert (ours.name, ours.tiers, ours.place_ids) == ("hot", (TierName.HOT,), (1,))
    assert (ours.total_bytes, ours.used_bytes) == (16 * MIB, 5 * MIB)
    assert ours.used_inodes >= 1
    assert (others.name, others.place_ids) == ("warm", (2,))


def test_places_on_one_file_system_are_one_and_those_on_two_have_two_names(small: Path, tmp_path: Path) -> None:
    for each in ("a", "b"):
        (tmp_path / each).mkdir()
    found = measure_space(
        [ground(tmp_path / "a"), ground(tmp_path / "b", 2, TierName.COLD), ground(small, 3, name="nvme")]
    )
    assert [(each.name, each.place_ids) for each in found] == [("hot+cold", (1, 2)), ("hot", (3,))]
    found = measure_space([ground(tmp_path / "a", name="lustre"), ground(small, 3, name="nvme")])
    assert [each.name for each in found] == ["hot lustre", "hot nvme"]


def test_sparse_files_count_what_they_occupy(small: Path) -> None:
    """Bug case B21: allocated bytes, not the size that the name shows."""
    with (small / "sparse.log").open("wb") as file:
        file.truncate(1000 * MIB)
    (found,) = measure_space([ground(small)])
    assert found.used_bytes < MIB


def test_a_place_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    (found,) = measure_space([ground(tmp_path / "gone")])
    assert "No such file" in found.unknown


def test_a_command_speaks_for_its_file_system_and_is_asked_once(tmp_path: Path) -> None:
    log = tmp_path / "asked"
    command = (a_script(tmp_path, f"echo $1 >> {log}; echo 1000 200"), "/lustre")
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    (found,) = measure_space([ground(first, 1, command=command), ground(second, 2, command=command)])
    assert (found.total_bytes, found.free_bytes, found.place_ids) == (1000, 200, (1, 2))
    assert log.read_text() == "/lustre\n"


def test_of_two_commands_for_one_file_system_the_fuller_answer_counts(tmp_path: Path) -> None:
    fuller, emptier = ("/bin/echo", "1000", "100"), ("/bin/echo", "2000", "1500")
    (found,) = measure_space([ground(tmp_path, 1, command=emptier), ground(tmp_path, 2, command=fuller)])
    assert (found.total_bytes, found.free_bytes) == (1000, 100)


@pytest.mark.parametrize(
    ("body", "words"),
    [("exit 3", "exit 3"), ("echo broken >&2; exit 1", "exit 1: broken"), ("echo 12", "printed '12'")],
)
def test_a_command_that_fails_leaves_it_unknown_and_statvfs_is_not_believed(
    tmp_path: Path, body: str, words: str
) -> None:
    (found,) = measure_space([ground(tmp_path, command=(a_script(tmp_path, body),))])
    assert words in found.unknown
    assert found.total_bytes == 0


def test_a_command_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    assert "No such file" in run_command([str(tmp_path / "nothing")]).unknown


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    begun = time.monotonic()
    said = run_command([a_script(tmp_path, f"sleep 600 & echo $! > {pid_file}; wait")], timeout=1.0)
    assert "no answer within 1 s" in said.unknown
    assert time.monotonic() - begun < 30
    child = int(pid_file.read_text())
    for _ in range(100):
        try:
            state = Path(f"/proc/{child}/stat").read_text().split()[2]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    os.kill(child, 0)
    pytest.fail("what the command had started is still there")
