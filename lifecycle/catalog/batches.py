"""What journal, executor and recovery say to each other about batches: values only. Of members there are millions in a
large run: those are named tuples, which are made and sent to a worker at a tenth of a dataclass's cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lifecycle.model import ActionKind, BatchState, Content, Labels, Original, Outcome, RuleRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """Everything one attempt may leave behind, and what recovery needs to undo, adopt or finish it."""

    key: str = ""  # of the object it makes
    temporary: str = ""
    tier: str = ""  # where the object goes
    team: str = ""
    class_name: str = ""
    day: int = 0
    gid: int = 0
    mode: int = 0
    zstd_level: int = 0
    form: str = ""
    archive_ids: tuple[int, ...] = ()  # that it reads from, or removes
    policy_digest: str = ""
    # The companions that are stored beside it, in an archive of their own:
    errors_key: str = ""
    errors_temporary: str = ""
    errors_class: str = ""
    # A purge ahead of its time takes more than what is marked and past its grace:
    marked_until_ns: int = 0  # marks made by then
    written_until_ns: int = 0  # and what was last written by then, marked or not

    @classmethod
    def parse(cls, body: str) -> Intent:
        fields = json.loads(body)
        fields["archive_ids"] = tuple(fields["archive_ids"])
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHead:
    id: int
    run_id: int
    action: ActionKind
    place_id: int
    target_place_id: int | None
    state: BatchState
    intent: Intent
    created_ns: int


class JournalMember(NamedTuple):
    """A member as segments and batch_members know it together: enough to read, release or put it back.

    A tuple, since a run makes one for every file that it moves; ``execute.orders.OriginalFile`` is its front part.
    """

    segment_id: int
    directory: bytes
    name: bytes
    inode: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    allocated_bytes: int
    mode: int
    uid: int
    gid: int
    labels: Labels
    content: Content
    last_write_ns: int | None
    digest: bytes | None
    original: Original
    archive_id: int | None
    outcome: str | None
    companion_of: int | None = None
    error_blocks: int | None = None


class StoredMember(NamedTuple):
    """What a packer reports of one member of the new archive."""

    segment_id: int  # of a companion that is stored for the first time: its source's
    offset: int  # of its content in the archive's uncompressed stream
    digest: bytes  # BLAKE3 of its content
    share_bytes: int  # its part of the archive's bytes; the shares of all members add up to them


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """What a packer reports of the new archive."""

    size_bytes: int
    raw_bytes: int
    digest: bytes
    manifest_digest: bytes
    form: str
    members: tuple[StoredMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a worker reports of the members that it looked through for errors, and of the companions that it stored.

    ``sizes`` go along with the members of ``stored``, whose segments are the companions' sources.
    """

    blocks: Mapping[int, int]  # error blocks, by segment that was looked through
    rule: RuleRef  # that asks for it
    stored: StoredObject | None = None  # None: no errors in any
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A member that was left alone; ``keep_copy`` when its stored copy stays the good one."""

    segment_id: int
    outcome: Outcome
    detail: str
    keep_copy: bool = False
    reopen: bool = False  # the file differs from what the catalog knows: scan it anew
    leave: bool = False  # it has its name again beside its stored copy: the next scan says what it is
