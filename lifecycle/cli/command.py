"""Our kinds of click command: options that every command takes, examples in every help, commands imported late.

``HouseGroup.main`` is the one place that turns errors into lines on stderr and an exit code.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from lifecycle.cli.failures import show_failure
from lifecycle.cli.invocation import Invocation
from lifecycle.cli.words import COMMANDS, make_unknown_command
from lifecycle.errors import ExitCode

_STOPPED_BY_HAND: Final = 130  # what a shell says of SIGINT; nothing of ours has a code above 8
CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


def _note(name: str) -> Callable[[click.Context, click.Parameter, object], None]:
    def keep(ctx: click.Context, _: click.Parameter, value: object) -> None:
        # Only what was given: `lifecycle --quiet run` must stay quiet though `run` has the option too.
        if value is not None and value is not False and (call := ctx.find_object(Invocation)):
            setattr(call, name, value)

    return keep


def common_options(*, hidden: bool) -> list[click.Parameter]:
    """``--policies --quiet --verbose --log-format``: understood before and after the command's name."""
    folder = click.Path(file_okay=False, path_type=Path)
    return [
        click.Option(["--policies"], type=folder, metavar="DIR", hidden=hidden, expose_value=False,
                     callback=_note("policies"),
                     help="Folder of the policy; else LIFECYCLE_POLICIES, ./policies, /etc/lifecycle/policies."),
        click.Option(["--quiet"], is_flag=True, hidden=hidden, expose_value=False, callback=_note("quiet"),
                     help="Print nothing when the exit code is 0."),
        click.Option(["--verbose"], is_flag=True, hidden=hidden, expose_value=False, callback=_note("verbose"),
                     help="Log every step on stderr; show a traceback for an unexpected error."),
        click.Option(["--log-format"], type=click.Choice(["text", "json"]), hidden=hidden, expose_value=False,
                     callback=_note("log_format"), help="Form of the log on stderr.  [default: text]"),
    ]  # fmt: skip


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"  lifecycle {example}\n")


class HouseCommand(click.Command):
    """``examples`` are command lines without ``lifecycle`` before them; each may end in ``  # what for``."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        kwargs["context_settings"] = CONTEXT | (kwargs.get("context_settings") or {})
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.params.extend(common_options(hidden=True))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)
        super().format_epilog(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        if call := ctx.find_object(Invocation):
            call.begin(self.name or "")
        return super().invoke(ctx)


class HouseGroup(click.Group):
    """A group whose unknown commands are answered, and which without any prints its help and is a usage mistake."""

    command_class = HouseCommand

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        kwargs["context_settings"] = CONTEXT | (kwargs.get("context_settings") or {})
        super().__init__(*args, **({"no_args_is_help": False} | kwargs))
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)
        super().format_epilog(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(ExitCode.USAGE)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (
            not ctx.resilient_parsing
            and args
            and not args[0].startswith("-")
            and self.get_command(ctx, args[0]) is None
        ):
            raise make_unknown_command(args[0], self.list_commands(ctx), path=ctx.command_path)
        return super().resolve_command(ctx, args)


class MainGroup(HouseGroup):
    """``lifecycle``: commands by section, each imported when it is called or its own help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [row.name for row in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = next((row for row in COMMANDS if row.name == cmd_name), None)
        if row is None:
            return None
        command = importlib.import_module(row.module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in dict.fromkeys(row.section for row in COMMANDS):
            with formatter.section(section):
                formatter.write_dl([(row.name, row.summary) for row in COMMANDS if row.section == section])

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run and leave with the exit code. Errors become lines on stderr; nothing ends in a traceback."""
        call = Invocation()
        extra.pop("standalone_mode", None)
        try:
            code = super().main(args, prog_name or "lifecycle", standalone_mode=False, obj=call, **extra)
            exit_code = ExitCode(code) if isinstance(code, int) else ExitCode.DONE
        except (KeyboardInterrupt, click.exceptions.Abort):
            call.err("lifecycle: stopped by hand")
            sys.exit(call.end(_STOPPED_BY_HAND))
        except Exception as error:
            exit_code = show_failure(error, call)
        sys.exit(call.end(exit_code))
