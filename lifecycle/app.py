"""One command's open world, and what can be said of its places: which they are, whether they are ours and alive.

Knows policy, catalog, markers and host; opens nothing itself (``wiring`` does) and never looks at a log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lifecycle.catalog.places import Place, places
from lifecycle.catalog.store import Catalog
from lifecycle.errors import LifecycleError, PlaceUnavailable
from lifecycle.model import PlaceKind
from lifecycle.plan.pressure import FileSystem
from lifecycle.plan.source import CopyRule
from lifecycle.policy.rules import Policy, SourceRule
from lifecycle.ports import Clock, TierSpec
from lifecycle.scan.marker import Marker, read_marker, write_marker
from lifecycle.scan.space import Ground, measure_space
from lifecycle.units import duration_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """One command's open world."""

    policy: Policy
    catalog: Catalog
    clock: Clock
    host: str
    measure: Callable[[Sequence[Ground]], tuple[FileSystem, ...]] = measure_space

    def now(self) -> datetime:
        return self.clock.now()


def host_of(source: SourceRule, host: str) -> str:
    return host if source.each_node else ""


def tier_spec(place: Place) -> TierSpec:
    return TierSpec(kind="local", root=place.root)


def known_places(app: App) -> list[tuple[Place, SourceRule | None]]:
    """Places of the policy that the catalog knows, sources first, with their rule; what policy dropped is left out.

    Each with the root that the policy gives it today: whether that is where it lies is for its marker to say.
    """
    with app.catalog.read() as conn:
        by_name = {(place.kind, place.name, place.host): place for place in places(conn)}
    found: list[tuple[Place, SourceRule | None]] = []
    for source in app.policy.sources:
        place = by_name.get((PlaceKind.SOURCE, source.name, host_of(source, app.host)))
        if place is not None:
            found.append((replace(place, root=source.path), source))
    for name, tier in app.policy.tiers.items():
        place = by_name.get((PlaceKind.TIER, name.value, ""))
        if place is not None:
            found.append((replace(place, root=tier.path), None))
    return found


def reachable_places(app: App) -> list[tuple[Place, SourceRule | None]]:
    """Those that carry their own marker: what lies below an empty mount point is another file system."""
    found = []
    for place, source in known_places(app):
        with contextlib.suppress(LifecycleError):
            check_marker(app, place)
            found.append((place, source))
    return found


def measure(app: App, known: Sequence[tuple[Place, SourceRule | None]]) -> tuple[FileSystem, ...]:
    """The file systems under these places as they are now."""
    grounds = [
        Ground(
            place_id=place.id,
            name=place.name,
            tier=place.tier,
            root=place.root,
            command=source.free_space if source is not None else (),
        )
        for place, source in known
    ]
    return app.measure(grounds)


def copy_rules(app: App) -> dict[int, CopyRule]:
    """``copy_after`` of the sources that have it, by place."""
    return {
        place.id: CopyRule(duration_ns(source.copy_after), source.at.get("copy_after"))
        for place, source in known_places(app)
        if source is not None and source.copy_after is not None
    }


def unknown_places(app: App) -> list[str]:
    """What policy names and no ``lifecycle init`` has seen yet."""
    known = {(place.kind, place.name) for place, _ in known_places(app)}
    wanted = [(PlaceKind.SOURCE, source.name) for source in app.policy.sources]
    wanted += [(PlaceKind.TIER, name.value) for name in app.policy.tiers]
    return [f"{kind} {name}" for kind, name in wanted if (kind, name) not in known]


def check_marker(app: App, place: Place) -> str:
    """Raises PlaceUnavailable unless the place carries its own marker. "" when the catalog is up to date with it, else
    why the catalog is older than the place: then nothing may be stored or removed there."""
    marker = read_marker(place.root)
    if marker is None:
        raise PlaceUnavailable(
            f"{place}: no marker in {place.root}; it may be unmounted or replaced",
            hint="mount it; if it is new and really yours: lifecycle init",
        )
    catalog_id = app.catalog.facts().catalog_id
    if (marker.catalog_id, marker.place_uid) != (catalog_id, place.uid):
        raise PlaceUnavailable(
            f"{place}: {place.root} belongs to catalog {marker.catalog_id[:8]} ({marker.kind} {marker.name}), "
            f"this catalog is {catalog_id[:8]}",
            hint="nothing is done there; give it its own directory, or remove .lifecycle from a copied tree",
        )
    if marker.generation <= place.generation:
        return ""
    return f"{place}: its marker is of generation {marker.generation}, this catalog knows {place.generation}"


def put_marker(catalog_id: str, place: Place) -> None:
    head = place.chain_head.hex() if place.chain_head else ""
    marker = Marker(
        place_uid=place.uid,
        catalog_id=catalog_id,
        generation=place.generation,
        chain_head=head,
        kind=place.kind.value,
        name=place.name,
    )
    write_marker(place.root, marker)
