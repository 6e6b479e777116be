"""Values for tests: ``a_segment(age="90d")``, ``an_archive(age="8d")``, ``a_policy(teams=("nlp",))``. No disk.

Everything counts back from ``NOON``. Ages and sizes may be written as policy writes them (``"90d"``, ``"64MiB"``);
whatever else a value has is set by its own name and overrides what the builder worked out. Ids grow from 1 and are
never given twice in a process, so that two segments built side by side are two segments.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from lifecycle.model import (
    ActionKind,
    Archive,
    ArchiveState,
    Content,
    Identity,
    Labels,
    Member,
    Original,
    PlannedBatch,
    Reason,
    ReasonCode,
    RuleRef,
    Segment,
    TierName,
)
from lifecycle.plan.pressure import FileSystem
from lifecycle.policy.rules import (
    ClassRule,
    ExpireFrom,
    FillRule,
    MatchRule,
    MergeRule,
    Policy,
    QuotaRule,
    SourceRule,
    TeamRule,
    TierRule,
)
from lifecycle.units import day_of_ns, duration_ns, parse_duration, parse_size, to_ns

NOON: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NOON_NS: Final = to_ns(NOON)

_ids = itertools.count(1)
_inodes = itertools.count(1001)

Age: TypeAlias = str | timedelta | None


def ago(age: Age) -> datetime:
    """The instant that lies ``age`` before noon: ``ago("90d")``."""
    return NOON - _duration(age)


def ago_ns(age: Age) -> int:
    return NOON_NS - duration_ns(_duration(age))


def _duration(age: Age) -> timedelta:
    if age is None:
        return timedelta(0)
    return age if isinstance(age, timedelta) else parse_duration(age)


def _size(size: str | int) -> int:
    return parse_size(size) if isinstance(size, str) else size


def a_rule_ref(file: str = "platform.yaml", line: int = 12, text: str = "") -> RuleRef:
    return RuleRef(file=file, line=line, text=text)


def a_segment(
    age: Age = "90d",
    *,
    size: str | int = "1MiB",
    team: str = "vision",
    job: str = "train-1",
    node: str = "gpu-1",
    rank: int | None = 0,
    class_name: str = "training",
    tier: TierName | None = TierName.HOT,
    job_age: Age = None,
    first_seen: Age = None,
    marked: Age = None,
    grace: Age = "3d",
    **overrides: Any,
) -> Segment:
    """A settled segment last written ``age`` before noon, its original in hot unless ``tier`` says elsewhere.

    In warm or cold it has a stored copy at a fifth of its size, was looked through for errors, and its original is
    released. ``job_age`` is the age of
    the job's newest segment (its own age unless said); ``first_seen`` how long ago a scan first saw it (its own age
    unless said); ``marked`` how long ago it was marked, its purge due ``grace`` after that. ``age=None`` means "age
    unknown": no last write, and nothing else about it follows.
    """
    segment_id = overrides.pop("id", None) or next(_ids)
    size_bytes, write_ns = _size(size), ago_ns(age)
    is_stored = tier in (TierName.WARM, TierName.COLD)
    marked_ns = None if marked is None else ago_ns(marked)
    segment = Segment(
        id=segment_id,
        place_id=1,
        directory=f"{team}/{job}".encode(),
        name=b"rank_%d.log" % segment_id,
        labels=Labels(team=team, job=job, node=node, rank=rank),
        class_name=class_name,
        class_rule=a_rule_ref(text=class_name),
        layout="rank-files",
        content=Content.TEXT if size_bytes else Content.EMPTY,
        identity=Identity(inode=next(_inodes), size_bytes=size_bytes, mtime_ns=write_ns),
        allocated_bytes=-(-size_bytes // 4096) * 4096,
        ctime_ns=write_ns,
        mode=0o640,
        uid=1000,
        gid=1000,
        last_write_ns=None if age is None else write_ns,
        first_seen_ns=write_ns if first_seen is None else ago_ns(first_seen),
        original=Original.SETTLED if tier is TierName.HOT else Original.RELEASED if is_stored else Original.PURGED,
        tier=tier,
        archive_id=1 if is_stored else None,
        archive_tier=tier if is_stored else None,
        stored_bytes=size_bytes // 5 if is_stored else 0,
        digest=segment_id.to_bytes(32, "big") if is_stored else None,
        job_id=1,
        job_last_write_ns=write_ns if job_age is None else ago_ns(job_age),
        marked_ns=marked_ns,
        purge_after_ns=None if marked_ns is None else marked_ns + duration_ns(_duration(grace)),
        error_blocks=0 if is_stored else None,
    )
    return replace(segment, **overrides)


def an_archive(
    age: Age = "8d",
    *,
    tier: TierName = TierName.WARM,
    team: str = "vision",
    class_name: str = "training",
    members: int = 10,
    size: str | int = "2MiB",
    **overrides: Any,
) -> Archive:
    """A live archive whose newest member was last written ``age`` before noon, its oldest an hour before that."""
    archive_id = overrides.pop("id", None) or next(_ids)
    size_bytes, newest_ns = _size(size), ago_ns(age)
    day = day_of_ns(newest_ns)
    archive = Archive(
        id=archive_id,
        place_id=2 if tier is TierName.WARM else 3,
        tier=tier,
        key=f"{team}/{class_name}/{day}/{archive_id:08x}.tar.zst",
        team=team,
        class_name=class_name,
        day=day,
        gid=1000,
        mode=0o640,
        size_bytes=size_bytes,
        members=members,
        live_members=members,
        live_raw_bytes=size_bytes * 5,
        newest_write_ns=newest_ns,
        oldest_write_ns=newest_ns - duration_ns(timedelta(hours=1)),
        state=ArchiveState.LIVE,
        zstd_level=3,
    )
    return replace(archive, **overrides)


def a_batch(
    segments: Iterable[Segment],
    *,
    kind: ActionKind = ActionKind.MERGE,
    tier_to: TierName | None = TierName.WARM,
    **overrides: Any,
) -> PlannedBatch:
    """The batch that carries these originals from hot to ``tier_to``; team, class and day are the first one's."""
    listed = tuple(segments)
    first = listed[0]
    mode = first.mode
    for segment in listed:
        mode &= segment.mode
    batch = PlannedBatch(
        kind=kind,
        place_id=first.place_id,
        team=first.labels.team,
        class_name=first.class_name,
        tier_from=TierName.HOT,
        tier_to=tier_to,
        day=day_of_ns(first.last_write_ns or first.first_seen_ns),
        gid=first.gid,
        mode=mode & 0o777,
        reason=a_reason(),
        segments=len(listed),
        logical_bytes=sum(segment.size_bytes for segment in listed),
        stored_bytes=sum(segment.allocated_bytes for segment in listed),
        members=tuple(a_member(segment) for segment in listed),
    )
    return replace(batch, **overrides)


def a_member(segment: Segment) -> Member:
    return Member(
        segment_id=segment.id, place_id=segment.place_id, path=segment.path, identity=segment.identity
    )  # fmt: skip


def a_reason(code: ReasonCode = ReasonCode.AGED, **overrides: Any) -> Reason:
    return replace(Reason(code=code, rule=a_rule_ref(), current="90d", required="24h"), **overrides)


def a_class(
    name: str = "training",
    *,
    warm_after: str | None = "24h",
    cold_after: str | None = "7d",
    expire_after: str | None = "30d",
    expire_from: ExpireFrom = ExpireFrom.WRITE,
    file: str = "platform.yaml",
    line: int = 12,
    **overrides: Any,
) -> ClassRule:
    """The figures of one class, all written on one line of one file."""
    at = RuleRef(file=file, line=line, text=name)
    figures = ("warm_after", "cold_after", "expire_after", "expire_from", "evict", "expire_early", "keep_errors_as")
    rule = ClassRule(
        name=name,
        warm_after=parse_duration(warm_after) if warm_after else None,
        cold_after=parse_duration(cold_after) if cold_after else None,
        expire_after=parse_duration(expire_after) if expire_after else None,
        expire_from=expire_from,
        at=dict.fromkeys(("name", *figures), at),
    )
    return replace(rule, **overrides)


def seed_classes() -> tuple[ClassRule, ...]:
    """``defaults: seed-1``: error, eval, training, as the design gives them."""
    return (
        a_class("error", expire_after="90d", line=10),
        a_class("eval", cold_after=None, expire_after="7d", line=11),
        a_class("training", expire_after="30d", expire_from=ExpireFrom.JOB, line=12),
    )


def a_tier(
    name: TierName = TierName.WARM,
    *,
    path: str | None = None,
    zstd_level: int | None = None,
    below: str = "64MiB",
    target: str = "512MiB",
    line: int = 7,
    fill: FillRule | None = None,
) -> TierRule:
    at = RuleRef(file="platform.yaml", line=line, text=name.value)
    merge = MergeRule(below_bytes=parse_size(below), target_bytes=parse_size(target), at=at)
    return TierRule(
        name=name,
        path=path or f"/logs/{name.value}",
        zstd_level=zstd_level or (9 if name is TierName.COLD else 3),
        merge=merge,
        at=dict.fromkeys(("path", "zstd", "merge"), at),
        fill=fill,
    )


def a_fill(high: float | None = 0.8, low: float | None = 0.7, reserve: str | None = None, line: int = 6) -> FillRule:
    at = RuleRef(file="platform.yaml", line=line, text="hot")
    reserve_bytes = None if reserve is None else parse_size(reserve)
    return FillRule(high=high, low=low, reserve_bytes=reserve_bytes, at=dict.fromkeys(("high", "low", "reserve"), at))


def a_quota(soft: str | None = None, hard: str | None = None, line: int = 14) -> QuotaRule:
    at = dict.fromkeys(("soft", "hard"), RuleRef(file="platform.yaml", line=line, text="quota"))
    sizes = (None if size is None else parse_size(size) for size in (soft, hard))
    soft_bytes, hard_bytes = sizes
    return QuotaRule(soft_bytes=soft_bytes, hard_bytes=hard_bytes, at=at)


def a_file_system(
    name: str = "hot",
    *,
    used: str | int,
    total: str = "1000MiB",
    tiers: tuple[TierName, ...] = (TierName.HOT,),
    place_ids: tuple[int, ...] | None = None,
    used_inodes: int = 10,
    total_inodes: int = 1_000_000,
    **overrides: Any,
) -> FileSystem:
    """So much used of so much; places are 1 for hot, 2 for warm, 3 for cold, as segments and archives have them."""
    own = tuple({TierName.HOT: 1, TierName.WARM: 2, TierName.COLD: 3}[tier] for tier in tiers)
    file_system = FileSystem(
        name=name,
        tiers=tiers,
        place_ids=own if place_ids is None else place_ids,
        total_bytes=parse_size(total),
        free_bytes=parse_size(total) - _size(used),
        total_inodes=total_inodes,
        free_inodes=total_inodes - used_inodes,
    )
    return replace(file_system, **overrides)


def a_source(name: str = "lustre", *, path: str = "/logs/hot", **overrides: Any) -> SourceRule:
    at = RuleRef(file="platform.yaml", line=4, text=name)
    source = SourceRule(
        name=name,
        path=path,
        under="{team}/{job}",
        layouts=("torchrun", "slurm", "rank-files", "deepspeed", "kubernetes", "plain"),
        settle=timedelta(hours=1),
        release_after=timedelta(hours=24),
        exclude=(),
        mounts=(),
        each_node=False,
        labels={},
        at=dict.fromkeys(("name", "path", "under", "layout", "settle"), at),
    )
    return replace(source, **overrides)


def a_team(
    name: str = "vision",
    *,
    aliases: tuple[str, ...] = (),
    classes: Iterable[ClassRule] = (),
    base: Iterable[ClassRule] | None = None,
) -> TeamRule:
    """A team with its own figures for ``classes`` and the platform's (``base``) for the others."""
    figures = {rule.name: rule for rule in (*(seed_classes() if base is None else base), *classes)}
    return TeamRule(name=name, aliases=aliases, classes=figures, at=RuleRef(file=f"teams/{name}.yaml", line=1))


def a_policy(
    *,
    classes: Iterable[ClassRule] | None = None,
    teams: Iterable[str | TeamRule] = (),
    tiers: Iterable[TierName | TierRule] = (TierName.WARM, TierName.COLD),
    sources: Iterable[SourceRule] | None = None,
    matches: Iterable[MatchRule] | None = None,
    grace: str = "3d",
    **overrides: Any,
) -> Policy:
    """The seed classes over one source and both tiers; no team listed, so that every folder is a team.

    Naming teams lists them: every other team is then an unlisted one.
    """
    figures = tuple(seed_classes() if classes is None else classes)
    team_rules = [a_team(team, base=figures) if isinstance(team, str) else team for team in teams]
    tier_rules = [a_tier(tier) if isinstance(tier, TierName) else tier for tier in tiers]
    policy = Policy(
        digest="9c41e7" + "0" * 58,
        files=(("platform.yaml", "defaults: seed-1\n"),),
        catalog_url="sqlite://",
        timezone="UTC",
        sources=tuple((a_source(),) if sources is None else sources),
        tiers={tier.name: tier for tier in tier_rules},
        matches=tuple(_seed_matches(figures) if matches is None else matches),
        classes={rule.name: rule for rule in figures},
        teams={team.name: team for team in team_rules},
        grace=parse_duration(grace),
        grace_at=RuleRef(file="platform.yaml", line=16, text="grace"),
        aliases={alias: team.name for team in team_rules for alias in team.aliases},
    )
    return replace(policy, **overrides)


_SEED_PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    "error": ("error/", "errors/", "error*.log", "error.json"),
    "eval": ("eval/", "eval_*", "*_eval.log", "job:eval-*"),
}


def _seed_matches(classes: tuple[ClassRule, ...]) -> Iterable[MatchRule]:
    for rule in classes:
        patterns = _SEED_PATTERNS.get(rule.name, ())
        yield MatchRule(class_name=rule.name, patterns=patterns, at=rule.at["name"])
