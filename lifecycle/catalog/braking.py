"""The retentions that teams and classes were last cleaned by, and the brakes on what is newly past the present ones.

Knows the rows of ``retentions`` and what acceptances say of removals. Never decides: ``plan.brakes`` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind, upsert_rows
from lifecycle.catalog.due import CatalogDue
from lifecycle.catalog.interning import Interner
from lifecycle.catalog.store import Catalog
from lifecycle.model import Usage
from lifecycle.plan.brakes import Brake, find_brakes
from lifecycle.plan.figures import Retention
from lifecycle.plan.source import TeamClass
from lifecycle.policy.rules import Policy
from lifecycle.units import to_ns


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
        "SELECT t.name, c.name, r.expire_ns, r.by_job, r.early_ns FROM retentions r"
        " JOIN teams t ON t.id = r.team_id JOIN classes c ON c.id = r.class_id"
    )
    rows = conn.exec_driver_sql(sql).fetchall()
    return {TeamClass(row[0], row[1]): Retention(row[2], bool(row[3]), row[4]) for row in rows}


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
            rows.append((*ids, it.expire_ns, int(it.by_job), it.early_ns, policy_digest, now_ns))
        columns = ("expire_ns", "by_job", "early_ns", "policy_digest", "since_ns")
        upsert_rows(conn, "retentions", ("team_id", "class_id"), columns, rows)


def brakes_of(catalog: Catalog, policy: Policy, now: datetime) -> tuple[Brake, ...]:
    """The brakes on what is due in the catalog now."""
    with catalog.read() as conn:
        in_force, accepted = retentions(conn), accepted_removals(conn, policy.digest)
    return find_brakes(CatalogDue(catalog), policy, to_ns(now), in_force=in_force, accepted=accepted)
