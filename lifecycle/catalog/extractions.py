"""Extraction on its own in the journal: what lacks it, and the one transaction that records it.

Its batches are intended, abandoned and set aside as all others are, by ``journal``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Row, text

from lifecycle.catalog.batches import BatchHead, Looked, Refused
from lifecycle.catalog.companions import keep_companions, set_error_blocks
from lifecycle.catalog.copies import member_facts
from lifecycle.catalog.entries import set_outcomes, set_state
from lifecycle.catalog.events import append_event, members_digest
from lifecycle.catalog.interning import Interner
from lifecycle.catalog.lease import Lease
from lifecycle.catalog.store import Catalog
from lifecycle.model import BatchState, Outcome


class Extractions:
    """Writes of one run, like ``Journal``."""

    def __init__(self, catalog: Catalog, run_id: int, now_ns: int) -> None:
        self._catalog = catalog
        self._run_id = run_id
        self._now_ns = now_ns
        self._interner = Interner(catalog)

    def commit(self, lease: Lease, head: BatchHead, looked: Looked, refused: Sequence[Refused]) -> None:
        """Segments were looked through, and their errors are kept: they may be marked from now on. Closes the batch."""
        with self._catalog.write(lease) as conn:
            facts = member_facts(conn, head.id)
            set_error_blocks(conn, looked.blocks.items())
            errors = keep_companions(conn, head, looked, self._interner, self._now_ns)
            set_outcomes(conn, head.id, ((segment, Outcome.EXTRACTED, None) for segment in looked.blocks))
            set_outcomes(conn, head.id, ((r.segment_id, r.outcome, r.detail) for r in refused))
            conn.execute(_KEEP_OTHERS, {"batch": head.id, "outcome": Outcome.KEPT.value})
            body = {
                "action": head.action.value, "team": head.intent.team, "class": head.intent.class_name,
                "segments": len(looked.blocks), "raw_bytes": sum(facts[i].size_bytes for i in looked.blocks),
                "error_blocks": sum(looked.blocks.values()), "refused": len(refused),
                "members_digest": members_digest(sorted(looked.blocks.items())),
                "policy": head.intent.policy_digest,
            } | ({"errors": errors} if errors is not None else {})  # fmt: skip
            append_event(
                conn,
                place_id=head.place_id,
                at_ns=self._now_ns,
                kind="extracted",
                body=body,
                run_id=self._run_id,
                batch_id=head.id,
            )
            set_state(conn, self._now_ns, head.id, BatchState.CLOSED)

    def unextracted(self, archive_ids: Sequence[int], team: str, class_name: str) -> list[Row[tuple[object, ...]]]:
        """(id, archive_id, digest, inode, size_bytes, mtime_ns, content, companion_of) of live members of that team and
        class that nobody has looked through, and that do not rest after a failure."""
        values = {"team": team, "class": class_name, "now": self._now_ns}
        with self._catalog.read() as conn:
            return [row for a in archive_ids for row in conn.execute(_UNEXTRACTED, {"archive": a, **values})]


_UNEXTRACTED = text(
    "SELECT s.id, s.archive_id, s.digest, s.inode, s.size_bytes, s.mtime_ns, s.content, s.companion_of"
    " FROM segments s JOIN teams t ON t.id = s.team_id JOIN classes c ON c.id = s.class_id"
    " WHERE s.archive_id = :archive AND s.error_blocks IS NULL AND t.name = :team AND c.name = :class"
    " AND (s.set_aside_until_ns IS NULL OR s.set_aside_until_ns <= :now) ORDER BY s.archive_offset, s.id"
)
_KEEP_OTHERS = text(
    "UPDATE batch_members SET outcome = :outcome, detail = 'changed since the plan' WHERE batch_id = :batch"
    " AND outcome IS NULL"
)
