"""What the executor may act on: opened places with their leases, and the facts that every archive carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

from lifecycle.catalog.expiry import Expiry
from lifecycle.catalog.extractions import Extractions
from lifecycle.catalog.journal import Journal
from lifecycle.catalog.lease import Lease
from lifecycle.catalog.places import Place
from lifecycle.model import TierName
from lifecycle.policy.rules import Policy
from lifecycle.ports import TierSpec, TierWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPlace:
    """One place of this run. A place without a lease is read at the most."""

    place: Place
    lease: Lease | None
    mounts: tuple[bytes, ...] = ()  # sources: other devices below the root that may be entered
    sees_writers: bool = False  # sources: whether evidence of writers works here
    spec: TierSpec | None = None  # tiers: how a worker opens it
    writer: TierWriter | None = None  # tiers: the parent's own handle, for removing


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Everything a batch needs besides itself."""

    journal: Journal
    expiry: Expiry
    extractions: Extractions
    policy: Policy
    catalog_id: str
    now_ns: int
    places: Mapping[int, WorkPlace]
    pool: Callable[[], Executor]
    inline: Executor
    workers: int
    monotonic: Callable[[], float]
    stop: Callable[[], str]  # "" while the run may begin another batch, else why not
    full: set[int] = field(default_factory=set)  # places that answered "no space": skipped for the rest of the run

    def tier_place(self, tier: TierName) -> WorkPlace | None:
        """The place of a tier, when this run may write to it."""
        found = (work for work in self.places.values() if work.spec is not None and work.place.tier is tier)
        return next((work for work in found if work.lease is not None and work.place.id not in self.full), None)

    def lease_of(self, place_id: int) -> Lease:
        lease = self.places[place_id].lease
        if lease is None:
            raise LookupError(f"no lease on place {place_id}")
        return lease
