"""Levels of lines that are records for machines: JSON lines in many dialects, and MLPerf's log.

Knows field names and how levels are written as values. A message without a level is judged by whoever asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from lifecycle.extract.blocks import Level
from lifecycle.extract.levels import Shape, Verdict, level_of_name
from lifecycle.extract.lines import HEAD_BYTES

# Not log_level: that is how a printed configuration calls it.
_LEVEL_KEYS: Final = ("level", "severity", "levelname", "lvl", "log.level", "Level", "severity_text")
_MESSAGE_KEYS: Final = ("message", "msg", "log", "text", "event", "line", "body")
_STACK_KEYS: Final = (
    "exc_info", "exception", "stack_trace", "stacktrace", "traceback", "stack", "error.stack_trace", "exc_text"
)  # fmt: skip

_TORN: Final = re.compile(rb'\{.{0,500}?"(?:level|severity|levelname|lvl)":\s?"([A-Za-z]{3,9})"')


def parse_object(text: bytes) -> Mapping[str, object] | None:
    """The object that a line is; of one that was cut, its level alone; None for a Python dict or other braces."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        torn = _TORN.search(text, 0, HEAD_BYTES)
        return {"level": torn[1].decode()} if torn else None
    return entry if isinstance(entry, dict) else None


def judge_object(entry: Mapping[str, object]) -> Verdict | bytes | None:
    """A verdict, None for a record of a lower level, or the first line of a message that has no level beside it."""
    named = next((entry[key] for key in _LEVEL_KEYS if isinstance(entry.get(key), str | int)), None)
    for key in _STACK_KEYS:
        stack = entry.get(key)
        if isinstance(stack, str) and "Traceback (most recent call" in stack:
            return Verdict(_of_value(named) or Level.ERROR, Shape.LEVELLED)
    if named is not None:
        level = _of_value(named)
        return Verdict(level, Shape.LEVELLED) if level else None
    message = next((value for key in _MESSAGE_KEYS if isinstance(value := entry.get(key), str)), "")
    first = message.lstrip()[:HEAD_BYTES].encode("utf-8", "replace").split(b"\n", 1)[0]
    return None if first[:1] in (b"", b"{") else first


def judge_mllog(text: bytes) -> Verdict | None:
    """MLPerf's lines have no level; a run that says it was aborted is one."""
    return Verdict(Level.ERROR, Shape.PLAIN) if b'"run_stop"' in text and b'"aborted"' in text else None


def _of_value(value: object) -> Level | None:
    if isinstance(value, int):
        return Level.FATAL if value >= 60 and value % 10 == 0 else Level.ERROR if value == 50 else None
    return level_of_name(value.strip().encode("utf-8", "replace")) if isinstance(value, str) else None
