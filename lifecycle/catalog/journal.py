"""The journal: intents of half-done work, and the one place that changes what a segment's copies are.

Every method is one transaction that also checks and renews the lease's token, changes the rollups by what it
changed in segments, and appends the event that proves it. States: intended → committed → closed, or abandoned; a purge
is stored instead of committed, once its event is. A crash between two calls leaves the state of the last one;
``execute.recovery`` goes on from there. Whether the object of an intended move was published, only its tier knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, Row, text

from lifecycle.catalog.batches import BatchHead, Intent, JournalMember, Looked, Refused, StoredObject
from lifecycle.catalog.bulk import insert_rows, update_rows
from lifecycle.catalog.companions import keep_companions
from lifecycle.catalog.copies import (
    Facts,
    attach,
    count_stored,
    drop_surplus,
    given_back,
    insert_archive,
    member_facts,
    originals_gone,
    recount_archives,
    reopen,
    unsign_batch,
)
from lifecycle.catalog.entries import begin_batch, members_of, set_outcome_of_all, set_outcomes, set_state
from lifecycle.catalog.events import append_event, copies_digest
from lifecycle.catalog.interning import Interner
from lifecycle.catalog.lease import Lease
from lifecycle.catalog.restoring import PutBack, StoredAt, record_put_back, stored_at
from lifecycle.catalog.segments import segments_by_ids
from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import RollupDeltas
from lifecycle.model import (
    ActionKind,
    ArchiveState,
    BatchState,
    Original,
    Outcome,
    PlannedBatch,
    Segment,
)


class Journal:
    """Writes of one run. ``now_ns`` is passed in; the journal has no clock."""

    def __init__(self, catalog: Catalog, run_id: int, now_ns: int) -> None:
        self._catalog = catalog
        self._run_id = run_id
        self._now_ns = now_ns
        self._interner = Interner(catalog)

    # --- beginning --------------------------------------------------------------------------------------------

    def intend(
        self,
        lease: Lease,
        batch: PlannedBatch,
        intent: Intent,
        target_place_id: int | None,
        rows: Sequence[tuple[int, int, int, int]],
    ) -> BatchHead:
        """Write down what is about to be done. ``rows``: (segment id, inode, size, mtime) that the plan saw."""
        with self._catalog.write(lease) as conn:
            return begin_batch(conn, self._run_id, self._now_ns, lease.token, batch, intent, target_place_id, rows)

    def members(self, batch_id: int) -> list[JournalMember]:
        """All members in segment order, with the identity that the plan saw (not what the catalog says by now)."""
        with self._catalog.read() as conn:
            return members_of(conn, batch_id)

    def archive_members(self, archive_ids: Iterable[int]) -> list[Row[tuple[object, ...]]]:
        """(segment id, archive id, digest, inode, size, mtime, purge_after_ns and marked_ns or None, original,
        last_write_ns, companion_of, error_blocks, class) of live members."""
        found: list[Row[tuple[object, ...]]] = []
        with self._catalog.read() as conn:
            for archive_id in archive_ids:
                found.extend(conn.execute(_ARCHIVE_MEMBERS, {"archive": archive_id}).all())
        return found

    def live_archives(self, archive_ids: Sequence[int]) -> list[Row[tuple[object, ...]]]:
        """(id, key, size_bytes) of those that are still live, in the order given."""
        with self._catalog.read() as conn:
            found = {row.id: row for a in archive_ids for row in conn.execute(_LIVE_ARCHIVE, {"archive": a})}
        return [found[archive] for archive in archive_ids if archive in found]

    def archives(self, archive_ids: Iterable[int]) -> list[Row[tuple[object, ...]]]:
        """(id, place_id, key, size_bytes) of these, whatever their state."""
        with self._catalog.read() as conn:
            return [row for a in sorted(archive_ids) for row in conn.execute(_ANY_ARCHIVE, {"archive": a})]

    def stored_at(self, segment_ids: Sequence[int]) -> dict[int, StoredAt]:
        """Where stored copies lie, by segment id."""
        with self._catalog.read() as conn:
            return stored_at(conn, segment_ids)

    def recorded_archives(self, archive_ids: Sequence[int]) -> list[Row[tuple[object, ...]]]:
        """(id, key, size_bytes) of those whose removal is recorded and may have happened."""
        with self._catalog.read() as conn:
            return [row for a in archive_ids for row in conn.execute(_RECORDED_ARCHIVE, {"archive": a})]

    # --- moves ------------------------------------------------------------------------------------------------

    def commit_packed(
        self,
        lease: Lease,
        head: BatchHead,
        stored: StoredObject,
        refused: Sequence[Refused],
        looked: Looked | None = None,
    ) -> int:
        """Originals have a verified stored copy from now on, and their errors are kept where they were looked for.
        Returns the archive's id. Nothing was removed yet.

        The objects are published under their keys, verified and durable before this is called. A copy ends here: its
        originals stay, and the batch is closed.
        """
        with self._catalog.write(lease) as conn:
            facts = member_facts(conn, head.id)
            archive_id = insert_archive(conn, head, stored, facts, self._now_ns)
            attach(conn, head, archive_id, stored, facts, looked.blocks if looked else {})
            set_outcomes(conn, head.id, ((r.segment_id, r.outcome, r.detail) for r in refused))
            errors = keep_companions(conn, head, looked, self._interner, self._now_ns) if looked else None
            self._event(conn, head, "stored", stored, archive_id, errors)
            if head.action is ActionKind.COPY:
                set_outcomes(conn, head.id, ((m.segment_id, Outcome.COPIED, None) for m in stored.members))
                set_state(conn, self._now_ns, head.id, BatchState.CLOSED)
            else:
                set_state(conn, self._now_ns, head.id, BatchState.COMMITTED)
        return archive_id

    def commit_repacked(self, lease: Lease, head: BatchHead, stored: StoredObject, grace_ns: int) -> int:
        """Members of older archives are read from the new one from now on; the older ones are superseded. A rewritten
        one stays: it has none but the members that go by now, which get another ``grace_ns``."""
        with self._catalog.write(lease) as conn:
            facts = member_facts(conn, head.id)
            archive_id = insert_archive(conn, head, stored, facts, self._now_ns)
            deltas = RollupDeltas()
            for member in stored.members:
                count_stored(deltas, facts[member.segment_id], -1)
            deltas.apply(conn)
            attach(conn, head, archive_id, stored, facts)
            insert_rows(
                conn, "archive_sources", ("archive_id", "replaces_id"),
                [(archive_id, old) for old in head.intent.archive_ids],
            )  # fmt: skip
            if head.action is ActionKind.REWRITE:
                self._leave_the_rest(conn, head, grace_ns)
            else:
                update_rows(
                    conn, "archives", ("id",), ("state", "live_members", "live_raw_bytes"),
                    [(ArchiveState.SUPERSEDED.value, 0, 0, old) for old in head.intent.archive_ids],
                )  # fmt: skip
            set_outcomes(conn, head.id, ((m.segment_id, Outcome.RELEASED, None) for m in stored.members))
            self._event(conn, head, "moved", stored, archive_id)
            set_state(conn, self._now_ns, head.id, BatchState.COMMITTED)
        return archive_id

    def _leave_the_rest(self, conn: Connection, head: BatchHead, grace_ns: int) -> None:
        for old in head.intent.archive_ids:
            recount_archives(conn, [old])
            conn.execute(_WAIT_AGAIN, {"archive": old, "until": self._now_ns + grace_ns})

    def close_release(
        self, lease: Lease, head: BatchHead, removed: Sequence[int], parked: Sequence[int], refused: Sequence[Refused]
    ) -> None:
        """Originals went, or wait renamed. Refused members lose their stored copy unless it is the good one."""
        with self._catalog.write(lease) as conn:
            facts = member_facts(conn, head.id)
            deltas = RollupDeltas()
            gone = [(segment, Original.RELEASED) for segment in removed]
            gone += [(segment, Original.PARKED) for segment in parked]
            gone += [
                (r.segment_id, Original.RELEASED if r.outcome is Outcome.RELEASED else Original.REPLACED)
                for r in refused
                if r.keep_copy
            ]
            originals_gone(conn, facts, gone, deltas)
            unsign_batch(conn, head.id, self._now_ns)
            given_back(conn, facts, [r.segment_id for r in refused if r.leave], deltas)
            drop_surplus(conn, facts, [r for r in refused if not (r.keep_copy or r.leave)], deltas)
            deltas.apply(conn)
            if facts.keys() == set(removed):
                set_outcome_of_all(conn, head.id, Outcome.RELEASED)
            else:
                set_outcomes(conn, head.id, ((segment, Outcome.RELEASED, None) for segment in removed))
            set_outcomes(conn, head.id, ((segment, Outcome.PARKED, None) for segment in parked))
            set_outcomes(conn, head.id, ((r.segment_id, r.outcome, r.detail) for r in refused))
            if removed or refused:
                self._release_event(conn, head, facts, removed, refused)
            set_state(conn, self._now_ns, head.id, BatchState.COMMITTED if parked else BatchState.CLOSED)

    def close(self, lease: Lease, batch_id: int) -> None:
        with self._catalog.write(lease) as conn:
            set_state(conn, self._now_ns, batch_id, BatchState.CLOSED)

    def abandon(self, lease: Lease, batch_id: int, outcome: Outcome, detail: str) -> None:
        """Nothing came of it and nothing is left of it; its members are planned anew."""
        with self._catalog.write(lease) as conn:
            conn.execute(
                text(
                    "UPDATE batch_members SET outcome = :outcome, detail = :detail WHERE batch_id = :batch AND"
                    " outcome IS NULL"
                ),
                {"outcome": outcome.value, "detail": detail[:500], "batch": batch_id},
            )
            set_state(conn, self._now_ns, batch_id, BatchState.ABANDONED)

    def set_aside(self, lease: Lease, refused: Sequence[Refused], pause_ns: int) -> None:
        """Members that failed rest for growing pauses; members that differ are open again until the next scan."""
        failed = [r.segment_id for r in refused if r.outcome is Outcome.FAILED]
        reopened = [r.segment_id for r in refused if r.reopen]
        if not failed and not reopened:
            return
        with self._catalog.write(lease) as conn:
            for segment in failed:
                conn.execute(
                    text(
                        "UPDATE segments SET problems = problems + 1, set_aside_until_ns = :now + :pause * (CASE"
                        " WHEN problems > 6 THEN 64 WHEN problems > 3 THEN 8 ELSE problems + 1 END) WHERE id = :id"
                    ),
                    {"now": self._now_ns, "pause": pause_ns, "id": segment},
                )
            reopen(conn, reopened)

    # --- superseded objects, recovery -------------------------------------------------------------------------

    def superseded(self, place_id: int) -> list[tuple[int, str, int]]:
        """(archive id, key, size) of objects of a tier whose members all have a newer stored copy."""
        with self._catalog.read() as conn:
            rows = conn.execute(
                text(
                    "SELECT id, key, size_bytes FROM archives WHERE place_id = :place AND state = 'superseded'"
                    " ORDER BY id"
                ),
                {"place": place_id},
            ).all()
        return [(row.id, row.key, row.size_bytes) for row in rows]

    def record_removed(self, lease: Lease, archive_ids: Sequence[int]) -> None:
        with self._catalog.write(lease) as conn:
            update_rows(
                conn,
                "archives",
                ("id",),
                ("state", "removed_ns"),
                [(ArchiveState.REMOVED.value, self._now_ns, archive) for archive in archive_ids],
            )

    def quarantine(self, lease: Lease, archive_id: int, detail: str) -> None:
        with self._catalog.write(lease) as conn:
            row = conn.execute(text("SELECT place_id, key FROM archives WHERE id = :id"), {"id": archive_id}).one()
            update_rows(conn, "archives", ("id",), ("state",), [(ArchiveState.QUARANTINED.value, archive_id)])
            append_event(
                conn,
                place_id=row.place_id,
                at_ns=self._now_ns,
                kind="quarantine",
                body={"archive": archive_id, "key": row.key, "detail": detail[:500]},
                run_id=self._run_id,
            )

    def segments(self, segment_ids: Sequence[int]) -> list[Segment]:
        with self._catalog.read() as conn:
            return segments_by_ids(conn, segment_ids)

    def put_back(self, lease: Lease, place_id: int, files: Sequence[PutBack], stay_ns: int) -> None:
        """What a restore in place did before it died: as if it had told the catalog itself."""
        if not files:
            return
        with self._catalog.write(lease) as conn:
            record_put_back(conn, place_id, files, stay_until_ns=self._now_ns + stay_ns, now_ns=self._now_ns)

    def unfinished(self, place_id: int) -> list[BatchHead]:
        """Batches that a dead run left, oldest first; committed ones with parked members are among them."""
        with self._catalog.read() as conn:
            rows = conn.execute(
                text(
                    "SELECT * FROM batches WHERE place_id = :place AND state IN ('intended', 'stored',"
                    " 'committed') ORDER BY id"
                ),
                {"place": place_id},
            ).all()
        return [
            BatchHead(
                id=row.id,
                run_id=row.run_id,
                action=ActionKind(row.action),
                place_id=row.place_id,
                target_place_id=row.target_place_id,
                state=BatchState(row.state),
                intent=Intent.parse(row.intent),
                created_ns=row.created_ns,
            )
            for row in rows
        ]

    def park(self, place_id: int, parked: bool) -> None:
        """Remember that a place's unfinished batches cannot be looked at for now; they block nobody."""
        with self._catalog.write() as conn:
            conn.execute(
                text(
                    "UPDATE batches SET parked = :parked WHERE place_id = :place AND state IN ('intended',"
                    " 'stored', 'committed')"
                ),
                {"parked": int(parked), "place": place_id},
            )

    # --- inside one transaction -------------------------------------------------------------------------------

    def _event(
        self,
        conn: Connection,
        head: BatchHead,
        kind: str,
        stored: StoredObject,
        archive_id: int,
        errors: Mapping[str, object] | None = None,
    ) -> None:
        body: dict[str, object] = {
            "action": head.action.value,
            "archive": archive_id,
            "key": head.intent.key,
            "tier": head.intent.tier,
            "team": head.intent.team,
            "class": head.intent.class_name,
            "segments": len(stored.members),
            "raw_bytes": stored.raw_bytes,
            "stored_bytes": stored.size_bytes,
            "object_digest": stored.digest.hex(),
            "members_digest": copies_digest((m.segment_id, m.digest) for m in stored.members),
            "replaces": list(head.intent.archive_ids),
            "policy": head.intent.policy_digest,
        } | ({"errors": errors} if errors is not None else {})
        append_event(
            conn,
            place_id=head.place_id,
            at_ns=self._now_ns,
            kind=kind,
            body=body,
            run_id=self._run_id,
            batch_id=head.id,
        )

    def _release_event(
        self,
        conn: Connection,
        head: BatchHead,
        facts: Mapping[int, Facts],
        removed: Sequence[int],
        refused: Sequence[Refused],
    ) -> None:
        body = {
            "action": head.action.value, "segments": len(removed),
            "raw_bytes": sum(facts[i].size_bytes for i in removed),
            "members_digest": copies_digest((i, facts[i].digest or b"") for i in removed), "refused": len(refused),
        }  # fmt: skip
        append_event(
            conn,
            place_id=head.place_id,
            at_ns=self._now_ns,
            kind="released",
            body=body,
            run_id=self._run_id,
            batch_id=head.id,
        )


_ARCHIVE_MEMBERS = text(
    "SELECT s.id, s.archive_id, s.digest, s.inode, s.size_bytes, s.mtime_ns, m.purge_after_ns,"
    " s.original, s.archive_offset, m.marked_ns, s.last_write_ns, s.stay_until_ns, s.companion_of, s.error_blocks,"
    " c.name AS class_name"
    " FROM segments s JOIN classes c ON c.id = s.class_id LEFT JOIN marks m ON m.segment_id = s.id"
    " WHERE s.archive_id = :archive ORDER BY s.archive_offset, s.id"
)
_WAIT_AGAIN = text(
    "UPDATE marks SET purge_after_ns = :until WHERE purge_after_ns < :until"
    " AND segment_id IN (SELECT id FROM segments WHERE archive_id = :archive)"
)
_LIVE_ARCHIVE = text("SELECT id, key, size_bytes FROM archives WHERE id = :archive AND state = 'live'")
_ANY_ARCHIVE = text("SELECT id, place_id, key, size_bytes FROM archives WHERE id = :archive")
_RECORDED_ARCHIVE = text("SELECT id, key, size_bytes FROM archives WHERE id = :archive AND state = 'recorded'")
