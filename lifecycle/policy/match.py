"""Which class governs a segment: gitignore patterns over what is left of its path, and globs over its labels.

All patterns of a policy run as one RE2 set: one pass over the name, linear in its length whatever a pattern looks
like (``a*a*a*b`` included). Names are bytes and need not be UTF-8; a pattern's text counts as its UTF-8 bytes, so
``?`` is one byte, as in git. Pure: knows patterns and labels, never a file system.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

import re2
from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from lifecycle.model import Labels, RuleRef
from lifecycle.policy.rules import MatchRule

MAX_PATTERN: Final = 500  # bytes of one pattern; a file name has at most 255
STANDARD_LABELS: Final = ("team", "job", "node", "rank", "stream", "attempt")
_LABEL_GLOB: Final = re.compile(r"([a-z][a-z0-9_]*):(?!/)(.+)\Z", re.DOTALL)
_CACHE_LIMIT: Final = 65_536


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = options.Encoding.LATIN1  # one character, one byte
    options.dot_nl = True  # names may hold newlines
    options.never_capture = True
    options.log_errors = False
    options.max_mem = 64 << 20  # room for the states that many stars make
    return options


def split_label_glob(pattern: str) -> tuple[str, str] | None:
    """``job:eval-*`` as (label, glob); None for a path pattern. A colon after anything else is part of a name."""
    match = _LABEL_GLOB.match(pattern)
    return (match[1], match[2]) if match else None


def _path_regex(pattern: str) -> tuple[bytes, bool]:
    raw = pattern.encode("utf-8", "surrogateescape")
    if len(raw) > MAX_PATTERN:
        raise ValueError(f"pattern is {len(raw)} bytes long; at most {MAX_PATTERN} are allowed")
    if raw != raw.strip() or not raw or raw.startswith(b"#"):
        raise ValueError(f"pattern {pattern!r} is empty, a comment, or has spaces around it")
    if raw[-1:] in (b"\xa0", b"\x85"):  # the last byte of a UTF-8 character that a text tool takes for a space
        raw = raw[:-1] + b"[" + raw[-1:] + b"]"
    try:
        regex, is_positive = GitIgnoreSpecPattern.pattern_to_regex(raw)
    except GitIgnorePatternError:
        regex, is_positive = None, None
    if regex is None or is_positive is None:
        raise ValueError(f"pattern {pattern!r} is not a gitignore pattern that can match anything")
    return regex, is_positive


def _glob_regex(glob: str) -> bytes:
    """A glob over a whole label value: ``*``, ``?``, ``[a-z]``, ``[!a]``, backslash."""
    # A gitignore pattern of one component says the same; a slash in a value is read as any other character.
    regex, is_positive = _path_regex("/" + re.sub(r"\*+", "*", glob.replace("/", "\x00")))
    if not is_positive:
        raise ValueError(f"glob {glob!r} cannot be negated")
    return regex


def check_pattern(pattern: str) -> str:
    """The pattern, if it is one that a ``match`` list may hold. Raises ValueError with the reason."""
    split = split_label_glob(pattern)
    if split is None:
        regex, _ = _path_regex(pattern)
    else:
        if split[1].startswith("!"):
            raise ValueError(f"pattern {pattern!r}: a label's glob cannot be negated")
        regex = _glob_regex(split[1])
    _add(re2.Set.SearchSet(_options()), regex, pattern)
    return pattern


def check_path_pattern(pattern: str) -> str:
    """The pattern, if ``exclude`` may hold it. Raises ValueError with the reason."""
    _add(re2.Set.SearchSet(_options()), _path_regex(pattern)[0], pattern)
    return pattern


def _add(patterns: re2.Set, regex: bytes, pattern: str) -> None:
    try:
        patterns.Add(regex)
    except Exception:  # RE2's own error type is no public name
        raise ValueError(f"pattern {pattern!r} cannot be compiled: is a bracket not closed?") from None


class _RegexSet:
    """Some regular expressions tried in one pass; ``hits`` gives the numbers of those that match, None for none."""

    __slots__ = ("hits",)

    def __init__(self, regexes: Sequence[tuple[bytes, str]]) -> None:
        compiled = re2.Set.SearchSet(_options())
        for regex, pattern in regexes:
            _add(compiled, regex, pattern)
        compiled.Compile()
        # A bound method, not a method that calls one: this is asked once for every new file.
        self.hits: Callable[[bytes], list[int] | None] = compiled.Match if regexes else _no_hits


def _no_hits(text: bytes) -> None:
    return None


class PathPatterns:
    """A list of gitignore patterns: the last one that matches decides, ``!`` takes back."""

    __slots__ = ("_positive", "_set", "touches_files")

    def __init__(self, patterns: Iterable[str]) -> None:
        compiled = [(pattern, *_path_regex(pattern)) for pattern in patterns]
        self._set = _RegexSet([(regex, pattern) for pattern, regex, _ in compiled])
        self._positive = [is_positive for _, _, is_positive in compiled]
        self.touches_files: bool = any(not pattern.endswith("/") for pattern, _, _ in compiled)

    def matches(self, path: bytes) -> bool:
        """Whether the list selects this path; a folder's path ends in a slash."""
        hits = self._set.hits(path)
        return self._positive[max(hits)] if hits else False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassChoice:
    """The class of a segment, the line that decided, and the pattern ('' where the last class took the rest)."""

    class_name: str
    rule: RuleRef
    pattern: str


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int  # over all lists of the policy
    choice: ClassChoice
    is_positive: bool


class _LabelGlobs:
    """The globs over one label, remembered by value: a job's name is asked for once for each of its files."""

    __slots__ = ("_cache", "_globs", "_name", "_numbers", "_value")

    def __init__(self, name: str, rows: Sequence[tuple[int, bytes, str]]) -> None:
        self._name = name
        self._value: Callable[[Labels], object] = attrgetter(name) if name in STANDARD_LABELS else self._extra
        self._globs = _RegexSet([(regex, pattern) for _, regex, pattern in rows])
        self._numbers = [number for number, _, _ in rows]
        self._cache: dict[object, tuple[int, ...]] = {}

    def numbers_for(self, labels: Labels) -> tuple[int, ...]:
        value = self._value(labels)
        numbers = self._cache.get(value)
        if numbers is None:
            text = "" if value is None else str(value)
            raw = text.encode("utf-8", "surrogateescape").replace(b"/", b"\x00")
            # No glob, not even *, matches a label that is not there.
            numbers = tuple(self._numbers[index] for index in (self._globs.hits(raw) if raw else None) or ())
            if len(self._cache) < _CACHE_LIMIT:
                self._cache[value] = numbers
        return numbers

    def _extra(self, labels: Labels) -> str:
        return next((value for name, value in labels.extra if name == self._name), "")


class ClassMatcher:
    """The ``match`` lists of a policy, tried in their order; within one list the last match decides, as in git."""

    def __init__(self, matches: Sequence[MatchRule]) -> None:
        if not matches:
            raise ValueError("a policy without classes classifies nothing")
        self._lists: list[list[_Entry]] = []
        self._path_numbers: list[int] = []
        paths: list[tuple[bytes, str]] = []
        globs: dict[str, list[tuple[int, bytes, str]]] = {}
        number = 0
        for rule in matches:
            entries = []
            for position, pattern in enumerate(rule.patterns):
                is_positive, label = True, split_label_glob(pattern)
                if label is None:
                    regex, is_positive = _path_regex(pattern)
                    paths.append((regex, pattern))
                    self._path_numbers.append(number)
                else:
                    globs.setdefault(label[0], []).append((number, _glob_regex(label[1]), pattern))
                at = rule.pattern_at[position] if position < len(rule.pattern_at) else rule.at
                choice = ClassChoice(class_name=rule.class_name, rule=replace(at, text=pattern), pattern=pattern)
                entries.append(_Entry(number, choice, is_positive))
                number += 1
            self._lists.append(entries)
        last = matches[-1]
        self.rest: ClassChoice = ClassChoice(
            class_name=last.class_name, rule=replace(last.at, text="all the rest"), pattern=""
        )
        self._paths = _RegexSet(paths)
        self._labels = [_LabelGlobs(name, rows) for name, rows in globs.items()]
        self._chosen: dict[frozenset[int], ClassChoice] = {}

    def choose(self, path: bytes, labels: Labels) -> ClassChoice:
        """The class for what is left of a path (``b"eval/rank_3.log"``) and its labels. Never fails."""
        found = self._paths.hits(path)
        numbers = [self._path_numbers[index] for index in found] if found else []
        for globs in self._labels:
            numbers.extend(globs.numbers_for(labels))
        if not numbers:
            return self.rest
        hits = frozenset(numbers)
        choice = self._chosen.get(hits)
        if choice is None:
            choice = self._decide(hits)
            if len(self._chosen) < _CACHE_LIMIT:
                self._chosen[hits] = choice
        return choice

    def _decide(self, hits: frozenset[int]) -> ClassChoice:
        for entries in self._lists:
            matching = [entry for entry in entries if entry.number in hits]
            if matching and matching[-1].is_positive:
                return matching[-1].choice
        return self.rest
