"""Layouts of training frameworks: Hydra's output folders, Lightning's versions, the Hugging Face Trainer's results."""

from __future__ import annotations

import re
from typing import Final

from lifecycle.policy.plain import CHECKPOINT_FOLDER, read_plain
from lifecycle.policy.reading import FolderRead, Known, Layout, NameRead, NameReader, Parts, Sample

# -- Hydra ---------------------------------------------------------------------------------------------------------

_DATE: Final = re.compile(rb"\d{4}-\d{2}-\d{2}\Z")
_TIME: Final = re.compile(rb"\d{2}-\d{2}-\d{2}\Z")


def _hydra_name(name: bytes) -> NameRead | None:
    """The job's name stands in the name of its log alone, and the class often does: it is a label and stays a name."""
    read = read_plain(name)
    return None if read is None else read._replace(job=name.partition(b".")[0] or None)


def _enter_hydra(parts: Parts, known: Known) -> FolderRead | None:
    if len(parts) > 1 and _TIME.match(parts[-1]):
        date, sweep = -2, None
    elif len(parts) > 3 and _TIME.match(parts[-2]) and parts[-4] == b"multirun":
        date, sweep = -3, parts[-1]
    else:
        return None
    if not _DATE.match(parts[date]):
        return None
    return FolderRead(
        read_plain if "job" in known else _hydra_name,
        parts[:date],
        attempt=parts[date] + b"_" + parts[date + 1],
        extra=() if sweep is None else (("sweep", sweep),),
    )


HYDRA: Final = Layout(
    name="hydra",
    says="Hydra: outputs/YYYY-MM-DD/HH-MM-SS/JOB.log, and multirun/YYYY-MM-DD/HH-MM-SS/N/JOB.log",
    enter=_enter_hydra,
    extra_labels=("sweep",),
    samples=(
        Sample(path="outputs/2026-03-12/10-10-10/train.log", labels="job=train attempt=2026-03-12_10-10-10"),
        Sample(path="outputs/2026-03-12/10-10-10/predict.log.1", labels="job=predict attempt=2026-03-12_10-10-10"),
        Sample(path="vlm/2026-03-12/10-10-10/judge_local.log", labels="job=judge_local attempt=2026-03-12_10-10-10"),
        Sample(path="multirun/2026-03-12/10-10-10/7/train.log", labels="job=train attempt=2026-03-12_10-10-10 sweep=7"),
        Sample(
            path="multirun/2026-03-12/10-10-10/lr=0.1/train.log",
            labels="job=train attempt=2026-03-12_10-10-10 sweep=lr=0.1",
        ),
        Sample(path="outputs/2026-03-12/10-10-10/.hydra/config.yaml", labels=None),
        Sample(path="outputs/2026-03-12/10-10-10/.hydra/overrides.log", labels=None),
        Sample(path="outputs/2026-03-12/10-10-10/model.pt", labels=None),
        Sample(path="outputs/2026-03-12/train.log", labels=None),
    ),
)


# -- PyTorch Lightning ---------------------------------------------------------------------------------------------

_VERSION: Final = re.compile(rb"version_(\d{1,9})\Z")
_METRICS: Final = NameRead(b"metrics.csv")


def _lightning_name(name: bytes) -> NameRead | None:
    return _METRICS if name == b"metrics.csv" else read_plain(name)


def _enter_lightning(parts: Parts, known: Known) -> FolderRead | None:
    match = _VERSION.match(parts[-1]) if parts else None
    return None if match is None else FolderRead(_lightning_name, parts, attempt=match[1])


LIGHTNING: Final = Layout(
    name="lightning",
    says="PyTorch Lightning: lightning_logs/version_N/metrics.csv; hparams.yaml stays beside the checkpoints",
    enter=_enter_lightning,
    samples=(
        Sample(path="lightning_logs/version_7/metrics.csv", labels="attempt=7"),
        Sample(path="tb/my-model/version_0/train.log", labels="attempt=0"),
        Sample(path="lightning_logs/version_7/metrics.csv.gz", labels="attempt=7"),
        Sample(path="lightning_logs/version_7/hparams.yaml", labels=None),
        Sample(path="lightning_logs/version_7/checkpoints/epoch=3.ckpt", labels=None),
        Sample(path="lightning_logs/version_7/events.out.tfevents.1741774210.gpu-1.4711.0", labels=None),
        Sample(path="data/version_7.csv", labels=None),
    ),
)


# -- Hugging Face Trainer ------------------------------------------------------------------------------------------

_HUGGINGFACE: Final = {
    name: NameRead(name)
    for name in (
        b"trainer_state.json",
        *(split + b"_results.json" for split in (b"all", b"train", b"eval", b"test", b"predict")),
    )
}
_read_huggingface: Final[NameReader] = _HUGGINGFACE.get


def _enter_huggingface(parts: Parts, known: Known) -> FolderRead | None:
    """Not in checkpoint-N: training goes on from the trainer_state.json there."""
    if any(CHECKPOINT_FOLDER.match(part) for part in parts):
        return None
    return FolderRead(_read_huggingface, parts)


HUGGINGFACE: Final = Layout(
    name="huggingface",
    says="Hugging Face Trainer: trainer_state.json and {train,eval,all,predict}_results.json outside checkpoint-N",
    enter=_enter_huggingface,
    samples=(
        Sample(path="llama-sft/trainer_state.json", labels=""),
        Sample(path="llama-sft/eval_results.json", labels=""),
        Sample(path="llama-sft/all_results.json", labels=""),
        Sample(path="llama-sft/checkpoint-500/trainer_state.json", labels=None),
        Sample(path="llama-sft/runs/Mar12_10-10-10_gpu-1/events.out.tfevents.1741774210.gpu-1.4711.0", labels=None),
        Sample(path="llama-sft/config.json", labels=None),
        Sample(path="llama-sft/training_args.bin", labels=None),
        Sample(path="llama-sft/tokenizer.json", labels=None),
    ),
)
