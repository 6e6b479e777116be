"""Tiers by kind. A new kind is one module and its line in ``TIER_KINDS``; wiring, help and contract suite walk it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Protocol

from lifecycle.errors import UsageError
from lifecycle.ports import TierReader, TierSpec, TierWriter
from lifecycle.tiers import faulty, local, memory
from lifecycle.tiers.keys import check_key, make_key

__all__ = ["TIER_KINDS", "Tier", "TierKind", "check_key", "make_key", "open_tier", "pin"]


class Tier(TierReader, TierWriter, Protocol):
    """Both handles in one; hand planners and previews the ``TierReader`` side only."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TierKind:
    name: str
    summary: str
    open: Callable[[TierSpec], Tier]
    is_for_tests: bool = False  # policy offers the others only


def _by_name(*kinds: TierKind) -> Mapping[str, TierKind]:
    return MappingProxyType({kind.name: kind for kind in kinds})


def _open_faulty(spec: TierSpec) -> Tier:
    inner, faults = faulty.parse_spec(spec)
    return faulty.FaultyTier(open_tier(inner), faults)


TIER_KINDS: Final = _by_name(
    TierKind(name=local.KIND, summary="a directory of a local or mounted file system", open=local.open_local),
    TierKind(name=memory.KIND, summary="objects in this process", open=memory.open_memory, is_for_tests=True),
    TierKind(name=faulty.KIND, summary="another tier that fails when told to", open=_open_faulty, is_for_tests=True),
)


def open_tier(spec: TierSpec) -> Tier:
    """Open the tier a spec describes. Raises UsageError for an unknown kind, PlaceUnavailable if it is not there."""
    if spec.kind not in TIER_KINDS:
        raise UsageError(f"tier kind {spec.kind!r} is not known", hint=f"kinds are {', '.join(TIER_KINDS)}")
    return TIER_KINDS[spec.kind].open(spec)


def pin(spec: TierSpec, tier: Tier) -> TierSpec:
    """The spec of this very place: whoever opens it by path later is refused another one that lies there by then."""
    if not isinstance(tier, local.LocalTier):
        return spec
    return replace(spec, options=(*spec.options, ("identity", "{}:{}".format(*tier.identity))))
