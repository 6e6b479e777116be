"""How full the file systems under places are: statvfs, or the command of a source where statvfs cannot say.

Knows devices, system calls and one program's output. Never knows marks or quotas. A file system under several places
is one. On a parallel file system the sum hides the one target that is full and stops every write: there ``free_space``
names a program that prints its figures, one line of whole numbers

    TOTAL_BYTES FREE_BYTES [TOTAL_INODES FREE_INODES]

It runs without a shell, with no input, for at most a minute, also in a preview: it must change nothing. If it fails, is
too slow or prints anything else, nothing is known, and statvfs is not taken in its place.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from lifecycle.model import TierName
from lifecycle.plan.pressure import FileSystem

TIMEOUT_SECONDS: Final = 60.0
_MAX_OUTPUT: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A place whose file system is asked for."""

    place_id: int
    name: str
    tier: TierName
    root: str
    command: tuple[str, ...] = ()


class _Space(NamedTuple):
    total_bytes: int = 0
    free_bytes: int = 0
    total_inodes: int = 0
    free_inodes: int = 0
    unknown: str = ""


def measure_space(grounds: Sequence[Ground]) -> tuple[FileSystem, ...]:
    """Every file system once, in the order of its first place. Raises nothing: what cannot be had is unknown."""
    groups: dict[int, list[Ground]] = {}
    for number, ground in enumerate(grounds):
        try:
            device = os.stat(ground.root).st_dev
        except OSError:
            device = -1 - number  # on its own: what lies there is not known
        groups.setdefault(device, []).append(ground)
    answers: dict[tuple[str, ...], _Space] = {}
    found = [_file_system(group, _ask(group, answers)) for group in groups.values()]
    return _named(found, {ground.place_id: ground.name for ground in grounds})


def _ask(group: Sequence[Ground], answers: dict[tuple[str, ...], _Space]) -> _Space:
    """Of several commands for one file system the one that says it is fuller counts."""
    commands = dict.fromkeys(ground.command for ground in group if ground.command)
    for command in commands:
        if command not in answers:
            answers[command] = run_command(command)
    said = [answers[command] for command in commands]
    if not said:
        return _statvfs(group[0].root)
    unknown = next((space for space in said if space.unknown), None)
    return unknown or min(said, key=lambda space: space.free_bytes / space.total_bytes)


def _statvfs(root: str) -> _Space:
    try:
        found = os.statvfs(root)
    except OSError as error:
        return _Space(unknown=f"{root}: {error.strerror}")
    # As ``df`` has it: what is kept for root is neither used nor free, so that both agree on how full it is.
    usable = found.f_blocks - found.f_bfree + found.f_bavail
    return _Space(usable * found.f_frsize, found.f_bavail * found.f_frsize, found.f_files, found.f_favail)


def run_command(command: Sequence[str], *, timeout: float = TIMEOUT_SECONDS) -> _Space:
    """The figures that a program prints; unknown with a reason when it does not."""
    import subprocess  # few policies ask a program, and every command would pay for the import

    name = os.path.basename(command[0])
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except (OSError, ValueError) as error:
        return _Space(unknown=f"free_space command {name}: {getattr(error, 'strerror', None) or error}")
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and whatever it has started
            process.communicate()
            return _Space(unknown=f"free_space command {name}: no answer within {timeout:.0f} s")
    if process.returncode != 0:
        said = err[:200].decode(errors="replace").strip()
        return _Space(unknown=f"free_space command {name}: exit {process.returncode}{': ' if said else ''}{said}")
    return parse_space(out, name)


def parse_space(out: bytes, name: str) -> _Space:
    """The one line of a ``free_space`` command."""
    words = out.split() if len(out) <= _MAX_OUTPUT and len(out.strip().splitlines()) == 1 else []
    if len(words) not in (2, 4) or not all(word.isdigit() for word in words):
        said = out[:60].decode(errors="replace").strip()
        return _Space(unknown=f"free_space command {name} printed {said!r}, not TOTAL_BYTES FREE_BYTES [INODES FREE]")
    total, free, *inodes = map(int, words)
    total_inodes, free_inodes = inodes or (0, 0)
    if free > total or not total or free_inodes > total_inodes:
        said = " ".join(map(str, (total, free, *inodes)))
        return _Space(unknown=f"free_space command {name}: {said} cannot be: more is free than there is")
    return _Space(total, free, total_inodes, free_inodes)


def _file_system(group: Sequence[Ground], space: _Space) -> FileSystem:
    tiers = tuple(sorted({ground.tier for ground in group}, key=lambda tier: tier.warmth))
    return FileSystem(
        name="+".join(tiers),
        tiers=tiers,
        place_ids=tuple(ground.place_id for ground in group),
        total_bytes=space.total_bytes,
        free_bytes=space.free_bytes,
        total_inodes=space.total_inodes,
        free_inodes=space.free_inodes,
        unknown=space.unknown,
    )


def _named(found: Sequence[FileSystem], names: dict[int, str]) -> tuple[FileSystem, ...]:
    """``hot`` where it is the only one of that name, else ``hot nvme`` by its first place."""

    times: dict[str, int] = {}
    for each in found:
        times[each.name] = times.get(each.name, 0) + 1
    return tuple(
        replace(each, name=f"{each.name} {names[each.place_ids[0]]}") if times[each.name] > 1 else each
        for each in found
    )
