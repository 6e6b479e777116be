"""A small world on disk: logs of two teams, a catalog, two tiers; runs on it with the clock wherever a test wants it.

Ages count from the real present, since nobody can set the time at which an inode changed: runs are ``after`` so many
hours or days, as with ``run --now`` on a rehearsal catalog. Files are a few hundred bytes; one is above the merge
limit.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lifecycle.app import App, put_marker, tier_spec
from lifecycle.archive import open_archive
from lifecycle.catalog.events import verify_chain
from lifecycle.catalog.places import Place, ensure_place, places
from lifecycle.catalog.segments import iter_segments
from lifecycle.catalog.store import create_catalog, open_catalog
from lifecycle.catalog.usage import recount, rollups
from lifecycle.clock import MovedClock
from lifecycle.extract import parse
from lifecycle.model import PlaceKind, Segment, Selector, TierName
from lifecycle.plan.pressure import FileSystem
from lifecycle.policy.rules import ClassRule, Policy, SourceRule
from lifecycle.report.figures import RestoreReport, RunReport, Silence
from lifecycle.restore import RestoreOptions, restore
from lifecycle.run import RunOptions, run_once
from lifecycle.scan.space import Ground, measure_space
from lifecycle.tiers import open_tier
from lifecycle.units import parse_duration
from tests.builders import a_class, a_policy, a_source, a_tier

BELOW = "64KiB"  # the merge limit: segments from here on are stored one by one
LARGE = 70_000

FILES = (
    ("vision/train-1/rank_0.log", "3d", 300),
    ("vision/train-1/rank_1.log", "3d", 411),
    ("vision/train-1/rank_2.log", "3d", 0),
    ("vision/train-1/rank_3.log", "3d", LARGE),
    ("nlp/train-2/rank_0.log", "3d", 278),
    ("nlp/train-2/rank_1.log", "1h", 150),  # too young for anything
)


@dataclass
class World:
    folder: Path
    files: tuple[tuple[str, str, int], ...] = FILES
    late: tuple[tuple[str, str, int], ...] = ()  # written by ``write_late``, not by ``make``
    classes: tuple[ClassRule, ...] = ()
    tiers: tuple[TierName, ...] = (TierName.WARM, TierName.COLD)
    below: str = BELOW
    source: dict[str, Any] = field(default_factory=dict)
    policy_more: dict[str, Any] = field(default_factory=dict)  # marks and quotas
    measure: Callable[[Sequence[Ground]], tuple[FileSystem, ...]] = measure_space
    begun: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/state/catalog.db"

    @property
    def policy(self) -> Policy:
        classes = self.classes or (a_class("training"),)
        source: SourceRule = a_source("lustre", path=str(self.logs), layouts=("rank-files", "plain"), **self.source)
        return a_policy(
            classes=classes,
            sources=[source],
            tiers=[
                a_tier(name, path=str(self.folder / name.value), below=self.below, target="32MiB")
                for name in self.tiers
            ],
            catalog_url=self.url,
            **self.policy_more,
        )

    # --- making ---------------------------------------------------------------------------------------------------

    def make(self) -> World:
        """Files, catalog, places with their markers: what ``init --rehearsal`` leaves. Returns itself."""
        for path, age, size in self.files:
            self.write(path, self.content(path, size), age=age)
        (self.folder / "state").mkdir(parents=True)
        policy = self.policy
        with create_catalog(self.url, now=self.begun, rehearsal=True) as catalog:
            wanted = [(PlaceKind.SOURCE, "lustre", policy.sources[0].path, TierName.HOT)]
            wanted += [(PlaceKind.TIER, name.value, tier.path, name) for name, tier in policy.tiers.items()]
            for kind, name, root, tier in wanted:
                Path(root).mkdir(parents=True, exist_ok=True)
                with catalog.write() as conn:
                    place = ensure_place(conn, kind=kind, name=name, host="", root=root, tier=tier, uid=f"uid-{name}")
                put_marker(catalog.facts().catalog_id, place)
        return self

    def write_late(self) -> None:
        for path, age, size in self.late:
            self.write(path, self.content(path, size), age=age)

    @staticmethod
    def content(path: str, size: int) -> bytes:
        """Text that tells its file, so that no two files can be taken for each other."""
        line = b"step=%d loss=0.5 " + path.encode() + b"\n"
        text = b"".join(line % step for step in range(size // 20 + 1))
        return text[:size]

    def write(self, path: str, content: bytes, *, age: str | None = None) -> Path:
        file = self.logs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        if age is not None:
            at = (self.begun - parse_duration(age)).timestamp()
            os.utime(file, (at, at))
        return file

    # --- running --------------------------------------------------------------------------------------------------

    @contextmanager
    def app(self, after: str = "") -> Iterator[App]:
        """Opened with the clock ``after`` the beginning: "2h", "+40d"."""
        now = self.begun + (parse_duration(after) if after else timedelta(0))
        with open_catalog(self.url) as catalog:
            clock = MovedClock(now)
            yield App(policy=self.policy, catalog=catalog, clock=clock, host="node-1", measure=self.measure)

    def run(self, after: str, **options: Any) -> RunReport:
        with self.app(after) as app:
            return run_once(app, RunOptions(**options), Silence())

    def restore(self, after: str, **options: Any) -> RestoreReport:
        with self.app(after) as app:
            return restore(app, Selector(), RestoreOptions(**options), Silence())

    # --- looking --------------------------------------------------------------------------------------------------

    def segments(self) -> dict[str, Segment]:
        """By path; of a path that had several, the one that is read today."""
        with self.app() as app:
            found = sorted(iter_segments(app.catalog, Selector()), key=lambda segment: segment.tier is not None)
        return {os.fsdecode(segment.path): segment for segment in found}

    def originals(self) -> dict[str, str]:
        return {path: segment.original.value for path, segment in self.segments().items()}

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.app() as app, app.catalog.read() as conn:
            return [tuple(row) for row in conn.exec_driver_sql(sql).fetchall()]

    def batches(self) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self.rows("SELECT action, state FROM batches ORDER BY id")]

    def objects(self) -> dict[TierName, list[str]]:
        """Keys in each tier's directory."""
        found = {}
        for name in self.tiers:
            root = self.folder / name.value
            found[name] = sorted(
                str(path.relative_to(root))
                for path in root.rglob("*")
                if path.is_file() and ".lifecycle" not in path.parts
            )
        return found

    def our_files(self) -> list[str]:
        """Files of ours below sources and tiers besides markers and objects: temporaries, parked originals."""
        roots = [self.logs, *(self.folder / name.value for name in self.tiers)]
        return sorted(
            str(path.relative_to(self.folder))
            for root in roots
            for path in root.rglob("*")
            if path.is_file()
            and ".lifecycle" in str(path.relative_to(root))
            and path.name not in ("place.json", "holds.json")
        )

    def readable(self) -> Counter[tuple[str, str]]:
        """(path, digest) of everything that can be read, from originals by their names and from archives by offset."""
        found: Counter[tuple[str, str]] = Counter()
        with self.app() as app:
            with app.catalog.read() as conn:
                by_id = {place.id: place for place in places(conn)}
                archives = dict(map(tuple, conn.exec_driver_sql("SELECT id, key FROM archives WHERE state = 'live'")))
                tier_of = dict(map(tuple, conn.exec_driver_sql("SELECT id, place_id FROM archives")))
            for segment in iter_segments(app.catalog, Selector()):
                path = os.fsdecode(segment.path)
                if segment.tier is TierName.HOT:
                    found[path, digest_of((self.logs / path).read_bytes())] += 1
                elif segment.tier is not None:
                    assert segment.archive_id is not None
                    content = _stored(by_id[tier_of[segment.archive_id]], archives[segment.archive_id], segment, app)
                    found[path, digest_of(content)] += 1
        return found

    def manifest(self, *paths: str) -> Counter[tuple[str, str]]:
        """What ``readable`` must say for these files as they were made; all of them without ``paths``."""
        return Counter(
            (path, digest_of(self.content(path, size)))
            for path, _, size in (*self.files, *self.late)
            if not paths or path in paths
        )

    # --- what always holds ----------------------------------------------------------------------------------------

    def broken_books(self, *, may_wait: bool = False) -> list[str]:
        """What does not agree between segments, archives, rollups, chains, journal and tiers. Empty when all is well.

        ``may_wait``: parked originals, and the batches they belong to, are as they should be.
        """
        broken = []
        with self.app() as app, app.catalog.read() as conn:
            if recount(conn) != rollups(conn):
                broken.append(f"rollups {rollups(conn)} but segments say {recount(conn)}")
            for place in places(conn):
                if not (chain := verify_chain(conn, place.id)).is_whole:
                    broken.append(f"chain of {place}: {chain.problem}")
            broken += [f"archive {row}" for row in conn.exec_driver_sql(_MISCOUNTED).fetchall()]
            broken += [f"still to be removed {tuple(row)}" for row in conn.exec_driver_sql(_BETWEEN)]
            broken += [f"batch {tuple(row)}" for row in conn.exec_driver_sql(_UNFINISHED) if not (may_wait and row[2])]
            broken += [f"mark {tuple(row)}" for row in conn.exec_driver_sql(_MARKS)]
            live = {
                (row[0], row[1])
                for row in conn.exec_driver_sql("SELECT tier, key FROM archives WHERE state IN ('live', 'quarantined')")
            }
        there = {(name.value, key) for name, keys in self.objects().items() for key in keys}
        broken += [f"orphan object {key}" for key in sorted(there - live)]
        broken += [f"object gone {key}" for key in sorted(live - there)]
        broken += [f"left behind {path}" for path in self.our_files() if not (may_wait and "/release/" in path)]
        return broken


TRACEBACK = b"""2026-03-01 10:00:01,000 ERROR train: step 88 failed
Traceback (most recent call last):
  File "train.py", line 88, in step
    loss.backward()
RuntimeError: CUDA error: device-side assert triggered
"""


@dataclass
class FaultyWorld(World):
    """Every second file has a traceback in it, and policy keeps what training says of errors as class error."""

    asks: bool = True  # False: policy does not keep errors yet

    @property
    def policy(self) -> Policy:
        rules = self.classes or (a_class("training"),)
        kept = tuple(replace(rule, keep_errors_as="error" if self.asks else None) for rule in rules)
        return replace(
            super().policy, classes={"error": a_class("error", expire_after="90d")} | {r.name: r for r in kept}
        )

    @staticmethod
    def content(path: str, size: int) -> bytes:
        text = World.content(path, size)
        return text + TRACEBACK if size % 2 == 0 and size else text

    def readable(self) -> Counter[tuple[str, str]]:
        """Without the companions, which ``broken_books`` looks at."""
        return Counter({item: count for item, count in super().readable().items() if not item[0].endswith("#errors")})

    def companions(self) -> list[tuple[Segment, Segment, bytes]]:
        """Each that can be read, with its source and its text."""
        found = []
        with self.app() as app:
            everything = {segment.id: segment for segment in iter_segments(app.catalog, Selector())}
            with app.catalog.read() as conn:
                by_id = {place.id: place for place in places(conn)}
                archives = {row[0]: row[1:] for row in conn.exec_driver_sql("SELECT id, place_id, key FROM archives")}
            for segment in everything.values():
                if segment.companion_of is not None and segment.tier is not None:
                    place_id, key = archives[segment.archive_id]
                    text = _stored(by_id[place_id], key, segment, app)
                    found.append((segment, everything[segment.companion_of], text))
        return found

    def broken_books(self, *, may_wait: bool = False) -> list[str]:
        broken = super().broken_books(may_wait=may_wait)
        for companion, source, text in self.companions():
            found, facts = parse(text)
            if facts.digest != (source.digest or facts.digest) or facts.path != source.path:
                broken.append(f"{companion.path!r} speaks of {facts}, its source is {source}")
            if len(found.blocks) != source.error_blocks:
                broken.append(f"{companion.path!r} has {len(found.blocks)} blocks, not {source.error_blocks}")
        kept = Counter(source.id for _, source, _ in self.companions())
        with self.app() as app:
            for segment in iter_segments(app.catalog, Selector()):
                is_source = segment.companion_of is None and bool(segment.error_blocks)
                if kept[segment.id] != int(is_source) and (kept[segment.id] or segment.tier is not None):
                    broken.append(f"{kept[segment.id]} companions of {segment.path!r}, blocks {segment.error_blocks}")
                if segment.tier is None and segment.error_blocks is None:
                    broken.append(f"{segment.path!r} is gone and nobody looked for its errors")
        return broken


_TO_STAY = ("place.json", "holds.json")
_MISCOUNTED = """
    SELECT a.id, a.state, a.live_members, a.live_raw_bytes, count(s.id), coalesce(sum(s.size_bytes), 0)
    FROM archives a LEFT JOIN segments s ON s.archive_id = a.id GROUP BY a.id
    HAVING a.live_members <> count(s.id) OR a.live_raw_bytes <> coalesce(sum(s.size_bytes), 0)"""
_BETWEEN = "SELECT id, key, state FROM archives WHERE state IN ('superseded', 'recorded')"
_UNFINISHED = """
    SELECT b.id, b.state, (SELECT count(*) FROM batch_members m WHERE m.batch_id = b.id AND m.outcome = 'parked')
    FROM batches b WHERE b.state NOT IN ('closed', 'abandoned')"""
_MARKS = """
    SELECT s.id, s.marked, m.segment_id FROM segments s LEFT JOIN marks m ON m.segment_id = s.id
    WHERE s.marked <> (m.segment_id IS NOT NULL)"""


def _stored(place: Place, key: str, segment: Segment, app: App) -> bytes:
    assert segment.archive_id is not None
    with app.catalog.read() as conn:
        offset = conn.exec_driver_sql("SELECT archive_offset FROM segments WHERE id = ?", (segment.id,)).scalar_one()
    with closing(open_tier(tier_spec(place))) as tier, open_archive(tier.open(key), name=key) as archive:
        return b"".join(archive.read_at(offset, segment.size_bytes, digest=segment.digest, member=segment.path))


def digest_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def work_done(report: RunReport) -> int:
    """What a run did to anything: segments of its phases, batches put right, files seen changed."""
    scanned = sum(s.new + s.changed + s.renamed + s.replaced + s.settled + s.missing for s in report.scans)
    return sum(phase.segments for phase in report.phases) + report.recovery.batches + scanned
