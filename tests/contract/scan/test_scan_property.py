"""Whatever is done to a tree between scans, the catalog agrees with it afterwards."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lifecycle.catalog.store import copy_for_preview
from tests.builders import NOON
from tests.contract.scan.tree import Tree

_names = st.sampled_from(
    [b"vis/a/x.log", b"vis/a/x.log.1", b"vis/a/y.log", b"vis/b/x.log", b"vis/b/core.bin", b"nlp/c/\xff.log"]
)
_content = st.sampled_from([b"", b"one\n" * 3, b"two\n" * 3, b"one\n" * 4000, b"\x00\x01\x02"])


class AnyTree(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.catalog = copy_for_preview(None, now=NOON)
        self.tree = Tree(self.catalog, Path(self.folder.name) / "logs")
        self.is_scanned = True
        for folder in (b"vis/a", b"vis/b", b"nlp/c"):
            os.makedirs(self.at(folder))

    def at(self, path: bytes) -> bytes:
        return os.fsencode(self.tree.root) + b"/" + path

    @rule(path=_names, content=_content)
    def write(self, path: bytes, content: bytes) -> None:
        self.tree.write(path, content)
        self.is_scanned = False

    @rule(path=_names)
    def append(self, path: bytes) -> None:
        if os.path.exists(self.at(path)):
            with open(self.at(path), "ab") as file:
                file.write(b"more\n")
            self.is_scanned = False

    @rule(old=_names, new=_names)
    def move(self, old: bytes, new: bytes) -> None:
        if os.path.exists(self.at(old)):
            os.rename(self.at(old), self.at(new))
            self.is_scanned = False

    @rule(path=_names)
    def remove(self, path: bytes) -> None:
        if os.path.exists(self.at(path)):
            os.unlink(self.at(path))
            self.is_scanned = False

    @rule(path=_names, other=_names)
    def link(self, path: bytes, other: bytes) -> None:
        if os.path.exists(self.at(path)) and not os.path.exists(self.at(other)):
            os.link(self.at(path), self.at(other))
            self.is_scanned = False

    @rule(after=st.sampled_from([None, "2h"]))
    def scan(self, after: str | None) -> None:
        assert self.tree.scan(after).complete
        self.is_scanned = True

    @invariant()
    def sums_agree(self) -> None:
        if hasattr(self, "tree"):
            self.tree.assert_sums_agree()

    @invariant()
    def each_log_is_one_segment_as_it_is(self) -> None:
        if not hasattr(self, "tree") or not self.is_scanned:
            return
        rows = self.tree.rows()
        for path in (b"vis/a/x.log", b"vis/a/x.log.1", b"vis/a/y.log", b"vis/b/x.log", b"nlp/c/\xff.log"):
            row, here = rows.get(path), os.path.exists(self.at(path))
            if not here:
                assert row is None or row.original == "missing"
                continue
            facts = os.stat(self.at(path))
            with open(self.at(path), "rb") as file:
                is_log = facts.st_nlink == 1 and b"\x01" not in file.read()
            if is_log:
                assert row is not None
                assert row.original != "missing"
            if row is not None and row.original != "missing":
                assert (row.inode, row.size, row.mtime_ns) == (facts.st_ino, facts.st_size, facts.st_mtime_ns)
                assert facts.st_nlink == 1 or row.original == "open"
        assert b"vis/b/core.bin" not in rows

    def teardown(self) -> None:
        if hasattr(self, "tree"):
            self.catalog.close()
            self.folder.cleanup()


AnyTree.TestCase.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnyTree = AnyTree.TestCase
