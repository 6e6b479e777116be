"""Every error that a user can meet: message, hint, what follows (retry, skip, halt) and the exit code.

Exit codes (the first that applies wins, in the order of ``EXIT_PRECEDENCE``):
0 done · 1 failed · 2 usage, settings, policy, schema version · 3 in part · 4 a brake · 5 lease held ·
6 damage · 7 attention · 8 nothing found.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    BRAKE = 4
    LEASE_HELD = 5
    DAMAGE = 6
    ATTENTION = 7
    NOTHING_FOUND = 8


EXIT_PRECEDENCE = (
    ExitCode.DAMAGE, ExitCode.FAILED, ExitCode.USAGE, ExitCode.LEASE_HELD, ExitCode.BRAKE,
    ExitCode.PARTIAL, ExitCode.ATTENTION, ExitCode.NOTHING_FOUND,
)  # fmt: skip


def worst_exit(codes: Iterable[ExitCode]) -> ExitCode:
    """The code that a run reports when several apply; DONE when none does."""
    seen = set(codes)
    return next((code for code in EXIT_PRECEDENCE if code in seen), ExitCode.DONE)


class Consequence(Enum):
    RETRY = "retry"  # throttled, timed out: the same call may succeed later
    SKIP = "skip"  # this segment or batch only: vanished, changed, newly held
    HALT = "halt"  # the run: digest mismatch, lost lease, damaged catalog


class LifecycleError(Exception):
    """Base of all. ``str()`` is the message, lower case, naming the thing and both values; ``hint`` the next step."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    consequence: ClassVar[Consequence] = Consequence.HALT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Workers send errors across a process boundary; keyword arguments do not survive the default way.
        return (_rebuild, (type(self), self.message, self.hint, {}))


def _rebuild(kind: type[LifecycleError], message: str, hint: str | None, extra: dict[str, object]) -> LifecycleError:
    error = kind.__new__(kind)
    LifecycleError.__init__(error, message, hint=hint)
    for name, value in extra.items():
        setattr(error, name, value)
    return error


class UsageError(LifecycleError):
    """A flag, a selector, a path or a setting that cannot be used as given."""

    exit_code = ExitCode.USAGE


class PolicyError(UsageError):
    """One or many mistakes in policy files; ``mistakes`` holds one line each, ``file:line: message``."""

    def __init__(self, mistakes: tuple[str, ...]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes

    def __reduce__(self) -> tuple[object, ...]:
        return (PolicyError, (self.mistakes,))


class SchemaVersionError(UsageError):
    """The catalog's schema is newer or older than this program can use."""


class NothingFound(LifecycleError):
    exit_code = ExitCode.NOTHING_FOUND


class Brake(LifecycleError):
    """Removals that something forbids for now; everything else goes on."""

    exit_code = ExitCode.BRAKE
    consequence = Consequence.SKIP


class LeaseHeld(LifecycleError):
    """Somebody else removes from this place; the message says who, where and since when."""

    exit_code = ExitCode.LEASE_HELD
    since_ns: int | None = None


class LeaseLost(LifecycleError):
    """The lease's token is no longer ours: nothing more may be committed or removed."""

    exit_code = ExitCode.LEASE_HELD


class PlaceUnavailable(LifecycleError):
    """A place cannot be worked on: no marker, a foreign marker, unreadable. Other places go on."""

    exit_code = ExitCode.PARTIAL
    consequence = Consequence.SKIP


class LeftBehind(PlaceUnavailable):
    """An attempt failed, and what it had made could not be taken back: the journal still names it, and the next run's
    recovery looks after it."""


class Skipped(LifecycleError):
    """A segment or batch that is left alone this time: changed, open, vanished, clashing."""

    exit_code = ExitCode.PARTIAL
    consequence = Consequence.SKIP


class StorageFull(LifecycleError):
    """A write found no space or no quota; what was half written is removed."""

    exit_code = ExitCode.PARTIAL
    consequence = Consequence.SKIP


class NeedsAttention(LifecycleError):
    """All was done that could be, and it is not enough: somebody has to look."""

    exit_code = ExitCode.ATTENTION
    consequence = Consequence.SKIP


class AlreadyExists(LifecycleError):
    """An object or file of that name is there; nothing was overwritten."""

    exit_code = ExitCode.PARTIAL
    consequence = Consequence.SKIP


class CatalogBusy(LifecycleError):
    """Another process kept the catalog locked for longer than we wait; nothing was written."""

    consequence: ClassVar[Consequence] = Consequence.RETRY


class Damaged(LifecycleError):
    """Stored bytes do not agree with what was recorded: archive, manifest, index, event chain, catalog."""

    exit_code = ExitCode.DAMAGE
