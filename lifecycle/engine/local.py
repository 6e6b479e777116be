"""Where batches run: worker processes on this host, or this very process when there is little to do.

Workers are forked, because a fresh interpreter costs more than a small run takes. They die with their parent
(PR_SET_PDEATHSIG), so that nobody removes anything after the lease's holder is gone.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 32 * 2**20


class InlineExecutor(Executor):
    """Runs each call at once, in the caller's thread."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _begin_worker(parent: int) -> None:
    import ctypes  # the one use of it, and never in a run that has nothing to do

    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call above
        os._exit(1)
    if hasattr(libc, "mallopt"):
        # Frames of some MiB come and go all the time. Given back to the system, each would be mapped, cleared and
        # faulted in anew, page by page: half of the system time of a run on large files.
        libc.mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what a stop means
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


class LocalEngine:
    """Worker processes, started on first use. Use as a context manager; leaving it waits for what was begun."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or max(1, len(os.sched_getaffinity(0)))
        self._pool: ProcessPoolExecutor | None = None
        self._inline = InlineExecutor()

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    @property
    def inline(self) -> Executor:
        """This process: for a few members, and for large segments, whose threads need all cores."""
        return self._inline

    def pool(self) -> Executor:
        """One process per core. Forked before this process starts threads of its own."""
        if self.workers == 1:
            return self._inline
        if self._pool is None:
            gc.freeze()
            context: Any = multiprocessing.get_context("fork")
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=context, initializer=_begin_worker, initargs=(os.getpid(),)
            )
            with contextlib.suppress(Exception):
                self._pool.submit(os.getpid).result(timeout=60)
        return self._pool
