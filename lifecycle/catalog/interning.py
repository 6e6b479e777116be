"""Small numbers for what repeats: teams, classes, jobs, label sets, rules. Found, or inserted on first sight.

Knows five tables and a cache each. A rolled-back transaction empties the caches, since ids made in it are gone.
"""

from __future__ import annotations

import json
from typing import Any, Final

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind
from lifecycle.catalog.store import Catalog
from lifecycle.model import Labels, RuleRef

_CACHE_LIMIT: Final = 200_000  # entries of one kind; a full cache starts anew, so that memory stays flat


class Interner:
    """Ids of words. Methods take the connection of the caller's write transaction; a second call costs a look-up."""

    def __init__(self, catalog: Catalog) -> None:
        self._ids: dict[tuple[Any, ...], int] = {}
        catalog.on_rollback(self.forget)

    def forget(self) -> None:
        """Drop the cache. Called by the catalog after each rollback."""
        self._ids.clear()

    def team(self, conn: Connection, name: str) -> int:
        return self._ids.get(("team", name)) or self._intern(conn, ("team", name), "teams", ("name",), (name,))

    def class_(self, conn: Connection, name: str) -> int:
        return self._ids.get(("class", name)) or self._intern(conn, ("class", name), "classes", ("name",), (name,))

    def job(self, conn: Connection, team_id: int, name: str) -> int:
        key = ("job", team_id, name)
        return self._ids.get(key) or self._intern(conn, key, "jobs", ("team_id", "name"), (team_id, name))

    def labels(self, conn: Connection, job_id: int, labels: Labels) -> int:
        """The id of what a label set says beyond team and job."""
        key = ("labels", job_id, labels.node, labels.rank, labels.stream, labels.attempt, labels.extra)
        if known := self._ids.get(key):
            return known
        columns = ("job_id", "node", "rank", "stream", "attempt", "extra")
        values = (job_id, labels.node, labels.rank, labels.stream, labels.attempt, render_extra(labels.extra))
        return self._intern(conn, key, "label_sets", columns, values)

    def rule(self, conn: Connection, rule: RuleRef) -> int:
        key = ("rule", rule.file, rule.line, rule.text)
        return self._ids.get(key) or self._intern(conn, key, "rules", ("file", "line", "text"), key[1:])

    def _intern(
        self, conn: Connection, key: tuple[Any, ...], table: str, columns: tuple[str, ...], values: tuple[Any, ...]
    ) -> int:
        # "IS NOT DISTINCT FROM" is spelt differently by every database, and only rank can be NULL.
        given = [(column, value) for column, value in zip(columns, values, strict=True) if value is not None]
        tests = [f"{column} = ?" for column, _ in given]
        tests += [f"{column} IS NULL" for column, value in zip(columns, values, strict=True) if value is None]
        found = conn.exec_driver_sql(
            bind(conn, f"SELECT id FROM {table} WHERE {' AND '.join(tests)}"), tuple(value for _, value in given)
        ).scalar()
        if found is None:
            marks = ", ".join("?" * len(columns))
            sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) RETURNING id"
            found = conn.exec_driver_sql(bind(conn, sql), values).scalar_one()
        if len(self._ids) >= _CACHE_LIMIT:
            self._ids.clear()
        self._ids[key] = int(found)
        return int(found)


def render_extra(extra: tuple[tuple[str, str], ...]) -> str:
    """The text of a ``label_sets.extra`` column."""
    return json.dumps([list(pair) for pair in extra], ensure_ascii=False, separators=(",", ":")) if extra else ""


def parse_extra(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a ``label_sets.extra`` column."""
    return tuple((str(name), str(value)) for name, value in json.loads(text)) if text else ()
