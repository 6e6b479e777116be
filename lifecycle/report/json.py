"""Figures and tables to JSON. Every document names its schema and version; keys are the names of the figures.

Sizes are bytes, durations seconds, instants ISO 8601 in UTC, names the reversible text of ``names.show_name``.
A key may be added within a version; one that goes or changes its meaning makes a new version.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import PurePath
from typing import Final

from lifecycle.errors import ExitCode, LifecycleError
from lifecycle.names import show_name
from lifecycle.policy.effective import effective_policy
from lifecycle.policy.rules import Policy
from lifecycle.report.blocks import Table
from lifecycle.report.figures import PreviewReport, RunReport, ScanOnceReport

RUN_SCHEMA: Final = "lifecycle.run/1"
SCAN_SCHEMA: Final = "lifecycle.scan/1"
PLAN_SCHEMA: Final = "lifecycle.plan/1"
POLICY_SCHEMA: Final = "lifecycle.policy/1"
AUDIT_SCHEMA: Final = "lifecycle.audit/1"
FORECAST_SCHEMA: Final = "lifecycle.forecast/1"

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def to_json(value: object) -> Json:
    """Plain JSON of any figure; raises TypeError for what is none (a function, an open file)."""
    if isinstance(value, Enum):
        return to_json(value.value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return show_instant(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return show_name(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [to_json(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} is no figure")


def show_instant(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def render_json(schema: str, value: object, *, one_line: bool = False) -> str:
    """One document with its schema first."""
    body = to_json(value)
    document = {"schema": schema, **body} if isinstance(body, dict) else {"schema": schema, "rows": body}
    return _dumps(document, one_line=one_line)


def run_summary(report: RunReport | ScanOnceReport) -> dict[str, Json]:
    """What machines read of a run or scan, and what the catalog keeps as its summary. Read back by
    ``report.summaries``."""
    body = to_json(report)
    assert isinstance(body, dict)
    schema, code = (RUN_SCHEMA if isinstance(report, RunReport) else SCAN_SCHEMA), report.exit_code
    seconds = round((report.ended - report.started).total_seconds(), 3)
    first: dict[str, Json] = {
        "schema": schema,
        "run_id": report.run_id,
        "exit_code": int(code),
        "exit": code.name.lower(),
    }
    return first | {"seconds": seconds} | body


def render_run_line(report: RunReport | ScanOnceReport) -> str:
    """The summary as one line."""
    return _dumps(run_summary(report), one_line=True)


def render_plan(report: PreviewReport) -> str:
    """The plan's summary; its items are a document of their own."""
    facts = {
        "exit_code": int(report.exit_code), "out": report.out, "scanned_at": report.scanned_at, "scans": report.scans,
        "clock_ahead": report.clock_ahead, "before": report.before, "fills": report.fills, "broken": report.broken,
        "plan": report.summary,
    }  # fmt: skip
    return render_json(PLAN_SCHEMA, facts)


def render_policy(policy: Policy) -> str:
    """Every figure in force with its line; not the files' text."""
    facts = {"digest": policy.digest, "files": [name for name, _ in policy.files], "figures": effective_policy(policy)}
    return render_json(POLICY_SCHEMA, facts)


def render_failure_line(schema: str, error: BaseException, exit_code: ExitCode, *, now: datetime) -> str:
    """The summary of a run that ended in an error: the last line comes also then."""
    hint = error.hint if isinstance(error, LifecycleError) else None
    facts = {"schema": schema, "exit_code": int(exit_code), "exit": exit_code.name.lower(), "ended": show_instant(now)}
    return _dumps(
        {**facts, "error": {"kind": type(error).__name__, "message": str(error), "hint": hint}}, one_line=True
    )


def iter_table_json(schema: str, table: Table) -> Iterator[str]:
    """A document of rows, one row a line, so that a long list is written in flat memory."""
    yield f'{{"schema": {json.dumps(schema)}, "rows": ['
    before: str | None = None
    for row in table.rows:
        if before is not None:
            yield before + ","
        cells = {column.key: to_json(cell) for column, cell in zip(table.columns, row, strict=True)}
        before = _dumps(cells, one_line=True)
    if before is not None:
        yield before
    yield "]}"


def _dumps(value: object, *, one_line: bool) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=None if one_line else 2)
