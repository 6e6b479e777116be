"""What asks for a person: places, archives, runs and scans that are not as they should be, each with what to type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from lifecycle.catalog.places import Finding, Place
from lifecycle.catalog.reclassifying import WaitingChange
from lifecycle.catalog.reporting import CatalogCounters
from lifecycle.errors import ExitCode
from lifecycle.report.figures import Attention, RunLine
from lifecycle.report.runs import EXIT_WORDS, count_of, describe_waiting
from lifecycle.units import format_count, format_duration

_NO_GOOD_RUN: Final = timedelta(hours=48)  # a nightly run may fail once before a person is called


def find_attention(
    known: Sequence[Place],
    found: Sequence[Finding],
    counted: CatalogCounters,
    waiting: Sequence[WaitingChange],
    policy_digest: str,
    *,
    last: RunLine | None,
    good: RunLine | None,
    now: datetime,
) -> tuple[Attention, ...]:
    """The urgent ones first; otherwise in the order in which one would look."""
    lines = (
        *_iter_attention(known, found, counted, last, good, now),
        *_iter_waiting(waiting, policy_digest),
    )
    return tuple(sorted(lines, key=lambda line: not line.is_urgent))


def _iter_attention(
    known: Sequence[Place],
    found: Sequence[Finding],
    counted: CatalogCounters,
    last: RunLine | None,
    good: RunLine | None,
    now: datetime,
) -> Iterator[Attention]:
    for place in known:
        if place.state != "ok":
            text = f"{place.state}: {place.state_text}" if place.state_text else place.state
            yield Attention(is_urgent=True, subject=place.name, text=text, hint="lifecycle audit --section places")
    if counted.quarantined_archives:
        count = format_count(counted.quarantined_archives)
        text = f"{count} damaged, set aside: not moved or removed; restore gives what is whole"
        yield Attention(is_urgent=True, subject="archives", text=text, hint="lifecycle history --problems")
    yield from _run_attention(last, good, now)
    if counted.missing:
        text = f"{format_count(counted.missing)} segments not seen in the last complete scan; not taken for gone"
        yield Attention(is_urgent=False, subject="missing", text=text, hint="lifecycle ls --state missing --by job")
    if counted.unfinished_batches:
        text = f"{format_count(counted.unfinished_batches)} half done; the next run puts them right"
        yield Attention(is_urgent=False, subject="batches", text=text, hint="lifecycle run")
    for finding in found:
        if finding.kind == "unseen" and finding.files:
            name = next((place.name for place in known if place.id == finding.place_id), "")
            text = f"{format_count(finding.files)} not readable: {finding.detail or finding.example}"
            yield Attention(is_urgent=False, subject=name, text=text, hint="lifecycle audit --section findings")


def _iter_waiting(waiting: Sequence[WaitingChange], policy_digest: str) -> Iterator[Attention]:
    for change in waiting:
        hint = f'lifecycle policy accept {policy_digest[:6]} --reason "…"'
        yield Attention(is_urgent=False, subject="policy", text=describe_waiting(change), hint=hint)


def _run_attention(last: RunLine | None, good: RunLine | None, now: datetime) -> Iterator[Attention]:
    if last is None:
        yield Attention(is_urgent=False, subject="run", text="there was no run yet", hint="lifecycle plan")
        return
    if last.exit_code is None:
        text = f"run {last.run_id} has not ended: it runs now, or it was killed"
        yield Attention(is_urgent=False, subject="run", text=text, hint="lifecycle history")
    elif last.exit_code not in (ExitCode.DONE, ExitCode.ATTENTION):
        is_bad = last.exit_code in (ExitCode.DAMAGE, ExitCode.FAILED)
        problems = f", {count_of(last.problems, 'problem')}" if last.problems else ""
        text = f"run {last.run_id}: {EXIT_WORDS[last.exit_code]} (exit {int(last.exit_code)}){problems}"
        yield Attention(is_urgent=is_bad, subject="run", text=text, hint=f"lifecycle history {last.run_id} --problems")
    since = good.now if good else None
    if since is None or now - since > _NO_GOOD_RUN:
        ago = f"the last good run was {format_duration(now - since)} ago" if since else "no run has ended well yet"
        yield Attention(is_urgent=since is not None, subject="run", text=ago, hint="lifecycle audit --section runs")
