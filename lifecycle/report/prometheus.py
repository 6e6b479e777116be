"""The audit as Prometheus text: gauges for a textfile collector, names with their units, one HELP and TYPE each.

Knows the exposition format (version 0.0.4) and the figures of the audit. Label values are other people's text and
escaped. Written atomically by ``audit --format prometheus --out FILE``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lifecycle.report.figures import AuditReport, RunLine

Sample = tuple[dict[str, str], float]
_PREFIX: Final = "lifecycle_"


def render_prometheus(report: AuditReport) -> Iterator[str]:
    """Lines without line ends. Families in a fixed order; a family without samples is left out."""
    for name, words, samples in _families(report):
        if samples:
            yield f"# HELP {_PREFIX}{name} {words}"
            yield f"# TYPE {_PREFIX}{name} gauge"
            for labels, value in samples:
                shown = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
                yield f"{_PREFIX}{name}{'{' + shown + '}' if shown else ''} {_number(value)}"


def _families(report: AuditReport) -> Iterator[tuple[str, str, Sequence[Sample]]]:
    teams = [({"team": row.team, "class": row.class_name, "tier": row.tier.value}, row.usage) for row in report.teams]
    yield "segments", "Segments by where they can be read.", [(labels, usage.segments) for labels, usage in teams]
    yield "logical_bytes", "Bytes that logs hold.", [(labels, usage.logical_bytes) for labels, usage in teams]
    yield (
        "stored_bytes",
        "Bytes that logs take: blocks in hot, shares of archives elsewhere.",
        [(labels, usage.stored_bytes) for labels, usage in teams],
    )
    tiers = [({"tier": tier.tier.value}, tier) for tier in report.tiers]
    yield "objects", "Files in hot, archives elsewhere.", [(labels, tier.objects) for labels, tier in tiers]
    yield (
        "tier_size_bytes",
        "Size of the fullest file system under the tier.",
        [(labels, tier.total_bytes) for labels, tier in tiers if tier.total_bytes is not None],
    )
    yield (
        "tier_free_bytes",
        "What is free on it.",
        [(labels, tier.free_bytes) for labels, tier in tiers if tier.free_bytes is not None],
    )
    yield (
        "pressure_files_per_hour",
        "Files last written on the last whole day, an hour.",
        [({"team": line.team}, line.files_per_hour) for line in report.pressure],
    )
    yield (
        "pressure_bytes_per_hour",
        "Their bytes, an hour.",
        [({"team": line.team}, line.bytes_per_hour) for line in report.pressure],
    )
    yield (
        "past_retention_segments",
        "Segments whose own last write is past their retention.",
        [({"team": line.team, "class": line.class_name}, line.past_segments) for line in report.retention],
    )
    yield (
        "errors_waiting_segments",
        "Stored and not looked through for errors yet; none of these goes.",
        [({"team": line.team, "class": line.class_name}, line.waiting) for line in report.errors],
    )
    yield (
        "errors_unreadable_segments",
        "Of these, what could not be read as text.",
        [({"team": line.team, "class": line.class_name}, line.unreadable) for line in report.errors],
    )
    yield (
        "held_segments",
        "Segments that a hold covers.",
        [({"hold": str(line.id), "owner": line.owner}, line.segments) for line in report.holds],
    )
    yield (
        "kept_beyond_bytes",
        "Stored bytes kept past their grace beside members that stay.",
        [
            ({"team": line.team, "class": line.class_name, "tier": line.tier.value, "why": line.why}, line.stored_bytes)
            for line in report.beyond
        ],
    )
    yield from _counters(report)
    yield from _runs(report)


def _counters(report: AuditReport) -> Iterator[tuple[str, str, Sequence[Sample]]]:
    counted = report.counters
    for name, words, value in (
        ("marked_segments", "Marked and not yet purged.", counted.marked),
        ("open_segments", "Originals that may still be written.", counted.open_segments),
        ("open_bytes", "Blocks of those.", counted.open_bytes),
        ("missing_segments", "Not seen in the last complete scan.", counted.missing),
        ("age_unknown_segments", "Kept, as their time of last write cannot be true.", counted.age_unknown),
        ("foreign_files", "Files that no layout claims.", counted.foreign),
        ("quarantined_archives", "Damaged archives, set aside.", counted.quarantined_archives),
        ("unfinished_batches", "Half-done work that the next run puts right.", counted.unfinished_batches),
    ):
        yield name, words, [({}, value)]
    alarms = sum(line.is_urgent for line in report.attention)
    yield "attention", "Lines of the audit that ask for a person.", [
        ({"level": "urgent"}, alarms), ({"level": "soon"}, len(report.attention) - alarms),
    ]  # fmt: skip
    yield (
        "place_ok",
        "1 where a place is as it should be.",
        [
            ({"place": place.name, "kind": place.kind, "host": place.host}, float(place.state == "ok"))
            for place in report.places
        ],
    )


def _runs(report: AuditReport) -> Iterator[tuple[str, str, Sequence[Sample]]]:
    last, good = report.last_run, report.last_good_run
    yield "last_run_timestamp_seconds", "When the last run began.", _when(last)
    yield "last_good_run_timestamp_seconds", "When the last run that ended well began.", _when(good)
    ended = last is not None and last.exit_code is not None
    code = last.exit_code if last is not None else None
    yield "last_run_exit_code", "Its exit code.", [] if code is None else [({}, int(code))]
    yield "last_run_ended", "0 while it runs, or when it was killed.", [({}, float(ended))] if last else []
    yield "audit_timestamp_seconds", "When these figures were read.", [({}, report.at.timestamp())]


def _when(run: RunLine | None) -> list[Sample]:
    return [({}, run.now.timestamp())] if run is not None else []


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
