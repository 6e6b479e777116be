"""The right to remove from a place: one holder at a time, proven by a token in every commit.

On SQLite an open-file-description lock in a file beside the catalog decides: the kernel frees it when the holder
dies, however it dies. The row in ``leases`` says who has it, and its token makes a woken-up former holder's commits
fail (bug case B27). Progress renews the row, never a timer. Linux only, as OFD locks are.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import time
import weakref
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Final

from sqlalchemy import Connection

from lifecycle.catalog.bulk import bind
from lifecycle.catalog.places import Place
from lifecycle.catalog.store import Catalog
from lifecycle.clock import SystemClock
from lifecycle.errors import LeaseHeld, LeaseLost, UsageError
from lifecycle.ports import Clock
from lifecycle.units import duration_ns, format_instant, from_ns, to_ns

VALID_FOR: Final = timedelta(minutes=10)  # after the last commit; only where no lock decides
_POLL_S: Final = 0.2
_FLOCK: Final = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid


class Lease:
    """One held lease. ``release`` (or the end of a ``with`` block) frees it; a second release does nothing."""

    def __init__(
        self, catalog: Catalog, *, place_id: int, token: int, title: str, lock: FileLock, clock: Clock
    ) -> None:
        self.place_id = place_id
        self.token = token
        self._catalog = catalog
        self._title = title
        self._lock: FileLock | None = lock
        self._clock = clock

    def renew(self, conn: Connection) -> None:
        """Prove the token inside a transaction and note the progress. Raises LeaseLost."""
        now_ns = to_ns(self._clock.now())
        sql = "UPDATE leases SET renewed_ns = ?, expires_ns = ? WHERE place_id = ? AND token = ?"
        values = (now_ns, now_ns + duration_ns(VALID_FOR), self.place_id, self.token)
        if self._lock is None or conn.exec_driver_sql(bind(conn, sql), values).rowcount != 1:
            raise LeaseLost(
                f"the lease on {self._title} is no longer ours (token {self.token})",
                hint="another run took over; this one stops here and has written nothing more",
            )

    def release(self) -> None:
        """Free the place. The lock goes even when the catalog cannot be written any more."""
        release_leases(self._catalog, [self])

    @property
    def is_held(self) -> bool:
        return self._lock is not None

    def free_lock(self) -> None:
        """Let others have the place, whatever its row says."""
        if self._lock is not None:
            self._lock.free()
            self._lock = None

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def take_lease(
    catalog: Catalog,
    place: Place,
    *,
    holder: str,
    now: datetime,
    wait: timedelta = timedelta(0),
    clock: Clock | None = None,
) -> Lease:
    """The lease on a place, waiting for up to ``wait``. Raises LeaseHeld, which says who has it since when.

    ``holder`` is shown to others, as ``run 1882``. ``clock`` stamps renewals; the system's when not given.
    """
    lock = FileLock(lock_path(catalog.path), start=place.id, length=1)
    ticking = SystemClock()
    deadline = ticking.monotonic() + wait.total_seconds()
    while not lock.try_take():
        if ticking.monotonic() >= deadline:
            lock.free()
            raise _held_by(catalog, place)
        time.sleep(_POLL_S)
    try:
        token = _write_row(catalog, place.id, holder, now)
    except BaseException:
        lock.free()
        raise
    return Lease(catalog, place_id=place.id, token=token, title=str(place), lock=lock, clock=clock or ticking)


def release_leases(catalog: Catalog, leases: Sequence[Lease]) -> None:
    """Free several places in one transaction; those that were freed before are passed over. The locks go even when the
    catalog cannot be written any more."""
    held = [lease for lease in leases if lease.is_held]
    if not held:
        return
    try:
        with catalog.write() as conn:
            sql = bind(conn, "UPDATE leases SET holder = '', expires_ns = 0 WHERE place_id = ? AND token = ?")
            for lease in held:
                conn.exec_driver_sql(sql, (lease.place_id, lease.token))
    finally:
        for lease in held:
            lease.free_lock()


def lock_path(catalog: Path) -> Path:
    """The lock file beside a catalog. Byte N is the lease on place N, byte 0 an upgrade. It is never removed."""
    return catalog.with_name(catalog.name + ".lock")


def _write_row(catalog: Catalog, place_id: int, holder: str, now: datetime) -> int:
    now_ns = to_ns(now)
    sql = """
        INSERT INTO leases (place_id, token, holder, host, pid, acquired_ns, renewed_ns, expires_ns)
        VALUES (?, 1, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (place_id) DO UPDATE SET token = leases.token + 1, holder = excluded.holder, host = excluded.host,
            pid = excluded.pid, acquired_ns = excluded.acquired_ns, renewed_ns = excluded.renewed_ns,
            expires_ns = excluded.expires_ns
        RETURNING token"""
    values = (place_id, holder, socket.gethostname(), os.getpid(), now_ns, now_ns, now_ns + duration_ns(VALID_FOR))
    with catalog.write() as conn:
        return int(conn.exec_driver_sql(bind(conn, sql), values).scalar_one())


def _held_by(catalog: Catalog, place: Place) -> LeaseHeld:
    sql = "SELECT holder, host, pid, acquired_ns FROM leases WHERE place_id = ?"
    with catalog.read() as conn:
        row = conn.exec_driver_sql(bind(conn, sql), (place.id,)).fetchone()
    if row is None or not row[0]:  # locked a moment ago and not yet written, or locked by an upgrade
        who = "a process that has not written its name yet (starting, or upgrading the catalog)"
    else:
        who = f"{row[0]} on {row[1]}, pid {row[2]}, since {format_instant(from_ns(row[3]))}"
    error = LeaseHeld(f"{place} is held by {who}", hint="wait for it to end, or use --if-held wait:10m or skip")
    error.since_ns = row[3] if row is not None and row[0] else None
    return error


class FileLock:
    """An exclusive lock on a range of bytes of a file, as long as this object's descriptor is open.

    It belongs to the open file, not to the process: two of them in one process exclude each other, and closing some
    other descriptor of the file does not lose it. A forked child gives up its share at once, so that a worker which
    outlives its parent holds nothing.
    """

    def __init__(self, path: Path, *, start: int, length: int) -> None:
        self._range = (start, length)
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise UsageError(
                f"lock file {path} cannot be opened: {error.strerror}", hint="a lease needs write permission there"
            ) from error
        _open_locks.add(self)

    def try_take(self) -> bool:
        """True when the lock is ours; false when somebody else has part of the range."""
        start, length = self._range
        wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, wanted)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def free(self) -> None:
        """Unlock, for children that still have the descriptor too, and close. A second call does nothing."""
        if self._fd < 0:
            return
        start, length = self._range
        fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_UNLCK, os.SEEK_SET, start, length, 0))
        self.forsake()

    def forsake(self) -> None:
        """Close the descriptor only: what a forked child does, whose parent keeps the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.forsake()


_open_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _forsake_all() -> None:
    for lock in list(_open_locks):
        lock.forsake()


os.register_at_fork(after_in_child=_forsake_all)
