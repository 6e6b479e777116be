"""YAML to nodes: lines are kept, scalars stay text, and nothing in a file can surprise or take the memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.policy.document import MAX_BYTES, MAX_NODES, Document, parse_document


def parsed(text: str | bytes) -> Document:
    return parse_document("platform.yaml", text if isinstance(text, bytes) else text.encode())


def data(text: str, **environ: str) -> object:
    document = parsed(text)
    assert not document.mistakes
    value, unset = document.data(environ)
    assert not unset
    return value


def said(text: str | bytes) -> list[tuple[int, str]]:
    return [(mistake.line, mistake.message) for mistake in parsed(text).mistakes]


def test_every_scalar_stays_what_was_written() -> None:
    text = "a: no\nb: 0755\nc: 22:00\nd: 1_000\ne: 2026-03-12\nf: ~\ng: 'x'\nh:\ni: 1e3\nj: .inf\n"
    expected = {"a": "no", "b": "0755", "c": "22:00", "d": "1_000", "e": "2026-03-12", "f": "~"}
    assert data(text) == expected | {"g": "x", "h": "", "i": "1e3", "j": ".inf"}


def test_a_duplicate_key_is_a_mistake_with_both_lines() -> None:
    assert said("a:\n  match: [x]\n  b: 1\n  match: [y]\n") == [(4, "key 'match' is here twice, first in line 2")]


def test_a_merge_key_gives_what_the_mapping_leaves_out_and_keeps_its_lines() -> None:
    text = "x-base: &base\n  warm: 1d\n  cold: 7d\nc:\n  <<: *base\n  cold: 9d\n"
    document = parsed(text)
    assert data(text) == {"x-base": {"warm": "1d", "cold": "7d"}, "c": {"warm": "1d", "cold": "9d"}}
    assert document.line_of(("c", "warm")) == 2
    assert document.line_of(("c", "cold")) == 6


def test_of_several_merged_mappings_the_first_wins() -> None:
    assert data("a: &a {k: 1}\nb: &b {k: 2, l: 3}\nc: {<<: [*a, *b]}\n") == {
        "a": {"k": "1"},
        "b": {"k": "2", "l": "3"},
        "c": {"k": "1", "l": "3"},
    }


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: !!python/object:os.system x\n", 2, "tag !!python/object:os.system is not allowed"),
        ("a: !x 1\n", 1, "tag !x is not allowed"),
        ("a: 1\n---\nb: 2\n", 2, "a second YAML document"),
        ("a: 1\nb: *c\n", 2, "alias *c has no anchor above it"),
        ("a: &a [1, *a]\n", 1, "alias *a stands inside its own anchor"),
        ("? [a]\n: 1\n", 1, "a key that is a list or a mapping"),
        ("<<: 3\n", 1, "'<<' takes in something that is no mapping"),
        ("a: &a {b: 1}\nc:\n  <<: *a\n  <<: *a\n", 4, "key '<<' is here twice, first in line 3"),
        ("a: " + "[" * 21, 1, "nested deeper than 20 levels"),
        ("", 1, "file is empty"),
        ("# only a comment\n", 1, "file is empty"),
        (b"a: 1\nb: \xff\n", 2, "byte 0xff is not UTF-8"),
    ],
)
def test_what_plain_yaml_lets_pass_is_refused(text: str | bytes, line: int, message: str) -> None:
    assert said(text) == [(line, message)]


@pytest.mark.parametrize("text", ["a: [\n", "a: b: c\n", "\ta: 1\n", "a: \x01\n", "a: 'x\n", "@x\n"])
def test_what_is_no_yaml_is_one_mistake_and_no_traceback(text: str) -> None:
    document = parsed(text)
    assert document.root is None
    assert [mistake.message.startswith("not YAML: ") for mistake in document.mistakes] == [True]


def test_a_file_over_the_limit_is_not_parsed() -> None:
    (line, message), *_ = said(b"#" * (MAX_BYTES + 1))
    assert (line, message) == (1, f"file has {MAX_BYTES + 1:,} bytes")


def test_aliases_that_multiply_are_counted_and_not_written_out() -> None:
    rows = ["a0: &a0 [" + ", ".join("x" * 10) + "]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    ((line, message),) = said("\n".join(rows))
    assert message == f"more than {MAX_NODES:,} values with its aliases written out"
    assert line < 8


def test_aliases_that_nest_are_bounded_in_depth() -> None:
    rows = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 30))]
    ((line, message),) = said("\n".join(rows))
    assert message.startswith("nested deeper than 20 levels through *a")
    assert line <= 20


def test_variables_are_filled_into_values_and_a_doubled_dollar_is_one() -> None:
    assert data("a: ${X}/logs\nb: $$X\nc: cost $5\n${X}: k\n", X="/data") == {
        "a": "/data/logs",
        "b": "$X",
        "c": "cost $5",
        "${X}": "k",
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${UNSET}", "variable UNSET is not set"),
        ("x${EMPTY}", "variable EMPTY is set, but empty"),
        ("${A-b}", "${A-b} is no variable"),
        ("${A", "${A is no variable"),
        ("${}", "${} is no variable"),
    ],
)
def test_a_variable_that_is_unset_empty_or_malformed_is_refused(value: str, message: str) -> None:
    _, found = parsed(f"a: 1\nb: {{c: '{value}'}}\n").data({"EMPTY": "", "A": "x"})
    assert [(loc, mistake.line, mistake.message) for loc, mistake in found] == [(("b", "c"), 2, message)]


def test_a_variable_brings_text_and_never_yaml() -> None:
    assert data("a: ${X}\n", X="[1, 2]\nb: 3") == {"a": "[1, 2]\nb: 3"}


def test_a_line_is_found_for_every_place_and_for_the_nearest_above_one_that_is_missing() -> None:
    document = parsed("a:\n  - {n: 1}\n  - n: 2\n    m: 3\n")
    assert document.line_of(("a", 1, "m")) == 4
    assert document.line_of(("a", 1, "gone")) == 3
    assert document.line_of(("a", 9)) == 1
    assert document.ref(("a", 1, "m")).text == "m: 3"


@given(st.text("ab:-[]{}&*!<>\n '\"#,?|%@~$", max_size=40))
def test_any_text_is_read_or_refused_with_a_line_and_a_hint(text: str) -> None:
    document = parsed(text)
    assert document.root is not None or document.mistakes
    lines = text.count("\n") + 1
    assert all(1 <= mistake.line <= lines + 1 and mistake.hint for mistake in document.mistakes)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    document = parsed(raw)
    assert document.root is not None or document.mistakes
