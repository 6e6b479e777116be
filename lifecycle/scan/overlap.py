"""Waiting for many small file operations at once, where each of them waits.

A file system across a network answers an open or a stat after a millisecond and can answer a hundred of them in the
same one; a local one answers in microseconds, and threads would only stand in each other's way. So the first calls
are timed one by one, and threads are started when many of them are seen to wait: a single one that takes long says only
that something else had the processor or the disk. Knows calls and how long they take; never what they do.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Self, TypeVar

THREADS: Final = 32
SLOW_S: Final = 0.0003  # a local call takes a tenth of it, one across a network three times as long
AHEAD_BYTES: Final = 32 * 2**20
_PROBE: Final = 16  # calls that are timed together
_WAITING: Final = 4  # of them, for threads to pay

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Overlap:
    """``map`` over any number of lists; what one has found out counts for the next. A context manager: leaving it waits
    for its threads."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._slow_calls = 0
        self._calls = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads. Safe twice; a later ``map`` starts new ones."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    @property
    def is_slow(self) -> bool:
        """Whether enough of the calls that were timed had to wait for threads to pay."""
        return self._pool is not None

    def map(
        self,
        call: Callable[[Item], Answer],
        items: Iterable[Item],
        *,
        weight: Callable[[Item], int] = lambda item: 0,
    ) -> Iterator[Answer]:
        """Answers in the order of the items, raised errors included. ``call`` may run in several threads at once.

        ``weight`` is the bytes that an answer holds: no more than ``AHEAD_BYTES`` and one answer wait to be taken.
        """
        rest = iter(items)
        yield from self._one_by_one(call, rest)
        if self._pool is not None:
            yield from self._ahead(self._pool, call, rest, weight)

    def _one_by_one(self, call: Callable[[Item], Answer], rest: Iterator[Item]) -> Iterator[Answer]:
        """Until nothing is left, or calls are seen to wait."""
        while self._pool is None:
            for item in rest:
                started = time.perf_counter()
                answer = call(item)
                self._slow_calls += time.perf_counter() - started > SLOW_S
                self._calls += 1
                yield answer
                if self._calls == _PROBE:
                    break
            else:
                return
            if self._slow_calls >= _WAITING:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="overlap")
            self._slow_calls, self._calls = 0, 0

    def _ahead(
        self,
        pool: ThreadPoolExecutor,
        call: Callable[[Item], Answer],
        rest: Iterator[Item],
        weight: Callable[[Item], int],
    ) -> Iterator[Answer]:
        waiting: deque[tuple[Future[Answer], int]] = deque()
        held = 0
        for item in rest:
            size = weight(item)
            waiting.append((pool.submit(call, item), size))
            held += size
            while held > AHEAD_BYTES or len(waiting) > 2 * self._threads:
                future, size = waiting.popleft()
                yield future.result()
                held -= size
        while waiting:
            yield waiting.popleft()[0].result()
