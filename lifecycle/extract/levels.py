"""The level of a log record, read where it stands: behind times, names and brackets, never within a sentence.

The level that comes first decides. ``INFO retrying after ERROR 5`` is an INFO line, whatever follows.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, Literal, NamedTuple

from lifecycle.extract.blocks import Level
from lifecycle.extract.kinds import linear
from lifecycle.extract.lines import Line


class Shape(Enum):
    LEVELLED = "levelled"  # a log record with its level
    TRACE = "trace"  # the head of a traceback: it goes on until its exception
    PLAIN = "plain"  # an exception, a phrase


class Verdict(NamedTuple):
    level: Level
    shape: Shape


_FATAL: Final = frozenset({b"CRITICAL", b"CRIT", b"FATAL", b"EMERG", b"EMERGENCY", b"ALERT", b"PANIC", b"DPANIC"})
_FATAL_LETTERS: Final = frozenset({b"F", b"C"})

# --- the level of a log record ---------------------------------------------------------------------------------------

_WORD: Final = re.compile(
    rb"""
    (?<![\w=/$.])(?P<severe>ERROR|ERR|CRITICAL|CRIT|FATAL|SEVERE|EMERG|EMERGENCY|ALERT|PANIC|DPANIC)(?![\w=]|\.\w)
    | (?<![\w=/$.])(?P<mild>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|VERBOSE|SUCCESS|HINT)(?![\w=])
    | [\[<|(]\s?(?:[a-z_]{1,32}:)?(?P<boxed>[Ee]rror|[Ff]atal|[Cc]rit|[Cc]ritical|emerg|alert|panic|[EF])\s?[\]>|)]
    | [\[<|(]\s?(?:[a-z_]{1,32}:)?
      (?P<mildboxed>trace|debug|info|notice|warn|warning|Debug|Info|Notice|Warn|Warning|[IWDV])\s?[\]>|)]
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
_NO_HEAD: Final = re.compile(
    rb"""["'#{}%`\\$;?=]|\*\*\w|\b(?:no|not|any|an|the|without|of|if|is|with|for|in|and|or)\b"""
)
_COMMENT: Final = re.compile(rb"\s*(?://|/?\*|--|;)")
_WORDS: Final = re.compile(rb"[^\s|:,>*-]*[A-Za-z][^\s|,>*]*")
_SEPARATED: Final = re.compile(rb"(?:[-|:\]>]|\s[\[<|])\s*$")
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
_LETTERS: Final = frozenset(bytes([byte]) for byte in b"[EFCIWD")
_GLOG: Final = re.compile(rb"\[?([EFCIWD])\d{3,8} \d\d:\d\d:\d\d")
_TORCH: Final = re.compile(rb"\[([EFCIWDV]) (?:\d|[\w./-]+\.(?:cpp|cc|cu|h|hpp|py):\d+)")
_RAY: Final = re.compile(rb"([EFCIWD]) \d+ \d+\]")
_TENSORFLOW: Final = re.compile(rb"(?:: )?([EFIW]) (?:tensorflow/|external/|xla/|[\w./-]+\.(?:cc|cpp|cu|h):\d+)")
_LOGCAT: Final = re.compile(rb" {0,4}\d{1,7} {1,5}\d{1,7} ([EFIWDV]) ")
_LOGFMT: Final = re.compile(rb"""(?:^|\s)(?:level|lvl|severity)=["']?([A-Za-z]{3,9})\b""")


def is_timed(line: Line) -> bool:
    """Whether a line begins as a record with its time does, before or behind its level."""
    return line.is_stamped or _TIME.search(line.text, 0, 60) is not None


def judge_level(head: bytes, is_stamped: bool) -> Verdict | Literal[False] | None:
    """A verdict; False for a record of a lower level; None where no level stands."""
    first = head[:1]
    if first in _LETTERS and (match := _GLOG.match(head) or _TORCH.match(head)):
        return _of_letter(match[1])
    if is_stamped and (match := _behind_a_time(head, first)):
        return _of_letter(match[1])
    if (
        b"=" in head
        and (match := _LOGFMT.search(head[:_LEVEL_BYTES]))
        and (is_stamped or b"=" in head[: match.start() + 1] or not match.start())
    ):
        level = level_of_name(match[1])
        return Verdict(level, Shape.LEVELLED) if level else False
    if _ANY_WORD.search(head[:_LEVEL_BYTES]) is None:
        return None
    match = _WORD.search(head, 0, _LEVEL_BYTES)
    if match is None:
        return None
    kind = match.lastgroup
    before = head[: match.start(kind or 0)]
    if (
        not is_stamped
        and (
            _COMMENT.match(before)
            or (kind == "spoken" and before and before.isspace())  # `    error: Exception`: a field of a listing
            or (kind == "boxed" and before[-1:] != b"[" and not before.endswith(b":"))  # `catch (error) {`
        )
    ):
        return None
    if not _is_head(before, is_stamped or _TIME.search(head, match.end(), match.end() + 20) is not None):
        return None
    if kind in ("mild", "mildboxed", "mildspoken"):
        return False
    if _NO_MESSAGE.match(head, match.end(kind or 0)) or (not is_stamped and _SETTING.search(before)):
        return None
    word = match[kind or 0]
    fatal = word.upper() in _FATAL or word in _FATAL_LETTERS
    return Verdict(Level.FATAL if fatal else Level.ERROR, Shape.LEVELLED)


def _behind_a_time(head: bytes, first: bytes) -> re.Match[bytes] | None:
    """The letter that stands for a level where a time came first."""
    if first == b" " or first.isdigit():
        return _LOGCAT.match(head)
    if first == b":" or head[1:2] == b" ":
        return _RAY.match(head) or _TENSORFLOW.match(head)
    return None


def _is_head(before: bytes, is_stamped: bool) -> bool:
    """Whether only names, times and separators stand before a level; prose does not."""
    if not before:
        return True
    bare = _GROUPS.sub(b" ", before)
    if _NO_HEAD.search(bare):
        return False
    words = _WORDS.findall(bare)
    if is_stamped or _GROUPS.match(before):
        return len(words) <= 3
    if not words:
        return True
    return len(words) == 1 and _SEPARATED.search(bare) is not None


def _of_letter(letter: bytes) -> Verdict | Literal[False]:
    if letter in _FATAL_LETTERS:
        return Verdict(Level.FATAL, Shape.LEVELLED)
    return Verdict(Level.ERROR, Shape.LEVELLED) if letter == b"E" else False


def level_of_name(name: bytes) -> Level | None:
    """The level that a name or its usual short form stands for; None for lower ones and for none."""
    upper = name.upper()
    if upper in _FATAL:
        return Level.FATAL
    return Level.ERROR if upper in (b"ERROR", b"ERR", b"EROR", b"SEVERE") else None
