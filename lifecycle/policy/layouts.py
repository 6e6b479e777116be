"""Labels and class of a file from its path: a source's ``under`` template, its layouts in order, the class patterns.

``SourceLayouts.enter`` is called once a folder and does what the folder allows ahead; ``DirectoryLayout.claim`` is
called once a new file and takes some microseconds. Nothing is claimed below a hidden folder, under a hidden or
temporary name, or where no layout fits: such files are foreign. Pure: bytes in, values out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from lifecycle.model import OUR_FOLDER, UNKNOWN_TEAM, Labels, RuleRef
from lifecycle.names import show_name
from lifecycle.policy.builtin import BUILT_IN
from lifecycle.policy.match import STANDARD_LABELS, ClassMatcher, PathPatterns
from lifecycle.policy.never import is_never_claimed
from lifecycle.policy.reading import FolderRead, Known, Layout, NameRead, NameReader, Parts
from lifecycle.policy.rotation import rotation_bases
from lifecycle.policy.rules import Policy, SourceRule
from lifecycle.policy.template import STREAMS, Template, parse_template

# logrotate's olddir has no usual name; below one of these a rotation is read as if it lay beside its live file.
_OLD_FOLDERS: Final = frozenset((b"old", b"olddir", b"oldlogs", b"rotated", b"archive", b"archived"))
HOST: Final = "{host}"  # in a source's labels: the name of the host that scans


@dataclass(frozen=True, slots=True)
class Claim:
    """A file that a layout takes for a log: what its path says, and which class governs it."""

    labels: Labels
    class_name: str
    class_rule: RuleRef
    layout: str
    rotation_base: bytes | None  # the set's name when this name has rotation or compression endings


class SourceLayouts:
    """The layouts of one source on one host, compiled. Raises ValueError on what ``load_policy`` would refuse."""

    def __init__(self, policy: Policy, source: SourceRule, host: str) -> None:
        self.team_of: Callable[[str], str] = policy.team_of
        self.classes = ClassMatcher(policy.matches)
        self.exclude = PathPatterns(source.exclude)
        self.fixed: dict[str, str] = {key: value.replace(HOST, host) for key, value in source.labels.items()}
        self.under: Template | None = parse_template(source.under, may_float=False) if source.under else None
        self.layouts: tuple[Layout, ...] = tuple(open_layout(name) for name in source.layouts)
        above = self.under.labels if self.under is not None else ()
        self.known: frozenset[str] = frozenset(above) | frozenset(self.fixed)

    def enter(self, directory: bytes) -> DirectoryLayout:
        """How names in this folder (relative to the root, b'' for the root itself) are read. Never fails."""
        return DirectoryLayout(self, directory)


@dataclass(slots=True)
class _Above:
    """What the ``under`` part of a folder says."""

    fits: bool
    parts: Parts  # below it
    left: Parts  # of it, for class patterns
    values: dict[str, bytes]


def _read_under(under: Template | None, parts: Parts) -> _Above:
    if under is None:
        return _Above(True, parts, (), {})
    values: dict[str, bytes] = {}
    left = []
    for component, part in zip(under.components, parts, strict=False):
        read = component.read(part)
        if read is None:
            return _Above(False, (), (), {})
        values.update(read.values)
        if read.left:
            left.append(read.left)
    return _Above(True, parts[len(under.components) :], tuple(left), values)


class DirectoryLayout:
    """One folder of a source. ``excluded``: the scan need not go in."""

    __slots__ = ("_classes", "_directory", "_file_excludes", "_readers", "_readers_above", "excluded")

    def __init__(self, source: SourceLayouts, directory: bytes) -> None:
        parts: Parts = tuple(directory.split(b"/")) if directory else ()
        self._directory = directory
        self.excluded: bool = OUR_FOLDER in parts[:1] or (bool(parts) and _is_excluded(source.exclude, parts))
        self._file_excludes = source.exclude if source.exclude.touches_files else None
        self._classes = source.classes
        self._readers: list[tuple[NameReader, _Reader]] = []
        self._readers_above: list[tuple[NameReader, _Reader]] = []  # of an olddir: those of the live files' folder
        if self.excluded or any(part.startswith(b".") for part in parts):
            return
        above = _read_under(source.under, parts)
        if not above.fits:
            return
        self._readers = _open_readers(source, above, above.parts)
        if above.parts and above.parts[-1] in _OLD_FOLDERS:
            self._readers_above = _open_readers(source, above, above.parts[:-1])

    def claim(self, name: bytes) -> Claim | None:
        """What a file of this name is; None when it is foreign, temporary or excluded."""
        if not self._readers or not name or is_never_claimed(name):
            return None
        if self._file_excludes is not None and self._file_excludes.matches(_join(self._directory, name)):
            return None
        bases: tuple[bytes, ...] | None = None
        if self._readers_above:
            bases = rotation_bases(name)
            for read_name, reader in self._readers_above:
                for base in bases:
                    read = read_name(base)
                    if read is not None:
                        return self._make(reader, read, base)
        for read_name, reader in self._readers:
            read = read_name(name)
            if read is not None:
                return self._make(reader, read, None)
            if bases is None:
                bases = rotation_bases(name)
            for base in bases:
                read = read_name(base)
                if read is not None:
                    return self._make(reader, read, base)
        return None

    def _make(self, reader: _Reader, read: NameRead, base: bytes | None) -> Claim:
        labels = reader.labels(read)
        choice = self._classes.choose(reader.left_prefix + read.left, labels)
        return Claim(labels, choice.class_name, choice.rule, reader.layout, base)


def _open_readers(source: SourceLayouts, above: _Above, parts: Parts) -> list[tuple[NameReader, _Reader]]:
    known = frozenset(above.values) | frozenset(source.fixed)
    readers = []
    for layout in source.layouts:
        folder = layout.enter(parts, known)
        if folder is not None:
            reader = _Reader(layout.name, folder, above, source.fixed, source.team_of)
            readers.append((folder.read_name, reader))
    return readers


def _is_excluded(exclude: PathPatterns, parts: Parts) -> bool:
    return exclude.matches(b"/".join(parts) + b"/")


def _join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


@lru_cache(maxsize=16_384)
def _text(raw: bytes) -> str:
    return show_name(raw)


class _Reader:
    """One layout in one folder, with everything that the folder already decides."""

    __slots__ = (
        "_attempt",
        "_extra",
        "_job",
        "_last",
        "_last_said",
        "_node",
        "_rank",
        "_stream",
        "_team",
        "_team_of",
        "layout",
        "left_prefix",
    )

    def __init__(
        self,
        layout: str,
        folder: FolderRead,
        above: _Above,
        fixed: Mapping[str, str],
        team_of: Callable[[str], str],
    ) -> None:
        self.layout = layout
        self.left_prefix: bytes = b"".join(part + b"/" for part in (*above.left, *folder.left))
        over = {label: _text(raw) for label, raw in above.values.items()}
        said = {**fixed, **over}
        team = _text(folder.team) if folder.team is not None else said.get("team", UNKNOWN_TEAM)
        self._team_of = team_of
        self._team: str = team_of(team)
        self._job: str = _text(folder.job) if folder.job is not None else said.get("job", "")
        self._node: str = _text(folder.node) if folder.node is not None else said.get("node", "")
        self._attempt: str = _text(folder.attempt) if folder.attempt is not None else said.get("attempt", "")
        self._rank: int | None = folder.rank if folder.rank is not None else _rank(said.get("rank"))
        self._stream: str = STREAMS.get(said.get("stream", "").encode(), "")
        extra = [(label, value) for label, value in said.items() if label not in STANDARD_LABELS]
        extra.extend((label, _text(raw)) for label, raw in folder.extra)
        self._extra: tuple[tuple[str, str], ...] = tuple(extra)
        self._last_said: tuple[object, ...] | None = None
        self._last = Labels()

    def labels(self, read: NameRead) -> Labels:
        """Labels of one file. Names in one folder often say the same, so that the last answer is kept."""
        said = read[1:]
        if said == self._last_said:
            return self._last
        extra = self._extra
        if read.extra:
            extra = extra + tuple([(label, _text(raw)) for label, raw in read.extra])
        labels = Labels(
            team=self._team if read.team is None else self._team_of(_text(read.team)),
            job=self._job if read.job is None else _text(read.job),
            node=self._node if read.node is None else _text(read.node),
            rank=self._rank if read.rank is None else read.rank,
            stream=read.stream or self._stream,
            attempt=self._attempt if read.attempt is None else _text(read.attempt),
            extra=extra,
        )
        self._last_said, self._last = said, labels
        return labels


def _rank(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and text.isascii() and len(text) < 10 else None


def open_layout(text: str) -> Layout:
    """A built-in layout by its name, or an own pattern. Raises ValueError."""
    built_in = BUILT_IN.get(text)
    return built_in if built_in is not None else _own_layout(parse_template(text))


def _own_layout(template: Template) -> Layout:
    """A layout that reads what an own pattern says: each folder by its component, the name by the last one."""
    *folders, last = template.components
    depth = len(folders)

    def read_name(name: bytes) -> NameRead | None:
        read = last.read(name)
        return None if read is None else _to_name_read(read.values, read.left)

    def enter(parts: Parts, known: Known) -> FolderRead | None:
        if len(parts) < depth or (len(parts) > depth and not template.floats):
            return None
        skipped = len(parts) - depth
        left = list(parts[:skipped])
        values: dict[str, bytes] = {}
        for component, part in zip(folders, parts[skipped:], strict=True):
            read = component.read(part)
            if read is None:
                return None
            values.update(read.values)
            if read.left:
                left.append(read.left)
        stream = values.pop("stream", None)
        rank = values.pop("rank", None)
        extra = [(label, raw) for label, raw in values.items() if label not in STANDARD_LABELS]
        return FolderRead(
            _with_stream(read_name, stream),
            tuple(left),
            team=values.get("team"),
            job=values.get("job"),
            node=values.get("node"),
            rank=None if rank is None else int(rank),
            attempt=values.get("attempt"),
            extra=tuple(extra),
        )

    return Layout(name=template.text, says="an own pattern", enter=enter, samples=())


def _with_stream(
    read_name: Callable[[bytes], NameRead | None], stream: bytes | None
) -> Callable[[bytes], NameRead | None]:
    if stream is None:
        return read_name

    def read(name: bytes) -> NameRead | None:
        found = read_name(name)
        return None if found is None else found._replace(stream=STREAMS[stream])

    return read


def _to_name_read(values: tuple[tuple[str, bytes], ...], left: bytes) -> NameRead:
    if not values:
        return NameRead(left)
    if len(values) == 1 and values[0][0] == "rank":  # by far the most common: made without a detour
        return NameRead(left, rank=int(values[0][1]))
    said = dict(values)
    rank, stream = said.get("rank"), said.get("stream")
    return NameRead(
        left,
        job=said.get("job"),
        node=said.get("node"),
        rank=None if rank is None else int(rank),
        stream="" if stream is None else STREAMS[stream],
        attempt=said.get("attempt"),
        extra=tuple([(label, raw) for label, raw in values if label not in STANDARD_LABELS]),
        team=said.get("team"),
    )
