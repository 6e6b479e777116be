"""Archives that held members keep: rewritten without the members that may go, or left as they are. Pure.

An archive goes whole, so that one held member keeps all the others with it. Where at least half of it would go, the
members that stay are stored anew in the same tier; the old archive then holds none but those that go, and goes whole
after another grace time (design section 5). Less than half is not worth reading and writing the rest: it is kept, and
the audit says how much is kept beyond its retention.

Only a hold is reason enough, or errors that cannot be read (``decide.keeps_its_archive``): whatever else keeps a member
is over in days, and then all go together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from lifecycle.model import ArchiveState, PlannedBatch, TierName
from lifecycle.plan.batches import BatchMaker
from lifecycle.plan.source import ArchiveMarks, Candidate, DueSource


def is_worth_it(
    archive_state: str,
    going: Sequence[Candidate],
    staying: Sequence[Candidate],
    keeps: Callable[[Candidate], bool],
) -> bool:
    """Whether an archive is rewritten for ``staying``: one of them keeps it, and at least half of its bytes go."""
    if archive_state != ArchiveState.LIVE or not any(map(keeps, staying)):
        return False
    goes = sum(member.size_bytes for member in going)
    return goes > 0 and 2 * goes >= goes + sum(member.size_bytes for member in staying)


def parted(marks: ArchiveMarks, may_go: Callable[[Candidate], bool]) -> tuple[list[Candidate], list[Candidate]]:
    """Live members that go, and those that stay."""
    going = [member for member in marks.members if may_go(member)]
    gone = {member.id for member in going}
    return going, [member for member in marks.members if member.id not in gone]


def iter_rewrites(
    source: DueSource,
    now_ns: int,
    make: BatchMaker,
    may_go: Callable[[Candidate], bool],
    moves_on: Callable[[Candidate], bool],
    keeps: Callable[[Candidate], bool],
    full: Collection[TierName],
) -> Iterator[PlannedBatch]:
    """One batch for each archive. In a full tier none: the new archive needs room before the old one gives any. What
    is about to move to a colder tier is moved first."""
    for marks in source.iter_marked_archives(now_ns=now_ns):
        archive = marks.archive
        if TierName(archive.tier) in full or len(marks.members) != archive.live_members:
            continue
        going, staying = parted(marks, may_go)
        if is_worth_it(archive.state, going, staying, keeps) and not any(map(moves_on, staying)):
            yield make.rewrite(archive, staying)
