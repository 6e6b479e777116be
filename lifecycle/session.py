"""What one run carries from step to step: its row, its places and leases, what went wrong, how it ends.

Knows the order inside a step; ``run`` knows the order of the steps.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from lifecycle.app import App, check_marker, known_places, measure, put_marker, unknown_places
from lifecycle.catalog.holds import look_again, standing_holds
from lifecycle.catalog.lease import Lease, release_leases, take_lease
from lifecycle.catalog.places import Place, next_generations, place_by_id, set_place_root, set_place_state
from lifecycle.catalog.runs import (
    Problem,
    SpaceSample,
    Taken,
    begin_run,
    end_run,
    latest_now,
    record_policy,
    record_problems,
    record_samples,
    record_space,
)
from lifecycle.errors import Brake, Consequence, ExitCode, LeaseHeld, LifecycleError, PlaceUnavailable
from lifecycle.holding import Seen, hold_file_problems, refresh
from lifecycle.model import ActionKind, PlaceKind, TierName
from lifecycle.plan.pressure import FileSystem
from lifecycle.policy.rules import SourceRule
from lifecycle.report.figures import (
    HeldPlace,
    ProblemLine,
    Progress,
    RunReport,
    ScanOnceReport,
    ScanReport,
)
from lifecycle.report.json import render_run_line
from lifecycle.scan.evidence import OpenFiles, files_open_for_writing
from lifecycle.scan.holdcopy import copy_holds, render_holds
from lifecycle.scan.reclassify import reclassify_place
from lifecycle.scan.reconcile import ScanFigures, scan_place
from lifecycle.units import duration_ns, format_count, from_ns, to_ns

_BEHIND_HINT = (
    "the catalog came back from a backup: it scans, searches and restores, and removes nothing there until"
    " lifecycle catalog accept"
)
_UNKNOWN_HINT = "how full it is is not known: relief does nothing for it"
_HOLD_HINT = "docs/holds.md says what may stand in it; lifecycle hold add holds the rest"
AHEAD = timedelta(days=30)  # since the latest run that is a day old: a long pause, or a wrong clock
AGREED = timedelta(days=1)
BACKWARDS = timedelta(hours=1)  # a clock this far behind an earlier run's stops all removals


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    only: frozenset[ActionKind] | None = None
    max_duration: timedelta | None = None
    plan_file: Path | None = None
    if_held: str = "fail"  # or "skip"; waiting is "fail" after ``wait``
    wait: timedelta = timedelta(0)


@dataclass(slots=True)
class Opened:
    place: Place
    source: SourceRule | None
    lease: Lease | None = None
    is_behind: bool = (
        False  # the catalog is older than the place: it is scanned, and nothing is stored or removed there
    )


@dataclass(slots=True)
class Session:
    app: App
    command: str
    is_preview: bool = False
    run_id: int = 0
    now: datetime = field(init=False)
    started: datetime = field(init=False)
    opened: list[Opened] = field(default_factory=list)
    held: list[HeldPlace] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    codes: set[ExitCode] = field(default_factory=set)
    refuses_removals: bool = False  # the clock jumped
    _open_files: OpenFiles | None = None
    _names: dict[int, str] = field(default_factory=dict)
    _unknown: set[str] = field(default_factory=set)  # file systems whose figures could not be had
    taken: dict[tuple[str, str, TierName], Taken] = field(default_factory=dict)  # out of the books, by this run
    space: tuple[FileSystem, ...] = ()  # as measured last
    _is_recorded: bool = False
    _hold_files: list[Seen] = field(default_factory=list)

    def __enter__(self) -> Session:
        self.now = self.started = self.app.now()
        now_ns = to_ns(self.now)
        if not self.is_preview:
            self._look_at_clock(now_ns)
        with self.app.catalog.write() as conn:
            self.run_id = begin_run(
                conn, command=self.command, host=self.app.host, pid=os.getpid(), now_ns=now_ns, started_ns=now_ns,
                policy_digest=self.app.policy.digest,
            )  # fmt: skip
            record_policy(conn, self.app.policy.digest, self.app.policy.files, now_ns=now_ns, run_id=self.run_id)
        return self

    def _look_at_clock(self, now_ns: int) -> None:
        """A clock that jumped stops removals: back, for the run that meets it; ahead, for a day of runs that agree.

        So one run at a wrong time neither removes anything nor blocks those after it. Rehearsals jump on purpose.
        """
        with self.app.catalog.read() as conn:
            last_ns = latest_now(conn)
            settled_ns = latest_now(conn, at_most_ns=now_ns - duration_ns(AGREED))
        if last_ns is not None and now_ns < last_ns - duration_ns(BACKWARDS):
            self._refuse_removals(from_ns(last_ns))
        elif settled_ns is not None and now_ns - settled_ns > duration_ns(AHEAD) and not self._is_rehearsal():
            self._refuse_removals(from_ns(settled_ns))

    def _is_rehearsal(self) -> bool:
        return self.app.catalog.facts().rehearsal

    def _refuse_removals(self, earlier: datetime) -> None:
        self.refuses_removals = True
        self.note(
            "run",
            None,
            "clock",
            Brake(
                f"the clock says {self.now:%Y-%m-%d %H:%M} and an earlier run was at"
                f" {earlier:%Y-%m-%d %H:%M}: nothing is marked or removed",
                hint="if the clock is right, the next runs go on: after a jump ahead, those a day from now",
            ),
        )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and not self._is_recorded and not self.is_preview:
            code = error.exit_code if isinstance(error, LifecycleError) else ExitCode.FAILED
            with contextlib.suppress(LifecycleError), self.app.catalog.write() as conn:
                record_problems(conn, self.run_id, self.problems)
                end_run(
                    conn, self.run_id, ended_ns=to_ns(self.app.now()), exit_code=code, summary={"error": str(error)}
                )
        with contextlib.suppress(LifecycleError):
            release_leases(self.app.catalog, [opened.lease for opened in self.opened if opened.lease is not None])

    # --- places

    def look_at_places(self, *, need_marker: bool) -> None:
        """Open what can be worked on; what cannot is a problem of its own."""
        for place, source in known_places(self.app):
            self._names[place.id] = str(place)
            try:
                behind = check_marker(self.app, place) if need_marker else ""
                self._note_reached(place)
                self.opened.append(Opened(place=place, source=source, is_behind=bool(behind)))
                if behind:
                    self.note("open", place.id, "", PlaceUnavailable(behind, hint=_BEHIND_HINT))
            except LifecycleError as error:
                self.note("open", place.id, "", error)
                if not self.is_preview:
                    with self.app.catalog.write() as conn:
                        set_place_state(conn, place.id, "unreachable", error.message)
        if need_marker:
            for name in unknown_places(self.app):
                self.note(
                    "open",
                    None,
                    name,
                    PlaceUnavailable(f"{name} is in the policy and has no marker yet", hint="lifecycle init"),
                )

    def _note_reached(self, place: Place) -> None:
        """It carries its own marker where the policy says it lies: that is its root, and it is reachable again."""
        with self.app.catalog.read() as conn:
            known = place_by_id(conn, place.id)
        if known.root != place.root or (known.state == "unreachable" and place.kind is PlaceKind.TIER):
            with self.app.catalog.write() as conn:
                set_place_root(conn, place.id, place.root)
                set_place_state(conn, place.id, "ok")

    def take_leases(self, options: RunOptions) -> None:
        """Raises LeaseHeld when a place is somebody else's and the options say to fail."""
        self.look_at_places(need_marker=True)
        for opened in list(self.opened):
            try:
                opened.lease = take_lease(
                    self.app.catalog,
                    opened.place,
                    holder=f"{self.command} {self.run_id}",
                    now=self.now,
                    wait=options.wait,
                    clock=self.app.clock,
                )
            except LeaseHeld as error:
                if options.if_held != "skip":
                    raise
                since = from_ns(error.since_ns) if error.since_ns is not None else None
                holder = error.message.partition(" is held by ")[2].partition(", since ")[0]
                self.held.append(HeldPlace(place=str(opened.place), holder=holder, since=since))
                self.opened.remove(opened)
        # Before anything is done: a catalog that comes back from a backup of an hour ago is then behind.
        up_to_date = [opened for opened in self.opened if not opened.is_behind]
        with self.app.catalog.write() as conn:
            current = next_generations(conn, [opened.place.id for opened in up_to_date])
        for opened, place in zip(up_to_date, current, strict=True):
            opened.place = place
        self._put_markers(current)

    def look_at_proc(self) -> OpenFiles:
        """One look for the whole run: it costs as many system calls as there are open files on the host."""
        if self._open_files is None:
            self._open_files = files_open_for_writing()
        return self._open_files

    def _put_markers(self, current: Iterable[Place]) -> None:
        """After the commit of their generation: a crash between the two leaves a marker that is merely behind."""
        catalog_id = self.app.catalog.facts().catalog_id
        for place in current:
            put_marker(catalog_id, place)

    # --- steps

    def reclassify(self, progress: Progress, stop: Callable[[], str] = lambda: "") -> None:
        """Before the scan, for which a file that policy no longer claims is a stranger's."""
        for opened in self.opened:
            if opened.source is None:
                continue
            done = reclassify_place(
                self.app.catalog,
                opened.place,
                opened.source,
                self.app.policy,
                host=self.app.host,
                now=self.now,
                run_id=self.run_id,
                lease=opened.lease,
                begin=partial(progress.phase, f"reclassify {opened.place.name}"),
                progress=progress.advance,
                stop=stop,
            )
            if done.changed:
                with self.app.catalog.write() as conn:
                    look_again(conn)
            if done.looked_at:
                progress.done(f"{format_count(done.changed)} changed")

    def scan(self, progress: Progress) -> list[ScanReport]:
        reports = []
        for opened in self.opened:
            if opened.source is None:
                continue
            progress.phase(f"scan {opened.place.name}")
            try:
                figures = scan_place(
                    self.app.catalog,
                    opened.place,
                    opened.source,
                    self.app.policy,
                    host=self.app.host,
                    now=self.now,
                    run_id=self.run_id,
                    lease=opened.lease,
                    clock=self.app.clock,
                    open_files=self.look_at_proc,
                    progress=progress.advance,
                )
            except LifecycleError as error:
                if error.consequence is Consequence.HALT:
                    raise
                self.note("scan", opened.place.id, str(opened.place), error)
                continue
            seen = Seen(
                place=opened.place, files=figures.hold_files, is_complete=figures.complete, unlooked=figures.unlooked
            )
            self._hold_files.append(seen)
            for path, message in hold_file_problems(self.app, seen):
                self.note("scan", opened.place.id, path, PlaceUnavailable(message, hint=_HOLD_HINT))
            for problem in figures.problems:
                self.note("scan", opened.place.id, problem.subject, PlaceUnavailable(problem.message))
            if not figures.complete:
                self.codes.add(ExitCode.PARTIAL)
            reports.append(_scan_report(opened.place, figures))
            progress.done()
        return reports

    def refresh_holds(self) -> None:
        """After the scan and before the plan: what came is covered before anything could be decided about it."""
        refresh(self.app, now=self.now, run_id=self.run_id, keeps_all=self.refuses_removals, seen=self._hold_files)
        self._hold_files = []
        self._copy_holds()

    def _copy_holds(self) -> None:
        """To every tier, before anything is removed: a catalog that is rebuilt out of the tiers finds them there."""
        with self.app.catalog.read() as conn:
            body = render_holds(standing_holds(conn), self.app.catalog.facts().catalog_id)
        for opened in self.opened:
            if opened.place.kind is not PlaceKind.TIER or opened.lease is None or opened.is_behind:
                continue
            try:
                copy_holds(opened.place.root, body)
            except LifecycleError as error:
                self.note("holds", opened.place.id, str(opened.place), error)

    # --- space

    def measure(self) -> tuple[FileSystem, ...]:
        """The file systems under the places of this run, as they are now. One that cannot be measured is a problem,
        once; nothing is done for it."""
        found = measure(self.app, [(opened.place, opened.source) for opened in self.opened])
        for each in found:
            if each.unknown and each.name not in self._unknown:
                self._unknown.add(each.name)
                self.note("space", each.place_ids[0], each.name, PlaceUnavailable(each.unknown, hint=_UNKNOWN_HINT))
        return found

    # --- the end

    def note(self, phase: str, place_id: int | None, subject: str, error: LifecycleError) -> None:
        self.codes.add(error.exit_code)
        message = f"{error.message} HINT: {error.hint}" if error.hint else error.message
        self.problems.append(
            Problem(phase=phase, place_id=place_id, subject=subject, message=message, consequence=error.consequence)
        )

    def problem_lines(self) -> list[ProblemLine]:
        return [
            ProblemLine(
                phase=p.phase,
                place=self._names.get(p.place_id or 0, ""),
                subject=p.subject,
                message=p.message,
                consequence=p.consequence.value,
            )
            for p in self.problems
        ]

    def record(self, report: RunReport | ScanOnceReport) -> None:
        """The run's row, samples and problems, then the markers: they say that everything above is durable."""
        import json

        ended_ns, space = to_ns(self.app.now()), self.space or self.measure()
        with self.app.catalog.write(*(o.lease for o in self.opened if o.lease is not None)) as conn:
            record_problems(conn, self.run_id, self.problems)
            record_samples(conn, self.run_id, ended_ns, self.taken)
            record_space(conn, self.run_id, ended_ns, _samples(space))
            end_run(
                conn,
                self.run_id,
                ended_ns=ended_ns,
                exit_code=report.exit_code,
                summary=json.loads(render_run_line(report)),
            )
            current = next_generations(conn, [opened.place.id for opened in self.opened if not opened.is_behind])
        self._is_recorded = True
        self._put_markers(current)


def _scan_report(place: Place, figures: ScanFigures) -> ScanReport:
    return ScanReport(
        place=place.name,
        host=place.host,
        files=figures.files,
        size_bytes=figures.bytes,
        new=figures.new,
        changed=figures.changed,
        renamed=figures.renamed,
        replaced=figures.replaced,
        settled=figures.settled,
        still_open=figures.open_,
        missing=figures.missing,
        lost=figures.lost,
        foreign=figures.foreign,
        special=figures.special,
        unseen=figures.unseen,
        is_complete=figures.complete,
        seconds=figures.seconds,
        problems=tuple(problem.message for problem in figures.problems),
    )


def _samples(file_systems: Sequence[FileSystem]) -> list[SpaceSample]:
    return [
        SpaceSample(
            place_id=place_id, total_bytes=each.total_bytes, free_bytes=each.free_bytes,
            total_inodes=each.total_inodes, free_inodes=each.free_inodes, file_system=each.name,
        )
        for each in file_systems
        if not each.unknown
        for place_id in each.place_ids
    ]  # fmt: skip


@contextlib.contextmanager
def stop_signal() -> Iterator[list[str]]:
    """SIGTERM and SIGINT ask for an end: no new batch, what was begun is finished."""
    stopped: list[str] = []
    former = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError):  # not in the main thread: the embedding program has its own way
            former[number] = signal.signal(number, lambda got, _: stopped.append(signal.Signals(got).name))
    try:
        yield stopped
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
