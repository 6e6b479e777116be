"""A policy's changes, or a catalog out of a backup, accepted by a person: shown, and recorded with the reason.

Knows what needs an acceptance. Never applies it: the next run does, page by page, under its leases.
"""

from __future__ import annotations

from dataclasses import asdict

from lifecycle.app import App, known_places
from lifecycle.catalog.acceptance import accept
from lifecycle.catalog.braking import retentions
from lifecycle.catalog.due import CatalogDue
from lifecycle.catalog.events import append_event
from lifecycle.catalog.holds import all_holds, end_holds, record_hold, renew_hold
from lifecycle.catalog.lease import take_lease
from lifecycle.catalog.places import Place, set_marker_generation
from lifecycle.catalog.reclassifying import WaitingChange, waiting_changes
from lifecycle.catalog.store import copy_for_preview
from lifecycle.errors import UsageError
from lifecycle.plan.brakes import Newly, iter_newly
from lifecycle.plan.holds import compare_holds
from lifecycle.report.figures import AcceptanceReport
from lifecycle.report.holds import hold_lines
from lifecycle.scan.marker import read_marker
from lifecycle.scan.reclassify import reclassify_place
from lifecycle.units import to_ns

_SHORTEST = 6  # digits of a digest, as every report shows it


def find_waiting(app: App) -> tuple[tuple[WaitingChange, ...], tuple[Newly, ...]]:
    """What policy would change of known segments if it were accepted: classes that keep shorter, and what is newly past
    its retention. Counted on a private copy of the catalog."""
    now = app.now()
    with copy_for_preview(app.catalog.url, now=now) as copy:
        world = App(policy=app.policy, catalog=copy, clock=app.clock, host=app.host)
        for place, source in known_places(world):
            if source is not None:
                reclassify_place(copy, place, source, app.policy, host=app.host, now=app.now(), run_id=None, lease=None)
        with copy.read() as conn:
            changes, in_force = tuple(waiting_changes(conn)), retentions(conn)
        removals = iter_newly(CatalogDue(copy), app.policy, to_ns(now), in_force=in_force)
        return changes, tuple(removals)


def accept_catalog(app: App, *, reason: str, accepted_by: str) -> list[tuple[Place, int]]:
    """Take an older catalog for the one that counts: places whose markers are ahead of it are worked on again.

    The places, with the generation that each was at before; empty when none was ahead, and then nothing is written.
    What was stored or removed since is not known any more: files that were stored then come up missing, objects that
    were made then belong to nobody. Raises LeaseHeld while a run has one of the places.
    """
    accepted = []
    for place, _ in known_places(app):
        marker = read_marker(place.root)
        ours = (place.uid, app.catalog.facts().catalog_id)
        if marker is None or (marker.place_uid, marker.catalog_id) != ours or marker.generation <= place.generation:
            continue
        with take_lease(app.catalog, place, holder="catalog accept", now=app.now()) as lease:
            body = {"reason": reason, "by": accepted_by, "from": place.generation, "to": marker.generation}
            with app.catalog.write(lease) as conn:
                set_marker_generation(conn, place.id, marker.generation)
                append_event(conn, place_id=place.id, at_ns=to_ns(app.now()), kind="catalog_accepted", body=body)
        accepted.append((place, place.generation))
    return accepted


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
    now_ns = to_ns(app.now())
    with app.catalog.read() as conn:
        known = all_holds(conn)
    shorter = compare_holds(app.policy, known, now_ns).shorten
    shown = hold_lines(
        app.catalog, app.policy, app.now(), [hold for hold in known if hold.id in {each.id for each in shorter}]
    )
    if changes or removals or shorter:
        with app.catalog.write() as conn:
            end_holds(conn, [h for h in shorter if h.ends_ns is None], by=accepted_by, why=reason, now_ns=now_ns)
            for hold in shorter:
                if hold.ends_ns is not None:
                    renew_hold(conn, hold)
                    record_hold(conn, hold, kind="hold_renewed", now_ns=now_ns, by=accepted_by, why=reason)
            accept(
                conn,
                policy_digest=current,
                figures={
                    "changes": [asdict(change) for change in changes],
                    "removals": list(map(_figures, removals)),
                    "holds": [{"hold": hold.id, "ends_ns": hold.ends_ns} for hold in shorter],
                },
                reason=reason,
                accepted_by=accepted_by,
                now_ns=now_ns,
            )
    return AcceptanceReport(
        policy_digest=current,
        reason=reason,
        accepted_by=accepted_by,
        changes=changes,
        removals=removals,
        holds=tuple(shown),
    )


def _figures(newly: Newly) -> dict[str, object]:
    """As ``catalog.acceptance`` reads them back."""
    usage = newly.usage
    return {
        "team": newly.team, "class": newly.class_name, "segments": usage.segments,
        "logical_bytes": usage.logical_bytes,
    }  # fmt: skip
