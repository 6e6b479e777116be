"""Layouts of launchers: torchrun, DeepSpeed, one file a rank (Paddle's workerlog.N included).

Where a name gives only a *local* rank, the rank is that number and the label ``rank_scope=local`` says so.
"""

from __future__ import annotations

import re
from typing import Final

from lifecycle.policy.plain import read_plain
from lifecycle.policy.reading import (
    LOCAL_RANK,
    TEXT_ENDINGS,
    FolderRead,
    Known,
    Layout,
    NameRead,
    NameReader,
    Parts,
    Sample,
    read_stream,
)

# -- torchrun --log-dir --------------------------------------------------------------------------------------------

_RUN_FOLDER: Final = re.compile(rb"(.+)_[a-z0-9_]{8}\Z", re.DOTALL)
_ATTEMPT: Final = re.compile(rb"attempt_(\d{1,9})\Z")
_RANK_NUMBER: Final = re.compile(rb"\d{1,6}\Z")
_TORCHRUN_NAMES: Final = {b"stdout.log": "stdout", b"stderr.log": "stderr", b"error.json": ""}


def _torchrun_name(name: bytes) -> NameRead | None:
    stream = _TORCHRUN_NAMES.get(name)
    return None if stream is None else NameRead(name, stream=stream)


def _enter_torchrun(parts: Parts, known: Known) -> FolderRead | None:
    if len(parts) < 2 or not _RANK_NUMBER.match(parts[-1]):
        return None
    attempt = _ATTEMPT.match(parts[-2])
    if attempt is None:
        return None
    run, left = parts[-3] if len(parts) > 2 else None, parts
    extra: tuple[tuple[str, bytes], ...] = LOCAL_RANK
    job = None
    match = _RUN_FOLDER.match(run) if run is not None else None
    if match is not None and run is not None:
        extra = (("run", run), *LOCAL_RANK)
        if "job" not in known:
            job, left = match[1], (*parts[:-3], *parts[-2:])
    return FolderRead(_torchrun_name, left, job=job, rank=int(parts[-1]), attempt=attempt[1], extra=extra)


TORCHRUN: Final = Layout(
    name="torchrun",
    says="torchrun --log-dir: RUN_random/attempt_N/LOCAL_RANK/{stdout.log,stderr.log,error.json}",
    enter=_enter_torchrun,
    extra_labels=("run", "rank_scope"),
    samples=(
        Sample(
            path="logs/none_dvk8klk2/attempt_0/3/stderr.log",
            labels="job=none rank=3 stream=stderr attempt=0 run=none_dvk8klk2 rank_scope=local",
        ),
        Sample(path="attempt_2/0/stdout.log", labels="rank=0 stream=stdout attempt=2 rank_scope=local"),
        Sample(
            path="7041_abcd_efg/attempt_1/7/error.json",
            labels="job=7041 rank=7 attempt=1 run=7041_abcd_efg rank_scope=local",
        ),
        Sample(path="none_dvk8klk2/attempt_0/3/model.pt", labels=None),
        Sample(path="none_dvk8klk2/attempt_0/stdout.log", labels=None),
    ),
)


# -- DeepSpeed --enable_each_rank_log ------------------------------------------------------------------------------

_DEEPSPEED: Final = re.compile(rb"(\d{14})_rank(\d{1,9})\.log\Z")


def _deepspeed_name(name: bytes) -> NameRead | None:
    match = _DEEPSPEED.match(name) if b"_rank" in name else None
    return None if match is None else NameRead(name, rank=int(match[2]), attempt=match[1])


def _enter_deepspeed(parts: Parts, known: Known) -> FolderRead | None:
    return FolderRead(_deepspeed_name, parts)


DEEPSPEED: Final = Layout(
    name="deepspeed",
    says="deepspeed --enable_each_rank_log: YYYYmmddHHMMSS_rankN.log",
    enter=_enter_deepspeed,
    samples=(
        Sample(path="20260312101010_rank17.log", labels="rank=17 attempt=20260312101010"),
        Sample(path="20260312101010_rank17.log.1.gz", labels="rank=17 attempt=20260312101010"),
        Sample(path="zero_pp_rank_0_mp_rank_00_optim_states.pt", labels=None),
    ),
)


# -- one file a rank -----------------------------------------------------------------------------------------------

_RANK: Final = re.compile(
    rb"(?:\A|[._-])(?P<local>local[._-]?)?(?:global[._-]?)?rank[._-]?(?P<rank>\d{1,9})(?=[._-])", re.IGNORECASE
)
_RANK_SUFFIX: Final = re.compile(rb".+\.log-rank(\d{1,9})(?:-[^/]*)?\Z", re.DOTALL)
_WORKERLOG: Final = re.compile(rb"workerlog\.(\d{1,9})\Z")
_NODE_FILE: Final = re.compile(rb"(node[._-]?\d{1,9})\.(?:log|txt|out|err)\Z")
_RANK_FOLDER: Final = re.compile(rb"(local[._-]?)?rank[._-]?(\d{1,9})\Z")
_MPI_NAMES: Final = {b"stdout": "stdout", b"stderr": "stderr"}


def _rank_name(name: bytes) -> NameRead | None:
    match = _WORKERLOG.match(name)
    if match is not None:
        return NameRead(name, rank=int(match[1]), extra=LOCAL_RANK)
    if not name.endswith(TEXT_ENDINGS):
        match = _RANK_SUFFIX.match(name) if b".log-rank" in name else None
        return None if match is None else NameRead(name, rank=int(match[1]))
    match = _RANK.search(name)
    if match is None:
        return None
    extra = () if match["local"] is None else LOCAL_RANK
    return NameRead(name, rank=int(match["rank"]), stream=read_stream(name), extra=extra)


def _rank_reader(known: Known) -> NameReader:
    if "node" in known:
        return _rank_name

    def read(name: bytes) -> NameRead | None:
        match = _NODE_FILE.match(name)
        return NameRead(name[match.end(1) :], node=match[1]) if match is not None else _rank_name(name)

    return read


def _rank_folder_name(name: bytes) -> NameRead | None:
    stream = _MPI_NAMES.get(name)
    if stream is not None:
        return NameRead(name, stream=stream)
    return read_plain(name)


def _enter_rank_files(parts: Parts, known: Known) -> FolderRead | None:
    match = _RANK_FOLDER.match(parts[-1]) if parts else None
    if match is None:
        return FolderRead(_rank_reader(known), parts)
    extra = () if match[1] is None else LOCAL_RANK
    return FolderRead(_rank_folder_name, parts, rank=int(match[2]), extra=extra)


RANK_FILES: Final = Layout(
    name="rank-files",
    says="one file a rank: rank_3.log, train-rank3.err, local_rank_3.out, workerlog.3, rank.3/stdout, node_7.txt",
    enter=_enter_rank_files,
    extra_labels=("rank_scope",),
    samples=(
        Sample(path="rank_3.log", labels="rank=3"),
        Sample(path="rank0017.log.2", labels="rank=17"),
        Sample(path="gpu-1/train-rank3.err", labels="rank=3 stream=stderr"),
        Sample(path="log_rank_12_stdout.txt", labels="rank=12 stream=stdout"),
        Sample(path="local_rank_3.out-20260312.xz", labels="rank=3 rank_scope=local"),
        Sample(path="workerlog.0", labels="rank=0 rank_scope=local"),
        Sample(path="workerlog.0.1", labels="rank=0 rank_scope=local"),
        Sample(path="resnet50v1.5.log-rank0-5thRun", labels="rank=0"),
        Sample(path="1/rank.0/stdout", labels="rank=0 stream=stdout"),
        Sample(path="rank_5/train.log.1", labels="rank=5"),
        Sample(path="power/node_17.txt", labels="node=node_17"),
        Sample(path="crankshaft3.log", labels=None),
        Sample(path="rank_3.pt", labels=None),
        Sample(path="envlog.0", labels=None),
    ),
)
