"""What a newcomer sees first: the demo ends well, shows every kind of action, and touches nobody else's folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lifecycle.sample.demo import OURS

CHECKOUT = Path(__file__).parents[2]


def _demo(into: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lifecycle.sample", "demo", "--into", str(into), "--scale", "0.05"]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    ended = _demo(tmp_path_factory.mktemp("place") / "demo")
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return ended.stdout


def test_the_demo_shows_both_transitions_marks_and_purges(shown: str) -> None:
    for words in ("hot → warm", "hot → cold", "warm → cold", "mark", "purge"):
        assert words in shown, words


def test_what_the_demo_restores_is_what_the_sample_wrote(shown: str) -> None:
    assert "every one the same" in shown


def test_the_demo_types_commands_that_a_person_can_type(shown: str) -> None:
    typed = [line.split()[2] for line in shown.splitlines() if line.startswith("$ lifecycle ")]
    assert typed[:2] == ["init", "plan"]
    assert {"run", "audit", "ls", "explain", "restore"} <= set(typed)


def test_a_folder_that_is_somebody_elses_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    ended = _demo(tmp_path)
    assert ended.returncode == 2
    assert "HINT:" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_earlier_demo_is_replaced_and_nothing_beside_it(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    place.mkdir()
    (place / OURS).touch()
    (place / "left").touch()
    (tmp_path / "beside").touch()
    ended = _demo(place)
    assert ended.returncode == 0, ended.stderr
    assert not (place / "left").exists()
    assert (tmp_path / "beside").exists()
