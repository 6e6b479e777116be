"""What policy's holds ask of those that the catalog knows: which begin, which are renewed, which would end sooner.

Pure. A hold once seen ends by its date, by ``hold end``, or because somebody accepts a policy that no longer has it or
gives it an earlier end; never because its line vanished. An entry is known again by what it selects. One that has ended
begins anew only when its entry says something else than it did then: a line that was left standing is no new wish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lifecycle.model import Hold, Selector
from lifecycle.policy.rules import HoldRule, Policy
from lifecycle.units import duration_ns, to_ns

MISSED: Final = 3  # complete scans in a row without its file, and a file's hold ends: absence proves nothing
FROM_POLICY: Final = "policy "  # begins the source of a hold that an entry of policy asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldChanges:
    begin: tuple[Hold, ...] = ()
    renew: tuple[Hold, ...] = ()  # with the end, reason and owner that policy says
    shorten: tuple[Hold, ...] = ()  # would end at their ``ends_ns``, None: at once; wait for an acceptance


def compare_holds(policy: Policy, known: Sequence[Hold], now_ns: int) -> HoldChanges:
    """``known``: all that the catalog has, ended ones as well."""
    latest: dict[Selector, Hold] = {}
    for hold in known:
        if hold.source.startswith(FROM_POLICY):
            latest[hold.selector] = hold
    begin, renew, shorten = list[Hold](), list[Hold](), list[Hold]()
    for rule in policy.holds:
        found = latest.get(rule.selector)
        wanted = _make(rule, now_ns if found is None else found.created_ns)
        if found is None:
            begin.append(wanted)
        elif found.ended_ns is not None:
            anew = _make(rule, now_ns)
            if _says(wanted) != _says(found) and (anew.ends_ns is None or anew.ends_ns > now_ns):
                begin.append(anew)
        elif _is_sooner(wanted.ends_ns, found.ends_ns):
            shorten.append(replace(found, ends_ns=wanted.ends_ns))
        elif _says(wanted) != _says(found):
            renew.append(replace(wanted, id=found.id))
    named = {rule.selector for rule in policy.holds}
    gone = [each for each in latest.values() if each.ended_ns is None and each.selector not in named]
    shorten += [replace(each, ends_ns=None) for each in gone]
    return HoldChanges(begin=tuple(begin), renew=tuple(renew), shorten=tuple(shorten))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A hold that a file in a folder asks for."""

    place_id: int
    directory: bytes
    reason: str
    owner: str
    ends_ns: int | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    begin: tuple[Hold, ...] = ()
    renew: tuple[Hold, ...] = ()
    missed: tuple[Hold, ...] = ()  # their file was not there this time
    end: tuple[Hold, ...] = ()  # nor in the scans before


def compare_files(
    place_id: int,
    asked: Sequence[Asked],
    known: Sequence[Hold],
    now_ns: int,
    *,
    lasts_at_most_ns: int | None,
    is_believed: Callable[[bytes], bool],
) -> FileChanges:
    """What the files of one place ask for, beside the holds that came from files. ``is_believed``: whether the scan
    looked into a folder to its end, so that a file that it did not see is not there. A file may shorten its own hold:
    whoever can write it could take it away."""
    latest = {hold.directory: hold for hold in known if hold.place_id == place_id and hold.directory is not None}
    begin, renew = list[Hold](), list[Hold]()
    for wish in asked:
        found = latest.pop(wish.directory, None)
        wanted = _of_file(wish, now_ns if found is None else found.created_ns, lasts_at_most_ns)
        if found is None:
            begin.append(wanted)
        elif found.ended_ns is None:
            if _says(wanted) != _says(found) or found.missing_scans:
                renew.append(replace(wanted, id=found.id))
        elif _says(wanted) != _says(found):
            anew = _of_file(wish, now_ns, lasts_at_most_ns)
            if anew.ends_ns is None or anew.ends_ns > now_ns:
                begin.append(anew)
    gone = [hold for hold in latest.values() if hold.ended_ns is None and is_believed(hold.directory or b"")]
    return FileChanges(
        begin=tuple(begin),
        renew=tuple(renew),
        missed=tuple(hold for hold in gone if hold.missing_scans + 1 < MISSED),
        end=tuple(hold for hold in gone if hold.missing_scans + 1 >= MISSED),
    )


def _of_file(wish: Asked, created_ns: int, lasts_at_most_ns: int | None) -> Hold:
    ends_ns = wish.ends_ns
    if lasts_at_most_ns is not None:
        bound_ns = created_ns + lasts_at_most_ns
        ends_ns = bound_ns if ends_ns is None else min(ends_ns, bound_ns)
    return Hold(
        selector=Selector(), reason=wish.reason, owner=wish.owner, source=wish.source, created_ns=created_ns,
        ends_ns=ends_ns, pending=True, place_id=wish.place_id, directory=wish.directory,
    )  # fmt: skip


def _make(rule: HoldRule, created_ns: int) -> Hold:
    ends_ns = None if rule.ends is None else to_ns(rule.ends)
    if rule.lasts_at_most is not None:
        bound_ns = created_ns + duration_ns(rule.lasts_at_most)
        ends_ns = bound_ns if ends_ns is None else min(ends_ns, bound_ns)
    return Hold(
        selector=rule.selector, reason=rule.reason, owner=rule.owner, source=f"{FROM_POLICY}{rule.at}",
        created_ns=created_ns, ends_ns=ends_ns, pending=rule.pending,
    )  # fmt: skip


def _says(hold: Hold) -> tuple[object, ...]:
    return hold.ends_ns, hold.reason, hold.owner, hold.pending


def _is_sooner(ends_ns: int | None, than_ns: int | None) -> bool:
    return ends_ns is not None and (than_ns is None or ends_ns < than_ns)
