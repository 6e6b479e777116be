"""The JSON Schema: a foreign reader accepts it, and what it says of a file is what loading says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from lifecycle.policy.builtin import DEFAULT_LAYOUTS
from lifecycle.policy.load import effective_policy, explain_path, json_schema, load_policy, starter_files
from lifecycle.policy.rules import Policy
from lifecycle.policy.schema import SourceKeys
from lifecycle.policy.starter import policies_folder
from lifecycle.units import parse_duration

HOME = {"HOME": "/home/ops"}
EXAMPLES = [policies_folder() / "platform.yaml", *sorted((policies_folder() / "teams").glob("*.yaml"))]


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(policies_folder(), environ=HOME)


def test_the_schema_is_json() -> None:
    assert json.loads(json.dumps(json_schema())) == json_schema()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.name))
def test_the_examples_are_accepted(validator: Any, path: Path) -> None:
    assert [error.message for error in validator.iter_errors(yaml.safe_load(path.read_text()))] == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("catalogue", "x"),
        ("quota", {}),
        ("classes", [{"name": "a", "expires_after": "7d"}]),
        ("classes", [{"name": "a", "expire_after": "7 days"}]),
        ("classes", [{"name": "a", "expire_after": None}]),
        ("tiers", {"warm": {"path": "/w", "zstd": 22}}),
        ("tiers", {"warm": {"path": "/w", "merge": {"below": "1T"}}}),
        ("tiers", {"lukewarm": {"path": "/w"}}),
        ("defaults", "seed-9"),
        ("sources", []),
    ],
)
def test_what_loading_refuses_the_schema_refuses(validator: Any, key: str, value: object) -> None:
    data = yaml.safe_load(EXAMPLES[0].read_text())
    assert validator.is_valid(data)
    assert not validator.is_valid({**data, key: value})


def test_a_team_file_is_told_from_a_platform_file(validator: Any) -> None:
    assert validator.is_valid({"team": "nlp", "classes": [{"name": "eval", "expire_after": "9d"}]})
    assert not validator.is_valid({"team": "nlp", "sources": []})
    assert not validator.is_valid({"aliases": ["x"]})
    assert validator.is_valid({"team": "nlp", "x-anchors": {"a": 1}})


def test_defaults_in_the_schema_are_those_that_count() -> None:
    shown = json_schema()["$defs"]["SourceKeys"]["properties"]
    for name in ("settle", "release_after"):
        assert parse_duration(shown[name]["default"]) == SourceKeys.model_fields[name].default
    assert shown["layout"]["default"] == list(DEFAULT_LAYOUTS)


def iter_keys(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from iter_keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from iter_keys(inner)


def test_no_key_may_be_null() -> None:
    assert not [value for key, value in iter_keys(json_schema()) if key == "type" and value == "null"]


# -- policy show and policy explain ---------------------------------------------------------------------------------


def test_every_figure_comes_with_its_file_and_line(policy: Policy) -> None:
    shown = {(figure.subject, figure.figure): (figure.value, figure.where) for figure in effective_policy(policy)}
    lines = EXAMPLES[0].read_text().splitlines()
    value, where = shown["class training", "expire_after"]
    file, _, line = where.partition(":")
    assert (value, file) == ("30d", "platform.yaml")
    assert "expire_after: 30d" in lines[int(line) - 1]
    assert shown["class eval", "cold_after"] == ("never", "default")
    assert shown["team vision, class training", "expire_after"] == ("60d", "teams/vision.yaml:6")
    assert ("team nlp, class training", "expire_after") not in shown
    assert shown["tier warm", "merge"][0] == "below 64.0 MiB into 512 MiB, 1d of last write"


def test_a_path_is_explained_by_layout_labels_class_and_figures(policy: Policy) -> None:
    found = explain_path(policy, policy.sources[0], b"prj0421/llama-7/gpu-3/rank_12.log.2.gz")
    assert found.foreign == ""
    assert (found.layout, found.rotation_base) == ("rank-files", b"rank_12.log")
    assert (found.labels.team, found.labels.job, found.labels.node, found.labels.rank) == (
        "vision",
        "llama-7",
        "",
        12,
    )
    assert (found.class_name, str(found.class_rule)) == ("training", str(policy.matches[-1].at))
    assert found.is_listed_team
    assert found.rule is not None
    assert found.rule.expire_after == timedelta(days=60)
    assert {figure.figure: figure.value for figure in found.figures}["expire_after"] == "60d"


@pytest.mark.parametrize("folder", [b"error", b"errors", b"eval"])
def test_the_starter_keeps_the_classes_of_folders(policy: Policy, folder: bytes) -> None:
    found = explain_path(policy, policy.sources[0], b"nlp/pretrain-7b/" + folder + b"/rank_3.log")
    assert found.class_name == folder.decode().rstrip("s")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (b"v/j/checkpoints/a.log", "excluded by source logs"),
        (b"v/j/.cache/a.log", "below a hidden folder"),
        (b"v/j/a.log.tmp", "a name that no layout may take"),
        (b"v/j/model.pt", "no layout of source logs claims it: torchrun, kubernetes"),
    ],
)
def test_a_foreign_path_says_why(policy: Policy, path: bytes, why: str) -> None:
    found = explain_path(policy, policy.sources[0], path)
    assert found.foreign.startswith(why)
    assert found.figures == ()


# -- the starter policy ---------------------------------------------------------------------------------------------


def starter(folder: Path, *, teams: tuple[str, ...] = (), name: str = "x") -> Policy:
    base = folder / name
    files = starter_files(
        logs=base / "logs", warm=base / "warm", cold=base / "cold", catalog=base / "db" / "catalog.db", teams=teams
    )
    (folder / "policies" / "teams").mkdir(parents=True, exist_ok=True)
    for file, text in files:
        (folder / "policies" / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / "policies" / file).write_text(text)
    return load_policy(folder / "policies", environ=HOME)


def test_the_starter_loads_with_the_paths_it_was_made_for(tmp_path: Path) -> None:
    policy = starter(tmp_path)
    assert policy.sources[0].path == f"{tmp_path}/x/logs"
    assert [tier.path for tier in policy.tiers.values()] == [f"{tmp_path}/x/warm", f"{tmp_path}/x/cold"]
    assert policy.catalog_url == f"sqlite:///{tmp_path}/x/db/catalog.db"
    assert policy.is_listed("anybody")


def test_a_path_with_signs_that_yaml_knows_comes_through(tmp_path: Path) -> None:
    name = "a: #b 'c' \"d\" ${E} {f}, 日志"
    assert starter(tmp_path, name=name).sources[0].path == f"{tmp_path}/{name}/logs"


def test_a_starter_with_teams_lists_them_and_has_their_files(tmp_path: Path) -> None:
    policy = starter(tmp_path, teams=("vision", "no", "日志"))
    assert list(policy.teams) == ["vision", "no", "日志"]


def test_the_starters_classes_are_seed_1(tmp_path: Path, policy: Policy) -> None:
    folder = tmp_path / "seed"
    folder.mkdir()
    (folder / "platform.yaml").write_text(
        "catalog: sqlite:////srv/lc/c.db\nsources: [{name: a, path: /srv/logs}]\ndefaults: seed-1\n"
    )
    seed = load_policy(folder, environ=HOME)
    assert [(m.class_name, m.patterns) for m in seed.matches] == [(m.class_name, m.patterns) for m in policy.matches]
    for name, rule in seed.classes.items():
        own = policy.classes[name]
        assert (rule.warm_after, rule.cold_after, rule.expire_after, rule.expire_from) == (
            own.warm_after, own.cold_after, own.expire_after, own.expire_from,
        )  # fmt: skip
