from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from lifecycle.cli import words
from lifecycle.cli.command import HouseCommand, MainGroup
from lifecycle.cli.forms import Form, deliver, write_atomically
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.main import group
from lifecycle.errors import Damaged, ExitCode, LeaseHeld, LifecycleError, NothingFound, PolicyError, UsageError
from lifecycle.report.blocks import Block, Line
from lifecycle.report.json import RUN_SCHEMA


def _invoke(body: object, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Run ``lifecycle … run …`` with another body under the command's name."""

    @click.command("run", cls=HouseCommand)
    @click.pass_obj
    def command(call: Invocation) -> object:
        return body(call)  # type: ignore[operator]

    monkeypatch.setattr(MainGroup, "get_command", lambda self, ctx, name: command if name == "run" else None)
    return CliRunner().invoke(group, [*arguments, "run"] if "run" not in arguments else list(arguments))


def _raise(error: BaseException) -> object:
    def body(call: Invocation) -> ExitCode:
        call.print_lines(["before"])
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError("a", hint="b"), 2), (LeaseHeld("a", hint="b"), 5), (Damaged("a", hint="b"), 6),
     (NothingFound("a", hint="b"), 8), (LifecycleError("a", hint="b"), 1)],
)  # fmt: skip
def test_an_error_is_its_message_its_hint_and_its_code(
    error: LifecycleError, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _invoke(_raise(error), monkeypatch=monkeypatch)
    assert (result.exit_code, result.stderr, result.stdout) == (code, "lifecycle: a\nHINT: b\n", "before\n")


def test_an_unforeseen_error_is_one_line_and_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_raise(ZeroDivisionError("division\nby zero")), monkeypatch=monkeypatch)
    assert result.exit_code == 1
    assert result.stderr == "lifecycle: unexpected ZeroDivisionError: division by zero\nHINT: --verbose shows where\n"


def test_verbose_shows_where_an_unforeseen_error_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_raise(ZeroDivisionError("x")), "--verbose", monkeypatch=monkeypatch)
    assert "Traceback" in result.stderr and result.exit_code == 1


def test_verbose_shows_no_traceback_for_a_user_s_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" not in _invoke(_raise(UsageError("x")), "--verbose", monkeypatch=monkeypatch).stderr


def test_a_system_error_names_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    error = PermissionError(13, "Permission denied", "/lustre/logs")
    result = _invoke(_raise(error), monkeypatch=monkeypatch)
    assert (result.exit_code, result.stderr) == (1, "lifecycle: permission denied: /lustre/logs\n")


def test_all_mistakes_of_a_policy_are_shown_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_raise(PolicyError(("p.yaml:1: a", "p.yaml:2: b"))), monkeypatch=monkeypatch)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "p.yaml:1: a",
        "p.yaml:2: b",
        "2 mistakes in the policy, nothing was run (exit 2)",
    ]


def test_a_hand_on_the_keyboard_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_raise(KeyboardInterrupt()), monkeypatch=monkeypatch)
    assert (result.exit_code, result.stderr.strip()) == (130, "lifecycle: stopped by hand")


def _report(code: ExitCode) -> object:
    def body(call: Invocation) -> ExitCode:
        logging.getLogger("lifecycle.test").warning("look", extra={"run_id": 7})
        call.print_blocks([Line(text="report")])
        return code

    return body


@pytest.mark.parametrize("arguments", [("--quiet", "run"), ("run", "--quiet")])
def test_quiet_says_nothing_of_a_run_that_ends_well(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _invoke(_report(ExitCode.DONE), *arguments, monkeypatch=monkeypatch)
    assert (result.exit_code, result.output) == (0, "")


def test_quiet_tells_all_of_a_run_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_report(ExitCode.PARTIAL), "--quiet", monkeypatch=monkeypatch)
    assert (result.exit_code, result.stdout) == (3, "report\n")
    assert "look run_id=7" in result.stderr


def test_the_report_is_on_stdout_and_the_log_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_report(ExitCode.DONE), monkeypatch=monkeypatch)
    assert result.stdout == "report\n" and "look" in result.stderr and "report" not in result.stderr


def test_the_log_in_json_is_one_object_a_line_with_stable_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_report(ExitCode.DONE), "--log-format", "json", monkeypatch=monkeypatch)
    record = json.loads(result.stderr)
    assert (record["level"], record["message"], record["run_id"]) == ("warning", "look", 7)


def _with_last_line(*, on_stdout: bool, error: Exception | None = None) -> object:
    def body(call: Invocation) -> ExitCode:
        call.promise_last_line(RUN_SCHEMA, on_stdout=on_stdout)
        if error:
            raise error
        call.last_line('{"exit_code": 0}')
        call.print_lines(["report"])
        return ExitCode.DONE

    return body


def test_the_machine_s_line_is_the_last_one_of_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_with_last_line(on_stdout=False), monkeypatch=monkeypatch)
    assert (result.stdout, result.stderr) == ("report\n", '{"exit_code": 0}\n')


def test_the_machine_s_line_is_on_stdout_where_json_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_with_last_line(on_stdout=True), monkeypatch=monkeypatch)
    assert (result.stdout.splitlines()[-1], result.stderr) == ('{"exit_code": 0}', "")


def test_the_machine_s_line_comes_also_from_a_run_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _invoke(_with_last_line(on_stdout=False, error=LeaseHeld("held")), monkeypatch=monkeypatch)
    facts = json.loads(result.stderr.splitlines()[-1])
    assert (facts["schema"], facts["exit_code"], facts["error"]["message"]) == (RUN_SCHEMA, 5, "held")
    assert result.exit_code == 5


# --- real pipes -----------------------------------------------------------------------------------------------------

_PROGRAM = """
from lifecycle.cli.invocation import Invocation
import sys
call = Invocation()
call.begin("test")
call.print_lines(f"line {number}" for number in range(1_000_000))
sys.exit(call.end(%d))
"""


@pytest.mark.parametrize("code", [0, 3])
def test_a_reader_that_leaves_ends_the_report_and_not_the_exit_code(code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM % code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this kernel has no /dev/full")
def test_a_report_that_cannot_be_written_is_a_failure() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lifecycle.cli.main", "--help"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1 and b"Traceback" not in done.stderr and done.stderr.count(b"\n") <= 2


def test_a_locale_without_arrows_shows_the_report_anyway() -> None:
    code = (
        "from lifecycle.cli.invocation import Invocation\n"
        "c = Invocation()\nc.begin('x')\nc.print_lines(['hot → warm'])\nc.end(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={"PYTHONIOENCODING": "ascii", "PATH": ""}, check=True,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.stdout == b"hot \\u2192 warm\n"


# --- --out ----------------------------------------------------------------------------------------------------------


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "audit.txt"
    target.write_text("before")

    def lines() -> Iterator[str]:
        yield "half"
        raise ValueError

    with pytest.raises(ValueError):
        write_atomically(target, lines())
    assert target.read_text() == "before" and list(tmp_path.iterdir()) == [target]
    write_atomically(target, ["after"])
    assert target.read_text() == "after\n" and list(tmp_path.iterdir()) == [target]


def test_a_folder_that_is_not_there_is_a_usage_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        write_atomically(tmp_path / "none" / "audit.txt", ["x"])


def test_a_report_in_a_file_has_no_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    blocks: list[Block] = [Line(text="report")]
    deliver(Invocation(), Form(out=tmp_path / "r"), blocks=lambda: blocks, json=list)
    assert (tmp_path / "r").read_text() == "report\n"


def test_every_row_of_the_overview_is_a_module() -> None:
    for row in words.COMMANDS:
        assert (Path(words.__file__).parent / f"{row.name}.py").is_file()
