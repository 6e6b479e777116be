"""Files: scanning, archiving many small ones and a few large ones, on the disk and in memory; slow file systems."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import MIB, Result, Side, measure_pairs, run_shell
from benchmarks.slow import build_slow, slow_environment
from benchmarks.world import World, copy_tree, make_large_files, make_once, make_small_files, make_world, settle

_TAR = "tar -cf - logs | zstd -T0 -3 -q -o out.tar.zst && rm -rf logs"


def scan(work: Path, memory: Path | None, *, quick: bool, rounds: int) -> Iterator[Result]:
    """The tree is scanned twice before: its folders have signatures, and both sides find it in the page cache."""
    files = 25_600 if quick else 102_400
    tree = make_once(work / f"small-{files}", lambda root: make_small_files(root, files))
    world = make_world(work / "scan", tree)
    for _ in range(2):
        settle(world)
    find = "find logs -printf '%p %i %s %T@ %C@\\n' > seen.txt"
    inside: list[float] = []

    def ours() -> float:
        seconds, own = world.told("scan")
        inside.append(own)
        return seconds

    pair = measure_pairs(Side(work=ours), Side(work=lambda: run_shell(find, cwd=world.root)), rounds)
    world.remove()
    yield Result(
        name=f"scan an unchanged tree, {files:,} files", peer="find -printf", aim="≤ 3 ×",
        ours=pair.ours, theirs=pair.theirs, ratio=pair.ratio, is_met=pair.ratio <= 3,
        note="the whole command: start-up, a look at every page of the catalog, recording the scan",
    )  # fmt: skip
    own, ratio = pair.within(inside)
    yield Result(
        name="the same, without start-up", peer="find -printf", aim="≤ 3 ×", ours=own, theirs=pair.theirs, ratio=ratio,
        is_met=ratio <= 3,
    )  # fmt: skip


def small_files(work: Path, memory: Path | None, *, quick: bool, rounds: int) -> Iterator[Result]:
    """Both sides end with one durable or at least written copy and no originals; only ours verifies and records."""
    files = 6_400 if quick else 25_600
    tree = make_once(work / f"small-{files}", lambda root: make_small_files(root, files))
    for place, name in ((work, "disk"), (memory, "tmpfs")):
        if place is None:
            continue
        for is_scanned in (True, False):
            inside: list[float] = []
            pair = measure_pairs(_archiving(place, tree, is_scanned, inside), _taring(place, tree), rounds)
            yield Result(
                name=f"archive {files:,} small files, {name}, {'scanned before' if is_scanned else 'never scanned'}",
                peer="tar | zstd -T0 -3, rm -rf", aim="≤ 2 ×",
                ours=pair.ours, theirs=pair.theirs, ratio=pair.ratio, is_met=pair.ratio <= 2,
                note="`lifecycle run`: scan, plan, hash, pack, sync, verify, record, release",
            )  # fmt: skip
            own, ratio = pair.within(inside)
            yield Result(
                name="the same, without start-up", peer="tar | zstd -T0 -3, rm -rf", aim="≤ 2 ×", ours=own,
                theirs=pair.theirs, ratio=ratio, is_met=ratio <= 2,
            )  # fmt: skip


def _archiving(place: Path, tree: Path, is_scanned: bool, inside: list[float], **more: str) -> Side:
    root = place / "ours"

    def prepare() -> None:
        world = make_world(root, tree)
        settle(world, scan=is_scanned)

    def work() -> float:
        world = World(root=root)
        seconds, own = world.told("run", env=more)
        inside.append(own)
        if left := world.files_left():
            raise RuntimeError(f"{left} files were left in {world.logs}")
        world.remove()
        return seconds

    return Side(prepare=prepare, work=work)


def _taring(place: Path, tree: Path, **more: str) -> Side:
    root = place / "theirs"

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        copy_tree(tree, root / "logs")

    def work() -> float:
        seconds = run_shell(_TAR, cwd=root, env=more)
        shutil.rmtree(root)
        return seconds

    return Side(prepare=prepare, work=work)


def slow_files(work: Path, memory: Path | None, *, quick: bool, rounds: int) -> Iterator[Result]:
    """Every call on a file below one device waits 1 ms before it is made, for both sides alike: see ``slow``."""
    files = 1_600 if quick else 6_400
    name, peer, aim = (
        f"archive {files:,} small files, 1 ms a file operation",
        "tar | zstd -T0 -3, rm -rf",
        "≥ 5 × faster",
    )
    library = build_slow(work)
    if library is None or memory is None:
        yield Result(
            name=name, peer=peer, aim=aim, ours=None, theirs=None, ratio=None, note="needs a C compiler and a tmpfs"
        )  # fmt: skip
        return
    tree = make_once(work / f"small-{files}", lambda root: make_small_files(root, files))
    more = slow_environment(library, memory)
    pair = measure_pairs(_archiving(memory, tree, True, [], **more), _taring(memory, tree, **more), min(rounds, 3))
    yield Result(
        name=name, peer=peer, aim=aim, ours=pair.ours, theirs=pair.theirs, ratio=1 / pair.ratio, unit="s",
        is_met=pair.ratio <= 1 / 5, note="three pairs; simulated: the C library's calls wait; ratio: theirs by ours",
    )  # fmt: skip


def large_files(work: Path, memory: Path | None, *, quick: bool, rounds: int) -> Iterator[Result]:
    """Time and size: the peer compresses the same files; it neither hashes, verifies, records nor removes."""
    sizes = [64 * MIB] * 2 if quick else [512 * MIB, 512 * MIB, 256 * MIB, 256 * MIB]
    total = sum(sizes) // MIB
    tree = make_once(work / f"large-{total}", lambda root: make_large_files(root, sizes))
    for place, name in ((work, "disk"), (memory, "tmpfs")):
        if place is not None:
            title = f"archive {len(sizes)} large files, {total} MiB, {name}"
            yield from _large_files(place, tree, title, is_last=place is memory, rounds=rounds)


def errors_kept(work: Path, memory: Path | None, *, quick: bool, rounds: int) -> Iterator[Result]:
    """The same work with every line looked through: against the plain compressor, and against not looking."""
    place = memory or work
    sizes = [64 * MIB] * 2 if quick else [512 * MIB, 512 * MIB, 256 * MIB, 256 * MIB]
    total, count = sum(sizes) // MIB, 6_400 if quick else 25_600
    large = make_once(work / f"large-{total}", lambda root: make_large_files(root, sizes))
    small = make_once(work / f"small-{count}", lambda root: make_small_files(root, count))
    zstd = "find logs -type f -print0 | xargs -0 zstd -T0 -3 -q"
    pair = measure_pairs(_keeping(place, large), _shell_on(place, large, zstd), rounds)
    yield Result(
        name=f"archive {len(sizes)} large files, {total} MiB, errors kept", peer="zstd -T0 -3", aim="≤ 2 ×",
        ours=pair.ours, theirs=pair.theirs, ratio=pair.ratio, is_met=pair.ratio <= 2,
    )  # fmt: skip
    for tree, what in ((large, f"{len(sizes)} large files"), (small, f"{count:,} small files")):
        pair = measure_pairs(_keeping(place, tree), _keeping(place, tree, keeps_errors=False), rounds)
        yield Result(
            name=f"archive {what}, errors kept", peer="the same without", aim="–", ours=pair.ours,
            theirs=pair.theirs, ratio=pair.ratio,
        )  # fmt: skip


def _keeping(place: Path, tree: Path, *, keeps_errors: bool = True) -> Side:
    root = place / ("errors" if keeps_errors else "plain")

    def work() -> float:
        world = World(root=root)
        seconds = world.lifecycle("run")
        world.remove()
        return seconds

    return Side(prepare=lambda: settle(make_world(root, tree, keeps_errors=keeps_errors)), work=work)


def _shell_on(place: Path, tree: Path, command: str) -> Side:
    root = place / "theirs"

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        copy_tree(tree, root / "logs")

    return Side(prepare=prepare, work=lambda: run_shell(command, cwd=root))


def _large_files(place: Path, tree: Path, title: str, *, is_last: bool, rounds: int) -> Iterator[Result]:
    inside: list[float] = []
    stored: list[int] = []
    packed: list[int] = []
    mine, other = place / "ours", place / "theirs"

    def ours() -> float:
        world = World(root=mine)
        seconds, own = world.told("run")
        inside.append(own)
        stored.append(world.stored_bytes())
        world.remove()
        return seconds

    def theirs() -> float:
        seconds = run_shell("find logs -type f -print0 | xargs -0 zstd -T0 -3 -q", cwd=other)
        packed.append(sum(path.stat().st_size for path in other.rglob("*.zst")))
        return seconds

    def copy() -> None:
        shutil.rmtree(other, ignore_errors=True)
        other.mkdir()
        copy_tree(tree, other / "logs")

    pair = measure_pairs(
        Side(work=ours, prepare=lambda: settle(make_world(mine, tree))), Side(work=theirs, prepare=copy), rounds
    )
    shutil.rmtree(other)
    own, ratio = pair.within(inside)
    peer, aim = "zstd -T0 -3", "not slower"
    yield Result(
        name=title, peer=peer, aim=aim, ours=pair.ours, theirs=pair.theirs, ratio=pair.ratio, is_met=pair.ratio <= 1,
        note="ours also hashes, syncs, reads back, records and removes",
    )  # fmt: skip
    yield Result(
        name="the same, without start-up", peer=peer, aim=aim, ours=own, theirs=pair.theirs, ratio=ratio,
        is_met=ratio <= 1,
    )  # fmt: skip
    if is_last:
        size = stored[-1] / packed[-1]
        yield Result(
            name="the same: bytes stored", peer=peer, aim="not more", unit="MiB", ours=stored[-1] / MIB,
            theirs=packed[-1] / MIB, ratio=size, is_met=size <= 1,
        )  # fmt: skip
