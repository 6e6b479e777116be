"""Whether the files of a folder still wait for something beside them: ``policy.waiting`` says for what.

Knows folders and the first bytes of a file in them. What cannot be looked at is waited for.
"""

from __future__ import annotations

import os
from typing import Final

from lifecycle.errors import Skipped
from lifecycle.policy.waiting import Awaited, awaited
from lifecycle.scan.handles import Root
from lifecycle.scan.sniff import open_quietly

_READ_BYTES: Final = 64 * 1024
_REMEMBERED: Final = 100_000


class Waiting:
    """One scan's answers, each folder looked at once. Not for several threads at once."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._answers: dict[bytes, bool] = {}

    def holds(self, directory: bytes) -> bool:
        """Whether nothing in this folder is finished yet, however quiet it is."""
        found = awaited(directory)
        if found is None:
            return False
        answer = self._answers.get(found.folder)
        if answer is None:
            answer = not self._is_over(found)
            if len(self._answers) < _REMEMBERED:
                self._answers[found.folder] = answer
        return answer

    def _is_over(self, found: Awaited) -> bool:
        try:
            fd = self._root.directory(found.folder)
            names = [os.fsencode(name) for name in os.listdir(fd)]
            return found.rule.is_over(names, lambda name: _read_start(name, fd))
        except (OSError, Skipped):
            return False


def _read_start(name: bytes, folder_fd: int) -> bytes:
    fd = open_quietly(name, folder_fd)
    try:
        return os.read(fd, _READ_BYTES)
    finally:
        os.close(fd)
