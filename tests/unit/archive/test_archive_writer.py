"""What goes into an archive, where frames end, and what is refused."""

from __future__ import annotations

import pytest

from lifecycle.archive import ArchiveWriter, Form, SingleWriter, open_archive, stored_shares, verify_archive
from lifecycle.archive.framing import MAX_FRAME_BYTES
from lifecycle.archive.reader import ArchiveReader
from lifecycle.errors import LifecycleError, Skipped
from tests.unit.archive.archives import CONTEXT, Store, a_member, log_lines, some_members, write_single, write_tar


def frames_of(data: bytes) -> list[bytes]:
    archive = open_archive(Store(data))
    return [archive.frames.content(frame) for frame in range(archive.index.data_frames)]


def a_writer(store: Store | None = None, frame_bytes: int = 4096) -> ArchiveWriter:
    return ArchiveWriter(store or Store(), level=3, threads=0, frame_bytes=frame_bytes, context=CONTEXT)


def read_all(data: bytes) -> list[bytes]:
    archive: ArchiveReader = open_archive(Store(data))
    return [b"".join(archive.read_member(number)) for number in range(len(archive.manifest.members))]


@pytest.mark.parametrize("threads", [0, 2])
def test_bytes_in_are_bytes_out(threads: int) -> None:
    members = some_members(40)
    data, facts = write_tar(members, threads=threads)
    assert read_all(data) == [content for _, content in members]
    assert facts.form is Form.TAR
    assert facts.raw_bytes == sum(len(content) for _, content in members)
    assert facts.size_bytes == len(data)


def test_an_archive_of_nothing_is_an_archive() -> None:
    data, facts = write_tar([])
    assert read_all(data) == [] and facts.raw_bytes == 0


def test_small_members_start_with_their_frame_and_never_cross_its_end() -> None:
    data, facts = write_tar([(a_member(b"r%d.log" % n, log_lines(900, n)), log_lines(900, n)) for n in range(30)])
    table = open_archive(Store(data)).table
    for offset, size in zip(facts.offsets, facts.sizes, strict=True):
        assert table.frame_at(offset) == table.frame_at(offset + size - 1)
    assert all(4096 // 2 <= len(frame) <= 4096 * 3 // 2 + 1024 for frame in frames_of(data)[:-2])


def test_a_long_segment_is_cut_at_line_ends() -> None:
    content = log_lines(50_000)
    data, _ = write_tar([(a_member(data=content), content)])
    frames = frames_of(data)[:-2]
    assert len(frames) >= 10
    assert all(frame.endswith(b"\n") for frame in frames)


def test_a_line_longer_than_a_frame_is_cut_where_the_frame_is_full() -> None:
    content = log_lines(3000) + b"z" * 20_000 + b"\n" + log_lines(3000)
    data, _ = write_single(content)
    frames = frames_of(data)
    assert b"".join(frames) == content
    assert max(map(len, frames)) <= 4096


@pytest.mark.parametrize("header", range(0, 4096, 512))
def test_a_segment_that_ends_with_its_frame_leaves_no_empty_one(header: int) -> None:
    content = (b"x" * 63 + b"\n") * ((8192 - header) // 64)
    store = Store()
    with a_writer(store) as writer:
        writer.add_stream(a_member(data=content), (content,))
        facts = writer.finish()
    verify_archive(store, facts)


def test_a_stream_and_a_whole_member_give_the_same_archive_content() -> None:
    content = log_lines(30_000)
    store = Store()
    with a_writer(store) as writer:
        writer.add_stream(a_member(data=content), (content[at : at + 777] for at in range(0, len(content), 777)))
        writer.finish()
    assert read_all(bytes(store.data)) == [content]


@pytest.mark.parametrize("found", [b"", b"x" * 99, b"x" * 101])
def test_a_member_of_another_size_is_not_in_the_archive(found: bytes) -> None:
    store = Store()
    with a_writer(store) as writer:
        with pytest.raises(Skipped, match=r"b\.log: 100 bytes were expected"):
            writer.add_member(a_member(b"b.log", size=100), found)
        writer.add_member(a_member(b"b.log", b"again"), b"again")
        writer.finish()
    assert read_all(bytes(store.data)) == [b"again"]


@pytest.mark.parametrize("size", [9_999, 10_001])
def test_a_stream_of_another_size_spoils_the_archive_and_says_so(size: int) -> None:
    with a_writer() as writer:
        with pytest.raises(Skipped, match="it has changed"):
            writer.add_stream(a_member(size=10_000), iter([log_lines(size)]))
        with pytest.raises(LifecycleError):
            writer.add_member(a_member(b"next.log"), b"")
        with pytest.raises(LifecycleError):
            writer.finish()


def test_a_stream_that_breaks_spoils_the_archive() -> None:
    def chunks() -> object:
        yield b"x" * 1000
        raise OSError("input/output error")

    with a_writer() as writer:
        with pytest.raises(OSError, match="input/output"):
            writer.add_stream(a_member(size=2000), chunks())  # type: ignore[arg-type]
        with pytest.raises(LifecycleError):
            writer.finish()


def test_only_whole_members_are_in_an_archive_of_files_that_change() -> None:
    """B11: of 50 files some shrink, grow or empty between the look at them and the reading of them."""
    members = [(a_member(b"f%d.log" % n, log_lines(2048, n)), log_lines(2048, n)) for n in range(50)]
    found = dict(enumerate(content for _, content in members))
    found |= {7: found[7][:100], 15: found[15] + b"more\n", 17: b""}
    store, skipped = Store(), []
    with a_writer(store) as writer:
        for number, (facts, _) in enumerate(members):
            try:
                writer.add_member(facts, found[number])
            except Skipped:
                skipped.append(number)
        written = writer.finish()
    assert skipped == [7, 15, 17]
    assert read_all(bytes(store.data)) == [content for n, (_, content) in enumerate(members) if n not in skipped]
    assert len(written.offsets) == 47


def test_a_name_is_in_an_archive_once() -> None:
    with a_writer() as writer:
        writer.add_member(a_member(b"a/b.log"), b"")
        with pytest.raises(Skipped, match=r"a/b\.log is in the archive already"):
            writer.add_member(a_member(b"a/b.log"), b"")
        writer.add_member(a_member(b"a/b.log", source="nvme"), b"")


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"a", b"a/b"), (b"a/b", b"a"), (b"a/b", b"a/b/c/d"), (b"a/b/c/d", b"a/b"), (b"a/b/c/d", b"a")],
)
def test_a_file_and_a_folder_of_one_name_go_to_different_archives(first: bytes, second: bytes) -> None:
    with a_writer() as writer:
        writer.add_member(a_member(first), b"")
        with pytest.raises(Skipped):
            writer.add_member(a_member(second), b"")
        writer.add_member(a_member(b"other/" + second), b"")


@pytest.mark.parametrize(
    "path", [b"", b"/abs.log", b"../x", b"a/../../x", b"a/./b", b"a//b", b"a/", b"a\0b", b"d\0/a", b".", b"a/.."]
)
@pytest.mark.parametrize("kind", [ArchiveWriter, SingleWriter])
def test_a_path_that_leads_out_is_refused(path: bytes, kind: type[ArchiveWriter | SingleWriter]) -> None:
    with kind(Store(), level=3, threads=0, context=CONTEXT) as writer, pytest.raises(Skipped):
        writer.add_member(a_member(path), b"")


@pytest.mark.parametrize("source", ["", ".lifecycle", "..", ".", "a/b", "a\0"])
def test_a_source_name_cannot_lead_out_or_hide_the_manifest(source: str) -> None:
    with a_writer() as writer, pytest.raises(Skipped):
        writer.add_member(a_member(b"manifest.json", source=source), b"")


@pytest.mark.parametrize("frame_bytes", [0, 1023, MAX_FRAME_BYTES + 1])
def test_frame_sizes_out_of_bounds_are_refused(frame_bytes: int) -> None:
    with pytest.raises(ValueError, match="frames of"):
        a_writer(frame_bytes=frame_bytes)


def test_the_same_members_give_the_same_bytes() -> None:
    assert write_tar(some_members(20), threads=0) == write_tar(some_members(20), threads=3)


def test_a_file_of_its_own_holds_one_segment() -> None:
    data, facts = write_single(log_lines(20_000))
    assert facts.form is Form.SINGLE and facts.offsets == (0,) and facts.stream_bytes == 20_000
    assert read_all(data) == [log_lines(20_000)]
    with SingleWriter(Store(), level=3, context=CONTEXT) as writer:
        with pytest.raises(LifecycleError):
            writer.finish()
        writer.add_member(a_member(data=b"x"), b"x")
        with pytest.raises(LifecycleError):
            writer.add_member(a_member(b"other.log"), b"")


def test_an_empty_segment_may_be_a_file_of_its_own() -> None:
    data, _ = write_single(b"")
    assert read_all(data) == [b""]


def test_single_refuses_a_segment_of_another_size() -> None:
    with SingleWriter(Store(), level=3, threads=0, context=CONTEXT) as writer:
        with pytest.raises(Skipped):
            writer.add_stream(a_member(size=10), iter([b"123"]))
        with pytest.raises(LifecycleError):
            writer.finish()


@pytest.mark.parametrize("sizes", [[1, 2, 3], [0, 0], [7], [0, 5, 0], [10**12, 1, 1]])
def test_shares_sum_to_the_object(sizes: list[int]) -> None:
    shares = stored_shares(1001, sizes)
    assert sum(shares) == 1001 and min(shares) >= 0 and len(shares) == len(sizes)


def test_no_members_have_no_shares() -> None:
    assert stored_shares(1001, []) == []
