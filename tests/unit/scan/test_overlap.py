"""Overlap: quick calls stay in one thread, slow ones share their waiting; order and errors are those of a plain map."""

from __future__ import annotations

import threading
import time

import pytest

from lifecycle.scan import overlap
from lifecycle.scan.overlap import AHEAD_BYTES, SLOW_S, Overlap


def slow(number: int) -> int:
    time.sleep(10 * SLOW_S)
    return number


def test_quick_calls_stay_in_the_callers_thread() -> None:
    with Overlap() as quick:
        names = set(quick.map(lambda _: threading.current_thread().name, range(1000)))
        assert not quick.is_slow
    assert names == {threading.current_thread().name}


def test_slow_calls_wait_together_and_answers_keep_their_order() -> None:
    started = time.perf_counter()
    with Overlap() as waiting:
        assert list(waiting.map(slow, range(400))) == list(range(400))
        assert waiting.is_slow
    assert time.perf_counter() - started < 400 * 10 * SLOW_S  # what they take one after another


def test_a_call_that_was_held_up_does_not_start_threads() -> None:
    def held_up(number: int) -> int:
        if number % 100 == 7:  # not sleep(0) for the others, which gives the processor away
            time.sleep(40 * SLOW_S)
        return number

    with Overlap() as quick:
        for _ in quick.map(held_up, range(1000)):
            assert not quick.is_slow


def test_some_calls_that_wait_among_quick_ones_start_threads() -> None:
    with Overlap() as waiting:
        list(waiting.map(lambda number: slow(number) if number % 3 == 0 else number, range(100)))
        assert waiting.is_slow


def test_what_one_list_showed_counts_for_the_next() -> None:
    with Overlap() as waiting:
        list(waiting.map(slow, range(20)))
        names = set(waiting.map(lambda _: threading.current_thread().name, range(50)))
    assert threading.current_thread().name not in names


def test_an_error_comes_at_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "SLOW_S", 0)
    seen = []

    def fail_at_90(number: int) -> int:
        if number == 90:
            raise OSError("no more")
        return number

    with Overlap() as waiting, pytest.raises(OSError, match="no more"):
        for answer in waiting.map(fail_at_90, range(200)):
            seen.append(answer)
    assert seen == list(range(90))


def test_answers_that_nobody_took_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "SLOW_S", 0)
    size, asked = AHEAD_BYTES // 4, []

    def weigh(number: int) -> int:
        asked.append(number)
        return size

    with Overlap() as waiting:
        list(waiting.map(abs, range(20)))  # so that threads have been started
        for taken, _ in enumerate(waiting.map(abs, range(100), weight=weigh)):
            assert len(asked) - taken <= 6  # four, the one that is taken and the one that is too much


def test_closing_ends_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "SLOW_S", 0)
    with Overlap() as waiting:
        list(waiting.map(abs, range(100)))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("overlap")]
