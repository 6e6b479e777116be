"""Figures that several tests of reports look at. Built from ux examples: names and numbers are invented."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from lifecycle.errors import ExitCode
from lifecycle.model import ActionKind, Kept, PlannedBatch, ReasonCode, TierName, Usage
from lifecycle.plan.forecast import Days, Rate
from lifecycle.plan.plan import PlanTally
from lifecycle.report.figures import (
    Attention,
    AuditReport,
    BeyondLine,
    BrokenLine,
    Counters,
    ErrorsLine,
    FileSystemForecast,
    FillLine,
    FolderLine,
    ForecastReport,
    HoldLine,
    PhaseReport,
    PressureLine,
    PreviewReport,
    ProblemLine,
    ReliefLine,
    RetentionLine,
    RunLine,
    RunReport,
    Saved,
    ScanReport,
    TeamForecast,
    TeamUsage,
    TierUsage,
)
from tests.builders import NOON, a_batch, a_policy, a_reason, a_segment

GIB = 2**30
DIGEST = "9c41e7" + "0" * 58
TIB = 2**40


def a_scan(**overrides: Any) -> ScanReport:
    scan = ScanReport(
        place="lustre", files=412_093, size_bytes=9 * TIB, new=311_240, foreign=1_207, unseen=2, is_complete=False,
        seconds=38.2, problems=("nlp/private: permission denied",),
    )  # fmt: skip
    return replace(scan, **overrides)


def a_move(**overrides: Any) -> PhaseReport:
    phase = PhaseReport(
        action=ActionKind.MERGE, tier_from=TierName.HOT, tier_to=TierName.WARM, planned_segments=308_400,
        planned_bytes=int(8.72 * TIB), segments=308_397, logical_bytes=int(8.72 * TIB), stored_bytes=int(1.79 * TIB),
        freed_bytes=int(8.72 * TIB), archives=31, kept=3, seconds=9_660,
    )  # fmt: skip
    return replace(phase, **overrides)


def a_tier_usage(tier: TierName, stored: float, **overrides: Any) -> TierUsage:
    usage = Usage(segments=1_000, logical_bytes=int(stored * 5), stored_bytes=int(stored))
    return replace(TierUsage(tier=tier, usage=usage, objects=1_000 if tier is TierName.HOT else 31), **overrides)


def a_run(**overrides: Any) -> RunReport:
    run = RunReport(
        run_id=1882, host="cron-1", now=NOON, started=NOON, ended=NOON + timedelta(hours=3), policy_digest=DIGEST,
        exit_code=ExitCode.PARTIAL, scans=(a_scan(),),
        phases=(
            PhaseReport(action=ActionKind.PURGE, tier_from=TierName.WARM, planned_segments=6_120, segments=6_120,
                        logical_bytes=70 * GIB, freed_bytes=14 * GIB, seconds=3),
            a_move(),
        ),
        before=(a_tier_usage(TierName.HOT, 9.4 * TIB),),
        after=(a_tier_usage(TierName.HOT, 0.7 * TIB), a_tier_usage(TierName.WARM, 1.79 * TIB)),
        problem_count=7,
        problems=tuple(
            ProblemLine(phase="scan", place="lustre", subject=f"nlp/private-{n}", message="permission denied")
            for n in range(7)
        ),
    )  # fmt: skip
    return replace(run, **overrides)


def a_run_line(run_id: int = 1882, **overrides: Any) -> RunLine:
    line = RunLine(
        run_id=run_id, command="run", host="cron-1", now=NOON - timedelta(hours=1), started=NOON - timedelta(hours=1),
        ended=NOON, policy_digest=DIGEST, exit_code=ExitCode.PARTIAL, problems=2,
    )  # fmt: skip
    return replace(line, **overrides)


def an_audit(**overrides: Any) -> AuditReport:
    hot = TierUsage(tier=TierName.HOT, usage=Usage(segments=3, logical_bytes=3 * GIB, stored_bytes=3 * GIB), objects=3,
                    total_bytes=10 * GIB, free_bytes=2 * GIB)  # fmt: skip
    warm = TierUsage(
        tier=TierName.WARM, usage=Usage(segments=100, logical_bytes=50 * GIB, stored_bytes=10 * GIB), objects=2
    )
    teams = (
        TeamUsage(team="nlp", class_name="training", tier=TierName.HOT, usage=hot.usage, oldest_day=20_000),
        TeamUsage(team="vision", class_name="eval", tier=TierName.WARM,
                  usage=Usage(segments=40, logical_bytes=20 * GIB, stored_bytes=4 * GIB)),
        TeamUsage(team="vision", class_name="training", tier=TierName.WARM,
                  usage=Usage(segments=60, logical_bytes=30 * GIB, stored_bytes=6 * GIB)),
    )  # fmt: skip
    total = TierUsage(tier=TierName.HOT, usage=hot.usage + warm.usage, objects=5)
    report = AuditReport(
        at=NOON, catalog_id="c0ffee", rehearsal=False, policy_digest=DIGEST, last_run=a_run_line(),
        last_good_run=a_run_line(1881, now=NOON - timedelta(hours=25), exit_code=ExitCode.DONE),
        attention=(
            Attention(is_urgent=True, subject="nvme", text="unreachable: no marker in /nvme", hint="lifecycle scan"),
            Attention(is_urgent=False, subject="run", text="done in part (exit 3)", hint="lifecycle history 1882"),
        ),
        tiers=(hot, warm), total=total, teams=teams,
        counters=Counters(
            marked=41_690, age_unknown=4, foreign=1_207, unlisted_teams=1, open_segments=2, open_bytes=GIB
        ),
        saved=Saved(stored_segments=100, logical_bytes=50 * GIB, stored_bytes=10 * GIB, archives=2, purged_segments=9,
                    purged_bytes=GIB),
        runs=(a_run_line(), a_run_line(1881, exit_code=ExitCode.DONE, problems=0)),
        pressure=(PressureLine(team="nlp", hot_files=103_696, hot_bytes=300 * GIB, files_per_job=512,
                               files_per_hour=4_130.5, bytes_per_hour=40 * GIB),),
        folders=(FolderLine(place="lustre", path="nlp/rlhf-9/gpu-114", files=48_212),),
        errors=(
            ErrorsLine(team="nlp", class_name="training", kept_as="error", stored=60, waiting=3, waiting_bytes=GIB,
                       unreadable=1, rule="platform.yaml:12", companions=7, error_blocks=19, kept_bytes=4096),
            ErrorsLine(team="vision", class_name="eval", kept_as="error", stored=40, waiting=0, waiting_bytes=0,
                       unreadable=0, rule="platform.yaml:11"),
        ),
        holds=(
            HoldLine(
                id=3, selector="--team nlp --job 'rlhf-*'", reason="paper, table 3", owner="chen",
                source="policy teams/nlp.yaml:7", began=NOON, ends=NOON, ended=None, ended_by="", is_pending=False,
                awaits="", segments=214, logical_bytes=5 * 2**30, marked=0,
            ),
        ),
        beyond=(
            BeyondLine(
                team="nlp", class_name="training", tier=TierName.COLD, why="beside a held one", archives=2,
                segments=1904, stored_bytes=3 * 2**30,
            ),
        ),
        retention=(
            RetentionLine(team="nlp", class_name="eval", expire_after="7d", oldest_day=20_500, oldest_age_days=13,
                          past_segments=310, past_bytes=2 * GIB, rule="platform.yaml:11"),
            RetentionLine(team="tmp", class_name="training", expire_after="policy does not list its team",
                          oldest_day=20_000, oldest_age_days=513, past_segments=0, past_bytes=0, rule=""),
        ),
    )  # fmt: skip
    return replace(report, **overrides)


FILL = FillLine(name="hot", total_bytes=400 * TIB, used_before=int(327.6 * TIB), used_after=int(318.8 * TIB), high=0.8,
                reserve_bytes=40 * TIB)  # fmt: skip
BROKEN = (
    BrokenLine(subject="vision", text="3.20 TiB on hot, soft quota 3TiB", is_alarm=False, team="vision",
               rule="teams/vision.yaml:5"),
    BrokenLine(subject="nlp", text="2.30 TiB on hot, hard quota 2TiB", is_alarm=True, team="nlp",
               open_bytes=int(2.1 * TIB), rule="platform.yaml:14"),
)  # fmt: skip


def a_run_under_pressure() -> RunReport:
    early = a_move(action=ActionKind.RELEASE, segments=12, planned_segments=12, stored_bytes=0, archives=0, kept=0,
                   logical_bytes=GIB, freed_bytes=GIB, planned_bytes=GIB)  # fmt: skip
    relief = ReliefLine(name="hot", freed_bytes=GIB)
    return a_run(
        phases=(a_move(), early), fills=(FILL,), relief=(relief,), broken=BROKEN, exit_code=ExitCode.ATTENTION,
        problems=(), problem_count=0,
    )  # fmt: skip


def a_forecast() -> ForecastReport:
    def days(expected: float | None, earliest: float | None, latest: float | None) -> Days:
        return Days(expected=expected, earliest=earliest, latest=latest)

    growth = Rate(low=1.8 * TIB, expected=2.3 * TIB, high=3.0 * TIB, days=14)
    hot = FileSystemForecast(
        name="hot", tiers=(TierName.HOT,), total_bytes=400 * TIB, used_bytes=int(318.8 * TIB), growth=growth,
        high_bytes=320 * TIB, reserve_bytes=40 * TIB, high=days(0.5, 0.4, 0.7), reserve=days(18, 14, 25),
        full=days(35, 27, None),
    )  # fmt: skip
    cold = FileSystemForecast(
        name="cold", tiers=(TierName.COLD,), total_bytes=900 * TIB, used_bytes=36 * TIB, growth=None
    )  # fmt: skip
    nlp = TeamForecast(
        team="nlp", tier="hot", used_bytes=int(2.3 * TIB), growth=Rate(low=-GIB, expected=-GIB, high=-GIB, days=14),
        soft_bytes=TIB, hard_bytes=4 * TIB, soft=days(0, 0, 0), hard=days(None, None, None),
    )  # fmt: skip
    vision = TeamForecast(team="vision", tier="total", used_bytes=9 * TIB, growth=None, hard_bytes=20 * TIB)
    return ForecastReport(at=NOON, runs=14, days=13.9, file_systems=(hot, cold), teams=(nlp, vision))


def a_preview(*items: PlannedBatch | Kept, **overrides: Any) -> PreviewReport:
    listed = items or tuple(_due_items())
    tally = PlanTally(a_policy(), plan_id="7c1e22ab", now=NOON)
    for item in listed:
        tally.add(item)
    report = PreviewReport(
        summary=tally.summary(), scans=(a_scan(),), items=lambda: iter(listed),
        before=(a_tier_usage(TierName.HOT, 9.4 * TIB),), place_roots=((1, "lustre", "/lustre/logs"),),
        problems=(
            ProblemLine(phase="scan", place="source lustre", subject="nlp/private", message="permission denied"),
        ),
    )  # fmt: skip
    return replace(report, **overrides)


def _due_items() -> Iterator[PlannedBatch | Kept]:
    segments = [
        a_segment("26h", id=number, team="vision", job="train-1", rank=number, size="2MiB") for number in (1, 2, 3)
    ]
    yield a_batch(segments)
    yield a_batch([a_segment("30h", id=4, team="nlp", job="[red]", size="1GiB", name=b"=cmd|' /C calc'!A0.log")],
                  kind=ActionKind.TRANSITION)  # fmt: skip
    yield Kept(team="vision", class_name="training", tier=TierName.COLD, segments=2_112, logical_bytes=9 * GIB,
               reason=a_reason(ReasonCode.JOB_STILL_WRITES, required="30d"))  # fmt: skip
