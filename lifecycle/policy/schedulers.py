"""Layouts of batch schedulers: the files that Slurm and LSF write a job's output into."""

from __future__ import annotations

import re
from typing import Final

from lifecycle.policy.reading import FolderRead, Known, Layout, NameRead, NameReader, Parts, Sample

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


SLURM: Final = Layout(
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
)


# -- LSF -----------------------------------------------------------------------------------------------------------

# The number last, as in out.%J and train.err.%J.%I; %J.out and its like are read as Slurm's are. Fixed names, which
# bsub -o appends many jobs to, say nothing: plain takes them.
_LSF: Final = re.compile(
    rb"(?:(?P<name>.+?)[._-])?(?P<stream>out|err|output|error|stdout|stderr)[._-]"
    rb"(?P<id>\d{5,10})(?:[._-](?P<index>\d{1,7})|\[(?P<bracket>\d{1,7})\])?\Z",
    re.DOTALL,
)
_LOOKS_LIKE_A_DATE: Final = re.compile(rb"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:\d{2})?\Z")
_LAST: Final = frozenset(b"0123456789]")
_ERR: Final = (b"err", b"error", b"stderr")


def _lsf_reader(known: Known) -> NameReader:
    is_job_known = "job" in known
    read_as_slurm = _slurm_reader(known)

    def read(name: bytes) -> NameRead | None:
        if name[-1] not in _LAST:
            found = read_as_slurm(name)
            if found is not None and is_job_known:
                return found._replace(extra=tuple((_LSF_LABELS.get(key, key), raw) for key, raw in found.extra))
            return found
        match = _LSF.match(name)
        if match is None or _LOOKS_LIKE_A_DATE.match(match["id"]):
            return None
        stream = "stderr" if match["stream"] in _ERR else ""  # bsub -o has both unless -e was given
        index = match["index"] or match["bracket"]
        extra: tuple[tuple[str, bytes], ...] = () if index is None else (("array", index),)
        left = name[: match.start("id")].rstrip(b"._-")
        if is_job_known:
            return NameRead(left, stream=stream, extra=(("lsf_job", match["id"]), *extra))
        job = match["id"] if match["name"] is None else match["name"] + b"-" + match["id"]
        return NameRead(left, job=job, stream=stream, extra=extra)

    return read


_LSF_LABELS: Final = {"slurm_job": "lsf_job"}


def _enter_lsf(parts: Parts, known: Known) -> FolderRead | None:
    return FolderRead(_lsf_reader(known), parts)


LSF: Final = Layout(
    name="lsf",
    says="LSF bsub -o and -e: out.%J, train.err.%J.%I, and %J.out, %J_%I.out",
    enter=_enter_lsf,
    extra_labels=("lsf_job", "array", "step"),
    samples=(
        Sample(path="out.471234", labels="job=471234"),
        Sample(path="logs/bert.err.471234", labels="job=bert-471234 stream=stderr"),
        Sample(path="output.471234.12", labels="job=471234 array=12"),
        Sample(path="bert_out_471234[3]", labels="job=bert-471234 array=3"),
        Sample(path="out.471234.1.gz", labels="job=471234"),
        Sample(path="model.out.20260312", labels=None),
        Sample(path="lsb.params", labels=None),
        Sample(path="shard.471234", labels=None),
    ),
)
