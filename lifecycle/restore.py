"""Restoring segments: bytes, name, mtime and mode come back, checked against the digest before the name is given.

Nothing is overwritten unless told, and then by temporary file, check and rename. The stored copy stays. Restored in
place, a segment is left alone for its stay; elsewhere the catalog takes no notice of the copy.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from lifecycle.app import App, check_marker, tier_spec
from lifecycle.archive import ArchiveReader, open_archive
from lifecycle.catalog.places import Place, places
from lifecycle.catalog.restoring import PutBack, StoredAt, record_put_back, stored_at
from lifecycle.catalog.segments import iter_segments
from lifecycle.errors import (
    Damaged,
    ExitCode,
    LifecycleError,
    NothingFound,
    PlaceUnavailable,
    Skipped,
    StorageFull,
    UsageError,
    worst_exit,
)
from lifecycle.execute.putback import STAY, PutBackFolder
from lifecycle.execute.release import rename_without_replacing
from lifecycle.model import Segment, Selector
from lifecycle.names import show_name
from lifecycle.report.figures import ProblemLine, Progress, RestoreReport
from lifecycle.scan.handles import Root
from lifecycle.tiers import open_tier
from lifecycle.units import duration_ns, format_size, to_ns

_CHUNK = 2**20
_PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    to: Path | None = None
    in_place: bool = False
    overwrite: bool = False


@dataclass(slots=True)
class _Counts:
    files: int = 0
    size_bytes: int = 0
    skipped: int = 0
    read_bytes: int = 0
    archives: set[int] = field(default_factory=set)
    problems: list[ProblemLine] = field(default_factory=list)
    codes: set[ExitCode] = field(default_factory=set)
    written: set[tuple[int, bytes]] = field(default_factory=set)  # places and paths that this restore wrote
    renamed: int = 0
    narrowed: int = 0


def restore(app: App, selector: Selector, options: RestoreOptions, progress: Progress) -> RestoreReport:
    """Write every selected segment that can be read. Raises NothingFound, or UsageError for the target."""
    _check_target(app, options)
    started = app.clock.monotonic()
    counts = _Counts()
    with app.catalog.read() as conn:
        by_id = {place.id: place for place in places(conn)}
    progress.phase("restore")
    checked: set[int] = set()
    for page in _pages(iter_segments(app.catalog, selector, page=_PAGE)):
        if options.in_place:
            for place_id in {segment.place_id for segment in page} - checked:
                check_marker(app, by_id[place_id])  # an empty mount point would take the files and hide them
                checked.add(place_id)
        _restore_page(app, page, by_id, options, counts, progress)
    progress.done()
    if not (counts.files or counts.skipped or counts.problems):
        raise NothingFound(
            "no segment that can be read is selected", hint="lifecycle ls with the same selectors shows what there is"
        )
    return RestoreReport(
        files=counts.files,
        size_bytes=counts.size_bytes,
        skipped=counts.skipped,
        renamed=counts.renamed,
        narrowed=counts.narrowed,
        read_bytes=counts.read_bytes,
        archives=len(counts.archives),
        to="in place" if options.in_place else str(options.to),
        seconds=app.clock.monotonic() - started,
        problem_count=len(counts.problems),
        problems=tuple(counts.problems[:50]),
        exit_code=worst_exit(counts.codes),
    )


def _check_target(app: App, options: RestoreOptions) -> None:
    if options.in_place == (options.to is not None):
        raise UsageError(
            "say where to: --to DIR or --in-place", hint="--to DIR writes DIR/SOURCE/PATH and touches nothing else"
        )
    if options.to is not None:
        to = os.path.realpath(options.to)
        roots = [source.path for source in app.policy.sources] + [tier.path for tier in app.policy.tiers.values()]
        for root in map(os.path.realpath, roots):
            if to == root or to.startswith(root + "/"):
                raise UsageError(
                    f"--to {options.to} lies in {root}, where the next run would take the files for new logs",
                    hint="restore to another folder, or --in-place",
                )
        try:
            options.to.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"--to {options.to}: {error.strerror}", hint="name a directory that can be made"
            ) from error


def _pages(segments: Iterator[Segment]) -> Iterator[list[Segment]]:
    page: list[Segment] = []
    for segment in segments:
        if segment.tier is not None:
            page.append(segment)
        if len(page) == _PAGE:
            yield page
            page = []
    if page:
        yield page


def _restore_page(
    app: App, page: list[Segment], by_id: dict[int, Place], options: RestoreOptions, counts: _Counts, progress: Progress
) -> None:
    _check_space(page, by_id, options)
    with app.catalog.read() as conn:
        stored = stored_at(conn, [segment.id for segment in page])
    with contextlib.ExitStack() as stack:
        folders: dict[int, PutBackFolder] = {}
        if options.in_place:
            for place_id in {segment.place_id for segment in page}:
                folders[place_id] = stack.enter_context(PutBackFolder(os.fsencode(by_id[place_id].root)))
        put_back = _write_page(app, page, stored, by_id, options, folders, counts, progress)
        now = app.now()
        for place_id, folder in folders.items():
            with app.catalog.write() as conn:
                stay_until_ns = to_ns(now) + duration_ns(STAY)
                record_put_back(
                    conn, place_id, put_back.get(place_id, []), stay_until_ns=stay_until_ns, now_ns=to_ns(now)
                )
            folder.clear()


def _write_page(
    app: App,
    page: list[Segment],
    stored: dict[int, StoredAt],
    by_id: dict[int, Place],
    options: RestoreOptions,
    folders: dict[int, PutBackFolder],
    counts: _Counts,
    progress: Progress,
) -> dict[int, list[PutBack]]:
    """Each archive opened once, its segments in the order in which they lie in it. What was put back, by place."""
    put_back: dict[int, list[PutBack]] = {}
    page.sort(
        key=lambda segment: (
            (stored[segment.id].archive_id, stored[segment.id].offset) if segment.id in stored else (0, 0)
        )
    )
    for archive_id, group in groupby(
        page, key=lambda segment: stored[segment.id].archive_id if segment.id in stored else 0
    ):
        segments = list(group)
        with contextlib.ExitStack() as stack:
            archive = _open(app, stack, by_id, stored[segments[0].id], counts) if archive_id else None
            for segment in segments:
                if archive_id and archive is None:
                    counts.problems.append(_problem(segment, "its archive cannot be read", by_id))
                    counts.codes.add(ExitCode.PARTIAL)
                    continue
                ours = folders.get(segment.place_id)
                done = _restore_one(segment, archive, stored.get(segment.id), by_id, options, ours, counts)
                if done is not None:
                    put_back.setdefault(segment.place_id, []).append(done)
                progress.advance(1, segment.size_bytes)
    return put_back


def _check_space(page: list[Segment], by_id: dict[int, Place], options: RestoreOptions) -> None:
    needed = sum(segment.size_bytes for segment in page)
    target = str(options.to) if options.to is not None else by_id[page[0].place_id].root
    free = os.statvfs(target).f_bavail * os.statvfs(target).f_frsize
    if needed > free:
        raise StorageFull(
            f"{target}: {format_size(needed)} are needed for the next {len(page)} files and"
            f" {format_size(free)} are free",
            hint="select less, or restore --to another file system",
        )


def _open(
    app: App, stack: contextlib.ExitStack, by_id: dict[int, Place], at: StoredAt, counts: _Counts
) -> ArchiveReader | None:
    try:
        tier = stack.enter_context(contextlib.closing(open_tier(tier_spec(by_id[at.place_id]))))
        archive = stack.enter_context(open_archive(tier.open(at.key), name=at.key))
    except (LifecycleError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            error = _why_missing(app, by_id[at.place_id], at.key)
        message = f"{error} HINT: {error.hint}" if isinstance(error, LifecycleError) and error.hint else str(error)
        counts.problems.append(
            ProblemLine(phase="restore", place=by_id[at.place_id].name, subject=at.key, message=message)
        )
        counts.codes.add(ExitCode.DAMAGE if isinstance(error, Damaged) else ExitCode.PARTIAL)
        return None
    counts.archives.add(at.archive_id)
    return archive


def _why_missing(app: App, place: Place, key: str) -> LifecycleError:
    """An object that is not there is damage, unless its whole tier is not there: then it is not mounted."""
    try:
        check_marker(app, place)
    except PlaceUnavailable as error:
        return error
    return Damaged(f"archive {key} is not there", hint="bring it back from a copy of the tier")


def _restore_one(
    segment: Segment,
    archive: ArchiveReader | None,
    at: StoredAt | None,
    by_id: dict[int, Place],
    options: RestoreOptions,
    ours: PutBackFolder | None,
    counts: _Counts,
) -> PutBack | None:
    place = by_id[segment.place_id]
    try:
        if options.in_place and (segment.place_id, segment.path) in counts.written:
            raise Skipped("another segment of that path was restored just now", hint="restore it with --to DIR")
        if options.in_place and segment.original.is_present:
            counts.skipped += 1  # it is there
            return None
        root, below = os.fsencode(place.root), segment.directory
        if not options.in_place:
            root, below = os.fsencode(str(options.to)), os.path.join(os.fsencode(place.name), below)
        if at is None and not segment.original.is_present:
            raise Skipped("nothing of it can be read: no stored copy and no original", hint="lifecycle explain PATH")
        chunks = (
            _stored_chunks(archive, at, segment)
            if archive is not None and at is not None
            else _original_chunks(place, segment)
        )
        name = segment.name if options.in_place else _free_name(segment, counts)
        if not (options.in_place or options.overwrite) and _is_as_it_was(root, below, name, segment):
            counts.skipped += 1
            return None
        written = _write_file(root, below, segment, name, chunks, overwrite=options.overwrite, ours=ours)
    except FileExistsError:
        counts.skipped += 1
        counts.problems.append(
            _problem(segment, "a file of that name is there; it was left as it is", by_id, "--overwrite replaces it")
        )
        counts.codes.add(ExitCode.PARTIAL)
        return None
    except (LifecycleError, OSError) as error:
        counts.problems.append(_problem(segment, str(error), by_id))
        counts.codes.add(error.exit_code if isinstance(error, LifecycleError) else ExitCode.PARTIAL)
        return None
    counts.files += 1
    counts.size_bytes += segment.size_bytes
    counts.renamed += name != segment.name
    counts.narrowed += stat.S_IMODE(written.st_mode) != segment.mode & 0o777
    counts.written.add((segment.place_id, segment.path))
    return PutBack(
        segment_id=segment.id,
        inode=written.st_ino,
        ctime_ns=written.st_ctime_ns,
        allocated_bytes=written.st_blocks * 512,
    )


def _free_name(segment: Segment, counts: _Counts) -> bytes:
    """Its own name; where this very restore wrote another segment of that path (``rank_3.log.1`` of two nights), one
    that says which it is."""
    if (segment.place_id, segment.path) in counts.written:
        return b"%s.segment-%d" % (segment.name, segment.id)
    return segment.name


def _stored_chunks(archive: ArchiveReader, at: StoredAt, segment: Segment) -> Iterator[bytes]:
    return archive.read_at(at.offset, segment.size_bytes, digest=segment.digest, member=segment.path)


def _original_chunks(place: Place, segment: Segment) -> Iterator[bytes]:
    """The original as it is now, when it still is what the catalog knows."""
    with Root(place.root) as root:
        fd = os.open(
            segment.name,
            os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
            dir_fd=root.directory(segment.directory),
        )
        try:
            found = os.fstat(fd)
            if (found.st_ino, found.st_size, found.st_mtime_ns) != (
                segment.identity.inode,
                segment.size_bytes,
                segment.identity.mtime_ns,
            ):
                raise Skipped("its original changed since the last scan", hint="lifecycle scan, then again")
            while chunk := os.read(fd, _CHUNK):
                yield chunk
        finally:
            os.close(fd)


def _is_as_it_was(root: bytes, directory: bytes, name: bytes, segment: Segment) -> bool:
    """Whether a file with its size and its time of last write, to the nanosecond, is there already."""
    try:
        found = os.lstat(os.path.join(root, directory, name))
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and (found.st_size, found.st_mtime_ns) == segment.identity[1:]


def _write_file(
    root: bytes,
    directory: bytes,
    segment: Segment,
    name: bytes,
    chunks: Iterator[bytes],
    *,
    overwrite: bool,
    ours: PutBackFolder | None,
) -> os.stat_result:
    """Write under a name of ours, then give the name. FileExistsError when it is taken and must stay."""
    folder = _make_folders(root, directory)
    temporary = b".lifecycle-restore-" + secrets.token_hex(6).encode() if ours is None else b"%d" % segment.id
    beside = folder if ours is None else ours.fd
    try:
        if not overwrite and _is_taken(name, folder):
            raise FileExistsError(show_name(segment.path))
        fd = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=beside
        )
        try:
            _fill(fd, segment, chunks)
            if ours is not None:
                ours.give_name(temporary, name, folder, overwrite=overwrite)
            elif overwrite:
                _replace(temporary, name, folder)
            else:
                rename_without_replacing(temporary, folder, name, folder)
            os.fsync(folder)
            return os.fstat(fd)
        finally:
            os.close(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=beside)
        raise
    finally:
        os.close(folder)


def _replace(temporary: bytes, name: bytes, folder: int) -> None:
    try:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except IsADirectoryError:
        raise Skipped("a folder of that name is there", hint="only files are overwritten; move it away") from None


def _fill(fd: int, segment: Segment, chunks: Iterator[bytes]) -> None:
    for chunk in chunks:
        view = memoryview(chunk)
        while view:
            view = view[os.write(fd, view) :]
    mode = segment.mode & 0o777
    if os.geteuid() == 0:
        os.fchown(fd, segment.uid, segment.gid)
    elif os.fstat(fd).st_gid != segment.gid:
        mode = narrowed(mode)
    os.fchmod(fd, mode)
    os.utime(fd, ns=(segment.identity.mtime_ns, segment.identity.mtime_ns))
    os.fsync(fd)


def narrowed(mode: int) -> int:
    """Without what only the original's group may do: the file has another group, which may do what all may."""
    return mode & ~0o070 | (mode & 0o007) << 3 & mode


def _is_taken(name: bytes, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _make_folders(root: bytes, directory: bytes) -> int:
    """A handle of ``root/directory``, made where it is not there; a link in the way below the root is refused."""
    os.makedirs(root, mode=0o755, exist_ok=True)
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in filter(None, directory.split(b"/")):
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=current)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
        except OSError as error:
            raise Skipped(
                f"folder {show_name(directory)}: {error.strerror}", hint="a link or a file is in the way"
            ) from error
        finally:
            os.close(current)
        current = below
    return current


def _problem(segment: Segment, message: str, by_id: dict[int, Place], hint: str | None = None) -> ProblemLine:
    return ProblemLine(
        phase="restore", place=by_id[segment.place_id].name, subject=show_name(segment.path), message=message, hint=hint
    )  # fmt: skip
