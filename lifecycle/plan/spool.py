"""A plan as a file: JSON lines, written and read one batch at a time, refused when it is cut short or was edited.

Knows the format and its checks. Never plans. It is the spool of a run and what ``plan --out`` leaves.

    {"lifecycle_plan": 1, "plan_id": …, "policy_digest": …, "catalog_id": …, "now_ns": …}
    {"batch": {…, "members": [[segment id, place id, path, inode, size, mtime], …]}}     one line a batch
    {"kept": {…}}                                                                        one line a group
    {"summary": {…}}
    {"digest": "…", "lines": n}                     BLAKE2b of every byte before this line
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final

from lifecycle.errors import UsageError
from lifecycle.model import Kept, PlannedBatch
from lifecycle.plan.plan import PlanSummary, PlanTally, make_plan_id
from lifecycle.plan.wire import batch_of, kept_of, show_batch, show_kept, show_summary, summary_of
from lifecycle.policy.rules import Policy
from lifecycle.units import format_duration, format_instant, from_ns, to_ns

FORMAT: Final = 1
MAX_AGE: Final = timedelta(hours=24)
_SKEW: Final = timedelta(minutes=1)  # between the clocks of two hosts
_MAX_LINE: Final = 256 * 2**20  # 4,096 members with the longest paths, every byte escaped, and room to spare
_BROKEN: Final = (KeyError, TypeError, ValueError, IndexError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanHeader:
    plan_id: str
    policy_digest: str
    catalog_id: str
    now: datetime


def write_plan(
    path: Path, items: Iterable[PlannedBatch | Kept], *, policy: Policy, catalog_id: str, now: datetime
) -> PlanSummary:
    """Write every item as it comes. The file is there whole, or not at all; one of that name is replaced."""
    header = PlanHeader(
        plan_id=make_plan_id(catalog_id, policy.digest, now),
        policy_digest=policy.digest,
        catalog_id=catalog_id,
        now=now,
    )
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        # Paths and job names are nobody else's business: readable by whoever plans.
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:
            summary = _write(out, header, items, policy)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return summary


def _write(out: BinaryIO, header: PlanHeader, items: Iterable[PlannedBatch | Kept], policy: Policy) -> PlanSummary:
    digest, lines = hashlib.blake2b(digest_size=32), 0
    tally = PlanTally(policy, plan_id=header.plan_id, now=header.now)

    def put(value: dict[str, Any]) -> None:
        nonlocal lines
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        digest.update(line)
        out.write(line)
        lines += 1

    put(_show_header(header))
    for item in items:
        tally.add(item)
        put({"kept": show_kept(item)} if isinstance(item, Kept) else {"batch": show_batch(item)})
    summary = tally.summary()
    put({"summary": show_summary(summary)})
    out.write(json.dumps({"digest": digest.hexdigest(), "lines": lines}).encode() + b"\n")
    return summary


def _show_header(header: PlanHeader) -> dict[str, Any]:
    return {
        "lifecycle_plan": FORMAT,
        "plan_id": header.plan_id,
        "policy_digest": header.policy_digest,
        "catalog_id": header.catalog_id,
        "now_ns": to_ns(header.now),
    }


class PlanFile:
    """A plan file that was read once from end to end: whole, of this policy, not too old.

    Raises UsageError when it is not there, cut short, edited, of another policy or catalog, older than 24 hours, or
    made for a time to come. ``items`` reads it again, lazily, each time it is called.
    """

    def __init__(self, path: Path, *, policy: Policy, now: datetime, catalog_id: str | None = None) -> None:
        self.path = path
        self._again = f"make a new one: lifecycle plan --out {path}"
        self._state, self.header, self.summary = self._verify()
        self._check(policy, now, catalog_id)

    def items(self) -> Iterator[PlannedBatch | Kept]:
        """The batches in the order of a run, then what is kept. Raises UsageError when the file changed meanwhile."""
        with self._open() as file:
            if _state(file) != self._state:
                raise UsageError(f"plan file {self.path} changed while it was in use", hint=self._again)
            for line in file:
                try:
                    item = _item(json.loads(line))
                except _BROKEN as error:
                    raise self._unreadable() from error
                if item is not None:
                    yield item

    def batches(self) -> Iterator[PlannedBatch]:
        return (item for item in self.items() if isinstance(item, PlannedBatch))

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise UsageError(f"plan file {self.path}: {error.strerror}", hint="lifecycle plan --out FILE") from error

    def _verify(self) -> tuple[tuple[int, ...], PlanHeader, PlanSummary]:
        with self._open() as file:
            state = _state(file)
            first, before_last, last, digest, lines = _digest(file)
        try:
            header = _parse_header(json.loads(first))
            footer = json.loads(last)
            wanted = str(footer["digest"]), int(footer["lines"])
        except _BROKEN as error:
            raise UsageError(
                f"plan file {self.path} is cut short or is no plan of this program", hint=self._again
            ) from error
        if wanted != (digest, lines):
            raise UsageError(f"plan file {self.path} was changed after it was written", hint=self._again)
        try:
            return state, header, summary_of(json.loads(before_last)["summary"])
        except _BROKEN as error:
            raise self._unreadable() from error

    def _unreadable(self) -> UsageError:
        return UsageError(f"plan file {self.path} cannot be read by this version", hint=self._again)

    def _check(self, policy: Policy, now: datetime, catalog_id: str | None) -> None:
        header, name = self.header, f"plan file {self.path}"
        if header.policy_digest != policy.digest:
            raise UsageError(
                f"{name} was made under policy {header.policy_digest[:6]}, now it is {policy.digest[:6]}",
                hint=self._again,
            )
        if catalog_id is not None and header.catalog_id != catalog_id:
            raise UsageError(f"{name} is of catalog {header.catalog_id}, this is {catalog_id}", hint=self._again)
        if now - header.now > MAX_AGE:
            age, limit = format_duration(now - header.now), format_duration(MAX_AGE)
            raise UsageError(f"{name} is {age} old, the limit is {limit}", hint=self._again)
        if header.now - now > _SKEW:
            raise UsageError(
                f"{name} is for {format_instant(header.now)}, it is {format_instant(now)}",
                hint="a plan with --as-of is to look at, not to run",
            )


def _state(file: BinaryIO) -> tuple[int, ...]:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _digest(file: BinaryIO) -> tuple[bytes, bytes, bytes, str, int]:
    """First line, last but one, last, and digest and number of all lines but the last; one line in memory at a time."""
    digest, lines = hashlib.blake2b(digest_size=32), 0
    first = before_last = last = b""
    while line := file.readline(_MAX_LINE):
        if last:
            digest.update(last)
            lines += 1
        first, before_last, last = first or line, last, line
    return first, before_last, last, digest.hexdigest(), lines


def _parse_header(value: dict[str, Any]) -> PlanHeader:
    if value["lifecycle_plan"] != FORMAT:
        raise ValueError(value["lifecycle_plan"])
    return PlanHeader(
        plan_id=str(value["plan_id"]),
        policy_digest=str(value["policy_digest"]),
        catalog_id=str(value["catalog_id"]),
        now=from_ns(value["now_ns"]),
    )


def _item(value: dict[str, Any]) -> PlannedBatch | Kept | None:
    if "batch" in value:
        return batch_of(value["batch"])
    return kept_of(value["kept"]) if "kept" in value else None
