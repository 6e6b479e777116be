"""Who has a file open for writing."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lifecycle.scan import evidence
from lifecycle.scan.evidence import files_open_for_writing, has_writer, probe
from lifecycle.scan.handles import Root


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "rank_0.log"
    path.write_bytes(b"step=1\n")
    fd = os.open(path, os.O_RDONLY)
    able = has_writer(fd) is not None
    os.close(fd)
    if not able:
        pytest.skip("this file system has no leases")
    return path


def asked(path: Path) -> bool | None:
    fd = os.open(path, os.O_RDONLY)
    try:
        return has_writer(fd)
    finally:
        os.close(fd)


def identity(path: Path) -> tuple[int, int]:
    return path.stat().st_dev, path.stat().st_ino


def test_a_lease_tells_a_writer_from_a_reader(log: Path) -> None:
    assert asked(log) is False
    with log.open("rb"):
        assert asked(log) is False
    with log.open("ab"):
        assert asked(log) is True
    assert asked(log) is False


def test_a_lease_is_dropped_at_once(log: Path) -> None:
    fd = os.open(log, os.O_RDONLY)
    assert has_writer(fd) is False
    log.open("ab").close()  # would wait for the lease to be given up
    os.close(fd)


def test_a_writer_that_breaks_a_lease_does_not_end_the_program(log: Path) -> None:
    code = (
        "import fcntl, os, signal, sys\n"
        "from lifecycle.scan import evidence\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "real = fcntl.fcntl\n"
        "def between(fd, command, value=0):\n"
        "    done = real(fd, command, value)\n"
        "    if (command, value) == (fcntl.F_SETLEASE, fcntl.F_RDLCK):\n"
        "        try: os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)\n"  # breaks the lease that we hold just now
        "        except BlockingIOError: print('broken', flush=True)\n"
        "    return done\n"
        "evidence.fcntl.fcntl = between\n"
        "evidence.has_writer(fd)\n"
        "print('alive')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(log)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["alive"]), done


def test_proc_shows_writers_and_not_readers(log: Path) -> None:
    with log.open("rb"):
        assert identity(log) not in files_open_for_writing().identities
    with log.open("ab"):
        assert identity(log) in files_open_for_writing().identities
    assert identity(log) not in files_open_for_writing().identities


def test_proc_shows_a_shared_mapping_whose_descriptor_is_closed(log: Path) -> None:
    with log.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    assert identity(log) in files_open_for_writing().identities
    mapped.close()
    assert identity(log) not in files_open_for_writing().identities


def test_a_proc_that_cannot_be_read_is_not_complete(tmp_path: Path) -> None:
    found = files_open_for_writing(tmp_path / "no-proc")
    assert (found.identities, found.complete) == (frozenset(), False)


def test_a_container_that_sees_only_itself_is_not_complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ns").symlink_to("pid:[4026532999]")
    monkeypatch.setattr(evidence, "_OUR_PID_NAMESPACE", tmp_path / "ns")
    assert not files_open_for_writing().complete


def test_a_probe_says_what_works_and_changes_nothing(log: Path) -> None:
    before = os.stat(log.parent)
    with Root(str(log.parent)) as root:
        found = probe(root)
    assert found.lease == (found.file_system in evidence.LOCAL_TYPES)
    assert found.sees_writers == (found.lease or found.proc)
    assert os.stat(log.parent).st_mtime_ns == before.st_mtime_ns


def test_on_a_network_file_system_nothing_is_evidence(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of them grant a lease to this host while another one writes."""
    monkeypatch.setattr(evidence, "file_system_type", lambda path: "lustre")
    with Root(str(log.parent)) as root:
        assert not probe(root).sees_writers


def test_the_signal_of_a_broken_lease_is_one_that_ends_nothing() -> None:
    assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL  # whose default is to be ignored
