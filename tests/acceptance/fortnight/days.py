"""What happens on which day: jobs that start, and what people do before and after runs.

Ticks count half days from 0; negative ones are before the first run. Day 5's first run is ``number`` 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tests.acceptance.fortnight import jobs
from tests.acceptance.fortnight.cluster import KIB, Cluster, Tick

if TYPE_CHECKING:
    from tests.acceptance.fortnight.simulate import Fortnight

Act = Callable[["Fortnight"], None]


def jobs_starting(on: Cluster, tick: Tick) -> Iterator[jobs.Job]:
    """Those of one half day."""
    n, is_morning = tick.number, tick.number % 2 == 0
    yield from _regular(on, n, is_morning)
    yield from _by_day(on, tick, is_morning)


def _regular(on: Cluster, n: int, is_morning: bool) -> Iterator[jobs.Job]:
    day = n // 2 + 1
    if n < 0:
        yield jobs.kaldi(on, "speech", f"asr-old{-n}", "mono", tasks=3)
        yield jobs.hydra(on, "speech", f"vlm-old{-n}", fails=n == -4)
        yield jobs.metrics(on, "recsys", "ctr-old")
        yield jobs.talk(on, "vision", "talk-old")
        return
    if is_morning:
        yield jobs.rank_files(on, "vision", f"detr-{day}", fails=(1,) if day % 2 == 0 else ())
        yield jobs.metrics(on, "recsys", "ctr")
        yield jobs.hydra(on, "speech", "vlm", fails=day % 3 == 0)
        yield jobs.pods(on, "prj-ads", "recsys", f"serve{day}")
        yield jobs.lightning(on, "speech", "tts")
        yield jobs.resumed(on, "nlp", 42_000 + day)
    else:
        yield jobs.deepspeed(on, "nlp", f"sft-{day}")
        yield jobs.kaldi(on, "speech", f"asr-{day}", "tri1")
        yield jobs.slurm(on, "nlp", "bloom", 41_000 + day, requeued=day % 3 == 1)
        yield jobs.talk(on, "vision", "talk")
        yield jobs.metrics(on, "speech", "tts")


def _by_day(on: Cluster, tick: Tick, is_morning: bool) -> Iterator[jobs.Job]:
    n = tick.number
    match n:
        case -3:
            yield jobs.odd_names(on, "speech", "notes")
            yield jobs.evals(on, "vision", "detr-old", count=3)
        case 0:
            yield jobs.pretrain(on, "nlp", "pretrain-7b", ticks=19)
            yield jobs.not_logs(on, "vision", "detr-1")
            yield jobs.stranger(on, "intern", "first-try")
            yield jobs.people(on, "recsys", "by-hand")
            yield jobs.offline_wandb(on, "vision", "vit-offline", synced_after=10)
        case 1 | 9 | 17:
            yield jobs.torchrun(on, "vision", f"vit-{n}")
            yield jobs.ray(on, "recsys", f"dlrm-{n}")
            yield jobs.odd_names(on, "speech", "notes")
        case 2 | 11 | 19:
            yield jobs.wandb(on, "nlp", f"rlhf-{n}")
            yield jobs.trainer(on, "nlp", f"llama-{n}")
        case 4:
            yield jobs.burst(on, "vision", "sweep", files=60, size=60 * KIB)
        case 6:
            yield jobs.burst(on, "nlp", "sweep", files=60, size=60 * KIB, live_for=3)
        case 13:
            yield jobs.people(on, "recsys", "by-hand-again")
        case 16 | 17 | 18:
            yield jobs.burst(on, "recsys", f"sweep-{n}", files=12, size=60 * KIB)
            yield jobs.burst(on, "nlp", f"sweep-{n}", files=6, size=60 * KIB, source="slurm")
        case 22:
            yield jobs.burst(on, "recsys", "sweep-again", files=60, size=60 * KIB)
    if 0 <= n <= 7:
        yield jobs.evals(on, "robotics", f"eval-arm-{n}", fails=n == 3)
    if 14 <= n <= 22 and is_morning:
        yield jobs.metrics(on, "speech", "embeddings", count=12, size=100 * KIB, random=True)


BEFORE: Final[Mapping[int, Sequence[Act]]] = {
    12: (lambda it: it.change_policy(),),
    16: (lambda it: it.accept_policy(),),
    19: (lambda it: it.fill_disk(),),
    20: (lambda it: it.empty_disk(),),
}
AFTER: Final[Mapping[int, Sequence[Act]]] = {
    10: (lambda it: it.restore_some(),),
}
STOPPED: Final[Mapping[int, str]] = {8: "KILL 3", 17: "TERM 2"}
