"""``python -m lifecycle.sample make|demo --into DIR``: flags, one call, an exit code."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path

from lifecycle.clock import SystemClock
from lifecycle.errors import LifecycleError
from lifecycle.sample import make_sample, write_sample_policy
from lifecycle.sample.demo import run_demo


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        if given.what == "demo":
            run_demo(given.into.absolute(), seed=given.seed, scale=given.scale)
        else:
            _make(given.into.absolute(), seed=given.seed, scale=given.scale)
    except LifecycleError as error:
        sys.stderr.write(f"lifecycle.sample: {error.message}\n" + (f"HINT: {error.hint}\n" if error.hint else ""))
        return int(error.exit_code)
    except FileExistsError as error:
        sys.stderr.write(f"lifecycle.sample: {error.filename} is there already\nHINT: give --into another folder\n")
        return 2
    return 0


def _make(into: Path, *, seed: int, scale: float) -> None:
    """The tree and its policy as of two hours from now: once these have passed, all but the live files are settled."""
    facts = make_sample(into / "logs", now=SystemClock().now() + timedelta(hours=2), seed=seed, scale=scale)
    (into / "state").mkdir(exist_ok=True)
    catalog = into / "state" / "catalog.db"
    write_sample_policy(into / "policies", logs=facts.root, catalog=catalog, warm=into / "warm", cold=into / "cold")
    sys.stdout.write(f"{facts.logs} logs, {facts.log_bytes} bytes in {facts.root}; policy in {into / 'policies'}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lifecycle.sample", description="A tree of logs to try the tool on."
    )
    parser.add_argument(
        "what", choices=["make", "demo"], help="make: the tree and its policy; demo: and a week of runs"
    )
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="where; demo empties what a demo made")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another tree (default 1)")
    parser.add_argument("--scale", type=float, default=1.0, help="0.05 for a tenth of the files (default 1.0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
