"""Whether one line is an error: by its level where one stands, else by its shape."""

from __future__ import annotations

from lifecycle.extract.blocks import Level
from lifecycle.extract.kinds import (
    ALWAYS,
    BEGINNINGS,
    ERROR_PHRASES,
    FATAL_PHRASES,
    FROM_A_PROGRAM,
    FROM_A_SHELL,
    FROM_THE_SYSTEM,
    QUOTED,
    TRACE_HEAD,
)
from lifecycle.extract.levels import Shape, Verdict, judge_level
from lifecycle.extract.lines import HEAD_BYTES, Line
from lifecycle.extract.structured import judge_mllog, judge_object, parse_object


def judge(line: Line) -> Verdict | None:
    """What a line that the sieve let through is; None for no error."""
    text = line.text
    head = text[:HEAD_BYTES]
    if head.startswith(b"{") and (entry := parse_object(text)) is not None:
        verdict = judge_object(entry)
        return judge(Line(b"", verdict, True, False)) if isinstance(verdict, bytes) else verdict
    if head.startswith(b":::"):
        return judge_mllog(text)
    levelled = judge_level(head, line.is_stamped)
    if levelled:
        return levelled
    if ALWAYS.search(head) and not QUOTED.search(head):
        return Verdict(Level.ERROR, Shape.PLAIN)
    if levelled is not None:
        return _judge_trace(text, head)
    return _judge_trace(text, head) or _judge_plain(text, head)


def _judge_trace(text: bytes, head: bytes) -> Verdict | None:
    if b"Traceback (most" in text and TRACE_HEAD.search(text[-HEAD_BYTES:] if len(text) > HEAD_BYTES else head):
        return Verdict(Level.ERROR, Shape.TRACE)
    return None


def _judge_plain(text: bytes, head: bytes) -> Verdict | None:
    if BEGINNINGS.match(head) or FROM_A_PROGRAM.match(head):
        level = Level.FATAL if FATAL_PHRASES.search(head) else Level.ERROR
        return Verdict(level, Shape.PLAIN)
    if FROM_A_SHELL.match(head) or FROM_THE_SYSTEM.match(head):
        return Verdict(Level.ERROR, Shape.PLAIN)
    for pattern, level in ((FATAL_PHRASES, Level.FATAL), (ERROR_PHRASES, Level.ERROR)):
        match = pattern.search(head)
        if match is not None and not QUOTED.search(head[: match.start()]):
            return Verdict(level, Shape.PLAIN)
    return None
