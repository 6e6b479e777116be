"""Rows for catalog tests: a place, segments in it, archives, batches. What a test names overrides the default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from lifecycle.catalog.bulk import insert_rows, insert_rows_returning_ids
from lifecycle.catalog.interning import Interner
from lifecycle.catalog.places import Place, ensure_place
from lifecycle.catalog.runs import begin_run
from lifecycle.catalog.store import Catalog
from lifecycle.model import Labels, PlaceKind, RuleRef, TierName
from tests.builders import NOON_NS, ago_ns

DAY = NOON_NS // 86_400_000_000_000


@dataclass
class Rows:
    catalog: Catalog

    def __post_init__(self) -> None:
        self.intern = Interner(self.catalog)
        self.source = self.place("lustre")
        self.warm = self.place("warm", kind=PlaceKind.TIER, tier=TierName.WARM)

    def place(
        self, name: str, *, kind: PlaceKind = PlaceKind.SOURCE, tier: TierName = TierName.HOT, root: str = ""
    ) -> Place:
        with self.catalog.write() as conn:
            return ensure_place(
                conn, kind=kind, name=name, host="", root=root or f"/logs/{name}", tier=tier, uid=f"uid-{name}"
            )

    def run(self) -> int:
        with self.catalog.write() as conn:
            return begin_run(conn, command="run", host="h", pid=7, now_ns=NOON_NS, started_ns=NOON_NS)

    def folder(self, conn: Connection, path: bytes, place_id: int = 0) -> int:
        key = (place_id or self.source.id, path)
        sql = "SELECT id FROM directories WHERE place_id = ? AND path = ?"
        found = conn.exec_driver_sql(sql, key).scalar()
        return found or insert_rows_returning_ids(conn, "directories", ("place_id", "path"), [key])[0]

    def segment(
        self,
        path: bytes = b"vision/train-1/rank_0.log",
        *,
        team: str = "vision",
        job: str = "train-1",
        class_name: str = "training",
        labels: Labels | None = None,
        age: str = "2d",
        **columns: Any,
    ) -> int:
        """One segment; ``columns`` override what the row would have. Returns its id."""
        folder, _, name = path.rpartition(b"/")
        write_ns = ago_ns(age)
        with self.catalog.write() as conn:
            team_id = self.intern.team(conn, team)
            job_id = self.intern.job(conn, team_id, job)
            row: dict[str, Any] = {
                "place_id": self.source.id, "directory_id": self.folder(conn, folder), "name": name,
                "team_id": team_id, "class_id": self.intern.class_(conn, class_name), "job_id": job_id,
                "labels_id": self.intern.labels(conn, job_id, labels or Labels(team=team, job=job, rank=0)),
                "rule_id": self.intern.rule(conn, RuleRef(file="platform.yaml", line=12, text=class_name)),
                "layout": "rank-files", "content": "text", "inode": 1001, "size_bytes": 5000, "allocated_bytes": 8192,
                "mtime_ns": write_ns, "ctime_ns": write_ns, "mode": 0o640, "uid": 1000, "gid": 1000,
                "last_write_ns": write_ns, "day": write_ns // 86_400_000_000_000, "first_seen_ns": write_ns,
                "original": "settled", "tier": "hot",
            } | columns  # fmt: skip
            return insert_rows_returning_ids(conn, "segments", tuple(row), [tuple(row.values())])[0]

    def archive(self, key: str = "vision/a.tar.zst", *, tier: str = "warm", **columns: Any) -> int:
        with self.catalog.write() as conn:
            row: dict[str, Any] = {
                "place_id": self.warm.id, "key": key, "tier": tier, "team_id": self.intern.team(conn, "vision"),
                "class_id": self.intern.class_(conn, "training"), "day": DAY, "gid": 1000, "mode": 0o640, "form": "tar",
                "size_bytes": 900, "raw_bytes": 5000, "members": 1, "live_members": 1, "live_raw_bytes": 5000,
                "newest_write_ns": NOON_NS, "oldest_write_ns": NOON_NS, "digest": b"d" * 32,
                "manifest_digest": b"m" * 32, "zstd_level": 3, "state": "live", "created_ns": NOON_NS,
            } | columns  # fmt: skip
            return insert_rows_returning_ids(conn, "archives", tuple(row), [tuple(row.values())])[0]

    def batch(self, segment_ids: list[int], *, outcome: str | None = "released") -> int:
        run_id = self.run()
        with self.catalog.write() as conn:
            columns = ("run_id", "action", "place_id", "state", "token", "intent", "created_ns", "updated_ns")
            values = (run_id, "merge", self.source.id, "closed", 1, "{}", NOON_NS, NOON_NS)
            batch_id = insert_rows_returning_ids(conn, "batches", columns, [values])[0]
            member = ("batch_id", "segment_id", "inode", "size_bytes", "mtime_ns", "outcome", "detail")
            insert_rows(
                conn, "batch_members", member, [(batch_id, number, 1, 2, 3, outcome, None) for number in segment_ids]
            )
        return batch_id


def zero_page(path: Path, number: int) -> None:
    """Overwrite one page of a SQLite file with zeros; the first page is number 1."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(18)[16:18], "big")
        file.seek((number - 1) * size)
        file.write(bytes(size))
