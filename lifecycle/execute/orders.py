"""What the parent asks of a worker and what comes back: plain values that cross a process boundary.

A worker knows paths, names and bytes. It never sees the catalog, policy or the clock; what it may touch is
named in its order. Members are named tuples: an order has thousands of them, and dataclasses are slow to send.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lifecycle.model import Content, Labels
from lifecycle.ports import TierSpec


class OriginalFile(NamedTuple):
    """One original as the catalog knows it: where it is and what it must still be. The front part of a
    ``JournalMember``."""

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
    content: Content = Content.UNKNOWN
    last_write_ns: int | None = None
    digest: bytes | None = None  # of the stored copy; known when the order is a release

    @property
    def path(self) -> bytes:
        return self.directory + b"/" + self.name if self.directory else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTarget:
    """The object that an order makes: its key, the temporary name the journal knows, who may read it."""

    tier: TierSpec
    key: str
    temporary: str
    mode: int
    gid: int
    zstd_level: int
    threads: int
    team: str
    class_name: str
    day: int
    catalog_id: str
    place_uid: str
    created_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOrder:
    """Read these originals below ``root`` and write them into one archive."""

    batch_id: int
    root: str
    mounts: tuple[bytes, ...] = ()
    source: str  # the source's name, first part of member names
    place_uid: str
    target: ArchiveTarget
    members: tuple[OriginalFile, ...]
    single: bool  # one large segment as its own .zst
    companions: ArchiveTarget | None = None  # where their error lines go; None: they are not looked for
    looked_through: frozenset[int] = frozenset()  # members whose error lines are kept already


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArchive:
    """One archive to read from when members move to a colder one."""

    archive_id: int
    tier: TierSpec
    key: str
    size_bytes: int
    live: tuple[tuple[int, bytes], ...]  # (segment as the manifest calls it, digest that its content must have)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepackOrder:
    """Read the live members of these archives and write them into one new archive."""

    batch_id: int
    target: ArchiveTarget
    sources: tuple[StoredArchive, ...]
    single: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractOrder:
    """Look through these originals below ``root``, or these members of archives, and keep the errors of them."""

    batch_id: int
    companions: ArchiveTarget
    root: str = ""
    mounts: tuple[bytes, ...] = ()
    source: str = ""
    place_uid: str = ""
    class_name: str
    members: tuple[OriginalFile, ...] = ()
    sources: tuple[StoredArchive, ...] = ()
    contents: tuple[tuple[int, Content], ...] = ()  # of the members of ``sources`` that are not plain text


class PackedMember(NamedTuple):
    segment_id: int  # as the manifest calls it: a companion is minus its source
    offset: int  # of its content in the archive's uncompressed stream
    size_bytes: int
    digest: bytes
    share_bytes: int  # its part of the archive's bytes


class Trouble(StrEnum):
    CHANGED = "changed"
    OPEN = "open"
    VANISHED = "vanished"
    REPLACED = "replaced"  # what was stored is gone: the name is another file's, or has another content
    UNREADABLE = "unreadable"
    CLASH = "clash"  # its name is in the archive already, or cannot be in one
    GIVEN_UP = "given_up"  # another member of the archive changed half-way, so that nothing was stored
    IN_THE_WAY = "in_the_way"  # another file took the name; the renamed one stays in our folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One member that was left alone, and why."""

    segment_id: int
    trouble: Trouble
    detail: str


class PackedCompanion(NamedTuple):
    source_id: int
    offset: int
    size_bytes: int
    digest: bytes
    share_bytes: int


class Companions(NamedTuple):
    """What was looked through; with ``size_bytes`` 0 there was nothing to keep, and no object."""

    size_bytes: int
    raw_bytes: int
    digest: bytes
    manifest_digest: bytes
    form: str
    members: tuple[PackedCompanion, ...]
    blocks: tuple[tuple[int, int], ...] = ()  # (segment, error blocks) of each that was looked through
    failed: tuple[Refusal, ...] = ()  # those that could not be


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractResult:
    batch_id: int
    companions: Companions
    refused: tuple[Refusal, ...] = ()
    damage: str = ""  # of an archive: it was read and is not what was recorded
    damaged_archive: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PackResult:
    """A durable, verified, published archive; or, with ``size_bytes`` 0, nothing at all was stored."""

    batch_id: int
    size_bytes: int
    raw_bytes: int
    digest: bytes
    manifest_digest: bytes
    form: str
    members: tuple[PackedMember, ...]
    refused: tuple[Refusal, ...]
    damage: str = ""  # of a source archive: it was read and is not what was recorded
    damaged_archive: int = 0
    companions: Companions | None = None  # None: nobody asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOrder:
    """Remove these originals below ``root`` if they are still the same files and nobody writes them."""

    batch_id: int
    root: str
    mounts: tuple[bytes, ...] = ()
    members: tuple[OriginalFile, ...]
    park: bool  # writers cannot be seen: leave the renamed file in our folder until ``finish``
    rested: bool = False  # it waited for release_after: a file whose writers cannot be seen may go
    finish: bool = False  # members are already in our folder (parked long enough, or a crash left them there)
    after_crash: bool = False  # an original may be gone by our own hand, and another file have its name and inode


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseResult:
    batch_id: int
    removed: tuple[int, ...]
    parked: tuple[int, ...]
    refused: tuple[Refusal, ...]
