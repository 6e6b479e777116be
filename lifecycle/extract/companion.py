"""The text of a companion: whose errors these are, then each block with its line numbers, as grep shows them.

Plain text for people and for grep: ``120:`` before a line of an error, ``119-`` before one of its context, ``--``
where lines are left out. No line of the source can be taken for one of the head, since each has its number in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lifecycle.errors import Damaged, UsageError
from lifecycle.extract.blocks import Block, Found, SourceFacts
from lifecycle.names import parse_name, show_name
from lifecycle.units import NS, from_ns

_TITLE: Final = b"# lifecycle errors 1\n"
_GAP: Final = b"--\n"
_NUMBERED: Final = re.compile(rb"(\d+)([:-])")
_BLOCK: Final = re.compile(rb"# block \d+: lines (\d+)-(\d+), byte (\d+), (ERROR|FATAL)(?:; (\d+) like it left out)?")


def render(found: Found, source: SourceFacts) -> bytes:
    """The companion's bytes. Lines get a newline where they have none, and are otherwise as they stand."""
    return b"".join(_parts(found, source))


def _parts(found: Found, source: SourceFacts) -> Iterator[bytes]:
    at = from_ns(source.mtime_ns)
    counts = ", ".join(f"{level} {count}" for level, count in found.counts.items()) or "none"
    yield _TITLE
    yield _field("place", source.place)
    yield _field("path", show_name(source.path))
    yield _field("size", f"{source.size_bytes} bytes")
    yield _field("written", f"{at:%Y-%m-%d %H:%M:%S}.{source.mtime_ns % NS:09} UTC, {source.mtime_ns} ns")
    yield _field("blake3", source.digest.hex())
    yield _field("lines", str(found.lines))
    yield _field("errors", counts)
    yield _field("left out", f"{found.cut_blocks} errors, {found.cut_bytes} bytes")
    for number, block in enumerate(found.blocks, 1):
        more = f"; {block.left_out} like it left out" if block.left_out else ""
        lines = f"lines {block.first_line}-{block.last_line}, byte {block.offset}"
        yield f"\n# block {number}: {lines}, {block.level}{more}\n".encode()
        yield from _lines(block)


def _field(name: str, value: str) -> bytes:
    return f"# {name}: {value}\n".encode()


def _lines(block: Block) -> Iterator[bytes]:
    before = block.first_line
    for number, is_context, line in zip(block.numbers, block.is_context, split_lines(block.text), strict=True):
        if number > before + 1:
            yield _GAP
        before = number
        yield b"%d%s%s%s" % (number, b"-" if is_context else b":", line, b"" if line.endswith(b"\n") else b"\n")


_VISUAL: Final = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")


def split_lines(text: bytes) -> list[bytes]:
    """As ``Block`` counts lines: a bare carriage return ends one too."""
    return _VISUAL.findall(text)


def parse(text: bytes) -> tuple[Found, SourceFacts]:
    """What ``render`` was given, but for newlines that it added. Raises Damaged."""
    try:
        head, *bodies = text.split(b"\n\n# block ")
        fields = dict(line[2:].split(": ", 1) for line in head.decode().splitlines()[1:])
        if not text.startswith(_TITLE):
            raise ValueError("it does not begin as one")
        source = SourceFacts(
            place=fields["place"],
            path=parse_name(fields["path"]),
            size_bytes=int(fields["size"].split()[0]),
            mtime_ns=int(fields["written"].split()[-2]),
            digest=bytes.fromhex(fields["blake3"]),
        )
        counts = {} if fields["errors"] == "none" else dict(pair.split() for pair in fields["errors"].split(", "))
        cut_blocks, cut_bytes = re.findall(r"\d+", fields["left out"])
        found = Found(
            blocks=tuple(_parse_block(b"# block " + body) for body in bodies),
            lines=int(fields["lines"]),
            counts={level: int(count) for level, count in counts.items()},
            cut_blocks=int(cut_blocks),
            cut_bytes=int(cut_bytes),
        )
    except (ValueError, KeyError, IndexError, UsageError) as error:
        raise Damaged(f"this is no companion of errors: {error}") from None
    return found, source


def _parse_block(body: bytes) -> Block:
    head, _, rest = body.partition(b"\n")
    match = _BLOCK.fullmatch(head)
    if match is None:
        raise ValueError(f"no head of a block: {head[:80]!r}")
    numbers, flags, lines = [], [], []
    for line in rest.split(b"\n"):
        numbered = _NUMBERED.match(line)
        if numbered is not None:
            numbers.append(int(numbered[1]))
            flags.append(numbered[2] == b"-")
            lines.append(line[numbered.end() :] + b"\n")
    return Block(
        first_line=int(match[1]),
        last_line=int(match[2]),
        offset=int(match[3]),
        level=match[4].decode(),
        text=b"".join(lines),
        numbers=tuple(numbers),
        is_context=tuple(flags),
        left_out=int(match[5] or 0),
    )
