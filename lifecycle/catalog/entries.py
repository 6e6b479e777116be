"""Rows of the journal: batches, their members and outcomes, and the words that events use for them.

Functions on the connection of a transaction that somebody else began. ``journal`` and ``expiry`` write through them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import Connection

from lifecycle.catalog.batches import BatchHead, Intent, JournalMember
from lifecycle.catalog.bulk import bind, insert_rows, insert_rows_returning_ids, update_rows
from lifecycle.catalog.interning import parse_extra
from lifecycle.model import BatchState, Content, Labels, Original, Outcome, PlannedBatch, Reason


def begin_batch(
    conn: Connection,
    run_id: int,
    now_ns: int,
    token: int,
    batch: PlannedBatch,
    intent: Intent,
    target_place_id: int | None,
    rows: Sequence[tuple[int, int, int, int]],
) -> BatchHead:
    """An intended batch and its members. ``rows``: (segment id, inode, size, mtime) that the plan saw."""
    fields = {
        "run_id": run_id, "action": batch.kind.value, "place_id": batch.place_id, "target_place_id": target_place_id,
        "state": BatchState.INTENDED.value, "token": token, "intent": json.dumps(asdict(intent)),
        "reason": reason_json(batch.reason), "created_ns": now_ns, "updated_ns": now_ns,
    }  # fmt: skip
    (batch_id,) = insert_rows_returning_ids(conn, "batches", tuple(fields), [tuple(fields.values())])
    columns = ("batch_id", "segment_id", "inode", "size_bytes", "mtime_ns")
    insert_rows(conn, "batch_members", columns, [(batch_id, *row) for row in rows])
    return BatchHead(
        id=batch_id,
        run_id=run_id,
        action=batch.kind,
        place_id=batch.place_id,
        target_place_id=target_place_id,
        state=BatchState.INTENDED,
        intent=intent,
        created_ns=now_ns,
    )


def set_state(conn: Connection, now_ns: int, batch_id: int, state: BatchState) -> None:
    update_rows(conn, "batches", ("id",), ("state", "updated_ns"), [(state.value, now_ns, batch_id)])


def members_of(conn: Connection, batch_id: int) -> list[JournalMember]:
    """All members by path, with the identity that the plan saw (not what the catalog says by now)."""
    labels: dict[int, Labels] = {}
    rows = conn.exec_driver_sql(bind(conn, _MEMBERS), (batch_id,)).fetchall()
    return [_member(row, labels) for row in rows]


def set_outcome_of_all(conn: Connection, batch_id: int, outcome: Outcome) -> None:
    """What nearly every batch ends with, in one statement."""
    sql = bind(conn, "UPDATE batch_members SET outcome = ?, detail = NULL WHERE batch_id = ?")
    conn.exec_driver_sql(sql, (outcome.value, batch_id))


def set_outcomes(conn: Connection, batch_id: int, outcomes: Iterable[tuple[int, Outcome, str | None]]) -> None:
    rows = [(outcome.value, detail and detail[:500], batch_id, segment) for segment, outcome, detail in outcomes]
    update_rows(conn, "batch_members", ("batch_id", "segment_id"), ("outcome", "detail"), rows)


def reason_json(reason: Reason) -> str:
    rule = str(reason.rule) if reason.rule else ""
    return json.dumps({"code": reason.code.value, "rule": rule, "current": reason.current, "required": reason.required})


def event_body(batch: PlannedBatch, head: BatchHead, digest: str, segments: int, size_bytes: int) -> dict[str, object]:
    return {
        "action": batch.kind.value,
        "team": batch.team,
        "class": batch.class_name,
        "tier": batch.tier_from.value,
        "segments": segments,
        "raw_bytes": size_bytes,
        "members_digest": digest,
        "reason": json.loads(reason_json(batch.reason)),
        "archives": list(head.intent.archive_ids),
        "policy": head.intent.policy_digest,
        "purge_after_ns": batch.purge_after_ns,
    }


_MEMBERS: Final = (
    "SELECT b.segment_id, d.path, s.name, b.inode, b.size_bytes, b.mtime_ns,"
    " CASE WHEN s.inode = b.inode AND s.size_bytes = b.size_bytes AND s.mtime_ns = b.mtime_ns THEN s.ctime_ns"
    " ELSE -1 END,"
    " s.allocated_bytes, s.mode, s.uid, s.gid, s.content, s.last_write_ns, s.digest, s.original, s.archive_id,"
    " b.outcome, s.companion_of, s.error_blocks, s.labels_id, t.name, j.name, l.node, l.rank, l.stream, l.attempt,"
    " l.extra"
    " FROM batch_members b JOIN segments s ON s.id = b.segment_id JOIN directories d ON d.id = s.directory_id"
    " JOIN label_sets l ON l.id = s.labels_id JOIN jobs j ON j.id = s.job_id JOIN teams t ON t.id = s.team_id"
    " WHERE b.batch_id = ? ORDER BY d.path, s.name"
)
_CONTENTS: Final = {content.value: content for content in Content}
_ORIGINALS: Final = {original.value: original for original in Original}


def _member(row: Sequence[Any], labels: dict[int, Labels]) -> JournalMember:
    known = labels.get(row[19])
    if known is None:
        team, job, node, rank, stream, attempt, extra = row[20:]
        known = labels[row[19]] = Labels(
            team=team, job=job, node=node, rank=rank, stream=stream, attempt=attempt, extra=parse_extra(extra)
        )
    return JournalMember._make(
        (*row[:11], known, _CONTENTS[row[11]], row[12], row[13], _ORIGINALS[row[14]], *row[15:19])
    )
