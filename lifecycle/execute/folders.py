"""Folders that we emptied go once they have been quiet for ``settle``: rmdir, and nothing else.

rmdir refuses a folder that has anything in it, so that whatever comes between our look and it stays. Each folder is
removed by its name below a handle of the one above, never through a link. A job's folder is the highest that goes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from lifecycle.catalog.folders import Emptied
from lifecycle.errors import LifecycleError
from lifecycle.scan.handles import Root


def is_below_job(path: bytes, depth: int) -> bool:
    """Whether a folder is a job's own, or below one; ``depth``: how many folders below the root jobs' folders lie."""
    return bool(path) and path.count(b"/") + 1 >= depth


def is_removable(root: Root, path: bytes, quiet_until_ns: int) -> bool | None:
    """Whether it is empty and nothing was put into it or taken out of it since; None where time alone is missing."""
    fd = root.directory(path)
    with os.scandir(fd) as entries:
        if next(entries, None) is not None:
            return False
    found = os.fstat(fd)
    return True if max(found.st_mtime_ns, found.st_ctime_ns) <= quiet_until_ns else None


def iter_removed(root: Root, folders: Sequence[Emptied], quiet_until_ns: int) -> Iterator[tuple[Emptied, bool | None]]:
    """Each folder with what became of it: gone by us, left for good, or (None) left for a later run."""
    for folder in folders:
        try:
            removable = is_removable(root, folder.path, quiet_until_ns)
            if removable:
                above, _, name = folder.path.rpartition(b"/")
                above_fd = root.directory(above) if above else root.fd
                if not stat.S_ISDIR(os.stat(name, dir_fd=above_fd, follow_symlinks=False).st_mode):
                    removable = False
                else:
                    os.rmdir(name, dir_fd=above_fd)
        except (OSError, LifecycleError):
            removable = False  # written into, gone, a link by now, or not ours to remove
        yield folder, removable
