"""The sign of life at a place's root: ``.lifecycle/place.json``, whose place it is, how far the catalog was.

Knows one small file. Never judges it: whoever compares it with the catalog does (promise 5).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from lifecycle.errors import Damaged, PlaceUnavailable, StorageFull
from lifecycle.model import OUR_FOLDER
from lifecycle.names import show_name

MARKER_NAME: Final = b"place.json"
_LIMIT: Final = 64 * 1024
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    place_uid: str
    catalog_id: str
    generation: int  # grows with each rewrite; a catalog that knows a lower one is older than the place
    chain_head: str  # hex, "" for a place without events
    kind: str  # source or tier
    name: str


def read_marker(root: bytes | str) -> Marker | None:
    """The marker of a place, None when there is none. Needs no write permission and leaves nothing behind.

    Raises PlaceUnavailable when root or marker cannot be read, Damaged when the marker is not one of ours.
    """
    path = os.fsencode(root)
    text = get_beside(path, MARKER_NAME, _LIMIT)
    if text is None:
        _require_root(path)
        return None
    return _parse(path, text)


def write_marker(root: bytes | str, marker: Marker) -> None:
    """Put the marker in place, atomically and durably; a second call replaces it. Makes our folder if need be.

    Anybody may read it, since anybody may preview; what we rename away lies below, in a folder of 0700.

    Raises PlaceUnavailable, StorageFull. A crash leaves the former marker, and perhaps ``place.json.new``, which the
    next call overwrites.
    """
    body = json.dumps({"format": _FORMAT, **asdict(marker)}, indent=1, sort_keys=True).encode() + b"\n"
    put_beside(root, MARKER_NAME, body)


def put_beside(root: bytes | str, name: bytes, body: bytes) -> None:
    """A file of ours beside the marker, or the marker itself; as ``write_marker`` says."""
    path, temporary = os.fsencode(root), name + b".new"
    try:
        _make_folder(path)
        with _folder(path) as folder_fd:
            _require_ours(path, folder_fd)
            _write_file(folder_fd, temporary, body)
            os.rename(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
            os.fsync(folder_fd)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"no space for {name.decode()} of {show_name(path)}") from error
        raise _unavailable(path, "written", error) from error


def get_beside(root: bytes | str, name: bytes, limit: int) -> bytes | None:
    """What ``put_beside`` put; None where there is none. Raises PlaceUnavailable."""
    path = os.fsencode(root)
    try:
        with _folder(path) as folder_fd:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder_fd)
            with os.fdopen(fd, "rb") as file:
                return file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unavailable(path, "read", error) from error


class _folder:  # a context manager named like the function it stands for
    """Our folder at a root, open; never through a link."""

    def __init__(self, root: bytes) -> None:
        root_fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(OUR_FOLDER, flags, dir_fd=root_fd)
        finally:
            os.close(root_fd)

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)


def _make_folder(root: bytes) -> None:
    root_fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(OUR_FOLDER, 0o755, dir_fd=root_fd)
            os.fsync(root_fd)
    finally:
        os.close(root_fd)


def _require_ours(root: bytes, folder_fd: int) -> None:
    """Originals are renamed into this folder before they go: it must not be somebody else's."""
    facts = os.fstat(folder_fd)
    if facts.st_uid not in (0, os.geteuid()):
        raise PlaceUnavailable(
            f"{show_name(root)}/{OUR_FOLDER.decode()} belongs to user {facts.st_uid}, this runs as user {os.geteuid()}",
            hint="run as the user who ran lifecycle init there, or give that folder to this user",
        )
    if facts.st_mode & 0o022:
        os.fchmod(folder_fd, 0o755)


def _write_file(folder_fd: int, name: bytes, body: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder_fd), "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _parse(root: bytes, text: bytes) -> Marker:
    where = f"marker {show_name(root)}/{OUR_FOLDER.decode()}/{MARKER_NAME.decode()}"
    hint = "look who changed it; nothing is removed there until it is right again"
    try:
        body = json.loads(text) if len(text) <= _LIMIT else None
    except ValueError:
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("format"), int):
        raise Damaged(f"{where} is not readable as a marker", hint=hint)
    if body["format"] > _FORMAT:
        raise Damaged(
            f"{where} has format {body['format']}, newer than {_FORMAT} of this program", hint="use a newer lifecycle"
        )
    values: dict[str, Any] = {field.name: body.get(field.name) for field in fields(Marker)}
    if not all(type(value) is (int if name == "generation" else str) for name, value in values.items()):
        raise Damaged(f"{where} lacks a value or has one of the wrong type", hint=hint)
    return Marker(**values)


def _require_root(root: bytes) -> None:
    """A missing marker and a missing root are two different things."""
    try:
        os.close(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError as error:
        raise _unavailable(root, "opened", error) from error


def _unavailable(root: bytes, verb: str, error: OSError) -> PlaceUnavailable:
    if error.errno == errno.EROFS:
        hint = "mount it writable, or only plan"
    else:
        hint = "check that it is mounted and what this user may do there"
    return PlaceUnavailable(f"place {show_name(root)} cannot be {verb}: {error.strerror}", hint=hint)
