from __future__ import annotations

import importlib
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from lifecycle.cli.main import group
from lifecycle.cli.words import COMMANDS, NOT_YET, OTHER_WORDS
from tests.docs.commands import parse_command

NAMES = [row.name for row in COMMANDS]


def _commands() -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for row in COMMANDS:
        command = importlib.import_module(row.module).command
        found.append((row.name, command))
        if isinstance(command, click.Group):
            found += [(f"{row.name} {name}", below) for name, below in command.commands.items()]
    return found


@pytest.mark.parametrize(
    ("word", "ours"),
    [("apply", "run"), ("prune", "run"), ("validate", "policy check"), ("clean", "run"), ("status", "audit"),
     ("list", "ls"), ("dry-run", "plan"), ("recall", "restore"), ("why", "explain"), ("migrate-db", "catalog upgrade")],
)  # fmt: skip
def test_a_word_of_another_tool_is_answered_with_ours(word: str, ours: str) -> None:
    result = CliRunner().invoke(group, [word])
    assert result.exit_code == 2
    assert f"here it is '{ours}'" in result.stderr and f"HINT: lifecycle {ours} --help" in result.stderr


@pytest.mark.parametrize(
    ("typed", "meant"), [("runn", "run"), ("paln", "plan"), ("audti", "audit"), ("appl", "run"), ("inti", "init")]
)
def test_a_mistyped_command_is_suggested(typed: str, meant: str) -> None:
    result = CliRunner().invoke(group, [typed])
    assert (result.exit_code, f"did you mean lifecycle {meant}?" in result.stderr) == (2, True)


@pytest.mark.parametrize("name", NOT_YET)
def test_a_command_of_a_later_version_is_said_to_be_not_there_yet(name: str) -> None:
    result = CliRunner().invoke(group, [name])
    assert (result.exit_code, "is not there yet" in result.stderr) == (2, True)


def test_other_words_lead_to_commands_that_are_there() -> None:
    there = {name for name, _ in _commands()}
    assert set(OTHER_WORDS.values()) <= there
    assert not set(OTHER_WORDS) & {*NAMES, *NOT_YET}


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["run", "--dryrun"], "HINT: use --dry-run, or lifecycle plan"),
        (["run", "--yes"], "HINT: nothing asks: lifecycle plan shows, lifecycle run does"),
        (["run", "--max-duraton", "5h"], "HINT: did you mean --max-duration?"),
        (["init", "--sorce", "x"], "HINT: did you mean --source?"),
        (["plan", "--xyzzy"], "HINT: lifecycle plan --help"),
        (["policy", "validate"], "HINT: did you mean lifecycle policy check?"),
        (["run", "--max-duration", "5"], "5"),
        (["ls", "--tier", "warmish"], "warm"),
    ],
)
def test_a_wrong_option_gets_the_right_one(arguments: list[str], hint: str) -> None:
    result = CliRunner().invoke(group, arguments)
    assert result.exit_code == 2 and hint in result.stderr
    assert result.stderr.startswith("lifecycle: ") and result.stdout == ""


@pytest.mark.parametrize("name", [name for name, _ in _commands()])
def test_help_shows_an_example(name: str) -> None:
    result = CliRunner().invoke(group, [*name.split(), "--help"])
    assert result.exit_code == 0
    assert f"Examples:\n  lifecycle {name.split()[0]}" in result.stdout or "Examples:\n  lifecycle --" in result.stdout


@pytest.mark.parametrize("line", [example for _, command in _commands() for example in command.examples])
def test_examples_of_help_can_be_typed(line: str) -> None:
    import shlex

    words = shlex.split(line, comments=True)
    cut = next((at for at, word in enumerate(words) if word in ("|", ">")), len(words))
    parse_command(words[:cut])


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_the_overview_says_what_the_command_s_own_help_says(row: object) -> None:
    command = importlib.import_module(row.module).command  # type: ignore[attr-defined]
    first = re.sub(r"\s+", " ", command.help.split("\n\n")[0]).strip()
    assert first == row.summary  # type: ignore[attr-defined]


def test_the_overview_imports_nothing_heavy_and_no_command() -> None:
    code = (
        "import sys; sys.argv = ['lifecycle', '--help']\n"
        "from lifecycle.cli.main import group\n"
        "try: group.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'sqlalchemy', 'alembic', 'rich', 'pydantic', 'zstandard', 'yaml', 'blake3', 're2', 'pathspec'}\n"
        "print(sorted((heavy | {'lifecycle.cli.run'}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "Exit codes:" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_command_s_help_imports_nothing_heavy(name: str) -> None:
    code = (
        "import importlib, sys\n"
        f"importlib.import_module('lifecycle.cli.{name}')\n"
        "heavy = {'sqlalchemy', 'alembic', 'rich', 'pydantic', 'zstandard', 'yaml', 'blake3', 're2', 'pathspec'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_a_command_the_help_goes_to_stderr_and_the_code_says_usage() -> None:
    result = CliRunner().invoke(group, [])
    assert (result.exit_code, result.stdout, "Every day:" in result.stderr) == (2, "", True)
