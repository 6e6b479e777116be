"""Holds as people give and end them, and what each run does about them: new segments are covered, dates are kept.

Knows the order: an end by date comes before new segments are looked for, both before anything is planned. Never decides
what a hold forbids (``plan.decide`` does) nor how it stands in the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from lifecycle.app import App
from lifecycle.catalog.holds import (
    add_hold,
    all_holds,
    apply_holds,
    end_holds,
    going_now,
    note_missed,
    record_hold,
    renew_hold,
    standing_holds,
)
from lifecycle.catalog.places import Place
from lifecycle.catalog.segments import count_segments
from lifecycle.catalog.selecting import shown_path
from lifecycle.errors import NothingFound, UsageError
from lifecycle.model import Hold, Selector
from lifecycle.plan.holds import MISSED, Asked, compare_files, compare_holds
from lifecycle.policy.selecting import describe_selector
from lifecycle.report.figures import HoldReport
from lifecycle.report.holds import hold_lines
from lifecycle.scan.holdfile import HOLD_NAME, HoldFile
from lifecycle.units import duration_ns, format_instant, from_ns, to_ns

COMMAND = "command"


def add(app: App, selector: Selector, *, reason: str, owner: str, ends: datetime | None, pending: bool) -> HoldReport:
    """Hold what the selector selects, now and later. Durable, and in force for a run at work, when this returns.

    Raises NothingFound where it selects nothing and is not ``pending``, UsageError for an end that has passed.
    """
    now = app.now()
    if ends is not None and ends <= now:
        raise UsageError(f"the hold would have ended {format_instant(ends)} already", hint="--ends +90d")
    if not reason.strip() or not owner.strip():
        raise UsageError("a hold needs a reason and an owner", hint='--reason "paper, table 3" --owner chen')
    if not pending and count_segments(app.catalog, selector) == 0:
        raise NothingFound(
            f"no segment is selected by {describe_selector(selector)}",
            hint="lifecycle ls with the same selectors; --pending holds what is yet to come",
        )
    hold = Hold(
        selector=selector, reason=reason.strip(), owner=owner.strip(), source=COMMAND, created_ns=to_ns(now),
        ends_ns=None if ends is None else to_ns(ends), pending=pending,
    )  # fmt: skip
    with app.catalog.write() as conn:
        hold = add_hold(conn, hold)
    apply_holds(app.catalog, [hold])
    with app.catalog.write() as conn:
        record_hold(conn, hold, kind="hold_began", now_ns=to_ns(now))
        going = going_now(conn, hold.id)
    (line,) = hold_lines(app.catalog, app.policy, app.now(), [hold])
    return HoldReport(holds=(line,), going=going)


def end(app: App, ids: Sequence[int], *, by: str, why: str) -> HoldReport:
    """They forbid nothing from now on; what is past its retention is marked by the next run. Raises NothingFound for an
    id that no hold has, UsageError for one that has ended: then none is ended."""
    with app.catalog.read() as conn:
        known = {hold.id: hold for hold in all_holds(conn)}
    for number in ids:
        if number not in known:
            raise NothingFound(f"there is no hold {number}", hint="lifecycle hold list --all")
        if (ended := known[number].ended_ns) is not None:
            raise UsageError(
                f"hold {number} ended {format_instant(from_ns(ended))} already", hint="lifecycle hold list"
            )
    ending = [known[number] for number in dict.fromkeys(ids)]
    lines = hold_lines(app.catalog, app.policy, app.now(), ending)
    with app.catalog.write() as conn:
        end_holds(conn, ending, by=by, why=why, now_ns=to_ns(app.now()))
    return HoldReport(holds=tuple(lines))


def list_holds(app: App, *, ended: bool) -> HoldReport:
    with app.catalog.read() as conn:
        holds = all_holds(conn) if ended else standing_holds(conn)
    return HoldReport(holds=tuple(hold_lines(app.catalog, app.policy, app.now(), holds)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The hold files of one place, as a scan found them."""

    place: Place
    files: tuple[HoldFile, ...]
    is_complete: bool
    unlooked: tuple[bytes, ...]  # folders that nothing is known of below

    def is_believed(self, directory: bytes) -> bool:
        """Whether a file that was not seen there is not there."""
        above = (path for path in self.unlooked if not path or directory == path or directory.startswith(path + b"/"))
        return self.is_complete and next(above, None) is None


def refresh(app: App, *, now: datetime, run_id: int | None, keeps_all: bool, seen: Sequence[Seen] = ()) -> int:
    """What a run does before it plans: holds of policy and of files begin, those whose date has come end, new segments
    are covered. How many came.

    ``keeps_all``: the clock is not to be believed, so that no hold ends today. A second call finds nothing to do.
    """
    catalog, now_ns = app.catalog, to_ns(now)
    with catalog.read() as conn:
        known = all_holds(conn)
    changes = compare_holds(app.policy, known, now_ns)
    if changes.begin or changes.renew:
        with catalog.write() as conn:
            for hold in changes.begin:
                record_hold(conn, add_hold(conn, hold), kind="hold_began", now_ns=now_ns, run_id=run_id)
            for hold in changes.renew:
                renew_hold(conn, hold)
                record_hold(conn, hold, kind="hold_renewed", now_ns=now_ns, run_id=run_id)
    for each in seen:
        _refresh_files(app, each, known, now_ns=now_ns, run_id=run_id, keeps_all=keeps_all)
    with catalog.read() as conn:
        standing = standing_holds(conn)
    over = [hold for hold in standing if hold.ends_ns is not None and hold.ends_ns <= now_ns and not keeps_all]
    if over:
        with catalog.write() as conn:
            end_holds(conn, over, by="date", why="", now_ns=now_ns, run_id=run_id)
    gone = {hold.id for hold in over}
    return sum(apply_holds(catalog, [hold for hold in standing if hold.id not in gone]).values())


def _refresh_files(
    app: App, seen: Seen, known: Sequence[Hold], *, now_ns: int, run_id: int | None, keeps_all: bool
) -> None:
    depth = _depth_of_jobs(app, seen.place)
    asked = [
        Asked(
            place_id=seen.place.id,
            directory=file.directory,
            reason=file.reason,
            owner=file.owner,
            ends_ns=None if file.ends is None else to_ns(file.ends),
            source=f"file {shown_path(seen.place.root, file.directory)}/{HOLD_NAME}",
        )
        for file in seen.files
        if is_of_a_job(file, depth)
    ]
    bound = app.policy.hold_bound
    changes = compare_files(
        seen.place.id,
        asked,
        known,
        now_ns,
        lasts_at_most_ns=None if bound is None else duration_ns(bound),
        is_believed=seen.is_believed,
    )
    ending = () if keeps_all else changes.end
    if not (changes.begin or changes.renew or changes.missed or ending):
        return
    with app.catalog.write() as conn:
        for hold in changes.begin:
            record_hold(conn, add_hold(conn, hold), kind="hold_began", now_ns=now_ns, run_id=run_id)
        for hold in changes.renew:
            renew_hold(conn, hold)
            record_hold(conn, hold, kind="hold_renewed", now_ns=now_ns, run_id=run_id)
        note_missed(conn, [hold.id for hold in changes.missed])
        why = f"not there in {MISSED} complete scans"
        end_holds(conn, ending, by="file", why=why, now_ns=now_ns, run_id=run_id)


def hold_file_problems(app: App, seen: Seen) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of files that hold nothing, or not as they say."""
    depth = _depth_of_jobs(app, seen.place)
    for file in seen.files:
        path = f"{shown_path(seen.place.root, file.directory)}/{HOLD_NAME}"
        if not is_of_a_job(file, depth):
            yield path, "not in a job's folder: it holds nothing"
        elif file.problem:
            yield path, f"{file.problem}; it holds until bounds.hold is over, or until it is gone"


def is_of_a_job(file: HoldFile, depth: int) -> bool:
    return (file.directory.count(b"/") + 1 if file.directory else 0) >= depth


def _depth_of_jobs(app: App, place: Place) -> int:
    return next((source.job_depth for source in app.policy.sources if source.name == place.name), 1)
