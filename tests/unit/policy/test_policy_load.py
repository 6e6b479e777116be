"""Policy files to a policy: what is accepted and what it comes to, and every kind of mistake with its line."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import pytest

from lifecycle.errors import ExitCode, PolicyError, UsageError
from lifecycle.model import TierName
from lifecycle.policy.builtin import DEFAULT_LAYOUTS
from lifecycle.policy.load import find_policies, load_policy
from lifecycle.policy.rules import ExpireFrom, Policy

SHORT = """\
catalog: sqlite:////srv/lc/catalog.db
sources: [{name: logs, path: /srv/logs, under: "{team}/{job}"}]
tiers: {cold: {path: /backup/logs}}
defaults: seed-1
"""
HOME = {"HOME": "/home/ops"}
Loads: TypeAlias = Callable[..., Policy]


@pytest.fixture
def load(tmp_path: Path) -> Loads:
    """Load files given by name (``team-nlp.yaml`` as ``team_nlp``, ``teams/nlp.yaml`` as ``teams__nlp``)."""

    def loads(platform: str = SHORT, environ: Mapping[str, str] = HOME, **files: str) -> Policy:
        folder = tmp_path / "policies"
        (folder / "teams").mkdir(parents=True, exist_ok=True)
        (folder / "platform.yaml").write_text(platform)
        for name, text in files.items():
            (folder / (name.replace("__", "/").replace("team_", "team-") + ".yaml")).write_text(text)
        return load_policy(folder, environ=environ)

    return loads


def refusals(load: Loads, *args: str, **kwargs: str) -> list[str]:
    """Messages as ``file:line: message``, the folder and the hint taken off after both were seen."""
    with pytest.raises(PolicyError) as caught:
        load(*args, **kwargs)
    lines = []
    for line in caught.value.mistakes:
        where, found, hint = line.partition("  HINT: ")
        assert found and hint, line
        before, _, rest = where.partition("/policies/")
        assert before.startswith("/") and rest, line
        lines.append(rest)
    return lines


def with_class(entry: str) -> str:
    """SHORT with one own class, in line 4, before a last one."""
    return SHORT.replace("defaults: seed-1\n", f"classes:\n  - {entry}\n  - {{name: rest, expire_after: 30d}}\n")


def with_source(more: str) -> str:
    return SHORT.replace('under: "{team}/{job}"}', more + "}")


# -- what a short policy comes to -----------------------------------------------------------------------------------


def test_a_short_policy_takes_the_defaults_of_the_design(load: Loads) -> None:
    policy = load()
    (source,) = policy.sources
    assert (source.settle, source.release_after) == (timedelta(hours=1), timedelta(hours=24))
    assert source.layouts == DEFAULT_LAYOUTS
    assert policy.grace == timedelta(days=3)
    assert list(policy.tiers) == [TierName.COLD]
    assert (policy.tiers[TierName.COLD].zstd_level, policy.tiers[TierName.COLD].merge.target_bytes) == (9, 2**30)
    assert policy.catalog_url == "sqlite:////srv/lc/catalog.db"
    assert policy.timezone == "UTC"
    assert policy.is_listed("anybody")


def test_seed_1_is_error_eval_and_training(load: Loads) -> None:
    policy = load()
    figures = {
        name: (rule.warm_after, rule.cold_after, rule.expire_after, rule.expire_from)
        for name, rule in policy.classes.items()
    }
    day, week = timedelta(days=1), timedelta(days=7)
    assert figures == {
        "error": (day, week, timedelta(days=90), ExpireFrom.WRITE),
        "eval": (day, None, week, ExpireFrom.WRITE),
        "training": (day, week, timedelta(days=30), ExpireFrom.JOB),
    }
    assert [match.class_name for match in policy.matches] == ["error", "eval", "training"]
    assert str(policy.classes["error"].at["expire_after"]) == "seed-1:7"


def test_own_entries_change_figures_of_the_seed_and_new_classes_come_before_it(load: Loads) -> None:
    policy = load(
        SHORT + 'classes:\n  - {name: eval, expire_after: 9d}\n  - {name: sys, match: ["dmesg*"], expire_after: 5d}\n'
    )
    assert policy.classes["eval"].expire_after == timedelta(days=9)
    assert policy.classes["eval"].warm_after == timedelta(days=1)
    assert str(policy.classes["eval"].at["expire_after"]) == "platform.yaml:6"
    assert [match.class_name for match in policy.matches] == ["sys", "error", "eval", "training"]


def test_never_keeps_for_ever_and_drops_a_tier(load: Loads) -> None:
    rule = load(
        with_class("{name: audit, match: [a], warm_after: 1d, cold_after: never, expire_after: never}")
    ).classes["audit"]
    assert (rule.cold_after, rule.expire_after) == (None, None)


def test_a_merge_key_gives_a_class_its_figures(load: Loads) -> None:
    text = "x-long: &long\n  warm_after: 1d\n  expire_after: 60d\n" + with_class(
        "{<<: *long, name: a, match: [a], expire_after: 90d}"
    )
    rule = load(text).classes["a"]
    assert (rule.warm_after, rule.expire_after) == (timedelta(days=1), timedelta(days=90))
    assert str(rule.at["warm_after"]) == "platform.yaml:2"


def test_relative_paths_are_relative_to_the_policies_folder(load: Loads, tmp_path: Path) -> None:
    text = SHORT.replace("/backup/logs", "store/cold").replace(
        "sqlite:////srv/lc/catalog.db", "sqlite:///db/catalog.db"
    )
    policy = load(text)
    assert policy.tiers[TierName.COLD].path == f"{tmp_path}/policies/store/cold"
    assert policy.catalog_url == f"sqlite:///{tmp_path}/policies/db/catalog.db"


def test_a_variable_is_filled_in_and_the_digest_is_of_the_text_before(load: Loads) -> None:
    text = SHORT.replace("/srv/logs", '"${LOG_ROOT}"')
    one = load(text, environ=HOME | {"LOG_ROOT": "/srv/one"})
    two = load(text, environ=HOME | {"LOG_ROOT": "/srv/two"})
    assert (one.sources[0].path, two.sources[0].path) == ("/srv/one", "/srv/two")
    assert one.digest == two.digest != load().digest


def test_the_digest_covers_every_file_and_reading_again_gives_the_same_policy(load: Loads) -> None:
    listed = SHORT + "teams: [nlp]\n"
    one = load(listed, teams__nlp="team: nlp\n")
    assert load(listed) == one
    assert load(listed, teams__nlp="team: nlp\n# x\n").digest != one.digest
    assert [name for name, _ in one.files] == ["platform.yaml", "teams/nlp.yaml"]


def test_a_policy_crosses_a_process_boundary(load: Loads) -> None:
    policy = load()
    assert pickle.loads(pickle.dumps(policy)) == policy


# -- teams ----------------------------------------------------------------------------------------------------------


def test_a_team_changes_only_the_figures_it_gives(load: Loads) -> None:
    policy = load(
        SHORT + "teams: [vision, nlp]\n",
        teams__vision="team: vision\naliases: [prj0421]\nclasses: [{name: training, expire_after: 60d}]\n",
        team_nlp="team: nlp\n",
    )
    rule = policy.rule_for("vision", "training")
    assert rule is not None
    assert (rule.expire_after, rule.cold_after) == (timedelta(days=60), timedelta(days=7))
    assert str(rule.at["expire_after"]) == "teams/vision.yaml:3"
    assert policy.rule_for("nlp", "training") == policy.classes["training"]
    assert policy.team_of("prj0421") == "vision"
    assert (policy.is_listed("nlp"), policy.is_listed("other")) == (True, False)


def test_the_list_of_teams_and_the_files_must_name_the_same(load: Loads) -> None:
    assert refusals(load, SHORT + "teams: [vision, nlp]\n", teams__visoin="team: visoin\n", team_nlp="team: nlp\n") == [
        "platform.yaml:5: team vision has no file",
        "teams/visoin.yaml:1: team 'visoin' is not in the teams of platform.yaml",
    ]


def test_a_team_twice_is_refused_in_the_list_and_in_files(load: Loads) -> None:
    assert refusals(load, SHORT + "teams: [nlp, nlp]\n", teams__a="team: nlp\n", teams__b="team: nlp\n") == [
        "platform.yaml:5: team nlp is listed twice",
        "teams/b.yaml:1: team nlp is here and in teams/a.yaml",
    ]


def test_a_folder_name_means_one_team(load: Loads) -> None:
    found = refusals(
        load,
        SHORT + "teams: [a, b]\n",
        teams__a="team: a\naliases: [b, x, a, x]\n",
        teams__b="team: b\naliases:\n  - x\n",
    )
    assert found == [
        "teams/a.yaml:2: alias 'a' is its own name",
        "teams/a.yaml:2: alias 'b' is already b's",
        "teams/a.yaml:2: alias 'x' is here twice",
        "teams/b.yaml:3: alias 'x' is already a's",
    ]


def test_a_team_stays_within_the_bounds_and_its_own_classes(load: Loads) -> None:
    platform = SHORT + "teams: [a]\nbounds:\n  training: {expire_after: [14d, 60d], warm_after: [1h, 2d]}\n"
    text = "team: a\nclasses:\n  - {name: training, expire_after: %s}\n  - {name: trainig}\n"
    assert refusals(load, platform, teams__a=text % "61d") == [
        "teams/a.yaml:3: class training: expire_after 61d is outside 14d to 60d (platform.yaml:7)",
        "teams/a.yaml:4: class trainig: not one of the platform's",
    ]
    assert refusals(load, platform, teams__a=text % "never")[0] == (
        "teams/a.yaml:3: class training: expire_after never is outside 14d to 60d (platform.yaml:7)"
    )
    assert load(platform, teams__a="team: a\nclasses: [{name: training, expire_after: 14d}]\n")
    assert load(platform, teams__a="team: a\nclasses: [{name: training, expire_after: 60d}]\n")


def test_a_team_may_not_say_what_a_class_matches(load: Loads) -> None:
    found = refusals(load, SHORT + "teams: [a]\n", teams__a="team: a\nclasses: [{name: eval, match: [x]}]\n")
    assert found == ["teams/a.yaml:2: class eval: unknown key 'match'"]


def test_a_figure_of_a_team_that_cannot_be_with_the_platforms_is_refused(load: Loads) -> None:
    found = refusals(load, SHORT + "teams: [a]\n", teams__a="team: a\nclasses: [{name: training, expire_after: 7d}]\n")
    assert found == ["teams/a.yaml:2: class training: expire_after 7d is not above cold_after 7d"]


def test_a_yaml_file_that_nothing_reads_is_a_mistake(load: Loads, tmp_path: Path) -> None:
    load()
    for name in ("nlp.yaml", "teams/nlp.yml", "platform.yml", "teams/.hidden.yaml", "notes.txt", "..data"):
        (tmp_path / "policies" / name).write_text("team: nlp\n")
    named = "by its name no file of a policy"
    assert refusals(load) == [f"nlp.yaml:1: {named}", f"platform.yml:1: {named}", f"teams/nlp.yml:1: {named}"]


# -- mistakes -------------------------------------------------------------------------------------------------------


def test_all_mistakes_of_all_files_come_at_once_in_their_order(load: Loads) -> None:
    platform = """\
catalog: sqlite:////srv/lc/catalog.db
teams: [a]
sources:
  - {name: logs, path: /srv/logs, setle: 1h}
  - {name: more, path: /srv/logs/more}
tiers: {warm: {path: /w, zstd: 99}}
classes:
  - {name: eval, match: ["eval/"], expires_after: 7d, warm_after: 1T}
  - {name: rest, warm_after: 1d}
quota: {}
"""
    assert refusals(load, platform, teams__a="team: a\nteam: b\nclases: []\n") == [
        "platform.yaml:4: source logs: unknown key 'setle'",
        "platform.yaml:5: source more: path /srv/logs/more lies inside /srv/logs, the path of source logs in line 4",
        "platform.yaml:6: tier warm: zstd: zstd level '99' is not between 1 and 19",
        "platform.yaml:8: class eval: unknown key 'expires_after'",
        "platform.yaml:8: class eval: warm_after: '1T' is not a duration",
        "platform.yaml:9: class rest: no 'expire_after'",
        "platform.yaml:10: 'quota' is not yet there",
        "teams/a.yaml:2: key 'team' is here twice, first in line 1",
        "teams/a.yaml:3: unknown key 'clases'",
    ]


def test_an_unknown_key_comes_with_the_nearest_known_one(load: Loads) -> None:
    with pytest.raises(PolicyError) as caught:
        load(with_class("{name: eval, match: [a], expires_after: 7d}"))
    (mistake,) = caught.value.mistakes
    assert mistake.endswith(
        "/policies/platform.yaml:5: class eval: unknown key 'expires_after'  HINT: did you mean 'expire_after'?"
    )
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: a, match: [a]}", "class a: no 'expire_after'"),
        ("{name: a, match: [a], expire_after: 0d}", "class a: expire_after: duration '0d' must be above 0"),
        ("{name: a, match: [a], expire_after: -1d}", "class a: expire_after: '-1d' is not a duration"),
        ("{name: a, match: [a], expire_after: 30}", "class a: expire_after: '30' is not a duration"),
        ("{name: a, match: [a], expire_after: 30D}", "class a: expire_after: '30D' is not a duration"),
        ("{name: a, match: [a], expire_after: }", "class a: expire_after: no value"),
        ("{name: a, match: [a], expire_after: [1d]}", "class a: expire_after: a list where one value is expected"),
        ("{name: a, expire_after: 3d}", "class a: no 'match', and it is not the last"),
        ("{name: a, match: [], expire_after: 3d}", "class a: no 'match', and it is not the last"),
        ("{name: a, match: a, expire_after: 3d}", "class a: match: a list is expected here"),
        ("{name: A b, match: [a], expire_after: 3d}", "class A b: name: 'A b' cannot be the name of a class"),
        ("{match: [a], expire_after: 3d}", "class number 1: no 'name'"),
        ("{name: rest, match: [a], expire_after: 3d}", None),
        (
            "{name: a, match: [a], expire_after: 3d, expire_from: jobs}",
            "class a: expire_from: 'jobs' is no start to count from",
        ),
        ("{name: a, match: ['jbo:x'], expire_after: 3d}", "class a: no label 'jbo' in 'jbo:x'"),
        (
            "{name: a, match: ['['], expire_after: 3d}",
            "class a: match: pattern '[' is not a gitignore pattern that can match anything",
        ),
        (
            "{name: a, match: [a], warm_after: 9d, cold_after: 7d, expire_after: 30d}",
            "class a: cold_after 7d is not above warm_after 9d",
        ),
        (
            "{name: a, match: [a], warm_after: 9d, expire_after: 9d}",
            "class a: expire_after 9d is not above warm_after 9d",
        ),
        ("just text", "class number 1: a mapping is expected here"),
    ],
)  # fmt: skip
def test_a_class_that_cannot_be_meant_is_refused(load: Loads, entry: str, message: str | None) -> None:
    expected = (
        f"platform.yaml:5: {message}" if message else "platform.yaml:6: class rest: is here twice, first in line 5"
    )
    assert refusals(load, with_class(entry)) == [expected]


def test_a_last_class_with_a_match_leaves_something_without_a_class(load: Loads) -> None:
    text = with_class("{name: a, match: [a], expire_after: 3d}").replace("{name: rest,", "{name: rest, match: [b],")
    assert refusals(load, text) == ["platform.yaml:6: class rest: the last class has a match"]
    seeded = SHORT + "classes: [{name: training, match: [b]}]\n"
    assert refusals(load, seeded) == ["platform.yaml:5: class training: the last class has a match"]


def test_a_policy_needs_classes_a_catalog_and_sources(load: Loads) -> None:
    assert refusals(load, "tiers: {}\n") == [
        "platform.yaml:1: no 'catalog'",
        "platform.yaml:1: no 'sources'",
        "platform.yaml:1: no classes",
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        *((SHORT + f"{key}: {{}}\n", key) for key in ("quota", "windows")),
        (SHORT.replace("path: /backup/logs", 's3: "s3://b/p"'), "s3"),
        *((with_source(f"{key}: x"), key) for key in ("each_node", "job_end")),
        *(
            (with_class(f"{{name: a, match: [a], expire_after: 9d, {key}: x}}"), key)
            for key in ("keep_metrics", "debug")
        ),
    ],
)
def test_a_key_whose_feature_comes_later_is_refused_with_these_words(load: Loads, text: str, key: str) -> None:
    (message,) = refusals(load, text)
    assert message.endswith(f"{key!r} is not yet there")


@pytest.mark.parametrize("key", ["windows", "group"])
def test_a_teams_key_whose_feature_comes_later_is_refused_too(load: Loads, key: str) -> None:
    found = refusals(load, SHORT + "teams: [a]\n", teams__a=f"team: a\n{key}: x\n")
    assert found == [f"teams/a.yaml:2: {key!r} is not yet there"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("layout: [tensorboard]", "layout: there is no layout 'tensorboard'"),
        ("layout: [plian]", "layout: unknown layout 'plian'"),
        ("layout: []", "layout: the list is empty"),
        ("layout: plain", "layout: a list is expected here"),
        (
            "layout: ['{a}{b}.log']",
            "layout: '{a}{b}.log': put something between two labels or stars, else nobody knows where one ends",
        ),
        ("under: '{team}/**'", "under: '{team}/**': ** can only be the first folder of a pattern"),
        ("under: '{team}/{rank}'", "under: under cannot read {rank}"),
        ("under: '{tem}/{job}'", "under: under reads a label {tem}"),
        ("under: '{team}/{jbo}'", "under: under reads a label {jbo}"),
        ("layout: ['{nod}/{job}.log']", "layout: the pattern reads a label {nod}"),
        ("under: '{team}', layout: ['{team}/x.log']", "label 'team' is read twice"),
        ("labels: {node: '{hots}'}", "node: label value '{hots}' has a brace"),
        ("labels: {rank: x}", "rank cannot be 'x'"),
        ("settle: 5", "settle: '5' is not a duration"),
        ("mounts: [scratch]", "'mounts' is not yet there"),
        ("exclude: ['#x']", "exclude: pattern '#x' is empty, a comment, or has spaces around it"),
    ],
)  # fmt: skip
def test_a_source_that_cannot_be_meant_is_refused(load: Loads, source: str, message: str) -> None:
    assert refusals(load, with_source(source)) == [f"platform.yaml:2: source logs: {message}"]


@pytest.mark.parametrize(
    ("tier", "message"),
    [
        ("zstd: 0", "zstd: zstd level '0' is not between 1 and 19"),
        ("zstd: 22", "zstd: zstd level '22' is not between 1 and 19"),
        ("zstd: high", "zstd: zstd level 'high' is not between 1 and 19"),
        ("merge: {below: 1T}", "below: size '1T' has no clear unit, did you mean 1TiB or 1TB"),
        ("merge: {below: 64}", "below: size '64' has no clear unit"),
        ("merge: {below: 0MiB}", "below: size '0MiB' must be above 0"),
        ("merge: {below: 2GiB}", "merge below 2.00 GiB is above its target 1.00 GiB"),
        ("merge: {window: 36h}", "window: window '36h' is not a whole number of days"),
        ("merge: no", "merge: a mapping is expected here"),
    ],
)
def test_a_tier_that_cannot_be_meant_is_refused(load: Loads, tier: str, message: str) -> None:
    text = SHORT.replace("path: /backup/logs", f"path: /backup/logs, {tier}")
    assert refusals(load, text) == [f"platform.yaml:3: tier cold: {message}"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("bounds: {evil: {expire_after: [3d, 30d]}}", "bounds: no class 'evil'"),
        ("bounds: {eval: {expire_after: [30d, 3d]}}", "bounds of eval: expire_after from 30d to 3d"),
        ("bounds: {eval: {expire_after: [3d]}}", "bounds of eval: expire_after: a pair is expected here"),
        ("bounds: {eval: {expire_after: [1d, 2d, 3d]}}", "bounds of eval: expire_after: a pair is expected here"),
        ("expire: {grace: 0d}", "expire: grace: duration '0d' must be above 0"),
        ("timezone: Mars/Base", "no time zone 'Mars/Base'"),
        ("timezone: ../../etc/passwd", "no time zone '../../etc/passwd'"),
        ("teams: ['a/b']", "teams: 'a/b' cannot be the name of a team"),
        ("teams: vision", "teams: a list is expected here"),
        ("defaults: seed-2", "key 'defaults' is here twice, first in line 4"),
    ],
)
def test_other_figures_that_cannot_be_meant_are_refused(load: Loads, more: str, message: str) -> None:
    assert refusals(load, f"{SHORT}{more}\n") == [f"platform.yaml:5: {message}"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql+psycopg://u@h/d", "catalog: postgresql+psycopg is not yet there"),
        ("sqlite://", "catalog: 'sqlite://' is no file that SQLite can keep it in"),
        ("sqlite:///", "catalog: 'sqlite:///' is no file that SQLite can keep it in"),
        ("/srv/lc/catalog.db", "catalog: '/srv/lc/catalog.db' is no file that SQLite can keep it in"),
        (
            "sqlite:////srv/lc/c.db?mode=ro",
            "catalog: 'sqlite:////srv/lc/c.db?mode=ro' is no file that SQLite can keep it in",
        ),
        ("sqlite:///../c.db", "catalog: '../c.db' has '..' in it"),
    ],
)  # fmt: skip
def test_a_catalog_that_cannot_be_kept_there_is_refused(load: Loads, url: str, message: str) -> None:
    assert refusals(load, SHORT.replace("sqlite:////srv/lc/catalog.db", url)) == [f"platform.yaml:1: {message}"]


def test_an_unset_variable_is_one_mistake_and_hides_no_other(load: Loads) -> None:
    text = SHORT.replace("/srv/logs", '"${LOG_ROOT}"').replace("seed-1", "seed-9")
    assert refusals(load, text) == [
        "platform.yaml:2: variable LOG_ROOT is not set",
        "platform.yaml:4: defaults: 'seed-9' is not known here",
    ]


@pytest.mark.parametrize("text", ["- a\n- b\n", "just text\n", "a: [\n", ""])
def test_a_file_that_is_no_mapping_is_refused_and_other_files_are_still_read(load: Loads, text: str) -> None:
    found = refusals(load, text, teams__a="team: a\nxyz: 1\n")
    assert len(found) == 2
    assert found[1] == "teams/a.yaml:2: unknown key 'xyz'"


# -- where policies are found ---------------------------------------------------------------------------------------


def test_the_flag_beats_the_variable_beats_the_folder_here(tmp_path: Path) -> None:
    for name in ("flag", "variable", "policies"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "platform.yaml").write_text(SHORT)
    environ = {"LIFECYCLE_POLICIES": str(tmp_path / "variable")}
    assert find_policies(Path("flag"), environ, tmp_path) == Path("flag")
    assert find_policies(None, environ, tmp_path) == tmp_path / "variable"
    assert find_policies(None, {}, tmp_path) == Path("policies")


def test_a_folder_that_was_asked_for_is_never_replaced_by_another(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "platform.yaml").write_text(SHORT)
    with pytest.raises(UsageError, match=r"--policies other: no platform\.yaml there"):
        find_policies(Path("other"), {}, tmp_path)
    with pytest.raises(UsageError, match=r"LIFECYCLE_POLICIES other: no platform\.yaml there"):
        find_policies(None, {"LIFECYCLE_POLICIES": "other"}, tmp_path)
    with pytest.raises(UsageError) as caught:
        find_policies(Path("policies/platform.yaml"), {}, tmp_path)
    assert caught.value.hint == "name the folder, not a file in it"


def test_no_policies_anywhere_says_where_it_looked_and_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_policies(None, {}, tmp_path)
    assert f"{tmp_path}/policies or /etc/lifecycle/policies" in caught.value.message
    assert "lifecycle init" in (caught.value.hint or "")


def test_a_policy_file_that_is_a_pipe_or_missing_is_an_error_and_no_wait(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no platform\.yaml"):
        load_policy(tmp_path, environ={})
    os.mkfifo(tmp_path / "platform.yaml")
    with pytest.raises(UsageError, match=r"no platform\.yaml"):
        load_policy(tmp_path, environ={})
