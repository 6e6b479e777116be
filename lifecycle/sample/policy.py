"""The policy that goes with the sample: three sources, both tiers, the usual classes, one file for each team.

Text and nothing else: the tool reads it as it reads anybody's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

PLATFORM: Final = """\
# The policy of the sample tree. Every key is explained in the README and by: lifecycle policy schema
catalog: {catalog}
teams: [vision, nlp, speech, recsys]        # each has its file in teams/
sources:
  - {{name: shared, path: {shared}, under: "{{team}}/{{job}}",
     layout: [torchrun, deepspeed, rank-files, plain], exclude: ["checkpoints/"], settle: 1h}}
  - {{name: slurm, path: {slurm}, under: "{{team}}", layout: [slurm], settle: 1h}}
  - {{name: pods, path: {pods}, layout: [kubernetes], settle: 1h}}
tiers:
  warm: {{path: {warm}, zstd: 3, merge: {{below: 4MiB, target: 64MiB}}}}
  cold: {{path: {cold}, zstd: 9, merge: {{below: 16MiB, target: 256MiB}}}}
classes:                                    # the first that matches wins; the last takes the rest
  - {{name: error, match: ["error/", "errors/", "error*.log", "error.json"],
     warm_after: 24h, cold_after: 7d, expire_after: 90d}}
  - {{name: eval, match: ["eval/", "eval_*", "*_eval.log", "job:eval-*"], warm_after: 24h, expire_after: 7d}}
  - {{name: training, warm_after: 24h, cold_after: 7d, expire_after: 30d, expire_from: job}}
bounds: {{training: {{expire_after: [14d, 180d]}}}}   # what a team may set for itself
expire: {{grace: 3d}}                         # marked, still readable, then gone
"""

TEAMS: Final = {
    "vision": """\
team: vision
aliases: [prj0421]                          # the namespace of its pods
contacts: [vision-oncall]
classes: [{name: training, expire_after: 60d}]   # an entry that names a class changes only the figures it gives
""",
    "nlp": "team: nlp\ncontacts: [nlp-oncall]\n",
    "speech": "team: speech\n",
    "recsys": "team: recsys\ncontacts: [ads-infra]\n",
}


def write_sample_policy(directory: Path, *, logs: Path, catalog: Path, warm: Path, cold: Path) -> None:
    """Write ``platform.yaml`` and ``teams/*.yaml`` for the tree at ``logs``; files of these names are replaced."""
    root = logs.absolute()
    places = {source: root / source for source in ("shared", "slurm", "pods")} | {"warm": warm, "cold": cold}
    quoted = {name: json.dumps(str(path.absolute()), ensure_ascii=False) for name, path in places.items()}
    text = PLATFORM.format(catalog=json.dumps(f"sqlite:///{catalog.absolute()}", ensure_ascii=False), **quoted)
    (directory / "teams").mkdir(parents=True, exist_ok=True)
    (directory / "platform.yaml").write_text(text, encoding="utf-8")
    for team, rules in TEAMS.items():
        (directory / "teams" / f"{team}.yaml").write_text(rules, encoding="utf-8")
