"""The layouts that have a name, in one table: ``BUILT_IN``. A new one is a ``Layout`` and its row here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lifecycle.policy.kubernetes import KUBERNETES
from lifecycle.policy.launchers import DEEPSPEED, RANK_FILES, SLURM, TORCHRUN
from lifecycle.policy.plain import PLAIN
from lifecycle.policy.reading import Layout

_LAYOUTS: Final = (TORCHRUN, KUBERNETES, DEEPSPEED, RANK_FILES, SLURM, PLAIN)
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
