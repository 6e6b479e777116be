"""The layout that takes any text log by its ending, and what looks like one and must be left alone."""

from __future__ import annotations

import re
from typing import Final

from lifecycle.policy.reading import TEXT_ENDINGS, FolderRead, Known, Layout, NameRead, Parts, Sample, read_stream

# Text files that lie beside logs and that a job or a person needs: taking one away breaks something.
NOT_LOGS: Final = frozenset(
    word + b".txt"
    for word in (
        b"merges vocab vocabs bpe.codes tokens requirements constraints readme license licence notice "
        b"cmakelists robots top_level entry_points sources dependency_links classes labels hostfile hosts "
        b"manifest"
    ).split()
)
CHECKPOINT_FOLDER: Final = re.compile(rb"checkpoint-\d+\Z")
# Of these folders only layouts that know them take anything: wandb's offline runs, MLflow's store, installed packages.
_KEPT_FOLDER: Final = re.compile(
    rb"(?:checkpoint-\d+|offline-run-\d{8}_\d{6}-.*|mlruns|.*\.(?:egg|dist)-info|site-packages)\Z", re.DOTALL
)


def read_plain(name: bytes) -> NameRead | None:
    if not name.endswith(TEXT_ENDINGS) or (name.endswith(b".txt") and name.lower() in NOT_LOGS):
        return None
    return NameRead(name, stream=read_stream(name))


def _enter_plain(parts: Parts, known: Known) -> FolderRead | None:
    if any(_KEPT_FOLDER.match(part) for part in parts):
        return None
    return FolderRead(read_plain, parts)


PLAIN: Final = Layout(
    name="plain",
    says="any *.log, *.out, *.err, *.txt, *.jsonl or *.ndjson with text inside, and its rotations",
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
        Sample(path="filebeat-20260312-1.ndjson", labels=""),
        Sample(path="model.pt", labels=None),
        Sample(path="global_step100/mp_rank_00_model_states.pt", labels=None),
        Sample(path="events.out.tfevents.1741774210.gpu-1.4711.0", labels=None),
        Sample(path="run-x7k2p.wandb", labels=None),
        Sample(path="last.ckpt", labels=None),
        Sample(path="checkpoint-500/notes.txt", labels=None),
        Sample(path="mlruns/731/0a1b2c3d4e5f60718293a4b5c6d7e8f9/artifacts/notes.txt", labels=None),
        Sample(path="wandb/offline-run-20260312_101010-x7k2p9ab/files/media/notes.txt", labels=None),
        Sample(path="tokenizer/merges.txt", labels=None),
        Sample(path="train.log.tmp", labels=None),
        Sample(path=".train.log.swp", labels=None),
        Sample(path="train.log~", labels=None),
        Sample(path=".ipynb_checkpoints/a-checkpoint.log", labels=None),
        Sample(path="buffer.b5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log", labels=None),
    ),
)
