"""What somebody accepted of a policy, and the retentions that teams and classes were last cleaned by.

Knows the rows of ``acceptances``, one for each time and never changed but by the run that first acts on it, and of
``retentions``. Never decides what needs to be accepted: ``plan.brakes`` does, with what is read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, insert_rows, upsert_rows
from lifecycle.catalog.due import CatalogDue
from lifecycle.catalog.interning import Interner
from lifecycle.catalog.store import Catalog
from lifecycle.model import Usage
from lifecycle.plan.brakes import Brake, find_brakes
from lifecycle.plan.figures import Retention
from lifecycle.plan.source import TeamClass
from lifecycle.policy.rules import Policy
from lifecycle.units import to_ns


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


def accepted_removals(conn: Connection, policy_digest: str) -> dict[TeamClass, Usage]:
    """What was accepted to become removable under this policy, by team and class; the latest acceptance counts."""
    sql = "SELECT figures FROM acceptances WHERE policy_digest = ? ORDER BY id"
    found: dict[TeamClass, Usage] = {}
    for (figures,) in conn.exec_driver_sql(bind(conn, sql), (policy_digest,)).fetchall():
        for it in json.loads(figures).get("removals", ()):
            usage = Usage(segments=it["segments"], logical_bytes=it["logical_bytes"])
            found[TeamClass(it["team"], it["class"])] = usage
    return found


def retentions(conn: Connection) -> dict[TeamClass, Retention]:
    """What each team and class was last cleaned by; those that were never cleaned are not in it."""
    sql = (
        "SELECT t.name, c.name, r.expire_ns, r.by_job FROM retentions r"
        " JOIN teams t ON t.id = r.team_id JOIN classes c ON c.id = r.class_id"
    )
    return {TeamClass(row[0], row[1]): Retention(row[2], bool(row[3])) for row in conn.exec_driver_sql(sql).fetchall()}


def record_retentions(
    catalog: Catalog, found: Mapping[TeamClass, Retention], *, policy_digest: str, now_ns: int
) -> None:
    """These are in force from now on. Nothing is written where they were already."""
    with catalog.read() as conn:
        known = retentions(conn)
    changed = {pair: it for pair, it in found.items() if known.get(pair) != it}
    if not changed:
        return
    intern = Interner(catalog)
    with catalog.write() as conn:
        rows = []
        for pair, it in changed.items():
            ids = intern.team(conn, pair.team), intern.class_(conn, pair.class_name)
            rows.append((*ids, it.expire_ns, int(it.by_job), policy_digest, now_ns))
        columns = ("expire_ns", "by_job", "policy_digest", "since_ns")
        upsert_rows(conn, "retentions", ("team_id", "class_id"), columns, rows)


def brakes_of(catalog: Catalog, policy: Policy, now: datetime) -> tuple[Brake, ...]:
    """The brakes on what is due in the catalog now."""
    with catalog.read() as conn:
        in_force, accepted = retentions(conn), accepted_removals(conn, policy.digest)
    return find_brakes(CatalogDue(catalog), policy, to_ns(now), in_force=in_force, accepted=accepted)
