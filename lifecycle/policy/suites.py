"""Layouts of task suites: Kaldi's stages and MLPerf's result trees."""

from __future__ import annotations

import re
from typing import Final

from lifecycle.policy.reading import FolderRead, Known, Layout, NameRead, NameReader, Parts, Sample

# -- Kaldi ---------------------------------------------------------------------------------------------------------

_TASK: Final = re.compile(rb".+?(?:\.(\d{1,6}))?\.(\d{1,6})\.log\Z", re.DOTALL)


def _kaldi_name(name: bytes) -> NameRead | None:
    match = _TASK.match(name) if name.endswith(b".log") else None
    if match is None:
        return NameRead(name) if name.endswith(b".log") else None
    iteration = () if match[1] is None else (("iteration", match[1]),)
    return NameRead(name, extra=(*iteration, ("task", match[2])))


def _enter_kaldi(parts: Parts, known: Known) -> FolderRead | None:
    if len(parts) < 3 or parts[-1] != b"log" or b"exp" not in parts[:-2]:
        return None
    stage = b"_".join(parts[len(parts) - parts[::-1].index(b"exp") : -1])
    return FolderRead(_kaldi_name, parts, job=None if "job" in known else stage, extra=(("stage", stage),))


KALDI: Final = Layout(
    name="kaldi",
    says="Kaldi: exp/STAGE/log/TASK.ITERATION.JOB.log, one file a task",
    enter=_enter_kaldi,
    extra_labels=("stage", "iteration", "task"),
    samples=(
        Sample(path="exp/tri1/log/align.12.7.log", labels="job=tri1 stage=tri1 iteration=12 task=7"),
        Sample(path="s5/exp/mono/log/acc.1.10.log.gz", labels="job=mono stage=mono iteration=1 task=10"),
        Sample(
            path="exp/make_mfcc/train/log/make_mfcc.3.log", labels="job=make_mfcc_train stage=make_mfcc_train task=3"
        ),
        Sample(path="exp/tri1/log/compile_questions.log", labels="job=tri1 stage=tri1"),
        Sample(path="exp/tri1/final.mdl", labels=None),
        Sample(path="exp/tri1/log/ali.7.gz", labels=None),
        Sample(path="data/log/align.12.7.txt", labels=None),
    ),
)


# -- MLPerf --------------------------------------------------------------------------------------------------------

# result_JOB-STAMP_N.txt, result_N.txt | STAMP_N.log, STAMP_N_nccl.log | compliance_STAMP.out
_RESULT: Final = re.compile(rb"result_(?:(?P<job>\d{1,10})-\w+?_)?(?P<run>\d{1,4})\.(?:txt|out|log)\Z")
_STAMPED: Final = re.compile(rb"\d{10,23}_(?P<run>\d{1,4})(?:_nccl)?\.log\Z")
_COMPLIANCE: Final = re.compile(rb"compliance_\w+\.out\Z")
_POWER: Final = re.compile(rb"(?:(?P<node>node_\d{1,6})|sw_\d{1,6})\.txt\Z")
_POWER_RUN: Final = re.compile(rb"result_(?:\w+-\w+_)?(\d{1,4})\Z")
_FIRST: Final = frozenset(b"rc0123456789")  # of any of these names


def _mlperf_reader(known: Known) -> NameReader:
    is_job_known = "job" in known

    def read(name: bytes) -> NameRead | None:
        if name[0] not in _FIRST:
            return None
        match = _RESULT.match(name)
        if match is not None:
            number = match["job"]
            extra = (("slurm_job", number),) if is_job_known and number is not None else ()
            return NameRead(name, job=None if is_job_known else number, attempt=match["run"], extra=extra)
        match = _STAMPED.match(name)
        if match is not None:
            return NameRead(name, attempt=match["run"])
        return NameRead(name) if _COMPLIANCE.match(name) else None

    return read


def _power_reader(known: Known) -> NameReader:
    def read(name: bytes) -> NameRead | None:
        match = _POWER.match(name)
        if match is None:
            return None
        node = match["node"] if "node" not in known else None
        return NameRead(name if node is None else name[match.end("node") :], node=node)

    return read


def _enter_mlperf(parts: Parts, known: Known) -> FolderRead | None:
    if len(parts) > 1 and parts[-2] == b"power" and (match := _POWER_RUN.match(parts[-1])):
        return FolderRead(_power_reader(known), parts[:-1], attempt=match[1])
    extra: tuple[tuple[str, bytes], ...] = ()
    if len(parts) > 2 and parts[-3] == b"results":
        extra = (("system", parts[-2]), ("benchmark", parts[-1]))
    return FolderRead(_mlperf_reader(known), parts, extra=extra)


MLPERF: Final = Layout(
    name="mlperf",
    says="MLPerf: results/SYSTEM/BENCHMARK/result_N.txt, result_JOB-STAMP_N.txt, STAMP_N.log, power/…/node_7.txt",
    enter=_enter_mlperf,
    extra_labels=("system", "benchmark", "slurm_job"),
    samples=(
        Sample(path="results/dgx-8/bert/result_4.txt", labels="attempt=4 system=dgx-8 benchmark=bert"),
        Sample(path="bert/result_81234-230928041338123456789_3.txt", labels="job=81234 attempt=3"),
        Sample(path="bert/230928041338123456789_3.log", labels="attempt=3"),
        Sample(path="bert/230928041338123456789_3_nccl.log", labels="attempt=3"),
        Sample(path="bert/compliance_230928041338123456789.out", labels=""),
        Sample(path="bert/power/result_3/node_17.txt", labels="node=node_17 attempt=3"),
        Sample(path="bert/power/result_3/sw_2.txt", labels="attempt=3"),
        Sample(path="bert/result_summary.json", labels=None),
        Sample(path="bert/config_DGX.sh", labels=None),
    ),
)
