"""A larger fortnight by hand: ``python -m tests.acceptance.fortnight --scale 20 --keep DIR``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.acceptance.fortnight.simulate import Fortnight, Result


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.fortnight", description=__doc__)
    parser.add_argument("--scale", type=int, default=1, help="how many times the jobs' ranks and the quotas")
    parser.add_argument("--seed", type=int, default=1, help="of names, sizes and lines")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave all of it in this new folder")
    asked = parser.parse_args()
    if asked.keep is not None:
        asked.keep.mkdir(parents=True)
        return show(simulate(asked.keep.absolute(), asked))
    with tempfile.TemporaryDirectory() as folder:
        return show(simulate(Path(folder), asked))


def simulate(folder: Path, asked: argparse.Namespace) -> Result:
    return Fortnight(folder, scale=asked.scale, seed=asked.seed, progress=print).run()


def show(result: Result) -> int:
    print(result.audit)
    for name, count in sorted(result.counts.items()):
        print(f"{count:8,} {name}")
    for theme, texts in result.found.items():
        for text in texts:
            print(f"{theme}: {text}")
    print(f"{sum(map(len, result.found.values()))} findings, {result.seconds:.0f} s")
    return 0 if result.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
