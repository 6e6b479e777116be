"""Which known word a mistyped one was meant to be: for commands, options and labels.

Knows letters only. A slip is a letter too many, too few or wrong, or two neighbours that changed places; one slip is
allowed for every three letters, so that ``inti`` is init and ``tem`` is team, while ``log`` is not job.
"""

from __future__ import annotations

from collections.abc import Iterable


def find_near(word: str, known: Iterable[str]) -> str | None:
    """The nearest of the words, the first of those that are equally near; None where none is near."""
    slips = [(_count_slips(word, each), at, each) for at, each in enumerate(known) if _may_be_near(word, each)]
    near = [(count, at, each) for count, at, each in slips if count <= _allowed(word, each) or _is_anagram(word, each)]
    return min(near)[2] if near else None


def _allowed(word: str, other: str) -> int:
    return max(len(word.strip("-")), len(other.strip("-"))) // 3


def _may_be_near(word: str, other: str) -> bool:
    return abs(len(word) - len(other)) <= _allowed(word, other)


def _is_anagram(word: str, other: str) -> bool:
    """``sl`` is too short for a slip, and is ls all the same."""
    return len(word) <= 4 and sorted(word) == sorted(other)


def _count_slips(word: str, other: str) -> int:
    """The distance of Damerau and Levenshtein, no part changed twice: ``inti`` is 1 from init, ``tem`` 1 from team."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for at, letter in enumerate(word):
        row = [at + 1]
        for index, its in enumerate(other):
            count = min(last[index + 1] + 1, row[index] + 1, last[index] + (letter != its))
            if at and index and letter == other[index - 1] and word[at - 1] == its:
                count = min(count, before[index - 1] + 1)
            row.append(count)
        before, last = last, row
    return last[-1]
