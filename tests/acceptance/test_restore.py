"""Everything comes back: a tree of awkward files is stored tier by tier by the real command, and restored."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import tempfile
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
    b"nlp/job-3/train.log.gz": gzip.compress(b"stored as it is\n", mtime=0),
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


def test_nothing_is_written_where_not_all_of_it_fits_beside_the_reserve(site: Site) -> None:
    site("run", "--now", "+2h")
    site.edit_policy("tiers:", "tiers:\n  hot: {reserve: 900TiB}")
    done = site.run("restore", "--all", "--to", "back", code=3)
    assert "are kept free (reserve)" in done.stderr and "are needed for 12 files" in done.stderr
    assert list((site.folder / "back").rglob("*")) == []
    site.run("restore", "--all", "--in-place", code=3)
    assert facts(site.logs) == {}


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no second file system")
def test_a_reserve_is_of_its_own_file_system_only(site: Site, tmp_path: Path) -> None:
    site("run", "--now", "+2h")
    site.edit_policy("tiers:", "tiers:\n  hot: {reserve: 900TiB}")
    if os.stat("/dev/shm").st_dev == os.stat(site.folder).st_dev:
        pytest.skip("no second file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        site("restore", "--job", "eval-2", "--to", elsewhere)
        assert facts(os.fsencode(elsewhere) + b"/logs").keys() == {b"nlp/eval-2/predict.log"}


def test_a_restored_file_that_was_deleted_since_comes_back_after_a_scan(site: Site) -> None:
    site("run", "--now", "+2h")
    file = Path(os.fsdecode(site.logs)) / "nlp/eval-2/predict.log"
    site("restore", "--job", "eval-2", "--in-place")
    file.unlink()
    done = site.run("restore", "--job", "eval-2", "--in-place", code=3)
    assert "deleted or renamed since" in done.stdout + done.stderr and "lifecycle scan" in done.stdout + done.stderr
    site("scan")
    site("restore", "--job", "eval-2", "--in-place")
    assert file.read_bytes() == AWKWARD[b"nlp/eval-2/predict.log"]


def test_a_file_that_somebody_writes_to_is_not_replaced(site: Site) -> None:
    site("run", "--now", "+2h")
    taken = site.folder / "back/logs/nlp/eval-2/predict.log"
    taken.parent.mkdir(parents=True)
    with taken.open("wb", buffering=0) as writer:
        writer.write(b"the night shift writes here\n")
        done = site.run("restore", "--job", "eval-2", "--to", "back", "--overwrite", code=3)
        assert "somebody has the file that is there open for writing" in done.stdout + done.stderr
        writer.write(b"and goes on\n")
    assert taken.read_bytes() == b"the night shift writes here\nand goes on\n"
    site("restore", "--job", "eval-2", "--to", "back", "--overwrite")
    assert taken.read_bytes() == AWKWARD[b"nlp/eval-2/predict.log"]


def test_whom_a_folder_kept_out_the_restored_file_keeps_out(site: Site) -> None:
    folder = Path(os.fsdecode(site.logs)) / "nlp/secret-1"
    site.write(b"nlp/secret-1/train.log", b"weights of the board\n", days=2, mode=0o644)
    folder.chmod(0o700)
    site("run", "--now", "+2h")
    site("restore", "--job", "secret-1", "--to", "back")
    made = site.folder / "back/logs/nlp/secret-1"
    assert (made.stat().st_mode & 0o777, (made / "train.log").stat().st_mode & 0o777) == (0o700, 0o644)
    wide = site.folder / "wide/logs/nlp/secret-1"
    wide.mkdir(parents=True)
    said = site("restore", "--job", "secret-1", "--to", "wide")
    assert (wide / "train.log").stat().st_mode & 0o777 == 0o600
    assert "1 file readable by no more people than where they lay" in said


def test_holes_of_a_sparse_file_are_holes_again(site: Site) -> None:
    file = Path(os.fsdecode(site.logs)) / "nlp/job-9/train.log"
    file.parent.mkdir(parents=True)
    with file.open("wb") as out:
        out.write(b"before the truncation\n")
        out.seek(8 * 2**20 + 17)
        out.write(b"after it\n")
        out.truncate(16 * 2**20)
    if file.stat().st_blocks * 512 > 2**20:
        pytest.skip("no sparse files here")
    os.utime(file, ns=(file.stat().st_mtime_ns - 2 * 86400 * 10**9,) * 2)
    before = facts(site.logs)[b"nlp/job-9/train.log"]
    site("run", "--now", "+2h")
    site("restore", "--job", "job-9", "--to", "back")
    back = site.folder / "back/logs/nlp/job-9/train.log"
    assert facts(os.fsencode(site.folder / "back/logs"))[b"nlp/job-9/train.log"] == before
    assert back.stat().st_blocks * 512 < 2**20
