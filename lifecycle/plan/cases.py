"""``policies/tests/*.yaml``: what a policy is meant to make of a path, checked with the rules that a run follows.

Each test names a path and what is expected of it: labels, class, layout, and where it is at which age. Looks at no file
but the tests themselves. Every mistake of all files at once, as the policy's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from lifecycle.errors import PolicyError, UsageError
from lifecycle.model import Labels, RuleRef
from lifecycle.names import show_name
from lifecycle.plan.figures import make_figures
from lifecycle.policy.document import MAX_BYTES, Document, Loc, Mistake, parse_document
from lifecycle.policy.effective import PathExplanation, explain_path
from lifecycle.policy.holds import holds_path
from lifecycle.policy.mistakes import Checked, check_document, did_you_mean
from lifecycle.policy.rules import Policy, SourceRule
from lifecycle.policy.schema import Duration, Keys, Text, Wrong
from lifecycle.units import duration_ns, format_limit, parse_duration

FOLDER: Final = "tests"
FATES: Final = ("hot", "warm", "cold", "marked", "gone", "held", "foreign", "excluded")
_STAND_INS: Final[Mapping[str, object]] = {"tests": []}


def _fate(value: object) -> str:
    if not isinstance(value, str) or value not in FATES:
        raise Wrong(f"{value!r} is no fate", f"fates are {', '.join(FATES)}")
    return value


Fate = Annotated[str, BeforeValidator(_fate), WithJsonSchema({"type": "string", "enum": list(FATES)})]


class CaseKeys(Keys):
    path: Text = Field(description="absolute, or below the root of ``source``")
    source: Text | None = None
    labels: dict[str, Text] = Field(default={}, description="those that are expected; the others are not looked at")
    class_: Text | None = Field(default=None, alias="class")
    layout: Text | None = None
    fate: dict[str, Fate] | Fate | None = Field(default=None, description="one word, or AGE: word for some ages")
    job_age: Duration | None = Field(default=None, description="of the job's newest log; left out, as old as this one")


class CasesKeys(Keys):
    """One file of tests."""

    tests: Annotated[list[CaseKeys], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that is not as a test says."""

    file: str
    line: int
    path: str
    what: str  # "class", "fate at 8d", "label rank"
    expected: str
    found: str
    rule: str  # the line of policy that decided, "" where none did


@dataclass(slots=True, kw_only=True)
class CasesReport:
    files: int = 0
    tests: int = 0
    checks: int = 0
    failures: list[Failure] = field(default_factory=list)


def run_cases(policy: Policy, paths: Sequence[Path], *, host: str) -> CasesReport:
    """Every test of these files against the policy. Raises PolicyError with all mistakes, UsageError for a file that
    cannot be read. A second call with the same files gives the same."""
    report, mistakes = CasesReport(files=len(paths)), list[Mistake]()
    for path in paths:
        checked = _read(path)
        mistakes.extend(checked.mistakes)
        for index, case in enumerate(checked.keys.tests if checked.keys is not None else ()):
            report.tests += 1
            _run(policy, checked.document, ("tests", index), case, report, mistakes, host=host)
    if mistakes:
        raise PolicyError(tuple(mistake.render() for mistake in mistakes))
    return report


def find_cases(policies: Path) -> list[Path]:
    """The test files of a policies folder, by name."""
    return sorted((policies / FOLDER).glob("*.yaml"))


def _read(path: Path) -> Checked[CasesKeys]:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="name a YAML file of tests") from error
    return check_document(parse_document(str(path), raw), CasesKeys, {}, _STAND_INS)


def _run(
    policy: Policy,
    document: Document,
    loc: Loc,
    case: CaseKeys,
    report: CasesReport,
    mistakes: list[Mistake],
    *,
    host: str,
) -> None:
    place = _find_source(policy, document, loc, case, mistakes)
    if place is None:
        return
    source, path = place
    explained = explain_path(policy, source, path, host=host)
    shown = f"{source.path.rstrip('/')}/{show_name(path)}"

    def check(where: Loc, what: str, expected: str, found: str, rule: RuleRef | None) -> None:
        report.checks += 1
        if expected != found:
            line = document.line_of((*loc, *where))
            at = str(rule) if rule is not None else ""
            report.failures.append(
                Failure(
                    file=document.file, line=line, path=shown, what=what, expected=expected, found=found or "none",
                    rule=at,
                )
            )  # fmt: skip

    labels = _label_map(explained.labels)
    for name, value in case.labels.items():
        check(("labels", name), f"label {name}", value, labels.get(name, ""), None)
    if case.class_ is not None:
        check(("class",), "class", case.class_, explained.class_name or "foreign", explained.class_rule)
    if case.layout is not None:
        check(("layout",), "layout", case.layout, explained.layout or "foreign", None)
    for where, age, word in _fates(case, document, loc, mistakes):
        found, rule = fate_at(policy, explained, shown, age, case.job_age)
        check(where, f"fate at {format_limit(age)}" if age is not None else "fate", word, found, rule)


def _find_source(
    policy: Policy, document: Document, loc: Loc, case: CaseKeys, mistakes: list[Mistake]
) -> tuple[SourceRule, bytes] | None:
    path = os.fsencode(case.path)
    if case.source is not None:
        source = next((source for source in policy.sources if source.name == case.source), None)
        if source is None:
            names = [source.name for source in policy.sources]
            hint = did_you_mean(case.source, names, f"sources are {', '.join(names)}")
            mistakes.append(document.mistake((*loc, "source"), f"no source {case.source!r}", hint))
        return None if source is None else (source, path.lstrip(b"/"))
    for source in policy.sources:
        root = os.fsencode(source.path).rstrip(b"/") + b"/"
        if path.startswith(root) and len(path) > len(root):
            return source, path[len(root) :]
    hint = f"give source: NAME and a path below it; sources are {', '.join(s.name for s in policy.sources)}"
    mistakes.append(document.mistake((*loc, "path"), f"path {case.path} is below no source", hint))
    return None


def _fates(
    case: CaseKeys, document: Document, loc: Loc, mistakes: list[Mistake]
) -> Iterator[tuple[Loc, timedelta | None, str]]:
    if isinstance(case.fate, str):
        yield ("fate",), None, case.fate
        return
    for text, word in (case.fate or {}).items():
        try:
            yield ("fate", text), parse_duration(text), word
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            mistakes.append(document.mistake((*loc, "fate", text), message, hint or "write an age as 8d"))


def fate_at(
    policy: Policy, explained: PathExplanation, path: str, age: timedelta | None, job_age: timedelta | None
) -> tuple[str, RuleRef | None]:
    """Where a log of this age is by the policy alone, and the line that says so; without an age what it is at once. A
    quiet log, seen for long enough, in runs that work."""
    if explained.foreign:
        return ("excluded" if explained.is_excluded else "foreign"), None
    rule = explained.rule
    if rule is None or not explained.is_listed_team or age is None:
        return "hot", None
    figures = make_figures(rule, policy)
    age_ns = duration_ns(age)
    end_ns = figures.retention_end_ns(-age_ns, -duration_ns(job_age if job_age is not None else age))
    if end_ns is None or end_ns > 0:
        tier = figures.required_tier(age_ns)
        return tier.value, figures.after(tier)
    held = next((hold for hold in policy.holds if holds_path(hold, path, explained.labels, explained.class_name)), None)
    if held is not None:
        return "held", held.at
    return ("gone" if -end_ns >= duration_ns(policy.grace) else "marked"), figures.at("expire_after")


def _label_map(labels: Labels) -> Mapping[str, str]:
    found: dict[str, Any] = {
        "team": labels.team, "job": labels.job, "node": labels.node, "stream": labels.stream,
        "attempt": labels.attempt, "rank": "" if labels.rank is None else str(labels.rank), **dict(labels.extra),
    }  # fmt: skip
    return found
