"""What somebody accepted of a policy: one row for each time, never changed but by the run that first acts on it.

Knows the rows of ``acceptances``. Never decides what needs to be accepted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, insert_rows


def accept(
    conn: Connection, *, policy_digest: str, figures: Mapping[str, Any], reason: str, accepted_by: str, now_ns: int
) -> None:
    """Record that the changes a policy brings were accepted, with the figures that were shown."""
    columns = ("policy_digest", "scope", "figures", "reason", "accepted_by", "accepted_ns")
    row = (policy_digest, "{}", json.dumps(figures, ensure_ascii=False), reason, accepted_by, now_ns)
    insert_rows(conn, "acceptances", columns, [row])


def is_accepted(conn: Connection, policy_digest: str) -> bool:
    sql = "SELECT EXISTS (SELECT 1 FROM acceptances WHERE policy_digest = ?)"
    return bool(conn.exec_driver_sql(bind(conn, sql), (policy_digest,)).scalar())


def note_use(conn: Connection, policy_digest: str, run_id: int | None) -> None:
    """The run that first acted on it. A second run changes nothing."""
    sql = "UPDATE acceptances SET used_run_id = ? WHERE policy_digest = ? AND used_run_id IS NULL"
    conn.exec_driver_sql(bind(conn, sql), (run_id, policy_digest))
