"""The words of the design as frozen values. Knows no SQL, no file system, no YAML and no clock.

Times inside values are integer nanoseconds since 1970 UTC (``*_ns``), because that is what file systems and the
catalog speak; the flow passes ``now`` as an aware datetime and converts at the edge with ``units.to_ns``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

UNKNOWN_TEAM = "unknown"  # the team of a source whose layout reads none
OUR_FOLDER = b".lifecycle"  # at the root of every place: marker, temporary files, files renamed for release


class TierName(StrEnum):
    """In order: a transition only ever goes to the right."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"

    @property
    def warmth(self) -> int:
        """0 for hot, 2 for cold."""
        return _TIER_ORDER.index(self)


_TIER_ORDER = (TierName.HOT, TierName.WARM, TierName.COLD)


class PlaceKind(StrEnum):
    SOURCE = "source"
    TIER = "tier"


class Original(StrEnum):
    """What is known of a segment's original in its source."""

    OPEN = "open"  # a writer may have it
    SETTLED = "settled"  # quiet long enough, and no writer seen
    RELEASED = "released"  # removed by us after its stored copy was committed
    PARKED = "parked"  # renamed into our folder, its stored copy committed; waits for release_after to pass
    MISSING = "missing"  # not seen in the last complete scan
    LOST = "lost"  # missing in three complete scans over seven days
    REPLACED = "replaced"  # its writer truncated or rewrote it; the new content is another segment
    PURGED = "purged"  # removed by us because its retention ended
    UNCLAIMED = "unclaimed"  # policy no longer takes it for a log: it stays where it is and is nobody's business here

    @property
    def is_present(self) -> bool:
        return self in (Original.OPEN, Original.SETTLED)


class Content(StrEnum):
    UNKNOWN = "unknown"
    EMPTY = "empty"
    TEXT = "text"
    GZIP = "gzip"
    ZSTD = "zstd"
    XZ = "xz"
    BZIP2 = "bzip2"
    BINARY = "binary"  # foreign: counted, never acted on

    @property
    def is_compressed(self) -> bool:
        return self in (Content.GZIP, Content.ZSTD, Content.XZ, Content.BZIP2)


class ActionKind(StrEnum):
    TRANSITION = "transition"  # one segment, or one archive, to a colder tier
    MERGE = "merge"  # several small segments into one archive in a colder tier
    MARK = "mark"
    UNMARK = "unmark"  # a mark whose reason went away: policy lengthened, job wrote again, hold
    PURGE = "purge"
    RELEASE = "release"  # an original whose committed stored copy is all that is needed: no I/O but the removal
    REWRITE = "rewrite"  # members that stay leave an archive whose other members may go
    COPY = "copy"  # a stored copy early, while the original stays (``copy_after``)
    EXTRACT = "extract"  # error lines kept of what nobody looked through when it was stored, or of what never is

    @property
    def reads_content(self) -> bool:
        """Whether whole segments are read: the work that is worth worker processes."""
        return self.moves or self is ActionKind.EXTRACT

    @property
    def moves(self) -> bool:
        """Whether it makes an archive. A copy leaves the originals where they are."""
        return self in (ActionKind.TRANSITION, ActionKind.MERGE, ActionKind.COPY, ActionKind.REWRITE)


class Outcome(StrEnum):
    """How one member of a batch ended."""

    RELEASED = "released"  # moved: stored copy committed and original (or older archive) gone
    PARKED = "parked"  # moved; the original waits renamed for release_after to pass
    MARKED = "marked"
    UNMARKED = "unmarked"
    PURGED = "purged"
    COPIED = "copied"  # stored, and its original stays
    EXTRACTED = "extracted"  # looked through, its error lines kept if it has any
    KEPT = "kept"  # changed, open, held, clashing: left alone, its stored copy is surplus
    FAILED = "failed"  # could not be read or written


class BatchState(StrEnum):
    INTENDED = "intended"
    STORED = "stored"  # of a purge: the event that says what goes is durable
    COMMITTED = "committed"
    CLOSED = "closed"
    ABANDONED = "abandoned"


class ArchiveState(StrEnum):
    LIVE = "live"
    SUPERSEDED = "superseded"  # every live member has a newer stored copy; the object may go
    RECORDED = "recorded"  # the event that says it goes is durable, the object may or may not be there
    REMOVED = "removed"
    QUARANTINED = "quarantined"  # damaged: nothing is read from it or removed until somebody looks


class ReasonCode(StrEnum):
    """Why something is done, or why not. One text for each in ``lifecycle.plan.reasons``."""

    AGED = "aged"  # last write over the limit
    TOO_YOUNG = "too_young"
    EXPIRED = "expired"
    GRACE_OVER = "grace_over"
    IN_GRACE = "in_grace"
    NOT_SETTLED = "not_settled"
    JOB_STILL_WRITES = "job_still_writes"
    FIRST_SEEN_RECENTLY = "first_seen_recently"
    AGE_UNKNOWN = "age_unknown"
    NOT_IN_REQUIRED_TIER = "not_in_required_tier"
    ARCHIVE_SHARED = "archive_shared"  # the archive still has members whose time has not come
    NO_COLDER_TIER = "no_colder_tier"
    NEVER_EXPIRES = "never_expires"
    SET_ASIDE = "set_aside"
    STAY = "stay"  # restored a short while ago
    STAY_OVER = "stay_over"
    UNLISTED_TEAM = "unlisted_team"
    UNKNOWN_CLASS = "unknown_class"  # policy no longer names it
    BRAKED = "braked"  # too much of the team is newly past its retention: a person accepts it first
    RECLASSIFYING = "reclassifying"  # policy's class rules changed, and this place is not gone through yet
    RETENTION_CHANGED = "retention_changed"
    MISSING = "missing"
    QUARANTINED = "quarantined"
    HARD_LINKED = "hard_linked"
    ROTATED_OUT = "rotated_out"  # beyond the newest of its rotation set
    SMALL_ARCHIVES = "small_archives"
    BESIDE_HELD = "beside_held"  # its archive is kept for a held member, and too little of it would go
    HELD_MEMBERS = "held_members"
    UNLOOKED_MEMBERS = "unlooked_members"  # what they say of errors could not be read, and the others go without them
    HELD = "held"  # somebody asked that it be kept, whatever its age
    COPY_DUE = "copy_due"
    NOT_EXTRACTED = "not_extracted"  # policy keeps its error lines, and nobody has looked for them yet
    # Relief: before its time, because room is needed.
    OVER_HIGH = "over_high"
    OVER_RESERVE = "over_reserve"
    OVER_INODES = "over_inodes"
    GROWING = "growing"  # it would be over before the next run
    OVER_QUOTA = "over_quota"
    EXPIRED_EARLY = "expired_early"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRef:
    """Where a figure of policy stands: shown as ``platform.yaml:12``."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One decision's why: the rule, the present value and the value it needs, for people and machines."""

    code: ReasonCode
    rule: RuleRef | None = None
    current: str = ""
    required: str = ""
    until_ns: int | None = None  # when the answer changes by time alone, if it does


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What path, source and host say of a segment. Text in the form of ``names.show_name``."""

    team: str = UNKNOWN_TEAM
    job: str = ""
    node: str = ""
    rank: int | None = None
    stream: str = ""  # stdout, stderr or nothing
    attempt: str = ""  # run or restart number, as the layout writes it
    extra: tuple[tuple[str, str], ...] = ()


class Identity(NamedTuple):
    """The same file, on one device: a release compares exactly this. Device numbers count within one run only."""

    inode: int
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One log file or one rotation of one, as the catalog knows it."""

    id: int
    place_id: int
    directory: bytes  # relative to the place's root, no leading or trailing slash, b"" for the root itself
    name: bytes
    labels: Labels
    class_name: str
    class_rule: RuleRef
    layout: str
    content: Content
    identity: Identity
    allocated_bytes: int
    ctime_ns: int
    mode: int
    uid: int
    gid: int
    last_write_ns: int | None  # None: age unknown
    first_seen_ns: int
    original: Original
    tier: TierName | None  # where it is read from: hot while the original is there; None when gone
    archive_id: int | None
    archive_tier: TierName | None
    stored_bytes: int  # its share of the archive, 0 without one
    digest: bytes | None
    job_id: int
    job_last_write_ns: int
    marked_ns: int | None = None
    purge_after_ns: int | None = None
    stay_until_ns: int | None = None
    set_aside_until_ns: int | None = None
    problems: int = 0
    hold_id: int | None = None  # a standing hold that covers it
    claimed_class: str | None = None  # policy's, where it keeps shorter than ``class_name`` and is not accepted yet
    companion_of: int | None = None  # the segment whose error lines it holds
    error_blocks: int | None = None  # found in its content; None: not looked through yet

    @property
    def path(self) -> bytes:
        return self.directory + b"/" + self.name if self.directory else self.name

    @property
    def size_bytes(self) -> int:
        return self.identity.size_bytes

    @property
    def changed_ns(self) -> int:
        """The later of last write and last change of the inode: quiet time counts from here."""
        return max(self.identity.mtime_ns, self.ctime_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """One stored object, as the catalog knows it."""

    id: int
    place_id: int
    tier: TierName
    key: str
    team: str
    class_name: str
    day: int
    gid: int
    mode: int
    size_bytes: int
    members: int
    live_members: int
    live_raw_bytes: int
    newest_write_ns: int
    oldest_write_ns: int
    state: ArchiveState
    zstd_level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Sums over segments; ``stored_bytes`` is allocated blocks in hot and archive shares elsewhere."""

    segments: int = 0
    logical_bytes: int = 0
    stored_bytes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            segments=self.segments + other.segments,
            logical_bytes=self.logical_bytes + other.logical_bytes,
            stored_bytes=self.stored_bytes + other.stored_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """The same filter everywhere. Text filters are globs (``*``, ``?``); an empty tuple selects all."""

    teams: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()
    tiers: tuple[TierName, ...] = ()
    states: tuple[str, ...] = ()  # values of Original, and "marked", "stored", "held", "companion", "unlooked"
    since_ns: int | None = None
    until_ns: int | None = None
    paths: tuple[bytes, ...] = ()  # absolute original paths, exact

    @property
    def is_everything(self) -> bool:
        return self == Selector()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What forbids mark, purge and early expiration of what it selects; it pins nothing to a tier."""

    id: int = 0
    selector: Selector
    reason: str
    owner: str
    source: str  # "command", a line of policy ("teams/vision.yaml:7"), or "file PATH"
    created_ns: int
    ends_ns: int | None = None  # None: until somebody ends it
    pending: bool = False  # it is right that it selects nothing yet
    place_id: int | None = None  # of a file's hold: below this folder only
    directory: bytes | None = None
    missing_scans: int = 0  # complete scans in a row that did not see the file
    ended_ns: int | None = None
    ended_by: str = ""


class Member(NamedTuple):
    """One segment inside a planned batch, with the identity that the plan saw. A tuple: a plan has millions."""

    segment_id: int
    place_id: int
    path: bytes
    identity: Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBatch:
    """One unit of work: at most some thousand segments of one team, class and reader set, one archive at the most.

    ``place_id`` is the place that bytes leave (whose lease is needed). For ``moves`` from a source, ``members`` are
    originals; from a tier, ``archive_ids`` are the archives whose live members move together and ``members`` is empty.
    For marks and unmarks, ``members`` are segments. For a purge, ``archive_ids`` are archives that go whole, or
    ``members`` are originals that have no stored copy.
    """

    kind: ActionKind
    place_id: int
    team: str
    class_name: str
    tier_from: TierName
    tier_to: TierName | None  # None: gone
    day: int
    gid: int
    mode: int  # permission bits the archive will have: those all members share
    reason: Reason
    segments: int
    logical_bytes: int
    stored_bytes: int
    members: tuple[Member, ...] = ()
    archive_ids: tuple[int, ...] = ()
    purge_after_ns: int | None = None  # of marks
    relief: str = ""  # what it makes room for ("hot", "team nlp on hot"); empty for what is due

    @property
    def is_ahead(self) -> bool:
        """Ahead of its time: done while room is needed, and no longer."""
        return self.relief != ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A group of segments that look due and are not acted on, with one reason: a line of the plan."""

    team: str
    class_name: str
    tier: TierName
    reason: Reason
    segments: int
    logical_bytes: int


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of a phase or batch: counts and bytes, added up by the report. The one mutable value here."""

    segments: int = 0
    logical_bytes: int = 0
    stored_bytes: int = 0
    freed_bytes: int = 0
    kept: int = 0
    failed: int = 0
    archives: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.segments += other.segments
        self.logical_bytes += other.logical_bytes
        self.stored_bytes += other.stored_bytes
        self.freed_bytes += other.freed_bytes
        self.kept += other.kept
        self.failed += other.failed
        self.archives += other.archives
        self.seconds += other.seconds
        self.problems.extend(other.problems)
