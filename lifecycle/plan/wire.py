"""Values of a plan as JSON and back: what goes in comes out equal. Names of files in the form of ``names.show_name``.

``show_`` gives what ``json`` can write; ``…_of`` raises KeyError, TypeError or ValueError for anything else.
"""

from __future__ import annotations

from typing import Any

from lifecycle.model import ActionKind, Identity, Kept, Member, PlannedBatch, Reason, ReasonCode, RuleRef, TierName
from lifecycle.names import parse_name, show_name
from lifecycle.plan.plan import PlanLine, PlanSummary, PlanTotals
from lifecycle.units import from_ns, to_ns


def show_batch(batch: PlannedBatch) -> dict[str, Any]:
    return {
        "kind": batch.kind.value,
        "place_id": batch.place_id,
        "team": batch.team,
        "class": batch.class_name,
        "tier_from": batch.tier_from.value,
        "tier_to": _show_tier(batch.tier_to),
        "day": batch.day,
        "gid": batch.gid,
        "mode": batch.mode,
        "reason": _show_reason(batch.reason),
        "segments": batch.segments,
        "logical_bytes": batch.logical_bytes,
        "stored_bytes": batch.stored_bytes,
        "purge_after_ns": batch.purge_after_ns,
        "archive_ids": batch.archive_ids,
        "members": [_show_member(member) for member in batch.members],
        "relief": batch.relief,
    }


def batch_of(value: dict[str, Any]) -> PlannedBatch:
    return PlannedBatch(
        kind=ActionKind(value["kind"]),
        place_id=value["place_id"],
        team=value["team"],
        class_name=value["class"],
        tier_from=TierName(value["tier_from"]),
        tier_to=_tier_of(value["tier_to"]),
        day=value["day"],
        gid=value["gid"],
        mode=value["mode"],
        reason=_reason_of(value["reason"]),
        segments=value["segments"],
        logical_bytes=value["logical_bytes"],
        stored_bytes=value["stored_bytes"],
        purge_after_ns=value["purge_after_ns"],
        archive_ids=tuple(value["archive_ids"]),
        members=tuple(map(_member_of, value["members"])),
        relief=value["relief"],
    )


def _show_member(member: Member) -> list[Any]:
    return [member.segment_id, member.place_id, show_name(member.path), *member.identity]


def _member_of(value: list[Any]) -> Member:
    segment_id, place_id, path, inode, size_bytes, mtime_ns = value
    return Member(segment_id, place_id, parse_name(path), Identity(inode, size_bytes, mtime_ns))


def show_kept(kept: Kept) -> dict[str, Any]:
    return {
        "team": kept.team,
        "class": kept.class_name,
        "tier": kept.tier.value,
        "reason": _show_reason(kept.reason),
        "segments": kept.segments,
        "logical_bytes": kept.logical_bytes,
    }


def kept_of(value: dict[str, Any]) -> Kept:
    return Kept(
        team=value["team"],
        class_name=value["class"],
        tier=TierName(value["tier"]),
        reason=_reason_of(value["reason"]),
        segments=value["segments"],
        logical_bytes=value["logical_bytes"],
    )


def show_summary(summary: PlanSummary) -> dict[str, Any]:
    totals = summary.totals
    return {
        "plan_id": summary.plan_id,
        "policy_digest": summary.policy_digest,
        "now_ns": to_ns(summary.now),
        "lines": [_show_line(line) for line in summary.lines],
        "kept": [show_kept(kept) for kept in summary.kept],
        "totals": [totals.batches, totals.segments, totals.logical_bytes, totals.stored_bytes],
    }


def summary_of(value: dict[str, Any]) -> PlanSummary:
    batches, segments, logical_bytes, stored_bytes = value["totals"]
    return PlanSummary(
        plan_id=value["plan_id"],
        policy_digest=value["policy_digest"],
        now=from_ns(value["now_ns"]),
        lines=tuple(map(_line_of, value["lines"])),
        kept=tuple(map(kept_of, value["kept"])),
        totals=PlanTotals(batches=batches, segments=segments, logical_bytes=logical_bytes, stored_bytes=stored_bytes),
    )


def _show_line(line: PlanLine) -> dict[str, Any]:
    return {
        "action": line.action,
        "class": line.class_name,
        "teams": line.teams,
        "segments": line.segments,
        "batches": line.batches,
        "logical_bytes": line.logical_bytes,
        "stored_bytes": line.stored_bytes,
        "tier_from": line.tier_from.value,
        "tier_to": _show_tier(line.tier_to),
        "why": line.why,
        "rule": _show_rule(line.rule),
        "relief": line.relief,
    }


def _line_of(value: dict[str, Any]) -> PlanLine:
    return PlanLine(
        action=value["action"],
        class_name=value["class"],
        teams=tuple(value["teams"]),
        segments=value["segments"],
        batches=value["batches"],
        logical_bytes=value["logical_bytes"],
        stored_bytes=value["stored_bytes"],
        tier_from=TierName(value["tier_from"]),
        tier_to=_tier_of(value["tier_to"]),
        why=value["why"],
        rule=_rule_of(value["rule"]),
        relief=value["relief"],
    )


def _show_reason(reason: Reason) -> dict[str, Any]:
    return {
        "code": reason.code.value,
        "rule": _show_rule(reason.rule),
        "current": reason.current,
        "required": reason.required,
        "until_ns": reason.until_ns,
    }


def _reason_of(value: dict[str, Any]) -> Reason:
    return Reason(
        code=ReasonCode(value["code"]),
        rule=_rule_of(value["rule"]),
        current=value["current"],
        required=value["required"],
        until_ns=value["until_ns"],
    )


def _show_rule(rule: RuleRef | None) -> list[Any] | None:
    return None if rule is None else [rule.file, rule.line, rule.text]


def _rule_of(value: list[Any] | None) -> RuleRef | None:
    if value is None:
        return None
    file, line, text = value
    return RuleRef(file=file, line=line, text=text)


def _show_tier(tier: TierName | None) -> str | None:
    return None if tier is None else tier.value


def _tier_of(value: str | None) -> TierName | None:
    return None if value is None else TierName(value)
