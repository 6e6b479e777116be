"""The manifest: everything comes back, and a document of unknown origin is believed in nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lifecycle.archive.manifest import (
    Form,
    IndexRecord,
    ManifestError,
    decode_index,
    decode_manifest,
    encode_index,
    encode_manifest,
)
from lifecycle.model import Labels
from tests.unit.archive.archives import a_context, a_member


def a_document(**context: Any) -> bytes:
    return encode_manifest(
        form=Form.TAR,
        context=a_context(**context),
        zstd_level=3,
        members=[a_member(b"a.log", b"xx"), a_member(b"b.log", b"yyy")],
        offsets=[512, 1536],
        digests=[b"1" * 32, b"2" * 32],
        frame_bytes=[2048],
    )


def changed(**parts: Any) -> bytes:
    """The document with some of its values replaced; ``members__path`` reaches into ``members``."""
    document = json.loads(a_document())
    for key, value in parts.items():
        *above, last = key.split("__")
        place = document
        for part in above:
            place = place[part]
        place[last] = value
    return json.dumps(document).encode()


def test_everything_that_was_said_of_a_member_comes_back() -> None:
    members = [
        a_member(b"rank\xff.log", b"x", segment_id=2**40, labels=Labels(team="vision", job="j", rank=None)),
        a_member(
            "日志/\n.log".encode(),
            b"yy",
            source="nvme",
            source_uid="place-9",
            mtime_ns=-1,
            last_write_ns=None,
            mode=0o7777,
            uid=2**32 - 2,
            labels=Labels(team="v", job="é", node="n", rank=3, stream="stderr", attempt="2", extra=(("pod", "p-1"),)),
            class_name="error",
        ),
        a_member(b"d/empty.log"),
    ]
    context = a_context(replaces=("vision/training/2026-02-01/old.tar.zst",), day=-3)
    digests = [bytes([number]) * 32 for number in range(3)]
    raw = encode_manifest(
        form=Form.TAR,
        context=context,
        zstd_level=9,
        members=members,
        offsets=[512, 1536, 2560],
        digests=digests,
        frame_bytes=[4096, 1024],
    )
    manifest = decode_manifest(raw, stream_bytes=5120)
    assert [member.facts for member in manifest.members] == members
    assert [member.offset for member in manifest.members] == [512, 1536, 2560]
    assert [member.digest for member in manifest.members] == digests
    assert (manifest.context, manifest.form, manifest.zstd_level) == (context, Form.TAR, 9)
    assert manifest.frame_bytes == (4096, 1024)


def test_the_document_is_utf_8_json_that_anybody_can_read() -> None:
    document = json.loads(a_document().decode("utf-8"))
    assert document["members"]["path"] == ["a.log", "b.log"]
    assert document["members"]["class"] == {"all": "training"}


def test_what_nobody_has_looked_into_is_unknown_and_not_zero() -> None:
    document = json.loads(a_document())
    for column in ("first_event_ns", "last_event_ns", "lines", "levels"):
        assert document["members"][column] == {"all": None}
        assert document["frames"][column] == {"all": None}


@pytest.mark.parametrize(
    "path", ["../../x", "/etc/passwd", "a/../b", "a//b", "", ".", "a/", "a\\x00b", "a\\", "a\\xzz", 7, None, "\ud800"]
)
def test_a_member_name_that_leads_out_makes_the_manifest_wrong(path: object) -> None:
    with pytest.raises(ManifestError):
        decode_manifest(changed(members__path=["a.log", path]), stream_bytes=4096)


@pytest.mark.parametrize(
    "parts",
    [
        {"format": "other"},
        {"version": 2},
        {"version": True},
        {"form": "plain"},
        {"form": []},
        {"count": 3},
        {"count": -1},
        {"count": 2**60},
        {"count": "2"},
        {"members": []},
        {"members__size": [2]},
        {"members__size": {"all": -1}},
        {"members__size": {"all": True}},
        {"members__size": {"all": 10**9}},
        {"members__size": [2, 4000]},
        {"members__size": [2000, 3]},
        {"members__offset": [512, -1]},
        {"members__offset": [1536, 512]},
        {"members__offset": {}},
        {"members__mtime_ns": [1, 2**70]},
        {"members__mtime_ns": [1, 1.5]},
        {"members__source": [0, 1]},
        {"members__source": [0, -1]},
        {"members__rank": {"all": "0"}},
        {"members__extra": {"all": [["a"]]}},
        {"members__team": {"all": None}},
        {"digests__block": "AAAA"},
        {"digests__block": "é"},
        {"digests__block": None},
        {"digests": 1},
        {"sources": [{"name": "x"}]},
        {"sources": ["x"]},
        {"replaces": [1]},
        {"frames": {}},
        {"frames__bytes": [-1]},
        {"frames__bytes": {"all": 1}},
        {"catalog": None},
    ],
)
def test_a_document_that_says_what_cannot_be_is_refused(parts: dict[str, Any]) -> None:
    assert decode_manifest(changed(), stream_bytes=4096).members
    with pytest.raises(ManifestError):
        decode_manifest(changed(**parts), stream_bytes=4096)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 5000, b"9" * 10_000]
)
def test_what_is_no_manifest_at_all_is_refused(raw: bytes) -> None:
    with pytest.raises(ManifestError):
        decode_manifest(raw, stream_bytes=4096)


@pytest.mark.parametrize("key", list(json.loads(a_document())))
def test_no_part_may_be_missing(key: str) -> None:
    document = json.loads(a_document())
    del document[key]
    if key == "program":
        decode_manifest(json.dumps(document).encode(), stream_bytes=4096)
        return
    with pytest.raises(ManifestError):
        decode_manifest(json.dumps(document).encode(), stream_bytes=4096)


RECORD = IndexRecord(
    form=Form.SINGLE,
    data_frames=7,
    manifest_offset=99,
    manifest_size=5,
    manifest_digest=b"d" * 32,
    stored_digest=b"s" * 32,
)


def test_the_index_record_comes_back() -> None:
    assert decode_index(encode_index(RECORD)) == RECORD


def test_any_changed_byte_of_the_index_record_is_noticed() -> None:
    raw = encode_index(RECORD)
    for at in range(len(raw)):
        spoilt = raw[:at] + bytes([raw[at] ^ 0x10]) + raw[at + 1 :]
        with pytest.raises(ManifestError):
            decode_index(spoilt)


def test_an_index_record_that_is_cut_is_noticed() -> None:
    raw = encode_index(RECORD)
    for size in range(len(raw)):
        with pytest.raises(ManifestError):
            decode_index(raw[:size])
