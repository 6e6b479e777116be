"""What a layout is: a function from a folder to a reader of the names in it, with samples that are its tests.

A folder comes as its components below the ``under`` part, with the labels already known; None means that the layout
claims nothing there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from lifecycle.policy.template import STREAMS

Parts: TypeAlias = tuple[bytes, ...]
Known: TypeAlias = Collection[str]


class NameRead(NamedTuple):
    """What a file name says. Raw bytes for what came out of the name; ``left`` is the name for class patterns."""

    left: bytes
    job: bytes | None = None
    node: bytes | None = None
    rank: int | None = None
    stream: str = ""
    attempt: bytes | None = None
    extra: tuple[tuple[str, bytes], ...] = ()
    team: bytes | None = None


NameReader: TypeAlias = Callable[[bytes], NameRead | None]


class FolderRead(NamedTuple):
    """What a folder says to a layout that claims there, and how the names in it are read."""

    read_name: NameReader
    left: Parts
    team: bytes | None = None
    job: bytes | None = None
    node: bytes | None = None
    rank: int | None = None
    attempt: bytes | None = None
    extra: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A path below the ``under`` part, and the labels that it gives as ``label=value`` words; '' means not claimed."""

    path: str
    labels: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    name: str
    says: str  # one line for help and documentation
    enter: Callable[[Parts, Known], FolderRead | None]
    samples: tuple[Sample, ...]
    extra_labels: tuple[str, ...] = ()
    is_default: bool = True  # False: only where a source names it


TEXT_ENDINGS: Final = (b".log", b".out", b".err", b".txt", b".jsonl", b".ndjson")
_STD: Final = re.compile(rb"(?<![A-Za-z])std(out|err)(?![A-Za-z])")
LOCAL_RANK: Final = (("rank_scope", b"local"),)


def read_stream(name: bytes) -> str:
    if b"std" in name:
        match = _STD.search(name)
        if match is not None:
            return STREAMS[match[1]]
    return "stderr" if name.endswith(b".err") else ""
