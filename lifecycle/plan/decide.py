"""May this one segment be moved, marked, purged: the rules, each as a plain function from values to a reason code.

``None`` means nothing stands against it. The first obstacle in the order below is the one that is named. Knows
nothing of batches, order or figures' origin; planner and explain call the same functions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from lifecycle.model import Archive, ArchiveState, Original, ReasonCode, Segment, TierName
from lifecycle.plan.figures import FIRST_SIGHT_NS, Figures
from lifecycle.plan.source import Candidate
from lifecycle.policy.rules import ERROR_CLASS
from lifecycle.units import DAY_NS

EARLY_AFTER_NS: Final = DAY_NS  # whatever the pressure, a mark can be undone for a day
_TIERS = {tier.value: tier for tier in TierName}  # a look-up; TierName(text) is a sixth of a large plan's time
# An original in one of these states is, or may be, in its source: an archive that holds its copy is not purged.
_MAY_BE_THERE = frozenset((Original.OPEN, Original.SETTLED, Original.MISSING, Original.PARKED))


def reached_tier(candidate: Candidate) -> TierName:
    """The coldest tier with a copy: a restored original in hot does not undo that the segment reached cold."""
    return _TIERS[candidate.archive_tier or candidate.tier]


def leaving_place(candidate: Candidate) -> int:
    """The place whose bytes a purge would take: the archive's where there is one, else the source."""
    return candidate.archive_place_id if candidate.archive_place_id is not None else candidate.place_id


def retention_blocker(candidate: Candidate, figures: Figures | ReasonCode, now_ns: int) -> ReasonCode | None:
    """Why the retention has not ended, if it has not."""
    if isinstance(figures, ReasonCode):
        return figures
    if figures.expire_ns is None:
        return ReasonCode.NEVER_EXPIRES
    if candidate.last_write_ns is None:
        return ReasonCode.AGE_UNKNOWN
    if candidate.last_write_ns + figures.expire_ns > now_ns:
        return ReasonCode.TOO_YOUNG
    end_ns = figures.retention_end_ns(candidate.last_write_ns, candidate.job_last_write_ns)
    return ReasonCode.JOB_STILL_WRITES if end_ns is not None and end_ns > now_ns else None


def mark_fault(candidate: Candidate, figures: Figures | ReasonCode, now_ns: int) -> ReasonCode | None:
    """Why a mark that a segment has is wrong by now: it comes off, whatever its grace."""
    if candidate.hold_id is not None:
        return ReasonCode.HELD
    code = retention_blocker(candidate, figures, now_ns)
    if code is ReasonCode.TOO_YOUNG and (candidate.last_write_ns or 0) <= (candidate.marked_ns or 0):
        return ReasonCode.RETENTION_CHANGED
    return code


def move_blocker(candidate: Candidate, now_ns: int) -> ReasonCode | None:
    """Why a segment old enough for a colder tier stays in hot this time."""
    if candidate.original == Original.OPEN:
        return ReasonCode.NOT_SETTLED
    if candidate.original == Original.MISSING:
        return ReasonCode.MISSING
    return _rest_blocker(candidate, now_ns)


def copy_blocker(candidate: Candidate, now_ns: int) -> ReasonCode | None:
    """Why an original beside a stored copy that was made early stays, now that it could go."""
    if candidate.archive_state == ArchiveState.QUARANTINED:
        return ReasonCode.QUARANTINED
    return move_blocker(candidate, now_ns)


def room_for(figures: Figures, tier: TierName, full: Collection[TierName]) -> TierName | None:
    """The next colder tier that the class goes to and that is not full; None when there is none.

    A class never goes to a tier that its policy does not name, however full the others are.
    """
    colder = (each for each in TierName if each.warmth > tier.warmth and figures.limit_ns(each) is not None)
    return next((each for each in colder if each not in full), None)


def early_purge_blocker(candidate: Candidate, figures: Figures | ReasonCode, now_ns: int) -> ReasonCode | None:
    """Why a marked segment whose retention has ended is not purged before its grace is over, where room is needed."""
    if candidate.marked_ns is None or candidate.marked_ns + EARLY_AFTER_NS > now_ns:
        return ReasonCode.IN_GRACE
    return purge_blocker(candidate._replace(purge_after_ns=candidate.marked_ns), figures, 0, now_ns)


def early_expiry_blocker(candidate: Candidate, figures: Figures, now_ns: int) -> ReasonCode | None:
    """Why the only copy does not go before its time. Policy must allow it for the class, and never does for errors;
    whatever stands against a mark (a hold, an extraction that is missing, first sight) stands against this."""
    keep_ns = figures.keep_at_least_ns
    if keep_ns is None or candidate.class_name == ERROR_CLASS:
        return ReasonCode.TOO_YOUNG
    if candidate.last_write_ns is None:
        return ReasonCode.AGE_UNKNOWN
    if candidate.last_write_ns + keep_ns > now_ns:
        return ReasonCode.TOO_YOUNG
    if candidate.archive_id is not None and candidate.original in _MAY_BE_THERE:
        return ReasonCode.STAY
    return mark_blocker(candidate, figures, now_ns) or _rest_blocker(candidate, now_ns)


def mark_blocker(candidate: Candidate, figures: Figures, now_ns: int) -> ReasonCode | None:
    """Why a segment whose retention has ended is not marked this time."""
    if candidate.hold_id is not None:
        return ReasonCode.HELD
    if candidate.archive_state == ArchiveState.QUARANTINED:
        return ReasonCode.QUARANTINED
    if candidate.original == Original.MISSING:
        return ReasonCode.MISSING
    if candidate.original == Original.OPEN:
        return ReasonCode.NOT_SETTLED
    if candidate.stay_until_ns is not None and candidate.stay_until_ns > now_ns:
        return ReasonCode.STAY
    if candidate.first_seen_ns + FIRST_SIGHT_NS > now_ns:
        return ReasonCode.FIRST_SEEN_RECENTLY
    if is_behind(candidate, figures, now_ns):
        return ReasonCode.NOT_IN_REQUIRED_TIER
    return extraction_blocker(candidate, figures)


def extraction_blocker(candidate: Candidate, figures: Figures | ReasonCode) -> ReasonCode | None:
    """Whether policy keeps the errors of a segment that nobody has looked through: no extract, no delete."""
    is_missing = isinstance(figures, Figures) and figures.keeps_errors and candidate.error_blocks is None
    return ReasonCode.NOT_EXTRACTED if is_missing else None


def keeps_its_archive(candidate: Candidate, figures: Figures | ReasonCode) -> bool:
    """Whether a member keeps its archive for longer than some days: it is held, or what it says of errors could not be
    read although that was tried."""
    if candidate.hold_id is not None:
        return True
    return candidate.set_aside_until_ns is not None and extraction_blocker(candidate, figures) is not None


def is_behind(candidate: Candidate, figures: Figures, now_ns: int) -> bool:
    """Whether age asks for a colder tier than the one it has reached. Such a segment is moved, never expired: where
    moves have failed for 40 days, the only copy of a 30-day class is still there (bug case B23)."""
    if candidate.last_write_ns is None:
        return False
    required = figures.required_tier(now_ns - candidate.last_write_ns)
    return required.warmth > reached_tier(candidate).warmth


def is_due_to_move(candidate: Candidate, figures: Figures, now_ns: int) -> bool:
    """Whether this very run's moves take the segment on: then its reason is theirs to give."""
    if candidate.archive_id is None:
        return is_behind(candidate, figures, now_ns)
    newest_ns, tier = candidate.archive_newest_ns, reached_tier(candidate)
    if candidate.archive_state != ArchiveState.LIVE or newest_ns is None:
        return False
    return figures.required_tier(now_ns - newest_ns).warmth > tier.warmth


def purge_blocker(candidate: Candidate, figures: Figures | ReasonCode, grace_ns: int, now_ns: int) -> ReasonCode | None:
    """Why a marked segment whose retention has ended is not purged this time.

    The longer of the grace it was marked with and today's counts: policy may have lengthened it since.
    """
    if candidate.hold_id is not None:
        return ReasonCode.HELD
    if candidate.marked_ns is None or candidate.purge_after_ns is None:
        return ReasonCode.TOO_YOUNG
    if max(candidate.purge_after_ns, candidate.marked_ns + grace_ns) > now_ns:
        return ReasonCode.IN_GRACE
    if candidate.archive_state == ArchiveState.QUARANTINED:
        return ReasonCode.QUARANTINED
    if candidate.archive_id is not None:
        # The restored original goes first, by a release; only then is the stored copy the last of it.
        is_there = candidate.original in _MAY_BE_THERE
        return ReasonCode.STAY if is_there else extraction_blocker(candidate, figures)
    if candidate.original == Original.MISSING:
        return ReasonCode.MISSING
    if candidate.original != Original.SETTLED:
        return ReasonCode.NOT_SETTLED
    return _rest_blocker(candidate, now_ns) or extraction_blocker(candidate, figures)


def _rest_blocker(candidate: Candidate, now_ns: int) -> ReasonCode | None:
    if candidate.set_aside_until_ns is not None and candidate.set_aside_until_ns > now_ns:
        return ReasonCode.SET_ASIDE
    if candidate.stay_until_ns is not None and candidate.stay_until_ns > now_ns:
        return ReasonCode.STAY
    return None


def candidate_of(segment: Segment, archive: Archive | None) -> Candidate:
    """The same decisions for a segment that somebody asks about. A segment that is gone counts as in hot."""
    return Candidate(
        id=segment.id,
        place_id=segment.place_id,
        directory=segment.directory,
        name=segment.name,
        team=segment.labels.team,
        class_name=segment.class_name,
        inode=segment.identity.inode,
        size_bytes=segment.size_bytes,
        allocated_bytes=segment.allocated_bytes,
        mtime_ns=segment.identity.mtime_ns,
        mode=segment.mode,
        gid=segment.gid,
        last_write_ns=segment.last_write_ns,
        first_seen_ns=segment.first_seen_ns,
        original=segment.original,
        tier=segment.tier or TierName.HOT,
        stored_bytes=segment.stored_bytes,
        job_id=segment.job_id,
        job_last_write_ns=segment.job_last_write_ns,
        stay_until_ns=segment.stay_until_ns,
        set_aside_until_ns=segment.set_aside_until_ns,
        archive_id=segment.archive_id,
        archive_place_id=archive.place_id if archive else None,
        archive_tier=segment.archive_tier,
        archive_state=archive.state if archive else None,
        archive_newest_ns=archive.newest_write_ns if archive else None,
        marked_ns=segment.marked_ns,
        purge_after_ns=segment.purge_after_ns,
        hold_id=segment.hold_id,
        error_blocks=segment.error_blocks,
    )
