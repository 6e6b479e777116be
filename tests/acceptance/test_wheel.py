"""The wheel alone is enough: built, installed into an empty environment elsewhere, with no checkout in sight."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """An installation outside of the checkout, and a HOME of its own."""

    folder: Path

    def run(self, *command: str | Path, expect: Sequence[int] = (0,), cwd: Path | None = None) -> str:
        """What the command printed on stdout. The environment holds nothing that leads back to the checkout."""
        words = [str(self.folder / "venv" / "bin" / command[0]), *map(str, command[1:])]
        environment = {"PATH": os.defpath, "HOME": str(self.folder), "LANG": "C.UTF-8"}
        place = cwd or self.folder
        ended = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode in expect, f"{words}: exit {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", out, CHECKOUT], check=True, capture_output=True
    )
    (path,) = out.glob("lifecycle-*.whl")
    return path


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    folder = tmp_path_factory.mktemp("elsewhere")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [folder / "venv" / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", wheel]
    subprocess.run(pip, check=True, cwd=folder)
    return Elsewhere(folder=folder)


@pytest.fixture(scope="module")
def sample(elsewhere: Elsewhere) -> Path:
    """A small sample, made by the installed package: logs and a policy that fits them."""
    home = elsewhere.folder / "sample"
    elsewhere.run("python", "-m", "lifecycle.sample", "make", "--into", home, "--scale", "0.05")
    return home


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def test_migrations_starter_policies_and_the_sample_travel_in_the_wheel(wheel: Path) -> None:
    names = _names(wheel)
    migrations = {f"lifecycle/{path.relative_to(CHECKOUT)}" for path in CHECKOUT.glob("migrations/**/*.py")}
    policies = {f"lifecycle/{path.relative_to(CHECKOUT)}" for path in CHECKOUT.glob("policies/**/*.yaml")}
    assert len(migrations) >= 2
    assert len(policies) >= 1
    assert migrations | policies | {"lifecycle/sample/__main__.py"} <= names


def test_no_test_no_bench_and_no_leftover_travels(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in _names(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"lifecycle"}
    assert not [name for name in _names(wheel) if name.endswith(".pyc") or "__pycache__" in name]


def test_the_installed_package_is_the_one_that_runs(elsewhere: Elsewhere) -> None:
    where = elsewhere.run("python", "-c", "import lifecycle; print(lifecycle.__file__)").strip()
    assert Path(where).is_relative_to(elsewhere.folder / "venv")
    assert elsewhere.run("lifecycle", "--version").startswith("lifecycle ")


def test_init_and_run_move_the_samples_old_logs_to_both_tiers(elsewhere: Elsewhere, sample: Path) -> None:
    later = (datetime.now(UTC) + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    elsewhere.run("lifecycle", "init", "--rehearsal", cwd=sample)
    elsewhere.run("lifecycle", "run", "--now", later, cwd=sample)
    moved = [path for tier in ("warm", "cold") for path in (sample / tier).rglob("*") if path.is_file()]
    assert any("warm" in path.parts and path.suffix == ".zst" for path in moved)
    assert any("cold" in path.parts and path.suffix == ".zst" for path in moved)
    assert not (sample / "logs/shared/vision/detr-r50/rank_0.log").exists()
    assert (sample / "logs/shared/vision/vit-h-live/rank_0.log").exists()
    audit = json.loads(elsewhere.run("lifecycle", "audit", "--format", "json", cwd=sample, expect=(0, 7)))
    assert {tier["tier"] for tier in audit["tiers"]} == {"hot", "warm", "cold"}


def test_init_in_an_empty_folder_writes_a_starter_policy_that_checks_and_plans(elsewhere: Elsewhere) -> None:
    home = elsewhere.folder / "fresh"
    logs, tiers = home / "logs", home / "tiers"
    (logs / "nlp" / "pretrain").mkdir(parents=True)
    (logs / "nlp" / "pretrain" / "rank_0.log").write_text("step 1 loss 2.5\n")
    elsewhere.run("lifecycle", "init", "--source", logs, "--tiers", tiers, cwd=home)
    elsewhere.run("lifecycle", "policy", "check", cwd=home)
    elsewhere.run("lifecycle", "plan", cwd=home)
    elsewhere.run("lifecycle", "catalog", "status", cwd=home)


def test_a_plan_needs_nothing_but_a_tree(elsewhere: Elsewhere, sample: Path) -> None:
    home = elsewhere.folder / "nothing"
    home.mkdir()
    printed = elsewhere.run("lifecycle", "plan", "--root", sample / "logs" / "shared", cwd=home)
    assert "nothing changed" in printed
    assert list(home.iterdir()) == []
