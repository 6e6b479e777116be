"""Who writes what: one generator for each kind of job, as its launcher, framework or tracker lays out its files.

Each ``yield`` is a run of the command; what stands between two of them happens in one half day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.acceptance.fortnight.cluster import KIB, Cluster, stamp
from tests.acceptance.fortnight.platform import Log

Job = Iterator[None]


# --- launchers --------------------------------------------------------------------------------------------------------


def rank_files(
    on: Cluster, team: str, job: str, *, ticks: int = 3, nodes: int = 2, ranks: int = 3, fails: Sequence[int] = ()
) -> Job:
    """One file a rank below a folder for each node; rank 0 rotates each night; some ranks end in a traceback."""
    logs = [
        on.log(
            "shared", f"{team}/{job}/nodes/gpu-{node:03}/rank_{rank}.log", "rank", on.size(), team=team, job=job,
            node=f"gpu-{node:03}", rank=rank, at_ns=on.tick.just_now, keep_open=True,
        )
        for node in range(nodes) for rank in on.many(ranks)
    ]  # fmt: skip
    for number in range(ticks):
        yield
        for at, log in enumerate(logs):
            is_last = number == ticks - 1
            path = on.rotate(log) if log.rank == 0 else log.path
            ends = None if is_last else on.tick.just_now
            logs[at] = on.more(log, "rank", on.size(), path=path, at_ns=ends, fails=is_last and log.rank in fails)


def torchrun(on: Cluster, team: str, job: str, *, ranks: int = 4) -> Job:
    """Two attempts in one run folder: the first fails and leaves an error.json; a third removes the first's folder and
    writes below the same name. Of the other ranks stdout is empty, as a rule."""
    run = f"{team}/{job}/7041_{on.word()}"
    for attempt, fails in ((0, True), (1, False), (0, False)):
        folder = f"{run}/attempt_{attempt}"
        on.remove_folder("shared", folder.encode())
        for rank in on.many(ranks):
            for stream in ("stdout", "stderr"):
                size = 0 if stream == "stdout" and rank else on.size(2 * KIB)
                on.log(
                    "shared", f"{folder}/{rank}/{stream}.log", "rank", size, team=team, job=job, rank=rank,
                    fails=fails and stream == "stderr" and rank == 1,
                )  # fmt: skip
        if fails:
            on.log(
                "shared", f"{folder}/1/error.json", "json", 400, team=team, job=job, kind="error", rank=1
            )  # fmt: skip
        yield


def deepspeed(on: Cluster, team: str, job: str, *, ticks: int = 2, ranks: int = 6) -> Job:
    """A file for each rank, named by the clock of its start, written until the last tick."""
    begun = stamp(on.tick.at(0.1), "%Y%m%d%H%M%S").decode()
    logs = [
        on.log(
            "shared", f"{team}/{job}/{begun}_rank{rank}.log", "deepspeed", on.size(), team=team, job=job, rank=rank,
            at_ns=on.tick.just_now, keep_open=True,
        )
        for rank in on.many(ranks)
    ]  # fmt: skip
    for number in range(ticks):
        yield
        is_last = number == ticks - 1
        logs = [on.more(log, "deepspeed", on.size(), at_ns=None if is_last else on.tick.just_now) for log in logs]


def slurm(on: Cluster, team: str, name: str, number: int, *, requeued: bool = False) -> Job:
    """stdout and stderr of a batch job and an array beside it; requeued, it begins again under its name."""
    job, files = f"{name}-{number}", list[Log]()
    for stream, form in (("out", "hugging_face"), ("err", "megatron")):
        path = f"{team}/{job}.{stream}"
        files.append(on.log("slurm", path, form, on.size(12 * KIB), team=team, job=job, fails=stream == "err"))
    for task in on.many(4):
        on.log("slurm", f"{team}/slurm-{number}_{task}.out", "hugging_face", on.size(), team=team, job=str(number))
    yield
    if requeued:
        for log in files:
            if log.is_here:
                log = on.platform.cut(log, at_ns=on.tick.at(0.2))
            on.more(log, "megatron", on.size(8 * KIB))
    else:
        on.rotate_by_date(files[0], packed=False)
    yield


def resumed(on: Cluster, team: str, number: int) -> Job:
    """A batch job whose steps are hours apart: its log is quiet, and then goes on, with another failure."""
    job = f"resumed-{number}"
    log = on.log("slurm", f"{team}/{job}.out", "rank", on.size(), team=team, job=job, fails=True)
    yield
    on.more(log, "rank", on.size(), fails=True)
    yield


def kaldi(on: Cluster, team: str, job: str, stage: str, *, tasks: int = 12) -> Job:
    """Very many small files, one a task and iteration."""
    for iteration in range(2):
        for task in on.many(tasks):
            path = f"{team}/{job}/exp/{stage}/log/align.{iteration}.{task}.log"
            on.log("shared", path, "plain", on.size(1 * KIB), team=team, job=job)
        yield


# --- trackers and frameworks ------------------------------------------------------------------------------------------


def wandb(on: Cluster, team: str, job: str, *, ticks: int = 3) -> Job:
    """A run folder with its binary record, which is nobody's log, and a link to the latest one."""
    run = f"run-{stamp(on.tick.at(0.1), '%Y%m%d_%H%M%S').decode()}-{on.word()}"
    folder = f"{team}/{job}/wandb/{run}"
    logs = [
        on.log(
            "shared", f"{folder}/{name}", form, on.size(2 * KIB), team=team, job=job, at_ns=on.tick.just_now,
            keep_open=True,
        )
        for name, form in (("files/output.log", "hugging_face"), ("logs/debug.log", "plain"))
    ]  # fmt: skip
    summary = on.log("shared", f"{folder}/files/wandb-summary.json", "json", 300, team=team, job=job)
    on.platform.put_foreign("shared", f"{folder}/run-x.wandb".encode(), on.noise(5000), at_ns=on.tick.at(0.5))
    on.platform.put_link("shared", f"{team}/{job}/wandb/latest-{run[-4:]}".encode(), run.encode())
    for number in range(ticks):
        yield
        is_last = number == ticks - 1
        logs = [on.more(log, "plain", on.size(2 * KIB), at_ns=None if is_last else on.tick.just_now) for log in logs]
        if summary.is_here:
            text = on.lines("json", 400, at_ns=on.tick.at(0.9))
            summary = on.platform.rewrite(summary, b'{"_step": %d}\n' % number + text, at_ns=on.tick.at(0.9))


def offline_wandb(on: Cluster, team: str, job: str, *, synced_after: int) -> Job:
    """Quiet for days, and not finished before somebody has synced it."""
    folder = f"{team}/{job}/wandb/offline-run-{stamp(on.tick.at(0.1), '%Y%m%d_%H%M%S').decode()}-{on.word()}"
    log = on.log("shared", f"{folder}/files/output.log", "plain", on.size(), team=team, job=job)
    log.waits = True
    on.platform.put_foreign("shared", f"{folder}/run-y.wandb".encode(), on.noise(3000), at_ns=on.tick.at(0.9))
    for _ in range(synced_after):
        yield
        assert log.is_here, "an offline run left before it was synced"
    on.platform.put_foreign("shared", f"{folder}/run-y.wandb.synced".encode(), b"", at_ns=on.tick.at(0.5))
    log.waits = False
    yield


def trainer(on: Cluster, team: str, job: str, *, ticks: int = 3) -> Job:
    """Hugging Face's: its state is rewritten whole each time, results of an evaluation beside, checkpoints below."""
    state: Log | None = None
    for step in range(1, ticks + 1):
        at = on.tick.at(0.6)
        content = b'{"global_step": %d}\n' % (step * 500) + on.lines("json", step * KIB, at_ns=at)
        if state is not None and state.is_here:
            state = on.platform.rewrite(state, content, at_ns=at)
        else:
            state = on.platform.write(
                "shared", f"{team}/{job}/trainer_state.json".encode(), content, at_ns=at, team=team, job=job
            )
        on.log("shared", f"{team}/{job}/eval_step{step}.log", "evaluation", on.size(), team=team, job=job, kind="eval")
        shard = f"{team}/{job}/checkpoint-{step * 500}/model-00001.safetensors"
        on.platform.put_foreign("shared", shard.encode(), on.noise(9000), at_ns=at)
        yield


def ray(on: Cluster, team: str, job: str, *, ticks: int = 3, workers: int = 4) -> Job:
    """A session with workers, of which most say nothing, and a raylet that rotates; session_latest is a link."""
    session = f"session_{stamp(on.tick.at(0.1), '%Y-%m-%d_%H-%M-%S_123456_4711').decode()}"
    logs = f"{team}/{job}/{session}/logs"
    for number in on.many(workers):
        name = f"worker-{number:056x}-01000000-{5000 + number}"
        fails = number == 1
        on.log("shared", f"{logs}/{name}.out", "json", on.size() if number < 2 else 0, team=team, job=job)
        on.log(
            "shared", f"{logs}/{name}.err", "rank", on.size(1 * KIB) if fails else 0, team=team, job=job, fails=fails
        )
    raylet = on.log(
        "shared", f"{logs}/raylet.out", "plain", on.size(), team=team, job=job, at_ns=on.tick.just_now, keep_open=True
    )
    on.platform.put_link("shared", f"{team}/{job}/latest-{session[-30:-12]}".encode(), session.encode())
    for number in range(ticks):
        yield
        path = on.rotate(raylet, keep=3, packed=False)
        ends = None if number == ticks - 1 else on.tick.just_now
        raylet = on.more(raylet, "plain", on.size(), path=path, at_ns=ends)


def pods(on: Cluster, namespace: str, team: str, job: str, *, ticks: int = 3, workers: int = 2) -> Job:
    """Containers' logs, rotated by kubelet: the newest rotation stays plain, the ones before are compressed."""
    uid = f"{on.word('0123456789abcdef')}-8f1e-4f6b-9a0b-{on.word('0123456789abcdef', 12)}"
    logs = [
        on.log(
            "pods", f"{namespace}_{job}-worker-{number}_{uid}/pytorch/0.log", "container", on.size(), team=team,
            job=job, at_ns=on.tick.just_now, keep_open=True,
        )
        for number in on.many(workers)
    ]  # fmt: skip
    for number in range(ticks):
        yield
        is_last = number == ticks - 1
        ends = None if is_last else on.tick.just_now
        for at, log in enumerate(logs):
            path = on.rotate_by_date(log, dash=".%Y%m%d-%H0000")
            logs[at] = on.more(log, "container", on.size(), path=path, at_ns=ends, fails=is_last)


def hydra(on: Cluster, team: str, job: str, *, fails: bool = False) -> Job:
    """Folders of date and time; the job's name is the file's."""
    folder = f"{team}/{job}/outputs/{stamp(on.tick.at(0.2), '%Y-%m-%d/%H-%M-%S').decode()}"
    on.log("shared", f"{folder}/train.log", "plain", on.size(), team=team, job=job, fails=fails)
    on.platform.put_foreign("shared", f"{folder}/.hydra/config.yaml".encode(), b"lr: 0.1\n", at_ns=on.tick.at(0.2))
    yield


def lightning(on: Cluster, team: str, job: str) -> Job:
    """Version 0 once more: its folder looks empty to whoever counts versions."""
    path = f"{team}/{job}/lightning_logs/version_0/metrics.csv"
    log = on.log("shared", path, "plain", on.size(2 * KIB), team=team, job=job, kind="metrics")
    yield
    if log.is_here:  # a new metric: the whole file again, with another head
        text = b"epoch,step,loss,%s\n" % on.word().encode() + on.lines("plain", 3 * KIB, at_ns=on.tick.at(0.4))
        on.platform.rewrite(log, text, at_ns=on.tick.at(0.4))
    yield


# --- by hand ----------------------------------------------------------------------------------------------------------


def evals(on: Cluster, team: str, job: str, *, count: int = 15, fails: bool = False) -> Job:
    for number in on.many(count):
        on.log(
            "shared", f"{team}/{job}/eval_{on.tick.number:02}_{number}.log", "evaluation", on.size(1 * KIB), team=team,
            job=job, kind="eval", fails=fails and number == 3,
        )  # fmt: skip
    yield


def metrics(on: Cluster, team: str, job: str, *, count: int = 3, size: int = 6 * KIB, random: bool = False) -> Job:
    """JSON lines; ``random`` ones hardly get smaller."""
    for number in on.many(count):
        path = f"{team}/{job}/metrics_{on.tick.number:02}_{number}.jsonl"
        if not random:
            on.log("shared", path, "json", on.size(size), team=team, job=job, kind="metrics")
            continue
        at = on.tick.at(on.share())
        text = b"".join(b'{"embedding": "%s"}\n' % on.noise(90).hex().encode() for _ in range(size // 200))
        on.platform.write("shared", path.encode(), text, at_ns=at, team=team, job=job, kind="metrics")
    yield


def talk(on: Cluster, team: str, job: str) -> Job:
    """What a change of class rules is about: gradients that overflow, and NCCL's talk, in files of their own."""
    for kind, name in (("grad", "grad_overflow"), ("nccl", "nccl_debug")):
        on.log(
            "shared", f"{team}/{job}/{name}_{on.tick.number:02}.log", "rank", on.size(), team=team, job=job, kind=kind,
            fails=kind == "grad",
        )  # fmt: skip
    yield


def burst(on: Cluster, team: str, job: str, *, files: int, size: int, live_for: int = 0, source: str = "shared") -> Job:
    """A sweep that writes far more than usual; ``live_for`` ticks its writers keep their files."""
    at = on.tick.just_now if live_for else None
    logs = [
        on.log(
            source, f"{team}/{job}/rank_{rank}.out" if source == "shared" else f"{team}/{job}-{9000 + rank}.out",
            "rank", size, team=team, job=job if source == "shared" else f"{job}-{9000 + rank}",
            rank=rank if source == "shared" else None, at_ns=at, keep_open=live_for > 0,
        )
        for rank in on.many(files)
    ]  # fmt: skip
    for number in range(live_for):
        yield
        is_last = number == live_for - 1
        logs = [on.more(log, "rank", 300, at_ns=None if is_last else on.tick.just_now) for log in logs]
    yield


def pretrain(on: Cluster, team: str, job: str, *, ticks: int) -> Job:
    """A job of many days with one log, cut by copytruncate every second tick, its copies named by the hour."""
    log = on.log(
        "shared", f"{team}/{job}/main_log.txt", "megatron", on.size(8 * KIB), team=team, job=job,
        at_ns=on.tick.just_now, keep_open=True,
    )  # fmt: skip
    for number in range(ticks):
        yield
        if number % 2:
            at = on.tick.at(0.3)
            copy = log.path + stamp(at, "-%Y%m%d%H")
            _, log = on.platform.copy_and_truncate(log, copy, at_ns=at)
        log = on.more(log, "megatron", on.size(6 * KIB), at_ns=on.tick.just_now, fails=number == 4)
    on.platform.finish(log)


def odd_names(on: Cluster, team: str, job: str) -> Job:
    """Names as people give them, and as disks keep them."""
    names = (
        b"r\xe9sum\xe9_%d.log", "训练日志-%d.txt".encode(), b"download Thu %d + retry=2.log", b"-rf_%d.log",
        b"two\nlines_%d.log", b"a'b\"c_%d.log",
    )  # fmt: skip
    for name in names:
        path = f"{team}/{job}/".encode() + name % on.tick.number
        on.log("shared", path, "plain", on.size(1 * KIB), team=team, job=job, mode=0o644 if b"a'b" in name else 0o640)
    yield


def people(on: Cluster, team: str, job: str) -> Job:
    """What users do by hand: rename, delete, cut, link, write on."""

    def path(name: str) -> str:
        return f"{team}/{job}/{name}.log"

    names = ("renamed", "deleted", "cut", "linked", "moved", "continued", "twins")
    logs = {name: on.log("shared", path(name), "plain", on.size(), team=team, job=job) for name in names}
    twin = path("twins_copy").encode()
    on.platform.link(logs["twins"], twin)  # before anybody saw it: neither name is a log
    yield
    on.platform.rename(logs["renamed"], path("renamed_by_hand").encode())
    on.platform.delete(logs["deleted"])
    cut = on.platform.cut(logs["cut"], at_ns=on.tick.at(0.3))
    on.more(cut, "plain", on.size())
    on.platform.link(logs["linked"], path("second_name").encode())
    on.platform.rename(logs["moved"], path("old/moved").encode())
    on.more(logs["continued"], "plain", on.size(), fails=True)
    yield
    yield
    on.platform.unlink_name(logs["linked"], path("second_name").encode())
    on.platform.unlink_name(logs["twins"], twin)
    yield


def not_logs(on: Cluster, team: str, job: str) -> Job:
    """Checkpoints, records, half-written files, a pipe, links that lead nowhere and round in circles."""
    at, put = on.tick.at(0.5), on.platform.put_foreign
    for name in (
        "checkpoints/step_100.pt", "checkpoints/notes.log", "model.pt", "events.out.tfevents.1741774210.gpu-1.4711.0",
        "profiler.log", "train.log.tmp", ".train.log.swp", "merges.txt",
    ):  # fmt: skip
        put("shared", f"{team}/{job}/{name}".encode(), on.noise(6000), at_ns=at)
    put("shared", f"{team}/{job}/checkpoints/text.log".encode(), b"kept beside a checkpoint\n", at_ns=at)
    on.platform.put_link("shared", f"{team}/{job}/latest.out".encode(), b"gone-4711.out")
    on.platform.put_link("shared", f"{team}/{job}/up".encode(), b"..")
    on.platform.put_pipe("shared", f"{team}/{job}/stdin.log".encode())
    yield


def stranger(on: Cluster, team: str, job: str) -> Job:
    """A team that policy does not know: reported, and left alone."""
    on.log("shared", f"{team}/{job}/train.log", "plain", on.size(), team=team, job=job)
    yield
