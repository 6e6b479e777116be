"""Who may read an archive: nobody who could not read its members where they lay.

A file of mode 0644 in a folder of mode 0700 was its owner's alone. The planner knows modes of files only, so the
folders are asked here, before the archive's mode goes into the intent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from lifecycle.errors import LifecycleError
from lifecycle.scan.handles import Root

_OTHERS = 0o007
_GROUP = 0o070


def mode_for_readers(root: Root, directories: Iterable[bytes], *, mode: int, gid: int) -> int:
    """``mode`` less what any of these folders, or one above it below the root, keeps from others or from the group.

    A folder that cannot be looked at counts as its owner's alone.
    """
    asked: set[bytes] = set()
    for directory in directories:
        for folder in _chain(directory):
            if folder not in asked:
                asked.add(folder)
                mode &= ~_kept_out(root, folder, gid)
    return mode


def _chain(directory: bytes) -> Iterable[bytes]:
    yield b""
    parts = directory.split(b"/") if directory else []
    for length in range(1, len(parts) + 1):
        yield b"/".join(parts[:length])


def _kept_out(root: Root, folder: bytes, gid: int) -> int:
    try:
        found = os.fstat(root.directory(folder))
    except (OSError, LifecycleError):
        return _OTHERS | _GROUP
    others = 0 if found.st_mode & stat.S_IXOTH else _OTHERS
    passes = found.st_mode & (stat.S_IXGRP if found.st_gid == gid else stat.S_IXOTH)
    return others | (0 if passes else _GROUP)
