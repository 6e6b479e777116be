"""The sample's jobs: four teams, three ways to lay files out, and what real trees have that tidy ones have not.

Each function writes one job in the form that its launcher gives it, and is one row of ``JOBS``. Ages are those of the
job's end; ranks end some minutes apart, rotations are older by the time one takes to fill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from lifecycle.sample.lines import Writer
from lifecycle.sample.tree import EXCLUDED_FOLDER, KIB, MIB, Tree

SHARED, SLURM, PODS = "shared", "slurm", "pods"  # the three sources: below {team}/{job}, below {team}, pod folders
ODD_MODES = (0o600, 0o644, 0o664, 0o440, 0o755)


def _days(days: float) -> timedelta:
    return timedelta(days=days)


def _hours(hours: float) -> timedelta:
    return timedelta(hours=hours)


# --- vision ---------------------------------------------------------------------------------------------------------


def write_detr(tree: Tree) -> None:
    """Rank files with numbered rotations, compressed from the second on; ended 45 days ago."""
    for rank in tree.ranks(64):
        writer, end = Writer(node=f"gpu-{rank // 8:03}", rank=rank), _days(45) + tree.minutes(0, 20)
        tree.log(f"rank_{rank}.log", "rank", tree.small(24 * KIB), age=end, writer=writer, mode=_mode(rank))
        for turn, name in enumerate((f"rank_{rank}.log.1", f"rank_{rank}.log.2.gz"), start=1):
            if rank % 4 < 3:
                tree.log(name, "rank", tree.small(32 * KIB), age=end + _hours(9 * turn), writer=writer)
    checkpoints = tree.below(EXCLUDED_FOLDER)
    for step in (1000, 2000):
        checkpoints.foreign(f"step_{step}.pt", tree.large(3 * MIB), age=_days(45), magic=b"PK\x03\x04")


def write_vit_live(tree: Tree) -> None:
    """A job that runs now: last lines minutes ago, yesterday's rotation beside them, one file of some 20 MB."""
    for rank in tree.ranks(32):
        writer, size = Writer(node=f"gpu-{64 + rank // 8:03}", rank=rank), tree.small(12 * KIB)
        if rank == 0:
            size = tree.large(22 * MIB)
        tree.log(f"rank_{rank}.log", "rank", size, age=tree.minutes(0.5, 25), writer=writer, live=True)
        tree.log(
            f"rank_{rank}.log.1", "rank", tree.small(40 * KIB), age=_hours(31) + tree.minutes(0, 50), writer=writer
        )
    tree.foreign(
        "events.out.tfevents.1772000000.gpu-064.4711.0", 180 * KIB, age=tree.minutes(1, 3), magic=b"\x18\0\0\0"
    )


def write_eval_coco(tree: Tree) -> None:
    """An evaluation of nine days ago: past its seven days, nothing else of its team is."""
    for shard in tree.ranks(24):
        name = f"eval_shard{shard:02}.log" if shard % 2 else f"shard{shard:02}_eval.log"
        tree.log(name, "evaluation", tree.small(6 * KIB), age=_days(9) + tree.minutes(0, 90), writer=Writer(rank=shard))
    tree.foreign("predictions.npz", 90 * KIB, age=_days(9), magic=b"PK\x03\x04")


def write_segmentation_pods(tree: Tree) -> None:
    """Worker pods of a Kubernetes job in the namespace that means this team, rotated by the kubelet; two days old."""
    for rank in tree.ranks(16):
        pod = tree.below(f"prj0421_seg-unet-worker-{rank}_{_uid(tree)}", "pytorch")
        writer, end = Writer(node=f"gpu-{80 + rank // 8:03}", rank=rank), _days(2.2) + tree.minutes(0, 9)
        pod.log("0.log", "container", tree.small(20 * KIB), age=end, writer=writer)
        older, oldest = (tree.now - end - _hours(hours) for hours in (2, 4))
        pod.log(f"0.log.{older:%Y%m%d-%H%M%S}", "container", tree.small(60 * KIB), age=tree.now - older, writer=writer)
        pod.log(f"0.log.{oldest:%Y%m%d-%H%M%S}.gz", "container", 80 * KIB, age=tree.now - oldest, writer=writer)


# --- nlp ------------------------------------------------------------------------------------------------------------


def write_pretrain(tree: Tree) -> None:
    """torchrun --log-dir on eight nodes, two attempts, the first ended by a fault; most stderr files are empty."""
    nodes = max(1, len(tree.ranks(64)) // 8)
    for node in range(nodes):
        run = tree.below("torchrun_logs", f"pretrain-7b_{tree.rng.randrange(16**8):08x}")
        for attempt, end in ((0, _days(13)), (1, _days(12))):
            for local in range(8):
                _write_torchrun_rank(run, attempt, end, Writer(node=f"gpu-{node:03}", rank=node * 8 + local))
    tree.text("launch.sh", "torchrun --nnodes 8 --nproc-per-node 8 --log-dir torchrun_logs train.py\n", age=_days(14))


def _write_torchrun_rank(run: Tree, attempt: int, end: timedelta, writer: Writer) -> None:
    folder, local = run.below(f"attempt_{attempt}", str(writer.rank % 8)), writer.rank % 8
    end += run.minutes(0, 4)
    folder.log("stdout.log", "rank", run.small(9 * KIB), age=end, writer=writer)
    failed = attempt == 0 and writer.rank % 5 == 0
    stderr = run.small(3 * KIB) if failed or local == 0 else 0
    folder.log("stderr.log", "trouble" if failed else "hugging_face", stderr, age=end, writer=writer)
    if failed:
        folder.log("error.json", "trouble", 900, age=end, writer=writer)


def write_chat(tree: Tree) -> None:
    """DeepSpeed's rank logs, named by start and global rank; rank 0 says what all do, 40 MB of it; three days old."""
    start = tree.now - _days(3.5)
    for rank in tree.ranks(16):
        size = tree.large(40 * MIB) if rank == 0 else tree.small(16 * KIB)
        name = f"{start:%Y%m%d%H%M%S}_rank{rank}.log"
        tree.log(name, "deepspeed", size, age=_days(3) + tree.minutes(0, 5), writer=Writer(rank=rank))
    step = tree.below("global_step2400")
    step.foreign("mp_rank_00_model_states.pt", tree.large(4 * MIB), age=_days(3), magic=b"PK\x03\x04")


def write_rlhf(tree: Tree) -> None:
    """PaddlePaddle's worker logs: the number is a rank and no rotation; thirty hours old."""
    log = tree.below("log")
    for rank in tree.ranks(32):
        log.log(
            f"workerlog.{rank}",
            "paddle",
            tree.small(10 * KIB),
            age=_hours(30) + tree.minutes(0, 30),
            writer=Writer(rank=rank),
        )
    log.text("endpoints.log.lock", "PADDLE_TRAINER_ENDPOINTS\n", age=_hours(31))


def write_eval_mmlu(tree: Tree) -> None:
    """Evaluations of every few days, in a folder called eval: some past their time, some not."""
    folder = tree.below("eval")
    for number in tree.ranks(30):
        age = _days(0.3 + number * 1.3) + tree.minutes(0, 60)
        folder.log(f"checkpoint_{40_000 - number * 1000}.log", "evaluation", tree.small(7 * KIB), age=age)


def write_megatron_slurm(tree: Tree) -> None:
    """One Slurm file for a whole job of many nodes, 60 MB and mostly NCCL; its requeued forerunner; arrays beside."""
    tree.log("megatron-175b-418770.out", "megatron", tree.large(60 * MIB), age=_days(5))
    tree.log("megatron-175b-418770.err", "trouble", 60 * KIB, age=_days(5))
    tree.log("megatron-175b-402113.out", "megatron", tree.large(24 * MIB), age=_days(34))
    for task in tree.ranks(40):
        age = _days(4.5) + _hours(task / 2)
        tree.log(f"slurm-420001_{task}.out", "hugging_face", tree.small(9 * KIB), age=age, mode=_mode(task))
    tree.link("latest.out", "megatron-175b-418770.out")
    tree.link("latest.err", "megatron-175b-399999.err")


# --- speech ---------------------------------------------------------------------------------------------------------


def write_conformer(tree: Tree) -> None:
    """One log rotated by date over four months, and the names that people give."""
    tree.log("train.log", "plain", 120 * KIB, age=_days(1.8))
    for days in range(7, 121, 7):
        at = tree.now - _days(days)
        tree.log(f"train.log-{at:%Y%m%d}.gz", "plain", 160 * KIB, age=_days(days))
    for days in (3, 33):
        tree.log(f"训练日志-{days}.txt", "plain", tree.small(), age=_days(days))
        tree.log(f"download Thu {days} + retry=2.log", "plain", tree.small(4 * KIB), age=_days(days))
        tree.log(b"r\xe9sum\xe9_%d.log" % days, "plain", tree.small(4 * KIB), age=_days(days))
    tree.foreign("profiler.log", 70 * KIB, age=_days(20), magic=b"\0\x01\x02\x03")  # called a log, is none
    original = tree.log("shared_output.log", "plain", 5 * KIB, age=_days(21))
    tree.hard_link("shared_output_copy.log", original)


def write_hifi(tree: Tree) -> None:
    """Rank files below a folder for each node; ended 33 days ago, so the whole job is past its thirty."""
    for rank in tree.ranks(32):
        node = f"gpu-{32 + rank // 8:03}"
        writer = Writer(node=node, rank=rank)
        tree.below(node).log(
            f"rank_{rank % 8}.log", "rank", tree.small(14 * KIB), age=_days(33) + tree.minutes(0, 15), writer=writer
        )
    tree.link("newest_node", "gpu-032")


def write_asr_slurm(tree: Tree) -> None:
    """A batch job and its steps' files, one to a node and task."""
    tree.log("slurm-431200.out", "hugging_face", 90 * KIB, age=_hours(20))
    for task in tree.ranks(24):
        node = f"gpu-{40 + task // 8:03}"
        name = f"wav2vec-431207-{node}-{task}.out"
        tree.log(
            name, "hugging_face", tree.small(6 * KIB), age=_days(26) + tree.minutes(0, 30), writer=Writer(rank=task)
        )
        tree.log(f"wav2vec-431207-{node}-{task}.err", "trouble", 0, age=_days(26))


# --- recsys ---------------------------------------------------------------------------------------------------------


def write_deepfm(tree: Tree) -> None:
    """Metric lines in JSON, a folder of errors a quarter of a year deep, out and err files of a shell loop."""
    for day in tree.ranks(20):
        age = _days(day * 1.9 + 0.1)
        tree.log(f"metrics_{day:02}.jsonl", "json", tree.small(30 * KIB), age=age)
        tree.log(f"loop_{day:02}.out", "plain", tree.small(3 * KIB), age=age)
        tree.log(f"loop_{day:02}.err", "trouble", tree.small(2 * KIB) if day % 6 == 0 else 0, age=age)
    errors = tree.below("errors")
    for number in tree.ranks(24):
        errors.log(
            f"error_rank{number}.log",
            "trouble",
            tree.small(3 * KIB),
            age=_days(5 * number + 1),
            writer=Writer(rank=number),
        )


def write_dlrm(tree: Tree) -> None:
    """Very many very small files: 256 ranks that said little; six days old, so that the next days take them to cold."""
    for rank in tree.ranks(256):
        age = _days(5.7) + tree.minutes(0, 45)
        tree.log(f"rank{rank}.log", "rank", tree.small(2 * KIB), age=age, writer=Writer(rank=rank), mode=0o644)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One row: which source, the folders below it, the team that owns it, and who writes it."""

    source: str
    team: str
    folder: tuple[str, ...]
    write: Callable[[Tree], None]


JOBS: Final = (
    Job(source=SHARED, team="vision", folder=("vision", "detr-r50"), write=write_detr),
    Job(source=SHARED, team="vision", folder=("vision", "vit-h-live"), write=write_vit_live),
    Job(source=SHARED, team="vision", folder=("vision", "eval-coco"), write=write_eval_coco),
    Job(source=PODS, team="vision", folder=(), write=write_segmentation_pods),
    Job(source=SHARED, team="nlp", folder=("nlp", "pretrain-7b"), write=write_pretrain),
    Job(source=SHARED, team="nlp", folder=("nlp", "sft-chat"), write=write_chat),
    Job(source=SHARED, team="nlp", folder=("nlp", "rlhf-9"), write=write_rlhf),
    Job(source=SHARED, team="nlp", folder=("nlp", "mmlu"), write=write_eval_mmlu),
    Job(source=SLURM, team="nlp", folder=("nlp",), write=write_megatron_slurm),
    Job(source=SHARED, team="speech", folder=("speech", "asr-conformer"), write=write_conformer),
    Job(source=SHARED, team="speech", folder=("speech", "tts-hifi"), write=write_hifi),
    Job(source=SLURM, team="speech", folder=("speech",), write=write_asr_slurm),
    Job(source=SHARED, team="recsys", folder=("recsys", "deepfm"), write=write_deepfm),
    Job(source=SHARED, team="recsys", folder=("recsys", "dlrm-criteo"), write=write_dlrm),
)


def _mode(number: int) -> int:
    """Mostly what the umask gives, now and then what somebody set by hand."""
    return ODD_MODES[number // 9 % len(ODD_MODES)] if number % 9 == 8 else 0o640


def _uid(tree: Tree) -> str:
    raw = f"{tree.rng.getrandbits(128):032x}"
    return "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))
