"""One scan of one place: opened if its marker says it is alive, compared with the catalog, its figures recorded.

Knows the order of a scan. Never decides by age or policy beyond which files a layout claims; removes nothing, and
without a lease writes only into a private copy. Missing and lost come last, when it is known how much could be seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from lifecycle.catalog.lease import Lease
from lifecycle.catalog.places import Finding, Place, record_findings, record_scan, set_place_state
from lifecycle.catalog.scanning import count_files
from lifecycle.catalog.sightings import ScanWriter
from lifecycle.catalog.store import Catalog
from lifecycle.errors import PlaceUnavailable
from lifecycle.model import Original
from lifecycle.names import show_name
from lifecycle.policy.layouts import SourceLayouts
from lifecycle.policy.rules import Policy, SourceRule
from lifecycle.ports import Clock
from lifecycle.scan import compare
from lifecycle.scan.absence import count_absent, count_again, record_missing
from lifecycle.scan.evidence import OpenFiles, files_open_for_writing
from lifecycle.scan.handles import Root
from lifecycle.scan.holdfile import HoldFile
from lifecycle.scan.marker import Marker, read_marker
from lifecycle.scan.reclassify import claims_key
from lifecycle.scan.tree import TreeScan
from lifecycle.scan.walk import Walk
from lifecycle.units import duration_ns, format_count, to_ns

Folders: TypeAlias = tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProblem:
    """Something that could not be seen or done; the scan went on without it."""

    subject: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFigures:
    """What one scan saw and changed. ``complete``: every folder was read to its end, so absence means something."""

    place: Place
    files: int = 0
    bytes: int = 0
    new: int = 0
    changed: int = 0
    renamed: int = 0
    replaced: int = 0
    settled: int = 0
    open_: int = 0  # open after this scan
    missing: int = 0  # missing after this scan
    lost: int = 0  # given up by this scan
    foreign: int = 0
    special: int = 0  # links, hard links, sockets, other devices
    unseen: int = 0  # folders and files that could not be read
    folders: int = 0
    folders_unchanged: int = 0
    state: str = "ok"  # ok, unreachable, shrunken: as in places.state
    is_behind: bool = False  # the marker is newer than the catalog: a restored backup
    complete: bool = True
    problems: tuple[ScanProblem, ...] = ()
    findings: tuple[Finding, ...] = ()
    hold_files: tuple[HoldFile, ...] = ()
    unlooked: Folders = ()  # folders that nothing is known of below
    seconds: float = 0.0


def scan_place(
    catalog: Catalog,
    place: Place,
    source: SourceRule,
    policy: Policy,
    *,
    host: str,
    now: datetime,
    run_id: int,
    lease: Lease | None,
    clock: Clock,
    open_files: Callable[[], OpenFiles] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ScanFigures:
    """Bring the catalog up to the tree of one place. A second scan of an unchanged tree changes no row of a segment.

    Without ``lease`` the catalog must be a private copy: nothing below the root is written either way. ``open_files``
    is the run's one look at /proc, taken when first needed. ``progress`` is told (files, bytes) since its last call.
    A place that cannot be scanned is a figure with ``complete`` False and a problem, not an error. Raises what the
    catalog raises, and Damaged for a marker that is none.
    """
    begun = clock.monotonic()
    try:
        root, is_behind = _open_place(catalog, place, source, preview=lease is None)
    except PlaceUnavailable as error:
        figures = _unavailable(catalog, place, run_id, to_ns(now), lease, error)
    else:
        with root:
            walk = Walk(root, SourceLayouts(policy, source, host), claims_key(policy, source, host))
            writer = ScanWriter(catalog, place.id, now_ns=to_ns(now), run_id=run_id, lease=lease)
            scan = TreeScan(
                catalog,
                place,
                walk,
                writer,
                settle_ns=duration_ns(source.settle),
                now_ns=to_ns(now),
                open_files=_once(open_files or files_open_for_writing),
                timezone=policy.timezone,
            )
            scan.compare_all(progress)
            scan.settle_quiet()
            figures = _Ending(catalog, place, walk, writer, scan, run_id, to_ns(now), is_behind).record()
    return replace(figures, seconds=clock.monotonic() - begun)


def _open_place(catalog: Catalog, place: Place, source: SourceRule, *, preview: bool) -> tuple[Root, bool]:
    """The root, once its marker says that it is this place and alive; and whether the marker is ahead of the catalog.

    A preview also looks at a tree that was never scanned, whoever's marker it has or has not.
    """
    marker = read_marker(place.root)
    behind = False
    if not (preview and place.scanned_ns is None):
        behind = _check_marker(catalog, place, marker)
    return Root(place.root, mounts=[os.fsencode(path) for path in source.mounts]), behind


def _check_marker(catalog: Catalog, place: Place, marker: Marker | None) -> bool:
    if marker is None:
        raise PlaceUnavailable(
            f"{place} at {place.root} has no marker: not mounted, or emptied",
            hint="mount it; if it was emptied on purpose, lifecycle init makes a new marker",
        )
    catalog_id = catalog.facts().catalog_id
    if (marker.place_uid, marker.catalog_id) != (place.uid, catalog_id):
        raise PlaceUnavailable(
            f"{place} at {place.root} has the marker of {marker.kind} {marker.name} ({marker.place_uid[:8]}, catalog "
            f"{marker.catalog_id[:8]}), expected {place.uid[:8]} of catalog {catalog_id[:8]}",
            hint="another tree is mounted there, or another catalog owns it; nothing was scanned",
        )
    return marker.generation > place.generation


def _once(read: Callable[[], OpenFiles]) -> Callable[[], OpenFiles]:
    found: list[OpenFiles] = []

    def known() -> OpenFiles:
        if not found:
            found.append(read())
        return found[0]

    return known


def _unavailable(
    catalog: Catalog, place: Place, run_id: int, now_ns: int, lease: Lease | None, error: PlaceUnavailable
) -> ScanFigures:
    finding = Finding(kind="unseen", detail=error.message, files=1, example=place.root)
    with catalog.write(*(() if lease is None else (lease,))) as conn:
        set_place_state(conn, place.id, "unreachable", error.message)
        record_findings(conn, place.id, run_id, [finding])
        record_scan(conn, place.id, ended_ns=now_ns, files_seen=0, complete=False)
    problem = ScanProblem(subject=place.root, message=error.message)
    return ScanFigures(
        place=place, unseen=1, state="unreachable", complete=False, problems=(problem,), findings=(finding,)
    )


@dataclass(frozen=True, slots=True)
class _Ending:
    """The end of a scan, when it is known how much of the tree could be seen."""

    catalog: Catalog
    place: Place
    walk: Walk
    writer: ScanWriter
    scan: TreeScan
    run_id: int
    now_ns: int
    is_behind: bool

    def record(self) -> ScanFigures:
        walk, scan, place = self.walk, self.scan, self.place
        for path, files in walk.covered.items():
            walk.unseen[path] = f"another file system is mounted over it: {format_count(files)} known files are hidden"
        for path, reason in walk.unseen.items():
            walk.found.add("unseen", reason, path)
        problems = [ScanProblem(subject=self._show(path), message=reason) for path, reason in walk.unseen.items()]
        problems += [ScanProblem(subject=self._show(path), message=reason) for path, reason in scan.problems]
        complete = not walk.unseen and not self.is_behind
        state, text, lost = "ok", "", 0
        if trouble := self._doubt():
            state, text = trouble
            complete = False
            problems.insert(0, ScanProblem(subject=place.root, message=text))
        else:
            record_missing(self.catalog, self.writer, scan.absences, now_ns=self.now_ns, complete=complete)
            if complete:
                lost = count_again(self.catalog, self.writer, walk, place.id, self.now_ns)
        findings = tuple(
            Finding(kind=kind, detail=detail, files=files, size_bytes=size, example=example)
            for (kind, detail), (files, size, example) in sorted(walk.found.sums.items())
        )
        with self.catalog.write(*self.writer.leases) as conn:
            record_findings(conn, place.id, self.run_id, findings)
            record_scan(conn, place.id, ended_ns=self.now_ns, files_seen=walk.files, complete=complete)
            set_place_state(conn, place.id, state, text)
            still_open = count_files(conn, place.id, Original.OPEN)
            missing = count_files(conn, place.id, Original.MISSING)
        return ScanFigures(
            place=place,
            files=walk.files,
            bytes=walk.size_bytes,
            new=scan.counts.new,
            changed=scan.counts.changed,
            renamed=scan.counts.renamed,
            replaced=scan.counts.replaced,
            settled=scan.counts.settled,
            open_=still_open,
            missing=missing,
            lost=lost,
            foreign=walk.found.count("foreign"),
            special=walk.found.count("link", "special", "hard_link", "other_device"),
            unseen=walk.found.count("unseen"),
            folders=scan.folders,
            folders_unchanged=scan.unchanged,
            state=state,
            is_behind=self.is_behind,
            complete=complete,
            problems=tuple(problems),
            findings=findings,
            hold_files=tuple(scan.hold_files),
            unlooked=(*walk.unseen, *walk.hidden),
        )

    def _doubt(self) -> tuple[str, str] | None:
        """The place's state and why, where no absence is believed at all."""
        absences = self.scan.absences
        if b"" in self.walk.unseen:
            return "unreachable", f"root {self.place.root} could not be listed: {self.walk.unseen[b'']}"
        absent = count_absent(self.catalog, absences)
        if compare.is_shrunken(absent, absences.expected):
            share = f"{absent / absences.expected:.0%}"
            counts = f"{format_count(absent)} of {format_count(absences.expected)} files are not there"
            return "shrunken", f"shrank by {share}: {counts}; none of them is taken for removed"
        if self.is_behind:
            return "ok", "the marker is newer than the catalog, as after restoring a backup; absence is not believed"
        return None

    def _show(self, path: bytes) -> str:
        return self.place.root + ("/" + show_name(path) if path else "")
