"""Whatever goes in comes out, whatever is done to an archive is either nothing or Damaged, and memory stays flat."""

from __future__ import annotations

import contextlib
import io
import tarfile
import tracemalloc

import pyzstd
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.archive import ArchiveWriter, SingleWriter, check_archive, open_archive, verify_archive
from lifecycle.errors import Damaged, Skipped
from tests.unit.archive.archives import CONTEXT, Store, a_member, log_lines, some_members, write_tar

component = st.binary(min_size=1, max_size=12).filter(lambda raw: not set(raw) & {0, 0x2F} and raw not in (b".", b".."))
paths = st.lists(component, min_size=1, max_size=4).map(b"/".join)
contents = st.one_of(
    st.binary(max_size=200),
    st.integers(0, 9000).map(log_lines),
    st.integers(1000, 9000).map(lambda size: b"z" * size),
    st.lists(st.integers(0, 3000), max_size=6).map(lambda runs: b"".join(b"y" * run + b"\n" for run in runs)),
)


@settings(max_examples=60, deadline=None)
@given(
    members=st.lists(st.tuples(paths, contents, st.booleans()), max_size=12),
    frame_bytes=st.integers(1024, 5000),
    threads=st.integers(0, 2),
    piece=st.integers(1, 4000),
)
def test_bytes_in_are_bytes_out_for_us_and_for_tarfile(
    members: list[tuple[bytes, bytes, bool]], frame_bytes: int, threads: int, piece: int
) -> None:
    store, kept = Store(), []
    with ArchiveWriter(store, level=1, threads=threads, frame_bytes=frame_bytes, context=CONTEXT) as writer:
        for path, data, is_stream in members:
            facts = a_member(path, data)
            with contextlib.suppress(Skipped):  # a path that is there already, or is a folder
                if is_stream:
                    writer.add_stream(facts, (data[at : at + piece] for at in range(0, len(data), piece)))
                else:
                    writer.add_member(facts, data)
                kept.append((path, data))
        written = writer.finish()
    verify_archive(store, written, threads=threads)
    assert check_archive(store, threads=threads) == written.digest
    archive = open_archive(store)
    assert [(m.facts.path, b"".join(m.chunks)) for m in archive.iter_members(threads=threads)] == kept
    assert [b"".join(archive.read_member(number)) for number in range(len(kept))] == [data for _, data in kept]
    with tarfile.open(fileobj=io.BytesIO(pyzstd.decompress(bytes(store.data))), mode="r:") as tar:
        found = [
            (info.name.encode("utf-8", "surrogateescape"), content.read())
            for info in tar
            if (content := tar.extractfile(info)) is not None
        ]
    assert found[:-1] == [(b"lustre/" + path, data) for path, data in kept]


@settings(max_examples=40, deadline=None)
@given(data=contents, frame_bytes=st.integers(1024, 5000), piece=st.integers(1, 4000))
def test_a_file_of_its_own_is_its_stream(data: bytes, frame_bytes: int, piece: int) -> None:
    store = Store()
    with SingleWriter(store, level=1, threads=0, frame_bytes=frame_bytes, context=CONTEXT) as writer:
        writer.add_stream(a_member(data=data), (data[at : at + piece] for at in range(0, len(data), piece)))
        written = writer.finish()
    verify_archive(store, written)
    assert b"".join(open_archive(store).read_member(0)) == data
    with pyzstd.SeekableZstdFile(io.BytesIO(bytes(store.data))) as seekable:
        assert seekable.read() == data


SOUND, SOUND_FACTS = write_tar(some_members(6), frame_bytes=1024)


@settings(max_examples=300, deadline=None)
@given(
    edits=st.lists(
        st.tuples(
            st.integers(0, len(SOUND)),
            st.integers(0, 40),
            st.one_of(st.binary(max_size=40), st.integers(0, len(SOUND)).map(lambda at: SOUND[at : at + 300])),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_an_edited_archive_is_damaged_and_nothing_else(edits: list[tuple[int, int, bytes]]) -> None:
    data = SOUND
    for at, removed, inserted in edits:
        data = data[:at] + inserted + data[at + removed :]
    damages = 0
    for check in (
        lambda: check_archive(Store(data), threads=0),
        lambda: verify_archive(Store(data), SOUND_FACTS, threads=0),
    ):
        try:
            check()
        except Damaged:
            damages += 1
    assert damages == (0 if data == SOUND else 2)


def test_memory_does_not_grow_with_the_segment() -> None:
    """32 MiB through frames of 512 KiB: what is held is some frames, writing as well as verifying."""
    line, store = log_lines(2**16), Store()
    count = 512
    tracemalloc.start()
    try:
        with SingleWriter(store, level=1, threads=2, frame_bytes=2**19, context=CONTEXT) as writer:
            writer.add_stream(a_member(size=len(line) * count), (bytes(bytearray(line)) for _ in range(count)))
            written = writer.finish()
        verify_archive(store, written, threads=2)
        stored, (_, peak) = len(store.data), tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert written.raw_bytes == 32 * 2**20
    assert peak - 2 * stored < 12 * 2**19
