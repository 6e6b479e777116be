"""B14: a flipped byte, a cut, junk, an extra frame: each is Damaged with the archive and the member named."""

from __future__ import annotations

import random
import struct

import pytest
import zstandard

from lifecycle.archive import ArchiveFacts, check_archive, open_archive, verify_archive
from lifecycle.errors import Damaged
from tests.unit.archive.archives import Store, a_member, log_lines, write_single, write_tar

NAME = "a.tar.zst"
PATHS = [b"rank_%d.log" % number for number in range(3)]
CONTENTS = [log_lines(1100, seed=number) for number in range(3)]
TAR, TAR_FACTS = write_tar(
    [(a_member(path, data), data) for path, data in zip(PATHS, CONTENTS, strict=True)], frame_bytes=1024
)
SINGLE, SINGLE_FACTS = write_single(log_lines(3000), frame_bytes=1024, path=PATHS[0])
BOTH = pytest.mark.parametrize(("data", "facts"), [(TAR, TAR_FACTS), (SINGLE, SINGLE_FACTS)], ids=["tar", "single"])


def flip(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def with_table(frames: list[tuple[bytes, int]]) -> bytes:
    body = b"".join(
        struct.pack("<II4s", len(raw), size, raw[-4:] if size else b"\x99\xe9\xd8\x51") for raw, size in frames
    )
    table = struct.pack("<II", 0x184D2A5E, len(body) + 9) + body + struct.pack("<IBI", len(frames), 0x80, 0x8F92EAB1)
    return b"".join(raw for raw, _ in frames) + table


def stored_frames(data: bytes) -> list[tuple[bytes, int]]:
    frames = open_archive(Store(data)).frames
    return [(frames.stored(frame), frames.table.raw_size(frame)) for frame in range(frames.table.count)]


@BOTH
def test_any_flipped_bit_anywhere_is_noticed_with_and_without_the_catalog(data: bytes, facts: ArchiveFacts) -> None:
    source = random.Random(5)
    for at in range(len(data)):
        spoilt = flip(data, at, source.randrange(8))
        with pytest.raises(Damaged, match=NAME):
            check_archive(Store(spoilt), name=NAME, threads=0)
        if at % 7 == 0:
            with pytest.raises(Damaged, match=NAME):
                verify_archive(Store(spoilt), facts, name=NAME, threads=0)


@BOTH
def test_any_cut_is_noticed(data: bytes, facts: ArchiveFacts) -> None:
    for size in range(0, len(data), 13):
        with pytest.raises(Damaged, match=NAME):
            check_archive(Store(data[:size]), name=NAME, threads=0)
        with pytest.raises(Damaged, match=NAME):
            verify_archive(Store(data[:size]), facts, name=NAME, threads=0)


@BOTH
@pytest.mark.parametrize("junk", [b"\0", b"0123456789", b"\x28\xb5\x2f\xfd"])
def test_junk_at_the_end_is_noticed(data: bytes, facts: ArchiveFacts, junk: bytes) -> None:
    with pytest.raises(Damaged, match=NAME):
        check_archive(Store(data + junk), name=NAME)
    with pytest.raises(Damaged, match=NAME):
        verify_archive(Store(data + junk), facts, name=NAME)


@pytest.mark.parametrize(
    "extra",
    [
        zstandard.ZstdCompressor(write_checksum=True).compress(b"one more\n"),
        zstandard.ZstdCompressor(write_checksum=True).compress(b""),
        struct.pack("<II", 0x184D2A50, 4) + b"skip",
    ],
    ids=["full", "empty", "skippable"],
)
@pytest.mark.parametrize("is_listed", [True, False])
@BOTH
def test_an_extra_frame_anywhere_is_noticed(data: bytes, facts: ArchiveFacts, extra: bytes, is_listed: bool) -> None:
    frames = stored_frames(data)
    size = 9 if b"one more" in extra else 0
    for at in range(len(frames) + 1):
        changed = [*frames[:at], (extra, size), *frames[at:]]
        spoilt = with_table(changed) if is_listed else b"".join(raw for raw, _ in changed) + data[-table_bytes(data) :]
        with pytest.raises(Damaged, match=NAME):
            check_archive(Store(spoilt), name=NAME)


def table_bytes(data: bytes) -> int:
    return open_archive(Store(data)).table.table_bytes


@BOTH
def test_frames_put_together_again_are_the_archive(data: bytes, facts: ArchiveFacts) -> None:
    assert with_table(stored_frames(data)) == data


@BOTH
def test_a_missing_or_repeated_frame_is_noticed(data: bytes, facts: ArchiveFacts) -> None:
    frames = stored_frames(data)
    for at in range(len(frames)):
        for changed in ([*frames[:at], *frames[at + 1 :]], [*frames[: at + 1], *frames[at:]]):
            with pytest.raises(Damaged, match=NAME):
                check_archive(Store(with_table(changed)), name=NAME)


def test_a_flipped_byte_names_the_member_it_hit() -> None:
    table = open_archive(Store(TAR)).table
    for number, (offset, size) in enumerate(zip(TAR_FACTS.offsets, TAR_FACTS.sizes, strict=True)):
        frame = table.frame_at(offset + size // 2)
        spoilt = flip(TAR, table.starts[frame + 1] - 6, 3)
        shown = rf"archive {NAME}.*member rank_{number}\.log"
        with pytest.raises(Damaged, match=shown):
            verify_archive(Store(spoilt), TAR_FACTS, name=NAME)
        with pytest.raises(Damaged, match=shown):
            check_archive(Store(spoilt), name=NAME)
        archive = open_archive(Store(spoilt), name=NAME)
        with pytest.raises(Damaged, match=shown):
            b"".join(archive.read_member(number))
        with pytest.raises(Damaged, match=shown):
            [b"".join(member.chunks) for member in archive.iter_members()]


def test_other_members_of_a_damaged_archive_can_still_be_read() -> None:
    table = open_archive(Store(TAR)).table
    frame = table.frame_at(TAR_FACTS.offsets[0] + 10)
    archive = open_archive(Store(flip(TAR, table.starts[frame] + 20, 0)), name=NAME)
    assert b"".join(archive.read_member(2)) == CONTENTS[2]
    with pytest.raises(Damaged):
        b"".join(archive.read_member(0))


def test_a_cut_names_the_first_member_that_is_not_whole() -> None:
    table = open_archive(Store(TAR)).table
    for number, (offset, size) in enumerate(zip(TAR_FACTS.offsets, TAR_FACTS.sizes, strict=True)):
        cut = TAR[: table.starts[table.frame_at(offset + size - 1)] + 10]
        with pytest.raises(Damaged, match=rf"member rank_{number}\.log is the first that is not whole"):
            verify_archive(Store(cut), TAR_FACTS, name=NAME, names=PATHS)
    with pytest.raises(Damaged, match="all its members are whole"):
        verify_archive(Store(TAR[:-1]), TAR_FACTS, name=NAME, names=PATHS)


def test_a_digest_of_another_member_is_noticed_and_names_it() -> None:
    facts = ArchiveFacts(
        **{field: getattr(TAR_FACTS, field) for field in ArchiveFacts.__dataclass_fields__}
        | {"digests": (TAR_FACTS.digests[0], TAR_FACTS.digests[2], TAR_FACTS.digests[2])}
    )
    with pytest.raises(Damaged, match=r"member rank_1\.log: the content's digest differs"):
        verify_archive(Store(TAR), facts, name=NAME)


def test_a_read_that_comes_back_short_or_changed_is_noticed() -> None:
    class Spoiling(Store):
        def read_range(self, offset: int, length: int) -> bytes:
            found = super().read_range(offset, length)
            return found[:-1] if spoil == "short" else flip(found, len(found) // 2, 1) if found else found

    for spoil in ("short", "changed"):  # noqa: B007  read by the class
        with pytest.raises(Damaged, match=NAME):
            verify_archive(Spoiling(TAR), TAR_FACTS, name=NAME)
