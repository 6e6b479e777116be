"""The tiers as plain tools read them: every object unpacked with zstd and tar, nothing of the package used.

An object is never changed once it is there, so each is read once and remembered by name, size, time and inode.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import zstandard

MANIFEST = b".lifecycle/manifest.json"


class Member(NamedTuple):
    """One file as it comes out of an object."""

    digest: bytes
    size: int
    mtime: float
    mode: int | None  # None: the object is one file by itself, which has no header


@dataclass(frozen=True, slots=True)
class Object:
    """One stored object. ``members`` by SOURCE/PATH; of a single file by b"", its name is in no header."""

    size: int
    members: dict[bytes, Member]
    texts: dict[bytes, bytes]  # of what was kept of errors, which the books look into


@dataclass(slots=True)
class Tier:
    """The directory of one tier."""

    root: Path
    _known: dict[str, tuple[tuple[int, int, int], Object]] = field(default_factory=dict)

    def read(self) -> dict[str, Object]:
        """All objects by key, as they are now."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            if not path.is_file() or ".lifecycle" in path.parts[len(self.root.parts) :]:
                continue
            key, facts = str(path.relative_to(self.root)), path.stat()
            stamp = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
            known = self._known.get(key)
            if known is None or known[0] != stamp:
                known = self._known[key] = (stamp, unpack(path))
            found[key] = known[1]
        return found


def unpack(path: Path) -> Object:
    content = path.read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as reader:
        raw = reader.read()
    if not path.name.endswith(".tar.zst"):
        member = Member(hashlib.sha256(raw).digest(), len(raw), 0.0, None)
        return Object(len(content), {b"": member}, {})
    members, texts = {}, {}
    with tarfile.open(fileobj=io.BytesIO(raw), encoding="utf-8", errors="surrogateescape") as archive:
        for info in archive:
            name = info.name.encode("utf-8", "surrogateescape")
            file = archive.extractfile(info)
            assert file is not None and name not in members, f"{path}: {name!r} is twice in it, or no file"
            data = file.read()
            if name == MANIFEST:
                continue
            members[name] = Member(hashlib.sha256(data).digest(), len(data), float(info.mtime), info.mode)
            if name.endswith(b"#errors"):
                texts[name] = data
    return Object(len(content), members, texts)
