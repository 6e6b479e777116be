"""The system clock: the only module that asks what time it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(slots=True)
class MovedClock:
    """A clock set to a start and running on from there: rehearsals, previews of another day, tests."""

    start: datetime
    _origin: float = field(default_factory=time.monotonic)

    def now(self) -> datetime:
        return self.start + timedelta(seconds=time.monotonic() - self._origin)

    def monotonic(self) -> float:
        return time.monotonic()
