"""What was right when it was planned or stored is looked at again before anything goes for good."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.site import Site

RESTORED = b"vision/job-1/rank_0.log"
CONTENT = b"".join(b"%06d loss 1.25\n" % step for step in range(2000))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write(RESTORED, CONTENT, days=3)
    site.write(b"vision/job-2/rank_0.log", b"old\n" * 50, days=40)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site("run", "--now", "+2h")
    return site


def test_a_plan_file_does_not_purge_what_its_job_made_young_again(site: Site) -> None:
    site("run", "--now", "+27h")
    assert "purge" in site("plan", "--now", "+5d", "--out", "tonight.plan")
    site.write(b"vision/job-2/rank_1.log", b"the job goes on\n", days=0)
    site("run", "--now", "+5d", "--plan", "tonight.plan")
    site("restore", "--job", "job-2", "--rank", "0", "--to", "back")
    assert (site.folder / "back/logs/vision/job-2/rank_0.log").read_bytes() == b"old\n" * 50


def test_a_restored_file_that_was_edited_keeps_its_edit_though_size_and_time_are_kept(site: Site) -> None:
    site("restore", "--job", "job-1", "--in-place")
    file = Path(os.fsdecode(os.path.join(site.logs, RESTORED)))
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    edited = CONTENT[:14_000] + b"XX" + CONTENT[14_002:]
    file.write_bytes(edited)
    os.utime(file, ns=times)
    site("run", "--now", "+9d")
    assert file.read_bytes() == edited


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_a_restored_file_stays_when_its_stored_copy_cannot_be_read(site: Site, how: str) -> None:
    archive = next((site.folder / "tiers").rglob("vision/training/*/*.zst"))
    for found in (site.folder / "tiers/warm").rglob("*.zst"):
        archive = found
    site("restore", "--job", "job-1", "--in-place")
    if how == "gone":
        archive.unlink()
    else:
        archive.chmod(0o640)
        archive.write_bytes(b"\0" * archive.stat().st_size)
    site("run", "--now", "+9d", code=6)
    assert Path(os.fsdecode(os.path.join(site.logs, RESTORED))).read_bytes() == CONTENT


def test_a_restore_in_place_does_not_fill_an_empty_mount_point(site: Site) -> None:
    (site.folder / "logs").rename(site.folder / "away")
    (site.folder / "logs").mkdir()
    done = site.run("restore", "--all", "--in-place", code=3)
    assert "no marker in" in done.stderr
    assert os.listdir(site.folder / "logs") == []


def test_a_catalog_from_before_a_killed_run_is_known_to_be_old(site: Site) -> None:
    catalog = site.folder / "policies/catalog.db"
    backup = catalog.read_bytes()
    site("run", "--now", "+8d")
    catalog.write_bytes(backup)
    assert "the catalog came back from a backup" in site("run", "--now", "+9d", code=3)
