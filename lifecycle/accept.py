"""A policy's changes accepted by a person: what they would do to known segments, shown, and recorded with the reason.

Knows what needs an acceptance. Never applies it: the next run does, page by page, under its leases.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from lifecycle.app import App, known_places
from lifecycle.catalog.acceptance import accept
from lifecycle.catalog.braking import retentions
from lifecycle.catalog.due import CatalogDue
from lifecycle.catalog.reclassifying import WaitingChange, waiting_changes
from lifecycle.catalog.store import copy_for_preview
from lifecycle.errors import UsageError
from lifecycle.plan.brakes import Newly, iter_newly
from lifecycle.report.figures import AcceptanceReport
from lifecycle.scan.reclassify import reclassify_place
from lifecycle.units import from_ns, to_ns

_SHORTEST = 6  # digits of a digest, as every report shows it


def present(app: App) -> datetime:
    """A rehearsal's runs may lie ahead of the clock; what is due then is what is accepted."""
    facts = app.catalog.facts()
    return max(app.now(), from_ns(facts.clock_ns)) if facts.rehearsal else app.now()


def find_waiting(app: App) -> tuple[tuple[WaitingChange, ...], tuple[Newly, ...]]:
    """What policy would change of known segments if it were accepted: classes that keep shorter, and what is newly past
    its retention. Counted on a private copy of the catalog."""
    now = present(app)
    with copy_for_preview(app.catalog.url, now=now) as copy:
        world = App(policy=app.policy, catalog=copy, clock=app.clock, host=app.host)
        for place, source in known_places(world):
            if source is not None:
                reclassify_place(
                    copy, place, source, app.policy, host=app.host, now=present(app), run_id=None, lease=None
                )
        with copy.read() as conn:
            changes, in_force = tuple(waiting_changes(conn)), retentions(conn)
        removals = iter_newly(CatalogDue(copy), app.policy, to_ns(now), in_force=in_force)
        return changes, tuple(removals)


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
    changes, removals = find_waiting(app)
    if changes or removals:
        with app.catalog.write() as conn:
            accept(
                conn,
                policy_digest=current,
                figures={"changes": [asdict(change) for change in changes], "removals": list(map(_figures, removals))},
                reason=reason,
                accepted_by=accepted_by,
                now_ns=to_ns(present(app)),
            )
    return AcceptanceReport(
        policy_digest=current, reason=reason, accepted_by=accepted_by, changes=changes, removals=removals
    )


def _figures(newly: Newly) -> dict[str, object]:
    """As ``catalog.acceptance`` reads them back."""
    usage = newly.usage
    return {
        "team": newly.team, "class": newly.class_name, "segments": usage.segments,
        "logical_bytes": usage.logical_bytes,
    }  # fmt: skip
