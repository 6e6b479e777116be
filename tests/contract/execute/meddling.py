"""Somebody who does something to a log at the worst moment: between two steps of a run that is under way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lifecycle.execute import executor, release
from lifecycle.execute.orders import PackOrder, ReleaseOrder
from lifecycle.scan.evidence import OpenFiles

Deed = Callable[[], object]


def once_before(monkeypatch: pytest.MonkeyPatch, name: str, path: str, deed: Deed) -> None:
    """Do the deed right before the executor's first ``run_pack`` or ``run_release`` of an order that has the file."""
    real: Callable[[Any], Any] = getattr(executor, name)
    todo = [deed]

    def meddled(order: PackOrder | ReleaseOrder) -> Any:
        if todo and any(member.path == path.encode() for member in order.members):
            todo.pop()()
        return real(order)

    monkeypatch.setattr(executor, name, meddled)


def once_renamed(monkeypatch: pytest.MonkeyPatch, file: Path, deed: Callable[[Path], object]) -> None:
    """Do the deed to the file in our folder, when nobody has been asked yet who has it open."""
    real: Callable[[], OpenFiles] = vars(release)["files_open_for_writing"]
    inode, todo = file.stat().st_ino, [deed]

    def meddled() -> OpenFiles:
        renamed = [path for path in file.parents[2].glob(".lifecycle/release/*/*") if path.stat().st_ino == inode]
        if todo and renamed:
            todo.pop()(renamed[0])
        return real()

    monkeypatch.setattr(release, "files_open_for_writing", meddled)


@contextmanager
def a_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the file open for appending until the block ends; ``say`` makes it write a line."""
    code = "import sys\nwith open(sys.argv[1], 'a') as f:\n print('open', flush=True)\n"
    code += " for line in sys.stdin:\n  f.write(line); f.flush(); print('written', flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout and process.stdout.readline() == "open\n"
    with process:
        yield process
        process.stdin.close()


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin and process.stdout
    process.stdin.write(line + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "written\n"
