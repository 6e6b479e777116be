"""``keep_errors_as``: what counts where policy is silent, and what it may not ask for."""

from __future__ import annotations

import pytest

from lifecycle.policy.rules import DEFAULT, Policy
from tests.unit.policy.test_policy_load import SHORT, Loads, load, refusals

__all__ = ["load"]  # the fixture

OWN = (
    SHORT.replace("defaults: seed-1\n", "classes:\n")
    + "  - {name: error, match: ['error/'], expire_after: 90d}\n"
    + "  - {name: training, expire_after: 30d}\n"
)


def kept(policy: Policy, team: str = "anybody") -> dict[str, str | None]:
    own = policy.teams.get(team)
    return {name: rule.keep_errors_as for name, rule in (own.classes if own else policy.classes).items()}


def test_training_and_eval_keep_their_errors_unless_they_say_otherwise(load: Loads) -> None:
    policy = load(SHORT)
    assert kept(policy) == {"error": None, "eval": "error", "training": "error"}
    assert policy.classes["training"].at["keep_errors_as"].text == DEFAULT
    assert policy.keeping_errors("anybody") == {"eval", "training"}
    assert kept(load(OWN)) == {"error": None, "training": "error"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("name: error, match: ['error/']", "name: faults, match: ['error/']"), "no class error"),
        (("expire_after: 90d", "expire_after: 20d"), "the log itself outlives what would be kept of it"),
        (("expire_after: 30d", "expire_after: never"), "the log is never gone"),
        (("tiers: {cold: {path: /backup/logs}}\n", ""), "no tier to keep them in"),
        (("name: training", "name: other"), "no class of that name"),
    ],
)
def test_where_it_cannot_be_done_nothing_is_kept_by_default(load: Loads, change: tuple[str, str], why: str) -> None:
    assert set(kept(load(OWN.replace(*change))).values()) == {None}, why


@pytest.mark.parametrize("word", ["none", "off"])
def test_the_platform_can_switch_it_off(load: Loads, word: str) -> None:
    policy = load(SHORT + f"classes: [{{name: training, keep_errors_as: {word}}}]\n")
    assert kept(policy) == {"error": None, "eval": "error", "training": None}
    assert policy.classes["training"].at["keep_errors_as"].line == 5


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ("keep_errors_as: erorr", "class training: keep_errors_as erorr: no such class"),
        ("keep_errors_as: training", "class training: keep_errors_as training is the class itself"),
        ("keep_errors_as: eval", "class training: keep_errors_as eval, and class eval has keep_errors_as error"),
        (
            "keep_errors_as: error, expire_after: 100d",
            "class training: keep_errors_as error: kept 90d, for less than the 100d of class training itself",
        ),
        (
            "keep_errors_as: error, expire_after: never",
            "class training: keep_errors_as error: kept 90d, for less than the never of class training itself",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_where_it_is_asked_for(load: Loads, figures: str, message: str) -> None:
    text = SHORT + f"classes: [{{name: training, {figures}}}]\n"
    assert refusals(load, text) == [f"platform.yaml:5: {message}"]


def test_a_class_name_that_is_none_is_refused(load: Loads) -> None:
    (message,) = refusals(load, SHORT + "classes: [{name: training, keep_errors_as: Error Class}]\n")
    assert "'Error Class' cannot be the name of a class" in message


def test_without_a_tier_it_is_refused(load: Loads) -> None:
    text = OWN.replace("tiers: {cold: {path: /backup/logs}}\n", "").replace("30d}", "30d, keep_errors_as: error}")
    assert refusals(load, text) == [
        "platform.yaml:5: class training: keep_errors_as error, and there is no tier to keep them in"
    ]


def with_team(figures: str) -> dict[str, str]:
    return {"platform": SHORT + "teams: [nlp]\n", "team_nlp": f"team: nlp\nclasses: [{figures}]\n"}


def test_a_team_may_ask_for_more_and_never_for_less(load: Loads) -> None:
    more = with_team("{name: training, expire_after: 60d, keep_errors_as: error}")
    assert kept(load(**more), "nlp")["training"] == "error"
    (message,) = refusals(load, **with_team("{name: training, keep_errors_as: none}"))
    assert message == "team-nlp.yaml:2: class training: keep_errors_as none, and the platform keeps them as error"


def test_a_team_that_keeps_its_logs_for_longer_needs_no_copy_of_their_errors(load: Loads) -> None:
    assert kept(load(**with_team("{name: training, expire_after: 120d}")), "nlp")["training"] is None
    both = "{name: training, expire_after: 120d}, {name: error, expire_after: 180d}"
    assert kept(load(**with_team(both)), "nlp")["training"] == "error"


def test_a_team_cannot_shorten_the_class_that_its_errors_are_kept_as(load: Loads) -> None:
    files = with_team("{name: error, expire_after: 10d}")
    files["platform"] += "classes: [{name: training, keep_errors_as: error}]\n"
    (message,) = refusals(load, **files)
    assert message.startswith("team-nlp.yaml:2: class training: keep_errors_as error: kept 10d, for less than the 30d")
