"""Relief goes on while room is needed and is seen to come of it, and no longer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lifecycle.execute.watch import ReliefWatch
from lifecycle.model import PlannedBatch, ReasonCode, TierName
from lifecycle.plan.pressure import FileSystem
from tests.builders import a_batch, a_file_system, a_reason, a_segment
from tests.unit.plan.pressures import MIB, a_policy_with_marks


@dataclass
class Disk:
    """A file system of 1000 MiB, and a clock that only sleep moves."""

    used: int
    seconds: float = 0.0
    appears_after: float = 0.0  # seconds of sleep before what was freed is seen
    hidden: int = 0
    looks: int = 0
    unknown: str = ""
    waits: list[float] = field(default_factory=list)

    def measure(self) -> tuple[FileSystem, ...]:
        self.looks += 1
        return (a_file_system(used=f"{self.used}MiB", unknown=self.unknown),)

    def free(self, mib: int) -> None:
        if self.appears_after:
            self.hidden += mib
        else:
            self.used -= mib

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds
        if self.hidden and self.seconds >= self.appears_after:
            self.used, self.hidden = self.used - self.hidden, 0

    def watch(self) -> ReliefWatch:
        return ReliefWatch(
            policy=a_policy_with_marks(), measure=self.measure, sleep=self.sleep, monotonic=lambda: self.seconds
        )


def a_relief(mib: int = 20, relief: str = "hot") -> PlannedBatch:
    return a_batch(
        [a_segment("5h", size=f"{mib}MiB")], tier_to=TierName.WARM, relief=relief, reason=a_reason(ReasonCode.OVER_HIGH)
    )


def done(watch: ReliefWatch, disk: Disk, batch: PlannedBatch, mib: int) -> None:
    disk.free(mib)
    watch.ended(batch, freed_bytes=mib * MIB, stored_bytes=0)


def test_it_stops_at_low() -> None:
    disk = Disk(used=810)
    watch, begun = disk.watch(), 0
    for batch in (a_relief() for _ in range(9)):
        if watch.may_begin(batch):
            begun += 1
            done(watch, disk, batch, 20)
    assert (begun, disk.used) == (6, 690)


def test_what_others_freed_meanwhile_counts() -> None:
    disk = Disk(used=810)
    watch = disk.watch()
    batch = a_relief()
    assert watch.may_begin(batch)
    done(watch, disk, batch, 110)
    assert not watch.may_begin(a_relief())


def test_batches_in_flight_count_as_done() -> None:
    watch = Disk(used=810).watch()
    assert [watch.may_begin(a_relief(40)) for _ in range(4)] == [True, True, True, False]


def test_relief_does_not_begin_on_a_disk_that_is_no_longer_full_unless_it_will_be() -> None:
    assert not Disk(used=800).watch().may_begin(a_relief())
    assert Disk(used=801).watch().may_begin(a_relief())
    growing = replace(a_relief(), reason=a_reason(ReasonCode.GROWING))
    assert Disk(used=750).watch().may_begin(growing)
    assert not Disk(used=700).watch().may_begin(growing)


def test_a_gain_that_is_seen_within_a_minute_is_waited_for() -> None:
    disk = Disk(used=900, appears_after=20.0)
    watch = disk.watch()
    batch = a_relief()
    assert watch.may_begin(batch)
    done(watch, disk, batch, 20)
    assert 20 <= disk.seconds < 60
    assert watch.given_up == {}


def test_three_batches_without_a_gain_end_it() -> None:
    disk = Disk(used=900, appears_after=10_000)
    watch, begun = disk.watch(), 0
    for batch in (a_relief() for _ in range(6)):
        if watch.may_begin(batch):
            begun += 1
            done(watch, disk, batch, 20)
    assert begun == 3
    assert 180 <= disk.seconds <= 3 * 69
    assert "3 batches were done ahead of their time and no room was seen" in watch.given_up["hot"]


def test_small_gains_are_looked_for_together() -> None:
    """Of 1000 MiB: three batches of 400 KiB are one look, and a minute is waited for once."""
    disk = Disk(used=900, appears_after=10_000)
    watch = disk.watch()
    for number in range(9):
        assert watch.may_begin(a_relief(1)), number
        watch.ended(a_relief(1), freed_bytes=400 * 1024, stored_bytes=0)
        assert (disk.seconds > 0) is (number >= 2)
    assert 180 <= disk.seconds <= 3 * 69
    assert not watch.may_begin(a_relief(1))
    seen = Disk(used=900)
    watch = seen.watch()
    for number in range(9):
        seen.free(1 if number % 3 == 2 else 0)
        watch.ended(a_relief(1), freed_bytes=400 * 1024, stored_bytes=0)
    assert seen.waits == [] and watch.may_begin(a_relief(1))


def test_what_a_look_sees_of_batches_in_flight_is_theirs() -> None:
    disk = Disk(used=900)
    watch = disk.watch()
    batches = [a_relief() for _ in range(4)]
    assert all(map(watch.may_begin, batches))
    disk.free(80)  # all of them, before the first is told
    for batch in batches:
        watch.ended(batch, freed_bytes=20 * MIB, stored_bytes=0)
    assert disk.waits == [] and watch.given_up == {}


def test_what_others_free_hides_no_batch_that_gains_nothing() -> None:
    disk = Disk(used=990)
    watch, begun = disk.watch(), 0
    for number in range(6):
        if watch.may_begin(batch := a_relief()):
            begun += 1
            done(watch, disk, batch, 150 if number == 0 else 0)
    assert begun == 4, "the first gained what three would have, and none is in flight"


def test_a_gain_in_between_counts_anew() -> None:
    disk = Disk(used=990)
    watch, begun = disk.watch(), 0
    for number, batch in enumerate(a_relief() for _ in range(7)):
        if watch.may_begin(batch):
            begun += 1
            done(watch, disk, batch, 20 if number % 3 == 2 else 0)
    assert begun == 7


def test_originals_that_only_wait_renamed_are_no_gain_and_nobody_waits_for_it() -> None:
    disk = Disk(used=900)
    watch = disk.watch()
    for batch in (a_relief() for _ in range(3)):
        assert watch.may_begin(batch)
        watch.ended(batch, freed_bytes=0, stored_bytes=0)
    assert not watch.may_begin(a_relief())
    assert disk.waits == []


def test_a_team_over_its_quota_is_relieved_however_empty_the_disk_and_whatever_is_seen_there() -> None:
    disk = Disk(used=100, appears_after=10_000)
    watch = disk.watch()
    for batch in (a_relief(relief="team nlp on hot") for _ in range(5)):
        assert watch.may_begin(batch)
        done(watch, disk, batch, 20)
    assert disk.waits == []


def test_a_file_system_that_cannot_be_measured_any_more_ends_its_relief() -> None:
    disk = Disk(used=900)
    watch = disk.watch()
    assert watch.may_begin(a_relief())
    disk.unknown = "free_space command: exit 1"
    watch.ended(a_relief(), freed_bytes=20 * MIB, stored_bytes=0)
    assert not watch.may_begin(a_relief())
