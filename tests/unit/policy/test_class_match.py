"""Class patterns and templates: the semantics of git, every byte a name may hold, and no pattern that takes long."""

from __future__ import annotations

import fnmatch

import pathspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from lifecycle.model import Labels
from lifecycle.names import parse_name
from lifecycle.policy.layouts import SourceLayouts
from lifecycle.policy.match import ClassMatcher, PathPatterns, check_path_pattern, check_pattern, split_label_glob
from lifecycle.policy.rotation import rotation_bases
from lifecycle.policy.rules import MatchRule
from lifecycle.policy.template import parse_template
from tests.builders import a_policy, a_rule_ref, a_source

HOSTILE = "a*" * 60 + "b"


def matcher(*patterns: str) -> ClassMatcher:
    first = MatchRule(class_name="first", patterns=patterns, at=a_rule_ref(line=3))
    rest = MatchRule(class_name="rest", patterns=(), at=a_rule_ref(line=4))
    return ClassMatcher((first, rest))


def chosen(path: bytes, *patterns: str, labels: Labels | None = None) -> str:
    return matcher(*patterns).choose(path, labels or Labels()).class_name


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("error/", b"error/a.log", True),
        ("error/", b"x/error/y/a.log", True),
        ("error/", b"error", False),  # a file, not a folder
        ("error*.log", b"x/error_1.log", True),
        ("error*.log", b"error.d/x.log", False),
        ("/top.log", b"top.log", True),
        ("/top.log", b"x/top.log", False),
        ("a/b.log", b"a/b.log", True),
        ("a/b.log", b"x/a/b.log", False),
        ("**/b/*.log", b"x/y/b/c.log", True),
        ("a/**/z.log", b"a/z.log", True),
        ("a/**/z.log", b"a/b/c/z.log", True),
        ("rank_?.log", b"rank_3.log", True),
        ("rank_?.log", b"rank_33.log", False),
        ("rank_[0-4].log", b"rank_3.log", True),
        ("rank_[!0-4].log", b"rank_3.log", False),
        (r"\!x", b"!x", True),
        (r"\#x", b"#x", True),
        ("训练*.log", "训练日志.log".encode(), True),
        ("à", "à".encode(), True),  # its last byte is one that text tools take for a space
        ("a*", b"a\nb\xff", True),
    ],
)
def test_patterns_mean_what_git_means(pattern: str, path: bytes, fits: bool) -> None:
    assert (chosen(path, pattern) == "first") is fits


def test_within_one_list_the_last_match_decides_and_can_take_back() -> None:
    assert chosen(b"noise.err", "*.err", "!noise.err") == "rest"
    assert chosen(b"other.err", "*.err", "!noise.err") == "first"
    assert chosen(b"noise.err", "!noise.err", "*.err") == "first"


def test_a_label_glob_looks_at_the_whole_value_of_one_label() -> None:
    labels = Labels(job="eval-7", stream="stderr", rank=12, extra=(("run", "r/1"),))
    assert chosen(b"a.log", "job:eval-*", labels=labels) == "first"
    assert chosen(b"a.log", "job:eval", labels=labels) == "rest"
    assert chosen(b"a.log", "stream:std[eo]rr", labels=labels) == "first"
    assert chosen(b"a.log", "rank:1?", labels=labels) == "first"
    assert chosen(b"a.log", "run:r/*", labels=labels) == "first"
    assert chosen(b"a.log", "attempt:*", labels=labels) == "rest"
    assert chosen(b"eval-7", "job:eval-8", labels=labels) == "rest"


def test_a_colon_in_a_name_is_no_label() -> None:
    assert split_label_glob("download-Thu Jun 12 10:30*") is None
    assert split_label_glob("job:eval-*") == ("job", "eval-*")
    assert chosen(b"10:30.log", "10:*") == "first"


@pytest.mark.parametrize("pattern", ["", " ", "# comment", "/", "[", "a[", "job:!x", "x" * 501, " a", "[z-a]"])
def test_a_pattern_that_can_match_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        check_pattern(pattern)


def test_the_choice_names_the_pattern_and_its_line() -> None:
    rule = MatchRule(
        class_name="x", patterns=("a", "b"), at=a_rule_ref(line=3), pattern_at=(a_rule_ref(line=4), a_rule_ref(line=5))
    )
    rest = MatchRule(class_name="rest", patterns=(), at=a_rule_ref(line=9))
    found = ClassMatcher((rule, rest)).choose(b"b", Labels())
    assert (found.pattern, found.rule.line, found.rule.text) == ("b", 5, "b")
    assert ClassMatcher((rule, rest)).choose(b"c", Labels()).rule.line == 9


# A backtracking engine needs longer than the universe has for these; the test ends because ours does not backtrack.
def test_hostile_patterns_run_in_linear_time() -> None:
    name = b"a" * 255
    assert chosen(name, HOSTILE) == "rest"
    assert chosen(name + b"b", HOSTILE) == "first"
    assert chosen(b"x", "job:" + HOSTILE, labels=Labels(job="a" * 255)) == "rest"
    assert not PathPatterns([HOSTILE]).matches(name)
    labels = "-".join(f"{{l{i}}}" for i in range(40))
    assert parse_template(f"{labels}x").components[0].read(b"-" * 255) is None


def test_many_hostile_patterns_do_not_hide_a_plain_one() -> None:
    patterns = [f"{'a*' * 40}b{number}" for number in range(500)]
    many = PathPatterns([*patterns, "plain.log"])
    assert many.matches(b"x/plain.log")
    assert many.matches(b"a" * 60 + b"b499")
    assert not many.matches(b"a" * 255)


NAME = st.binary(min_size=1, max_size=30).filter(lambda raw: b"/" not in raw and b"\0" not in raw)
WORD = st.text("ab*?.", min_size=1, max_size=6)


@given(st.lists(st.builds("/".join, st.lists(WORD, min_size=1, max_size=3)), min_size=1, max_size=4), st.data())
def test_a_set_agrees_with_a_reference_matcher(patterns: list[str], data: st.DataObject) -> None:
    for pattern in patterns:
        check_path_pattern(pattern)
    path = data.draw(st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=3).map("/".join))
    reference = pathspec.PathSpec.from_lines(GitIgnoreSpecPattern, patterns, backend="simple")
    assert PathPatterns(patterns).matches(path.encode()) == reference.match_file(path)


@given(st.text("ab*?-", min_size=1, max_size=8), st.text("ab-", max_size=12))
def test_a_label_glob_agrees_with_fnmatch(glob: str, value: str) -> None:
    fits = chosen(b"x", f"job:{glob}", labels=Labels(job=value)) == "first"
    # An empty value is a label that is not there, which no glob matches.
    assert fits == (bool(value) and fnmatch.fnmatchcase(value, glob))


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("r_{rank}.log", b"r_12.log", {"rank": b"12"}),
        ("r_{rank}.log", b"r_.log", None),
        ("r_{rank}.log", b"r_1x.log", None),
        ("r_{rank}.log", b"r_1234567890.log", None),
        ("r_{rank}.log", "r_\u0663.log".encode(), None),  # a digit, but not one of ours
        ("ab{node}bc", b"abc", None),  # prefix and suffix may not overlap
        ("ab{node}bc", b"abbc", None),
        ("ab{node}bc", b"abxbc", {"node": b"x"}),
        ("{stream}.log", b"err.log", {"stream": b"err"}),
        ("{stream}.log", b"error.log", None),
        ("{job}_{attempt}.log", b"a_b_1.log", {"job": b"a_b", "attempt": b"1"}),
        ("{rank}", b"7", {"rank": b"7"}),
        ("w?{rank}-*", b"wx7-abc", {"rank": b"7"}),
        ("*.log", b".log", {}),
    ],
)
def test_a_component_reads_its_labels(text: str, name: bytes, values: dict[str, bytes] | None) -> None:
    read = parse_template(text).components[0].read(name)
    assert (None if read is None else dict(read.values)) == values


@given(NAME, NAME, st.integers(0, 10**9 - 1))
def test_what_a_template_is_filled_with_it_reads_back(team: bytes, job: bytes, rank: int) -> None:
    template = parse_template("{team}/{job}/r_{rank}.log")
    parts = [team, job, b"r_%d.log" % rank]
    values: dict[str, bytes] = {}
    for component, part in zip(template.components, parts, strict=True):
        read = component.read(part)
        assert read is not None
        values.update(read.values)
    assert values == {"team": team, "job": job, "rank": b"%d" % rank}


@pytest.mark.parametrize(
    "text", ["", "a//b", "/a", "a/", "../x", "{a}{b}", "{a}*", "{A}", "{}", "{a", "a}", "a/**/b", "{a}/{a}", "x" * 501]
)
def test_a_template_that_is_ambiguous_or_malformed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_template(text)


SOURCES = [
    SourceLayouts(a_policy(), a_source(), "h"),
    SourceLayouts(a_policy(), a_source(under="", layouts=("**/{node}/{stream}-{rank}.log", "plain")), "h"),
]


@given(st.sampled_from(SOURCES), st.lists(NAME, max_size=4), NAME)
def test_any_bytes_are_claimed_or_foreign_and_never_fail(
    source: SourceLayouts, parts: list[bytes], name: bytes
) -> None:
    claim = source.enter(b"/".join(parts)).claim(name)
    again = source.enter(b"/".join(parts)).claim(name)
    assert claim == again
    if claim is not None:
        assert claim.class_name in ("error", "eval", "training")
        assert not claim.labels.job or b"/" not in parse_name(claim.labels.job)
        claim.labels.job.encode()  # valid text


@given(NAME, st.sampled_from([b".1", b".12.gz", b"-20260312", b".2026-03-12.zst", b".20260312-101010", b".bz2"]))
def test_a_rotation_ending_leads_back_to_the_name_it_was_put_on(name: bytes, ending: bytes) -> None:
    base = name + b".log"
    assert base in rotation_bases(base + ending)


@given(NAME)
def test_bases_are_shorter_names_and_never_empty(name: bytes) -> None:
    assert all(0 < len(base) < len(name) for base in rotation_bases(name))
