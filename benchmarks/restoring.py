"""Restoring one segment out of an archive of 512 MiB: how many bytes of the archive are read for it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import MIB, Result, Side, measure_pairs, program, run_timed
from benchmarks.world import World, make_large_files, make_once, make_world, settle

_READ = re.compile(r"^(?:\d+ +)?(?:read|pread64|readv|preadv)\(\d+<(?P<path>[^>]*)>.* = (?P<bytes>\d+)$")


def restore_one(work: Path, memory: Path | None, *, quick: bool, rounds: int) -> Iterator[Result]:
    """One archive of 1,024 logs of 512 KiB (the smaller one: 128); the middle one is brought back."""
    files, size = (128 if quick else 1024), 512 * 1024
    name = f"restore 512 KiB out of an archive of {files * size // MIB} MiB: bytes read"
    peer, aim = "tar --zstd -x of one member", "20 × fewer"
    if shutil.which("strace") is None:
        yield Result(name=name, peer=peer, aim=aim, ours=None, theirs=None, ratio=None, note="not measured: no strace")
        return
    tree = make_once(work / f"mid-{files}", lambda root: _one_folder(root, files, size))
    world = make_world(work / "restore", tree, target="1GiB")
    settle(world)
    world.lifecycle("run")
    (archive,) = (world.root / "warm").rglob("*.tar.zst")
    path = f"vision/train-000/rank_{files // 2}.log"
    wanted = (tree / path).read_bytes()
    to = world.root / "back"

    def clear() -> None:
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()

    def theirs() -> float:
        return _bytes_read(["tar", "--zstd", "-xf", str(archive), "-C", str(to), f"shared/{path}"], archive, world)

    command = program("restore", "--path", str(world.logs / path), "--to", str(to))
    pair = measure_pairs(
        Side(work=lambda: _bytes_read(command, archive, world), prepare=clear),
        Side(work=theirs, prepare=clear),
        1 if quick else 2,
    )
    clear()
    seconds = run_timed(command, cwd=world.root)
    if (to / "shared" / path).read_bytes() != wanted:
        raise RuntimeError("what was restored differs")
    yield Result(
        name=name, peer=peer, aim=aim, ours=pair.ours / MIB, theirs=pair.theirs / MIB, ratio=1 / pair.ratio, unit="MiB",
        is_met=pair.ratio <= 1 / 20,
        note=f"two pairs; of the archive's file, counted with strace; the whole command takes {seconds:.2f} s",
    )  # fmt: skip
    world.remove()


def _one_folder(root: Path, files: int, size: int) -> Path:
    """Every file a log of one job and one day, so that all of them go into one archive."""
    spread = make_large_files(root / "spread", [size] * files, form="rank")
    folder = root / "vision" / "train-000"
    folder.mkdir(parents=True)
    for path in spread.rglob("*.log"):
        path.rename(folder / path.name)
    shutil.rmtree(spread)
    return root


def _bytes_read(command: list[str], archive: Path, world: World) -> float:
    """Bytes that a command and its children read of the archive. A file for each process: in a common one the lines of
    calls that overlap are torn apart, and a pipe of two processes seemed to read half of what it did."""
    traces = world.root / "traces"
    shutil.rmtree(traces, ignore_errors=True)
    traces.mkdir()
    calls = "trace=read,pread64,readv,preadv"
    run_timed(
        ["strace", "-ff", "-y", "-qq", "-s", "0", "-e", calls, "-o", str(traces / "of"), *command], cwd=world.root
    )
    total = 0
    for trace in traces.iterdir():
        for line in trace.read_text(errors="replace").splitlines():
            found = _READ.match(line)
            if found and found["path"] == str(archive):
                total += int(found["bytes"])
    return float(total)
