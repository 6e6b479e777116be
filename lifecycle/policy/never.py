"""Names that are nobody's finished log, whatever a layout or an own pattern says: one table, ``NEVER``.

A row is a test and its sample names, which are its tests. Pure: names only, never a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lifecycle.names import ERRORS_ENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Never:
    """``holds`` says of a name whether it is one of these; ``look_alikes`` are names that must not be."""

    says: str
    holds: Callable[[bytes], bool]
    samples: tuple[str, ...]
    look_alikes: tuple[str, ...] = ()


# Half-written by editors, copy tools, rotators and download tools.
_TEMPORARY: Final = (b".tmp", b"~", b".swp", b".swo", b".part", b".partial", b".filepart", b".crdownload", b".lock")
_BINARY_START: Final = b"events.out.tfevents."
_BINARY_END: Final = (b".wandb", b".wandb.synced")
# fluentd's live buffers, which it still reads and appends to: buffer.HEX.log and, by older path settings,
# NAME.b5a1….log while it is filled and NAME.q5a1….log while it is sent. Each has a .meta beside it.
_BUFFER: Final = re.compile(rb"(?:buffer\.[bq]?[0-9a-f]{16,}|.+\.[bq][0-9a-f]{32})(?:\.[a-z0-9]{1,8})?(?:\.meta)?\Z")
_SHORTEST_BUFFER: Final = len("buffer.") + 16


def _is_hidden(name: bytes) -> bool:
    return name.startswith(b".")


def _is_temporary(name: bytes) -> bool:
    return name.endswith(_TEMPORARY)


def _is_binary_record(name: bytes) -> bool:
    return name.startswith(_BINARY_START) or name.endswith(_BINARY_END)


def _is_companion(name: bytes) -> bool:
    return name.endswith(ERRORS_ENDING)


def _is_live_buffer(name: bytes) -> bool:
    may_be = name.startswith(b"buffer.") or b".b" in name or b".q" in name
    return may_be and _BUFFER.match(name) is not None


NEVER: Final = (
    Never(says="hidden names", holds=_is_hidden, samples=(".train.log.swp", ".nfs0001.log"), look_alikes=("a.log",)),
    Never(
        says="half-written names of editors, copy tools and rotators",
        holds=_is_temporary,
        samples=("train.log.tmp", "0.log.20260312-101010.gz.tmp", "train.log~", "train.log.part", "train.log.lock"),
        look_alikes=("tmp.log", "lock.log"),
    ),
    Never(
        says="binary records: TensorBoard events, which a restart continues beside, and wandb's, which a sync needs",
        holds=_is_binary_record,
        samples=("events.out.tfevents.1741774210.gpu-1.4711.0", "run-x7k2p.wandb", "run-x7k2p.wandb.synced"),
        look_alikes=("events.out", "wandb.log"),
    ),
    Never(
        says="error lines kept of a log, which carry its name: one that somebody restored is not kept again",
        holds=_is_companion,
        samples=("rank_3.log#errors", "rank_3.log.1.gz#errors"),
        look_alikes=("errors.log", "rank_3.log#errors.log"),
    ),
    Never(
        says="live buffers of fluentd and what describes them",
        holds=_is_live_buffer,
        samples=(
            "buffer.b5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log",
            "buffer.q5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log.meta",
            "app.b5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log",
            "buffer.b5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.buf.meta",
        ),
        look_alikes=("buffer.log", "buffer.20260312.log", "app.20260312_0.log", "replay-buffer.rank_3.log"),
    ),
)
_STARTS: Final = (b".", _BINARY_START)
_ENDS: Final = (*_TEMPORARY, *_BINARY_END, ERRORS_ENDING)


def is_never_claimed(name: bytes) -> bool:
    """Whether any row of ``NEVER`` holds; asked of every new file, so that it is one look at either end."""
    if name.startswith(_STARTS) or name.endswith(_ENDS):
        return True
    return len(name) >= _SHORTEST_BUFFER and _is_live_buffer(name)
