"""Places that are not what the policy says, are gone, or came back; archives that are damaged or missing."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from tests.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Twenty logs of three days in warm, and one of nine in cold."""
    site = Site(tmp_path)
    for rank in range(20):
        site.write(b"vision/job-1/rank_%d.log" % rank, b"line %d\n" % rank * 50, days=3)
    site.write(b"vision/job-0/rank_0.log", b"old\n" * 50, days=9)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site("run", "--now", "+2h")
    return site


def restored(site: Site, code: int = 0) -> int:
    """How many files a restore of everything gives."""
    site("restore", "--all", "--to", "back", "--overwrite", code=code)
    return sum(path.is_file() for path in (site.folder / "back").rglob("*"))


def warm_archive(site: Site) -> Path:
    return next((site.folder / "tiers/warm").rglob("*.zst"))


def swap_tiers(site: Site) -> None:
    site.edit_policy("tiers/warm", "tiers/other")
    site.edit_policy("tiers/cold", "tiers/warm")
    site.edit_policy("tiers/other", "tiers/cold")


def test_swapped_tiers_are_refused_and_nothing_is_lost(site: Site) -> None:
    swap_tiers(site)
    out = site("run", "--now", "+8d", code=3)
    assert "belongs to catalog" in out
    site("init", code=2)
    swap_tiers(site)
    assert restored(site) == 21


def test_a_tier_that_was_moved_with_its_marker_goes_on(site: Site) -> None:
    (site.folder / "tiers/warm").rename(site.folder / "elsewhere")
    site.edit_policy("tiers/warm", "elsewhere")
    assert "warm → cold  20 stored" in site("run", "--now", "+8d")
    assert restored(site) == 21


def test_a_tier_path_without_its_marker_is_not_used(site: Site) -> None:
    (site.folder / "empty").mkdir()
    site.edit_policy("tiers/warm", "empty")
    assert "no marker in" in site("run", "--now", "+8d", code=3)
    site("init", code=3)
    assert os.listdir(site.folder / "empty") == []


def test_a_tier_that_came_back_is_no_longer_unreachable(site: Site) -> None:
    (site.folder / "tiers/cold").rename(site.folder / "away")
    site("run", "--now", "+3h", code=3)
    (site.folder / "away").rename(site.folder / "tiers/cold")
    site("run", "--now", "+4h")
    places = json.loads(site("audit", "--section", "places", "--format", "json"))["places"]
    assert {place["name"]: place["state"] for place in places}["cold"] == "ok"


def test_a_renamed_source_keeps_its_segments(site: Site) -> None:
    site.edit_policy("- name: logs", "- name: lustre")
    site.write(b"vision/job-2/rank_0.log", b"new\n", days=3)
    assert "lifecycle init" in site("run", "--now", "+3h", code=3)
    site("init")
    site("run", "--now", "+6h")
    assert restored(site) == 22


def test_an_unmounted_tier_is_not_called_damage(site: Site) -> None:
    (site.folder / "tiers/cold").rename(site.folder / "away")
    (site.folder / "tiers/cold").mkdir()
    out = site("restore", "--job", "job-0", "--to", "back", code=3)
    assert "no marker in" in out


def test_a_missing_archive_is_damage_until_it_is_back(site: Site) -> None:
    archive = warm_archive(site)
    archive.rename(site.folder / "kept")
    assert "is not in its tier" in site("run", "--now", "+8d", code=6)
    site("restore", "--job", "job-1", "--to", "back", code=6)
    (site.folder / "kept").rename(archive)
    assert "20 stored" in site("run", "--now", "+9d")
    assert restored(site) == 21


def test_a_damaged_archive_is_set_aside_and_gives_what_is_whole(site: Site) -> None:
    archive = warm_archive(site)
    content = bytearray(archive.read_bytes())
    content[len(content) // 3 * 2] ^= 1  # past the members' frame, in the manifest's
    archive.chmod(0o640)
    archive.write_bytes(content)
    assert "quarantined" in site("run", "--now", "+8d", code=6)
    assert archive.exists()
    assert restored(site) == 21


def test_a_restore_does_not_go_where_the_next_run_would_take_it_for_new_logs(site: Site) -> None:
    done = site.run("restore", "--all", "--to", "logs/back", code=2)
    assert "next run would take the files for new logs" in done.stderr


@pytest.mark.parametrize("wrong", [["--source", "nowhere"], ["--source", "logs", "--cold", "logs/cold"]])
def test_an_init_that_cannot_be_meant_writes_nothing(tmp_path: Path, wrong: list[str]) -> None:
    site = Site(tmp_path)
    site.write(b"vision/job-1/rank_0.log", b"x\n", days=1)
    site("init", "--cold", "cold", *wrong, code=2)
    assert sorted(os.listdir(tmp_path)) == ["logs"]
    site("init", "--source", "logs", "--cold", "cold")


def test_a_zeroed_page_of_the_catalog_stops_a_run_before_anything_is_moved(site: Site) -> None:
    catalog = site.folder / "policies/catalog.db"
    site("run", "--now", "+3h")
    pages = bytearray(catalog.read_bytes())
    with sqlite3.connect(catalog) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'batch_members'").fetchone()[0]
    pages[(page - 1) * 8192 : page * 8192] = bytes(8192)
    catalog.write_bytes(pages)
    before = sorted(str(path) for path in site.folder.rglob("*"))
    done = site.run("run", "--now", "+40d", code=6)
    assert "is damaged" in done.stderr
    assert sorted(str(path) for path in site.folder.rglob("*")) == before
    assert bytes(pages) == catalog.read_bytes()
