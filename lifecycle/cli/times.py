"""Instants as people type them: ISO with or without a zone, a plain day, ``now``, ``-7d``, ``+30d``.

What names no zone is in the policy's ``timezone``; it is resolved when the policy is known, and refused for its
form when it is typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from lifecycle.errors import UsageError
from lifecycle.units import parse_duration

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    _When = click.ParamType["When"]
    _Duration = click.ParamType[timedelta]
else:  # click before 8.5 has no typed parameters
    _When = _Duration = click.ParamType


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """An instant that may still lack its zone or its present."""

    text: str
    at: datetime | None = None  # aware, or naive in the policy's zone
    offset: timedelta | None = None  # from now

    @property
    def needs_zone(self) -> bool:
        return self.at is not None and self.at.tzinfo is None

    def resolve(self, *, now: datetime, zone: str) -> datetime:
        """The aware instant in UTC. A local time that a clock change skips is read as if it had not changed."""
        if self.at is None:
            return now + (self.offset or timedelta(0))
        if self.at.tzinfo is not None:
            return self.at.astimezone(UTC)
        return self.at.replace(tzinfo=load_zone(zone)).astimezone(UTC)


def load_zone(name: str) -> ZoneInfo:
    """Raises UsageError for a zone that this machine does not know."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"time zone {name!r} is not known here", hint="set timezone: UTC in platform.yaml") from None


def parse_when(text: str) -> When:
    """Raises ValueError whose text is the message."""
    word = text.strip()
    if word == "now":
        return When(text=text, offset=timedelta(0))
    if word[:1] in ("-", "+"):
        size = parse_duration(word[1:])
        return When(text=text, offset=size if word[0] == "+" else -size)
    try:
        return When(text=text, at=datetime.fromisoformat(word))
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time; write 2026-09-11, '2026-09-11 02:30', 2026-09-11T02:30Z, -7d or +30d"
        ) from None


class WhenType(_When):
    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> When:
        if isinstance(value, When):
            return value
        try:
            return parse_when(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class DurationType(_Duration):
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


WHEN = WhenType()
DURATION = DurationType()
