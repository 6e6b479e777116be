"""Restoring segments: bytes, name, mtime and mode come back, checked against the digest before the name is given.

Nothing is overwritten unless told, and then by temporary file, check and rename. The stored copy stays. Restored in
place, a segment is left alone for its stay; elsewhere the catalog takes no notice of the copy.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
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
    UsageError,
    worst_exit,
)
from lifecycle.execute.putback import STAY, PutBackFolder
from lifecycle.execute.readers import mode_for_readers
from lifecycle.execute.writeback import Original, WriteBack
from lifecycle.model import Segment, Selector
from lifecycle.names import show_name
from lifecycle.report.figures import ProblemLine, Progress, RestoreReport
from lifecycle.room import Need, Room
from lifecycle.scan.handles import Root
from lifecycle.tiers import open_tier
from lifecycle.units import duration_ns, to_ns

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
    guarded: int = 0
    companions: int = 0  # left out of a restore in place: they never were files of their source


def restore(app: App, selector: Selector, options: RestoreOptions, progress: Progress) -> RestoreReport:
    """Write every selected segment that can be read. Raises NothingFound, or UsageError for the target."""
    _check_target(app, options)
    started = app.clock.monotonic()
    counts = _Counts()
    with app.catalog.read() as conn:
        by_id = {place.id: place for place in places(conn)}
    checked: set[int] = set()

    def pages(counts: _Counts | None = None) -> Iterator[list[Segment]]:
        return _pages(iter_segments(app.catalog, selector, page=_PAGE), options, counts)

    for page in pages() if options.in_place else ():
        for place_id in {segment.place_id for segment in page} - checked:
            check_marker(app, by_id[place_id])  # an empty mount point would take the files and hide them
            checked.add(place_id)
    room = Room(app)
    _check_space(room, chain.from_iterable(pages()), by_id, options)
    progress.phase("restore")
    write_back = WriteBack(overwrite=options.overwrite)
    for page in pages(counts):
        _check_space(room, page, by_id, options)  # others write, too
        _restore_page(app, page, by_id, options, write_back, counts, progress)
    progress.done()
    if not (counts.files or counts.skipped or counts.problems):
        hint = "lifecycle ls with the same selectors shows what there is"
        if counts.companions:
            hint = "error lines that were kept are no files of a source: --to DIR writes them"
        raise NothingFound("no segment that can be read is selected", hint=hint)
    return RestoreReport(
        files=counts.files,
        size_bytes=counts.size_bytes,
        skipped=counts.skipped,
        renamed=counts.renamed,
        narrowed=counts.narrowed,
        guarded=counts.guarded,
        companions=counts.companions,
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


def _pages(segments: Iterator[Segment], options: RestoreOptions, counts: _Counts | None) -> Iterator[list[Segment]]:
    page: list[Segment] = []
    for segment in segments:
        if segment.tier is None:
            continue
        if segment.companion_of is None or not options.in_place:
            page.append(segment)
        elif counts is not None:
            counts.companions += 1
        if len(page) == _PAGE:
            yield page
            page = []
    if page:
        yield page


def _restore_page(
    app: App,
    page: list[Segment],
    by_id: dict[int, Place],
    options: RestoreOptions,
    write_back: WriteBack,
    counts: _Counts,
    progress: Progress,
) -> None:
    with app.catalog.read() as conn:
        stored = stored_at(conn, [segment.id for segment in page])
    with contextlib.ExitStack() as stack:
        folders: dict[int, PutBackFolder] = {}
        if options.in_place:
            for place_id in {segment.place_id for segment in page}:
                folders[place_id] = stack.enter_context(PutBackFolder(os.fsencode(by_id[place_id].root)))
        put_back = _write_page(app, page, stored, by_id, options, write_back, folders, counts, progress)
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
    write_back: WriteBack,
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
                done = _restore_one(segment, archive, stored.get(segment.id), by_id, options, write_back, ours, counts)
                if done is not None:
                    put_back.setdefault(segment.place_id, []).append(done)
                progress.advance(1, segment.size_bytes)
    return put_back


def _check_space(room: Room, segments: Iterable[Segment], by_id: dict[int, Place], options: RestoreOptions) -> None:
    """Of what is not there as it was already: a restore that was interrupted goes on."""
    needs: dict[int, Need] = {}
    devices: dict[str, int] = {}
    for segment in segments:
        folder = by_id[segment.place_id].root if options.to is None else str(options.to)
        if options.to is None and segment.original.is_present:
            continue
        below = b"" if options.to is None else os.fsencode(by_id[segment.place_id].name)
        root = os.path.join(os.fsencode(folder), below)
        if not options.overwrite and _is_as_it_was(root, segment.directory, segment.name, segment):
            continue
        if folder not in devices:
            devices[folder] = os.stat(folder).st_dev
        need = needs.setdefault(devices[folder], Need(folder))
        need.files += 1
        need.size_bytes += segment.size_bytes
    room.require(needs)


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
    write_back: WriteBack,
    ours: PutBackFolder | None,
    counts: _Counts,
) -> PutBack | None:
    place = by_id[segment.place_id]
    try:
        if options.in_place and (segment.place_id, segment.path) in counts.written:
            raise Skipped("another segment of that path was restored just now", hint="restore it with --to DIR")
        if options.in_place and segment.original.is_present:
            _require_there(place, segment)
            counts.skipped += 1
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
        original = _original(place, segment, at)
        written = write_back.write(root, below, name, original, chunks, ours, segment.id)
    except FileExistsError:
        counts.skipped += 1
        counts.problems.append(
            _problem(segment, "a file of that name is there; it was left as it is", by_id, "--overwrite replaces it")
        )
        counts.codes.add(ExitCode.PARTIAL)
        return None
    except (LifecycleError, OSError) as error:
        hint = error.hint if isinstance(error, LifecycleError) else None
        counts.problems.append(_problem(segment, str(error), by_id, hint))
        counts.codes.add(error.exit_code if isinstance(error, LifecycleError) else ExitCode.PARTIAL)
        return None
    counts.files += 1
    counts.size_bytes += segment.size_bytes
    counts.renamed += name != segment.name
    counts.narrowed += written.lacks_group
    counts.guarded += written.is_guarded
    counts.written.add((segment.place_id, segment.path))
    return PutBack(
        segment_id=segment.id,
        inode=written.found.st_ino,
        ctime_ns=written.found.st_ctime_ns,
        allocated_bytes=written.found.st_blocks * 512,
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


def _require_there(place: Place, segment: Segment) -> None:
    """The catalog says so. It may have been renamed since by a rotation: written anew, it would be there twice."""
    try:
        os.lstat(os.path.join(os.fsencode(place.root), segment.path))
    except (FileNotFoundError, NotADirectoryError):
        raise Skipped(
            "its original was there at the last scan and is not: deleted or renamed since",
            hint="lifecycle scan, then again",
        ) from None


def _original(place: Place, segment: Segment, at: StoredAt | None) -> Original:
    mode = segment.mode & 0o777
    if at is not None:
        readers = at.mode, at.gid
    else:
        with Root(place.root) as root:
            readers = mode_for_readers(root, [segment.directory], mode=mode, gid=segment.gid), segment.gid
    return Original(
        segment.size_bytes,
        segment.identity.mtime_ns,
        mode,
        segment.uid,
        segment.gid,
        segment.allocated_bytes < segment.size_bytes,
        readers,
    )


def _problem(segment: Segment, message: str, by_id: dict[int, Place], hint: str | None = None) -> ProblemLine:
    return ProblemLine(
        phase="restore", place=by_id[segment.place_id].name, subject=show_name(segment.path), message=message, hint=hint
    )  # fmt: skip
