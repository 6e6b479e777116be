"""Marks and purges in the journal: retention's two steps, each with the event that proves it.

A mark is one transaction. A purge is recorded before anything is removed, and closed with what really went.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, text

from lifecycle.catalog.batches import BatchHead, Intent, Refused
from lifecycle.catalog.bulk import insert_rows, update_rows
from lifecycle.catalog.copies import forget_copies, member_facts, reopen, unsign_batch
from lifecycle.catalog.entries import begin_batch, event_body, reason_json, set_outcomes, set_state
from lifecycle.catalog.events import append_event, members_digest
from lifecycle.catalog.holds import IS_HELD, held_among
from lifecycle.catalog.lease import Lease
from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import RollupDeltas
from lifecycle.model import ArchiveState, BatchState, Outcome, PlannedBatch


class Expiry:
    """Writes of one run, like ``Journal``. Every call is one transaction that checks the lease's token."""

    def __init__(self, catalog: Catalog, run_id: int, now_ns: int) -> None:
        self._catalog = catalog
        self._run_id = run_id
        self._now_ns = now_ns

    def mark(self, lease: Lease, batch: PlannedBatch, policy_digest: str, keeping: Collection[str] = ()) -> int:
        """Mark members whose state is still what the plan saw and that no hold covers, in one transaction. How many.
        Of the classes in ``keeping`` only those whose errors are kept."""
        with self._catalog.write(lease) as conn:
            head = self._begin(conn, lease, batch, policy_digest)
            found = conn.execute(_MARKABLE, {"batch": head.id}).all()
            rows = [row for row in found if not lacks_extraction(row, keeping)]
            ids = [row.id for row in rows]
            bare = (row.id for row in found if lacks_extraction(row, keeping))
            set_outcomes(conn, head.id, ((segment, Outcome.KEPT, NOT_EXTRACTED) for segment in bare))
            insert_rows(
                conn,
                "marks",
                ("segment_id", "marked_ns", "purge_after_ns", "run_id", "policy_digest", "reason"),
                [
                    (i, self._now_ns, batch.purge_after_ns, self._run_id, policy_digest, reason_json(batch.reason))
                    for i in ids
                ],
            )
            update_rows(conn, "segments", ("id",), ("marked",), [(1, i) for i in ids])
            self._close_marks(conn, head, ids, Outcome.MARKED, batch, rows)
        return len(ids)

    def unmark(self, lease: Lease, batch: PlannedBatch, policy_digest: str) -> int:
        """Take marks off. Returns how many there were; a second call finds none."""
        with self._catalog.write(lease) as conn:
            head = self._begin(conn, lease, batch, policy_digest)
            rows = conn.execute(_MARKED, {"batch": head.id}).all()
            ids = [row.id for row in rows]
            conn.execute(_UNMARK, {"batch": head.id})
            update_rows(conn, "segments", ("id",), ("marked",), [(0, i) for i in ids])
            self._close_marks(conn, head, ids, Outcome.UNMARKED, batch, rows)
        return len(ids)

    def record_purge(
        self,
        lease: Lease,
        head: BatchHead,
        segments: Sequence[int],
        batch: PlannedBatch,
        keeping: Collection[str] = (),
    ) -> bool:
        """The event that says what goes is durable after this; archives are ``recorded``; nothing was removed yet.

        False, and nothing recorded, where a hold covers one of them by now, or one is of a class in ``keeping`` and its
        errors are not kept: it came since they were looked at.
        """
        going = set(segments)
        with self._catalog.write(lease) as conn:
            if held_among(conn, segments):
                return False
            bare = conn.execute(_UNEXTRACTED, {"batch": head.id}).all()
            if any(row.id in going and lacks_extraction(row, keeping) for row in bare):
                return False
            facts = member_facts(conn, head.id)
            update_rows(
                conn, "archives", ("id",), ("state",),
                [(ArchiveState.RECORDED.value, archive) for archive in head.intent.archive_ids],
            )  # fmt: skip
            rows = [(i, facts[i].size_bytes, (facts[i].digest or b"").hex()) for i in sorted(segments)]
            body = event_body(batch, head, members_digest(rows), len(rows), sum(row[1] for row in rows))
            append_event(
                conn,
                place_id=head.place_id,
                at_ns=self._now_ns,
                kind="purge",
                body=body,
                run_id=self._run_id,
                batch_id=head.id,
            )
            set_state(conn, self._now_ns, head.id, BatchState.STORED)
        return True

    def held(self, segments: Sequence[int]) -> set[int]:
        """Those that a standing hold covers."""
        with self._catalog.read() as conn:
            return held_among(conn, segments)

    def purgeable(self, head: BatchHead, now_ns: int, keeping: Collection[str] = ()) -> set[int]:
        """Members that no hold covers, marked and past their grace; of a purge ahead of its time also those marked by,
        or last written by, the instants that its intent says. Of the classes in ``keeping`` only those whose errors
        are kept."""
        values = {
            "batch": head.id,
            "now": now_ns,
            "marked": head.intent.marked_until_ns,
            "written": head.intent.written_until_ns,
        }
        with self._catalog.read() as conn:
            rows = conn.execute(_PURGEABLE, values).all()
        return {row.segment_id for row in rows if not lacks_extraction(row, keeping)}

    def close_purge(
        self,
        lease: Lease,
        head: BatchHead,
        *,
        removed_archives: Sequence[int],
        purged: Sequence[int],
        refused: Sequence[Refused],
    ) -> None:
        """What is really gone leaves the books; what is still there goes back to ``live`` and is planned anew."""
        with self._catalog.write(lease) as conn:
            facts = member_facts(conn, head.id)
            deltas = RollupDeltas()
            forget_copies(conn, facts, purged, deltas)
            if not removed_archives:
                unsign_batch(conn, head.id, self._now_ns)
            deltas.apply(conn)
            update_rows(
                conn, "archives", ("id",), ("state", "live_members", "live_raw_bytes", "removed_ns"),
                [(ArchiveState.REMOVED.value, 0, 0, self._now_ns, archive) for archive in removed_archives],
            )  # fmt: skip
            still = set(head.intent.archive_ids) - set(removed_archives)
            conn.execute(_UNMARK_GONE, {"batch": head.id})
            for archive in still:
                conn.execute(
                    text("UPDATE archives SET state = 'live' WHERE id = :id AND state = 'recorded'"), {"id": archive}
                )
            reopen(conn, [r.segment_id for r in refused if r.reopen])
            set_outcomes(conn, head.id, ((segment, Outcome.PURGED, None) for segment in purged))
            set_outcomes(conn, head.id, ((r.segment_id, r.outcome, r.detail) for r in refused))
            if still or refused:
                body = {
                    "batch": head.id,
                    "purged": len(purged),
                    "kept_archives": sorted(still),
                    "refused": len(refused),
                }
                append_event(
                    conn,
                    place_id=head.place_id,
                    at_ns=self._now_ns,
                    kind="purge_in_part",
                    body=body,
                    run_id=self._run_id,
                    batch_id=head.id,
                )
            set_state(conn, self._now_ns, head.id, BatchState.CLOSED)

    def _begin(self, conn: Connection, lease: Lease, batch: PlannedBatch, policy_digest: str) -> BatchHead:
        intent = Intent(team=batch.team, class_name=batch.class_name, policy_digest=policy_digest)
        rows = [(m.segment_id, m.identity.inode, m.identity.size_bytes, m.identity.mtime_ns) for m in batch.members]
        return begin_batch(conn, self._run_id, self._now_ns, lease.token, batch, intent, None, rows)

    def _close_marks(
        self,
        conn: Connection,
        head: BatchHead,
        ids: Sequence[int],
        outcome: Outcome,
        batch: PlannedBatch,
        rows: Sequence[Row[tuple[object, ...]]],
    ) -> None:
        set_outcomes(conn, head.id, ((i, outcome, None) for i in ids))
        conn.execute(
            text(
                "UPDATE batch_members SET outcome = :outcome, detail = 'changed since the plan' WHERE"
                " batch_id = :batch AND outcome IS NULL"
            ),
            {"outcome": Outcome.KEPT.value, "batch": head.id},
        )
        if ids:
            digest = members_digest([(row.id, row.size_bytes) for row in sorted(rows, key=lambda row: row.id)])
            body = event_body(batch, head, digest, len(ids), sum(row.size_bytes for row in rows))
            append_event(
                conn,
                place_id=head.place_id,
                at_ns=self._now_ns,
                kind=outcome.value,
                body=body,
                run_id=self._run_id,
                batch_id=head.id,
            )
        set_state(conn, self._now_ns, head.id, BatchState.CLOSED)


NOT_EXTRACTED = "its error lines are not kept yet"


def lacks_extraction(row: Any, keeping: Collection[str]) -> bool:
    """Whether nobody has looked through a segment whose class is in ``keeping``: no extract, no delete."""
    return row.error_blocks is None and row.class_name in keeping


_UNEXTRACTED = text(
    "SELECT s.id, s.error_blocks, c.name AS class_name FROM batch_members b JOIN segments s ON s.id = b.segment_id"
    " JOIN classes c ON c.id = s.class_id WHERE b.batch_id = :batch AND s.error_blocks IS NULL"
)
_PURGEABLE = text(
    "SELECT b.segment_id, s.error_blocks, c.name AS class_name"
    " FROM batch_members b JOIN segments s ON s.id = b.segment_id JOIN classes c ON c.id = s.class_id"
    " LEFT JOIN marks m ON m.segment_id = b.segment_id WHERE b.batch_id = :batch"
    " AND (m.purge_after_ns <= :now OR m.marked_ns <= :marked OR s.last_write_ns <= :written)"
    f" AND NOT {IS_HELD}"
)
_MARKABLE = text(
    "SELECT s.id, s.size_bytes, s.error_blocks, c.name AS class_name"
    " FROM batch_members b JOIN segments s ON s.id = b.segment_id JOIN classes c ON c.id = s.class_id"
    " WHERE b.batch_id = :batch AND s.marked = 0 AND s.tier IS NOT NULL"
    " AND s.inode = b.inode AND s.size_bytes = b.size_bytes AND s.mtime_ns = b.mtime_ns"
    f" AND NOT {IS_HELD}"
)
_MARKED = text(
    "SELECT s.id, s.size_bytes FROM batch_members b JOIN segments s ON s.id = b.segment_id"
    " JOIN marks m ON m.segment_id = s.id WHERE b.batch_id = :batch"
)
_UNMARK = text("DELETE FROM marks WHERE segment_id IN (SELECT segment_id FROM batch_members WHERE batch_id = :batch)")
_UNMARK_GONE = text(
    "DELETE FROM marks WHERE segment_id IN (SELECT b.segment_id FROM batch_members b"
    " JOIN segments s ON s.id = b.segment_id WHERE b.batch_id = :batch AND s.tier IS NULL)"
)
