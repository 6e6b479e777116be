"""Marks and quotas in policy files: put together, bounded, refused with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lifecycle.errors import PolicyError
from lifecycle.model import TierName
from lifecycle.policy.effective import effective_policy
from lifecycle.policy.load import load_policy
from lifecycle.policy.rules import Policy

GIB, TIB = 2**30, 2**40
BASE = """\
catalog: sqlite:////srv/state/catalog.db
defaults: seed-1
teams: [nlp]
"""
TIERS = "tiers: {warm: {path: /srv/warm}, cold: {path: /srv/cold}}\n"
SOURCES = "sources: [{name: logs, path: /srv/logs}]\n"

Load = Callable[..., Policy]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def make(text: str, nlp: str = "") -> Policy:
        (tmp_path / "teams").mkdir(exist_ok=True)
        (tmp_path / "platform.yaml").write_text(BASE + text)
        (tmp_path / "teams/nlp.yaml").write_text(f"team: nlp\n{nlp}")
        return load_policy(tmp_path, environ={})

    return make


def refused(load: Load, text: str, nlp: str = "") -> list[str]:
    with pytest.raises(PolicyError) as raised:
        load(text, nlp)
    return [mistake.partition(".yaml:")[2].partition("  ")[0].partition("HINT")[0].strip() for mistake in
            raised.value.mistakes]  # fmt: skip


def test_marks_of_every_tier_are_read_and_low_is_ten_points_below_high(load: Load) -> None:
    text = "tiers: {hot: {high: 80%, low: 65%, reserve: 40TiB}, warm: {path: /srv/warm, high: 90%}}\n"
    policy = load(SOURCES + text)
    assert policy.hot is not None
    assert (policy.hot.high, policy.hot.low, policy.hot.reserve_bytes) == (0.8, 0.65, 40 * TIB)
    warm = policy.fill_of(TierName.WARM)
    assert warm is not None and warm.low == pytest.approx(0.8)
    assert policy.fill_of(TierName.COLD) is None
    assert str(policy.hot.at["high"]) == "platform.yaml:5"


def test_a_team_has_the_default_quota_but_for_the_figures_it_gives(load: Load) -> None:
    defaults = "team_defaults: {quota: {hot: {soft: 1TiB, hard: 2TiB}, total: {hard: 8TiB}}}\n"
    policy = load(SOURCES + TIERS + defaults, nlp="quota: {hot: {hard: 3TiB}, cold: {soft: 9TiB}}\n")
    quota = policy.quota_of("nlp")
    assert (quota["hot"].soft_bytes, quota["hot"].hard_bytes) == (TIB, 3 * TIB)
    assert [str(quota["hot"].at[figure]) for figure in ("soft", "hard")] == ["platform.yaml:6", "teams/nlp.yaml:2"]
    assert quota["total"].hard_bytes == 8 * TIB
    assert quota["cold"].soft_bytes == 9 * TIB
    assert policy.quota_of("stranger") == {}, "unlisted teams are reported, and nothing is done"


def test_where_no_team_is_listed_every_folder_has_the_default_quota(load: Load, tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()
    text = BASE.replace("teams: [nlp]\n", "") + SOURCES + "team_defaults: {quota: {hot: {soft: 1GiB}}}\n"
    (tmp_path / "flat/platform.yaml").write_text(text)
    policy = load_policy(tmp_path / "flat", environ={})
    assert policy.quota_of("anybody")["hot"].soft_bytes == GIB


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("tiers: {hot: {high: 70%, low: 80%}}", "5: tier hot: low 80% is above high 70%"),
        ("tiers: {hot: {low: 80%}}", "5: tier hot: low 80% and no high"),
        ("tiers: {hot: {high: 80}}", "5: tier hot: high: '80' is not a percentage above 0% and up to 100%, as 80%"),
        ("tiers: {hot: {high: 0%}}", "5: tier hot: high: '0%' is not a percentage above 0% and up to 100%, as 80%"),
        ("tiers: {hot: {reserve: 40T}}", "5: tier hot: reserve: size '40T' has no clear unit, did you mean 40TiB or"
         " 40TB"),
        ("team_defaults: {quota: {hot: {soft: 2TiB, hard: 1TiB}}}",
         "5: quota of hot: soft 2TiB is above hard 1TiB"),
        ("team_defaults: {quota: {lukewarm: {soft: 2TiB}}}", "5: team_defaults: unknown key 'lukewarm'"),
        ("team_defaults: {unlisted: remove}", "5: team_defaults: unlisted: 'remove' is not known here"),
        ("bounds: {hot: 5T}", "5: bounds: hot: size '5T' has no clear unit, did you mean 5TiB or 5TB"),
        ("bounds: {training: {expire_afer: [1d, 2d]}}", "5: bounds of training: unknown key 'expire_afer'"),
        ("classes: [{name: error, expire_early: {keep_at_least: 14d}}]",
         "5: class error: errors never expire early"),
        ("classes: [{name: training, expire_early: {keep_at_least: 30d}}]",
         "5: class training: keep_at_least 30d is not below expire_after"),
        ("classes: [{name: training, expire_early: {}}]", "5: class training: no 'keep_at_least'"),
        ("classes: [{name: training, evict: maybe}]", "5: class training: evict: 'maybe' is neither true nor false"),
    ],
)  # fmt: skip
def test_a_slip_is_refused_with_its_line(load: Load, text: str, mistake: str) -> None:
    assert refused(load, SOURCES + text + "\n") == [mistake]


@pytest.mark.parametrize(
    ("source", "mistake"),
    [
        ("free_space: {command: [fullest, /lustre]}",
         "4: source logs: 'fullest' is not the absolute path of a program"),
        ("free_space: {command: []}", "4: source logs: command: the list is empty"),
        ("free_space: {command: /bin/df}", "4: source logs: command: a list is expected here"),
        ("copy_after: 0h", "4: source logs: copy_after: duration '0h' must be above 0"),
    ],
)  # fmt: skip
def test_a_source_says_how_to_ask_or_is_refused(load: Load, source: str, mistake: str) -> None:
    assert refused(load, SOURCES.replace("/srv/logs}", f"/srv/logs, {source}}}")) == [mistake]


def test_a_team_stays_within_the_bounds(load: Load) -> None:
    text = SOURCES + TIERS + "bounds: {hot: 5TiB, total: 30TiB, training: {expire_after: [14d, 180d]}}\n"
    assert load(text, nlp="quota: {hot: {soft: 3TiB, hard: 5TiB}}\n").quota_of("nlp")["hot"].hard_bytes == 5 * TIB
    assert refused(load, text, nlp="quota: {hot: {hard: 6TiB}, total: {soft: 31TiB}}\n") == [
        "2: quota of hot: hard 6TiB is over 5TiB (platform.yaml:6)",
        "2: quota of total: soft 31TiB is over 30TiB (platform.yaml:6)",
    ]
    assert refused(load, text, nlp="classes: [{name: training, expire_after: 10d}]\n") == [
        "2: class training: expire_after 10d is outside 14d to 180d (platform.yaml:6)"
    ]


def test_a_team_may_switch_off_what_the_platform_allows(load: Load) -> None:
    text = SOURCES + TIERS + "classes: [{name: training, evict: false, expire_early: {keep_at_least: 14d}}]\n"
    policy = load(text, nlp="classes: [{name: training, evict: true, expire_early: {keep_at_least: never}}]\n")
    platform, nlp = policy.classes["training"], policy.rule_for("nlp", "training")
    assert nlp is not None
    assert platform.expire_early is not None and not platform.evict
    assert nlp.expire_early is None and nlp.evict


def test_every_mark_and_quota_is_shown_with_its_line(load: Load) -> None:
    text = (
        "sources: [{name: logs, path: /srv/logs, copy_after: 2h, free_space: {command: [/bin/df, /a b]}}]\n"
        "tiers: {hot: {high: 80%, low: 70%, reserve: 1GiB}}\n"
        "team_defaults: {quota: {hot: {soft: 1TiB}}}\n"
    )
    shown = {(each.subject, each.figure): (each.value, each.where) for each in effective_policy(load(text))}
    assert shown["source logs", "copy_after"] == ("2h", "platform.yaml:4")
    assert shown["source logs", "free_space"][0] == "/bin/df '/a b'"
    assert shown["tier hot", "high"] == ("80%", "platform.yaml:5")
    assert shown["tier hot", "reserve"][0] == "1GiB"
    assert shown["team_defaults", "quota hot soft"] == ("1TiB", "platform.yaml:6")
    assert shown["class training", "evict"] == ("true", "default")
