"""Layouts of experiment trackers: wandb's run folders and MLflow's file store.

Both are still needed by their own tools while a run goes on or waits to be synced: ``policy.waiting`` says until when.
"""

from __future__ import annotations

import re
from typing import Final

from lifecycle.policy.reading import FolderRead, Known, Layout, NameRead, Parts, Sample

# -- wandb ---------------------------------------------------------------------------------------------------------

_WANDB_RUN: Final = re.compile(rb"(?:offline-)?run-(\d{8}_\d{6})-(.+)\Z", re.DOTALL)
# What wandb itself writes of a run. Media, tables and code that the job saved beside them are left alone.
_WANDB_FILES: Final = frozenset(
    (b"output.log", b"config.yaml", b"wandb-summary.json", b"wandb-metadata.json", b"requirements.txt")
)


def _wandb_file(name: bytes) -> NameRead | None:
    return NameRead(name) if name in _WANDB_FILES else None


def _wandb_log(name: bytes) -> NameRead | None:
    return NameRead(name) if name.endswith(b".log") else None


def _enter_wandb(parts: Parts, known: Known) -> FolderRead | None:
    if len(parts) < 2 or parts[-1] not in (b"files", b"logs"):
        return None
    run = -3 if parts[-2:] == (b"files", b"logs") else -2  # a console in parts has a folder of its own
    match = _WANDB_RUN.match(parts[run]) if len(parts) >= -run else None
    if match is None:
        return None
    return FolderRead(
        _wandb_log if parts[-1] == b"logs" else _wandb_file,
        parts[:run] + parts[run + 1 :],
        job=None if "job" in known else match[2],
        attempt=match[1],
        extra=(("run", match[2]),),
    )


_WANDB: Final = "run-20260312_101010-x7k2p9ab"
_WANDB_LABELS: Final = "job=x7k2p9ab attempt=20260312_101010 run=x7k2p9ab"
WANDB: Final = Layout(
    name="wandb",
    says="wandb: run-DATE_TIME-ID/{files/output.log,files/wandb-summary.json,logs/debug.log}; offline runs once synced",
    enter=_enter_wandb,
    extra_labels=("run",),
    samples=(
        Sample(path=f"wandb/{_WANDB}/files/output.log", labels=_WANDB_LABELS),
        Sample(path=f"wandb/{_WANDB}/files/wandb-summary.json", labels=_WANDB_LABELS),
        Sample(path=f"wandb/{_WANDB}/files/config.yaml", labels=_WANDB_LABELS),
        Sample(path=f"wandb/{_WANDB}/files/wandb-metadata.json", labels=_WANDB_LABELS),
        Sample(path=f"wandb/{_WANDB}/files/requirements.txt", labels=_WANDB_LABELS),
        Sample(path=f"wandb/{_WANDB}/files/logs/output_20260312_111010.log", labels=_WANDB_LABELS),
        Sample(path=f"wandb/{_WANDB}/logs/debug-internal.log", labels=_WANDB_LABELS),
        Sample(path=f"wandb/offline-{_WANDB}/files/output.log", labels=_WANDB_LABELS),
        Sample(path=f"wandb/{_WANDB}/run-x7k2p9ab.wandb", labels=None),
        Sample(path=f"wandb/offline-{_WANDB}/run-x7k2p9ab.wandb", labels=None),
        Sample(path=f"wandb/{_WANDB}/files/media/table/loss.table.json", labels=None),
        Sample(path=f"wandb/{_WANDB}/files/diff.patch", labels=None),
    ),
)


# -- MLflow --------------------------------------------------------------------------------------------------------

_EXPERIMENT: Final = re.compile(rb"\d{1,20}\Z")
_MLFLOW_RUN: Final = re.compile(rb"[0-9a-f]{32}\Z")
# Keys of metrics are no part of what class patterns see: eval_loss and train_loss of one run keep together.
_MLFLOW_FOLDERS: Final = {folder: NameRead(folder) for folder in (b"metrics", b"params", b"tags")}
_META: Final = NameRead(b"meta.yaml")


def _mlflow_meta(name: bytes) -> NameRead | None:
    return _META if name == b"meta.yaml" else None


def _enter_mlflow(parts: Parts, known: Known) -> FolderRead | None:
    for index in range(1, len(parts)):
        if _MLFLOW_RUN.match(parts[index]) and _EXPERIMENT.match(parts[index - 1]):
            break
    else:
        return None
    kind = parts[index + 1] if index + 1 < len(parts) else None
    if kind is not None and kind not in _MLFLOW_FOLDERS:
        return None  # artifacts
    read = None if kind is None else _MLFLOW_FOLDERS[kind]
    return FolderRead(
        _mlflow_meta if read is None else lambda name: read,
        parts[: index - 1],
        job=None if "job" in known else parts[index],
        extra=(("experiment", parts[index - 1]), ("run", parts[index])),
    )


_MLFLOW: Final = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
_MLFLOW_LABELS: Final = f"job={_MLFLOW} experiment=731 run={_MLFLOW}"
MLFLOW: Final = Layout(
    name="mlflow",
    says="MLflow's file store: EXPERIMENT/RUN/{meta.yaml,metrics/KEY,params/KEY,tags/KEY} of runs that ended",
    enter=_enter_mlflow,
    extra_labels=("experiment", "run"),
    # It is what MLflow's own pages are made of: a run that left is not shown there until it is restored.
    is_default=False,
    samples=(
        Sample(path=f"mlruns/731/{_MLFLOW}/meta.yaml", labels=_MLFLOW_LABELS),
        Sample(path=f"mlruns/731/{_MLFLOW}/metrics/loss", labels=_MLFLOW_LABELS),
        Sample(path=f"mlruns/731/{_MLFLOW}/metrics/eval/loss.1", labels=_MLFLOW_LABELS),
        Sample(path=f"mlruns/731/{_MLFLOW}/params/lr", labels=_MLFLOW_LABELS),
        Sample(path=f"731/{_MLFLOW}/tags/mlflow.runName", labels=_MLFLOW_LABELS),
        Sample(path="mlruns/731/meta.yaml", labels=None),
        Sample(path=f"mlruns/731/{_MLFLOW}/artifacts/model/requirements.txt", labels=None),
        Sample(path=f"mlruns/731/{_MLFLOW}/artifacts/notes.log", labels=None),
        Sample(path=f"mlruns/731/{_MLFLOW}/notes.txt", labels=None),
    ),
)
