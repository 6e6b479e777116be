"""Where batches run: this process, or workers that end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import wait
from pathlib import Path

import pytest

from lifecycle.engine.local import InlineExecutor, LocalEngine
from lifecycle.errors import Skipped, StorageFull

CHECKOUT = Path(__file__).parents[3]


def fail(error: Exception) -> None:
    raise error


def test_inline_calls_run_at_once_in_this_process() -> None:
    future = InlineExecutor().submit(os.getpid)
    assert future.done()
    assert future.result() == os.getpid()


def test_an_inline_call_that_fails_fails_its_future_only() -> None:
    future = InlineExecutor().submit(fail, Skipped("open"))
    with pytest.raises(Skipped, match="open"):
        future.result()


def test_an_interrupt_is_not_taken_for_a_failed_batch() -> None:
    with pytest.raises(KeyboardInterrupt):
        InlineExecutor().submit(fail, KeyboardInterrupt())  # type: ignore[arg-type]


def test_workers_are_other_processes() -> None:
    with LocalEngine(2) as engine:
        assert engine.pool().submit(os.getpid).result(timeout=60) != os.getpid()


def test_one_worker_is_this_process() -> None:
    with LocalEngine(1) as engine:
        assert engine.pool().submit(os.getpid).result() == os.getpid()


def test_an_error_of_ours_comes_back_whole_from_a_worker() -> None:
    with LocalEngine(2) as engine:
        future = engine.pool().submit(fail, StorageFull("warm is full", hint="make room"))
        with pytest.raises(StorageFull) as caught:
            future.result(timeout=60)
    assert (caught.value.message, caught.value.hint) == ("warm is full", "make room")


def test_leaving_waits_for_what_was_begun() -> None:
    with LocalEngine(2) as engine:
        future = engine.pool().submit(time.sleep, 0.2)
    assert future.done()


def test_a_signal_to_the_whole_group_stops_no_worker_in_the_middle_of_a_batch() -> None:
    with LocalEngine(2) as engine:
        pid = engine.pool().submit(os.getpid).result(timeout=60)
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
        done, _ = wait([engine.pool().submit(os.getpid) for _ in range(4)], timeout=60)
        assert len({future.result() for future in done}) >= 1


def test_workers_die_with_their_parent() -> None:
    code = """
import os, time
from lifecycle.engine.local import LocalEngine
engine = LocalEngine(2)
print(engine.pool().submit(os.getpid).result(), flush=True)
engine.pool().submit(time.sleep, 60)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        worker = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 10
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(worker)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
