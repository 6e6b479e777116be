"""Counts every step that changes something durable, and kills this process at the one it is told to.

Nothing is listed by hand: the system calls that change a file system are wrapped where the operating system offers
them, whoever in the package calls them, and so is the one way into a catalog transaction. What lies between two steps
changes nothing that outlives the process, so that "before step N + 1" is also "after step N".
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from lifecycle.catalog.lease import Lease
from lifecycle.catalog.store import Catalog

CALLS = ("link", "mkdir", "open", "rename", "replace", "rmdir", "truncate", "unlink", "write")


class Killer:
    """Kills the process before step ``at`` (counted from 1), or never. ``log`` has what the steps were."""

    def __init__(self, at: int, *, in_workers: bool = False) -> None:
        """``in_workers``: not this process, but the first that it forks and that comes to the step."""
        self._at = 0 if in_workers else at
        self._at_in_workers = at if in_workers else 0
        self.log: list[str] = []

    def step(self, what: str) -> None:
        self.log.append(what)
        if len(self.log) == self._at:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        """From here on every step of this process counts, or of the processes that it forks."""
        for name in CALLS:
            setattr(os, name, self._watched(name, getattr(os, name)))
        for module in ("lifecycle.execute.release", "lifecycle.tiers.posix"):
            sys.modules[module]._libc = _Libc(self, sys.modules[module]._libc)  # type: ignore[attr-defined]
        Catalog.write = self._watched_write(Catalog.write)  # type: ignore[method-assign]
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._at = self._at_in_workers
        self.log.clear()

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            changes = name != "open" or bool(args[1] & (os.O_CREAT | os.O_TRUNC))
            if changes and caller.startswith("lifecycle."):  # the spool of a plan in TMPDIR is tempfile's
                self.step(f"{caller} {name}")
            return call(*args, **kwargs)

        return watched

    def _watched_write(self, write: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def watched(catalog: Catalog, *leases: Lease) -> Iterator[Connection]:
            with write(catalog, *leases) as conn:
                yield conn
                self.step("commit")

        return watched


class _Libc:
    """``renameat2``, which Python does not know."""

    def __init__(self, killer: Killer, libc: Any) -> None:
        self._killer = killer
        self._libc = libc

    def renameat2(self, *args: Any) -> int:
        self._killer.step("renameat2")
        return int(self._libc.renameat2(*args))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._libc, name)
