"""A run's stored JSON line read back to its figures, so that ``history 1882`` shows what the run itself printed.

Lines of older and newer programs are read as far as they are understood: unknown keys are passed over, missing ones
take their default, and a line that makes no report at all gives None.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from lifecycle.catalog.places import places
from lifecycle.catalog.reporting import count_problems
from lifecycle.catalog.runs import RunRecord, list_runs, problems_of, run_by_id
from lifecycle.catalog.store import Catalog
from lifecycle.errors import Consequence, ExitCode, NothingFound
from lifecycle.report.figures import ProblemLine, RunLine, RunReport, ScanOnceReport, StoredRun
from lifecycle.report.json import RUN_SCHEMA, SCAN_SCHEMA
from lifecycle.units import from_ns

_T = TypeVar("_T")
_KINDS: Final[Mapping[str, type[RunReport] | type[ScanOnceReport]]] = {
    RUN_SCHEMA: RunReport,
    SCAN_SCHEMA: ScanOnceReport,
}


def read_summary(facts: Mapping[str, Any]) -> RunReport | ScanOnceReport | None:
    """The report that ``report.json.run_summary`` made these facts of."""
    kind = _KINDS.get(str(facts.get("schema")))
    try:
        return _read(kind, facts) if kind else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: type[_T], facts: Mapping[str, Any]) -> _T:
    assert dataclasses.is_dataclass(kind)
    hints = _hints(kind)
    names = [field.name for field in dataclasses.fields(kind) if field.name in facts]
    return kind(**{name: _value(hints[name], facts[name]) for name in names})


def _value(hint: Any, value: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        inner = [part for part in get_args(hint) if part is not type(None)]
        return None if value is None else _value(inner[0], value)
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], item) for item in value)
    if hint is datetime:
        return datetime.fromisoformat(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _read(hint, value)
    if hint in (int, float) and not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def read_run(catalog: Catalog, run_id: int) -> StoredRun:
    """A run's row and, where its line can be read, its report. Raises NothingFound."""
    with catalog.read() as conn:
        record = run_by_id(conn, run_id)
        counts = count_problems(conn, [run_id])
    if record is None:
        raise NothingFound(f"there is no run {run_id}", hint="lifecycle history lists the runs")
    line = make_run_line(record, counts.get(run_id, 0))
    return StoredRun(line=line, report=read_summary(record.summary), error=str(record.summary.get("error") or ""))


def read_problems(catalog: Catalog, run_id: int | None) -> list[ProblemLine]:
    """What went wrong in a run; without one, in the newest run that had any."""
    with catalog.read() as conn:
        names = {place.id: place.name for place in places(conn)}
        if run_id is None:
            recent = [record.id for record in list_runs(conn, limit=200)]
            run_id = max(count_problems(conn, recent), default=0)
        found = problems_of(conn, run_id)
        record = run_by_id(conn, run_id)
    ended_by = str(record.summary.get("error") or "") if record is not None else ""
    last = [ProblemLine(phase="run", message=ended_by, consequence=Consequence.HALT.value)] if ended_by else []
    return last + [
        ProblemLine(
            phase=problem.phase,
            place=names.get(problem.place_id or 0, ""),
            subject=problem.subject,
            message=problem.message,
            consequence=problem.consequence.value,
        )
        for problem in found
    ]


def make_run_line(record: RunRecord, problems: int) -> RunLine:
    """A row of the run history."""
    return RunLine(
        run_id=record.id,
        command=record.command,
        host=record.host,
        now=from_ns(record.now_ns),
        started=from_ns(record.started_ns),
        ended=None if record.ended_ns is None else from_ns(record.ended_ns),
        policy_digest=record.policy_digest,
        exit_code=None if record.exit_code is None else ExitCode(record.exit_code),
        problems=problems,
    )
