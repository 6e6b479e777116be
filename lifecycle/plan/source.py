"""What the planner is given: candidates in a promised order, and a protocol for whoever finds them.

Knows the order and the limits of each question. Never knows SQL; ``catalog.due`` and ``plan.memory`` answer.

``Candidate`` and ``DueArchive`` are named tuples, not dataclasses: a first run plans millions of them, and a tuple
is made from a row in a tenth of the time. They never leave planning: what leaves is a ``PlannedBatch``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from lifecycle.model import RuleRef, TierName, Usage

SMALL_BYTES: Final = 16 * 2**20  # archives below it have an index of their own


class TeamClass(NamedTuple):
    """Planning goes pair by pair, since figures are per team and class."""

    team: str
    class_name: str


class Candidate(NamedTuple):
    """The part of a segment that decisions need. Fields that name tiers and states hold the enums' values."""

    id: int
    place_id: int
    directory: bytes
    name: bytes
    team: str
    class_name: str
    inode: int
    size_bytes: int
    allocated_bytes: int
    mtime_ns: int
    mode: int
    gid: int
    last_write_ns: int | None
    first_seen_ns: int
    original: str
    tier: str  # where it is read from
    stored_bytes: int
    job_id: int
    job_last_write_ns: int
    stay_until_ns: int | None
    set_aside_until_ns: int | None
    archive_id: int | None
    archive_place_id: int | None
    archive_tier: str | None
    archive_state: str | None
    archive_newest_ns: int | None  # last write of the archive's newest live member
    marked_ns: int | None
    purge_after_ns: int | None
    hold_id: int | None = None  # of a hold that covers it now
    error_blocks: int | None = None  # found in its content; None: not looked through yet

    @property
    def path(self) -> bytes:
        return self.directory + b"/" + self.name if self.directory else self.name


class DueArchive(NamedTuple):
    """The part of a live archive that decisions need."""

    id: int
    place_id: int
    tier: str
    team: str
    class_name: str
    day: int
    gid: int
    mode: int
    size_bytes: int
    live_members: int
    live_raw_bytes: int
    newest_write_ns: int
    state: str
    has_unmarked: bool  # at least one live member is not marked


class Unextracted(NamedTuple):
    """A live archive with members of one team and class that nobody has looked through for errors."""

    archive: DueArchive
    segments: int  # such members, those that rest after a failure left out
    logical_bytes: int


class ArchiveMarks(NamedTuple):
    """An archive with at least one mark whose grace is over, and all its live members."""

    archive: DueArchive
    members: Sequence[Candidate]


class CopyRule(NamedTuple):
    """``copy_after`` of one source."""

    after_ns: int
    at: RuleRef | None


class DueSource(Protocol):
    """Answers by indexed ranges and in pages; costs what is due. Every answer has the order its method promises.

    "Live" means marked or not, with a tier to read it from. Ranges of last writes never hold segments of unknown age.
    """

    def pairs(self) -> Sequence[TeamClass]:
        """Every team and class that has segments, sorted. From rollups."""

    def iter_settled(self, pair: TeamClass, *, after_ns: int | None, until_ns: int) -> Iterator[Candidate]:
        """Unmarked, settled, never stored; ``after_ns`` < last write ≤ ``until_ns``. By last write, then id."""

    def iter_archives(self, pair: TeamClass, tier: TierName, *, until_ns: int) -> Iterator[DueArchive]:
        """Live archives of a tier whose newest live member was written by ``until_ns``. By that time, then id."""

    def iter_small(
        self, pair: TeamClass, tier: TierName, *, after_ns: int | None, until_ns: int, below_bytes: int
    ) -> Iterator[DueArchive]:
        """Live archives of a tier with something, and fewer than ``below_bytes`` (SMALL_BYTES at the most), in live
        members, none of them marked; the newest written after ``after_ns``, by ``until_ns``. By that time, then id."""

    def iter_rotated_out(self, pair: TeamClass, *, keep: int, after_ns: int) -> Iterator[Candidate]:
        """Rotated, settled, unmarked, never stored, last written after ``after_ns``, and beyond the newest ``keep`` of
        these in their set, a base name in a folder (ties by id: the higher is newer). By last write, then id."""

    def repeated_paths(self, archive_ids: Sequence[int]) -> frozenset[int]:
        """Those archives (never the first one) that hold a path which an earlier one of the list holds as well."""

    def iter_expiring(
        self, pair: TeamClass, *, write_until_ns: int, job_until_ns: int | None, with_originals: bool
    ) -> Iterator[Candidate]:
        """Unmarked and live, last written by ``write_until_ns``, or, where ``job_until_ns`` is given, of a job whose
        newest segment was last written by then. ``with_originals`` asks also for those that were never stored.
        Each once; those of such jobs first, by job and id, then the others by last write and id."""

    def iter_doubtful_marks(
        self, *, policy_digest: str, now_ns: int, jobs: Sequence[tuple[TeamClass, int]]
    ) -> Iterator[Candidate]:
        """Marks to look at again, each once: with its grace over by ``now_ns``, by end of grace and id; then those of
        another policy, by id; then, pair by pair as given, those of jobs that wrote after the pair's instant, by job
        and id."""

    def iter_marked_originals(self, *, now_ns: int) -> Iterator[Candidate]:
        """Marked, grace over by ``now_ns``, never stored. By end of grace, then id."""

    def iter_marked_archives(self, *, now_ns: int) -> Iterator[ArchiveMarks]:
        """Archives with a mark whose grace is over by ``now_ns``. By team, class, day and id."""

    def iter_returned(self, *, now_ns: int) -> Iterator[Candidate]:
        """Settled originals that a restore put back beside their stored copy, their stay over. By place and id."""

    def iter_copied(self, pair: TeamClass, *, after_ns: int | None, until_ns: int) -> Iterator[Candidate]:
        """Settled originals beside a stored copy that was made early (no restore put them there);
        ``after_ns`` < last write ≤ ``until_ns``. By last write, then id."""

    def iter_unextracted(self, pair: TeamClass, *, now_ns: int) -> Iterator[Unextracted]:
        """Live archives that have members nobody has looked through and that do not rest at ``now_ns``. By id."""

    def iter_members(self, archive_ids: Sequence[int]) -> Iterator[ArchiveMarks]:
        """These archives with all their live members, in the order given."""

    def open_usage(self, cutoffs: Sequence[tuple[TeamClass, int]]) -> Iterator[tuple[TeamClass, Usage]]:
        """Open originals, unmarked and never stored, last written by the pair's cut-off. By pair; none, no value."""

    def unknown_age_usage(self, pair: TeamClass) -> Iterator[tuple[TierName, Usage]]:
        """Unmarked and live, no last write. By tier."""

    def usage(self, pair: TeamClass, *, before_day: int | None) -> Iterator[tuple[TierName, Usage]]:
        """From rollups: days of last write before ``before_day``, all where None. By tier; what is in two tiers is in
        both."""
