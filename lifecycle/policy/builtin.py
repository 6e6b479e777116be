"""The layouts that have a name, in one table: ``BUILT_IN``. A new one is a ``Layout`` and its row here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lifecycle.policy.containers import DOCKER, KUBERNETES
from lifecycle.policy.frameworks import HUGGINGFACE, HYDRA, LIGHTNING
from lifecycle.policy.launchers import DEEPSPEED, RANK_FILES, TORCHRUN
from lifecycle.policy.plain import PLAIN
from lifecycle.policy.ray import RAY
from lifecycle.policy.reading import Layout
from lifecycle.policy.schedulers import LSF, SLURM
from lifecycle.policy.shippers import FILEBEAT, FLUENTD, VECTOR
from lifecycle.policy.suites import KALDI, MLPERF
from lifecycle.policy.trackers import MLFLOW, WANDB

_LAYOUTS: Final = (
    *(TORCHRUN, KUBERNETES, DOCKER, RAY, WANDB, MLFLOW, HYDRA, LIGHTNING, KALDI, MLPERF, DEEPSPEED, RANK_FILES),
    *(SLURM, LSF, FLUENTD, FILEBEAT, VECTOR, HUGGINGFACE, PLAIN),
)
BUILT_IN: Final[Mapping[str, Layout]] = {layout.name: layout for layout in _LAYOUTS}
# What a source without a ``layout`` key tries, in this order: the special before the general.
DEFAULT_LAYOUTS: Final = tuple(layout.name for layout in _LAYOUTS if layout.is_default)
# Names that somebody may look for, and why nothing of theirs is ever taken.
NO_LAYOUT: Final[Mapping[str, str]] = {
    "tensorboard": "TensorBoard's event files are binary and stay open: no layout takes them; leave the name out",
    "determined": "Determined's logs are links, which are never followed; leave the name out",
    "paddle": "rank-files takes workerlog.N",
    "logrotate": "every layout takes rotations of its names; leave the name out",
}
