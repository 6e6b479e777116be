"""The policy as another tool's file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write(b"vision/job-1/rank_0.log", b"step 1\n" * 20_000_000, days=0)
    site.write(b"vision/job-1/rank_1.log", b"step 1\n", days=0)
    site("init", "--source", "logs", "--tiers", "tiers")
    return site


def test_the_file_names_every_source_and_leaves_out_what_rotates_itself(site: Site) -> None:
    said = site("export", "logrotate")
    assert f'"{site.folder}/logs/*/*/*.log"' in said and "size 100M" in said and "rotate 10" in said
    assert "kubernetes is rotated by its own writer" in said
    site("export", "logrotate", "--out", "logrotate.conf")
    assert (site.folder / "logrotate.conf").read_text() == said


def test_an_own_pattern_becomes_a_glob(site: Site) -> None:
    site.edit_policy(
        "layout: [torchrun, kubernetes, deepspeed, rank-files, slurm, plain]", 'layout: ["{node}/rank_{rank}.log"]'
    )
    said = site("export", "logrotate")
    assert f'"{site.folder}/logs/*/*/*/rank_*.log"' in said and "*.out" not in said


def test_logrotate_takes_it(site: Site) -> None:
    tool = shutil.which("logrotate", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if tool is None:
        pytest.skip("logrotate is not installed")
    config = site.folder / "logrotate.conf"
    config.write_text(site("export", "logrotate"))
    config.chmod(0o644)
    done = subprocess.run(
        [tool, "--state", str(site.folder / "state"), str(config)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names = {path.name: path.stat().st_size for path in (site.folder / "logs/vision/job-1").iterdir()}
    assert names == {"rank_0.log": 0, "rank_0.log.1": 140_000_000, "rank_1.log": 7}
