"""``export logrotate``: a logrotate configuration that keeps live files small, for the sources of the policy.

It cuts what jobs still write; everything else stays this program's business: no compression (an archive does that
better), no removal by age, names with numbers, which layouts know for rotations. ``copytruncate``, since training
processes never reopen their logs: between copy and cut some lines can be lost, which the file says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lifecycle.policy.builtin import BUILT_IN
from lifecycle.policy.rules import Policy, SourceRule

SIZE: Final = "100M"
KEPT: Final = 10
_DEPTH: Final = 4  # folders between a job's and its files; logrotate's globs know no "any depth"
_ENDINGS: Final = ("*.log", "*.out", "*.err")
# A second rotator would fight with the first; MLflow's store is no log to cut.
_OWN_ROTATION: Final = frozenset(("kubernetes", "docker", "ray", "fluentd", "filebeat", "vector", "mlflow"))
_LABEL: Final = re.compile(r"\{[^{}]*\}")


def render_logrotate(policy: Policy) -> Iterator[str]:
    """The lines of the file. Only what the policy says; nothing is looked at on disk."""
    yield f"# Made by `lifecycle export logrotate` from policy {policy.digest[:6]}; make it anew when sources change."
    yield f"# Live logs over {SIZE} are cut, {KEPT} rotations of each stay until lifecycle takes them."
    yield "# copytruncate, since processes keep their files open: what is written between copy and cut is lost. Where a"
    yield "# program can rotate its own log, let it, and leave it out here."
    for source in policy.sources:
        yield from _source(source)


def _source(source: SourceRule) -> Iterator[str]:
    yield ""
    rotated = [name for name in source.layouts if name in _OWN_ROTATION]
    patterns = [glob for name in source.layouts if name not in _OWN_ROTATION for glob in _globs(name)]
    if rotated:
        yield f"# source {source.name}: {', '.join(rotated)} is rotated by its own writer and left out"
    if not patterns:
        return
    base = source.path.rstrip("/") + "/" + (_LABEL.sub("*", source.under).strip("/") + "/" if source.under else "")
    for glob in dict.fromkeys(patterns):
        yield _quoted(base + glob)
    yield "{"
    for line in (
        f"size {SIZE}",
        f"rotate {KEPT}",
        "copytruncate",
        "missingok",
        "notifempty",
        "nocompress",
        "nodateext",
    ):
        yield f"    {line}"
    yield "}"


def _globs(layout: str) -> Iterator[str]:
    """Of a built-in layout the usual endings at every depth; an own pattern with a star for each label."""
    if layout not in BUILT_IN:
        text = _LABEL.sub("*", layout)
        depths = range(_DEPTH + 1) if text.startswith("**/") else range(1)
        yield from ("*/" * depth + text.removeprefix("**/") for depth in depths)
        return
    if layout == "rank-files":
        yield from ("*/" * depth + f"workerlog.{digits}" for depth in range(2) for digits in ("?", "??"))
    for depth in range(_DEPTH + 1):
        yield from ("*/" * depth + ending for ending in _ENDINGS)


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
