"""Whether ahead-of-time work goes on: free space measured again after each batch of relief.

Knows measured file systems and what was freed. Never plans and never acts. Work for a file system ends at low. It
also ends after three batches in a row whose gain is not seen within a minute: a snapshot keeps the blocks, a process
holds the files open, somebody writes faster than we free, or the originals only wait renamed. What is due goes on.
Gains that are too small to be told from other people's writing are looked for together: a dozen files of a small job
are no sign of anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from lifecycle.model import PlannedBatch, ReasonCode
from lifecycle.plan.pressure import FileSystem, inode_marks, is_over, stop_bytes
from lifecycle.policy.rules import Policy
from lifecycle.units import format_size

UNSEEN_BATCHES: Final = 3
SEEN_WITHIN_SECONDS: Final = 60.0
_SEEN_SHARE: Final = 0.5  # of what was freed: jobs go on writing meanwhile
_SMALL: Final = 1000  # part of the file system under which a gain is looked for together with the next
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between looks; the last one repeats


@dataclass(slots=True, kw_only=True)
class ReliefWatch:
    """One run's. ``measure`` asks the file systems; it is called before the first batch and after each."""

    policy: Policy
    measure: Callable[[], Sequence[FileSystem]]
    sleep: Callable[[float], None]
    monotonic: Callable[[], float]
    given_up: dict[str, str] = field(default_factory=dict)  # why, by file system
    freed: dict[str, int] = field(default_factory=dict)  # bytes, by what they made room for
    _file_systems: dict[str, FileSystem] = field(default_factory=dict)
    _pending: dict[str, list[int]] = field(default_factory=dict)  # bytes and files of batches in flight
    _begun: dict[str, bool] = field(default_factory=dict)
    _unseen: dict[str, int] = field(default_factory=dict)
    _small: dict[str, int] = field(default_factory=dict)  # gains that nobody has looked for yet
    _level: dict[str, int] = field(default_factory=dict)  # used bytes that the next gain is measured from

    def may_begin(self, batch: PlannedBatch) -> bool:
        """Whether a batch of relief is still needed; it counts as begun then."""
        if not self._file_systems:
            self._look()
        under = self._under(batch.place_id)
        if under is not None and under.name in self.given_up:
            return False
        wanted = self._file_systems.get(batch.relief)
        if wanted is not None and not (self._has_begun(wanted, batch.reason.code) and self._is_needed(wanted)):
            return False
        if under is not None:
            pending = self._pending.setdefault(under.name, [0, 0])
            pending[0] += batch.stored_bytes
            pending[1] += len(batch.archive_ids) or batch.segments
        return True

    def _has_begun(self, file_system: FileSystem, code: ReasonCode) -> bool:
        """Between high and low it depends on how one came there: relief that was planned for a full disk does not begin
        on one that is no longer full, by what was due or by somebody's hand. Growth begins it below the mark."""
        if file_system.name not in self._begun:
            self._begun[file_system.name] = is_over(file_system, self.policy) or code is ReasonCode.GROWING
        return self._begun[file_system.name]

    def _is_needed(self, file_system: FileSystem) -> bool:
        if file_system.unknown:
            return False
        bytes_coming, files_coming = self._pending.get(file_system.name, (0, 0))
        if file_system.used_bytes - bytes_coming > stop_bytes(file_system, self.policy):
            return True
        inodes = inode_marks(file_system, self.policy)
        return inodes is not None and file_system.used_inodes - files_coming > inodes[1]

    def ended(self, batch: PlannedBatch, *, freed_bytes: int, stored_bytes: int) -> None:
        """A batch of relief is done. Waits for its gain to be seen, for a minute at the most."""
        self.freed[batch.relief] = self.freed.get(batch.relief, 0) + freed_bytes
        under = self._under(batch.place_id)
        if under is None:
            return
        pending = self._pending.get(under.name, [0, 0])
        pending[0] = max(0, pending[0] - batch.stored_bytes)
        pending[1] = max(0, pending[1] - (len(batch.archive_ids) or batch.segments))
        if batch.relief not in self._file_systems:
            self._look()  # a team's quota: the books say what came of it, however full the disk is
            return
        gain = freed_bytes - (stored_bytes if self.stays(batch) else 0)
        if gain > 0:
            gain += self._small.pop(under.name, 0)
            if gain < under.total_bytes // _SMALL:
                self._small[under.name] = gain
                self._look()
                return
        if self._has_come(under, gain, in_flight=pending[0]):
            self._unseen[under.name] = 0
            return
        self._unseen[under.name] = self._unseen.get(under.name, 0) + 1
        if self._unseen[under.name] >= UNSEEN_BATCHES:
            self.given_up.setdefault(
                under.name,
                f"{under.name}: {UNSEEN_BATCHES} batches were done ahead of their time and no room was seen to come of"
                f" it ({format_size(self.freed[batch.relief])} freed): no more of that in this run",
            )

    def stays(self, batch: PlannedBatch) -> bool:
        """Whether the copy lies on the same file system. Such batches are told one from the other only if the next is
        not begun before the last has ended: what it has stored by then would hide the gain."""
        under = self._under(batch.place_id)
        return under is not None and batch.tier_to is not None and batch.tier_to in under.tiers

    def _has_come(self, under: FileSystem, gain: int, *, in_flight: int) -> bool:
        """Whether that much less is used. A look may see what batches in flight have freed as well: it is theirs."""
        level = self._level.get(under.name, under.used_bytes)
        if gain > 0:
            is_seen = self._is_seen(under.name, level, gain)
        else:
            is_seen = False
            self._look()
        now = self._file_systems.get(under.name, under).used_bytes
        self._level[under.name] = now + max(0, min(level - max(0, gain) - now, in_flight))
        return is_seen

    def _is_seen(self, name: str, used_before: int, gain: int) -> bool:
        deadline, looks = self.monotonic() + SEEN_WITHIN_SECONDS, 0
        while True:
            self._look()
            now = self._file_systems.get(name)
            if now is None or now.unknown or now.used_bytes <= used_before - gain * _SEEN_SHARE:
                return True
            if self.monotonic() >= deadline:
                return False
            self.sleep(_PAUSES[min(looks, len(_PAUSES) - 1)])
            looks += 1

    def _look(self) -> None:
        self._file_systems = {each.name: each for each in self.measure()}

    def _under(self, place_id: int) -> FileSystem | None:
        found = (each for each in self._file_systems.values() if place_id in each.place_ids and not each.unknown)
        return next(found, None)
