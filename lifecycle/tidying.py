"""The end of a run: folders that its removals, or those of runs before, have emptied. And how many a preview shows."""

from __future__ import annotations

from collections.abc import Sequence

from lifecycle.app import App
from lifecycle.catalog.folders import Emptied, emptied_folders, record_folders
from lifecycle.errors import LifecycleError
from lifecycle.execute.folders import is_below_job, is_removable, iter_removed
from lifecycle.scan.handles import Root
from lifecycle.session import Opened, Session
from lifecycle.units import duration_ns, to_ns


def remove_emptied(session: Session) -> int:
    """How many went. Only of places whose lease this run has; a crash leaves folders that the next run looks at."""
    return sum(_of_place(session, opened) for opened in session.opened if opened.lease is not None)


def count_emptied(app: App, opened: Sequence[Opened], now_ns: int) -> int:
    """How many would go now. Changes nothing."""
    count = 0
    for each in opened:
        if (folders := _candidates(app, each, now_ns)) and each.source is not None:
            with Root(each.place.root) as root:
                quiet_ns = now_ns - duration_ns(each.source.settle)
                count += sum(bool(_look(root, folder, quiet_ns)) for folder in folders)
    return count


def _of_place(session: Session, opened: Opened) -> int:
    now_ns = to_ns(session.now)
    folders = _candidates(session.app, opened, now_ns)
    if not folders or opened.source is None or opened.lease is None:
        return 0
    quiet_ns = now_ns - duration_ns(opened.source.settle)
    with Root(opened.place.root) as root:
        done = list(iter_removed(root, folders, quiet_ns))
    removed = [folder for folder, went in done if went]
    left = [folder for folder, went in done if went is False]
    if removed or left:
        with session.app.catalog.write(opened.lease) as conn:
            record_folders(conn, opened.place.id, removed=removed, left=left, now_ns=now_ns, run_id=session.run_id)
    return len(removed)


def _candidates(app: App, opened: Opened, now_ns: int) -> list[Emptied]:
    source = opened.source
    if source is None or opened.is_behind or not source.removes_emptied:
        return []
    with app.catalog.read() as conn:
        found = emptied_folders(conn, opened.place.id, now_ns)
    return [folder for folder in found if is_below_job(folder.path, source.job_depth)]


def _look(root: Root, folder: Emptied, quiet_ns: int) -> bool | None:
    try:
        return is_removable(root, folder.path, quiet_ns)
    except (OSError, LifecycleError):
        return False
