"""Paths of a policy: made absolute, and refused where a clean-up below them could reach what it must not.

Looks at the file system for links and bind mounts, and changes nothing. A path that does not exist yet is judged by
its name. Relative paths are relative to the policies folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from lifecycle.policy.document import Document, Loc, Mistake
from lifecycle.policy.schema import Wrong

# Never the root of a place, whatever lies there.
_SYSTEM: Final = frozenset(
    {
        *("/", "/bin", "/boot", "/dev", "/dev/shm", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/root"),
        *("/run", "/sbin", "/tmp", "/usr", "/usr/lib", "/usr/local", "/usr/share", "/var", "/var/lib", "/var/log"),
        *("/var/run", "/var/tmp", "/Users", "/Library", "/System", "/private"),
    }
)
_KERNEL: Final = ("/proc", "/sys")
_HOMES: Final = ("/home", "/Users")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://")
_SQLITE: Final = "sqlite:///"


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A directory that bytes leave or go to, and where policy says so."""

    what: str  # "source lustre", "tier warm"
    path: str  # absolute, normal
    loc: Loc


def resolve_path(text: str, base: str) -> str:
    """Absolute and normal. Raises Wrong on what cannot be meant."""
    scheme = _SCHEME.match(text)
    if scheme is not None:
        raise Wrong(f"path: {scheme[1]}:// is not yet there", "write a local directory")
    if text.startswith("~"):
        raise Wrong(f"path: {text!r} begins with ~", "write the path in full: cron has another home")
    parts = PurePosixPath(text).parts
    if ".." in parts:
        raise Wrong(f"path: {text!r} has '..' in it", "write the path in full")
    if any(ord(char) < 32 for char in text):
        raise Wrong(f"path: {text!r} has a control character", "write the path in one line")
    if not parts:
        raise Wrong(f"path: {text!r} is the policies folder itself", "write the path in full")
    path = os.path.normpath(os.path.join(base, text))
    return path[1:] if path.startswith("//") else path


def resolve_catalog(text: str, base: str) -> str:
    """The catalog's URL with an absolute path. Raises Wrong."""
    scheme = _SCHEME.match(text)
    name = scheme[1] if scheme is not None else ""
    if name.partition("+")[0] in ("postgresql", "postgres", "mysql", "mariadb"):
        raise Wrong(f"catalog: {name} is not yet there", "write sqlite:////absolute/path.db")
    if not text.startswith(_SQLITE) or len(text) == len(_SQLITE) or "?" in text:
        hint = "write sqlite:////absolute/path.db, or sqlite:///path.db for one in the policies folder"
        raise Wrong(f"catalog: {text!r} is no file that SQLite can keep it in", hint)
    try:
        return _SQLITE + resolve_path(text.removeprefix(_SQLITE), base)
    except Wrong as error:
        raise Wrong(f"catalog: {str(error).removeprefix('path: ')}", error.hint) from None


def check_roots(
    roots: Sequence[Root], catalog_url: str, policies: str, document: Document, environ: Mapping[str, str]
) -> Iterator[Mistake]:
    """Roots that reach too far, roots within one another, and roots over the catalog or the policies."""
    catalog = catalog_url.removeprefix(_SQLITE)
    judged: list[tuple[Root, str]] = []
    for root in roots:
        real = os.path.realpath(root.path)
        reach = _reach(real, root.path, environ)
        if reach is not None:
            hint = "give the logs a directory of their own"
            yield document.mistake(root.loc, f"{root.what}: path {root.path} is {reach}", hint)
            continue
        for other, other_real in judged:
            relation = _relation(real, other_real)
            if relation is not None:
                where = f"{other.path}, the path of {other.what} in line {document.line_of(other.loc)}"
                message = f"{root.what}: path {root.path} {relation} {where}"
                yield document.mistake(root.loc, message, "sources and tiers need directories beside each other")
        judged.append((root, real))
        for what, path in (("catalog", catalog), ("policies folder", policies)):
            if _is_inside(os.path.realpath(path), real):
                message = f"{root.what}: path {root.path} holds the {what} {path}"
                yield document.mistake(root.loc, message, f"keep the {what} outside of sources and tiers")


def _reach(real: str, path: str, environ: Mapping[str, str]) -> str | None:
    """Why this can be nobody's log directory; None when it can."""
    for each in dict.fromkeys((path, real)):
        if each in _SYSTEM:
            return "a directory of the system"
        if any(_is_inside(each, kernel) for kernel in _KERNEL):
            return "the kernel's, not a disk"
        home = environ.get("HOME", "")
        if os.path.dirname(each) in _HOMES or (home.startswith("/") and each == os.path.normpath(home)):
            return "a home directory"
        if home.startswith("/") and _is_inside(os.path.normpath(home), each):
            return f"above the home directory {home}"
    return None


def _relation(here: str, there: str) -> str | None:
    if here == there or _is_same(here, there):
        return "is the same directory as"
    if _is_inside(here, there):
        return "lies inside"
    return "holds" if _is_inside(there, here) else None


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_same(path: str, other: str) -> bool:
    """Through a bind mount the names differ and device and inode do not."""
    try:
        return os.path.samestat(os.stat(path), os.stat(other))
    except OSError:
        return False
