"""Why one segment is where it is: each condition with its present and its required value, what is next, what then.

Knows the rules through ``figures`` and ``decide``, the same that the planner follows. Looks at one segment and its
archive, so it cannot know about the archive's other members: a purge of a shared archive says that it depends on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from lifecycle.model import ActionKind, Archive, ArchiveState, Original, Reason, ReasonCode, RuleRef, Segment, TierName
from lifecycle.plan.decide import (
    candidate_of,
    copy_blocker,
    extraction_blocker,
    mark_blocker,
    mark_fault,
    move_blocker,
    purge_blocker,
    reached_tier,
    retention_blocker,
)
from lifecycle.plan.figures import FIRST_SIGHT, FIRST_SIGHT_NS, JOB_FACTOR, FigureBook, Figures
from lifecycle.plan.reasons import make_reason, render_age, required_tier_of, until_ns
from lifecycle.plan.source import Candidate
from lifecycle.policy.rules import Policy
from lifecycle.policy.waiting import awaited
from lifecycle.units import duration_ns, format_limit, to_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One thing that must hold before something happens to the segment."""

    name: str  # "old enough for warm"
    is_met: bool
    current: str
    required: str
    rule: RuleRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that will happen, if nothing changes: no more writes, no other policy, runs that work."""

    kind: ActionKind
    tier_to: TierName | None  # None: gone; for marks the tier it stays in
    at_ns: int  # due from here; a run after it acts
    is_due: bool
    rule: RuleRef | None
    kept_back: Reason | None = None  # due, and this stands against it
    note: str = ""  # what the date depends on: "counts from the job's last write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """``next`` is None where nothing will ever happen by itself; then ``nothing`` says why."""

    segment: Segment
    archive: Archive | None
    conditions: tuple[Condition, ...]
    next: Step | None
    then: tuple[Step, ...]
    nothing: Reason | None


def explain(segment: Segment, archive: Archive | None, policy: Policy, now: datetime) -> Explanation:
    """All about one segment at ``now``. ``archive`` is the one that holds its stored copy, None without one."""
    candidate = candidate_of(segment, archive)
    figures = FigureBook(policy).of(candidate.team, candidate.class_name)
    view = _View(candidate, figures, policy, to_ns(now), archive)
    if segment.tier is None:
        steps: tuple[Step, ...] = ()
        conditions: tuple[Condition, ...] = ()
    else:
        steps, conditions = tuple(view.steps()), tuple(view.conditions())
    return Explanation(
        segment=segment,
        archive=archive,
        conditions=conditions,
        next=steps[0] if steps else None,
        then=steps[1:],
        nothing=None if steps or segment.tier is None else view.why_nothing(),
    )


def mark_due_ns(it: Candidate | Segment, figures: Figures) -> int | None:
    """From when on it can be marked: its retention is over, it was seen for a day, its stay has ended. None: never, or
    its age is not known."""
    end_ns = None if it.last_write_ns is None else figures.retention_end_ns(it.last_write_ns, it.job_last_write_ns)
    return None if end_ns is None else max(end_ns, it.first_seen_ns + FIRST_SIGHT_NS, it.stay_until_ns or 0)


def purge_due_ns(it: Candidate | Segment, grace_ns: int) -> int:
    """From when on what is marked can be purged: by the longer of the grace of its mark and today's, after its stay."""
    return max(it.purge_after_ns or 0, (it.marked_ns or 0) + grace_ns, it.stay_until_ns or 0)


class _View:
    def __init__(
        self, candidate: Candidate, figures: Figures | ReasonCode, policy: Policy, now_ns: int, archive: Archive | None
    ) -> None:
        self._c = candidate
        self._figures = figures
        self._policy = policy
        self._now_ns = now_ns
        self._archive = archive
        self._grace_ns = duration_ns(policy.grace)

    # --- steps --------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Step]:
        """In the order in which they will happen."""
        if self._c.marked_ns is not None:
            yield from self._marked_steps()
            return
        yield from self._release_steps()
        yield from self._extraction()
        if not isinstance(self._figures, Figures) or self._c.last_write_ns is None:
            return
        end_ns = mark_due_ns(self._c, self._figures)
        for step in self._moves(self._figures, self._c.last_write_ns):
            if end_ns is None or step.at_ns < end_ns or step.is_due:
                yield step
        if end_ns is not None:
            yield from self._expiry(self._figures, end_ns)

    @property
    def _is_returned(self) -> bool:
        return self._is_beside_its_copy and self._c.stay_until_ns is not None

    @property
    def _is_copied(self) -> bool:
        return self._is_beside_its_copy and self._c.stay_until_ns is None

    @property
    def _is_beside_its_copy(self) -> bool:
        return self._c.archive_id is not None and self._c.original == Original.SETTLED

    def _release_steps(self) -> Iterator[Step]:
        """A restored original goes first, when its stay is over; only then is the stored copy the last of it."""
        if self._is_returned:
            at_ns = self._c.stay_until_ns or self._now_ns
            yield self._step(ActionKind.RELEASE, reached_tier(self._c), at_ns, ReasonCode.STAY_OVER, None)
        elif self._is_copied and isinstance(self._figures, Figures):
            yield from self._release_of_copied(self._figures)

    def _release_of_copied(self, figures: Figures) -> Iterator[Step]:
        if figures.first_move_ns is None or self._c.last_write_ns is None:
            return
        at_ns, blocker = self._c.last_write_ns + figures.first_move_ns, copy_blocker(self._c, self._now_ns)
        note = "its original goes; its stored copy was made early"
        yield self._step(ActionKind.RELEASE, reached_tier(self._c), at_ns, ReasonCode.AGED, blocker, note=note)

    def _marked_steps(self) -> Iterator[Step]:
        wrong = mark_fault(self._c, self._figures, self._now_ns)
        if wrong is not None:
            yield self._step(ActionKind.UNMARK, reached_tier(self._c), self._now_ns, wrong, None)
            return
        yield from self._release_steps()
        yield from self._extraction()
        at_ns = purge_due_ns(self._c, self._grace_ns)
        blocker = purge_blocker(self._c, self._figures, self._grace_ns, self._now_ns)
        yield self._purge(at_ns, blocker)

    def _extraction(self) -> Iterator[Step]:
        """Of what was stored without it, now; of what goes from where it lies, when it may go. Else on the way."""
        if not isinstance(self._figures, Figures) or extraction_blocker(self._c, self._figures) is None:
            return
        at_ns, blocker, after_ns = self._now_ns, None, self._figures.extract_in_hot_ns
        if self._c.archive_id is None:
            if after_ns is None or self._c.last_write_ns is None:
                return
            at_ns, blocker = self._c.last_write_ns + after_ns, move_blocker(self._c, self._now_ns)
        elif self._c.set_aside_until_ns is not None and self._c.set_aside_until_ns > self._now_ns:
            blocker = ReasonCode.SET_ASIDE
        yield self._step(ActionKind.EXTRACT, reached_tier(self._c), at_ns, ReasonCode.NOT_EXTRACTED, blocker)

    def _moves(self, figures: Figures, write_ns: int) -> Iterator[Step]:
        """To the tier of its age now, if it is behind; then to each colder one when its time comes."""
        reached = reached_tier(self._c)
        from_ns = write_ns
        if self._c.archive_id is not None and self._c.archive_newest_ns is not None:
            from_ns = self._c.archive_newest_ns  # an archive moves whole, when its newest member is old enough
        required = figures.required_tier(self._now_ns - from_ns)
        for tier in (TierName.WARM, TierName.COLD):
            limit_ns = figures.limit_ns(tier)
            if limit_ns is None or tier.warmth <= reached.warmth or tier.warmth < required.warmth:
                continue
            yield self._step(ActionKind.TRANSITION, tier, from_ns + limit_ns, ReasonCode.AGED, self._move_blocker())

    def _move_blocker(self) -> ReasonCode | None:
        if self._archive is not None:
            return ReasonCode.QUARANTINED if self._archive.state is ArchiveState.QUARANTINED else None
        return move_blocker(self._c, self._now_ns)

    def _expiry(self, figures: Figures, at_ns: int) -> Iterator[Step]:
        blocker = mark_blocker(self._c, figures, self._now_ns)
        note = f"counts from the job's last write, at most {JOB_FACTOR} times" if figures.by_job else ""
        if self._c.hold_id is not None:
            note = f"not while hold {self._c.hold_id} stands"
        yield self._step(ActionKind.MARK, reached_tier(self._c), at_ns, ReasonCode.EXPIRED, blocker, note=note)
        yield self._purge(max(at_ns, self._now_ns) + self._grace_ns, None)

    def _purge(self, at_ns: int, blocker: ReasonCode | None) -> Step:
        others = self._archive.live_members - 1 if self._archive is not None else 0
        note = f"with its archive, once its {others} other members may go, too" if others > 0 else ""
        return self._step(ActionKind.PURGE, None, at_ns, ReasonCode.GRACE_OVER, blocker, note=note)

    def _step(
        self,
        kind: ActionKind,
        tier: TierName | None,
        at_ns: int,
        code: ReasonCode,
        blocker: ReasonCode | None,
        *,
        note: str = "",
    ) -> Step:
        is_due = at_ns <= self._now_ns
        return Step(
            kind=kind,
            tier_to=tier,
            at_ns=at_ns,
            is_due=is_due,
            rule=self._reason(code, tier).rule,
            kept_back=self._reason(blocker, None) if is_due and blocker is not None else None,
            note=note,
        )

    def _reason(self, code: ReasonCode, tier: TierName | None) -> Reason:
        known = self._figures if isinstance(self._figures, Figures) else None
        if tier is None and known is not None:
            tier = required_tier_of(self._c, known, self._now_ns)
        until = until_ns(code, self._c, known, self._policy.grace)
        return make_reason(code, policy=self._policy, figures=known, tier=tier, until_ns=until)

    def why_nothing(self) -> Reason:
        code = retention_blocker(self._c, self._figures, self._now_ns)
        return self._reason(code or ReasonCode.NO_COLDER_TIER, None)

    # --- conditions ---------------------------------------------------------------------------------------------

    def conditions(self) -> Iterator[Condition]:
        """Those of what may still happen; obstacles that most segments never meet only where they stand."""
        if isinstance(self._figures, ReasonCode):
            yield Condition(name="policy knows team and class", is_met=False, current=str(self._figures), required="")
            return
        yield from self._of_age(self._figures)
        yield from self._of_state(self._figures)
        if self._c.marked_ns is not None:
            yield Condition(
                name="grace is over",
                is_met=purge_blocker(self._c, self._figures, self._grace_ns, self._now_ns) is not ReasonCode.IN_GRACE,
                current=f"marked {self._ago(self._c.marked_ns)}",
                required=format_limit(self._policy.grace),
                rule=self._policy.grace_at,
            )

    def _of_age(self, figures: Figures) -> Iterator[Condition]:
        write_ns = self._c.last_write_ns
        if write_ns is None:
            yield Condition(name="age is known", is_met=False, current="no believable last write", required="one")
            return
        wrote = f"last write {self._ago(write_ns)}"
        for tier in (TierName.WARM, TierName.COLD):
            after, limit_ns = figures.rule.after(tier), figures.limit_ns(tier)
            if after is not None and limit_ns is not None and tier.warmth > reached_tier(self._c).warmth:
                is_met = write_ns + limit_ns <= self._now_ns
                rule = figures.after(tier)
                yield Condition(
                    name=f"old enough for {tier}", is_met=is_met, current=wrote, required=format_limit(after), rule=rule
                )
        yield from self._of_retention(figures, write_ns, wrote)

    def _of_retention(self, figures: Figures, write_ns: int, wrote: str) -> Iterator[Condition]:
        expire = figures.rule.expire_after
        if expire is None or figures.expire_ns is None:
            return
        yield Condition(
            name="over its retention",
            is_met=write_ns + figures.expire_ns <= self._now_ns,
            current=wrote,
            required=format_limit(expire),
            rule=figures.at("expire_after"),
        )
        if figures.by_job:
            end_ns = figures.retention_end_ns(write_ns, self._c.job_last_write_ns) or 0
            yield Condition(
                name="its job is quiet",
                is_met=end_ns <= self._now_ns,
                current=f"the job's last write {self._ago(max(write_ns, self._c.job_last_write_ns))}",
                required=f"{format_limit(expire)}, or {format_limit(JOB_FACTOR * expire)} since its own",
                rule=figures.at("expire_from"),
            )
        yield Condition(
            name="seen for long enough",
            is_met=self._c.first_seen_ns + FIRST_SIGHT_NS <= self._now_ns,
            current=f"first seen {self._ago(self._c.first_seen_ns)}",
            required=format_limit(FIRST_SIGHT),
        )

    def _of_state(self, figures: Figures) -> Iterator[Condition]:
        c = self._c
        if c.archive_id is None:
            is_met = c.original == Original.SETTLED
            yield Condition(name="quiet, no writer seen", is_met=is_met, current=c.original, required="settled")
            if (waits := awaited(c.directory)) is not None:
                yield Condition(name=waits.rule.name, is_met=is_met, current=c.original, required="settled")
        required, reached = required_tier_of(c, figures, self._now_ns), reached_tier(c)
        yield Condition(
            name="in the tier of its age",
            is_met=reached.warmth >= required.warmth,
            current=reached.value,
            required=required.value,
            rule=figures.after(required) if required is not TierName.HOT else None,
        )
        if c.hold_id is not None:
            yield Condition(name="not held", is_met=False, current=f"hold {c.hold_id}", required="no hold")
        if figures.keeps_errors:
            looked = c.error_blocks is not None
            yield Condition(
                name="its errors are kept",
                is_met=looked,
                current=f"looked through, blocks: {c.error_blocks}" if looked else "not looked through",
                required=f"as {figures.rule.keep_errors_as}",
                rule=figures.at("keep_errors_as"),
            )
        if c.archive_state == ArchiveState.QUARANTINED:
            yield Condition(name="its archive is sound", is_met=False, current="quarantined", required="live")
        for name, until in (("not set aside", c.set_aside_until_ns), ("stay is over", c.stay_until_ns)):
            if until is not None and until > self._now_ns:
                yield Condition(
                    name=name, is_met=False, current=f"for {render_age(until - self._now_ns)}", required="now"
                )

    def _ago(self, instant_ns: int) -> str:
        return f"{render_age(self._now_ns - instant_ns)} ago"
