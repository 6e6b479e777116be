"""YAML text to a tree of nodes that know their lines. Every scalar stays text; what it means is the schema's business.

Stricter than YAML: duplicate keys, tags, several documents and keys that are no text are mistakes. Anchors, aliases
and merge keys (``<<``) work, within limits on size, depth and expansion, so that no file can take the memory. All
mistakes of a file are collected where parsing can go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import yaml

from lifecycle.model import RuleRef
from lifecycle.policy.rules import DEFAULT

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 20
MAX_NODES: Final = 20_000  # with every alias written out
_SHOWN: Final = 160  # characters of a line that a RuleRef carries

Loc: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One thing wrong in one line of one file."""

    file: str
    line: int
    message: str
    hint: str

    def render(self, prefix: str = "") -> str:
        """``policies/platform.yaml:13: message  HINT: what to do``; ``prefix`` is the folder as the user named it."""
        return f"{prefix}{self.file}:{self.line}: {self.message}  HINT: {self.hint}"


@dataclass(frozen=True, slots=True)
class Scalar:
    text: str
    line: int
    size: int = 1
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]
    line: int
    size: int
    depth: int
    is_partial: bool = False  # something wrong was taken out


@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    line: int  # of the key: what is shown for the figure, also when a merge brought it here
    value: Node


@dataclass(frozen=True, slots=True)
class Table:
    entries: Mapping[str, Entry]
    line: int
    size: int
    depth: int
    is_partial: bool = False


Node: TypeAlias = Scalar | Sequence | Table


class _Stop(Exception):
    """The rest of the file cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One file of a policy. ``file`` is its name within the folder, as rules show it: ``teams/vision.yaml``."""

    file: str
    text: str  # as it stands in the file, before ${VAR}
    root: Node | None  # None when the file could not be read as YAML
    mistakes: tuple[Mistake, ...] = ()

    def line_of(self, loc: Loc) -> int:
        """The line where ``("classes", 1, "expire_after")`` stands, or the nearest place above it that exists."""
        node, line = self.root, 1 if self.root is None else self.root.line
        for step in loc:
            if isinstance(node, Table) and isinstance(step, str) and step in node.entries:
                line, node = node.entries[step].line, node.entries[step].value
            elif isinstance(node, Sequence) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
                line = node.line
            else:
                break
        return line

    def node_at(self, loc: Loc) -> Node | None:
        node = self.root
        for step in loc:
            if isinstance(node, Table) and isinstance(step, str) and step in node.entries:
                node = node.entries[step].value
            elif isinstance(node, Sequence) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            else:
                return None
        return node

    def ref(self, loc: Loc) -> RuleRef:
        line = self.line_of(loc)
        lines = self.text.splitlines()
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        return RuleRef(file=self.file, line=line, text=text[:_SHOWN])

    def given_ref(self, loc: Loc) -> RuleRef | None:
        """The line of a figure; None when the file does not give it."""
        return self.ref(loc) if self.node_at(loc) is not None else None

    def figure_ref(self, loc: Loc) -> RuleRef:
        """The line of a figure; where the file leaves it out, the line of what it belongs to, marked as a default."""
        ref = self.ref(loc)
        return ref if self.node_at(loc) is not None else replace(ref, text=DEFAULT)

    def mistake(self, loc: Loc, message: str, hint: str) -> Mistake:
        return Mistake(file=self.file, line=self.line_of(loc), message=message, hint=hint)

    def without(self, locs: Iterable[Loc], *, is_partial: bool = True) -> Document:
        """The document less these places; what they stood in is marked, so that nobody misses them there again."""
        gone = set(locs)
        if not gone or self.root is None:
            return self
        return replace(self, root=_without(self.root, (), gone, is_partial))

    def is_partial(self, loc: Loc) -> bool:
        node = self.node_at(loc)
        return isinstance(node, Sequence | Table) and node.is_partial

    def data(self, environ: Mapping[str, str]) -> tuple[object, tuple[tuple[Loc, Mistake], ...]]:
        """Plain mappings, lists and text with ``${VAR}`` filled in, and the places where that could not be done."""
        if self.root is None:
            return None, ()
        filler = _Filler(self.file, environ, [])
        return _plain(self.root, (), filler), tuple(filler.found)


def _without(node: Node, loc: Loc, gone: set[Loc], is_partial: bool) -> Node:
    if isinstance(node, Scalar):
        return node
    if isinstance(node, Sequence):
        steps: dict[str | int, Node] = dict(enumerate(node.items))
    else:
        steps = {key: entry.value for key, entry in node.entries.items()}
    kept = {
        step: _without(inner, (*loc, step), gone, is_partial)
        for step, inner in steps.items()
        if (*loc, step) not in gone
    }
    marked = node.is_partial or (is_partial and len(kept) < len(steps))
    if isinstance(node, Sequence):
        return replace(node, items=tuple(kept.values()), is_partial=marked)
    entries = {key: replace(entry, value=kept[key]) for key, entry in node.entries.items() if key in kept}
    return replace(node, entries=entries, is_partial=marked)


def parse_document(file: str, raw: bytes) -> Document:
    """Read one file. Never raises; what is wrong is in ``mistakes``, and ``root`` is None where nothing can be used."""
    if len(raw) > MAX_BYTES:
        hint = f"a policy file may have {MAX_BYTES // 1024} KiB; split it or remove what is not policy"
        return _unread(file, "", 1, f"file has {len(raw):,} bytes", hint)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return _unread(file, "", line, f"byte {raw[error.start]:#04x} is not UTF-8", "save the file as UTF-8")
    composer = _Composer(file)
    try:
        root = composer.compose(text)
    except _Stop:
        root = None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(filter(None, (error.context, error.problem)))
        line = 0 if mark is None else mark.line
        has_variable = "${" in "".join(text.splitlines()[line : line + 1])
        hint = (
            'inside { } put quotes around ${VAR}: "${VAR}"' if has_variable else "check indentation, colons and quotes"
        )
        composer.add(line, f"not YAML: {said}", hint)
        root = None
    except yaml.YAMLError as error:
        said = str(error).splitlines()[0] if str(error) else "unreadable"
        composer.add(0, f"not YAML: {said}", "remove control characters from the file")
        root = None
    return Document(file=file, text=text, root=root, mistakes=tuple(composer.mistakes))


def _unread(file: str, text: str, line: int, message: str, hint: str) -> Document:
    return Document(
        file=file, text=text, root=None, mistakes=(Mistake(file=file, line=line, message=message, hint=hint),)
    )


def _line(event: yaml.Event) -> int:
    return 0 if event.start_mark is None else event.start_mark.line


class _Composer:
    """Events to nodes. Depth is bounded before Python's stack is; expansion is counted, not carried out."""

    def __init__(self, file: str) -> None:
        self.mistakes: list[Mistake] = []
        self._file = file
        self._anchors: dict[str, Node] = {}
        self._open: set[str] = set()
        self._events: Iterator[yaml.Event] = iter(())

    def add(self, line: int, message: str, hint: str) -> None:
        self.mistakes.append(Mistake(file=self._file, line=line + 1, message=message, hint=hint))

    def compose(self, text: str) -> Node | None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events = yaml.parse(text, Loader=loader)
        root: Node | None = None
        is_first = True
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if not is_first:
                    self.add(_line(event), "a second YAML document", "keep one document a file: remove ---")
                    raise _Stop
                is_first = False
                root = self._node(next(self._events), 1)
        if root is None:
            self.add(0, "file is empty", "write a policy, or remove the file")
        return root

    def _node(self, event: yaml.Event, depth: int) -> Node:
        line = _line(event)
        if depth > MAX_DEPTH:
            self.add(line, f"nested deeper than {MAX_DEPTH} levels", "a policy needs five; flatten this")
            raise _Stop
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        tag = getattr(event, "tag", None)
        if tag is not None:
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            self.add(line, f"tag {shown} is not allowed", "write the plain value; a policy is data")
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self._open.add(anchor)
        node: Node
        if isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(line, depth)
        elif isinstance(event, yaml.MappingStartEvent):
            node = self._table(line, depth)
        elif isinstance(event, yaml.ScalarEvent):
            node = Scalar(event.value, line + 1)
        else:
            raise AssertionError(f"no node begins with {event}")
        if anchor is not None:
            self._open.discard(anchor)
            self._anchors[anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Node:
        name, line = event.anchor or "", _line(event)
        node = self._anchors.get(name)
        if node is None:
            where = "stands inside its own anchor" if name in self._open else "has no anchor above it"
            self.add(line, f"alias *{name} {where}", f"write &{name} before it, on what it shall repeat")
            raise _Stop
        if depth + node.depth > MAX_DEPTH:
            self.add(line, f"nested deeper than {MAX_DEPTH} levels through *{name}", "write it out flatter")
            raise _Stop
        return node

    def _bounded(self, size: int, line: int) -> int:
        if size > MAX_NODES:
            self.add(
                line, f"more than {MAX_NODES:,} values with its aliases written out", "repeat less through aliases"
            )
            raise _Stop
        return size

    def _sequence(self, line: int, depth: int) -> Sequence:
        items: list[Node] = []
        size, inner = 1, 0
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            node = self._node(event, depth + 1)
            items.append(node)
            size, inner = self._bounded(size + node.size, line), max(inner, node.depth)
        return Sequence(tuple(items), line + 1, size, inner + 1)

    def _table(self, line: int, depth: int) -> Table:
        entries: dict[str, Entry] = {}
        merges: list[Table] = []
        merge_line: int | None = None
        size, inner = 1, 0
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            value = self._node(next(self._events), depth + 1)
            size, inner = self._bounded(size + key.size + value.size, line), max(inner, value.depth)
            if not isinstance(key, Scalar):
                self.add(key.line - 1, "a key that is a list or a mapping", "write a name before the colon")
            elif key.text == "<<" and getattr(event, "style", None) in (None, ""):
                if merge_line is not None:
                    self.add(key.line - 1, f"key '<<' is here twice, first in line {merge_line}", "write <<: [*a, *b]")
                merge_line = key.line
                merges.extend(self._merged(value, key.line))
            elif key.text in entries:
                first = entries[key.text].line
                self.add(
                    key.line - 1,
                    f"key {key.text!r} is here twice, first in line {first}",
                    f"keep one of lines {first} and {key.line}; only the last would have counted",
                )
            else:
                entries[key.text] = Entry(key.text, key.line, value)
        for merged in merges:  # a key's own value wins, then the first merge that has one
            for name, entry in merged.entries.items():
                entries.setdefault(name, entry)
        return Table(entries, line + 1, size, inner + 1)

    def _merged(self, value: Node, line: int) -> Iterator[Table]:
        for node in value.items if isinstance(value, Sequence) else (value,):
            if isinstance(node, Table):
                yield node
            else:
                self.add(line - 1, "'<<' takes in something that is no mapping", "write <<: *name of a mapping")


_VARIABLE: Final = re.compile(r"\$(?:(\$)|\{([^}]*)(\}?))")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class _Filler:
    file: str
    environ: Mapping[str, str]
    found: list[tuple[Loc, Mistake]]

    def fill(self, scalar: Scalar, loc: Loc) -> str:
        """The text with ``${VAR}`` filled in; ``$$`` is a dollar."""

        def value(match: re.Match[str]) -> str:
            if match[1]:
                return "$"
            name = match[2]
            if not match[3] or not _NAME.match(name):
                self._add(scalar, loc, f"${{{name}{match[3]} is no variable", "write ${NAME}, or $$ for a dollar sign")
                return ""
            text = self.environ.get(name, "")
            if not text:
                state = "set, but empty" if name in self.environ else "not set"
                hint = f"set {name} where lifecycle runs, or write the value here"
                self._add(scalar, loc, f"variable {name} is {state}", hint)
            return text

        return _VARIABLE.sub(value, scalar.text) if "$" in scalar.text else scalar.text

    def _add(self, scalar: Scalar, loc: Loc, message: str, hint: str) -> None:
        self.found.append((loc, Mistake(file=self.file, line=scalar.line, message=message, hint=hint)))


def _plain(node: Node, loc: Loc, filler: _Filler) -> object:
    match node:
        case Scalar():
            return filler.fill(node, loc)
        case Sequence():
            return [_plain(item, (*loc, index), filler) for index, item in enumerate(node.items)]
        case Table():
            return {key: _plain(entry.value, (*loc, key), filler) for key, entry in node.entries.items()}
