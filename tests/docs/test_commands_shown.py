"""Every command that a document, a crontab or a CronJob shows is one that the real command line takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from lifecycle.cli.words import COMMANDS
from lifecycle.errors import ExitCode, UsageError
from tests.docs.commands import iter_shown_commands, parse_command

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("cron/*.md"), *CHECKOUT.glob("docs/**/*.md")])
CRONTAB = CHECKOUT / "cron" / "lifecycle.crontab"
MANIFEST = CHECKOUT / "cron" / "kubernetes.yaml"

SHOWN = [
    pytest.param(arguments, id=f"{path.relative_to(CHECKOUT)}: {' '.join(arguments)}")
    for path in DOCUMENTS
    for arguments in iter_shown_commands(path.read_text(encoding="utf-8"))
]


def _cron_lines() -> list[str]:
    lines = CRONTAB.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if re.match(r"[\d*]", line)]


def _manifests() -> dict[str, Any]:
    return {part["kind"]: part for part in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))}


def _pod() -> dict[str, Any]:
    pod: dict[str, Any] = _manifests()["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize("arguments", SHOWN)
def test_a_shown_command_parses(arguments: list[str]) -> None:
    if len(arguments) == 1:  # a command named in passing, without what it needs
        assert arguments[0] in {row.name for row in COMMANDS}
    else:
        parse_command(arguments)


def test_the_parser_of_these_tests_refuses_what_is_not_there() -> None:
    for arguments in (["prune"], ["run", "--dry"], ["catalog", "vacuum"], ["run", "--max-duration", "soon"]):
        with pytest.raises((click.ClickException, UsageError)):
            parse_command(arguments)


def test_the_readme_names_every_command_and_exit_code() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert [row.name for row in COMMANDS if f"`lifecycle {row.name}`" not in readme] == []
    assert [code for code in ExitCode if f"\n| {int(code)} | " not in readme] == []


def test_every_line_of_the_crontab_has_five_fields_and_a_command_that_parses() -> None:
    lines = _cron_lines()
    assert any(" run --quiet" in line for line in lines)
    for line in lines:
        fields = line.split(maxsplit=5)
        assert all(re.fullmatch(r"[\d*/,-]+", field) for field in fields[:5])
        (arguments,) = iter_shown_commands(f"```\n{fields[5]}\n```")
        parse_command(arguments)


def test_the_crontab_says_who_gets_the_mail_and_where_the_policy_is() -> None:
    text = CRONTAB.read_text(encoding="utf-8")
    assert "\nMAILTO=" in text
    assert "\nLIFECYCLE_POLICIES=" in text
    assert "%" not in "".join(_cron_lines()), "cron turns an unescaped % into a new line"


def test_the_cronjobs_command_parses() -> None:
    (container,) = _pod()["containers"]
    assert container["command"] == ["lifecycle"]
    parse_command(container["args"])


def test_the_cronjob_never_runs_twice_at_once_and_has_an_end() -> None:
    spec = _manifests()["CronJob"]["spec"]
    job = spec["jobTemplate"]["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["startingDeadlineSeconds"] >= 10, "less than ten seconds and a controller that is late never starts it"
    assert 3000 < job["activeDeadlineSeconds"] < 3600, "over --max-duration 50m, under the time to the next start"
    assert job["backoffLimit"] == 0


def test_the_cronjob_may_do_nothing_that_it_need_not() -> None:
    pod = _pod()
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(container["resources"]) == {"requests", "limits"}


def test_every_volume_is_mounted_and_every_mount_has_a_volume() -> None:
    pod = _pod()
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_the_config_maps_policy_is_one_that_loads(tmp_path: Path) -> None:
    from lifecycle.policy.load import load_policy

    for name, text in _manifests()["ConfigMap"]["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert set(load_policy(tmp_path, environ={}).teams) == {"vision"}


def test_the_readmes_policy_is_one_that_loads(tmp_path: Path) -> None:
    from lifecycle.policy.load import load_policy

    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    platform, vision = re.findall(r"^```yaml\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    (tmp_path / "teams").mkdir()
    (tmp_path / "platform.yaml").write_text(platform, encoding="utf-8")
    (tmp_path / "teams" / "vision.yaml").write_text(vision, encoding="utf-8")
    (tmp_path / "teams" / "nlp.yaml").write_text("team: nlp\n", encoding="utf-8")
    policy = load_policy(tmp_path, environ={})
    assert policy.team_of("prj0421") == "vision"
