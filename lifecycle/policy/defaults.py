"""What ``defaults: seed-1`` stands for. Frozen: a change of a figure is a new name (seed-2), never a new meaning.

That eval and training keep their errors as ``error`` is not written here: ``kept_errors`` says where that counts.
"""

from __future__ import annotations

from typing import Final

SEED_1: Final = """\
# defaults: seed-1
classes:
  - name: error
    match: ["error/", "errors/", "error*.log", "error.json"]
    warm_after: 24h
    cold_after: 7d
    expire_after: 90d
  - name: eval
    match: ["eval/", "eval_*", "*_eval.log", "job:eval-*"]
    warm_after: 24h
    expire_after: 7d
  - name: training
    warm_after: 24h
    cold_after: 7d
    expire_after: 30d
    expire_from: job
"""
SEEDS: Final = {"seed-1": SEED_1}

# Of a tier that does not say: quick for warm, which is read; small for cold, which is kept.
ZSTD_LEVEL: Final = {"warm": 3, "cold": 9}
MERGE_BELOW: Final = {"warm": 64 * 2**20, "cold": 128 * 2**20}
MERGE_TARGET: Final = {"warm": 512 * 2**20, "cold": 2**30}
