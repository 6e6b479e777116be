"""From a full bin to a ``PlannedBatch``: members, sums, readers, the reason that holds for all of them.

Knows how a batch is put together. Never decides which segments go into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from lifecycle.model import ActionKind, Identity, Member, PlannedBatch, Reason, ReasonCode, TierName
from lifecycle.plan.figures import Figures
from lifecycle.plan.reasons import make_reason, render_age
from lifecycle.plan.source import Candidate, DueArchive, TeamClass, Unextracted
from lifecycle.policy.rules import Policy
from lifecycle.units import day_of_ns, duration_ns

_WORLD, _GROUP, _OWNER = 0o644, 0o640, 0o600


def reader_set(mode: int, gid: int) -> tuple[int, int]:
    """Who may read a file: archive mode and the group that matters, -1 where none does.

    In doubt fewer: a file that others may read and its group may not becomes one for its owner alone.
    """
    if mode & 0o044 == 0o044:
        return _WORLD, -1
    return (_GROUP, gid) if mode & 0o040 else (_OWNER, -1)


class PlaceKey(NamedTuple):
    """What segments of one batch share when only rows change or files go."""

    team: str
    class_name: str
    place_id: int
    tier: TierName


class ArchiveKey(NamedTuple):
    """What segments of one archive share."""

    place_id: int
    window: int  # first day of it
    mode: int
    gid: int  # -1 where the group does not matter


def member_of(candidate: Candidate) -> Member:
    identity = Identity(candidate.inode, candidate.size_bytes, candidate.mtime_ns)
    return Member(candidate.id, candidate.place_id, candidate.path, identity)


def _members(candidates: Iterable[Candidate]) -> tuple[Member, ...]:
    # By path: folders are opened once each, one job's lines lie side by side for the compressor, and the order
    # does not tell in which order rows came.
    return tuple(map(member_of, sorted(candidates, key=lambda c: (c.place_id, c.directory, c.name, c.id))))


def _first_tier(figures: Figures, tier: TierName) -> TierName:
    """The tier whose limit an original of a stored copy has met: the warmest that its class goes to."""
    return next((each for each in (TierName.WARM, TierName.COLD) if figures.limit_ns(each) is not None), tier)


class BatchMaker:
    """Batches of one plan: policy and ``now`` are the same for all."""

    def __init__(self, policy: Policy, now_ns: int) -> None:
        self._policy = policy
        self._now_ns = now_ns

    def move_originals(
        self, pair: TeamClass, figures: Figures, tier: TierName, key: ArchiveKey, candidates: Sequence[Candidate]
    ) -> PlannedBatch:
        """Originals of one archive. One alone is a transition, several are a merge."""
        return PlannedBatch(
            kind=ActionKind.MERGE if len(candidates) > 1 else ActionKind.TRANSITION,
            place_id=key.place_id,
            team=pair.team,
            class_name=pair.class_name,
            tier_from=TierName.HOT,
            tier_to=tier,
            day=key.window,
            # Where the group does not matter the object still gets one: its members' lowest, whatever their order.
            gid=key.gid if key.gid >= 0 else min(candidate.gid for candidate in candidates),
            mode=key.mode,
            reason=self._aged(figures, tier, (c.last_write_ns or 0 for c in candidates)),
            segments=len(candidates),
            logical_bytes=sum(candidate.size_bytes for candidate in candidates),
            stored_bytes=sum(candidate.allocated_bytes for candidate in candidates),
            members=_members(candidates),
        )

    def move_archives(
        self, pair: TeamClass, figures: Figures, tier: TierName, key: ArchiveKey, archives: Sequence[DueArchive]
    ) -> PlannedBatch:
        """Whole archives, their live members together in one new archive."""
        return PlannedBatch(
            kind=ActionKind.MERGE if len(archives) > 1 else ActionKind.TRANSITION,
            place_id=key.place_id,
            team=pair.team,
            class_name=pair.class_name,
            tier_from=TierName(archives[0].tier),
            tier_to=tier,
            day=key.window,
            gid=key.gid if key.gid >= 0 else min(archive.gid for archive in archives),
            mode=key.mode,
            reason=self._aged(figures, tier, (archive.newest_write_ns for archive in archives)),
            segments=sum(archive.live_members for archive in archives),
            logical_bytes=sum(archive.live_raw_bytes for archive in archives),
            stored_bytes=sum(archive.size_bytes for archive in archives),
            archive_ids=tuple(archive.id for archive in archives),
        )

    def extract_archives(
        self, pair: TeamClass, figures: Figures, key: ArchiveKey, found: Sequence[Unextracted]
    ) -> PlannedBatch:
        """Archives with members that nobody has looked through; what is found in them stays in their tier."""
        archives = [each.archive for each in found]
        tier = TierName(archives[0].tier)
        return PlannedBatch(
            kind=ActionKind.EXTRACT,
            place_id=key.place_id,
            team=pair.team,
            class_name=pair.class_name,
            tier_from=tier,
            tier_to=tier,
            day=key.window,
            gid=key.gid if key.gid >= 0 else min(archive.gid for archive in archives),
            mode=key.mode,
            reason=self._not_extracted(figures),
            segments=sum(each.segments for each in found),
            logical_bytes=sum(each.logical_bytes for each in found),
            stored_bytes=0,
            archive_ids=tuple(archive.id for archive in archives),
        )

    def extract_originals(
        self, pair: TeamClass, figures: Figures, tier: TierName, key: ArchiveKey, candidates: Sequence[Candidate]
    ) -> PlannedBatch:
        """Originals that go from where they lie; what is found in them goes to ``tier``."""
        batch = self.move_originals(pair, figures, tier, key, candidates)
        return replace(batch, kind=ActionKind.EXTRACT, reason=self._not_extracted(figures), stored_bytes=0)

    def _not_extracted(self, figures: Figures) -> Reason:
        return make_reason(ReasonCode.NOT_EXTRACTED, policy=self._policy, figures=figures)

    def rewrite(self, archive: DueArchive, staying: Sequence[Candidate]) -> PlannedBatch:
        """Members that leave an archive for a new one beside it; ``archive_ids`` is the one that they leave."""
        tier, is_held = TierName(archive.tier), any(member.hold_id is not None for member in staying)
        code = ReasonCode.HELD_MEMBERS if is_held else ReasonCode.UNLOOKED_MEMBERS
        return PlannedBatch(
            kind=ActionKind.REWRITE,
            place_id=archive.place_id,
            team=archive.team,
            class_name=archive.class_name,
            tier_from=tier,
            tier_to=tier,
            day=archive.day,
            gid=archive.gid,
            mode=archive.mode,
            reason=make_reason(code, policy=self._policy),
            segments=len(staying),
            logical_bytes=sum(member.size_bytes for member in staying),
            stored_bytes=sum(member.stored_bytes for member in staying),
            archive_ids=(archive.id,),
        )

    def mark(self, figures: Figures, key: PlaceKey, candidates: Sequence[Candidate]) -> PlannedBatch:
        youngest = max(candidate.last_write_ns or 0 for candidate in candidates)
        reason = make_reason(
            ReasonCode.EXPIRED,
            policy=self._policy,
            figures=figures,
            current=f"last write {render_age(self._now_ns - youngest)} ago",
        )
        grace_ns = duration_ns(self._policy.grace)
        return self._of_segments(
            ActionKind.MARK, key, candidates, reason, tier_to=None, purge_after_ns=self._now_ns + grace_ns
        )

    def unmark(
        self, key: PlaceKey, code: ReasonCode, figures: Figures | None, candidates: Sequence[Candidate]
    ) -> PlannedBatch:
        reason = make_reason(code, policy=self._policy, figures=figures)
        return self._of_segments(ActionKind.UNMARK, key, candidates, reason, tier_to=key.tier)

    def release(self, key: PlaceKey, candidates: Sequence[Candidate]) -> PlannedBatch:
        """Restored originals whose stay is over; ``key.tier`` is where their stored copies are."""
        reason = make_reason(ReasonCode.STAY_OVER, policy=self._policy)
        hot = key._replace(tier=TierName.HOT)
        return self._of_segments(ActionKind.RELEASE, hot, candidates, reason, tier_to=key.tier)

    def release_copied(self, figures: Figures, key: PlaceKey, candidates: Sequence[Candidate]) -> PlannedBatch:
        """Originals whose stored copy was made early, old enough by now for the tier that it is in."""
        reason = self._aged(figures, _first_tier(figures, key.tier), (c.last_write_ns or 0 for c in candidates))
        hot = key._replace(tier=TierName.HOT)
        return self._of_segments(ActionKind.RELEASE, hot, candidates, reason, tier_to=key.tier)

    def purge_originals(self, key: PlaceKey, candidates: Sequence[Candidate]) -> PlannedBatch:
        return self._of_segments(
            ActionKind.PURGE, key, candidates, self._grace_over(c.marked_ns or 0 for c in candidates), tier_to=None
        )

    def purge_archives(self, key: PlaceKey, found: Sequence[tuple[DueArchive, int]]) -> PlannedBatch:
        """Archives that go whole, each with the time of its members' last mark."""
        archives = [archive for archive, _ in found]
        return PlannedBatch(
            kind=ActionKind.PURGE,
            place_id=key.place_id,
            team=key.team,
            class_name=key.class_name,
            tier_from=key.tier,
            tier_to=None,
            day=min(archive.day for archive in archives),
            gid=archives[0].gid,
            mode=0,
            reason=self._grace_over(marked_ns for _, marked_ns in found),
            segments=sum(archive.live_members for archive in archives),
            logical_bytes=sum(archive.live_raw_bytes for archive in archives),
            stored_bytes=sum(archive.size_bytes for archive in archives),
            archive_ids=tuple(archive.id for archive in archives),
        )

    def of_segments(
        self,
        kind: ActionKind,
        key: PlaceKey,
        candidates: Sequence[Candidate],
        reason: Reason,
        *,
        tier_to: TierName | None,
    ) -> PlannedBatch:
        """Segments that leave ``key.place_id`` for a reason that somebody else has found: relief."""
        return self._of_segments(kind, key, candidates, reason, tier_to=tier_to)

    def _of_segments(
        self,
        kind: ActionKind,
        key: PlaceKey,
        candidates: Sequence[Candidate],
        reason: Reason,
        *,
        tier_to: TierName | None,
        purge_after_ns: int | None = None,
    ) -> PlannedBatch:
        in_hot = key.tier is TierName.HOT
        return PlannedBatch(
            kind=kind,
            place_id=key.place_id,
            team=key.team,
            class_name=key.class_name,
            tier_from=key.tier,
            tier_to=tier_to,
            day=day_of_ns(min(c.last_write_ns or c.first_seen_ns for c in candidates)),
            gid=min(candidate.gid for candidate in candidates),
            mode=0,  # no archive is made
            reason=reason,
            segments=len(candidates),
            logical_bytes=sum(candidate.size_bytes for candidate in candidates),
            stored_bytes=sum(c.allocated_bytes if in_hot else c.stored_bytes for c in candidates),
            members=_members(candidates),
            purge_after_ns=purge_after_ns,
        )

    def _aged(self, figures: Figures, tier: TierName, writes_ns: Iterable[int]) -> Reason:
        # The youngest speaks for the batch: what is true of it is true of all.
        age = render_age(self._now_ns - max(writes_ns))
        return make_reason(
            ReasonCode.AGED, policy=self._policy, figures=figures, tier=tier, current=f"last write {age} ago"
        )

    def _grace_over(self, marks_ns: Iterable[int]) -> Reason:
        return make_reason(
            ReasonCode.GRACE_OVER,
            policy=self._policy,
            current=f"marked {render_age(self._now_ns - max(marks_ns))} ago",
        )
