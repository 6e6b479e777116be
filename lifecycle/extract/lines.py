"""One line read: colours taken off, the writer's prefixes taken off, its time taken off, what is left to judge.

Knows the wrappings that launchers, container runtimes and clusters put around lines. Never what an error is.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

HEAD_BYTES: Final = 512  # nothing that wraps a line is longer

_ANSI: Final = re.compile(rb"\x1b(?:\[[0-9;?]{0,32}[ -/]?[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\^_])")
_CRI: Final = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:?\d\d) (stdout|stderr) ([FP])(?::\w+)*(?: |$)")
_PREFIX: Final = re.compile(
    rb"""
      \[rank\d{1,6}\]:\ ?                                                        # torch
    | \[[A-Za-z_-]{1,32}\d{1,6}\]:                                                # torchrun --tee: [default3]:
    | \ {0,5}\d{1,6}:\ (?!\d\d:)                                                  # srun -l
    | \[\d+,\d+\]<std(?:out|err|diag)>:                                        # mpirun --tag-output
    | \((?:[\w.:<>~-]{1,80}\ )?pid=\d+(?:,\ ?[\w=.:,\ -]{1,120})?\)\ ?            # Ray, vLLM
    | \(raylet(?:,\ ?ip=[\d.:a-f]+)?\)\ ?
    | \[pod/[^\]\s]{1,253}\]\ ?                                                   # kubectl logs --prefix
    | [a-z][\w.-]{0,62}[-_]\d+\ +\|\ ?                                            # docker compose
    | [\w.-]{1,128}\ \[std(?:out|err)\]\ ?                                        # milabench and other runners
    | (?:[a-z][a-z0-9-]*\d(?:\.[a-z][a-z0-9.-]{0,80})?|\d+\.\d+\.\d+\.\d+):\ (?!\d) # pdsh, clush: a host with a number
    | (?:<\d{1,3}>)?[A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d\ [\w.-]{1,64}\ [\w./()@-]{1,48}(?:\[\d+\])?:\ ?   # syslog
    | (?!make\[)(?:[\w.-]{1,80}\ )?[A-Za-z][\w./()@-]{0,48}\[\d{1,8}\]:\ ?   # behind another time
    """,
    re.VERBOSE,
)
_STAMP: Final = re.compile(
    rb"""
    [\[(]?
    (?: (?P<day>\d{4}[-/.]\d\d?[-/.]\d\d?)(?:[T\ _-]{1,2}\d\d?:\d\d(?::\d\d)?)?
      | \d\d?[-/]\d\d?(?:[-/]\d{2,4})?[\ -]{1,2}\d\d?:\d\d:\d\d
      | (?:[A-Z][a-z]{2},?\ )?[A-Z][a-z]{2}\ {1,2}\d\d?(?:,?\ \d{4})?,?\ \d\d:\d\d:\d\d(?:\ \d{4})?
      | \d{6}\ \d{6}(?:\ \d+)?
      | \d\d?:\d\d:\d\d
      | 1\d{9}(?:\.\d+)?(?=\ )
    )
    (?:[.,:]\d{1,9})?(?:\ ?(?:Z|UTC|GMT|AM|PM|[+-]\d\d:?\d\d)(?!\w))?(?:\.\d+)?
    """,
    re.VERBOSE,
)
_STAMP_STARTS: Final = frozenset(bytes([byte]) for byte in b"[(0123456789ADFJMNOSTW")
_DOCKER: Final = b'{"log":"'
_MAX_WRAPPINGS: Final = 4


class Line(NamedTuple):
    """``text`` is what the program wrote, without colours, prefixes and its time."""

    writer: bytes  # all prefixes together: which rank, pod or stream it is of; b"" for none
    text: bytes
    is_stamped: bool  # a time stood before the text
    is_partial: bool  # a runtime cut it: the rest is in the writer's next line


def read_line(raw: bytes) -> Line:
    """Take one line, with or without its newline, apart."""
    text = raw.rstrip(b"\r\n")
    if b"\x1b" in text:
        text = _ANSI.sub(b"", text)
    writer, text, is_partial = _unwrap_container(text)
    is_stamped = False
    for _ in range(_MAX_WRAPPINGS):
        match = _PREFIX.match(text, 0, HEAD_BYTES)
        if match is not None:
            writer += match[0]
            text = text[match.end() :]
            continue
        if is_stamped:
            break
        text, is_stamped = take_stamp(text)
        if not is_stamped:
            break
    return Line(writer, _behind_bar(text), is_stamped, is_partial)


def _behind_bar(text: bytes) -> bytes:
    """What was written straight after a progress bar that ended in no line end."""
    rate = max(text.rfind(b"it/s"), text.rfind(b"s/it"))
    stop = text.find(b"]", rate) if rate > 0 else -1
    return text[stop + 1 :].lstrip(b" ") or text if stop > 0 else text


def take_stamp(text: bytes) -> tuple[bytes, bool]:
    """What follows a time at the start, and whether there was one. The bracket that closes it goes with it."""
    match = _STAMP.match(text, 0, HEAD_BYTES) if text[:1] in _STAMP_STARTS else None
    if match is None:
        return text, False
    rest = text[match.end() :]
    if text[:1] in (b"[", b"(") and rest[:1] in (b"]", b")"):
        rest = rest[1:]
    return rest[1:] if rest[:1] in (b" ", b"\t") else rest, True


def _unwrap_container(text: bytes) -> tuple[bytes, bytes, bool]:
    if text[:1] == b"{":
        return _unwrap_docker(text) if text.startswith(_DOCKER) else (b"", text, False)
    match = _CRI.match(text, 0, HEAD_BYTES) if text[10:11] == b"T" else None
    if match is not None:
        return match[1] + b" ", text[match.end() :], match[2] == b"P"
    return b"", text, False


def _unwrap_docker(text: bytes) -> tuple[bytes, bytes, bool]:
    """Docker's json-file: a line that does not end in a newline goes on in the next one of its stream."""
    try:
        entry = json.loads(text)
    except ValueError:
        return b"", text, False
    if not isinstance(entry, dict) or not isinstance(entry.get("stream"), str) or not isinstance(entry["log"], str):
        return b"", text, False
    content = entry["log"].encode("utf-8", "surrogatepass")
    if b"\x1b" in content:
        content = _ANSI.sub(b"", content)
    whole = content.rstrip(b"\r\n")
    return entry["stream"].encode("utf-8", "replace") + b" ", whole, content == whole
