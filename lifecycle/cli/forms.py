"""``--format table|json|csv``, ``--json`` and ``--out FILE``: the same on every command that reports."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lifecycle.errors import UsageError

if TYPE_CHECKING:
    from lifecycle.cli.invocation import Invocation
    from lifecycle.report.blocks import Block, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What the report looks like and where it goes; ``out`` None is stdout."""

    format: str = "table"
    out: Path | None = None

    @property
    def is_table(self) -> bool:
        return self.format == "table"


def report_form(
    *, has_csv: bool = True, has_out: bool = True, has_prometheus: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command these options as one argument ``form``."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_form(*args: Any, format_: str | None, as_json: bool, out_file: Path | None = None, **rest: Any) -> Any:
            if as_json and format_ not in (None, "json"):
                raise UsageError(f"--json and --format {format_} at once", hint="give one of them")
            return function(*args, form=Form(format="json" if as_json else format_ or "table", out=out_file), **rest)

        if has_out:
            with_form = click.option(
                "--out", "out_file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                help="Write the report to FILE, whole or not at all.",
            )(with_form)  # fmt: skip
        kinds = ["table", "json", *(["csv"] if has_csv else ()), *(["prometheus"] if has_prometheus else ())]
        with_form = click.option("--json", "as_json", is_flag=True, help="Short for --format json.")(with_form)
        return click.option(
            "--format", "format_", type=click.Choice(kinds), help="Form of the report.  [default: table]"
        )(with_form)

    return decorate


def deliver(
    call: Invocation,
    form: Form,
    *,
    blocks: Callable[[], Iterable[Block]],
    json: Callable[[], Iterable[str]],
    table: Callable[[], Table] | None = None,
) -> None:
    """Render in the form asked for, only that one, and print it or write it to the file."""
    if form.format == "table" and form.out is None:
        call.print_blocks(blocks())
        return
    deliver_lines(call, form, _render(form, blocks, json, table))


def deliver_lines(call: Invocation, form: Form, lines: Iterable[str]) -> None:
    """Print them, or write them to the file that was asked for."""
    if form.out is None:
        call.print_lines(lines)
    else:
        write_atomically(form.out, lines)


def _render(
    form: Form,
    blocks: Callable[[], Iterable[Block]],
    json: Callable[[], Iterable[str]],
    table: Callable[[], Table] | None,
) -> Iterable[str]:
    if form.format == "json":
        return json()
    if form.format == "csv" and table is not None:
        from lifecycle.report.csv import render_csv

        return render_csv(table())
    from lifecycle.report.text import render_text

    return render_text(blocks())


def write_atomically(path: Path, lines: Iterable[str]) -> None:
    """Put a whole file under its name, or leave what was there. Raises UsageError when the folder cannot be written."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        try:
            with temporary.open("x", encoding="utf-8", newline="") as file:
                file.writelines(line + "\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise UsageError(
            f"report {path} cannot be written: {(error.strerror or str(error)).lower()}",
            hint="give --out another place",
        ) from error
