"""Holds as people give and end them, and what each run does about them: new segments are covered, dates are kept.

Knows the order: an end by date comes before new segments are looked for, both before anything is planned. Never decides
what a hold forbids (``plan.decide`` does) nor how it stands in the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lifecycle.app import App
from lifecycle.catalog.holds import (
    add_hold,
    all_holds,
    apply_holds,
    end_holds,
    going_now,
    record_hold,
    renew_hold,
    standing_holds,
)
from lifecycle.catalog.segments import count_segments
from lifecycle.errors import NothingFound, UsageError
from lifecycle.model import Hold, Selector
from lifecycle.plan.holds import compare_holds
from lifecycle.policy.selecting import describe_selector
from lifecycle.report.figures import HoldReport
from lifecycle.report.holds import hold_lines
from lifecycle.units import format_instant, from_ns, to_ns

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


def refresh(app: App, *, now: datetime, run_id: int | None, keeps_all: bool) -> int:
    """What a run does before it plans: holds of the policy begin, those whose date has come end, new segments are
    covered. How many came.

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
    with catalog.read() as conn:
        standing = standing_holds(conn)
    over = [hold for hold in standing if hold.ends_ns is not None and hold.ends_ns <= now_ns and not keeps_all]
    if over:
        with catalog.write() as conn:
            end_holds(conn, over, by="date", why="", now_ns=now_ns, run_id=run_id)
    gone = {hold.id for hold in over}
    return sum(apply_holds(catalog, [hold for hold in standing if hold.id not in gone]).values())
