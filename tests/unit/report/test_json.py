from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from lifecycle.errors import ExitCode, UsageError
from lifecycle.report.blocks import CellKind, Column, Table
from lifecycle.report.json import (
    AUDIT_SCHEMA,
    RUN_SCHEMA,
    iter_table_json,
    render_failure_line,
    render_json,
    render_plan,
    render_run_line,
    run_summary,
    to_json,
)
from lifecycle.report.summaries import read_summary
from tests.builders import NOON
from tests.unit.report.figures_for_tests import a_preview, a_run, an_audit


def test_a_run_line_is_one_line_and_says_its_schema_and_exit_code() -> None:
    line = render_run_line(a_run())
    facts = json.loads(line)
    assert "\n" not in line
    assert (facts["schema"], facts["run_id"], facts["exit_code"], facts["exit"]) == (RUN_SCHEMA, 1882, 3, "partial")


def test_a_run_that_is_read_back_is_the_run_that_was_written() -> None:
    run = a_run()
    assert read_summary(json.loads(render_run_line(run))) == run


def test_a_newer_program_s_summary_is_read_as_far_as_it_is_understood() -> None:
    run = a_run()
    assert read_summary(dict(run_summary(run)) | {"invented_later": {"x": 1}}) == run


@pytest.mark.parametrize(
    "facts", [{}, {"schema": "lifecycle.run/99"}, {"schema": RUN_SCHEMA}, {"schema": RUN_SCHEMA, "now": 3}]
)
def test_a_summary_that_makes_no_report_is_none(facts: dict[str, object]) -> None:
    assert read_summary(facts) is None


def test_a_failed_run_s_line_has_the_message_and_the_hint() -> None:
    line = render_failure_line(RUN_SCHEMA, UsageError("no such place", hint="lifecycle init"), ExitCode.USAGE, now=NOON)
    facts = json.loads(line)
    assert (facts["exit_code"], facts["error"]["message"], facts["error"]["hint"]) == (
        2,
        "no such place",
        "lifecycle init",
    )


def test_the_audit_has_its_schema_first_and_sizes_in_bytes() -> None:
    facts = json.loads(render_json(AUDIT_SCHEMA, an_audit()))
    assert next(iter(facts)) == "schema" and facts["schema"] == "lifecycle.audit/1"
    assert facts["tiers"][1]["usage"] == {"segments": 100, "logical_bytes": 50 * 2**30, "stored_bytes": 10 * 2**30}


def test_the_plan_s_document_has_its_lines_and_not_its_items() -> None:
    facts = json.loads(render_plan(a_preview()))
    assert {line["action"] for line in facts["plan"]["lines"]} == {"merge", "transition", "kept"}
    assert "items" not in facts


def test_names_that_are_no_text_are_reversible() -> None:
    assert to_json(b"rank\xff.log") == r"rank\xff.log"


def test_what_is_no_figure_is_refused() -> None:
    @dataclass(frozen=True)
    class Holder:
        value: object

    with pytest.raises(TypeError):
        to_json(Holder(lambda: None))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_long_table_is_one_valid_document(count: int) -> None:
    table = Table(
        columns=(Column(key="id", kind=CellKind.NUMBER), Column(key="name")), rows=((n, "ü\n") for n in range(count))
    )
    facts = json.loads("\n".join(iter_table_json("lifecycle.ls/1", table)))
    assert facts == {"schema": "lifecycle.ls/1", "rows": [{"id": n, "name": "ü\n"} for n in range(count)]}
