"""A run's problems in words: each thing is named once, and what to do stands apart."""

from __future__ import annotations

import pytest

from lifecycle.report.figures import ProblemLine
from lifecycle.report.runs import iter_problem_lines


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            ProblemLine(phase="open", place="tier cold", message="tier cold: no marker in /b; is it mounted?"),
            "! open: tier cold: no marker in /b; is it mounted?",
        ),
        (
            ProblemLine(
                phase="init", place="cold", subject="/b", message="tier cold: /b was marked before", hint="mount"
            ),
            "! init: tier cold: /b was marked before  HINT: mount",
        ),
        (
            ProblemLine(phase="merge", place="source logs", subject="nlp/eval", message="disk full HINT: make room"),
            "! merge: source logs nlp/eval: disk full  HINT: make room",
        ),
        (
            ProblemLine(phase="run", subject="clock", message="the clock says 05:47"),
            "! run: the clock says 05:47",
        ),
        (ProblemLine(phase="scan", place="source a", message="a cat sat on it"), "! scan: source a: a cat sat on it"),
        (ProblemLine(phase="brake", message="too many at once"), "! brake: too many at once"),
    ],
)
def test_a_problem_names_each_thing_once(problem: ProblemLine, words: str) -> None:
    assert [line.text for line in iter_problem_lines([problem], 1)] == [words]
