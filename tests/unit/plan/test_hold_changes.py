"""Holds of policy and of files beside those that the catalog knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lifecycle.model import Hold, RuleRef, Selector
from lifecycle.plan.holds import Asked, compare_files, compare_holds
from lifecycle.policy.rules import HoldRule
from lifecycle.units import DAY_NS, from_ns
from tests.builders import NOON_NS, a_policy

PAPER = Selector(teams=("nlp",), jobs=("rlhf-*",))


def rule(**more: object) -> HoldRule:
    given = {"selector": PAPER, "reason": "paper", "owner": "chen", "ends": None, "pending": False}
    return HoldRule(**{**given, **more}, at=RuleRef(file="platform.yaml", line=3))  # type: ignore[arg-type]


def test_an_entry_begins_once() -> None:
    policy = replace(a_policy(), holds=(rule(),))
    (hold,) = compare_holds(policy, [], NOON_NS).begin
    assert (hold.selector, hold.source, hold.created_ns) == (PAPER, "policy platform.yaml:3", NOON_NS)
    assert compare_holds(policy, [replace(hold, id=1)], NOON_NS + DAY_NS) == compare_holds(a_policy(), [], 0)


def test_what_was_added_by_hand_is_no_entry_of_policy() -> None:
    by_hand = Hold(id=1, selector=PAPER, reason="x", owner="y", source="command", created_ns=0)
    assert compare_holds(a_policy(), [by_hand], NOON_NS).shorten == ()
    assert len(compare_holds(replace(a_policy(), holds=(rule(),)), [by_hand], NOON_NS).begin) == 1


def test_a_bound_counts_from_the_beginning() -> None:
    bounded = rule(lasts_at_most=timedelta(days=10), ends=from_ns(NOON_NS + 400 * DAY_NS))
    (hold,) = compare_holds(replace(a_policy(), holds=(bounded,)), [], NOON_NS).begin
    assert hold.ends_ns == NOON_NS + 10 * DAY_NS
    later = compare_holds(replace(a_policy(), holds=(bounded,)), [replace(hold, id=1)], NOON_NS + 5 * DAY_NS)
    assert (later.begin, later.renew, later.shorten) == ((), (), ())


def asked(directory: bytes = b"nlp/job", **more: object) -> Asked:
    given = {"reason": "paper", "owner": "chen", "ends_ns": None, "source": "file /x/.lifecycle-hold"}
    return Asked(place_id=1, directory=directory, **{**given, **more})  # type: ignore[arg-type]


def files(wishes: list[Asked], known: list[Hold], *, believed: bool = True) -> tuple[int, int, int, int]:
    found = compare_files(1, wishes, known, NOON_NS, lasts_at_most_ns=None, is_believed=lambda directory: believed)
    return len(found.begin), len(found.renew), len(found.missed), len(found.end)


def test_a_file_s_hold_ends_after_three_looks_that_count() -> None:
    (hold,) = compare_files(1, [asked()], [], NOON_NS, lasts_at_most_ns=None, is_believed=lambda d: True).begin
    hold = replace(hold, id=1)
    assert files([asked()], [hold]) == (0, 0, 0, 0)
    assert files([], [hold]) == (0, 0, 1, 0)
    assert files([], [replace(hold, missing_scans=1)]) == (0, 0, 1, 0)
    assert files([], [replace(hold, missing_scans=2)]) == (0, 0, 0, 1)
    assert files([], [replace(hold, missing_scans=2)], believed=False) == (0, 0, 0, 0)
    assert files([asked()], [replace(hold, missing_scans=2)]) == (0, 1, 0, 0)  # seen again
    assert files([], [replace(hold, place_id=2, missing_scans=2)]) == (0, 0, 0, 0)  # another place's


def test_a_file_whose_hold_was_ended_begins_anew_only_with_other_words() -> None:
    (hold,) = compare_files(1, [asked()], [], NOON_NS, lasts_at_most_ns=None, is_believed=lambda d: True).begin
    ended = replace(hold, id=1, ended_ns=NOON_NS)
    assert files([asked()], [ended]) == (0, 0, 0, 0)
    assert files([asked(reason="another")], [ended]) == (1, 0, 0, 0)
