"""Documents lead somewhere: every relative link is a file, every decision is listed, no path is of one machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("cron/*.md"), *CHECKOUT.glob("docs/**/*.md")])
# Homes and scratch folders of whoever wrote a file; the look-alikes in examples (/lustre, /var/lib, /etc) are fine.
ONE_MACHINES = re.compile(r"(?<![\w.])/(?:home/[a-z]|Users/|root/|work/|tmp/(?!back\b)[a-z_]+\d*/)")


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [CHECKOUT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in CHECKOUT.rglob("*") if path.is_file()]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_relative_link_leads_to_a_file(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_every_decision_is_in_the_list() -> None:
    folder = CHECKOUT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in folder.glob("0*.md") if path.name not in listed] == []


def test_no_document_recipe_or_module_names_a_path_of_one_machine() -> None:
    suffixes = {".py", ".md", ".yaml", ".toml", ".crontab", ""}
    read = [path for path in _tracked() if path.suffix in suffixes and path.exists() and "tests" not in path.parts]
    assert len(read) > 20
    found = {str(path): ONE_MACHINES.findall(path.read_text(encoding="utf-8")) for path in read}
    assert {path: hits for path, hits in found.items() if hits} == {}
