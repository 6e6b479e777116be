"""Whether one line is an error, and how bad: by its level where the level stands, else by a shape from ``kinds``.

The level that comes first decides. `INFO retrying after ERROR 5` is an INFO line, whatever follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, Literal, NamedTuple

from lifecycle.extract.blocks import Level
from lifecycle.extract.kinds import (
    ALWAYS,
    BEGINNINGS,
    ERROR_PHRASES,
    FATAL_PHRASES,
    FROM_A_PROGRAM,
    FROM_A_SHELL,
    QUOTED,
    TRACE_HEAD,
    linear,
)
from lifecycle.extract.lines import HEAD_BYTES, Line


class Shape(Enum):
    LEVELLED = "levelled"  # a log record with its level
    TRACE = "trace"  # the head of a traceback: it goes on until its exception
    PLAIN = "plain"  # an exception, a phrase


class Verdict(NamedTuple):
    level: Level
    shape: Shape


_FATAL: Final = frozenset({b"CRITICAL", b"CRIT", b"FATAL", b"EMERG", b"EMERGENCY", b"ALERT", b"PANIC", b"DPANIC"})
_FATAL_LETTERS: Final = frozenset({b"F", b"C"})

# --- the first look, at whole chunks: what an error cannot do without -------------------------------------------------
# One pass of a linear-time automaton, the same speed whatever stands here; a hit is only a reason to look at its line.


SIEVE: Final = linear(
    rb"ERROR|CRITICAL|FATAL|SEVERE|EMERG|PANIC|\b(?:ERR|CRIT|ALERT)\b|mERR|"
    rb"Traceback \(most|[A-Z]\w*(?:Error|Exception|Group)(?:\([\w.]+\))?(?:[:\r\n\"]|\\n)|"
    rb"KeyboardInterrupt|SystemExit:|\.(?:exc|errors?|exceptions?)\.[A-Z]|"
    rb"[\r\n:\] mE\"/]\s?(?:[Ee]rror|[Ff]atal|[Cc]ritical)(?: [A-Z]+\d+)?(?:\[\w+\])?:|"
    rb"[\[<|(:](?:[Ee]rror|[Ff]atal|[Cc]rit|[Cc]ritical|emerg|alert|panic)[\]>|):]|"
    rb"(?:[Ll]evel|[Ll]vl|[Ss]everity|levelname)\\?[\"']?[:=] ?\\?[\"']?"
    rb"(?:[Ee]rr|ERR|[Ff]atal|FATAL|[Cc]rit|CRIT|[Pp]anic|PANIC|[Ee]merg|EMERG|[Aa]lert|ALERT|"
    rb"dpanic|DPANIC|eror|50\b|60\b)|"
    rb"[\r\n\[\] :m\"][EFC]\d{3,8} \d\d:|\[[EFC](?:\]| )|"
    rb"\d [EFC] (?:\d+ \d+\]|[\w./-]+\.(?:cc|cpp|cu|h|py)|tensorflow|xla)|"
    rb"\d: [EF] |\d +\d+ [EF] |"
    rb"NCCL WARN|Xid|Segmentation fault|[Bb]us error|[Kk]illed|Kill|Aborted|core dumped|Fatal Python|terminate called|"
    rb"double free|free\(\)|malloc\(\)|munmap_chunk|corrupted |\*\*\* |Kernel panic|[Oo]om-kill|oom-killer|"
    rb"signal|Signal|exitcode|segfault|panick?(?:ed|:)|DUE TO |out of memory|Out Of Memory|CUDA|_STATUS_|"
    rb"nccl[A-Z]\w+Error|"
    rb"Assertion|Check failed|exit code|exit status|MPI_|died|ncorrectable|fallen off|"
    rb"Caused by|Exception (?:in|ignored|during|raised)|[Uu]n(?:caught|handled)|Error (?:executing|in )|"
    rb"command not found|No such file|Permission denied|syntax error|unbound variable|Illegal instruction|"
    rb"cannot execute|"
    rb"not found[\r\n\"\\]|"
    rb"\"aborted\"|npm (?:ERR|err)|"
    rb"std(?:out|err) P|(?:[^n]|[^\\]n)\",\"stream\":\"std"
)  # fmt: skip

# --- the level of a log record ---------------------------------------------------------------------------------------

_WORD: Final = re.compile(
    rb"""
    (?<![\w=/$.])(?P<severe>ERROR|ERR|CRITICAL|CRIT|FATAL|SEVERE|EMERG|EMERGENCY|ALERT|PANIC|DPANIC)(?![\w=])
    | (?<![\w=/$.])(?P<mild>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|VERBOSE|SUCCESS|HINT)(?![\w=])
    | [\[<|(]\s?(?:[a-z_]{1,32}:)?(?P<boxed>[Ee]rror|[Ff]atal|[Cc]rit|[Cc]ritical|emerg|alert|panic|[EFC])\s?[\]>|):]
    | [\[<|(]\s?(?:[a-z_]{1,32}:)?
      (?P<mildboxed>trace|debug|info|notice|warn|warning|Debug|Info|Notice|Warn|Warning|[IWDV])\s?[\]>|):]
    | (?:(?<=[\s:\]])|^)(?P<spoken>[Ee]rror|[Ff]atal|[Cc]ritical):(?=\s)
    | (?:(?<=[\s:\]])|^)(?P<mildspoken>[Dd]ebug|[Ii]nfo|[Nn]otice|[Ww]arn|[Ww]arning):(?=\s)
    """,
    re.VERBOSE,
)
# Whether it is worth to look for a level at all, which takes much longer.
_ANY_WORD: Final = linear(
    rb"\b(?:ERR|CRIT|FATAL|SEVERE|EMERG|ALERT|D?PANIC|TRACE|DEBUG|INFO|NOTICE|WARN|VERBOSE|SUCC|HINT)|"
    rb"[\[<|(:] ?(?:[Ee]rror|[Ff]atal|[Cc]rit|emerg|alert|panic|trace|[Dd]ebug|[Ii]nfo|[Nn]otice|"
    rb"[Ww]arn|[EFCIWDV] ?[\]>|):])|"
    rb"(?:^|[\s:\]])(?:[Ee]rror|[Ff]atal|[Cc]ritical|[Dd]ebug|[Ii]nfo|[Nn]otice|[Ww]arn(?:ing)?):"
)
_LEVEL_BYTES: Final = 200  # a level stands within this
_GROUPS: Final = re.compile(rb"\[[^\[\]]{0,160}\]|\([^()]{0,160}\)|<[^<>]{0,80}>")
_NO_HEAD: Final = re.compile(rb"""["'#{}%`\\$;?]|\b(?:no|not|any|an|the|without|of|if|is|with|for|in|and|or)\b""")
_WORDS: Final = re.compile(rb"[^\s|:,>*-]*[A-Za-z][^\s|,>*]*")
_SETTING: Final = re.compile(rb"(?i:level|severity|verbosity)\W*$")
_NO_MESSAGE: Final = re.compile(
    rb"""(?ix)
      [\]>|):\s]* (?:
        [-+]?\d[\d.,e+-]*%?\s*(?:$|[,;|)])
      | =
      | (?:rates?|counts?|codes?|levels?|bars?|bound|margin|handling|correction|messages?)\b\s*[:=|\d]
      | (?:none|null|nil|false|nan|\[\]|\{\}|""|'')\s*(?:$|[,;}])
      )
    | [\]>|):\s]*$(?<!\])
    """
)
_TIME: Final = re.compile(rb"\d\d:\d\d:\d\d")
_GLOG: Final = re.compile(rb"\[?([EFCIWD])\d{3,8} \d\d:\d\d:\d\d")
_TORCH: Final = re.compile(rb"\[([EFCIWDV]) (?:\d|[\w./-]+\.(?:cpp|cc|cu|h|hpp|py):\d+)")
_RAY: Final = re.compile(rb"([EFCIWD]) \d+ \d+\]")
_TENSORFLOW: Final = re.compile(rb"(?:: )?([EFIW]) (?:tensorflow/|external/|xla/|[\w./-]+\.(?:cc|cpp|cu|h):\d+)")
_LOGCAT: Final = re.compile(rb" {0,4}\d{1,7} {1,5}\d{1,7} ([EFIWDV]) ")
_LOGFMT: Final = re.compile(rb"""(?:^|\s)(?:level|lvl|severity)=["']?([A-Za-z]{3,9})\b""")


def judge(line: Line) -> Verdict | None:
    """What a line that the sieve let through is; None for no error."""
    text = line.text
    head = text[:HEAD_BYTES]
    if head.startswith(b"{") and (entry := _json_object(text)) is not None:
        return _judge_json(entry)
    if head.startswith(b":::"):
        return _judge_mllog(text)
    levelled = _judge_level(head, line.is_stamped)
    if levelled:
        return levelled
    if ALWAYS.search(head) and not QUOTED.search(head):
        return Verdict(Level.ERROR, Shape.PLAIN)
    if levelled is not None:
        return _judge_trace(text, head)
    return _judge_trace(text, head) or _judge_plain(text, head)


def is_timed(line: Line) -> bool:
    """Whether a line begins as a record with its time does, before or behind its level."""
    return line.is_stamped or _TIME.search(line.text, 0, 60) is not None


def _judge_trace(text: bytes, head: bytes) -> Verdict | None:
    if b"Traceback (most" in text and TRACE_HEAD.search(text[-HEAD_BYTES:] if len(text) > HEAD_BYTES else head):
        return Verdict(Level.ERROR, Shape.TRACE)
    return None


def _judge_plain(text: bytes, head: bytes) -> Verdict | None:
    if BEGINNINGS.match(head) or FROM_A_PROGRAM.match(head):
        level = Level.FATAL if FATAL_PHRASES.search(head) else Level.ERROR
        return Verdict(level, Shape.PLAIN)
    if FROM_A_SHELL.match(head):
        return Verdict(Level.ERROR, Shape.PLAIN)
    for pattern, level in ((FATAL_PHRASES, Level.FATAL), (ERROR_PHRASES, Level.ERROR)):
        match = pattern.search(head)
        if match is not None and not QUOTED.search(head[: match.start()]):
            return Verdict(level, Shape.PLAIN)
    return None


def _judge_level(head: bytes, is_stamped: bool) -> Verdict | Literal[False] | None:
    """A verdict; False for a record of a lower level; None where no level stands."""
    for letters in (_GLOG, _TORCH):
        if match := letters.match(head):
            return _of_letter(match[1])
    if is_stamped:
        for letters in (_RAY, _TENSORFLOW, _LOGCAT):
            if match := letters.match(head):
                return _of_letter(match[1])
    if (
        b"=" in head
        and (match := _LOGFMT.search(head[:_LEVEL_BYTES]))
        and (is_stamped or b"=" in head[: match.start() + 1] or not match.start())
    ):
        level = _of_name(match[1])
        return Verdict(level, Shape.LEVELLED) if level else False
    if _ANY_WORD.search(head[:_LEVEL_BYTES]) is None:
        return None
    match = _WORD.search(head, 0, _LEVEL_BYTES)
    if match is None:
        return None
    kind = match.lastgroup
    before = head[: match.start(kind or 0)]
    if not _is_head(before, is_stamped or _TIME.search(head, match.end(), match.end() + 20) is not None):
        return None
    if kind in ("mild", "mildboxed", "mildspoken"):
        return False
    if _NO_MESSAGE.match(head, match.end(kind or 0)) or (not is_stamped and _SETTING.search(before)):
        return None
    word = match[kind or 0]
    fatal = word.upper() in _FATAL or word in _FATAL_LETTERS
    return Verdict(Level.FATAL if fatal else Level.ERROR, Shape.LEVELLED)


def _is_head(before: bytes, is_stamped: bool) -> bool:
    """Whether only names, times and separators stand before a level; prose does not."""
    if not before:
        return True
    bare = _GROUPS.sub(b" ", before)
    if _NO_HEAD.search(bare):
        return False
    words = _WORDS.findall(bare)
    if is_stamped or before[:1] in (b"[", b"<", b"("):
        return len(words) <= 3
    if not words:
        return True
    return len(words) == 1 and bare.rstrip()[-1:] in (b"-", b"|", b":", b"]", b">", b"[", b"<", b"(")


def _of_letter(letter: bytes) -> Verdict | Literal[False]:
    if letter in _FATAL_LETTERS:
        return Verdict(Level.FATAL, Shape.LEVELLED)
    return Verdict(Level.ERROR, Shape.LEVELLED) if letter == b"E" else False


def _of_name(name: bytes) -> Level | None:
    upper = name.upper()
    if upper in _FATAL:
        return Level.FATAL
    return Level.ERROR if upper in (b"ERROR", b"ERR", b"EROR", b"SEVERE") else None


# --- JSON lines and MLLOG --------------------------------------------------------------------------------------------

_LEVEL_KEYS: Final = (
    "level",
    "severity",
    "levelname",
    "lvl",
    "log.level",
    "loglevel",
    "log_level",
    "Level",
    "severity_text",
)
_MESSAGE_KEYS: Final = ("message", "msg", "log", "text", "event", "line", "body")
_STACK_KEYS: Final = (
    "exc_info",
    "exception",
    "stack_trace",
    "stacktrace",
    "traceback",
    "stack",
    "error.stack_trace",
    "exc_text",
)

_TORN: Final = re.compile(rb'\{.{0,500}?"(?:level|severity|levelname|lvl)":\s?"([A-Za-z]{3,9})"')


def _json_object(text: bytes) -> Mapping[str, object] | None:
    """The object that a line is; of one that was cut, its level alone; None for a Python dict or other braces."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        torn = _TORN.search(text, 0, HEAD_BYTES)
        return {"level": torn[1].decode()} if torn else None
    return entry if isinstance(entry, dict) else None


def _judge_json(entry: Mapping[str, object]) -> Verdict | None:
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
    return None if first[:1] in (b"", b"{") else judge(Line(b"", first, True, False))


def _of_value(value: object) -> Level | None:
    if isinstance(value, int):
        return Level.FATAL if value >= 60 and value % 10 == 0 else Level.ERROR if value == 50 else None
    return _of_name(value.strip().encode("utf-8", "replace")) if isinstance(value, str) else None


def _judge_mllog(text: bytes) -> Verdict | None:
    """MLPerf's lines have no level; a run that says it was aborted is one."""
    return Verdict(Level.ERROR, Shape.PLAIN) if b'"run_stop"' in text and b'"aborted"' in text else None
