"""``--only transition --only merge`` and ``--only moves``: which actions, as people say them."""

from __future__ import annotations

from typing import Final

from lifecycle.model import ActionKind

MOVES: Final = "moves"
ACTIONS: Final = (*(kind.value for kind in ActionKind), MOVES)


def parse_actions(names: tuple[str, ...]) -> frozenset[ActionKind] | None:
    """None when none is named: all of them."""
    if not names:
        return None
    kinds = {ActionKind(name) for name in names if name != MOVES}
    if MOVES in names:
        kinds |= {kind for kind in ActionKind if kind.moves}
    return frozenset(kinds)
