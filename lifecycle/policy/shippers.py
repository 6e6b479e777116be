"""Layouts of files that shippers write: fluentd, filebeat, Vector. Their live buffers are in ``policy.never``.

Without these layouts ``plain`` takes the same files, but for endings of their own; they are tried where a source names
them, and give the label that the name has: ``tag``, ``beat`` or ``sink``.
"""

from __future__ import annotations

import re
from typing import Final

from lifecycle.policy.reading import FolderRead, Known, Layout, NameRead, Parts, Sample

_ENDINGS: Final = rb"(?:\.(?:log|txt|json|jsonl|ndjson))"
_FLUENTD: Final = re.compile(rb"(.+?)\.(?:19|20)\d{6}(?:\d{2}){0,3}(?:_\d{1,6})?" + _ENDINGS + rb"?\Z", re.DOTALL)
_FILEBEAT: Final = re.compile(rb"(.+?)-(?:19|20)\d{6}(?:\d{2}){0,3}(?:-\d{1,4})?\.ndjson\Z", re.DOTALL)
_VECTOR: Final = re.compile(rb"(?:(.+?)[-_.])?(?:19|20)\d{2}-\d{2}-\d{2}(?:[-_T]\d{2})?" + _ENDINGS + rb"\Z", re.DOTALL)


def _layout(name: str, says: str, label: str, pattern: re.Pattern[bytes], samples: tuple[Sample, ...]) -> Layout:
    def read_name(name: bytes) -> NameRead | None:
        match = pattern.match(name)
        if match is None:
            return None
        return NameRead(name, extra=() if match[1] is None else ((label, match[1]),))

    def enter(parts: Parts, known: Known) -> FolderRead | None:
        return FolderRead(read_name, parts)

    return Layout(name=name, says=says, enter=enter, samples=samples, extra_labels=(label,), is_default=False)


FLUENTD: Final = _layout(
    "fluentd",
    "fluentd out_file: TAG.YYYYmmdd.log, TAG.YYYYmmdd_N.log.gz; never its buffers",
    "tag",
    _FLUENTD,
    (
        Sample(path="app.20260312.log", labels="tag=app"),
        Sample(path="nlp.sft/app.2026031210_0.log", labels="tag=app"),
        Sample(path="app.20260312_3.log.gz", labels="tag=app"),
        Sample(path="app.20260312_3", labels="tag=app"),
        Sample(path="app/buffer.b5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log", labels=None),
        Sample(path="${tag}/buffer.q5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log.meta", labels=None),
        Sample(path="app.b5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log", labels=None),
        Sample(path="app.log.pos", labels=None),
    ),
)
FILEBEAT: Final = _layout(
    "filebeat",
    "filebeat output.file: filebeat-YYYYmmdd.ndjson, filebeat-YYYYmmdd-N.ndjson",
    "beat",
    _FILEBEAT,
    (
        Sample(path="filebeat-20260312.ndjson", labels="beat=filebeat"),
        Sample(path="filebeat-20260312-2.ndjson", labels="beat=filebeat"),
        Sample(path="filebeat-20260312101010-2.ndjson.gz", labels="beat=filebeat"),
        Sample(path="registry/filebeat/log.json", labels=None),
        Sample(path="filebeat.lock", labels=None),
    ),
)
VECTOR: Final = _layout(
    "vector",
    "Vector's file sink: NAME-YYYY-MM-DD.log, NAME-YYYY-MM-DD-HH.ndjson.zst; give it settle: 26h, it appends all day",
    "sink",
    _VECTOR,
    (
        Sample(path="vector-2026-03-12.log", labels="sink=vector"),
        Sample(path="nlp/vector-2026-03-12.log.zst", labels="sink=vector"),
        Sample(path="app-2026-03-12-10.ndjson", labels="sink=app"),
        Sample(path="gpu-1/2026-03-12.log", labels=""),
        Sample(path="buffer/v2/sink/buffer-data-0.dat", labels=None),
        Sample(path="buffer/v2/sink/buffer.lock", labels=None),
    ),
)
