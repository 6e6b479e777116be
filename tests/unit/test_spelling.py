from __future__ import annotations

import pytest

from lifecycle.cli.words import COMMANDS
from lifecycle.policy.match import STANDARD_LABELS
from lifecycle.spelling import find_near

NAMES = [row.name for row in COMMANDS]
OPTIONS = ["--source", "--since", "--state", "--team", "--job", "--tier", "--max-duration", "--now", "-h"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("inti", "init"), ("rnu", "run"), ("rn", "run"), ("sl", "ls"), ("lss", "ls"), ("plna", "plan"), ("adit", "audit"),
     ("explian", "explain"), ("hsitroy", "history"), ("restroe", "restore"), ("polcy", "policy"), ("scann", "scan")],
)  # fmt: skip
def test_a_slip_or_two_still_name_the_command(typed: str, meant: str) -> None:
    assert find_near(typed, NAMES) == meant


@pytest.mark.parametrize(
    ("typed", "meant"), [("--sorce", "--source"), ("--taem", "--team"), ("--jobs", "--job"), ("--sicne", "--since"),
                         ("--max-duraton", "--max-duration"), ("--tear", "--team")],
)  # fmt: skip
def test_a_slip_still_names_the_option(typed: str, meant: str) -> None:
    assert find_near(typed, OPTIONS) == meant


@pytest.mark.parametrize("typed", ["", "zz", "x", "log", "foobar", "frobnicate", "terraform", "executive"])
def test_what_is_far_from_every_command_names_none(typed: str) -> None:
    assert find_near(typed, NAMES) is None


@pytest.mark.parametrize("typed", ["--qqq", "--xyzzy", "-x", "--log", "--"])
def test_what_is_far_from_every_option_names_none(typed: str) -> None:
    assert find_near(typed, OPTIONS) is None


@pytest.mark.parametrize("label", ["log", "user", "date", "cluster", "host", "run", "pod", "kind"])
def test_an_own_label_is_not_taken_for_one_of_ours(label: str) -> None:
    assert find_near(label, STANDARD_LABELS) is None


def test_the_nearest_is_named_and_of_equals_the_first() -> None:
    assert find_near("tean", ["tear", "team", "teal"]) == "tear"
    assert find_near("restored", ["restart", "restore"]) == "restore"
