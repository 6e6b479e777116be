"""A ``DueSource`` over values in memory: for tests, and the plain-words twin of ``catalog.due``.

Says in Python what the SQL says. Reads everything for every question, so it is for thousands of segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from lifecycle.model import ArchiveState, Original, TierName, Usage
from lifecycle.plan.source import ArchiveMarks, Candidate, DueArchive, TeamClass, Unextracted
from lifecycle.policy.rotation import rotation_bases
from lifecycle.units import day_of_ns

T = TypeVar("T")


class MemoryDue:
    """Candidates and archives in any order. ``digests`` says under which policy a segment was marked."""

    def __init__(
        self,
        candidates: Iterable[Candidate],
        archives: Iterable[DueArchive] = (),
        *,
        digests: Callable[[Candidate], str] = lambda candidate: "",
    ) -> None:
        self._candidates = tuple(candidates)
        self._archives = {archive.id: archive for archive in archives}
        self._digest = digests

    def pairs(self) -> Sequence[TeamClass]:
        return sorted({_pair(candidate) for candidate in self._candidates})

    def iter_settled(self, pair: TeamClass, *, after_ns: int | None, until_ns: int) -> Iterator[Candidate]:
        found = [
            c
            for c in self._of(pair)
            if c.marked_ns is None
            and c.original == Original.SETTLED
            and c.archive_id is None
            and _written(c, after_ns, until_ns)
        ]
        return iter(sorted(found, key=_by_write))

    def iter_archives(self, pair: TeamClass, tier: TierName, *, until_ns: int) -> Iterator[DueArchive]:
        found = [
            archive
            for archive in self._archives.values()
            if (archive.team, archive.class_name) == pair
            and archive.tier == tier
            and archive.state == ArchiveState.LIVE
            and archive.newest_write_ns <= until_ns
        ]
        return iter(sorted(found, key=lambda archive: (archive.newest_write_ns, archive.id)))

    def iter_small(
        self, pair: TeamClass, tier: TierName, *, after_ns: int | None, until_ns: int, below_bytes: int
    ) -> Iterator[DueArchive]:
        marked = {c.archive_id for c in self._candidates if c.marked_ns is not None}
        return (
            archive
            for archive in self.iter_archives(pair, tier, until_ns=until_ns)
            if 0 < archive.live_raw_bytes < below_bytes
            and archive.id not in marked
            and (after_ns is None or archive.newest_write_ns > after_ns)
        )

    def iter_rotated_out(self, pair: TeamClass, *, keep: int, after_ns: int) -> Iterator[Candidate]:
        sets: dict[tuple[int, bytes, bytes], list[Candidate]] = {}
        for c in self.iter_settled(pair, after_ns=None, until_ns=2**63 - 1):
            if bases := rotation_bases(c.name):
                sets.setdefault((c.place_id, c.directory, bases[0]), []).append(c)
        found = [c for each in sets.values() for c in each[: max(0, len(each) - keep)]]
        return iter(sorted((c for c in found if (c.last_write_ns or 0) > after_ns), key=_by_write))

    def repeated_paths(self, archive_ids: Sequence[int]) -> frozenset[int]:
        seen: set[tuple[int, bytes]] = set()
        repeated = set()
        for archive_id in archive_ids:
            paths = {(c.place_id, c.path) for c in self._candidates if c.archive_id == archive_id}
            if paths & seen:
                repeated.add(archive_id)
            seen |= paths
        return frozenset(repeated)

    def iter_expiring(
        self, pair: TeamClass, *, write_until_ns: int, job_until_ns: int | None, with_originals: bool
    ) -> Iterator[Candidate]:
        live = [
            c
            for c in self._of(pair)
            if c.marked_ns is None and c.last_write_ns is not None and (with_originals or c.archive_id is not None)
        ]
        by_job = [c for c in live if job_until_ns is not None and c.job_last_write_ns <= job_until_ns]
        rest = [c for c in live if _written(c, None, write_until_ns) and c not in by_job]
        yield from sorted(by_job, key=lambda c: (c.job_id, c.id))
        yield from sorted(rest, key=_by_write)

    def iter_doubtful_marks(
        self, *, policy_digest: str, now_ns: int, jobs: Sequence[tuple[TeamClass, int]]
    ) -> Iterator[Candidate]:
        over = [c for c in self._candidates if _grace_over(c, now_ns)]
        yield from sorted(over, key=lambda c: (c.purge_after_ns, c.id))
        rest = [c for c in self._candidates if c.purge_after_ns is not None and not _grace_over(c, now_ns)]
        yield from sorted((c for c in rest if self._digest(c) != policy_digest), key=lambda c: c.id)
        yield from sorted((c for c in rest if self._digest(c) == policy_digest and c.hold_id), key=lambda c: c.id)
        same = [c for c in rest if self._digest(c) == policy_digest and c.hold_id is None]
        for pair, after_ns in jobs:
            wrote = [c for c in same if _pair(c) == pair and c.job_last_write_ns > after_ns]
            yield from sorted(wrote, key=lambda c: (c.job_id, c.id))

    def iter_marked_originals(self, *, now_ns: int) -> Iterator[Candidate]:
        found = [c for c in self._candidates if c.archive_id is None and _grace_over(c, now_ns)]
        return iter(sorted(found, key=lambda c: (c.purge_after_ns, c.id)))

    def iter_marked_archives(self, *, now_ns: int) -> Iterator[ArchiveMarks]:
        ids = {c.archive_id for c in self._candidates if c.archive_id is not None and _grace_over(c, now_ns)}
        due = [archive for archive in self._archives.values() if archive.id in ids]
        for archive in sorted(due, key=lambda archive: (archive.team, archive.class_name, archive.day, archive.id)):
            members = sorted((c for c in self._candidates if c.archive_id == archive.id), key=lambda c: c.id)
            yield ArchiveMarks(archive, members)

    def iter_returned(self, *, now_ns: int) -> Iterator[Candidate]:
        found = [
            c
            for c in self._candidates
            if c.original == Original.SETTLED
            and c.archive_id is not None
            and c.stay_until_ns is not None
            and c.stay_until_ns <= now_ns
        ]
        return iter(sorted(found, key=lambda c: (c.place_id, c.id)))

    def iter_copied(self, pair: TeamClass, *, after_ns: int | None, until_ns: int) -> Iterator[Candidate]:
        found = [
            c
            for c in self._of(pair)
            if c.original == Original.SETTLED
            and c.archive_id is not None
            and c.stay_until_ns is None
            and _written(c, after_ns, until_ns)
        ]
        return iter(sorted(found, key=_by_write))

    def iter_unextracted(self, pair: TeamClass, *, now_ns: int) -> Iterator[Unextracted]:
        for archive in sorted(self._archives.values(), key=lambda archive: archive.id):
            found = [
                c
                for c in self._of(pair)
                if c.archive_id == archive.id and c.error_blocks is None and (c.set_aside_until_ns or 0) <= now_ns
            ]
            if found and archive.state == ArchiveState.LIVE:
                yield Unextracted(archive, len(found), sum(c.size_bytes for c in found))

    def iter_members(self, archive_ids: Sequence[int]) -> Iterator[ArchiveMarks]:
        for archive_id in archive_ids:
            members = sorted((c for c in self._candidates if c.archive_id == archive_id), key=lambda c: c.id)
            yield ArchiveMarks(self._archives[archive_id], members)

    def open_usage(self, cutoffs: Sequence[tuple[TeamClass, int]]) -> Iterator[tuple[TeamClass, Usage]]:
        for pair, until_ns in sorted(cutoffs):
            found = [
                c
                for c in self._of(pair)
                if c.original == Original.OPEN
                and c.archive_id is None
                and c.marked_ns is None
                and _written(c, None, until_ns)
            ]
            if found:
                yield pair, _usage(found)

    def unknown_age_usage(self, pair: TeamClass) -> Iterator[tuple[TierName, Usage]]:
        found = [c for c in self._of(pair) if c.marked_ns is None and c.last_write_ns is None]
        yield from _by_tier(found)

    def usage(self, pair: TeamClass, *, before_day: int | None) -> Iterator[tuple[TierName, Usage]]:
        found = [
            c
            for c in self._of(pair)
            if before_day is None
            or day_of_ns(c.first_seen_ns if c.last_write_ns is None else c.last_write_ns) < before_day
        ]
        originals = [c for c in found if c.original in _IN_HOT]
        if originals:
            yield TierName.HOT, _usage(originals, stored=False)
        for tier in (TierName.WARM, TierName.COLD):
            stored = [c for c in found if c.archive_tier == tier]
            if stored:
                yield tier, _usage(stored)

    def _of(self, pair: TeamClass) -> Iterator[Candidate]:
        return (candidate for candidate in self._candidates if _pair(candidate) == pair)


def _pair(candidate: Candidate) -> TeamClass:
    return TeamClass(candidate.team, candidate.class_name)


def _by_write(candidate: Candidate) -> tuple[int, int]:
    return candidate.last_write_ns or 0, candidate.id


def _written(candidate: Candidate, after_ns: int | None, until_ns: int) -> bool:
    written = candidate.last_write_ns
    return written is not None and written <= until_ns and (after_ns is None or written > after_ns)


def _grace_over(candidate: Candidate, now_ns: int) -> bool:
    return candidate.purge_after_ns is not None and candidate.purge_after_ns <= now_ns


_IN_HOT = frozenset((Original.OPEN, Original.SETTLED, Original.MISSING))


def _usage(candidates: Iterable[Candidate], *, stored: bool = True) -> Usage:
    total = Usage()
    for c in candidates:
        size = c.stored_bytes if stored and c.archive_id is not None else c.allocated_bytes
        total += Usage(segments=1, logical_bytes=c.size_bytes, stored_bytes=size)
    return total


def _by_tier(candidates: Sequence[Candidate]) -> Iterator[tuple[TierName, Usage]]:
    for tier in TierName:
        found = [candidate for candidate in candidates if candidate.tier == tier]
        if found:
            yield tier, _usage(found)
