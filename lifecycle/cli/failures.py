"""Errors to lines: ``lifecycle: message``, ``HINT: next step``, and the exit code. Catches nothing itself."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import click

from lifecycle.cli.words import OTHER_OPTIONS
from lifecycle.errors import ExitCode, LifecycleError, PolicyError
from lifecycle.spelling import find_near

if TYPE_CHECKING:
    from lifecycle.cli.invocation import Invocation


def show_failure(error: Exception, call: Invocation) -> ExitCode:
    """Say on stderr what went wrong and give the code to leave with. A traceback only with ``--verbose``, and only
    for what nobody foresaw."""
    match error:
        case PolicyError():
            _show_mistakes(error, call)
            code = error.exit_code
        case LifecycleError():
            _show(error.message, error.hint, call)
            code = error.exit_code
        case click.ClickException():
            _show(*_click_words(error), call)
            code = ExitCode.USAGE
        case OSError() if error.strerror:
            where = f": {error.filename!s}" if error.filename is not None else ""
            _show(f"{error.strerror.lower()}{where}", None, call)
            code = ExitCode.FAILED
        case _:
            _show_unexpected(error, call)
            code = ExitCode.FAILED
    if call.verbose and not isinstance(error, click.ClickException | LifecycleError):
        call.err("".join(traceback.format_exception(error)).rstrip())
    call.failed(error, code)
    return code


def _show(message: str, hint: str | None, call: Invocation) -> None:
    call.err(f"lifecycle: {message}")
    if hint:
        call.err(f"HINT: {hint}")


def _show_mistakes(error: PolicyError, call: Invocation) -> None:
    for mistake in error.mistakes:
        call.err(mistake)
    count = len(error.mistakes)
    call.err(f"{count} mistake{'s' if count != 1 else ''} in the policy, nothing was run (exit {int(error.exit_code)})")


def _show_unexpected(error: Exception, call: Invocation) -> None:
    text = " ".join(str(error).split()) or "no message"
    _show(f"unexpected {type(error).__name__}: {text}", None if call.verbose else "--verbose shows where", call)


def _params(context: click.Context | None) -> list[click.Parameter]:
    return [it for it in context.command.params if not getattr(it, "hidden", False)] if context else []


def _click_words(error: click.ClickException) -> tuple[str, str | None]:
    """Click's complaint in our form: lower case, one line, and what to type instead."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "lifecycle"
    message = " ".join(error.format_message().split()).rstrip(".")
    hint = f"{command} --help"
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        message = f"no option {name} in {command}"
        if answer := OTHER_OPTIONS.get(name):
            hint = answer
        elif near := find_near(name, (option for each in _params(context) for option in each.opts)):
            hint = f"did you mean {near}?"
    return message[:1].lower() + message[1:], hint
