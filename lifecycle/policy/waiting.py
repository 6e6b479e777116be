"""Folders whose logs are not finished when they are quiet: something must be there first. One table, ``RULES``.

A run that wandb wrote offline is read by ``wandb sync`` some day; an MLflow run is MLflow's own until it has ended.
What lies there is claimed and counted as ever, and stays open. Pure: which folder to look into and what for;
``scan.waiting`` looks. A rule goes by the path alone, whichever layout took the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple


class Awaited(NamedTuple):
    """What must be in ``folder``, relative to the source's root, before anything below it is finished."""

    folder: bytes
    rule: WaitingRule


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRule:
    """``find`` cuts the awaited folder out of a path, or answers None. ``is_over`` is given the names in that folder
    and a reader of the first bytes of one of them; it says whether the wait is over."""

    name: str  # what must hold, for people
    find: Callable[[bytes], bytes | None]
    is_over: Callable[[list[bytes], Callable[[bytes], bytes]], bool]


_OFFLINE: Final = re.compile(rb"((?:.*/)?offline-run-\d{8}_\d{6}-[^/]+)(?:/|\Z)", re.DOTALL)
_MLFLOW: Final = re.compile(rb"((?:.*/)?\d{1,20}/[0-9a-f]{32})(?:/(?:metrics|params|tags)(?:/.*)?)?\Z", re.DOTALL)
_ENDED: Final = re.compile(rb"^end_time:[ \t]*\d", re.MULTILINE)


def _offline_run(directory: bytes) -> bytes | None:
    match = _OFFLINE.match(directory) if b"offline-run-" in directory else None
    return None if match is None else match[1]


def _is_synced(names: list[bytes], read: Callable[[bytes], bytes]) -> bool:
    """``wandb sync`` leaves an empty run-ID.wandb.synced beside the run-ID.wandb that it read to its end."""
    runs = [name for name in names if name.endswith(b".wandb")]
    return bool(runs) and all(run + b".synced" in names for run in runs)


def _mlflow_run(directory: bytes) -> bytes | None:
    match = _MLFLOW.match(directory)
    return None if match is None else match[1]


def _has_ended(names: list[bytes], read: Callable[[bytes], bytes]) -> bool:
    """``end_time`` is null while a run goes on, and for ever after it was killed. Without meta.yaml it is no run."""
    return b"meta.yaml" not in names or _ENDED.search(read(b"meta.yaml")) is not None


RULES: Final = (
    WaitingRule(name="its offline run is synced with wandb", find=_offline_run, is_over=_is_synced),
    WaitingRule(name="its MLflow run has an end_time", find=_mlflow_run, is_over=_has_ended),
)


@lru_cache(maxsize=4096)
def awaited(directory: bytes) -> Awaited | None:
    """What a file in this folder, relative to its source's root, waits for; None when quiet time is enough."""
    for rule in RULES:
        folder = rule.find(directory)
        if folder is not None:
            return Awaited(folder, rule)
    return None
