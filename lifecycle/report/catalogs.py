"""The catalog's own facts, folded to lines."""

from __future__ import annotations

from collections.abc import Iterator

from lifecycle.catalog.upgrade import CatalogStatus, UpgradeReport
from lifecycle.report.blocks import Block, Column, Line, Table, Tone
from lifecycle.units import format_instant, format_size, from_ns


def fold_status(status: CatalogStatus) -> Iterator[Block]:
    spare = f", {format_size(status.free_bytes)} of it to be used again" if status.free_bytes else ""
    rows = [
        ("catalog", str(status.path)),
        ("id", f"{status.catalog_id}, generation {status.generation}"),
        ("kind", "rehearsal: its clock may be moved" if status.rehearsal else "real"),
        ("schema", f"{status.revision}, program {status.head}"),
        ("size", f"{format_size(status.size_bytes)}{spare}"),
        ("made", format_instant(from_ns(status.created_ns))),
        ("last run", format_instant(from_ns(status.clock_ns)) if status.clock_ns else "–"),
    ]
    yield Table(columns=(Column(key="what"), Column(key="value")), rows=rows, has_heading=False)
    if not status.is_current:
        is_newer = status.revision.isdecimal() and int(status.revision) > int(status.head)
        what = "use the lifecycle version that upgraded it" if is_newer else "lifecycle catalog upgrade"
        yield Line(text=f"HINT: {what}", tone=Tone.WARNING)


def fold_upgrade(report: UpgradeReport) -> Iterator[Block]:
    if not report.changed:
        yield Line(text=f"schema {report.revision} already: nothing to do", tone=Tone.GOOD)
        return
    yield Line(text=f"schema {report.revision_before} → {report.revision}", tone=Tone.GOOD)
    yield Line(text=f"backup of before: {report.backup}", tone=Tone.QUIET)
