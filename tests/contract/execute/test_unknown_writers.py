"""Where neither a lease nor /proc can tell whether somebody writes, a file rests before it goes; tiers are pinned."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lifecycle.errors import PlaceUnavailable
from lifecycle.execute import release
from lifecycle.execute.orders import OriginalFile, ReleaseOrder
from lifecycle.model import Labels
from lifecycle.ports import TierSpec
from lifecycle.scan.evidence import OpenFiles
from lifecycle.tiers import open_tier, pin


def an_order(root: Path, *, rested: bool) -> ReleaseOrder:
    path = root / "job/rank_0.log"
    path.parent.mkdir()
    path.write_bytes(b"quiet for now\n")
    stat = path.stat()
    member = OriginalFile(
        segment_id=7, directory=b"job", name=b"rank_0.log", inode=stat.st_ino, size_bytes=stat.st_size,
        mtime_ns=stat.st_mtime_ns, ctime_ns=stat.st_ctime_ns, allocated_bytes=4096, mode=stat.st_mode, uid=stat.st_uid,
        gid=stat.st_gid, labels=Labels(),
    )  # fmt: skip
    return ReleaseOrder(batch_id=3, root=str(root), members=(member,), park=False, rested=rested)


@pytest.fixture
def nothing_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "has_writer", lambda fd: None)
    monkeypatch.setattr(release, "files_open_for_writing", lambda: OpenFiles(identities=frozenset(), complete=False))


@pytest.mark.usefixtures("nothing_can_tell")
def test_a_file_whose_writers_cannot_be_seen_rests_in_our_folder(tmp_path: Path) -> None:
    result = release.run_release(an_order(tmp_path, rested=False))
    assert (result.parked, result.removed) == ((7,), ())
    assert (tmp_path / ".lifecycle/release/3/7").read_bytes() == b"quiet for now\n"


@pytest.mark.usefixtures("nothing_can_tell")
def test_after_its_rest_it_goes(tmp_path: Path) -> None:
    assert release.run_release(an_order(tmp_path, rested=True)).removed == (7,)


def test_a_pinned_tier_is_not_another_directory_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "warm").mkdir()
    spec = TierSpec(kind="local", root=str(tmp_path / "warm"))
    tier = open_tier(spec)
    pinned = pin(spec, tier)
    open_tier(pinned).close()
    os.rename(tmp_path / "warm", tmp_path / "away")
    (tmp_path / "warm").mkdir()
    with pytest.raises(PlaceUnavailable, match="unmounted"):
        open_tier(pinned)
    tier.close()
