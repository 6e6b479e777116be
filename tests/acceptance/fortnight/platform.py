"""Users' hands on the disk: every log they write, move, cut or remove, and every file that is none, remembered.

Knows bytes and what was done to them. Never knows the command, its tiers or its catalog: ``books`` tells which logs
have left. One ``Log`` is one content under one name; a file that is cut and written anew is another one.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
Errors = list[tuple[int, bytes]]  # (number of the line from 1, the line without its end)


@dataclass(eq=False)
class Log:
    """One content of one file, as its writer left it. Labels are what its writer knows, not what a layout reads."""

    number: int
    source: str
    path: bytes  # below its source, as it is called now
    kind: str
    team: str
    job: str
    node: str
    rank: int | None
    mode: int
    inode: int = 0
    size: int = 0
    blocks: int = 0  # bytes on the disk
    mtime_ns: int = 0
    lines: int = 0
    errors: Errors = field(default_factory=list)
    has_links: bool = False
    waits: bool = False  # for something else than quiet: an offline run that is not synced
    ended: str = ""  # what its users did to it: "deleted", "cut", "rewritten", "compressed"
    left: bool = False  # it was taken away by the command
    hash: Any = field(default_factory=hashlib.sha256)
    fd: int | None = None

    @property
    def digest(self) -> bytes:
        return bytes(self.hash.digest())

    @property
    def is_here(self) -> bool:
        return not self.left and not self.ended

    @property
    def is_open(self) -> bool:
        return self.fd is not None

    @property
    def place(self) -> tuple[str, bytes]:
        return self.source, self.path

    def __repr__(self) -> str:
        return f"{self.source}/{os.fsdecode(self.path)} ({self.number}, {self.kind}, {self.size} B)"


@dataclass(frozen=True)
class Foreign:
    """What is no log, and must be found as it was."""

    facts: tuple[object, ...]


class Platform:
    def __init__(self, root: Path) -> None:
        self.root = os.fsencode(root)
        self.logs: dict[tuple[str, bytes], Log] = {}
        self.foreign: dict[bytes, Foreign] = {}
        self.all_logs: list[Log] = []

    def close(self) -> None:
        """Let go of every file that is still written."""
        for log in self.all_logs:
            self.finish(log)

    def full(self, source: str, path: bytes) -> bytes:
        return os.path.join(self.root, source.encode(), path)

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(
        self,
        source: str,
        path: bytes,
        content: bytes,
        *,
        at_ns: int,
        team: str,
        job: str,
        kind: str = "log",
        node: str = "",
        rank: int | None = None,
        mode: int = 0o640,
        keep_open: bool = False,
        errors: Errors | None = None,
    ) -> Log:
        """A new file. With ``keep_open`` its writer goes on to have it."""
        full = self.full(source, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        fd = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        os.fchmod(fd, mode)
        log = self._remember(source, path, kind, team, job, node, rank, mode)
        log.fd = fd
        self.append(log, content, at_ns=at_ns, errors=errors)
        if not keep_open:
            self.finish(log)
        return log

    def append(self, log: Log, content: bytes, *, at_ns: int, errors: Errors | None = None) -> None:
        """Whole lines to a file that is there."""
        assert log.is_here, f"{log} is not there to be written to"
        full, opened = self.full(*log.place), None
        if log.fd is None:
            opened = os.open(full, os.O_WRONLY | os.O_APPEND)
        fd = log.fd if log.fd is not None else opened
        assert fd is not None and os.write(fd, content) == len(content)
        os.utime(fd, ns=(at_ns, at_ns))
        facts = os.fstat(fd)
        if opened is not None:
            os.close(opened)
        log.errors += [(log.lines + number, line) for number, line in errors or ()]
        log.lines += count_lines(content)
        log.hash.update(content)
        log.size += len(content)
        log.mtime_ns, log.inode, log.blocks = at_ns, facts.st_ino, facts.st_blocks * 512
        assert log.size == facts.st_size

    def finish(self, log: Log) -> None:
        """Its writer lets go of it."""
        if log.fd is not None:
            os.close(log.fd)
            log.fd = None

    # --- what people and rotators do ----------------------------------------------------------------------------------

    def rename(self, log: Log, path: bytes) -> None:
        """The same file under another name of its source, which nobody has."""
        assert log.is_here and (log.source, path) not in self.logs, f"{log} to {path!r}"
        new = self.full(log.source, path)
        assert not os.path.lexists(new), new
        os.makedirs(os.path.dirname(new), exist_ok=True)
        os.rename(self.full(*log.place), new)
        del self.logs[log.place]
        log.path = path
        self.logs[log.place] = log

    def compress(self, log: Log) -> Log:
        """As gzip does: NAME.gz beside it with its times, then the plain one goes."""
        content = self.content(log)
        packed = gzip.compress(content, 6, mtime=0)
        new = self.write(
            log.source, log.path + b".gz", packed, at_ns=log.mtime_ns, team=log.team, job=log.job, kind=log.kind,
            node=log.node, rank=log.rank, mode=log.mode, errors=log.errors,
        )  # fmt: skip
        self.delete(log, how="compressed")
        return new

    def copy_and_truncate(self, log: Log, path: bytes, *, at_ns: int) -> tuple[Log, Log]:
        """As logrotate's copytruncate: a copy, then the same inode is cut. The copy, and what goes on."""
        copy = self.write(
            log.source, path, self.content(log), at_ns=at_ns, team=log.team, job=log.job, kind=log.kind, node=log.node,
            rank=log.rank, mode=log.mode, errors=log.errors,
        )  # fmt: skip
        return copy, self.cut(log, at_ns=at_ns)

    def cut(self, log: Log, *, at_ns: int, how: str = "cut") -> Log:
        """Truncated to nothing in place. What goes on under its name."""
        full = self.full(*log.place)
        os.truncate(full, 0)
        os.utime(full, ns=(at_ns, at_ns))
        new = self._succeed(log, how)
        new.mtime_ns, new.inode, new.fd = at_ns, log.inode, log.fd
        log.fd = None
        return new

    def rewrite(self, log: Log, content: bytes, *, at_ns: int) -> Log:
        """The whole file anew, in place, as a trainer writes its state."""
        new = self.cut(log, at_ns=at_ns, how="rewritten")
        self.append(new, content, at_ns=at_ns)
        return new

    def delete(self, log: Log, *, how: str = "deleted") -> None:
        self.finish(log)
        os.unlink(self.full(*log.place))
        del self.logs[log.place]
        log.ended = how

    def link(self, log: Log, path: bytes) -> None:
        """A second name: no file of one name alone any more."""
        os.link(self.full(*log.place), self.full(log.source, path))
        log.has_links = True

    def unlink_name(self, log: Log, path: bytes) -> None:
        """The second name goes again."""
        os.unlink(self.full(log.source, path))
        log.has_links = False

    # --- what is no log -----------------------------------------------------------------------------------------------

    def put_foreign(self, source: str, path: bytes, content: bytes, *, at_ns: int) -> None:
        full = self.full(source, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        Path(os.fsdecode(full)).write_bytes(content)
        os.utime(full, ns=(at_ns, at_ns))
        self.watch(full)

    def put_link(self, source: str, path: bytes, target: bytes) -> None:
        full = self.full(source, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        os.symlink(target, full)
        self.watch(full)

    def put_pipe(self, source: str, path: bytes) -> None:
        full = self.full(source, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        os.mkfifo(full)
        self.watch(full)

    def watch(self, full: bytes) -> None:
        """From now on it must stay as it is."""
        self.foreign[full] = Foreign(_look(full))

    def changed_foreign(self) -> Iterator[bytes]:
        """Those that are not as they were."""
        for full, foreign in self.foreign.items():
            try:
                if _look(full) != foreign.facts:
                    yield full
            except FileNotFoundError:
                yield full

    # --- remembering --------------------------------------------------------------------------------------------------

    def content(self, log: Log) -> bytes:
        return Path(os.fsdecode(self.full(*log.place))).read_bytes()

    def took(self, log: Log) -> None:
        """The command took it away: its name is free."""
        log.left = True
        del self.logs[log.place]

    def put_back(self, log: Log) -> Log:
        """A restore put it where it was: the same content once more, as another log of the books."""
        new = self._remember(log.source, log.path, log.kind, log.team, log.job, log.node, log.rank, log.mode)
        facts = os.stat(self.full(*log.place))
        new.size, new.hash, new.lines, new.errors = log.size, log.hash.copy(), log.lines, list(log.errors)
        new.mtime_ns, new.inode, new.blocks = log.mtime_ns, facts.st_ino, facts.st_blocks * 512
        return new

    def _succeed(self, log: Log, how: str) -> Log:
        log.ended = how
        return self._remember(log.source, log.path, log.kind, log.team, log.job, log.node, log.rank, log.mode)

    def _remember(
        self, source: str, path: bytes, kind: str, team: str, job: str, node: str, rank: int | None, mode: int
    ) -> Log:
        log = Log(
            number=len(self.all_logs), source=source, path=path, kind=kind, team=team, job=job, node=node, rank=rank,
            mode=mode,
        )  # fmt: skip
        self.all_logs.append(log)
        self.logs[log.place] = log
        return log


def count_lines(content: bytes) -> int:
    """As people see them: a bare carriage return ends one, too."""
    return len(_LINE.findall(content))


def _look(full: bytes) -> tuple[object, ...]:
    facts = os.lstat(full)
    said = (facts.st_mode, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_nlink)
    if os.path.islink(full):
        return (*said, os.readlink(full))
    if not os.path.isfile(full):
        return said
    with open(full, "rb") as file:
        return (*said, hashlib.file_digest(file, "sha256").digest())
