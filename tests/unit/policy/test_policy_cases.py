"""Tests of a policy: what holds passes, what does not is named with its line and the rule that decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.errors import PolicyError, UsageError
from lifecycle.plan.cases import CasesReport, find_cases, run_cases
from lifecycle.policy.load import load_policy
from lifecycle.policy.starter import policies_folder, starter_files


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    (tmp_path / "platform.yaml").write_text(
        "catalog: sqlite:////c/catalog.db\n"
        'sources: [{name: s, path: /srv/logs, under: "{team}/{job}", exclude: ["tmp/"]}]\n'
        "tiers: {warm: {path: /w}, cold: {path: /k}}\ndefaults: seed-1\n"
        'holds: [{job: "paper-*", reason: x, owner: y}]\n'
    )
    (tmp_path / "tests").mkdir()
    return tmp_path


def run(policies: Path, text: str) -> CasesReport:
    (policies / "tests/a.yaml").write_text(text)
    return run_cases(load_policy(policies, environ={}), find_cases(policies), host="h")


def failures(policies: Path, text: str) -> list[tuple[int, str, str, str]]:
    return [(it.line, it.what, it.expected, it.found) for it in run(policies, text).failures]


def test_the_examples_of_the_checkout_pass() -> None:
    folder = policies_folder()
    report = run_cases(load_policy(folder, environ={}), find_cases(folder), host="h")
    assert report.failures == [] and report.checks > 20


@pytest.mark.parametrize("under", ["{team}/{job}", "{team}", "x/{team}/{job}/{node}"])
@pytest.mark.parametrize("warm", [None, Path("/w")])
def test_the_starter_passes_its_own_test(tmp_path: Path, under: str, warm: Path | None) -> None:
    texts = starter_files(logs=Path("/srv/$logs"), warm=warm, cold=Path("/k"), catalog=Path("/c/c.db"), under=under)
    for name, text in texts:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    report = run_cases(load_policy(tmp_path, environ={}), find_cases(tmp_path), host="h")
    assert report.failures == [] and report.checks >= 7


def test_each_age_is_where_the_figures_say_to_the_hour(policies: Path) -> None:
    text = (
        "tests:\n  - path: /srv/logs/nlp/j/rank_3.log\n    class: training\n    labels: {team: nlp, rank: 3}\n"
        "    fate: {23h: hot, 24h: warm, 167h: warm, 7d: cold, 719h: cold, 30d: marked, 791h: marked, 33d: gone}\n"
    )
    report = run(policies, text)
    assert report.failures == [] and (report.tests, report.checks) == (1, 11)


def test_a_job_that_writes_on_keeps_its_logs(policies: Path) -> None:
    text = "tests: [{path: /srv/logs/nlp/j/rank_3.log, job_age: 1d, fate: {40d: cold, 90d: marked, 93d: gone}}]\n"
    assert failures(policies, text) == []


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("path: /srv/logs/nlp/j/rank_3.log, class: eval", ("class", "eval", "training")),
        ("path: /srv/logs/nlp/j/rank_3.log, labels: {rank: 4}", ("label rank", "4", "3")),
        ("path: /srv/logs/nlp/j/rank_3.log, labels: {node: a}", ("label node", "a", "none")),
        ("path: /srv/logs/nlp/j/rank_3.log, fate: {8d: warm}", ("fate at 8d", "warm", "cold")),
        ("path: /srv/logs/nlp/j/rank_3.log, layout: plain", ("layout", "plain", "rank-files")),
        ("path: /srv/logs/nlp/j/m.safetensors, class: error", ("class", "error", "foreign")),
        ("path: /srv/logs/nlp/j/m.safetensors, fate: hot", ("fate", "hot", "foreign")),
        ("path: /srv/logs/nlp/j/tmp/a.log, fate: foreign", ("fate", "foreign", "excluded")),
        ("path: /srv/logs/nlp/paper-1/rank_3.log, fate: {400d: gone}", ("fate at 400d", "gone", "held")),
        ("path: nlp/j/eval_1.log, source: s, class: training", ("class", "training", "eval")),
    ],
)
def test_what_is_not_as_expected_is_named(policies: Path, case: str, expected: tuple[str, str, str]) -> None:
    assert failures(policies, f"tests:\n  - {{{case}}}\n") == [(2, *expected)]


def test_a_failure_names_the_line_that_decided(policies: Path) -> None:
    (failure,) = run(policies, "tests:\n  - {path: /srv/logs/nlp/paper-1/a.log, fate: {400d: gone}}\n").failures
    assert failure.rule == "platform.yaml:5" and failure.path == "/srv/logs/nlp/paper-1/a.log"


def test_all_mistakes_of_all_files_are_named_at_once(policies: Path) -> None:
    (policies / "tests/b.yaml").write_text("tests:\n  - {path: /elsewhere/a.log, fate: {8x: cold}}\n")
    with pytest.raises(PolicyError) as caught:
        run(policies, "tests:\n  - {pth: /srv/logs/a, fate: lukewarm}\n  - {path: a, source: z}\n")
    said = "\n".join(caught.value.mistakes)
    for words in ("a.yaml:2: ", "pth", "'lukewarm' is no fate", "no source 'z'", "b.yaml:2: path /elsewhere/a.log"):
        assert words in said, words


@pytest.mark.parametrize("text", ["", "tests: []\n", "cases: []\n", "[]\n", "tests: {a: b}\n"])
def test_a_file_without_tests_is_a_mistake(policies: Path, text: str) -> None:
    with pytest.raises(PolicyError):
        run(policies, text)


def test_a_file_that_is_not_there_is_said(policies: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        run_cases(load_policy(policies, environ={}), [policies / "tests/none.yaml"], host="h")
