"""Holds copied to a tier, ``.lifecycle/holds.json``: who has lost the catalog finds there what must be kept.

Plain JSON with the words of the command line. The same holds are the same bytes, so that nothing is written where
nothing changed. Knows one small file; never what a hold forbids.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from lifecycle.catalog.holds import parse_selector, selector_text
from lifecycle.errors import Damaged
from lifecycle.model import Hold
from lifecycle.names import parse_name, show_name
from lifecycle.scan.marker import get_beside, put_beside

COPY_NAME: Final = b"holds.json"
_FORMAT: Final = 1
_LIMIT: Final = 64 * 2**20


def render_holds(holds: Sequence[Hold], catalog_id: str) -> bytes:
    """Standing holds in order of id."""
    rows = [
        {
            "id": hold.id,
            "selector": json.loads(selector_text(hold.selector)),
            "reason": hold.reason,
            "owner": hold.owner,
            "source": hold.source,
            "created_ns": hold.created_ns,
            "ends_ns": hold.ends_ns,
            "pending": hold.pending,
            "place_id": hold.place_id,
            "directory": None if hold.directory is None else show_name(hold.directory),
        }
        for hold in holds
    ]
    body = {"format": _FORMAT, "catalog_id": catalog_id, "holds": rows}
    return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def copy_holds(root: str, body: bytes) -> bool:
    """Put the copy in place, durably, where it is not the same already. A tier without holds and without a copy gets
    none. Raises PlaceUnavailable, StorageFull."""
    there = get_beside(root, COPY_NAME, _LIMIT)
    if there == body or (there is None and not json.loads(body)["holds"]):
        return False
    put_beside(root, COPY_NAME, body)
    return True


def read_holds(root: str) -> tuple[str, list[Hold]] | None:
    """(the catalog that wrote it, its standing holds); None without a copy. Raises Damaged, PlaceUnavailable."""
    text = get_beside(root, COPY_NAME, _LIMIT)
    if text is None:
        return None
    try:
        body = json.loads(text)
        holds = [
            Hold(
                id=row["id"], selector=parse_selector(json.dumps(row["selector"])), reason=row["reason"],
                owner=row["owner"], source=row["source"], created_ns=row["created_ns"], ends_ns=row["ends_ns"],
                pending=row["pending"], place_id=row["place_id"],
                directory=None if row["directory"] is None else parse_name(row["directory"]),
            )
            for row in body["holds"]
        ]  # fmt: skip
        return str(body["catalog_id"]), holds
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"holds of {root}: {error}", hint="another tier has the same copy") from error
