"""The audit's figures, gathered from the catalog: usage from rollups, counters from indexes, savings from the runs.

Knows which figures the screen needs and what deserves a person's attention. Reads the catalog only, never a tree, so
it costs the same at a million segments and at ten. All usage on one screen comes from the same sums: team rows add up
to the tiers, logical and stored bytes are separate columns, and nothing is counted by a running total (bug case B30).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from lifecycle.catalog.holds import all_holds, standing_holds
from lifecycle.catalog.places import Finding, Place, findings, places
from lifecycle.catalog.reclassifying import waiting_changes
from lifecycle.catalog.reporting import (
    CatalogCounters,
    Companions,
    Space,
    count_archives,
    count_companions,
    count_for_audit,
    count_problems,
    count_unlooked,
    fullest_folders,
    jobs_in_hot,
    kept_beyond,
    newest_space,
)
from lifecycle.catalog.runs import RunRecord, list_runs
from lifecycle.catalog.store import Catalog
from lifecycle.catalog.usage import UsageRow, usage_by
from lifecycle.model import ActionKind, Kept, TierName, Usage
from lifecycle.names import show_name
from lifecycle.plan.holds import compare_holds
from lifecycle.plan.plan import PlanTally
from lifecycle.plan.relief import iter_plan
from lifecycle.plan.source import CopyRule
from lifecycle.policy.rules import Policy
from lifecycle.report.attention import find_attention
from lifecycle.report.evidence import make_errors, make_pressure, make_retention
from lifecycle.report.figures import (
    AuditReport,
    BeyondLine,
    Counters,
    DueLine,
    ErrorsLine,
    FindingLine,
    FolderLine,
    PlaceLine,
    RunReport,
    Saved,
    TeamUsage,
    TierUsage,
)
from lifecycle.report.holds import hold_lines
from lifecycle.report.plans import due_line
from lifecycle.report.pressure import forecast_file_systems, gather_broken, pressure_of
from lifecycle.report.screen import is_good
from lifecycle.report.summaries import make_run_line, read_summary
from lifecycle.scan.reclassify import unclassified_places
from lifecycle.units import from_ns, to_ns

_RUNS: Final = 1000  # looked back on for the last good run and for what was purged
_FOLDERS: Final = 20
_PURGED_OVER: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Globs over what rollups know; empty tuples take all."""

    teams: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    tiers: tuple[TierName, ...] = ()
    words: str = ""

    def takes(self, row: UsageRow) -> bool:
        return (
            is_match(row.team or "", self.teams)
            and is_match(row.class_name or "", self.classes)
            and (not self.tiers or row.tier in self.tiers)
        )

    @property
    def is_everything(self) -> bool:
        return not (self.teams or self.classes or self.tiers)


def is_match(name: str, globs: tuple[str, ...]) -> bool:
    """Whether a name is one of the globs; none takes all. ``[`` stands for itself, as in every selector."""
    return not globs or any(fnmatchcase(name, glob.replace("[", "[[]")) for glob in globs)


EVERYTHING: Final = AuditFilter()


def gather_audit(catalog: Catalog, policy: Policy, *, now: datetime, only: AuditFilter = EVERYTHING) -> AuditReport:
    """The whole report but ``due``, which costs a plan."""
    facts = catalog.facts()
    with catalog.read(snapshot=True) as conn:
        every = usage_by(conn, "team", "class_name", "tier", "day")
        usage = [row for row in every if only.takes(row)]
        counted = count_for_audit(conn)
        records = list_runs(conn, limit=_RUNS)
        problems = count_problems(conn, [record.id for record in records[:50]])
        known, found, space = places(conn), findings(conn), newest_space(conn)
        waiting, holds = waiting_changes(conn), all_holds(conn)
        names = [] if only.is_everything else sorted({row.team or "" for row in usage})
        classes = [] if only.is_everything else sorted({row.class_name or "" for row in usage})
        archives = count_archives(conn, teams=names, classes=classes)
    errors = _errors(catalog, policy, usage)
    broken = gather_broken(catalog, policy)
    forecast = forecast_file_systems(catalog, policy, every, now=now)
    runs = [make_run_line(record, problems.get(record.id, 0)) for record in records]
    tiers = tuple(_iter_tiers(usage, archives, space, policy, only))
    own_runs = [run for run in runs if run.command == "run"]
    last, good = next(iter(own_runs), None), next(filter(is_good, own_runs), None)
    return AuditReport(
        at=now,
        catalog_id=facts.catalog_id,
        rehearsal=facts.rehearsal,
        policy_digest=policy.digest,
        last_run=last,
        last_good_run=good,
        attention=find_attention(
            known,
            found,
            counted,
            waiting,
            policy.digest,
            broken,
            forecast,
            errors,
            last=last,
            good=good,
            now=now,
            holds=compare_holds(policy, holds, to_ns(now)).shorten,
        ),
        tiers=tiers,
        total=_total(tiers),
        counters=_counters(counted, found, usage, policy),
        saved=_saved(tiers, records, now),
        places=tuple(map(_place_line, known)),
        teams=tuple(_iter_teams(usage)),
        findings=tuple(_finding_line(finding, known) for finding in found),
        runs=tuple(runs[:50]),
        pressure=make_pressure(usage, {}, now),
        retention=make_retention(usage, policy, now),
        errors=errors,
        filtered_by=only.words,
    )


def tier_usage(catalog: Catalog) -> tuple[TierUsage, ...]:
    """The tiers as they are now, without what the file systems say: what a run notes before and after."""
    with catalog.read() as conn:
        sums = {row.tier: row.usage for row in usage_by(conn, "tier")}
        archives = count_archives(conn)
    return tuple(
        TierUsage(tier=tier, usage=usage, objects=usage.segments if tier is TierName.HOT else archives.get(tier, 0))
        for tier in TierName
        if (usage := sums.get(tier, Usage())).segments or tier is TierName.HOT
    )


def gather_pressure(catalog: Catalog, report: AuditReport, *, only: AuditFilter = EVERYTHING) -> AuditReport:
    """The report with files per job and the fullest folders. Costs a look at each original that is there."""
    with catalog.read() as conn:
        jobs, folders = jobs_in_hot(conn), fullest_folders(conn, _FOLDERS)
        usage = [row for row in usage_by(conn, "team", "class_name", "tier", "day") if only.takes(row)]
    lines = tuple(FolderLine(place=place, path=show_name(path), files=files) for place, path, files in folders)
    return replace(report, pressure=make_pressure(usage, jobs, report.at), folders=lines)


def gather_errors(
    catalog: Catalog, policy: Policy, report: AuditReport, *, only: AuditFilter = EVERYTHING
) -> AuditReport:
    """The report with what is kept of errors. Costs a look at every companion."""
    with catalog.read() as conn:
        usage = [row for row in usage_by(conn, "team", "class_name", "tier", "day") if only.takes(row)]
        kept = count_companions(conn)
    return replace(report, errors=_errors(catalog, policy, usage, kept))


def _errors(
    catalog: Catalog,
    policy: Policy,
    usage: Sequence[UsageRow],
    kept: Mapping[tuple[str, str], Companions] | None = None,
) -> tuple[ErrorsLine, ...]:
    pairs = {(row.team or "", row.class_name or "") for row in usage} | set(kept or ())
    keeping = sorted(pair for pair in pairs if pair[1] in policy.keeping_errors(pair[0]))
    with catalog.read() as conn:
        waiting = count_unlooked(conn, keeping)
    return make_errors(usage, waiting, kept, policy)


def gather_holds(
    catalog: Catalog, policy: Policy, report: AuditReport, *, only: AuditFilter = EVERYTHING
) -> AuditReport:
    """The report with the holds, and what is kept beyond its retention beside them. Costs what is held and marked."""
    with catalog.read() as conn:
        standing, rows = standing_holds(conn), kept_beyond(conn, to_ns(report.at))
    lines = [
        BeyondLine(
            team=team, class_name=class_name, tier=TierName(tier), archives=archives, segments=segments,
            why="beside a held one" if held else "beside one whose time has not come", stored_bytes=stored,
        )
        for team, class_name, tier, held, archives, segments, stored in rows
        if is_match(team, only.teams) and is_match(class_name, only.classes)
        and (not only.tiers or TierName(tier) in only.tiers)
    ]  # fmt: skip
    holds = tuple(hold_lines(catalog, policy, report.at, standing))
    return replace(report, holds=holds, beyond=tuple(lines))


def gather_due(
    catalog: Catalog,
    policy: Policy,
    *,
    host: str,
    now: datetime,
    only: AuditFilter = EVERYTHING,
    copies: Mapping[int, CopyRule] = MappingProxyType({}),
) -> tuple[DueLine, ...]:
    """What the next run would do, from the last scan. Costs a plan."""
    from lifecycle.catalog.due import CatalogDue

    tally = PlanTally(policy, plan_id="", now=now)
    unclassified = unclassified_places(catalog, policy, host)
    pressure = pressure_of(catalog, policy, now=now)
    items = iter_plan(CatalogDue(catalog), policy, now, unclassified=unclassified, copies=copies, pressure=pressure)
    for item in items:
        tier = item.tier if isinstance(item, Kept) else item.tier_from
        if only.takes(UsageRow(team=item.team, class_name=item.class_name, tier=tier, usage=Usage())):
            tally.add(item)
    return tuple(map(due_line, tally.summary().lines))


def _iter_tiers(
    usage: Sequence[UsageRow], archives: dict[TierName, int], space: Sequence[Space], policy: Policy, only: AuditFilter
) -> Iterator[TierUsage]:
    """Tiers that policy has or that still hold something; the fill is of their fullest file system."""
    for tier in only.tiers or TierName:
        total = sum((row.usage for row in usage if row.tier is tier), Usage())
        if tier is not TierName.HOT and tier not in policy.tiers and not total.segments:
            continue
        fullest = max(
            (s for s in space if s.tier is tier and s.total_bytes),
            key=lambda s: 1 - s.free_bytes / s.total_bytes,
            default=None,
        )
        yield TierUsage(
            tier=tier,
            usage=total,
            objects=total.segments if tier is TierName.HOT else archives.get(tier, 0),
            total_bytes=fullest.total_bytes if fullest else None,
            free_bytes=fullest.free_bytes if fullest else None,
            high=fill.high if (fill := policy.fill_of(tier)) is not None else None,
            reserve_bytes=fill.reserve_bytes if fill is not None else None,
        )


def _total(tiers: Sequence[TierUsage]) -> TierUsage:
    """Of copies: a segment with an original and a stored copy is in both tiers, as it takes room in both."""
    usage = sum((tier.usage for tier in tiers), Usage())
    return TierUsage(tier=TierName.HOT, usage=usage, objects=sum(tier.objects for tier in tiers))


def _iter_teams(usage: Sequence[UsageRow]) -> Iterator[TeamUsage]:
    groups: dict[tuple[str, str, TierName], list[UsageRow]] = {}
    for row in usage:
        groups.setdefault((row.team or "", row.class_name or "", row.tier or TierName.HOT), []).append(row)
    for (team, class_name, tier), rows in sorted(groups.items(), key=lambda item: (item[0][:2], item[0][2].warmth)):
        yield TeamUsage(
            team=team,
            class_name=class_name,
            tier=tier,
            usage=sum((row.usage for row in rows), Usage()),
            oldest_day=min((row.day for row in rows if row.day is not None), default=None),
        )


def _counters(
    counted: CatalogCounters, found: Sequence[Finding], usage: Sequence[UsageRow], policy: Policy
) -> Counters:
    foreign = [finding for finding in found if finding.kind == "foreign"]
    return Counters(
        marked=counted.marked,
        held=counted.held,
        age_unknown=counted.age_unknown,
        missing=counted.missing,
        open_segments=counted.open_segments,
        open_bytes=counted.open_bytes,
        foreign=sum(finding.files for finding in foreign),
        foreign_bytes=sum(finding.size_bytes for finding in foreign),
        unlisted_teams=len({row.team for row in usage if row.team and not policy.is_listed(row.team)}),
        quarantined_archives=counted.quarantined_archives,
        unfinished_batches=counted.unfinished_batches,
    )


def _saved(tiers: Sequence[TierUsage], records: Sequence[RunRecord], now: datetime) -> Saved:
    stored = [tier for tier in tiers if tier.tier is not TierName.HOT]
    usage = sum((tier.usage for tier in stored), Usage())
    purges = [
        phase
        for record in records
        if from_ns(record.now_ns) > now - _PURGED_OVER and isinstance(report := read_summary(record.summary), RunReport)
        for phase in report.phases
        if phase.action is ActionKind.PURGE
    ]
    return Saved(
        stored_segments=usage.segments,
        logical_bytes=usage.logical_bytes,
        stored_bytes=usage.stored_bytes,
        archives=sum(tier.objects for tier in stored),
        purged_segments=sum(phase.segments for phase in purges),
        purged_bytes=sum(phase.logical_bytes for phase in purges),
    )


# --- rows ---------------------------------------------------------------------------------------------------------


def _place_line(place: Place) -> PlaceLine:
    return PlaceLine(
        name=place.name,
        host=place.host,
        kind=place.kind.value,
        tier=place.tier,
        root=place.root,
        state=place.state,
        state_text=place.state_text,
        scanned=None if place.scanned_ns is None else from_ns(place.scanned_ns),
        complete_scan=None if place.complete_scan_ns is None else from_ns(place.complete_scan_ns),
    )


def _finding_line(finding: Finding, known: Sequence[Place]) -> FindingLine:
    return FindingLine(
        place=next((place.name for place in known if place.id == finding.place_id), str(finding.place_id)),
        kind=finding.kind,
        detail=finding.detail,
        files=finding.files,
        size_bytes=finding.size_bytes,
        example=finding.example,
    )
