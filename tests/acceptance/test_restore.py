"""Everything comes back: a tree of awkward files is stored tier by tier by the real command, and restored."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.site import Site

AWKWARD = {
    b"vision/job-1/rank_0.log": b"step 1\n" * 50,
    b"vision/job-1/rank\xff.log": b"latin \xe9\n",
    b"vision/job-1/a\nb.log": b"newline in the name\n",
    b"vision/job-1/-rf.log": b"leading dash\n",
    b"vision/job-1/" + "训练日志".encode() + b".txt": "第一行\n".encode(),
    b"vision/job-1/" + b"n" * 251 + b".log": b"a name of 255 bytes\n",
    b"vision/job-1/empty.err": b"",
    b"vision/job-1/errors/worker 3.log": b"ERROR bus error\r\n",
    b"nlp/eval-2/predict.log": b"accuracy 0.5\n" * 1000,
    b"nlp/job-3/train.log.gz": b"\x1f\x8b\x08\x00rest is not looked at",
    b"nlp/job-3/big.log": b"".join(b"%09d loss 1.25 lr 0.0001\n" % n for n in range(250_000)),
    b"nlp/job-3/no_newline.log": b"x" * 5_000_000,
}


def facts(root: bytes) -> dict[bytes, tuple[str, int, int]]:
    found = {}
    for folder, folders, names in os.walk(root):
        if b".lifecycle" in folders:
            folders.remove(b".lifecycle")
        for name in names:
            path = os.path.join(folder, name)
            stat = os.lstat(path)
            digest = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()
            found[os.path.relpath(path, root)] = (digest, stat.st_mtime_ns, stat.st_mode)
    return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    for number, (path, content) in enumerate(AWKWARD.items()):
        site.write(path, content, days=2 + number % 3 * 4, mode=(0o640, 0o644, 0o600)[number % 3])
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    return site


def test_bytes_name_time_and_mode_of_every_file_come_back(site: Site) -> None:
    before = facts(site.logs)
    site("run", "--now", "+2h")
    assert facts(site.logs) == {}
    site("run", "--now", "+10d", "--only", "transition", "--only", "merge")
    site("restore", "--all", "--to", "back")
    assert facts(os.fsencode(site.folder / "back" / "logs")) == before


def test_two_segments_of_one_path_are_both_written(site: Site) -> None:
    site("run", "--now", "+2h")
    site.write(b"vision/job-1/rank_0.log", b"another night\n", days=2)
    site("run", "--now", "+4h")
    out = site("restore", "--team", "vision", "--to", "back", "--overwrite")
    written = sorted((site.folder / "back/logs/vision/job-1").glob("rank_0.log*"))
    assert sorted(file.read_bytes() for file in written) == [b"another night\n", AWKWARD[b"vision/job-1/rank_0.log"]]
    assert "1 file written as NAME.segment-ID" in out


def test_a_file_that_is_there_stays_as_it_is_unless_told(site: Site) -> None:
    site("run", "--now", "+2h")
    taken = site.folder / "back/logs/nlp/eval-2/predict.log"
    taken.parent.mkdir(parents=True)
    taken.write_bytes(b"mine, and longer than nothing" * 1000)
    site("restore", "--job", "eval-2", "--to", "back", code=3)
    assert taken.read_bytes() == b"mine, and longer than nothing" * 1000
    site("restore", "--job", "eval-2", "--to", "back", "--overwrite")
    assert taken.read_bytes() == AWKWARD[b"nlp/eval-2/predict.log"]


def test_an_archive_opens_with_plain_tar_and_zstd(site: Site) -> None:
    before = facts(site.logs)
    site("run", "--now", "+2h")
    for archive in site.folder.glob("tiers/*/*/*/*/*.tar.zst"):
        subprocess.run(["tar", "--zstd", "-xpf", archive], cwd=site.folder, check=True)
    assert (site.folder / ".lifecycle/manifest.json").is_file()
    back = facts(os.fsencode(site.folder / "logs"))
    for single in site.folder.glob("tiers/*/*/*/*/*.zst"):
        if not single.name.endswith(".tar.zst"):
            done = subprocess.run(["zstd", "-dc", single], capture_output=True, check=True)
            back[single.name.encode()] = (hashlib.sha256(done.stdout).hexdigest(), 0, 0)
    assert sorted(fact[0] for fact in back.values()) == sorted(fact[0] for fact in before.values())
