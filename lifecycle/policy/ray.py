"""The layout of Ray sessions: session_DATE_TIME_US_PID/logs on every node, below its temporary folder by default.

``session_latest`` is a link, and links are never followed. Rank and node are in no path: a source says
``labels: {node: "{host}"}``. Ray rotates its own components (raylet.out.1, raylet.1.out), never a worker's output.
"""

from __future__ import annotations

import re
from typing import Final

from lifecycle.policy.reading import TEXT_ENDINGS, FolderRead, Known, Layout, NameRead, Parts, Sample

_SESSION: Final = re.compile(rb"session_\d{4}-\d{2}-\d{2}_\d{2}-\d{2}-\d{2}_\d{6}_\d+\Z")
_WORKER: Final = re.compile(rb"(?:java-)?worker-[0-9a-f]+-([0-9a-f]{8})-(\d{1,10})\.(?:out|err|log)\Z")
_CORE: Final = re.compile(rb"(?:python|java)-core-(?:worker|driver)-[0-9a-f]+_(\d{1,10})\.log\Z")
_DRIVER: Final = re.compile(rb"job-driver-(.+)\.log\Z", re.DOTALL)
_SETUP: Final = re.compile(rb"runtime_env_setup-([0-9a-f]{8}|ray_client_server_\d+)\.log\Z")
_NUMBERED: Final = re.compile(rb".+\.\d{1,3}\.(?:out|err|log)\Z", re.DOTALL)  # a rotation's number before the ending
_STREAMS: Final = {b".out": "stdout", b".err": "stderr"}


def _ray_name(name: bytes) -> NameRead | None:
    if not name.endswith(TEXT_ENDINGS):
        return None
    stream = _STREAMS.get(name[-4:], "")
    if match := _WORKER.match(name):
        return NameRead(name, stream=stream, extra=(("ray_job", match[1]), ("pid", match[2])))
    if match := _CORE.match(name):
        return NameRead(name, extra=(("pid", match[1]),))
    if match := _DRIVER.match(name):
        return NameRead(name, extra=(("submission", match[1]),))
    if match := _SETUP.match(name):
        return NameRead(name, extra=(("ray_job", match[1]),))
    return None if _NUMBERED.match(name) else NameRead(name, stream=stream)


def _enter_ray(parts: Parts, known: Known) -> FolderRead | None:
    for index in range(len(parts) - 1):
        if parts[index + 1] == b"logs" and _SESSION.match(parts[index]):
            session = parts[index]
            left = parts[:index] + parts[index + 1 :]
            return FolderRead(
                _ray_name, left, job=None if "job" in known else session, extra=(("session", session),)
            )  # fmt: skip
    return None


_SAID: Final = "session_2026-03-12_10-10-10_123456_4711"
_ID: Final = "28df4c2f1ca1a1c7b4d1f0d3e5a69788" + 24 * "0"
RAY: Final = Layout(
    name="ray",
    says="Ray sessions: session_DATE_TIME_US_PID/logs/…, worker-ID-JOB-PID.{out,err}, raylet.out.1, events/event_*.log",
    enter=_enter_ray,
    extra_labels=("session", "ray_job", "pid", "submission"),
    samples=(
        Sample(
            path=f"{_SAID}/logs/worker-{_ID}-01000000-5123.out",
            labels=f"job={_SAID} stream=stdout session={_SAID} ray_job=01000000 pid=5123",
        ),
        Sample(
            path=f"ray/{_SAID}/logs/worker-{_ID}-ffffffff-5124.err",
            labels=f"job={_SAID} stream=stderr session={_SAID} ray_job=ffffffff pid=5124",
        ),
        Sample(path=f"{_SAID}/logs/python-core-worker-{_ID}_5123.log", labels=f"job={_SAID} session={_SAID} pid=5123"),
        Sample(path=f"{_SAID}/logs/raylet.out", labels=f"job={_SAID} stream=stdout session={_SAID}"),
        Sample(path=f"{_SAID}/logs/raylet.out.1", labels=f"job={_SAID} stream=stdout session={_SAID}"),
        Sample(path=f"{_SAID}/logs/gcs_server.2.err", labels=f"job={_SAID} stream=stderr session={_SAID}"),
        Sample(path=f"{_SAID}/logs/dashboard.log.3", labels=f"job={_SAID} session={_SAID}"),
        Sample(
            path=f"{_SAID}/logs/job-driver-raysubmit_x7k2p.log",
            labels=f"job={_SAID} session={_SAID} submission=raysubmit_x7k2p",
        ),
        Sample(
            path=f"{_SAID}/logs/runtime_env_setup-01000000.log", labels=f"job={_SAID} session={_SAID} ray_job=01000000"
        ),
        Sample(path=f"{_SAID}/logs/events/event_RAYLET.log", labels=f"job={_SAID} session={_SAID}"),
        Sample(path=f"{_SAID}/sockets/raylet", labels=None),
        Sample(path=f"{_SAID}/ports_by_node.json", labels=None),
        Sample(path=f"{_SAID}/logs/debug_state.pkl", labels=None),
    ),
)
