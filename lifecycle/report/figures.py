"""What commands report: frozen values, filled by the flow and by ``report.audit``, turned to text by the renderers.

Knows counts, bytes and times. Must never know how they are shown, where they were read, or how to act.
Times are aware datetimes in UTC, sizes are bytes, durations are seconds (``*_seconds``) as measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lifecycle.errors import ExitCode
from lifecycle.model import ActionKind, Kept, PlannedBatch, TierName, Usage
from lifecycle.plan.forecast import Days, Rate

if TYPE_CHECKING:
    from lifecycle.catalog.reclassifying import WaitingChange
    from lifecycle.plan.brakes import Brake, Newly
    from lifecycle.plan.plan import PlanSummary


class Progress(Protocol):
    """Told by the flow what is going on; shows it on a terminal, says nothing in cron. Calls come from one thread."""

    def phase(self, name: str, total_segments: int | None = None) -> None:
        """Begin a phase (``scan lustre``, ``transition hot → warm``); ends the one before it, if any."""

    def advance(self, segments: int, size_bytes: int = 0) -> None:
        """So many more segments (files, while scanning) and bytes of them are done."""

    def done(self, note: str = "") -> None:
        """End the phase; ``note`` stays on the screen as its line. Calling it without a phase does nothing."""


class Silence:
    """The progress of cron, pipes and tests: nothing."""

    def phase(self, name: str, total_segments: int | None = None) -> None: ...
    def advance(self, segments: int, size_bytes: int = 0) -> None: ...
    def done(self, note: str = "") -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemLine:
    """One thing that went wrong or could not be seen, as ``history RUN --problems`` lists it."""

    phase: str
    place: str = ""
    subject: str = ""  # a path, a key, a batch; in the form of names.show_name
    message: str
    hint: str | None = None
    consequence: str = ""  # value of errors.Consequence


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """What one scan of one place saw."""

    place: str
    host: str = ""
    files: int
    size_bytes: int
    new: int = 0
    changed: int = 0
    renamed: int = 0
    replaced: int = 0
    settled: int = 0
    still_open: int = 0
    missing: int = 0
    lost: int = 0
    foreign: int = 0
    special: int = 0  # links, hard links, sockets, other devices
    unseen: int = 0  # folders that could not be read
    is_complete: bool = True
    seconds: float = 0.0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """What came of one kind of action between two tiers. ``planned_*`` is what the plan asked for."""

    action: ActionKind
    tier_from: TierName
    tier_to: TierName | None = None
    planned_segments: int = 0
    planned_bytes: int = 0
    segments: int = 0  # done: released or parked, marked, unmarked, purged
    logical_bytes: int = 0
    stored_bytes: int = 0  # what they take in tier_to
    freed_bytes: int = 0  # allocated bytes given back in tier_from
    archives: int = 0
    parked: int = 0  # of segments: originals that wait renamed for release_after
    kept: int = 0  # changed, open, clashing: left alone
    done_before: int = 0  # of a plan file: an earlier run has seen to them
    failed: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """What the run found half done and put right."""

    batches: int = 0
    finished: int = 0  # stored copy committed, releases carried out
    adopted: int = 0  # stored copy was whole, originals not: kept
    undone: int = 0  # stored copy taken back, every original still there
    parked: int = 0  # place unreachable: left for later
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TierUsage:
    """One tier as the rollups sum it, and what the file system under it says where that is known."""

    tier: TierName
    usage: Usage
    objects: int  # files in hot, archives elsewhere
    total_bytes: int | None = None  # of the file system under it
    free_bytes: int | None = None
    high: float | None = None  # the marks that policy has for it
    reserve_bytes: int | None = None

    @property
    def fill(self) -> float | None:
        """Share of the file system in use, by whomever; None where unknown."""
        if not self.total_bytes or self.free_bytes is None:
            return None
        return 1 - self.free_bytes / self.total_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FillLine:
    """A file system that policy has marks for, before and after; in a preview, as it is expected to be."""

    name: str
    total_bytes: int
    used_before: int
    used_after: int
    high: float | None = None
    reserve_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLine:
    """A mark, a reserve or a quota that does not hold."""

    subject: str
    text: str
    is_alarm: bool
    team: str = ""
    open_bytes: int = 0  # of it still written: relief cannot reach it
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliefLine:
    """What a run did ahead of its time, by what it made room for."""

    name: str
    freed_bytes: int
    given_up: str = ""  # why it ended before there was room enough


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPlace:
    """A place that was passed over because another run holds its lease."""

    place: str
    holder: str  # "run 1882 on host a, pid 17"
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run from lease to report. ``report.json.render_run_line`` makes the line that ``runs.summary`` keeps."""

    run_id: int
    command: str = "run"
    host: str = ""
    now: datetime
    started: datetime
    ended: datetime
    policy_digest: str
    rehearsal: bool = False
    exit_code: ExitCode
    recovery: RecoveryReport = field(default_factory=RecoveryReport)
    scans: tuple[ScanReport, ...] = ()
    phases: tuple[PhaseReport, ...] = ()  # in the order in which they ran
    before: tuple[TierUsage, ...] = ()
    after: tuple[TierUsage, ...] = ()
    fills: tuple[FillLine, ...] = ()
    relief: tuple[ReliefLine, ...] = ()
    broken: tuple[BrokenLine, ...] = ()  # still, after all of it
    held_places: tuple[HeldPlace, ...] = ()
    stopped: str = ""  # why it ended early: "max-duration 30m reached", "SIGTERM"; empty when it did not
    left_segments: int = 0  # planned, not begun because of that
    folders: int = 0  # that were emptied, and went
    problem_count: int = 0
    problems: tuple[ProblemLine, ...] = ()  # the first few of them

    @property
    def freed_bytes(self) -> int:
        return sum(phase.freed_bytes for phase in self.phases)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewReport:
    """What a run would do. ``items`` can be called many times; each call reads the plan anew from its spool."""

    summary: PlanSummary
    scans: tuple[ScanReport, ...] = ()  # empty with --no-scan
    scanned_at: datetime | None = None  # of the last scan, where the plan was made without one
    items: Callable[[], Iterator[PlannedBatch | Kept]]
    out: Path | None = None  # the plan file that was written
    root: Path | None = None  # the tree that was looked at without a catalog
    folders: int = 0  # emptied by runs before, that would go
    clock_ahead: timedelta | None = None  # of a rehearsal whose time is ahead of the clock: by how much
    run_at: datetime | None = None  # for --now of a run of it, where a rehearsal's own time is not as far
    before: tuple[TierUsage, ...] = ()
    brakes: tuple[Brake, ...] = ()
    waiting: tuple[WaitingChange, ...] = ()  # changes of class that would keep shorter, not accepted yet
    fills: tuple[FillLine, ...] = ()
    broken: tuple[BrokenLine, ...] = ()  # what will still be broken when all of it is done
    place_roots: tuple[tuple[int, str, str], ...] = ()  # (place id, name, root) for showing members' paths
    problems: tuple[ProblemLine, ...] = ()  # what could not be looked at
    exit_code: ExitCode = ExitCode.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceReport:
    """``policy accept``: what was accepted. Nothing was recorded where nothing waited for it."""

    policy_digest: str
    reason: str
    accepted_by: str
    changes: tuple[WaitingChange, ...]
    removals: tuple[Newly, ...]
    holds: tuple[HoldLine, ...] = ()  # that ended, or end sooner now


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOnceReport:
    """``lifecycle scan``: the scans of all places and what came of them."""

    run_id: int
    now: datetime
    started: datetime
    ended: datetime
    exit_code: ExitCode
    scans: tuple[ScanReport, ...]
    held_places: tuple[HeldPlace, ...] = ()
    problem_count: int = 0
    problems: tuple[ProblemLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldLine:
    """One hold and what it covers that can still be read."""

    id: int
    selector: str  # in the words of the command line
    reason: str
    owner: str
    source: str
    began: datetime
    ends: datetime | None
    ended: datetime | None
    ended_by: str
    is_pending: bool
    awaits: str  # what policy would have of it, once that is accepted
    segments: int
    logical_bytes: int
    marked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BeyondLine:
    """What a team's class keeps past its grace because its archives have members that stay."""

    team: str
    class_name: str
    tier: TierName
    why: str
    archives: int
    segments: int
    stored_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldReport:
    holds: tuple[HoldLine, ...]
    going: int = 0  # segments that a purge was removing already


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What a restore wrote. Files that were there and not overwritten are ``skipped``."""

    files: int
    size_bytes: int
    skipped: int = 0
    narrowed: int = 0  # of files: without their group's rights, as their group could not be set
    guarded: int = 0  # of files: without rights that their mode gave and their old folder did not
    renamed: int = 0  # of files: written as NAME.segment-ID, since several segments had one path
    companions: int = 0  # error lines that were kept, left out of a restore in place
    read_bytes: int = 0  # stored bytes read for it
    archives: int = 0
    to: str = ""  # the directory, or "in place"
    seconds: float = 0.0
    problem_count: int = 0
    problems: tuple[ProblemLine, ...] = ()
    exit_code: ExitCode = ExitCode.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One thing that ``init`` made or found."""

    kind: str  # "policy", "catalog", "marker"
    what: str  # a path, or a URL without a password
    note: str = ""  # "was there, left as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class InitReport:
    policies: str  # directory
    catalog: str
    rehearsal: bool
    made: tuple[Made, ...]
    problems: tuple[ProblemLine, ...] = ()
    exit_code: ExitCode = ExitCode.DONE


# --- the audit: tables and lines, still values ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One row of the run history."""

    run_id: int
    command: str
    host: str
    now: datetime
    started: datetime
    ended: datetime | None
    policy_digest: str
    exit_code: ExitCode | None  # None: it did not end, or has not yet
    problems: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run out of the catalog. ``report`` is None for one that did not end, or whose line cannot be read."""

    line: RunLine
    report: RunReport | ScanOnceReport | None
    error: str = ""  # what ended it


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """A line that asks for a person: ``!!`` now, ``!`` soon. ``hint`` is the command to type next."""

    is_urgent: bool
    subject: str
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamUsage:
    """One row of ``--section teams``. Rows add up to the total of the tiers."""

    team: str
    class_name: str
    tier: TierName
    usage: Usage
    oldest_day: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceLine:
    """A source or a tier: how it is and when it was last seen whole."""

    name: str
    host: str
    kind: str
    tier: TierName
    root: str
    state: str
    state_text: str
    scanned: datetime | None
    complete_scan: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingLine:
    """What the scans counted and left alone, by place and kind."""

    place: str
    kind: str
    detail: str
    files: int
    size_bytes: int
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The line under the tier table."""

    marked: int = 0
    held: int = 0
    kept_beyond_retention: int | None = None  # None: not counted (it needs the policy)
    age_unknown: int = 0
    missing: int = 0
    open_segments: int = 0
    open_bytes: int = 0
    foreign: int = 0
    foreign_bytes: int = 0
    unlisted_teams: int = 0
    quarantined_archives: int = 0
    unfinished_batches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What the catalog's life so far has saved: stored smaller, kept in fewer objects, gone when its time came."""

    stored_segments: int = 0  # whose original was released
    logical_bytes: int = 0  # of those
    stored_bytes: int = 0  # what they take now
    archives: int = 0
    purged_segments: int = 0
    purged_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DueLine:
    """One row of ``--section due``: what the next run would do, by class and way."""

    action: str
    class_name: str
    teams: str
    segments: int
    logical_bytes: int
    way: str
    why: str
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PressureLine:
    """A team's small files and what it writes. Rates are of the last whole day (UTC), by day of last write."""

    team: str
    hot_files: int
    hot_bytes: int
    files_per_job: float
    files_per_hour: float
    bytes_per_hour: float

    @property
    def mean_bytes(self) -> int:
        return self.hot_bytes // self.hot_files if self.hot_files else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderLine:
    """One of the fullest folders of the sources."""

    place: str
    path: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLine:
    """Evidence that a team's class is kept as long as policy says, and no longer."""

    team: str
    class_name: str
    expire_after: str  # as policy writes it; why there is none, otherwise
    oldest_day: int
    oldest_age_days: int
    past_segments: int  # whose own last write is past the retention: marked, of a job that still counts, or held back
    past_bytes: int
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorsLine:
    """What is kept of the errors of a team's class, and what nobody has looked through yet: none of that goes."""

    team: str
    class_name: str
    kept_as: str
    stored: int  # segments in warm and cold
    waiting: int  # of these, not looked through
    waiting_bytes: int
    unreadable: int  # of the waiting, those that could not be read as text so far
    rule: str
    companions: int | None = None  # that can be read, of logs that are gone, too; None: not counted
    error_blocks: int | None = None  # found in the logs that these are of
    kept_bytes: int | None = None  # what companions take


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemForecast:
    """A file system: what is used, how it grows, days to each mark (None: not known, or no such mark)."""

    name: str
    tiers: tuple[TierName, ...]
    total_bytes: int
    used_bytes: int
    growth: Rate | None  # bytes a day, net of what moves on
    high_bytes: int | None = None  # used bytes at the mark
    reserve_bytes: int | None = None
    high: Days | None = None
    reserve: Days | None = None
    full: Days | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamForecast:
    """A team in a tier, or in all of them (``total``)."""

    team: str
    tier: str
    used_bytes: int
    growth: Rate | None
    soft_bytes: int | None = None
    hard_bytes: int | None = None
    soft: Days | None = None
    hard: Days | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastReport:
    at: datetime
    runs: int  # whose samples it is made of
    days: float  # that they cover
    file_systems: tuple[FileSystemForecast, ...]
    teams: tuple[TeamForecast, ...]
    filtered_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The one screen, and the tables that ``--section`` asks for (empty when it did not)."""

    at: datetime
    catalog_id: str
    rehearsal: bool
    policy_digest: str
    last_run: RunLine | None
    last_good_run: RunLine | None
    attention: tuple[Attention, ...]
    tiers: tuple[TierUsage, ...]
    total: TierUsage
    counters: Counters
    saved: Saved
    places: tuple[PlaceLine, ...] = ()
    teams: tuple[TeamUsage, ...] = ()
    findings: tuple[FindingLine, ...] = ()
    due: tuple[DueLine, ...] = ()
    runs: tuple[RunLine, ...] = ()
    pressure: tuple[PressureLine, ...] = ()
    folders: tuple[FolderLine, ...] = ()
    retention: tuple[RetentionLine, ...] = ()
    errors: tuple[ErrorsLine, ...] = ()
    holds: tuple[HoldLine, ...] = ()
    beyond: tuple[BeyondLine, ...] = ()
    filtered_by: str = ""  # the selectors in words; empty when everything is counted
