"""A policy's changes accepted by a person: what they would do to known segments, shown, and recorded with the reason.

Knows what needs an acceptance. Never applies it: the next run does, page by page, under its leases.
"""

from __future__ import annotations

from dataclasses import asdict

from lifecycle.app import App, known_places
from lifecycle.catalog.acceptance import accept
from lifecycle.catalog.reclassifying import WaitingChange, waiting_changes
from lifecycle.catalog.store import copy_for_preview
from lifecycle.errors import UsageError
from lifecycle.report.figures import AcceptanceReport
from lifecycle.scan.reclassify import reclassify_place
from lifecycle.units import to_ns

_SHORTEST = 6  # digits of a digest, as every report shows it


def find_waiting(app: App) -> tuple[WaitingChange, ...]:
    """What the policy would change of known segments if it were accepted. Counted on a private copy of the catalog."""
    with copy_for_preview(app.catalog.url, now=app.now()) as copy:
        world = App(policy=app.policy, catalog=copy, clock=app.clock, host=app.host)
        for place, source in known_places(world):
            if source is not None:
                reclassify_place(copy, place, source, app.policy, host=app.host, now=app.now(), run_id=None, lease=None)
        with copy.read() as conn:
            return tuple(waiting_changes(conn))


def accept_policy(app: App, digest: str, *, reason: str, accepted_by: str) -> AcceptanceReport:
    """Record that the changes which the policy in force brings are wanted. Raises UsageError for another digest.

    The digest is asked for so that nobody accepts what somebody else has written since. A second call records another
    row, which changes nothing.
    """
    current = app.policy.digest
    if len(digest) < _SHORTEST or not current.startswith(digest.lower()):
        raise UsageError(
            f"policy {digest} is not the one in force, which is {current[:_SHORTEST]}",
            hint=f"look at it again with lifecycle plan, then: lifecycle policy accept {current[:_SHORTEST]}",
        )
    changes = find_waiting(app)
    if changes:
        with app.catalog.write() as conn:
            accept(
                conn,
                policy_digest=current,
                figures={"changes": [asdict(change) for change in changes]},
                reason=reason,
                accepted_by=accepted_by,
                now_ns=to_ns(app.now()),
            )
    return AcceptanceReport(policy_digest=current, reason=reason, accepted_by=accepted_by, changes=changes)
