"""Hand-written tar headers, read back by Python's own tar reader."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.archive.tar import BLOCK, END, TarHeaders, is_safe_path
from tests.builders import NOON_NS


def read_header(blocks: bytes) -> tarfile.TarInfo:
    """What ``tarfile`` makes of the headers of one empty member."""
    with tarfile.open(fileobj=io.BytesIO(blocks + END), mode="r:") as archive:
        info = archive.next()
    assert info is not None
    return info


def make(path: bytes = b"src/train-1/rank_0.log", **overrides: int) -> bytes:
    folder, _, name = path.rpartition(b"/")
    facts = {"size": 0, "mtime_ns": NOON_NS, "mode": 0o640, "uid": 1000, "gid": 1000} | overrides
    return TarHeaders().make(folder, name, **facts)


def test_a_plain_member_needs_one_block() -> None:
    assert len(make()) == BLOCK


def test_a_fraction_of_a_second_is_what_makes_a_pax_record() -> None:
    header = make(mtime_ns=NOON_NS + 123_456_789)
    assert len(header) == 3 * BLOCK
    assert read_header(header).pax_headers == {"mtime": f"{NOON_NS // 10**9}.123456789"}


@pytest.mark.parametrize(
    "path",
    [
        b"s/" + b"x" * 98,
        b"s/" + b"x" * 99,
        b"s/" + b"d/" * 70 + b"f.log",
        b"s/" + b"d/" * 90 + b"f.log",
        b"s/" + b"d" * 160 + b"/" + b"f" * 110,
        b"s/" + b"y" * 255,
        "s/日志/ランク_0.log".encode(),
        b"s/rank\xff.log",
        b"s/\xc0\xaf.log",
        b"s/a\nb.log",
        b"s/\xe6\x97\xa5\nb\xff.log",
        b"s/ blank \t=.log",
    ],
)
@pytest.mark.parametrize("fraction", [0, 5])
def test_a_name_comes_back_as_its_bytes(path: bytes, fraction: int) -> None:
    info = read_header(make(path, mtime_ns=NOON_NS + fraction))
    assert info.name.encode("utf-8", "surrogateescape") == path
    assert info.isreg()


@pytest.mark.parametrize(
    ("overrides", "records"),
    [
        ({"size": 8**11 - 1}, {}),
        ({"size": 8**11}, {"size": str(8**11)}),
        ({"uid": 8**7 - 1}, {}),
        ({"uid": 8**7, "gid": 2**32 - 2}, {"uid": str(8**7), "gid": str(2**32 - 2)}),
        ({"mtime_ns": 0}, {}),
        ({"mtime_ns": -1_500_000_000}, {"mtime": "-1.500000000"}),
        ({"mtime_ns": 8**11 * 10**9}, {"mtime": str(8**11)}),
        ({"mtime_ns": 7}, {"mtime": "0.000000007"}),
    ],
)
def test_figures_that_ustar_cannot_hold_get_records(overrides: dict[str, int], records: dict[str, str]) -> None:
    # A size of 8 GiB promises content that is not there, so only the header is read.
    raw = make(**overrides)
    fields = tarfile.TarInfo.frombuf(raw[-BLOCK:], "utf-8", "surrogateescape")
    assert fields.size == (0 if "size" in records else overrides.get("size", 0))
    pax = raw[BLOCK : 2 * BLOCK].rstrip(b"\0") if len(raw) > BLOCK else b""
    lines = [line for line in pax.decode().split("\n") if line]
    assert dict(line.partition(" ")[2].split("=", 1) for line in lines) == records
    assert all(int(line.partition(" ")[0]) == len(line) + 1 for line in lines)


@given(
    parts=st.lists(
        st.binary(min_size=1, max_size=120).filter(lambda raw: not set(raw) & {0, 0x2F} and raw not in (b".", b"..")),
        min_size=2,
        max_size=5,
    ),
    mtime_ns=st.integers(-(2**40) * 10**3, 2**62),
    mode=st.integers(0, 0o7777),
    uid=st.integers(0, 2**32 - 2),
)
def test_whatever_a_file_is_called_its_header_says_so(parts: list[bytes], mtime_ns: int, mode: int, uid: int) -> None:
    path = b"/".join(parts)
    info = read_header(make(path, mtime_ns=mtime_ns, mode=mode, uid=uid))
    assert info.name.encode("utf-8", "surrogateescape") == path
    assert (info.mode, info.uid, info.gid, info.size) == (mode, uid, 1000, 0)
    seconds = info.pax_headers.get("mtime", str(int(info.mtime)))
    whole, _, fraction = seconds.partition(".")
    sign = -1 if whole.startswith("-") else 1
    assert sign * (abs(int(whole)) * 10**9 + int(fraction or 0)) == mtime_ns


def test_owners_and_folders_that_repeat_do_not_mix() -> None:
    headers = TarHeaders()
    seen = []
    for mode, uid in ((0o640, 1), (0o600, 2), (0o640, 1), (0o640, 2)):
        for folder in (b"s/a", b"s/b"):
            raw = headers.make(folder, b"f", size=1, mtime_ns=NOON_NS, mode=mode, uid=uid, gid=3)
            info = tarfile.TarInfo.frombuf(raw, "utf-8", "surrogateescape")
            seen.append((info.name, info.mode, info.uid))
    assert seen == [
        (f"s/{folder}/f", mode, uid)
        for mode, uid in ((0o640, 1), (0o600, 2), (0o640, 1), (0o640, 2))
        for folder in "ab"
    ]


@pytest.mark.parametrize("path", [b"a/b", b"...", b"a/..b", b"a\nb", b"\xff"])
def test_odd_names_are_safe(path: bytes) -> None:
    assert is_safe_path(path)


@pytest.mark.parametrize("path", [b"", b"/a", b"a/", b"a//b", b".", b"..", b"a/../b", b"a/.", b"a\0b"])
def test_paths_that_lead_out_are_not_safe(path: bytes) -> None:
    assert not is_safe_path(path)
