"""Layouts of container logs on a node: pods as kubelet writes and rotates them, and Docker's json-file driver."""

from __future__ import annotations

import re
from typing import Final

from lifecycle.policy.reading import FolderRead, Known, Layout, NameRead, Parts, Sample

# -- Kubernetes ----------------------------------------------------------------------------------------------------

_POD: Final = re.compile(
    rb"([a-z0-9][a-z0-9-]{0,62})_([a-z0-9][a-z0-9.-]{0,252})_"
    rb"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})\Z"
)
_RESTART: Final = re.compile(rb"(\d{1,9})\.log\Z")
_REPLICA: Final = re.compile(rb"(.+)-(master|worker|launcher|ps|chief|evaluator|server|scheduler)(?:-(\d{1,6}))?\Z")
# Kubernetes makes random endings of these, so that they are no words: -x7k2p, and -5d4f8c9b7-x7k2p. A date is none.
_SAFE: Final = rb"[bcdfghjklmnpqrstvwxz2456789]"
_RANDOM: Final = re.compile(rb"(.+?)(?:-(?=\d*[a-z])" + _SAFE + rb"{8,10})?-" + _SAFE + rb"{5}\Z")


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
KUBERNETES: Final = Layout(
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
        Sample(
            path=f"nlp_sweep-20260312-x7k2p_{_UID}/main/0.log",
            labels="team=nlp job=sweep-20260312 attempt=0 pod=sweep-20260312-x7k2p container=main",
        ),
        Sample(path="vision/pytorch/0.log", labels=None),
    ),
)


# -- Docker --------------------------------------------------------------------------------------------------------

_CONTAINER: Final = re.compile(rb"[0-9a-f]{64}\Z")
_SHORT_ID: Final = 12  # as docker ps shows it


def _enter_docker(parts: Parts, known: Known) -> FolderRead | None:
    if not parts or not _CONTAINER.match(parts[-1]):
        return None
    log, short = parts[-1] + b"-json.log", parts[-1][:_SHORT_ID]
    read = NameRead(b"json.log")

    def read_name(name: bytes) -> NameRead | None:
        return read if name == log else None

    job = None if "job" in known else short  # each container is a job of its own: nothing else is known of it
    return FolderRead(read_name, parts[:-1], job=job, extra=(("container", short),))


_ID: Final = 4 * "3f1c9a70b2d4e586"
DOCKER: Final = Layout(
    name="docker",
    says="Docker json-file: containers/ID/ID-json.log and its rotations .1, .2.gz; the container is the job",
    enter=_enter_docker,
    extra_labels=("container",),
    samples=(
        Sample(path=f"containers/{_ID}/{_ID}-json.log", labels="job=3f1c9a70b2d4 container=3f1c9a70b2d4"),
        Sample(path=f"{_ID}/{_ID}-json.log.1", labels="job=3f1c9a70b2d4 container=3f1c9a70b2d4"),
        Sample(path=f"containers/{_ID}/{_ID}-json.log.2.gz", labels="job=3f1c9a70b2d4 container=3f1c9a70b2d4"),
        Sample(path=f"containers/{_ID}/config.v2.json", labels=None),
        Sample(path=f"containers/{_ID}/hostname", labels=None),
    ),
)
