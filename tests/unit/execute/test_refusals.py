"""What the journal is told of a member that was left alone, by what the worker met."""

from __future__ import annotations

import pickle

import pytest

from lifecycle.execute.moves import refused_of
from lifecycle.execute.orders import Refusal, Trouble
from lifecycle.execute.recovery import Recovered
from lifecycle.model import Outcome

CASES = {
    # trouble: (outcome, with a committed copy: outcome, whether that copy stays the good one; scan anew)
    Trouble.CHANGED: (Outcome.KEPT, Outcome.KEPT, False, True),
    Trouble.OPEN: (Outcome.KEPT, Outcome.KEPT, False, True),
    Trouble.VANISHED: (Outcome.KEPT, Outcome.RELEASED, True, True),
    Trouble.REPLACED: (Outcome.KEPT, Outcome.KEPT, True, True),
    Trouble.UNREADABLE: (Outcome.FAILED, Outcome.FAILED, False, False),
    Trouble.CLASH: (Outcome.KEPT, Outcome.KEPT, False, False),
    Trouble.GIVEN_UP: (Outcome.KEPT, Outcome.KEPT, False, False),
    Trouble.IN_THE_WAY: (Outcome.KEPT, Outcome.KEPT, True, False),
}


def test_every_trouble_has_its_case() -> None:
    assert set(CASES) == set(Trouble)


@pytest.mark.parametrize("trouble", Trouble)
def test_a_stored_copy_stays_exactly_when_its_original_is_gone_or_out_of_reach(trouble: Trouble) -> None:
    before, after, keeps_copy, scans_anew = CASES[trouble]
    refusal = Refusal(segment_id=7, trouble=trouble, detail="size is 9, was 8")

    unstored, stored = refused_of(refusal), refused_of(refusal, stored=True)
    assert (unstored.outcome, unstored.keep_copy) == (before, False)
    assert (stored.outcome, stored.keep_copy) == (after, keeps_copy)
    assert unstored.reopen is stored.reopen is scans_anew


def test_a_refusal_says_what_was_met() -> None:
    refused = refused_of(Refusal(segment_id=7, trouble=Trouble.OPEN, detail="a process has it open for writing"))
    assert refused.detail == "open: a process has it open for writing"


def test_a_refusal_crosses_a_process_boundary() -> None:
    refusal = Refusal(segment_id=7, trouble=Trouble.OPEN, detail="open")
    assert pickle.loads(pickle.dumps(refusal)) == refusal


def test_what_was_recovered_adds_up() -> None:
    total = Recovered(batches=1, undone=1)
    total.add(Recovered(batches=2, adopted=1, finished=1, parked=3))
    assert total == Recovered(batches=3, undone=1, adopted=1, finished=1, parked=3)
