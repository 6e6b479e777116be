"""The layouts that have a name: how launchers and clusters name the logs they write. One table, ``BUILT_IN``.

A layout is a function from a folder (its components below the ``under`` part, and the labels already known) to a
reader of file names, or None when it claims nothing there. Each entry carries samples; they are its tests and its
documentation. Where a name gives only a *local* rank, the rank is that number and the label ``rank_scope=local``
says so. Sources of the shapes: the launchers' own code and manuals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from lifecycle.policy.template import STREAMS

Parts: TypeAlias = tuple[bytes, ...]
Known: TypeAlias = Collection[str]


class NameRead(NamedTuple):
    """What a file name says. Raw bytes for what came out of the name; ``left`` is the name for class patterns."""

    left: bytes
    job: bytes | None = None
    node: bytes | None = None
    rank: int | None = None
    stream: str = ""
    attempt: bytes | None = None
    extra: tuple[tuple[str, bytes], ...] = ()
    team: bytes | None = None


NameReader: TypeAlias = Callable[[bytes], NameRead | None]


class FolderRead(NamedTuple):
    """What a folder says to a layout that claims there, and how the names in it are read."""

    read_name: NameReader
    left: Parts
    team: bytes | None = None
    job: bytes | None = None
    node: bytes | None = None
    rank: int | None = None
    attempt: bytes | None = None
    extra: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A path below the ``under`` part, and the labels that it gives as ``label=value`` words; '' means not claimed."""

    path: str
    labels: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    name: str
    says: str  # one line for help and documentation
    enter: Callable[[Parts, Known], FolderRead | None]
    samples: tuple[Sample, ...]
    extra_labels: tuple[str, ...] = ()


_TEXT: Final = (b".log", b".out", b".err", b".txt", b".jsonl")
_STD: Final = re.compile(rb"(?<![A-Za-z])std(out|err)(?![A-Za-z])")
_LOCAL: Final = (("rank_scope", b"local"),)


def _stream(name: bytes) -> str:
    if b"std" in name:
        match = _STD.search(name)
        if match is not None:
            return STREAMS[match[1]]
    return "stderr" if name.endswith(b".err") else ""


# -- plain ---------------------------------------------------------------------------------------------------------

# Text files that lie beside logs and that a job or a person needs: taking one away breaks something.
NOT_LOGS: Final = frozenset(
    word + b".txt"
    for word in (
        b"merges vocab vocabs bpe.codes tokens requirements constraints readme license licence notice "
        b"cmakelists robots top_level entry_points sources dependency_links classes labels hostfile hosts "
        b"manifest"
    ).split()
)
_KEPT_FOLDER: Final = re.compile(
    rb"(?:checkpoint-\d+|offline-run-\d{8}_\d{6}-.*|.*\.(?:egg|dist)-info|site-packages)\Z"
)


def _plain_name(name: bytes) -> NameRead | None:
    if not name.endswith(_TEXT) or (name.endswith(b".txt") and name.lower() in NOT_LOGS):
        return None
    return NameRead(name, stream=_stream(name))


def _enter_plain(parts: Parts, known: Known) -> FolderRead | None:
    if any(_KEPT_FOLDER.match(part) for part in parts):
        return None
    return FolderRead(_plain_name, parts)


# -- torchrun --log-dir --------------------------------------------------------------------------------------------

_RUN_FOLDER: Final = re.compile(rb"(.+)_[a-z0-9_]{8}\Z", re.DOTALL)
_ATTEMPT: Final = re.compile(rb"attempt_(\d{1,9})\Z")
_LOCAL_RANK: Final = re.compile(rb"\d{1,6}\Z")
_TORCHRUN_NAMES: Final = {b"stdout.log": "stdout", b"stderr.log": "stderr", b"error.json": ""}


def _torchrun_name(name: bytes) -> NameRead | None:
    stream = _TORCHRUN_NAMES.get(name)
    return None if stream is None else NameRead(name, stream=stream)


def _enter_torchrun(parts: Parts, known: Known) -> FolderRead | None:
    if len(parts) < 2 or not _LOCAL_RANK.match(parts[-1]):
        return None
    attempt = _ATTEMPT.match(parts[-2])
    if attempt is None:
        return None
    run, left = parts[-3] if len(parts) > 2 else None, parts
    extra: tuple[tuple[str, bytes], ...] = _LOCAL
    job = None
    match = _RUN_FOLDER.match(run) if run is not None else None
    if match is not None and run is not None:
        extra = (("run", run), *_LOCAL)
        if "job" not in known:
            job, left = match[1], (*parts[:-3], *parts[-2:])
    return FolderRead(_torchrun_name, left, job=job, rank=int(parts[-1]), attempt=attempt[1], extra=extra)


# -- slurm ---------------------------------------------------------------------------------------------------------

# slurm-%j, %x-%j, %x_%j, %j, %A_%a, %j.%s, with a host name behind
_SLURM: Final = re.compile(
    rb"(?P<job>(?:(?P<name>.+?)[-_.])??(?P<id>\d{1,10}))(?:_(?P<array>\d{1,7}))?"
    rb"(?:\.(?P<step>\d{1,5}|batch|extern|interactive))?(?:[-_.](?P<node>[A-Za-z][A-Za-z0-9-]*\d))?\Z",
    re.DOTALL,
)
_SLURM_EXTENSIONS: Final = (b".out", b".err")


def _slurm_reader(known: Known) -> NameReader:
    is_job_known, is_node_known = "job" in known, "node" in known

    def read(name: bytes) -> NameRead | None:
        if not name.endswith(_SLURM_EXTENSIONS):
            return None
        match = _SLURM.match(name[:-4])
        if match is None:
            return None
        label, number, array, step, node = match.group("name", "id", "array", "step", "node")
        if label != b"slurm" and len(number) < 3:
            return None  # exp-1.out: a number, but not a job's
        extra: tuple[tuple[str, bytes], ...] = ()
        if array is not None:
            extra = (("array", array),)
        if step is not None:
            extra = (*extra, ("step", step))
        left = name
        if node is not None and not is_node_known:
            left = left[: match.start("node")] + left[match.end("node") :]
        job = None
        if is_job_known:
            extra = (("slurm_job", number), *extra)
        else:
            job = number if label == b"slurm" else match["job"]
            left = left[match.end("job") :]
        stream = "stderr" if name.endswith(b".err") else ""  # .out has both unless --error was given
        return NameRead(left, job=job, node=None if is_node_known else node, stream=stream, extra=extra)

    return read


def _enter_slurm(parts: Parts, known: Known) -> FolderRead | None:
    return FolderRead(_slurm_reader(known), parts)


# -- DeepSpeed --enable_each_rank_log ------------------------------------------------------------------------------

_DEEPSPEED: Final = re.compile(rb"(\d{14})_rank(\d{1,9})\.log\Z")


def _deepspeed_name(name: bytes) -> NameRead | None:
    match = _DEEPSPEED.match(name) if b"_rank" in name else None
    return None if match is None else NameRead(name, rank=int(match[2]), attempt=match[1])


def _enter_deepspeed(parts: Parts, known: Known) -> FolderRead | None:
    return FolderRead(_deepspeed_name, parts)


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
        return NameRead(name, rank=int(match[1]), extra=_LOCAL)
    if not name.endswith(_TEXT):
        match = _RANK_SUFFIX.match(name) if b".log-rank" in name else None
        return None if match is None else NameRead(name, rank=int(match[1]))
    match = _RANK.search(name)
    if match is None:
        return None
    extra = () if match["local"] is None else _LOCAL
    return NameRead(name, rank=int(match["rank"]), stream=_stream(name), extra=extra)


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
    return _plain_name(name)


def _enter_rank_files(parts: Parts, known: Known) -> FolderRead | None:
    match = _RANK_FOLDER.match(parts[-1]) if parts else None
    if match is None:
        return FolderRead(_rank_reader(known), parts)
    extra = () if match[1] is None else _LOCAL
    return FolderRead(_rank_folder_name, parts, rank=int(match[2]), extra=extra)


# -- Kubernetes /var/log/pods ---------------------------------------------------------------------------------------

_POD: Final = re.compile(
    rb"([a-z0-9][a-z0-9-]{0,62})_([a-z0-9][a-z0-9.-]{0,252})_"
    rb"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})\Z"
)
_RESTART: Final = re.compile(rb"(\d{1,9})\.log\Z")
_REPLICA: Final = re.compile(rb"(.+)-(master|worker|launcher|ps|chief|evaluator|server|scheduler)(?:-(\d{1,6}))?\Z")
# Kubernetes makes random endings without vowels, so that they are no words: -x7k2p, and -5d4f8c9b7-x7k2p.
_RANDOM: Final = re.compile(rb"(.+?)(?:-[0-9bcdf]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\Z")


def _pod_job(pod: bytes) -> tuple[bytes, tuple[tuple[str, bytes], ...]]:
    """The job a pod belongs to, and its replica: ``bert-worker-3`` is worker 3 of ``bert``."""
    base = match[1] if (match := _RANDOM.match(pod)) is not None else pod
    replica = _REPLICA.match(base)
    if replica is None:
        return base, ()
    number = b"" if replica[3] is None else b"-" + replica[3]
    return replica[1], (("replica", replica[2] + number),)


def _restart_name(name: bytes) -> NameRead | None:
    match = _RESTART.match(name)
    return None if match is None else NameRead(name, attempt=match[1])


def _enter_kubernetes(parts: Parts, known: Known) -> FolderRead | None:
    pod = _POD.match(parts[-2]) if len(parts) > 1 else None
    if pod is None:
        return None
    job, replica = _pod_job(pod[2])
    return FolderRead(
        _restart_name,
        (*parts[:-2], parts[-1]),
        team=None if "team" in known else pod[1],
        job=None if "job" in known else job,
        extra=(("pod", pod[2]), ("container", parts[-1]), *replica),
    )


_UID: Final = "0a1b2c3d-1111-2222-3333-444455556666"
_LAYOUTS: Final = (
    Layout(
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
    ),
    Layout(
        name="kubernetes",
        says="/var/log/pods: NAMESPACE_POD_UID/CONTAINER/RESTARTS.log, rotated by kubelet",
        enter=_enter_kubernetes,
        extra_labels=("pod", "container", "replica"),
        samples=(
            Sample(
                path=f"vision_bert-worker-3_{_UID}/pytorch/0.log",
                labels="team=vision job=bert attempt=0 pod=bert-worker-3 container=pytorch replica=worker-3",
            ),
            Sample(
                path=f"nlp_sft-7-x7k2p_{_UID}/main/2.log.20260312-101010.gz",
                labels="team=nlp job=sft-7 attempt=2 pod=sft-7-x7k2p container=main",
            ),
            Sample(
                path=f"pods/nlp_serve-5d4f8c9b7-x7k2p_{_UID}/app/0.log.20260312-101010",
                labels="team=nlp job=serve attempt=0 pod=serve-5d4f8c9b7-x7k2p container=app",
            ),
            Sample(path=f"vision_bert-worker-3_{_UID}/pytorch/0.log.20260312-101010.gz.tmp", labels=None),
            Sample(path="vision/pytorch/0.log", labels=None),
        ),
    ),
    Layout(
        name="deepspeed",
        says="deepspeed --enable_each_rank_log: YYYYmmddHHMMSS_rankN.log",
        enter=_enter_deepspeed,
        samples=(
            Sample(path="20260312101010_rank17.log", labels="rank=17 attempt=20260312101010"),
            Sample(path="20260312101010_rank17.log.1.gz", labels="rank=17 attempt=20260312101010"),
            Sample(path="zero_pp_rank_0_mp_rank_00_optim_states.pt", labels=None),
        ),
    ),
    Layout(
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
    ),
    Layout(
        name="slurm",
        says="slurm --output and --error: slurm-%j.out, %x-%j.err, %A_%a.out, %j.%s.out, %j-%N.out",
        enter=_enter_slurm,
        extra_labels=("slurm_job", "array", "step"),
        samples=(
            Sample(path="slurm-4711.out", labels="job=4711"),
            Sample(path="grid_logs/eval-llama-4711.err", labels="job=eval-llama-4711 stream=stderr"),
            Sample(path="slurm-4711_12.out.1.gz", labels="job=4711 array=12"),
            Sample(path="4711.2.out", labels="job=4711 step=2"),
            Sample(path="slurm-4711-gpu07.out", labels="job=4711 node=gpu07"),
            Sample(path="exp-1.out", labels=None),
            Sample(path="a.out", labels=None),
            Sample(path="slurm-4711.pt", labels=None),
        ),
    ),
    Layout(
        name="plain",
        says="any *.log, *.out, *.err, *.txt or *.jsonl with text inside, and its rotations",
        enter=_enter_plain,
        samples=(
            Sample(path="train.log", labels=""),
            Sample(path="a/b/train.log.3", labels=""),
            Sample(path="train.log-20260312.bz2", labels=""),
            Sample(path="console.log.2025-06-13", labels=""),
            Sample(path="app.1.log.zst", labels=""),
            Sample(path="run.stderr.log", labels="stream=stderr"),
            Sample(path="训练日志.txt", labels=""),
            Sample(path="metrics.jsonl", labels=""),
            Sample(path="model.pt", labels=None),
            Sample(path="global_step100/mp_rank_00_model_states.pt", labels=None),
            Sample(path="events.out.tfevents.1741774210.gpu-1.4711.0", labels=None),
            Sample(path="run-x7k2p.wandb", labels=None),
            Sample(path="last.ckpt", labels=None),
            Sample(path="checkpoint-500/notes.txt", labels=None),
            Sample(path="tokenizer/merges.txt", labels=None),
            Sample(path="train.log.tmp", labels=None),
            Sample(path=".train.log.swp", labels=None),
            Sample(path="train.log~", labels=None),
            Sample(path=".ipynb_checkpoints/a-checkpoint.log", labels=None),
            Sample(path="buffer.b5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log", labels=None),
        ),
    ),
)
BUILT_IN: Final[Mapping[str, Layout]] = {layout.name: layout for layout in _LAYOUTS}
# The order a source without a ``layout`` key tries them in: the special before the general.
DEFAULT_LAYOUTS: Final = tuple(BUILT_IN)
# Layouts that come later: refused as not yet there, not taken for own patterns.
NOT_YET: Final = (
    "ray",
    "wandb",
    "hydra",
    "lightning",
    "mlflow",
    "tensorboard",
    "huggingface",
    "determined",
    "docker",
    "lsf",
)
