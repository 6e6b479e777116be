"""The policy of the fortnight twice: as figures that the books go by, and as the YAML that the command reads.

Both are made of the same table here, so that books and command are told the same and each draws its own conclusions.
Sizes grow with the scale, so that a larger fortnight meets its quotas on the same days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

HOUR: Final = 3600 * 10**9
DAY: Final = 24 * HOUR
KIB: Final = 1024
MIB: Final = 1024 * KIB

SETTLE: Final = HOUR
GRACE: Final = 36 * HOUR
FIRST_SIGHT: Final = DAY
EARLY_MARKED: Final = DAY  # whatever the pressure, a mark stands for a day
STAY: Final = 7 * DAY
LOST: Final = 7 * DAY
TEAMS: Final = ("nlp", "recsys", "robotics", "speech", "vision")
SOURCES: Final = ("shared", "slurm", "pods")
COPIED_EARLY: Final = {"slurm": 3 * HOUR}
ALIASES: Final = {"prj-ads": "recsys"}
HIGH, LOW = 0.80, 0.78
EARLY: Final = ("speech", "metrics")  # the one class of one team whose only copy may go where room is needed


class Figures(NamedTuple):
    """Of one class, in hours. ``keeps``: whether its errors are kept when it goes."""

    warm: int
    cold: int | None
    expire: int
    by_job: bool = False
    keeps: bool = False
    early: int | None = None


class Quota(NamedTuple):
    soft: int
    hard: int


@dataclass(frozen=True)
class Rules:
    """What is in force. ``kinds``: the class of each kind of file that the jobs write."""

    classes: Mapping[str, Figures]
    kinds: Mapping[str, str]
    hot: Mapping[str, Quota]  # bytes in hot, by team
    total: Mapping[str, Quota]  # bytes in all
    disk: int  # size of the disk that the free_space command tells of
    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    holds: tuple[str, ...] = ()

    def figures(self, team: str, class_name: str) -> Figures:
        figures = self.classes[class_name]
        return figures if (team, class_name) == EARLY else figures._replace(early=None)


def first_rules(scale: int) -> Rules:
    usual = Quota(soft=1536 * KIB * scale, hard=3 * MIB * scale)
    return Rules(
        classes={
            "error": Figures(warm=24, cold=72, expire=240),
            "eval": Figures(warm=24, cold=None, expire=240, keeps=True),
            "metrics": Figures(warm=24, cold=48, expire=144, early=48),
            "training": Figures(warm=36, cold=72, expire=96, by_job=True, keeps=True),
        },
        kinds={
            "log": "training", "grad": "metrics", "error": "error", "nccl": "error", "eval": "eval",
            "metrics": "metrics",
        },
        patterns={
            "error": ("error/", "errors/", "error*.log", "error.json", "nccl*.log"),
            "eval": ("eval/", "eval_*", "*_eval.log", "job:eval-*"),
            "metrics": ("metrics.csv", "*.jsonl", "grad*.log"),
        },
        hot=dict.fromkeys(TEAMS, usual),
        total={"speech": Quota(soft=4 * MIB * scale, hard=6 * MIB * scale)},
        disk=64 * MIB * scale,
    )  # fmt: skip


def later_rules(before: Rules, scale: int) -> Rules:
    """Day 7: eval keeps for a week less, gradients are errors from now on and NCCL's talk is none, vision gets more."""
    return replace(
        before,
        classes={**before.classes, "eval": before.classes["eval"]._replace(expire=72)},
        kinds={**before.kinds, "grad": "error", "nccl": "training"},
        patterns={**before.patterns, "error": ("error/", "errors/", "error*.log", "error.json", "grad*.log")},
        hot={**before.hot, "vision": Quota(soft=4 * MIB * scale, hard=8 * MIB * scale)},
    )


def write_policy(folder: Path, rules: Rules) -> None:
    """``policies`` in the folder, with sources in ``logs``, tiers in ``tiers``, the catalog in ``state``."""
    policies = folder / "policies"
    (policies / "teams").mkdir(parents=True, exist_ok=True)
    classes = "".join(_class(name, figures, rules) for name, figures in rules.classes.items())
    text = _PLATFORM.format(
        folder=folder, teams=", ".join(TEAMS), classes=classes, grace=GRACE // HOUR, settle=SETTLE // HOUR,
        copied=COPIED_EARLY["slurm"] // HOUR, high=f"{HIGH:.0%}", low=f"{LOW:.0%}",
        holds="".join("holds:\n" * (not at) + f"  - {{{hold}}}\n" for at, hold in enumerate(rules.holds)),
    )  # fmt: skip
    (policies / "platform.yaml").write_text(text)
    for team in TEAMS:
        (policies / "teams" / f"{team}.yaml").write_text(_team(team, rules))


def _class(name: str, figures: Figures, rules: Rules) -> str:
    parts = [f"name: {name}"]
    if name in rules.patterns:
        parts.append("match: [" + ", ".join(f'"{pattern}"' for pattern in rules.patterns[name]) + "]")
    parts.append(f"warm_after: {figures.warm}h")
    parts += [] if figures.cold is None else [f"cold_after: {figures.cold}h"]
    parts += [f"expire_after: {figures.expire}h", f"keep_errors_as: {'error' if figures.keeps else 'none'}"]
    parts.append(f"expire_from: {'job' if figures.by_job else 'write'}")
    return "  - {" + ", ".join(parts) + "}\n"


def _team(team: str, rules: Rules) -> str:
    names = [alias for alias, of in ALIASES.items() if of == team]
    quotas = {
        scope: by_team[team] for scope, by_team in (("hot", rules.hot), ("total", rules.total)) if team in by_team
    }
    text = f"team: {team}\ncontacts: [{team}-oncall]\n" + (f"aliases: [{', '.join(names)}]\n" if names else "")
    text += "quota:\n" + "".join(
        f"  {scope}: {{soft: {quota.soft // KIB}KiB, hard: {quota.hard // KIB}KiB}}\n"
        for scope, quota in quotas.items()
    )
    if team == EARLY[0]:
        early = rules.classes[EARLY[1]].early
        text += f"classes: [{{name: {EARLY[1]}, expire_early: {{keep_at_least: {early}h}}}}]\n"
    return text


_PLATFORM: Final = """\
catalog: sqlite:///{folder}/state/catalog.db
teams: [{teams}]
sources:
  - {{name: shared, path: "{folder}/logs/shared", under: "{{team}}/{{job}}", settle: {settle}h,
     exclude: ["checkpoints/"],
     layout: ["nodes/{{node}}/rank_{{rank}}.log", torchrun, deepspeed, ray, wandb, hydra, lightning, huggingface, kaldi,
              rank-files, plain],
     free_space: {{command: ["{folder}/disk", "{folder}"]}}}}
  - {{name: slurm, path: "{folder}/logs/slurm", under: "{{team}}", settle: {settle}h, layout: [slurm, plain],
     copy_after: {copied}h}}
  - {{name: pods, path: "{folder}/logs/pods", settle: {settle}h, layout: [kubernetes]}}
tiers:
  hot: {{high: {high}, low: {low}}}
  warm: {{path: "{folder}/tiers/warm", zstd: 3, merge: {{below: 96KiB, target: 2MiB}}}}
  cold: {{path: "{folder}/tiers/cold", zstd: 9, merge: {{below: 512KiB, target: 4MiB}}}}
classes:
{classes}team_defaults: {{quota: {{hot: {{soft: 1GiB, hard: 2GiB}}}}, unlisted: report}}
bounds: {{hold: 400d}}
{holds}expire: {{grace: {grace}h}}
"""
