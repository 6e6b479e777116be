"""Lines as training jobs write them, made up by own code: a dozen formats, none of them ours to choose.

Knows text and how it looks. Must never know files, layouts or ages. Times in lines run up to the ``end`` that is
asked for; the same generator state gives the same bytes.

Long texts are not made line by line: a block of some MiB is made once and repeated with its dates moved back a day
each time, which is as cheap as copying. No two repeats fall into one frame of an archive (4 MiB), so that the ratio
a reader sees is that of the lines and not of the repeating.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final

BLOCK_BYTES: Final = 6 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes: the process whose lines these are."""

    node: str = "gpu-001"
    rank: int = 0
    pid: int = 4711


LineMaker = Callable[[Random, datetime, int, Writer], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How one kind of job logs. ``interval`` is the time between two lines, ``mean_bytes`` a line's usual length."""

    make: LineMaker
    interval: timedelta
    mean_bytes: int


def render_lines(form: LineFormat, rng: Random, *, size_bytes: int, end: datetime, writer: Writer) -> bytes:
    """About ``size_bytes`` of whole lines, the last one written at ``end``; empty for a size of 0."""
    if size_bytes <= 0:
        return b""
    if size_bytes > BLOCK_BYTES:
        return _render_long(form, rng, size_bytes=size_bytes, end=end, writer=writer)
    count = max(1, size_bytes // form.mean_bytes)
    first, make, interval = end - form.interval * (count - 1), form.make, form.interval
    return "".join([make(rng, first + interval * step, step, writer) for step in range(count)]).encode()


def _render_long(form: LineFormat, rng: Random, *, size_bytes: int, end: datetime, writer: Writer) -> bytes:
    quick = LineFormat(make=form.make, interval=_within_a_day(form), mean_bytes=form.mean_bytes)
    block = render_lines(quick, rng, size_bytes=BLOCK_BYTES, end=end, writer=writer)
    repeats = -(-size_bytes // len(block))
    whole = b"".join(_days_earlier(block, end, repeats - 1 - number) for number in range(repeats))
    surplus = len(whole) - size_bytes
    return whole[whole.index(b"\n", surplus) + 1 :] if surplus > 0 else whole


def _within_a_day(form: LineFormat) -> timedelta:
    lines = max(1, BLOCK_BYTES // form.mean_bytes)
    return min(form.interval, timedelta(hours=23) / lines)


def _days_earlier(block: bytes, end: datetime, days: int) -> bytes:
    """The block with its two dates moved back; the earlier one first, or it would be moved twice."""
    if days == 0:
        return block
    for date in (end.date() - timedelta(days=1), end.date()):
        block = block.replace(date.isoformat().encode(), (date - timedelta(days=days)).isoformat().encode())
    return block


# --- the formats ----------------------------------------------------------------------------------------------------


def _stamp(at: datetime) -> str:
    """``2026-02-11 03:14:15,123``: the way Python's logging writes it."""
    return f"{at:%Y-%m-%d} {at.hour:02}:{at.minute:02}:{at.second:02},{at.microsecond // 1000:03}"


def _loss(rng: Random, step: int) -> float:
    return 11.0 / math.pow(1.0 + step / 400, 0.35) + rng.gauss(0, 0.03)


def _megatron(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    """One progress line in five, the rest NCCL's talk, as a large job's shared output has it. No line has a time."""
    if step % 5:
        here, peer = rng.randrange(8), rng.randrange(256)
        return (
            f"{writer.node}:{writer.pid}:{writer.pid + 300 + here} [{here}] NCCL INFO "
            f"Channel {step % 32:02}/{step % 2} : {writer.rank + here}[{here}] -> {peer}[{peer % 8}] [send] "
            f"via NET/IB/{here // 2}/GDRDMA\n"
        )
    number = step // 5
    return (
        f" iteration {number:8}/  500000 | consumed samples: {number * 2048:12} | elapsed time per iteration (ms): "
        f"{rng.gauss(14310, 90):.1f} | learning rate: {6e-5 * min(1, number / 2000):.3E} | global batch size:  2048 | "
        f"lm loss: {_loss(rng, number):.6E} | loss scale: 1.0 | grad norm: {abs(rng.gauss(0.4, 0.1)):.3f} | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def _rank(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    if step % 97 == 96:
        return f"{_stamp(at)} WARNING [rank{writer.rank}] data: slow batch, {rng.uniform(2, 9):.2f} s in loader\n"
    return (
        f"{_stamp(at)} INFO [rank{writer.rank}] train: step {step} loss {_loss(rng, step):.4f} "
        f"lr {3e-4 * 0.99995**step:.3e} gnorm {abs(rng.gauss(0.8, 0.2)):.3f} "
        f"{rng.gauss(3120, 40):.1f} samples/s mem {rng.randrange(60, 76)}.{rng.randrange(10)} GiB\n"
    )


def _deepspeed(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    if step % 3 == 0:
        return (
            f"[{_stamp(at)}] [INFO] [logging.py:96:log_dist] [Rank {writer.rank}] step={step}, skipped={step // 900}, "
            f"lr=[{9.65e-06 * 0.9999**step:.6e}], mom=[(0.9, 0.95)]\n"
        )
    return (
        f"[{_stamp(at)}] [INFO] [timer.py:260:stop] epoch=0/micro_step={step * 4}/global_step={step}, "
        f"RunningAvgSamplesPerSec={rng.gauss(41.2, 0.4):.6f}, CurrSamplesPerSec={rng.gauss(41.0, 1.5):.6f}, "
        f"MemAllocated={rng.uniform(20, 24):.2f}GB, MaxMemAllocated=33.{rng.randrange(100):02}GB\n"
    )


def _paddle(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    if step == 0:
        return (
            f"W{at:%m%d} {at:%H:%M:%S}.{at.microsecond:06} {writer.pid} gpu_resources.cc:119] Please NOTE: device: "
            f"{writer.rank}, GPU Compute Capability: 8.0, Driver API Version: 12.2, Runtime API Version: 11.8\n"
        )
    return (
        f"[{_stamp(at)}] [    INFO] - loss: {_loss(rng, step):.8f}, learning_rate: {3e-5 * 0.9998**step:.4e}, "
        f"global_step: {step * 10}, interval_runtime: {rng.gauss(4.1, 0.1):.4f}, "
        f"interval_samples_per_second: {rng.gauss(124, 3):.4f}, progress_or_epoch: {step / 9000:.4f}\n"
    )


def _hugging_face(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    """Dict lines without time, level or rank, and a progress bar redrawn with bare carriage returns."""
    if step % 4 == 0:
        bars = "".join(
            f"\r {(step + part) % 100:3}%|{'█' * ((step + part) % 10):<10}| {step * 10 + part}/9000 "
            f"[{step // 6:02}:{step % 60:02}<2:11:09, {rng.uniform(1.1, 1.4):.2f}s/it]"
            for part in range(3)
        )
        return bars + "\n"
    return (
        f"{{'loss': {_loss(rng, step):.4f}, 'grad_norm': {abs(rng.gauss(1.1, 0.3)):.6f}, "
        f"'learning_rate': {2e-5 * 0.9999**step:.6e}, 'epoch': {step / 1800:.2f}}}\n"
    )


def _json_lines(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    level = "warning" if step % 61 == 60 else "info"
    return (
        f'{{"ts":"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z","level":"{level}","rank":{writer.rank},'
        f'"step":{step},"auc":{0.70 + rng.random() / 40:.5f},"logloss":{_loss(rng, step) / 20:.5f},'
        f'"qps":{rng.randrange(180_000, 220_000)},"msg":"0 errors in batch"}}\n'
    )


def _evaluation(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    subject = ("anatomy", "astronomy", "college_physics", "global_facts", "marketing", "virology")[step % 6]
    return (
        f"{_stamp(at)} - INFO - evaluator - task=mmlu/{subject} shard={writer.rank} n={step * 25} "
        f"acc={0.45 + rng.random() / 5:.4f} acc_norm={0.47 + rng.random() / 5:.4f} stderr={rng.random() / 50:.4f}\n"
    )


def _trouble(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    """What people open at three in the morning."""
    here = writer.rank % 8
    if step % 2:
        return (
            f"[rank{writer.rank}]:[E{at:%m%d} {at:%H:%M:%S}.{at.microsecond:06} ProcessGroupNCCL.cpp:616] "
            f"[Rank {writer.rank}] Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum={rng.randrange(10**6)}, OpType=ALLREDUCE, NumelIn={rng.randrange(10**8)}, "
            f"Timeout(ms)=600000) ran for {600_000 + rng.randrange(900)} milliseconds\n"
        )
    return (
        f"{_stamp(at)} ERROR [rank{writer.rank}] train: step failed\nTraceback (most recent call last):\n"
        f'  File "train.py", line {rng.randrange(80, 420)}, in train_step\n    loss.backward()\n'
        f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {rng.uniform(1, 9):.2f} GiB. "
        f"GPU {here} has a total capacity of 79.15 GiB of which "
        f"{rng.randrange(10, 900)}.{rng.randrange(10)} MiB is free.\n"
    )


def _container(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    """A container runtime's line around a trainer's: time, stream, whole (F) or in parts (P)."""
    head = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06}{rng.randrange(1000):03}Z stdout "
    text = _rank(rng, at, step, writer)
    return f"{head}P {text[:60]}\n{head}F {text[60:]}" if step % 40 == 39 else f"{head}F {text}"


def _plain(rng: Random, at: datetime, step: int, writer: Writer) -> str:
    return (
        f"{at:%m/%d/%Y %H:%M:%S} - INFO - __main__ -   epoch {step // 500} batch {step % 500} "
        f"ctc {_loss(rng, step) * 9:.3f} att {_loss(rng, step) * 4:.3f} wer {12 + rng.random() * 3:.2f} "
        f"utt/s {rng.gauss(310, 9):.1f}\n"
    )


def _seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


FORMATS: Final[Mapping[str, LineFormat]] = {
    "megatron": LineFormat(make=_megatron, interval=_seconds(2.9), mean_bytes=129),
    "rank": LineFormat(make=_rank, interval=_seconds(1.7), mean_bytes=119),
    "deepspeed": LineFormat(make=_deepspeed, interval=_seconds(0.9), mean_bytes=179),
    "paddle": LineFormat(make=_paddle, interval=_seconds(4.1), mean_bytes=200),
    "hugging_face": LineFormat(make=_hugging_face, interval=_seconds(1.3), mean_bytes=118),
    "json": LineFormat(make=_json_lines, interval=_seconds(0.6), mean_bytes=144),
    "evaluation": LineFormat(make=_evaluation, interval=_seconds(11), mean_bytes=124),
    "trouble": LineFormat(make=_trouble, interval=_seconds(37), mean_bytes=260),
    "container": LineFormat(make=_container, interval=_seconds(1.7), mean_bytes=162),
    "plain": LineFormat(make=_plain, interval=_seconds(5.3), mean_bytes=100),
}
