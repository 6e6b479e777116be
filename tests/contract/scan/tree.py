"""A tree on disk with a catalog beside it, scanned as often as a test wants.

Times count from the real present, not from noon: no test can set the time at which an inode changed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lifecycle.catalog.lease import take_lease
from lifecycle.catalog.places import Finding, Place, ensure_place, findings, place_by_id, set_marker_generation
from lifecycle.catalog.runs import begin_run
from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import recount, rollups
from lifecycle.clock import SystemClock
from lifecycle.model import PlaceKind, TierName
from lifecycle.policy.rules import SourceRule
from lifecycle.scan.evidence import OpenFiles
from lifecycle.scan.marker import Marker, write_marker
from lifecycle.scan.reconcile import ScanFigures, scan_place
from lifecycle.units import parse_duration, to_ns
from tests.builders import a_policy, a_source

UID = "8d7c6b5a"


@dataclass(frozen=True)
class Row:
    id: int
    path: bytes
    original: str
    size: int
    inode: int
    mtime_ns: int
    content: str
    last_write_ns: int | None
    tier: str | None
    archive_id: int | None


class Tree:
    def __init__(self, catalog: Catalog, root: Path, **source: Any) -> None:
        self.catalog = catalog
        self.root = root
        self.source: SourceRule = a_source("lustre", path=str(root), **{"layouts": ("rank-files", "plain"), **source})
        self.begun = datetime.now(UTC)
        root.mkdir(exist_ok=True)
        with catalog.write() as conn:
            self.place_id = ensure_place(
                conn, kind=PlaceKind.SOURCE, name="lustre", host="", root=str(root), tier=TierName.HOT, uid=UID
            ).id
            self.run_id = begin_run(
                conn, command="scan", host="n1", pid=1, now_ns=to_ns(self.begun), started_ns=to_ns(self.begun)
            )
        self.mark()

    def mark(self, **values: Any) -> None:
        facts: dict[str, Any] = {
            "place_uid": UID, "catalog_id": self.catalog.facts().catalog_id, "generation": 0, "chain_head": "",
            "kind": "source", "name": "lustre",
        }  # fmt: skip
        write_marker(str(self.root), Marker(**facts | values))

    @property
    def place(self) -> Place:
        with self.catalog.read() as conn:
            return place_by_id(conn, self.place_id)

    def write(self, path: str | bytes, content: bytes = b"step=1 loss=0.5\n", *, age: str | None = None) -> bytes:
        """Write a file whole; ``age`` sets its mtime. Returns the absolute path."""
        full = os.path.join(os.fsencode(self.root), os.fsencode(path))
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(content)
        if age is not None:
            when = to_ns(self.begun - parse_duration(age))
            os.utime(full, ns=(when, when))
        return full

    def append(self, path: str, content: bytes = b"step=2 loss=0.4\n") -> None:
        with (self.root / path).open("ab") as file:
            file.write(content)

    def scan(self, after: str | None = None, *, preview: bool = False, **options: Any) -> ScanFigures:
        """Scan now, or as it would be ``after`` some time."""
        now = datetime.now(UTC) + (parse_duration(after) if after else timedelta(0))
        options = {"host": "n1", "now": now, "run_id": self.run_id, "clock": SystemClock()} | options
        policy = a_policy(sources=(self.source,))
        if preview:
            return scan_place(self.catalog, self.place, self.source, policy, lease=None, **options)
        with take_lease(self.catalog, self.place, holder="run 1", now=now) as lease:
            return scan_place(self.catalog, self.place, self.source, policy, lease=lease, **options)

    def rows(self) -> dict[bytes, Row]:
        """Segments whose original is believed to be there, by path."""
        return {row.path: row for row in self.all_rows() if row.original in ("open", "settled", "missing")}

    def all_rows(self) -> list[Row]:
        sql = (
            "SELECT s.id, d.path, s.name, s.original, s.size_bytes, s.inode, s.mtime_ns, s.content, s.last_write_ns, "
            "s.tier, s.archive_id FROM segments s JOIN directories d ON d.id = s.directory_id ORDER BY s.id"
        )
        with self.catalog.read() as conn:
            rows = conn.exec_driver_sql(sql).fetchall()
        return [Row(row[0], row[1] + b"/" + row[2] if row[1] else row[2], *row[3:]) for row in rows]

    def states(self) -> dict[str, str]:
        return {os.fsdecode(path): row.original for path, row in self.rows().items()}

    def value(self, sql: str) -> Any:
        with self.catalog.read() as conn:
            return conn.exec_driver_sql(sql).scalar()

    def execute(self, sql: str) -> None:
        with self.catalog.write() as conn:
            conn.exec_driver_sql(sql)

    def set_generation(self, generation: int) -> None:
        with self.catalog.write() as conn:
            set_marker_generation(conn, self.place_id, generation)

    def found(self) -> dict[tuple[str, str], Finding]:
        with self.catalog.read() as conn:
            return {(item.kind, item.detail): item for item in findings(conn, self.place_id)}

    def assert_sums_agree(self) -> None:
        with self.catalog.read() as conn:
            assert rollups(conn) == recount(conn)


def nobody_writes() -> OpenFiles:
    return OpenFiles(identities=frozenset(), complete=True)
