"""What the system says about one batch, in our words."""

from __future__ import annotations

import errno
from concurrent.futures.process import BrokenProcessPool

import pytest

from lifecycle.errors import Consequence, Damaged, LifecycleError, Skipped, StorageFull
from lifecycle.execute.executor import _as_ours


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_no_space_and_no_quota_are_one_thing(code: int) -> None:
    assert isinstance(_as_ours(OSError(code, "no room")), StorageFull)


def test_other_errors_of_the_system_skip_their_batch() -> None:
    assert isinstance(_as_ours(OSError(errno.EIO, "input/output error")), Skipped)


def test_a_worker_that_died_halts_the_run() -> None:
    error = _as_ours(BrokenProcessPool("a process was terminated abruptly"))
    assert error.consequence is Consequence.HALT
    assert error.hint


def test_errors_of_ours_stay_what_they_are() -> None:
    error: LifecycleError = Damaged("frame 3")
    assert _as_ours(error) is error
