"""What an archive says it holds: one JSON document in columns, and the fixed record that says where it lies.

Knows the document's format; never where the archive is stored or which segments belong together. A column is a list
with one value per member, or ``{"all": value}`` where all members share it. Facts that only a look into the content can
give (event times, lines, levels) have their columns already and are ``{"all": null}``, unknown, until there is one.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Any, Final, NamedTuple

from blake3 import blake3

import lifecycle
from lifecycle.archive.tar import is_safe_path
from lifecycle.errors import LifecycleError
from lifecycle.model import Labels
from lifecycle.names import parse_name, show_name

FORMAT: Final = "lifecycle-manifest"
VERSION: Final = 1
MANIFEST_FOLDER: Final = b".lifecycle"
MANIFEST_NAME: Final = b"manifest.json"
INDEX_MAGIC: Final = 0x184D2A5A  # skippable frame of the search index, in every archive
MANIFEST_MAGIC: Final = 0x184D2A5B  # skippable frame of the manifest, where the stream is the segment itself
DIGEST_BYTES: Final = 32
MAX_MANIFEST_BYTES: Final = 60 * 2**20

_INDEX_TAG: Final = b"LCINDEX\0"
_INDEX_VERSION: Final = 1
_INDEX_UNKNOWN: Final = 0  # kind: no signatures, every frame may hold anything
_INDEX: Final = struct.Struct("<8sHHHHIQQ32s32s")
_FRAME_FACTS: Final = ("first_event_ns", "last_event_ns", "lines", "levels")


class Form(StrEnum):
    """How members lie in the decompressed stream."""

    TAR = "tar"
    SINGLE = "single"  # the stream is one segment: ``zstdcat`` shows it


class ManifestError(ValueError):
    """The document is not a manifest, or says what cannot be. The text is the why; callers name the archive."""


class MemberFacts(NamedTuple):
    """One segment on its way into an archive. A named tuple and no dataclass: these are made by the ten thousand,
    sent to worker processes, and a frozen dataclass takes three times as long for both."""

    segment_id: int
    path: bytes  # relative to its source
    source: str  # name of the source
    source_uid: str  # of the place it came from
    size: int
    mtime_ns: int
    mode: int
    uid: int
    gid: int
    labels: Labels
    class_name: str
    last_write_ns: int | None = None  # None: age unknown


class StoredMember(NamedTuple):
    facts: MemberFacts
    offset: int  # of its content in the decompressed stream
    digest: bytes  # BLAKE3 of its content


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveContext:
    """What all members of one archive share, and where the archive belongs."""

    catalog_id: str
    place_uid: str  # of the tier it is made for
    team: str
    class_name: str
    day: int  # of last write, since 1970
    created_ns: int
    gid: int
    mode: int
    replaces: tuple[str, ...] = ()  # keys of the archives whose members it took over


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    form: Form
    context: ArchiveContext
    zstd_level: int
    members: tuple[StoredMember, ...]
    frame_bytes: tuple[int, ...]  # content of each data frame, the manifest's own left out
    digest: bytes  # BLAKE3 of the document


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecord:
    """The fixed head of the index frame: where the manifest is and its digest. Signatures follow it one day."""

    form: Form
    data_frames: int  # frames with content, the manifest's own included
    manifest_offset: int  # in the decompressed stream for TAR, in the object for SINGLE
    manifest_size: int
    manifest_digest: bytes
    stored_digest: bytes  # BLAKE3 of the object up to the index frame: flips that no content shows are seen by it


def _column(values: list[Any]) -> Any:
    if values and values.count(values[0]) == len(values):
        return {"all": values[0]}
    return values


def encode_manifest(
    *,
    form: Form,
    context: ArchiveContext,
    zstd_level: int,
    members: Sequence[MemberFacts],
    offsets: Sequence[int],
    digests: Sequence[bytes],
    frame_bytes: Sequence[int],
) -> bytes:
    """The document of an archive, valid UTF-8."""
    labels = [member.labels for member in members]
    sources = list(dict.fromkeys((member.source, member.source_uid) for member in members))
    number = {source: index for index, source in enumerate(sources)}
    unknown = {"all": None}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "program": f"lifecycle {lifecycle.__version__}",
        "form": form,
        "catalog": context.catalog_id,
        "place": context.place_uid,
        "team": context.team,
        "class": context.class_name,
        "day": context.day,
        "created_ns": context.created_ns,
        "gid": context.gid,
        "mode": context.mode,
        "zstd_level": zstd_level,
        "replaces": list(context.replaces),
        "sources": [{"name": name, "uid": uid} for name, uid in sources],
        "count": len(members),
        "members": {
            "segment": _column([member.segment_id for member in members]),
            "source": _column([number[member.source, member.source_uid] for member in members]),
            "path": [show_name(member.path) for member in members],
            "size": _column([member.size for member in members]),
            "offset": list(offsets),
            "mtime_ns": _column([member.mtime_ns for member in members]),
            "last_write_ns": _column([member.last_write_ns for member in members]),
            "mode": _column([member.mode for member in members]),
            "uid": _column([member.uid for member in members]),
            "gid": _column([member.gid for member in members]),
            "class": _column([member.class_name for member in members]),
            "team": _column([label.team for label in labels]),
            "job": _column([label.job for label in labels]),
            "node": _column([label.node for label in labels]),
            "rank": _column([label.rank for label in labels]),
            "stream": _column([label.stream for label in labels]),
            "attempt": _column([label.attempt for label in labels]),
            "extra": _column([label.extra for label in labels]),
            **dict.fromkeys(_FRAME_FACTS, unknown),
        },
        "digests": {"algorithm": "blake3", "encoding": "base64", "block": b64encode(b"".join(digests)).decode()},
        "frames": {"bytes": list(frame_bytes), **dict.fromkeys(_FRAME_FACTS, unknown)},
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


class _Document:
    """Typed access to parsed JSON of unknown origin; whatever is not as expected is a ManifestError."""

    def __init__(self, value: object, count: int = 0) -> None:
        if not isinstance(value, dict):
            raise ManifestError("a part of it is not an object")
        self._values = value
        self._count = count

    def get(self, key: str) -> Any:
        if key not in self._values:
            raise ManifestError(f"it has no {key!r}")
        return self._values[key]

    def text(self, key: str) -> str:
        return str(_check(key, self.get(key), _is_text))

    def number(self, key: str) -> int:
        return int(_check(key, self.get(key), _is_number))

    def items(self, key: str) -> list[Any]:
        return list(_check(key, self.get(key), lambda value: isinstance(value, list)))

    def column(self, key: str, is_right: Callable[[Any], bool]) -> list[Any]:
        value = self.get(key)
        if isinstance(value, dict):
            if not is_right(value.get("all")):
                raise ManifestError(f"column {key!r} holds {str(value.get('all'))[:40]!r}")
            return [value.get("all")] * self._count
        if not isinstance(value, list) or len(value) != self._count:
            raise ManifestError(f"column {key!r} has not {self._count} values")
        if not all(map(is_right, value)):
            raise ManifestError(f"column {key!r} holds a value of another kind")
        return value


def _check(key: str, value: Any, is_right: Callable[[Any], bool]) -> Any:
    if not is_right(value):
        raise ManifestError(f"{key!r} holds {str(value)[:40]!r}")
    return value


def _is_number(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**64


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_maybe_number(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_pairs(value: Any) -> bool:
    return type(value) is list and all(
        type(pair) is list and len(pair) == 2 and all(map(_is_text, pair)) for pair in value
    )


def decode_manifest(raw: bytes, *, stream_bytes: int) -> Manifest:
    """Read a document of unknown origin. ``stream_bytes`` bounds what it may claim. Raises ManifestError."""
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"it is no JSON: {error}") from None
    document = _Document(parsed)
    if document.text("format") != FORMAT or document.number("version") != VERSION:
        raise ManifestError(f"its format is not {FORMAT} {VERSION}")
    if document.text("form") not in list(Form):
        raise ManifestError(f"its form is {document.text('form')!r}")
    frames = _Document(document.get("frames")).items("bytes")
    if not all(map(_is_size, frames)):
        raise ManifestError("its frames have no sizes")
    return Manifest(
        form=Form(document.text("form")),
        context=ArchiveContext(
            catalog_id=document.text("catalog"),
            place_uid=document.text("place"),
            team=document.text("team"),
            class_name=document.text("class"),
            day=document.number("day"),
            created_ns=document.number("created_ns"),
            gid=document.number("gid"),
            mode=document.number("mode"),
            replaces=tuple(_check("replaces", key, _is_text) for key in document.items("replaces")),
        ),
        zstd_level=document.number("zstd_level"),
        members=_decode_members(document, stream_bytes),
        frame_bytes=tuple(frames),
        digest=blake3(raw).digest(),
    )


def _decode_members(document: _Document, stream_bytes: int) -> tuple[StoredMember, ...]:
    count = document.number("count")
    if not 0 <= count <= stream_bytes + 1:
        raise ManifestError(f"it claims {count} members")
    columns = _Document(document.get("members"), count)
    block = _decode_block(_Document(document.get("digests")).text("block"))
    if len(block) != count * DIGEST_BYTES:
        raise ManifestError(f"it has {len(block)} bytes of digests for {count} members")
    sources = [(_Document(item).text("name"), _Document(item).text("uid")) for item in document.items("sources")]
    number, text = _is_number, _is_text
    paths = [_decode_path(shown) for shown in columns.column("path", text)]
    offsets, sizes = columns.column("offset", _is_size), columns.column("size", _is_size)
    _check_extents(offsets, sizes, stream_bytes)
    labels = [
        Labels(team=team, job=job, node=node, rank=rank, stream=stream, attempt=attempt, extra=_pairs(extra))
        for team, job, node, rank, stream, attempt, extra in zip(
            columns.column("team", text),
            columns.column("job", text),
            columns.column("node", text),
            columns.column("rank", _is_maybe_number),
            columns.column("stream", text),
            columns.column("attempt", text),
            columns.column("extra", _is_pairs),
            strict=True,
        )
    ]
    facts = map(
        MemberFacts,
        columns.column("segment", number),
        paths,
        *zip(*_decode_sources(columns, sources), strict=True) if count else ((), ()),
        sizes,
        columns.column("mtime_ns", number),
        columns.column("mode", number),
        columns.column("uid", number),
        columns.column("gid", number),
        labels,
        columns.column("class", text),
        columns.column("last_write_ns", _is_maybe_number),
    )
    own_digests = (block[at : at + DIGEST_BYTES] for at in range(0, len(block), DIGEST_BYTES))
    return tuple(map(StoredMember, facts, offsets, own_digests))


def _decode_sources(columns: _Document, sources: list[tuple[str, str]]) -> list[tuple[str, str]]:
    numbers = columns.column("source", lambda value: type(value) is int and 0 <= value < len(sources))
    return [sources[number] for number in numbers]


def _decode_block(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise ManifestError("its digests cannot be read") from None


def _pairs(value: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((pair[0], pair[1]) for pair in value)


def _decode_path(shown: str) -> bytes:
    try:
        path = parse_name(shown)
    except (LifecycleError, UnicodeEncodeError):
        raise ManifestError(f"member name {shown!r} cannot be read") from None
    if not is_safe_path(path):
        raise ManifestError(f"member name {shown!r} leads out of its folder")
    return path


def _check_extents(offsets: list[int], sizes: list[int], stream_bytes: int) -> None:
    """Members lie one after the other within the stream: no two share bytes, so nothing multiplies on reading."""
    ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
    if ends and ends[-1] > stream_bytes:
        raise ManifestError(f"a member ends at {ends[-1]} of {stream_bytes} bytes")
    if any(start < end for start, end in zip(offsets[1:], ends, strict=False)):
        raise ManifestError("its members overlap")


def encode_index(record: IndexRecord) -> bytes:
    """The payload of the index frame, closed by its own BLAKE3."""
    head = _INDEX.pack(
        _INDEX_TAG,
        _INDEX_VERSION,
        _INDEX_UNKNOWN,
        list(Form).index(record.form),
        0,
        record.data_frames,
        record.manifest_offset,
        record.manifest_size,
        record.manifest_digest,
        record.stored_digest,
    )
    return head + blake3(head).digest()


def decode_index(payload: bytes) -> IndexRecord:
    """Raises ManifestError. Kinds of index that this program does not know are passed over, versions are not."""
    if len(payload) < _INDEX.size + DIGEST_BYTES or blake3(payload[:-DIGEST_BYTES]).digest() != payload[-DIGEST_BYTES:]:
        raise ManifestError("the index record's digest differs")
    tag, version, _kind, form, _reserved, frames, offset, size, digest, stored = _INDEX.unpack_from(payload)
    if tag != _INDEX_TAG or version != _INDEX_VERSION or form >= len(Form):
        raise ManifestError(f"the index record is of another version: {version}")
    if size > MAX_MANIFEST_BYTES:
        raise ManifestError(f"the manifest claims {size} bytes, {MAX_MANIFEST_BYTES} are allowed")
    return IndexRecord(
        form=list(Form)[form],
        data_frames=frames,
        manifest_offset=offset,
        manifest_size=size,
        manifest_digest=digest,
        stored_digest=stored,
    )


def stored_shares(stored_bytes: int, sizes: Sequence[int]) -> list[int]:
    """Each member's share of the stored bytes by its size; whole numbers whose sum is exactly ``stored_bytes``.

    Where all members are empty the first one carries the object.
    """
    if not sizes:
        return []
    total = sum(sizes)
    if total == 0:
        return [stored_bytes] + [0] * (len(sizes) - 1)
    ends = [stored_bytes * running // total for running in accumulate(sizes)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]
