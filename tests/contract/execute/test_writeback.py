"""One restored file at a time: what is there while it is written, what a failure leaves, what it never replaces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifecycle.errors import Skipped
from lifecycle.execute import writeback
from lifecycle.execute.writeback import Original, WriteBack

CONTENT = b"step 1 loss 2.5\n" * 1000
TIME_NS = 1_700_000_000_123_456_789


def original(mode: int = 0o640, **changes: object) -> Original:
    found = Original(len(CONTENT), TIME_NS, mode, os.getuid(), os.getgid(), False, (mode, os.getgid()))
    return found._replace(**changes)  # type: ignore[arg-type]


def write(to: Path, chunks: Iterator[bytes], *, overwrite: bool = False, name: bytes = b"a.log") -> None:
    WriteBack(overwrite=overwrite).write(os.fsencode(to), b"nlp/job", name, original(), chunks, None, 7)


def names(to: Path) -> list[str]:
    return sorted(path.name for path in to.rglob("*") if path.is_file())


@pytest.fixture(params=["unnamed files", "no unnamed files"])
def to(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "no unnamed files":
        monkeypatch.setattr(writeback, "_open_unnamed", lambda folder: None)
    return tmp_path


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_comes_whole_with_its_time_and_mode(to: Path, overwrite: bool) -> None:
    write(to, iter([CONTENT[:100], CONTENT[100:]]), overwrite=overwrite)
    file = to / "nlp/job/a.log"
    assert (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_mode & 0o777) == (CONTENT, TIME_NS, 0o640)
    assert names(to) == ["a.log"]


def test_while_it_is_written_there_is_nothing_that_a_kill_could_leave(tmp_path: Path) -> None:
    seen = []

    def chunks() -> Iterator[bytes]:
        yield CONTENT
        seen.append(names(tmp_path))

    write(tmp_path, chunks())
    if _has_unnamed(tmp_path):
        assert seen == [[]]
    assert names(tmp_path) == ["a.log"]


def _has_unnamed(folder: Path) -> bool:
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("overwrite", [False, True])
def test_content_that_fails_its_check_leaves_nothing_and_replaces_nothing(to: Path, overwrite: bool) -> None:
    def chunks() -> Iterator[bytes]:
        yield CONTENT
        raise Skipped("its digest is another one")

    with pytest.raises(Skipped):
        write(to, chunks(), overwrite=overwrite)
    assert names(to) == []
    if overwrite:
        (to / "nlp/job/a.log").write_bytes(b"mine")
        with pytest.raises(Skipped):
            write(to, chunks(), overwrite=True)
        assert (to / "nlp/job/a.log").read_bytes() == b"mine" and names(to) == ["a.log"]


def test_a_file_that_came_meanwhile_stays(to: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield CONTENT
        (to / "nlp/job/a.log").write_bytes(b"mine")

    with pytest.raises(FileExistsError):
        write(to, chunks())
    assert (to / "nlp/job/a.log").read_bytes() == b"mine" and names(to) == ["a.log"]


def test_a_folder_is_never_replaced(to: Path) -> None:
    (to / "nlp/job/a.log").mkdir(parents=True)
    with pytest.raises(Skipped, match="a folder of that name is there"):
        write(to, iter([CONTENT]), overwrite=True)
    assert [path.name for path in (to / "nlp/job").iterdir()] == ["a.log"]


@pytest.mark.parametrize("is_link", [True, False])
def test_a_link_or_a_pipe_is_replaced_itself(to: Path, is_link: bool) -> None:
    at, elsewhere = to / "nlp/job/a.log", to / "elsewhere"
    at.parent.mkdir(parents=True)
    elsewhere.write_bytes(b"outside")
    if is_link:
        at.symlink_to(elsewhere)
    else:
        os.mkfifo(at)
    with pytest.raises(FileExistsError):
        write(to, iter([CONTENT]))
    write(to, iter([CONTENT]), overwrite=True)
    assert at.is_file() and not at.is_symlink() and at.read_bytes() == CONTENT
    assert elsewhere.read_bytes() == b"outside" and [path.name for path in at.parent.iterdir()] == ["a.log"]


def test_where_writers_cannot_be_seen_what_is_fresh_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writeback, "has_writer", lambda fd: None)
    nothing = writeback.OpenFiles(identities=frozenset(), complete=False)
    monkeypatch.setattr(writeback, "files_open_for_writing", lambda: nothing)
    at = tmp_path / "nlp/job/a.log"
    at.parent.mkdir(parents=True)
    at.write_bytes(b"mine")
    with pytest.raises(Skipped, match="cannot be seen here"):
        write(tmp_path, iter([CONTENT]), overwrite=True)
    assert at.read_bytes() == b"mine"
    later = at.stat().st_ctime_ns + 3601 * 10**9
    monkeypatch.setattr(writeback.time, "time_ns", lambda: later)
    write(tmp_path, iter([CONTENT]), overwrite=True)
    assert at.read_bytes() == CONTENT


def test_a_folder_that_is_made_lets_in_whom_the_old_one_let_in(tmp_path: Path) -> None:
    for readers, expected in ((0o644, 0o755), (0o640, 0o750), (0o600, 0o700)):
        there = original(0o644, readers=(readers, os.getgid()))
        root = tmp_path / f"{readers:o}"
        WriteBack(overwrite=False).write(os.fsencode(root), b"nlp/job", b"a.log", there, iter([CONTENT]), None, 7)
        assert [(root / path).stat().st_mode & 0o777 for path in ("nlp", "nlp/job")] == [0o755, expected]
        assert (root / "nlp/job/a.log").stat().st_mode & 0o777 == 0o644
