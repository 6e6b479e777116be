"""The sample is what it says: the same seed the same tree, every trap in it, and a policy that claims every log."""

from __future__ import annotations

import gzip
import hashlib
import os
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.model import UNKNOWN_TEAM
from lifecycle.policy.layouts import Claim, SourceLayouts
from lifecycle.policy.load import load_policy
from lifecycle.policy.rules import Policy
from lifecycle.sample import SampleFacts, grow_sample, make_sample, write_sample_policy
from lifecycle.units import to_ns
from tests.builders import NOON

SCALE = 0.05


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleFacts:
    return make_sample(tmp_path_factory.mktemp("sample") / "logs", now=NOON, seed=7, scale=SCALE)


@pytest.fixture(scope="module")
def policy(sample: SampleFacts) -> Policy:
    home = sample.root.parent
    write_sample_policy(
        home / "policies", logs=sample.root, catalog=home / "catalog.db", warm=home / "warm", cold=home / "cold"
    )
    return load_policy(home / "policies", environ={})


def _files(root: Path) -> list[Path]:
    paths = (Path(folder, name) for folder, _, names in os.walk(root) for name in names)
    return sorted(path for path in paths if not path.is_symlink())


def _claims(sample: SampleFacts, policy: Policy) -> dict[Path, Claim | None]:
    """What the policy's layouts make of every file with one name, outside of excluded folders."""
    claims: dict[Path, Claim | None] = {}
    for source in policy.sources:
        layouts = SourceLayouts(policy, source, "host")
        for folder, folders, names in os.walk(os.fsencode(source.path)):
            layout = layouts.enter(folder[len(os.fsencode(source.path)) + 1 :])
            if layout.excluded:
                folders.clear()
                continue
            for name in names:
                path = Path(os.fsdecode(folder), os.fsdecode(name))
                if not path.is_symlink() and path.stat().st_nlink == 1:
                    claims[path] = layout.claim(name)
    return claims


def test_the_same_seed_gives_the_same_names_bytes_modes_and_times(sample: SampleFacts, tmp_path: Path) -> None:
    again = make_sample(tmp_path / "logs", now=NOON, seed=7, scale=SCALE)

    def prints(root: Path) -> list[tuple[object, ...]]:
        return [
            (
                path.relative_to(root),
                path.stat().st_mode,
                path.stat().st_mtime_ns,
                hashlib.md5(path.read_bytes()).digest(),
            )
            for path in _files(root)
        ]

    assert prints(again.root) == prints(sample.root)


def test_another_seed_gives_other_bytes(sample: SampleFacts, tmp_path: Path) -> None:
    other = make_sample(tmp_path / "logs", now=NOON, seed=8, scale=SCALE)
    name = "shared/vision/detr-r50/rank_0.log"
    assert (other.root / name).read_bytes() != (sample.root / name).read_bytes()


def test_what_was_counted_is_what_lies_there(sample: SampleFacts) -> None:
    files = _files(sample.root)
    assert len(files) == sample.logs + sample.foreign + sample.excluded + sample.hard_links
    assert sum(path.is_symlink() for path in sample.root.rglob("*")) == sample.links
    assert max(path.stat().st_size for path in files) == sample.largest_bytes


def test_ages_reach_from_minutes_to_120_days(sample: SampleFacts) -> None:
    ages = [timedelta(microseconds=(to_ns(NOON) - path.stat().st_mtime_ns) / 1000) for path in _files(sample.root)]
    assert timedelta(0) < min(ages) < timedelta(minutes=30)
    assert timedelta(days=110) < max(ages) <= timedelta(days=120)


def test_the_traps_are_in_it(sample: SampleFacts) -> None:
    names = [os.fsencode(path.name) for path in _files(sample.root)]
    assert any(b"\xe9" in name and b"\xc3" not in name for name in names), "a name that is not UTF-8"
    assert any(path.stat().st_size == 0 for path in _files(sample.root)), "an empty stderr"
    assert len({path.stat().st_mode & 0o777 for path in _files(sample.root)}) >= 2, "odd modes"
    assert any(not path.exists() for path in sample.root.rglob("*") if path.is_symlink()), "a link to nowhere"
    assert any(path.stat().st_nlink == 2 for path in _files(sample.root)), "a hard link"


def test_compressed_rotations_are_whole(sample: SampleFacts) -> None:
    compressed = [path for path in _files(sample.root) if path.suffix == ".gz"]
    assert len(compressed) == sample.compressed > 0
    assert all(gzip.decompress(path.read_bytes()).endswith(b"\n") for path in compressed)


def test_every_log_is_claimed_and_nothing_foreign_is_but_the_one_that_lies_about_its_name(
    sample: SampleFacts, policy: Policy
) -> None:
    claims = _claims(sample, policy)
    claimed = [path for path, claim in claims.items() if claim]
    liar = sample.root / "shared/speech/asr-conformer/profiler.log"
    assert liar in claimed
    assert len(claimed) == sample.logs + 1
    assert len(claims) - len(claimed) == sample.foreign - 1


def test_every_team_class_and_layout_of_today_occurs(sample: SampleFacts, policy: Policy) -> None:
    claims = [claim for claim in _claims(sample, policy).values() if claim]
    assert {claim.labels.team for claim in claims} == set(policy.teams) == set(sample.teams)
    assert {claim.class_name for claim in claims} == {"error", "eval", "training"}
    assert {claim.layout for claim in claims} == {"torchrun", "deepspeed", "rank-files", "plain", "slurm", "kubernetes"}
    assert UNKNOWN_TEAM not in {claim.labels.team for claim in claims}


def test_the_live_job_grows_and_rotates(tmp_path: Path) -> None:
    sample = make_sample(tmp_path / "logs", now=NOON, seed=7, scale=SCALE)
    first, second = sample.live[:2]
    was, size = first.read_bytes(), second.stat().st_size
    (older := first.with_name(first.name + ".1")).unlink()
    written = grow_sample(sample, now=NOON + timedelta(days=2))
    assert older.read_bytes() == was
    assert second.stat().st_size > size
    assert second.stat().st_mtime_ns > to_ns(NOON + timedelta(days=1))
    assert written > 0


def test_a_second_sample_in_the_same_place_is_refused_and_spoils_nothing(sample: SampleFacts) -> None:
    before = [path.stat().st_mtime_ns for path in _files(sample.root)]
    with pytest.raises(FileExistsError):
        make_sample(sample.root, now=NOON, seed=7, scale=SCALE)
    assert [path.stat().st_mtime_ns for path in _files(sample.root)] == before
