"""What a path says: every layout's own samples, the ``under`` template, what is never claimed, which class governs."""

from __future__ import annotations

from typing import Any

import pytest

from lifecycle.model import UNKNOWN_TEAM
from lifecycle.policy.builtin import BUILT_IN, DEFAULT_LAYOUTS
from lifecycle.policy.layouts import Claim, SourceLayouts
from lifecycle.policy.match import STANDARD_LABELS
from lifecycle.policy.reading import Sample
from tests.builders import a_policy, a_source, a_team


def layouts(*names: str, under: str = "", policy: Any = None, host: str = "gpu-1", **source: Any) -> SourceLayouts:
    rule = a_source(under=under, layouts=names or DEFAULT_LAYOUTS, **source)
    return SourceLayouts(policy or a_policy(), rule, host)


def claim(source: SourceLayouts, path: str | bytes) -> Claim | None:
    raw = path.encode() if isinstance(path, str) else path
    directory, _, name = raw.rpartition(b"/")
    return source.enter(directory).claim(name)


def words(found: Claim | None) -> str | None:
    if found is None:
        return None
    said = [(label, getattr(found.labels, label)) for label in STANDARD_LABELS]
    shown = [
        f"{label}={value}"
        for label, value in said
        if value not in (None, "") and (label, value) != ("team", UNKNOWN_TEAM)
    ]
    return " ".join(shown + [f"{label}={value}" for label, value in found.labels.extra])


def claimed(source: SourceLayouts, path: str | bytes) -> Claim:
    found = claim(source, path)
    assert found is not None, path
    return found


EVERY_SAMPLE = [
    pytest.param(name, sample, id=f"{name}:{sample.path}") for name in BUILT_IN for sample in BUILT_IN[name].samples
]


@pytest.mark.parametrize(("name", "sample"), EVERY_SAMPLE)
def test_a_layout_reads_its_samples_as_it_says(name: str, sample: Sample) -> None:
    assert words(claim(layouts(name), sample.path)) == sample.labels


@pytest.mark.parametrize(("name", "sample"), EVERY_SAMPLE)
def test_the_default_order_gives_each_layout_its_own_samples(name: str, sample: Sample) -> None:
    """A layout that is no default stands in front of them, as a policy would name it."""
    found = claim(layouts(*DEFAULT_LAYOUTS if name in DEFAULT_LAYOUTS else (name, *DEFAULT_LAYOUTS)), sample.path)
    if sample.labels is not None:
        assert found is not None
        assert (found.layout, words(found)) == (name, sample.labels)


@pytest.mark.parametrize("name", list(BUILT_IN))
def test_every_layout_says_what_it_takes_and_what_it_leaves(name: str) -> None:
    samples = BUILT_IN[name].samples
    assert any(sample.labels is None for sample in samples)
    assert any(sample.labels is not None for sample in samples)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("vision/train-1/rank_3.log", "team=vision job=train-1 rank=3"),
        ("vision/train-1/a/b/slurm-4711.out", "team=vision job=train-1 slurm_job=4711"),
        (
            "nlp/sft/none_abcd1234/attempt_0/3/stderr.log",
            "team=nlp job=sft rank=3 stream=stderr attempt=0 run=none_abcd1234 rank_scope=local",
        ),
        ("vision/notes.log", "team=vision"),  # directly above the job level
        ("vision/slurm-4711.out", "team=vision job=4711"),
        ("boot.log", ""),
    ],
)
def test_the_folders_of_under_are_team_and_job(path: str, expected: str) -> None:
    assert words(claim(layouts(under="{team}/{job}"), path)) == expected


def test_a_folder_that_does_not_fit_under_is_foreign() -> None:
    source = layouts(under="teams/{team}/run-{job}")
    assert words(claim(source, "teams/nlp/run-7/x.log")) == "team=nlp job=7"
    assert claim(source, "other/nlp/run-7/x.log") is None
    assert claim(source, "teams/nlp/x-7/x.log") is None


def test_own_patterns_are_tried_in_order_and_anchored() -> None:
    source = layouts("{node}/rank_{rank}.log", "**/{attempt}/w{rank}.{stream}", "{kind}-*.txt", under="{team}/{job}")
    assert words(claim(source, "v/j/gpu-7/rank_12.log")) == "team=v job=j node=gpu-7 rank=12"
    assert claim(source, "v/j/deeper/gpu-7/rank_12.log") is None
    assert words(claim(source, "v/j/a/b/r2/w5.err")) == "team=v job=j rank=5 stream=stderr attempt=r2"
    assert words(claim(source, "v/j/power-1-2.txt")) == "team=v job=j kind=power-1"
    assert claim(source, "v/j/gpu-7/rank_x.log") is None


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("rank_3.log", None),
        ("rank_3.log.1", b"rank_3.log"),
        ("rank_3.log.12.gz", b"rank_3.log"),
        ("rank_3.log.gz", b"rank_3.log"),
        ("rank_3.log-20260312", b"rank_3.log"),
        ("rank_3.log-2026031207.zst", b"rank_3.log"),
        ("rank_3.log-20260312-1773273600.xz", b"rank_3.log"),
        ("rank_3.log.2026-03-12", b"rank_3.log"),
        ("rank_3.log.2026-03-12_07-00-01.bz2", b"rank_3.log"),
        ("rank_3.log.20260312-101010", b"rank_3.log"),
        ("rank_3.1.log", b"rank_3.log"),
        ("rank_3-20260312.log.gz", b"rank_3.log"),
    ],
)
def test_a_rotation_has_the_labels_of_its_set(name: str, base: bytes | None) -> None:
    found = claimed(layouts("{node}/rank_{rank}.log"), f"gpu-1/{name}")
    assert (found.labels.node, found.labels.rank, found.rotation_base) == ("gpu-1", 3, base)


@pytest.mark.parametrize(
    "name",
    [
        "rank_3.log.0",  # start 0
        "rank_3.log-20260312",  # dateext
        "rank_3.log-2026031207",  # hourly
        "rank_3.log_20260312",
        "rank_3.log-202603120730.gz",
        "rank_3.log.20260312T073000.zst",
        "rank_3.log-2026-03-12.xz",
        "rank_3.1.log.gz",  # extension .log, or addextension
        "rank_3-2026031207.log",
        "rank_3.log.20260312-101010.gz",  # kubelet
        "rank_3.log.bz2",
    ],
)
def test_every_form_of_logrotate_and_kubelet_is_a_rotation_of_its_log(name: str) -> None:
    assert claimed(layouts("{node}/rank_{rank}.log"), f"gpu-1/{name}").rotation_base == b"rank_3.log"


@pytest.mark.parametrize("folder", ["old", "olddir", "archive"])
def test_a_rotation_in_an_olddir_is_read_as_beside_its_log(folder: str) -> None:
    source = layouts("{node}/rank_{rank}.log", "plain", under="{team}/{job}")
    found = claimed(source, f"v/j/gpu-1/{folder}/rank_3.log.2.gz")
    assert (words(found), found.rotation_base) == ("team=v job=j node=gpu-1 rank=3", b"rank_3.log")
    assert words(claim(source, f"v/j/gpu-1/{folder}/rank_3.log")) == "team=v job=j"  # no rotation: as in any folder
    assert words(claim(source, f"v/j/gpu-1/{folder}er/rank_3.log.2.gz")) == "team=v job=j"


def test_an_olddir_of_a_torchrun_rank_keeps_run_attempt_and_rank() -> None:
    found = claimed(layouts(), "none_dvk8klk2/attempt_0/3/old/stderr.log.1")
    assert words(found) == "job=none rank=3 stream=stderr attempt=0 run=none_dvk8klk2 rank_scope=local"


def test_a_job_called_old_is_no_olddir() -> None:
    found = claimed(layouts(under="{team}/{job}"), "v/old/rank_3.log.1")
    assert (found.labels.job, found.labels.rank) == ("old", 3)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("4711234.out", "job=4711234"),
        ("bert-4711234.err", "job=bert-4711234 stream=stderr"),
        ("4711234_7.out", "job=4711234 array=7"),
    ],
)
def test_lsf_reads_the_forms_that_slurm_has_too(name: str, labels: str) -> None:
    assert words(claim(layouts("lsf"), name)) == labels
    assert ("lsf_job", "4711234") in claimed(layouts("lsf", under="{job}"), f"sft/{name}").labels.extra


def test_the_node_comes_from_the_source_where_the_path_has_none() -> None:
    source = layouts("ray", "rank-files", labels={"node": "{host}"}, host="gpu-9")
    ray = claimed(source, "session_2026-03-12_10-10-10_123456_4711/logs/raylet.out")
    assert ray.labels.node == "gpu-9"
    assert claimed(source, "power/rank_3.txt").labels.node == "gpu-9"


@pytest.mark.parametrize(
    ("path", "class_name"),
    [
        ("mlruns/7/0a1b2c3d4e5f60718293a4b5c6d7e8f9/metrics/eval_loss", "training"),  # one run keeps together
        ("mlruns/7/0a1b2c3d4e5f60718293a4b5c6d7e8f9/metrics/error/rate", "training"),
        ("out/eval_results.json", "eval"),
        ("outputs/2026-03-12/10-10-10/eval_llama.log", "eval"),
        ("wandb/run-20260312_101010-eval_7/files/output.log", "training"),
    ],
)
def test_what_a_layout_leaves_of_a_path_decides_the_class(path: str, class_name: str) -> None:
    assert claimed(layouts("mlflow", *DEFAULT_LAYOUTS), path).class_name == class_name


@pytest.mark.parametrize(
    "name",
    [
        *(b"train.log.tmp", b"train.log.gz.tmp", b"train.log~", b".train.log.swp", b"train.log.part", b".nfs0001.log"),
        *(b"train.log.filepart", b"train.log.20261", b"train.log.gz.gz.pt", b"", b".", b".gz", b".1", b"1", b"~"),
    ],
)
def test_temporary_and_odd_names_are_not_claimed(name: bytes) -> None:
    assert layouts().enter(b"a").claim(name) is None


def test_nothing_is_claimed_in_hidden_folders_and_ours_is_not_entered() -> None:
    source = layouts()
    assert source.enter(b".git").claim(b"a.log") is None
    assert source.enter(b"a/.cache/b").claim(b"a.log") is None
    assert not source.enter(b"a/.cache").excluded
    assert source.enter(b".lifecycle").excluded
    assert source.enter(b".lifecycle/parked").excluded


def test_exclude_takes_folders_and_files_out() -> None:
    source = layouts(exclude=("checkpoints/", "/top/only/", "*.trace.log", "!keep.trace.log"))
    assert source.enter(b"a/checkpoints").excluded
    assert source.enter(b"a/checkpoints/step").excluded
    assert source.enter(b"top/only").excluded
    assert not source.enter(b"a/top/only").excluded
    assert not source.enter(b"").excluded
    assert claim(source, "a/x.trace.log") is None
    assert claim(source, "a/keep.trace.log") is not None


def test_a_name_that_is_not_utf8_is_claimed_and_its_label_is_reversible() -> None:
    found = claimed(layouts("{node}/{job}.log"), b"gpu\xff/\xe9\xa4 \n.log")
    assert (found.labels.node, found.labels.job) == (r"gpu\xff", r"\xe9\xa4 \x0a")


def test_labels_of_the_source_stand_where_the_path_says_nothing() -> None:
    source = layouts(labels={"node": "{host}", "cluster": "a1"}, host="gpu-9")
    assert words(claim(source, "rank_1.log")) == "node=gpu-9 rank=1 cluster=a1"


def test_an_alias_means_its_team() -> None:
    policy = a_policy(teams=(a_team("vision", aliases=("prj0421",)),))
    source = layouts(under="{team}/{job}", policy=policy)
    assert claimed(source, "prj0421/j/a.log").labels.team == "vision"


@pytest.mark.parametrize(
    ("path", "class_name", "pattern"),
    [
        ("vision/j1/error/a.log", "error", "error/"),
        ("vision/j1/error.log", "error", "error*.log"),
        ("vision/j1/error_rank_3.log.1.gz", "error", "error*.log"),
        ("vision/j1/none_abcd1234/attempt_0/0/error.json", "error", "error.json"),
        ("vision/j1/eval/rank_3.log", "eval", "eval/"),
        ("vision/j1/eval_3.out", "eval", "eval_*"),
        ("vision/j1/llama_eval.log.1", "eval", "*_eval.log"),
        ("vision/eval-7/train.log", "eval", "job:eval-*"),
        # look-alikes: the letters are there, the component is not
        ("vision/j1/d_error_rate.log", "training", ""),
        ("vision/j1/referrer/a.log", "training", ""),
        ("vision/j1/terror/a.log", "training", ""),
        ("vision/j1/my-error.log", "training", ""),
        ("vision/j1/retrieval/a.log", "training", ""),
        ("vision/j1/medieval_1.log", "training", ""),
        ("vision/j1/evaluation/a.log", "training", ""),
        # team and job names are no class
        ("eval/j1/a.log", "training", ""),
        ("error/j1/a.log", "training", ""),
        ("vision/error/a.log", "training", ""),
        ("vision/eval_x/a.log", "training", ""),
        ("vision/j1/a.err", "training", ""),  # stderr is a stream, not a class
    ],
)
def test_classes_go_by_whole_components_of_what_is_left(path: str, class_name: str, pattern: str) -> None:
    found = claimed(layouts(under="{team}/{job}"), path)
    assert found.class_name == class_name
    assert found.class_rule.text == (pattern or "all the rest")


def test_a_node_called_eval_is_no_eval() -> None:
    found = claimed(layouts("{node}/rank_{rank}.log", "eval_{job}.log"), "eval/rank_3.log")
    assert found.class_name == "training"


def test_a_job_read_out_of_a_file_name_is_cut_from_what_patterns_see() -> None:
    found = claimed(layouts("{job}.out"), "eval_final.out")
    assert (found.labels.job, found.class_name) == ("eval_final", "training")


def test_the_first_class_that_matches_wins_over_a_later_one() -> None:
    assert claimed(layouts(under="{team}/{job}"), "v/eval-1/error.log").class_name == "error"
