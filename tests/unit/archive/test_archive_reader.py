"""Reading: only what is needed, each frame once, and nothing out of a damaged or hostile archive."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from blake3 import blake3

from lifecycle.archive import check_archive, open_archive, verify_archive
from lifecycle.archive.manifest import INDEX_MAGIC, Form, IndexRecord, encode_index
from lifecycle.archive.seekable import SeekableWriter
from lifecycle.archive.tar import BLOCK, END, PADDING, TarHeaders
from lifecycle.errors import Damaged
from tests.unit.archive.archives import Store, a_member, log_lines, some_members, write_single, write_tar

NAME = "warm/vision/training/2026-03-01/a.tar.zst"


def big_members(count: int = 60) -> list[tuple[Any, bytes]]:
    contents = [log_lines(2000, seed=number) for number in range(count)]
    return [(a_member(b"rank_%d.log" % number, data), data) for number, data in enumerate(contents)]


def test_one_member_is_read_from_its_frames_alone() -> None:
    data, _ = write_tar([(a_member(b"f%d" % n, log_lines(40_000, n)), log_lines(40_000, n)) for n in range(40)])
    store = Store(data)
    archive = open_archive(store, name=NAME)
    assert b"".join(archive.read_member(7)) == log_lines(40_000, 7)
    assert sum(length for _, length in store.ranges) < 64 * 1024 + len(data) / 20


def test_a_place_that_the_catalog_knows_is_read_without_the_manifest() -> None:
    members = big_members()
    data, facts = write_tar(members)
    archive = open_archive(Store(data), name=NAME)
    chunks = archive.read_at(facts.offsets[9], facts.sizes[9], digest=facts.digests[9], member=b"rank_9.log")
    assert b"".join(chunks) == members[9][1]
    assert "manifest" not in vars(archive)


def test_neighbours_share_the_frame_that_was_read() -> None:
    data, _ = write_tar(big_members(40), frame_bytes=64 * 1024)
    store = Store(data * 1)
    archive = open_archive(store, name=NAME)
    decoded = count_decodes(archive)
    for number in range(20):
        b"".join(archive.read_member(number))
    assert decoded[0] <= 2 + 1  # two frames and the manifest's


def count_decodes(archive: Any) -> list[int]:
    """Counts frames decompressed from here on, by a wrapper around the archive's own frames."""
    count, decode = [0], archive.frames.decode

    def counting(frame: int, stored: bytes) -> bytes:
        count[0] += 1
        result: bytes = decode(frame, stored)
        return result

    archive.frames.decode = counting
    return count


@pytest.mark.parametrize("threads", [0, 2])
def test_a_pass_over_all_members_decompresses_each_frame_once(threads: int) -> None:
    members = some_members(60)
    data, _ = write_tar(members)
    archive = open_archive(Store(data), name=NAME)
    assert len(archive.manifest.members) == 60
    decoded = count_decodes(archive)
    found = [(member.facts, b"".join(member.chunks)) for member in archive.iter_members(threads=threads)]
    assert found == members
    assert decoded[0] == archive.index.data_frames - 1


def test_frames_that_nobody_wants_are_not_decompressed() -> None:
    members = big_members()
    data, _ = write_tar(members)
    archive = open_archive(Store(data), name=NAME)
    assert archive.manifest
    decoded = count_decodes(archive)
    found = {member.number: b"".join(member.chunks) for member in archive.iter_members({41, 3})}
    assert found == {3: members[3][1], 41: members[41][1]}
    assert decoded[0] <= 4


def test_members_may_be_passed_over_unread() -> None:
    members = some_members(30)
    data, _ = write_tar(members)
    seen = [b"".join(m.chunks) for m in open_archive(Store(data)).iter_members() if m.number % 5 == 4]
    assert seen == [content for number, (_, content) in enumerate(members) if number % 5 == 4]


def test_going_back_within_a_pass_is_refused() -> None:
    data, _ = write_tar(big_members())
    held = list(open_archive(Store(data)).iter_members())
    b"".join(held[-1].chunks)
    with pytest.raises(ValueError, match="stored order"):
        b"".join(held[0].chunks)


def test_a_digest_that_differs_is_damage_after_the_last_chunk() -> None:
    data, facts = write_tar(big_members(3))
    archive = open_archive(Store(data), name=NAME)
    with pytest.raises(Damaged, match=rf"archive {NAME}: member a\\xff: the content's digest differs"):
        b"".join(archive.read_at(facts.offsets[1], facts.sizes[1], digest=b"0" * 32, member=b"a\xff"))


@pytest.mark.parametrize(("offset", "size"), [(-1, 5), (0, -1), (0, 10**12), (10**12, 1)])
def test_bytes_outside_the_stream_are_damage(offset: int, size: int) -> None:
    data, _ = write_tar(big_members(3))
    with pytest.raises(Damaged, match="are not in it"):
        b"".join(open_archive(Store(data), name=NAME).read_at(offset, size))


def test_the_object_is_closed_with_its_archive_and_after_a_failed_opening() -> None:
    data, _ = write_tar(big_members(3))
    good, bad = Store(data), Store(data[:-1])
    with open_archive(good):
        pass
    with pytest.raises(Damaged):
        open_archive(bad)
    assert good.is_closed and bad.is_closed


def hostile(change: Callable[[dict[str, Any]], None]) -> bytes:
    """An archive that is whole and sound but for what its manifest claims."""
    content = b"harmless\n"
    data, _ = write_tar([(a_member(b"a.log", content), content)])
    document = json.loads(open_archive(Store(data)).manifest_bytes())
    document["members"]["offset"] = [BLOCK]
    document["frames"]["bytes"] = [2 * BLOCK]
    change(document)
    manifest = json.dumps(document).encode()
    headers = TarHeaders()
    facts = {"mtime_ns": 0, "mode": 0o644, "uid": 0, "gid": 0}
    store = Store()
    sink = SeekableWriter(store, level=3, threads=0)
    member = headers.make(b"lustre", b"a.log", size=len(content), **facts)
    first = member + content + PADDING[len(content) % BLOCK]
    last = headers.make(b".lifecycle", b"manifest.json", size=len(manifest), **facts)
    sink.add_frame(first)
    sink.add_frame(last + manifest + PADDING[len(manifest) % BLOCK] + END)
    record = IndexRecord(
        form=Form.TAR,
        data_frames=2,
        manifest_offset=len(first) + len(last),
        manifest_size=len(manifest),
        manifest_digest=blake3(manifest).digest(),
        stored_digest=sink.digest(),
    )
    sink.add_skippable(INDEX_MAGIC, encode_index(record))
    sink.finish()
    return bytes(store.data)


def test_the_hostile_archive_is_sound_when_it_claims_nothing_wrong() -> None:
    check_archive(Store(hostile(lambda document: None)), name=NAME)


@pytest.mark.parametrize("path", ["../../x", "/etc/cron.d/x", "a/../../x", "..", "a//b"])
def test_members_that_would_leave_their_folder_are_refused(path: str) -> None:
    data = hostile(lambda document: document["members"].update(path=[path]))
    with pytest.raises(Damaged, match="leads out of its folder"):
        _ = open_archive(Store(data), name=NAME).manifest


@pytest.mark.parametrize("claim", [{"size": [10**15]}, {"offset": [10**15]}, {"size": {"all": 600}}])
def test_members_cannot_claim_more_than_the_stream_has(claim: dict[str, Any]) -> None:
    data = hostile(lambda document: document["members"].update(claim))
    with pytest.raises(Damaged):
        check_archive(Store(data), name=NAME)


def test_a_manifest_for_another_form_is_refused() -> None:
    data = hostile(lambda document: document.update(form="single"))
    with pytest.raises(Damaged, match="another form"):
        _ = open_archive(Store(data), name=NAME).manifest


def test_verifying_compares_with_what_was_written_and_not_with_what_the_archive_says() -> None:
    """An archive may be sound in itself and still not be the one that was written."""
    (one, facts), (two, _) = write_tar(big_members(4)), write_tar(big_members(5)[1:])
    assert len(one) != len(two) or one != two
    check_archive(Store(two), name=NAME)
    verify_archive(Store(one), facts, name=NAME)
    with pytest.raises(Damaged):
        verify_archive(Store(two), facts, name=NAME)


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("size", [0, 1, 4096, 50_000])
def test_what_was_written_verifies(threads: int, size: int) -> None:
    for data, facts in (
        write_tar([*some_members(), (a_member(data=log_lines(size)), log_lines(size))]),
        write_single(log_lines(size)),
    ):
        verify_archive(Store(data), facts, name=NAME, threads=threads)
        assert check_archive(Store(data), name=NAME, threads=threads) == facts.digest == blake3(data).digest()
