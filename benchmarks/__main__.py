"""``python -m benchmarks``: measure, print JSON, and with ``--write`` put the table into docs/performance.md.

python -m benchmarks --quick                 # small sizes, one pair each: does it work, some minutes
python -m benchmarks --only small_files      # one of them
python -m benchmarks --write                 # all, at full size: some 20 minutes and 20 GB the first time
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import catalogs, files, restoring
from benchmarks.measure import CHECKOUT, Result
from benchmarks.table import put_table, read_results, render_json, render_line, render_table, together

Benchmark = Callable[..., Iterator[Result]]
BENCHMARKS: dict[str, Benchmark] = {
    found.__name__: found
    for found in (
        files.scan,
        files.small_files,
        files.slow_files,
        files.large_files,
        files.errors_kept,
        catalogs.plan_and_audit,
        restoring.restore_one,
        catalogs.memory_of_runs,
        catalogs.start_up,
    )
}


def main() -> None:
    options = _parse()
    rounds = options.rounds or (1 if options.quick else 5)
    work = options.work or Path(tempfile.mkdtemp(prefix="lifecycle-bench-", dir="/var/tmp"))
    work.mkdir(parents=True, exist_ok=True)
    shared = Path("/dev/shm")
    memory = Path(tempfile.mkdtemp(prefix="lifecycle-bench-", dir=shared)) if os.access(shared, os.W_OK) else None
    results: list[Result] = []
    try:
        for name in options.only or BENCHMARKS:
            started = time.monotonic()
            for found in BENCHMARKS[name](work.resolve(), memory, quick=options.quick, rounds=rounds):
                row = dataclasses.replace(found, benchmark=name)
                results.append(row)
                print(render_line(row), file=sys.stderr, flush=True)
            print(f"{name}: {time.monotonic() - started:.0f} s with all preparations", file=sys.stderr, flush=True)
    finally:
        if options.work is None:
            shutil.rmtree(work, ignore_errors=True)
        if memory is not None:
            shutil.rmtree(memory, ignore_errors=True)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    print(render_json(results, day=day, rounds=rounds))
    if options.write:
        file = CHECKOUT / "benchmarks" / "results.json"
        results = together(read_results(file), results, list(BENCHMARKS))
        file.write_text(render_json(results, day=day, rounds=rounds) + "\n")
        put_table(CHECKOUT / "docs" / "performance.md", render_table(results, day=day, rounds=rounds))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Ratios of the program to its peers.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one pair each")
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), help="this one; may be repeated")
    parser.add_argument("--rounds", type=int, help="pairs of which the median counts (5, with --quick 1)")
    parser.add_argument("--work", type=Path, help="where trees and catalogs are kept for the next time")
    parser.add_argument("--write", action="store_true", help="into benchmarks/results.json, docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
