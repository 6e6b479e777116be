"""Archives open without us: GNU tar and zstd, Python's tarfile over pyzstd, and ratarmount give back every file.

Each test compares bytes, name, time and mode with what went in.
"""

from __future__ import annotations

import importlib
import os
import random
import shutil
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import pyzstd

from lifecycle.archive import ArchiveWriter, MemberFacts, SingleWriter, open_archive, verify_archive
from lifecycle.ports import TierSpec
from lifecycle.tiers import make_key, open_tier
from tests.builders import NOON_NS
from tests.unit.archive.archives import CONTEXT, Store, a_member, log_lines

LONG: Final = log_lines(300_000)
CONTENTS: Final[dict[bytes, bytes]] = {
    b"train-1/rank_0.log": log_lines(5000),
    b"train-1/stderr.log": b"",
    b"train-1/long.log": LONG,
    b"train-1/rank\xff.log": b"bytes \xff\x00\xfe\n",
    b"train-1/\xc0\xaf.log": b"overlong\n",
    b"train-1/a\nb.log": b"newline in the name\n",
    "train-1/日志_0.log".encode(): "损失 0.1\n".encode(),
    b"x" * 255: b"255 bytes of name\n",
    "字".encode() * 85: b"85 characters, 255 bytes\n",
    b"deep/" * 45 + b"f.log": b"a long path\n",
    b"d" * 160 + b"/" + b"f" * 120: b"no split of ustar fits\n",
    b"train-1/no_newline_at_end": b"x" * 1023,
    b"train-1/ends.log": log_lines(512),
    b"train-2/binary.gz": random.Random(3).randbytes(20_000),
}
MEMBERS: Final[list[MemberFacts]] = [
    a_member(path, data, segment_id=number, mode=(0o640, 0o600, 0o444, 0o755)[number % 4], mtime_ns=mtime_ns)
    for number, (path, data, mtime_ns) in enumerate(
        zip(
            CONTENTS,
            CONTENTS.values(),
            [
                NOON_NS,
                NOON_NS + 123_456_789,
                1,
                0,
                -1_500_000_000,
                2**33 * 10**9 + 7,
                *[NOON_NS - n for n in range(20)],
            ],
            strict=False,
        )
    )
]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One archive of everything odd, many frames, written to a real tier."""
    root = tmp_path_factory.mktemp("tier")
    tier = open_tier(TierSpec(kind="local", root=str(root)))
    key = make_key("vision", "training", 20_513, "odd.tar.zst")
    out = tier.create(key, temporary="t", mode=0o640)
    with ArchiveWriter(out, level=3, threads=1, frame_bytes=32 * 1024, context=CONTEXT) as writer:
        for facts in MEMBERS:
            data = CONTENTS[facts.path]
            writer.add_stream(facts, [data]) if len(data) > 10_000 else writer.add_member(facts, data)
        written = writer.finish()
    verify_archive(out.seal(), written)
    out.publish()
    tier.close()
    return root / key


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = Store()
    with SingleWriter(store, level=3, frame_bytes=32 * 1024, context=CONTEXT) as writer:
        writer.add_stream(a_member(data=LONG), (LONG[at : at + 9999] for at in range(0, len(LONG), 9999)))
        writer.finish()
    path = tmp_path_factory.mktemp("single") / "rank_0.log.zst"
    path.write_bytes(store.data)
    return path


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, capture_output=True, check=True, cwd=cwd, env=environment)


def assert_restored(root: Path, *, times: bool = True) -> None:
    """Every file below ``root`` is there with its bytes, name, time and mode, and none besides."""
    found = {
        os.path.relpath(os.path.join(folder, name), os.fsencode(root))
        for folder, _, names in os.walk(os.fsencode(root))
        for name in names
    }
    assert found == {b"lustre/" + path for path in CONTENTS} | {b".lifecycle/manifest.json"}
    for facts in MEMBERS:
        path = os.path.join(os.fsencode(root), b"lustre", facts.path)
        with open(path, "rb") as file:
            assert file.read() == CONTENTS[facts.path], facts.path
        status = os.stat(path)
        assert stat.S_IMODE(status.st_mode) == facts.mode, facts.path
        if times:
            assert status.st_mtime_ns == facts.mtime_ns, facts.path


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_gnu_tar_extracts_everything(archive: Path, tmp_path: Path, locale: str) -> None:
    subprocess.run(
        ["tar", "--zstd", "-xpf", archive, "-C", tmp_path],
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": locale},
    )
    assert_restored(tmp_path)


def test_gnu_tar_lists_every_member(archive: Path) -> None:
    listed = run("tar", "--zstd", "--quoting-style=escape", "-tf", archive).stdout.splitlines()
    assert len(listed) == len(MEMBERS) + 1
    assert listed[-1] == b".lifecycle/manifest.json"


def test_zstd_tests_and_decompresses_it(archive: Path, tmp_path: Path) -> None:
    run("zstd", "-t", archive)
    run("zstd", "-q", "-d", archive, "-o", tmp_path / "all.tar")
    run("tar", "-xpf", "all.tar", cwd=tmp_path)
    (tmp_path / "all.tar").unlink()
    assert_restored(tmp_path)


def test_zstd_sees_a_checksum_on_every_frame(archive: Path) -> None:
    listed = run("zstd", "-lv", archive).stdout.decode()
    frames = open_archive(Store(archive.read_bytes())).index.data_frames
    assert f"# Zstandard Frames: {frames}" in listed
    assert "# Skippable Frames: 2" in listed
    assert "Check: XXH64" in listed


def test_tarfile_reads_members_out_of_order_through_pyzstd(archive: Path) -> None:
    with pyzstd.SeekableZstdFile(archive) as seekable, tarfile.open(fileobj=seekable, mode="r:") as tar:
        found = {info.name.encode("utf-8", "surrogateescape"): info for info in tar}
        for facts in reversed(MEMBERS):
            info = found[b"lustre/" + facts.path]
            content = tar.extractfile(info)
            assert content is not None and content.read() == CONTENTS[facts.path]
            assert (info.mode, info.uid, info.gid) == (facts.mode, facts.uid, facts.gid)


def test_tarfile_restores_everything(archive: Path, tmp_path: Path) -> None:
    with pyzstd.SeekableZstdFile(archive) as seekable, tarfile.open(fileobj=seekable, mode="r:") as tar:
        safe = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}  # came with Python 3.11.4
        tar.extractall(tmp_path, **safe)
    assert_restored(tmp_path, times=False)  # it keeps times as floats, to some hundred nanoseconds


def test_pyzstd_reads_any_place_of_the_stream(archive: Path) -> None:
    whole = run("zstd", "-dc", archive).stdout
    source = random.Random(11)
    with pyzstd.SeekableZstdFile(archive) as seekable:
        assert seekable.seek(0, os.SEEK_END) == len(whole)
        for _ in range(50):
            at, length = source.randrange(len(whole)), source.randrange(50_000)
            seekable.seek(at)
            assert seekable.read(length) == whole[at : at + length]


def test_our_reader_and_the_stock_tools_agree(archive: Path) -> None:
    reader = open_archive(Store(archive.read_bytes()))
    whole = run("zstd", "-dc", archive).stdout
    for number, member in enumerate(reader.manifest.members):
        assert b"".join(reader.read_member(number)) == CONTENTS[member.facts.path]
        assert whole[member.offset : member.offset + member.facts.size] == CONTENTS[member.facts.path]
    assert [member.facts for member in reader.manifest.members] == MEMBERS


def test_a_segment_of_its_own_is_what_zstdcat_shows(single: Path) -> None:
    assert run("zstdcat", single).stdout == LONG
    run("zstd", "-t", single)
    with pyzstd.SeekableZstdFile(single) as seekable:
        seekable.seek(123_456)
        assert seekable.read(1000) == LONG[123_456:124_456]
    with pyzstd.ZstdFile(single) as stream:
        assert stream.read() == LONG


def test_a_segment_of_its_own_can_be_grepped(single: Path) -> None:
    if shutil.which("zstdgrep") is None:
        assert b"step=4321 " in run("zstd", "-dc", single).stdout
        return
    assert run("zstdgrep", "-c", "step=4321 ", single).stdout.strip() == b"1"


def test_a_size_over_8_gib_is_understood_by_gnu_tar(tmp_path: Path) -> None:
    """The header alone: a member of 9 GiB is listed with its size; its content would take minutes."""
    from lifecycle.archive.tar import TarHeaders

    size = 9 * 2**30
    header = TarHeaders().make(b"s", b"f.log", size=size, mtime_ns=NOON_NS, mode=0o640, uid=0, gid=0)
    listed = subprocess.run(["tar", "-tvf", "-"], input=header, capture_output=True, check=False).stdout
    assert str(size).encode() in listed


# ratarmount keeps names in SQLite as text and says that it cannot hold those that are not UTF-8: left out here.
IN_UTF_8: Final = [facts for facts in MEMBERS if facts.path.decode("utf-8", "ignore").encode() == facts.path]


def test_ratarmountcore_reads_every_member(archive: Path) -> None:
    from ratarmountcore.mountsource.factory import open_mount_source

    copy = archive.parent / "copy-for-ratarmount.tar.zst"
    shutil.copy(archive, copy)
    with open_mount_source(str(copy), writeIndex=False) as mounted:
        for facts in IN_UTF_8:
            path = "/lustre/" + facts.path.decode()
            info = mounted.lookup(path)
            assert info is not None, path
            with mounted.open(info) as content:
                assert content.read() == CONTENTS[facts.path], path
            assert stat.S_IMODE(info.mode) == facts.mode
            assert info.size == facts.size


@pytest.fixture
def mounted(archive: Path, tmp_path: Path) -> Iterator[Path]:
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no FUSE: /dev/fuse is not there")
    try:
        importlib.import_module("ratarmount.fuse")
    except (ImportError, OSError) as error:
        pytest.skip(f"no FUSE: its library is not there: {error}")
    program = Path(sys.executable).parent / "ratarmount"
    folder = tmp_path / "mounted"
    folder.mkdir()
    process = subprocess.Popen(
        [program, "-f", "--index-file", ":memory:", archive, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        deadline = time.monotonic() + 20
        while not os.path.ismount(folder):
            assert time.monotonic() < deadline, "ratarmount did not mount in 20 seconds"
            if process.poll() is not None:
                output = process.stdout.read().decode(errors="replace") if process.stdout else ""
                if "fusermount" in output or "mount failed" in output:
                    pytest.skip(f"no FUSE: {output.strip()[-200:]}")
                pytest.fail(output)
            time.sleep(0.02)
        yield folder
    finally:
        subprocess.run(["umount", folder], check=False, capture_output=True)
        process.terminate()
        process.wait(10)
        if process.stdout:
            process.stdout.close()


def test_ratarmount_mounts_it(mounted: Path) -> None:
    for facts in IN_UTF_8:
        path = os.path.join(os.fsencode(mounted), b"lustre", facts.path)
        with open(path, "rb") as file:
            assert file.read() == CONTENTS[facts.path], facts.path
        assert stat.S_IMODE(os.stat(path).st_mode) & 0o777 == facts.mode
