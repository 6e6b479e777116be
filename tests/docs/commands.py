"""Finds the command lines that documents show, and parses them with the real command line without running any."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Sequence

import click

from lifecycle.cli.command import MainGroup
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.main import group as command_line

_FENCE = re.compile(r"^```(?:sh|bash|text|console)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(lifecycle [^`]+)`")
_STOP = frozenset({"|", "||", "&&", ";", ">", "2>&1", "&", "#"})


def parse_command(arguments: Sequence[str]) -> click.Command:
    """The command that would run. Raises what the user would see: an unknown command or option, a bad value."""
    group: click.Command = command_line
    assert isinstance(group, MainGroup)
    rest, parent, name = list(arguments), None, "lifecycle"
    while True:
        with _paths_of_elsewhere(group):
            context = group.make_context(name, rest, parent=parent, **({} if parent else {"obj": Invocation()}))
        if not isinstance(group, click.Group):
            return group
        found, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None, found
        group, parent, name = command, context, str(found)


@contextlib.contextmanager
def _paths_of_elsewhere(command: click.Command) -> Iterator[None]:
    """A document's paths need not exist on the machine that tests it."""
    paths = [param.type for param in command.params if isinstance(param.type, click.Path) and param.type.exists]
    for path in paths:
        path.exists = False
    try:
        yield
    finally:
        for path in paths:
            path.exists = True


def iter_shown_commands(markdown: str) -> Iterator[list[str]]:
    """Arguments of each ``lifecycle …`` in code, without what follows a pipe or a comment."""
    for block in _FENCE.findall(markdown):
        for line in block.splitlines():
            yield from _commands_of(line.removeprefix("$ "))
    for code in _INLINE.findall(markdown):
        yield from _commands_of(code)


def _commands_of(line: str) -> Iterator[list[str]]:
    if "lifecycle" not in line:
        return
    words = shlex.split(line, comments=True)
    for start, word in enumerate(words):
        before = words[start - 1] if start else ";"
        if word.endswith("/bin/lifecycle") or (word == "lifecycle" and (before in _STOP or "=" in before)):
            arguments = words[start + 1 :]
            end = next(
                (index for index, part in enumerate(arguments) if part.rstrip(";") in _STOP or part == "…"), None
            )
            yield [part.rstrip(";") for part in arguments[:end]]
