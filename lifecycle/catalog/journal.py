"""The journal: intents of half-done work, and the one place that changes what a segment's copies are.

Every method is one transaction that also checks and renews the lease's token, changes the rollups by what it
changed in segments, and appends the event that proves it. States: intended → stored → committed → closed, or
abandoned. A crash between two calls leaves the state of the last one; ``execute.recovery`` goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import Connection, Row, text

from lifecycle.catalog import tables
from lifecycle.catalog.batches import BatchHead, Intent, JournalMember, Refused, StoredObject
from lifecycle.catalog.bulk import insert_rows, insert_rows_returning_ids, update_rows
from lifecycle.catalog.copies import (
    Facts,
    attach,
    count_stored,
    drop_surplus,
    forget_copies,
    insert_archive,
    member_facts,
    originals_gone,
    reopen,
)
from lifecycle.catalog.events import append_event, members_digest
from lifecycle.catalog.interning import parse_extra
from lifecycle.catalog.lease import Lease
from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import RollupDeltas
from lifecycle.model import (
    ActionKind,
    ArchiveState,
    BatchState,
    Content,
    Labels,
    Original,
    Outcome,
    PlannedBatch,
    Reason,
)


class Journal:
    """Writes of one run. ``now_ns`` is passed in; the journal has no clock."""

    def __init__(self, catalog: Catalog, run_id: int, now_ns: int) -> None:
        self._catalog = catalog
        self._run_id = run_id
        self._now_ns = now_ns

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
            columns = (
                "run_id", "action", "place_id", "target_place_id", "state", "token", "intent", "reason",
                "created_ns", "updated_ns",
            )  # fmt: skip
            (batch_id,) = insert_rows_returning_ids(
                conn, tables.batches, columns,
                [(self._run_id, batch.kind.value, batch.place_id, target_place_id, BatchState.INTENDED.value,
                  lease.token, json.dumps(asdict(intent)), _reason_json(batch.reason), self._now_ns, self._now_ns)],
            )  # fmt: skip
            insert_rows(
                conn, tables.batch_members, ("batch_id", "segment_id", "inode", "size_bytes", "mtime_ns"),
                [(batch_id, *row) for row in rows],
            )  # fmt: skip
        return BatchHead(
            id=batch_id, run_id=self._run_id, action=batch.kind, place_id=batch.place_id,
            target_place_id=target_place_id, state=BatchState.INTENDED, intent=intent, created_ns=self._now_ns,
        )  # fmt: skip

    def members(self, batch_id: int) -> list[JournalMember]:
        """All members in segment order, with the identity that the plan saw (not what the catalog says by now)."""
        with self._catalog.read() as conn:
            rows = conn.execute(_MEMBERS, {"batch": batch_id}).all()
        labels: dict[int, Labels] = {}
        return [_member(row, labels) for row in rows]

    def archive_members(self, archive_ids: Iterable[int]) -> list[Row[tuple[object, ...]]]:
        """(segment id, archive id, digest, inode, size, mtime, purge_after_ns or None, original) of live members."""
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

    def recorded_archives(self, archive_ids: Sequence[int]) -> list[Row[tuple[object, ...]]]:
        """(id, key, size_bytes) of those whose removal is recorded and may have happened."""
        with self._catalog.read() as conn:
            return [row for a in archive_ids for row in conn.execute(_RECORDED_ARCHIVE, {"archive": a})]

    # --- moves ------------------------------------------------------------------------------------------------

    def record_stored(self, lease: Lease, batch_id: int) -> None:
        """The object is published under its key, verified and durable; the catalog does not use it yet."""
        with self._catalog.write(lease) as conn:
            self._set_state(conn, batch_id, BatchState.STORED)

    def commit_packed(self, lease: Lease, head: BatchHead, stored: StoredObject, refused: Sequence[Refused]) -> int:
        """Originals have a verified stored copy from now on. Returns the archive's id. Nothing was removed yet."""
        with self._catalog.write(lease) as conn:
            facts = member_facts(conn, head.id)
            archive_id = insert_archive(conn, head, stored, facts, self._now_ns)
            attach(conn, head, archive_id, stored, facts)
            _set_outcomes(conn, head.id, ((r.segment_id, r.outcome, r.detail) for r in refused))
            self._event(conn, head, "stored", stored, archive_id)
            self._set_state(conn, head.id, BatchState.COMMITTED)
        return archive_id

    def commit_repacked(self, lease: Lease, head: BatchHead, stored: StoredObject) -> int:
        """Members of older archives are read from the new one from now on; the older ones are superseded."""
        with self._catalog.write(lease) as conn:
            facts = member_facts(conn, head.id)
            archive_id = insert_archive(conn, head, stored, facts, self._now_ns)
            deltas = RollupDeltas()
            for member in stored.members:
                count_stored(deltas, facts[member.segment_id], -1)
            deltas.apply(conn)
            attach(conn, head, archive_id, stored, facts)
            insert_rows(
                conn, tables.archive_sources, ("archive_id", "replaces_id"),
                [(archive_id, old) for old in head.intent.archive_ids],
            )  # fmt: skip
            update_rows(
                conn, tables.archives, ("id",), ("state", "live_members", "live_raw_bytes"),
                [(ArchiveState.SUPERSEDED.value, 0, 0, old) for old in head.intent.archive_ids],
            )  # fmt: skip
            _set_outcomes(conn, head.id, ((m.segment_id, Outcome.RELEASED, None) for m in stored.members))
            self._event(conn, head, "moved", stored, archive_id)
            self._set_state(conn, head.id, BatchState.COMMITTED)
        return archive_id

    def close_release(
        self, lease: Lease, head: BatchHead, removed: Sequence[int], parked: Sequence[int], refused: Sequence[Refused]
    ) -> None:
        """Originals went (or wait renamed). Refused members lose their surplus stored copy unless it is the good one."""
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
            drop_surplus(conn, facts, [r for r in refused if not r.keep_copy], deltas)
            deltas.apply(conn)
            _set_outcomes(conn, head.id, ((segment, Outcome.RELEASED, None) for segment in removed))
            _set_outcomes(conn, head.id, ((segment, Outcome.PARKED, None) for segment in parked))
            _set_outcomes(conn, head.id, ((r.segment_id, r.outcome, r.detail) for r in refused))
            if removed or refused:
                self._release_event(conn, head, facts, removed, refused)
            self._set_state(conn, head.id, BatchState.COMMITTED if parked else BatchState.CLOSED)

    def close(self, lease: Lease, batch_id: int) -> None:
        with self._catalog.write(lease) as conn:
            self._set_state(conn, batch_id, BatchState.CLOSED)

    def abandon(self, lease: Lease, batch_id: int, outcome: Outcome, detail: str) -> None:
        """Nothing came of it and nothing is left of it; its members are planned anew."""
        with self._catalog.write(lease) as conn:
            conn.execute(
                text(
                    "UPDATE batch_members SET outcome = :outcome, detail = :detail WHERE batch_id = :batch AND outcome IS NULL"
                ),
                {"outcome": outcome.value, "detail": detail[:500], "batch": batch_id},
            )
            self._set_state(conn, batch_id, BatchState.ABANDONED)

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
                        "UPDATE segments SET problems = problems + 1, set_aside_until_ns = :now + :pause * (CASE WHEN problems > 6 THEN 64 WHEN problems > 3 THEN 8 ELSE problems + 1 END) WHERE id = :id"
                    ),
                    {"now": self._now_ns, "pause": pause_ns, "id": segment},
                )
            reopen(conn, reopened)

    # --- marks and purges -------------------------------------------------------------------------------------

    def mark(self, lease: Lease, batch: PlannedBatch, policy_digest: str) -> int:
        """Mark members whose state is still what the plan saw. Returns how many. One transaction from intent to close."""
        head = self.intend(lease, batch, Intent(team=batch.team, class_name=batch.class_name, policy_digest=policy_digest), None,
                           [(m.segment_id, m.identity.inode, m.identity.size_bytes, m.identity.mtime_ns) for m in batch.members])  # fmt: skip
        with self._catalog.write(lease) as conn:
            rows = conn.execute(_MARKABLE, {"batch": head.id}).all()
            ids = [row.id for row in rows]
            insert_rows(
                conn, tables.marks, ("segment_id", "marked_ns", "purge_after_ns", "run_id", "policy_digest", "reason"),
                [(i, self._now_ns, batch.purge_after_ns, self._run_id, policy_digest, _reason_json(batch.reason)) for i in ids],
            )  # fmt: skip
            update_rows(conn, tables.segments, ("id",), ("marked",), [(1, i) for i in ids])
            self._close_marks(conn, head, ids, Outcome.MARKED, batch, rows)
        return len(ids)

    def unmark(self, lease: Lease, batch: PlannedBatch, policy_digest: str) -> int:
        """Take marks off. Returns how many there were; a second call finds none."""
        head = self.intend(lease, batch, Intent(team=batch.team, class_name=batch.class_name, policy_digest=policy_digest), None,
                           [(m.segment_id, m.identity.inode, m.identity.size_bytes, m.identity.mtime_ns) for m in batch.members])  # fmt: skip
        with self._catalog.write(lease) as conn:
            rows = conn.execute(_MARKED, {"batch": head.id}).all()
            ids = [row.id for row in rows]
            conn.execute(
                text(
                    "DELETE FROM marks WHERE segment_id IN (SELECT segment_id FROM batch_members WHERE batch_id = :batch)"
                ),
                {"batch": head.id},
            )
            update_rows(conn, tables.segments, ("id",), ("marked",), [(0, i) for i in ids])
            self._close_marks(conn, head, ids, Outcome.UNMARKED, batch, rows)
        return len(ids)

    def record_purge(self, lease: Lease, head: BatchHead, segments: Sequence[int], batch: PlannedBatch) -> None:
        """The event that says what goes is durable after this; archives are ``recorded``; nothing was removed yet."""
        with self._catalog.write(lease) as conn:
            facts = member_facts(conn, head.id)
            update_rows(
                conn, tables.archives, ("id",), ("state",),
                [(ArchiveState.RECORDED.value, archive) for archive in head.intent.archive_ids],
            )  # fmt: skip
            rows = [(i, facts[i].size_bytes, (facts[i].digest or b"").hex()) for i in sorted(segments)]
            body = _event_body(batch, head, members_digest(rows), len(rows), sum(row[1] for row in rows))
            append_event(
                conn,
                place_id=head.place_id,
                at_ns=self._now_ns,
                kind="purge",
                body=body,
                run_id=self._run_id,
                batch_id=head.id,
            )
            self._set_state(conn, head.id, BatchState.STORED)

    def purgeable(self, batch_id: int, now_ns: int) -> set[int]:
        """Members that are marked and past their grace."""
        with self._catalog.read() as conn:
            rows = conn.execute(_PURGEABLE, {"batch": batch_id, "now": now_ns}).all()
        return {row.segment_id for row in rows}

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
            deltas.apply(conn)
            update_rows(
                conn, tables.archives, ("id",), ("state", "live_members", "live_raw_bytes", "removed_ns"),
                [(ArchiveState.REMOVED.value, 0, 0, self._now_ns, archive) for archive in removed_archives],
            )  # fmt: skip
            still = set(head.intent.archive_ids) - set(removed_archives)
            conn.execute(
                text(
                    "DELETE FROM marks WHERE segment_id IN (SELECT b.segment_id FROM batch_members b JOIN segments s ON s.id = b.segment_id WHERE b.batch_id = :batch AND s.tier IS NULL)"
                ),
                {"batch": head.id},
            )
            for archive in still:
                conn.execute(
                    text("UPDATE archives SET state = 'live' WHERE id = :id AND state = 'recorded'"), {"id": archive}
                )
            reopen(conn, [r.segment_id for r in refused if r.reopen])
            _set_outcomes(conn, head.id, ((segment, Outcome.PURGED, None) for segment in purged))
            _set_outcomes(conn, head.id, ((r.segment_id, r.outcome, r.detail) for r in refused))
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
            self._set_state(conn, head.id, BatchState.CLOSED)

    # --- superseded objects, recovery -------------------------------------------------------------------------

    def superseded(self, place_id: int) -> list[tuple[int, str, int]]:
        """(archive id, key, size) of objects of a tier whose members all have a newer stored copy."""
        with self._catalog.read() as conn:
            rows = conn.execute(
                text(
                    "SELECT id, key, size_bytes FROM archives WHERE place_id = :place AND state = 'superseded' ORDER BY id"
                ),
                {"place": place_id},
            ).all()
        return [(row.id, row.key, row.size_bytes) for row in rows]

    def record_removed(self, lease: Lease, archive_ids: Sequence[int]) -> None:
        with self._catalog.write(lease) as conn:
            update_rows(
                conn, tables.archives, ("id",), ("state", "removed_ns"),
                [(ArchiveState.REMOVED.value, self._now_ns, archive) for archive in archive_ids],
            )  # fmt: skip

    def quarantine(self, lease: Lease, archive_id: int, detail: str) -> None:
        with self._catalog.write(lease) as conn:
            row = conn.execute(text("SELECT place_id, key FROM archives WHERE id = :id"), {"id": archive_id}).one()
            update_rows(conn, tables.archives, ("id",), ("state",), [(ArchiveState.QUARANTINED.value, archive_id)])
            append_event(
                conn,
                place_id=row.place_id,
                at_ns=self._now_ns,
                kind="quarantine",
                body={"archive": archive_id, "key": row.key, "detail": detail[:500]},
                run_id=self._run_id,
            )

    def unfinished(self, place_id: int) -> list[BatchHead]:
        """Batches that a dead run left, oldest first; committed ones with parked members are among them."""
        with self._catalog.read() as conn:
            rows = conn.execute(
                text(
                    "SELECT * FROM batches WHERE place_id = :place AND state IN ('intended', 'stored', 'committed') ORDER BY id"
                ),
                {"place": place_id},
            ).all()
        return [
            BatchHead(
                id=row.id, run_id=row.run_id, action=ActionKind(row.action), place_id=row.place_id,
                target_place_id=row.target_place_id, state=BatchState(row.state), intent=Intent.parse(row.intent),
                created_ns=row.created_ns,
            )
            for row in rows
        ]  # fmt: skip

    def park(self, place_id: int, parked: bool) -> None:
        """Remember that a place's unfinished batches cannot be looked at for now; they block nobody."""
        with self._catalog.write() as conn:
            conn.execute(
                text(
                    "UPDATE batches SET parked = :parked WHERE place_id = :place AND state IN ('intended', 'stored', 'committed')"
                ),
                {"parked": int(parked), "place": place_id},
            )

    # --- inside one transaction -------------------------------------------------------------------------------

    def _set_state(self, conn: Connection, batch_id: int, state: BatchState) -> None:
        update_rows(conn, tables.batches, ("id",), ("state", "updated_ns"), [(state.value, self._now_ns, batch_id)])

    def _event(self, conn: Connection, head: BatchHead, kind: str, stored: StoredObject, archive_id: int) -> None:
        rows = [(m.segment_id, m.digest.hex()) for m in sorted(stored.members, key=lambda m: m.segment_id)]
        body = {
            "action": head.action.value, "archive": archive_id, "key": head.intent.key, "tier": head.intent.tier,
            "team": head.intent.team, "class": head.intent.class_name, "segments": len(rows), "raw_bytes": stored.raw_bytes,
            "stored_bytes": stored.size_bytes, "object_digest": stored.digest.hex(), "members_digest": members_digest(rows),
            "replaces": list(head.intent.archive_ids), "policy": head.intent.policy_digest,
        }  # fmt: skip
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
        rows = [(i, (facts[i].digest or b"").hex()) for i in sorted(removed)]
        body = {
            "action": head.action.value, "segments": len(rows), "raw_bytes": sum(facts[i].size_bytes for i in removed),
            "members_digest": members_digest(rows), "refused": len(refused),
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

    def _close_marks(
        self,
        conn: Connection,
        head: BatchHead,
        ids: Sequence[int],
        outcome: Outcome,
        batch: PlannedBatch,
        rows: Sequence[Row[tuple[object, ...]]],
    ) -> None:
        _set_outcomes(conn, head.id, ((i, outcome, None) for i in ids))
        conn.execute(
            text(
                "UPDATE batch_members SET outcome = :outcome, detail = 'changed since the plan' WHERE batch_id = :batch AND outcome IS NULL"
            ),
            {"outcome": Outcome.KEPT.value, "batch": head.id},
        )
        if ids:
            digest = members_digest([(row.id, row.size_bytes) for row in sorted(rows, key=lambda row: row.id)])
            body = _event_body(batch, head, digest, len(ids), sum(row.size_bytes for row in rows))
            append_event(
                conn,
                place_id=head.place_id,
                at_ns=self._now_ns,
                kind=outcome.value,
                body=body,
                run_id=self._run_id,
                batch_id=head.id,
            )
        self._set_state(conn, head.id, BatchState.CLOSED)


_MEMBERS = text(
    "SELECT b.segment_id, d.path, s.name, b.inode, b.size_bytes, b.mtime_ns, s.ctime_ns, s.mode, s.uid, s.gid, s.labels_id,"
    " t.name AS team, j.name AS job, l.node, l.rank, l.stream, l.attempt, l.extra, s.content, s.last_write_ns, s.digest,"
    " s.original, s.archive_id, b.outcome, s.inode AS now_inode, s.size_bytes AS now_size, s.mtime_ns AS now_mtime"
    " FROM batch_members b JOIN segments s ON s.id = b.segment_id JOIN directories d ON d.id = s.directory_id"
    " JOIN label_sets l ON l.id = s.labels_id JOIN jobs j ON j.id = s.job_id JOIN teams t ON t.id = s.team_id"
    " WHERE b.batch_id = :batch ORDER BY d.path, s.name"
)
_ARCHIVE_MEMBERS = text(
    "SELECT s.id, s.archive_id, s.digest, s.inode, s.size_bytes, s.mtime_ns, m.purge_after_ns, s.original, s.archive_offset"
    " FROM segments s LEFT JOIN marks m ON m.segment_id = s.id WHERE s.archive_id = :archive ORDER BY s.archive_offset, s.id"
)
_PURGEABLE = text(
    "SELECT b.segment_id FROM batch_members b JOIN marks m ON m.segment_id = b.segment_id WHERE b.batch_id = :batch AND m.purge_after_ns <= :now"
)
_LIVE_ARCHIVE = text("SELECT id, key, size_bytes FROM archives WHERE id = :archive AND state = 'live'")
_RECORDED_ARCHIVE = text("SELECT id, key, size_bytes FROM archives WHERE id = :archive AND state = 'recorded'")
_MARKABLE = text(
    "SELECT s.id, s.size_bytes FROM batch_members b JOIN segments s ON s.id = b.segment_id"
    " WHERE b.batch_id = :batch AND s.marked = 0 AND s.tier IS NOT NULL"
    " AND s.inode = b.inode AND s.size_bytes = b.size_bytes AND s.mtime_ns = b.mtime_ns"
)
_MARKED = text(
    "SELECT s.id, s.size_bytes FROM batch_members b JOIN segments s ON s.id = b.segment_id JOIN marks m ON m.segment_id = s.id WHERE b.batch_id = :batch"
)


def _member(row: Row[tuple[object, ...]], labels: dict[int, Labels]) -> JournalMember:
    known = labels.get(row.labels_id)
    if known is None:
        extra = parse_extra(row.extra)
        known = labels[row.labels_id] = Labels(
            team=row.team,
            job=row.job,
            node=row.node,
            rank=row.rank,
            stream=row.stream,
            attempt=row.attempt,
            extra=extra,
        )
    same = (row.now_inode, row.now_size, row.now_mtime) == (row.inode, row.size_bytes, row.mtime_ns)
    return JournalMember(
        segment_id=row.segment_id, directory=row.path, name=row.name, inode=row.inode, size_bytes=row.size_bytes,
        mtime_ns=row.mtime_ns, ctime_ns=row.ctime_ns if same else -1, mode=row.mode, uid=row.uid, gid=row.gid, labels=known,
        content=Content(row.content), last_write_ns=row.last_write_ns, digest=row.digest, original=Original(row.original),
        archive_id=row.archive_id, outcome=row.outcome,
    )  # fmt: skip


def _set_outcomes(conn: Connection, batch_id: int, outcomes: Iterable[tuple[int, Outcome, str | None]]) -> None:
    rows = [(outcome.value, detail and detail[:500], batch_id, segment) for segment, outcome, detail in outcomes]
    update_rows(conn, tables.batch_members, ("batch_id", "segment_id"), ("outcome", "detail"), rows)


def _reason_json(reason: Reason) -> str:
    rule = str(reason.rule) if reason.rule else ""
    return json.dumps({"code": reason.code.value, "rule": rule, "current": reason.current, "required": reason.required})


def _event_body(batch: PlannedBatch, head: BatchHead, digest: str, segments: int, size_bytes: int) -> dict[str, object]:
    return {
        "action": batch.kind.value, "team": batch.team, "class": batch.class_name, "tier": batch.tier_from.value,
        "segments": segments, "raw_bytes": size_bytes, "members_digest": digest, "reason": json.loads(_reason_json(batch.reason)),
        "archives": list(head.intent.archive_ids), "policy": head.intent.policy_digest, "purge_after_ns": batch.purge_after_ns,
    }  # fmt: skip
