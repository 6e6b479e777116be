"""Own layout patterns and the ``under`` template: ``{node}/rank_{rank}.log``, ``{team}/{job}``, ``**/{job}.out``.

One component of a path at a time. ``{rank}`` reads digits, ``{stream}`` stdout, stderr, out or err, every other
``{label}`` at least one byte, and the longest that fits. ``*`` and ``?`` match and read nothing; ``**/`` in front
stands for any folders. Runs on RE2: linear in the name's length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

import re2

MAX_TEMPLATE: Final = 500
STREAMS: Final = {b"stdout": "stdout", b"out": "stdout", b"stderr": "stderr", b"err": "stderr"}
_PLACE_LABELS: Final = frozenset({"team", "job", "node"})  # cut from what class patterns look at
_TOKEN: Final = re.compile(r"\{([^{}]*)\}|(\*+)|(\?)|([{}])|([^{}*?]+)")
_LABEL: Final = re.compile(r"[a-z][a-z0-9_]{0,30}\Z")
_BYTES: Final = ("utf-8", "surrogateescape")
_READS: Final = {"rank": b"([0-9]{1,9})", "stream": b"(stdout|stderr|out|err)"}


class ComponentRead(NamedTuple):
    """What one component said: raw values by label, and what is left of it without team, job and node."""

    values: tuple[tuple[str, bytes], ...]
    left: bytes


def _read_frame(raw: bytes, before: bytes, after: bytes, label: str) -> ComponentRead | None:
    end = len(raw) - len(after)
    if end <= len(before) or not raw.startswith(before) or not raw.endswith(after):
        return None
    value = raw[len(before) : end]
    if label in _PLACE_LABELS:
        return ComponentRead(((label, value),), before + after)
    if (label == "rank" and not (value.isdigit() and len(value) < 10)) or (label == "stream" and value not in STREAMS):
        return None
    return ComponentRead(((label, value),), raw)


class Component:
    """One component of a template, compiled."""

    __slots__ = ("_frame", "_regex", "labels", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.labels: tuple[str, ...] = ()
        # What stands before and after the only label: read by looking at both ends, once for every new file.
        self._frame: tuple[bytes, bytes, str] | None = None
        self._regex = re2.compile(self._compile(text), _options())

    def _compile(self, text: str) -> bytes:
        parts: list[bytes] = []
        labels: list[str] = []
        was_open = False  # the last token may stop anywhere, so that no other may begin there
        for token in _TOKEN.finditer(text):
            label, stars, single, brace, literal = token.groups()
            if brace is not None:
                raise ValueError(f"{text!r} has a brace that is not part of a {{label}}")
            if label is not None and not _LABEL.match(label):
                raise ValueError(f"{text!r}: {{{label}}} is not a label; use small letters, digits and _, as {{node}}")
            is_open = label is not None or stars is not None
            if is_open and was_open:
                raise ValueError(
                    f"{text!r}: put something between two labels or stars, else nobody knows where one ends"
                )
            was_open = is_open
            if label is not None:
                labels.append(label)
                parts.append(_READS.get(label, b"(.+)"))
            elif stars is not None:
                parts.append(b".*")
            elif single is not None:
                parts.append(b".")
            elif literal is not None:
                parts.append(re.escape(literal.encode(*_BYTES)))
        self.labels = tuple(labels)
        if len(labels) == 1 and "*" not in text and "?" not in text:
            before, _, rest = text.partition("{")
            self._frame = (before.encode(*_BYTES), rest.partition("}")[2].encode(*_BYTES), labels[0])
        return b"".join(parts)

    def read(self, raw: bytes) -> ComponentRead | None:
        """None when the component does not fit."""
        if self._frame is not None:
            return _read_frame(raw, *self._frame)
        match = self._regex.fullmatch(raw)
        if match is None:
            return None
        labels = self.labels
        values = tuple([(label, match[index]) for index, label in enumerate(labels, 1)])
        left = raw
        for index in range(len(labels), 0, -1):
            if labels[index - 1] in _PLACE_LABELS:
                start, end = match.span(index)
                left = left[:start] + left[end:]
        return ComponentRead(values, left)


@dataclass(frozen=True, slots=True)
class Template:
    """A whole template: folders, then (for layouts) the component that file names are read with."""

    text: str
    components: tuple[Component, ...]
    floats: bool  # begins with **/

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(label for component in self.components for label in component.labels)


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = options.Encoding.LATIN1
    options.dot_nl = True
    options.log_errors = False
    return options


def parse_template(text: str, *, may_float: bool = True) -> Template:
    """Compile a template. Raises ValueError with a message that names the part at fault."""
    if len(text) > MAX_TEMPLATE:
        raise ValueError(f"pattern is {len(text)} characters long; at most {MAX_TEMPLATE} are allowed")
    pieces = text.split("/")
    floats = pieces[0] == "**"
    if floats:
        pieces = pieces[1:]
    if floats and not may_float:
        raise ValueError(f"{text!r}: ** cannot stand here; write one {{label}} or * for each folder")
    if not pieces or any(piece in ("", ".", "..") for piece in pieces):
        raise ValueError(f"{text!r} must be folders and names with one / between them, none at either end")
    if "**" in "/".join(pieces):
        raise ValueError(f"{text!r}: ** can only be the first folder of a pattern")
    template = Template(text, tuple(Component(piece) for piece in pieces), floats)
    labels = template.labels
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(f"{text!r} reads {{{twice}}} twice")
    return template
