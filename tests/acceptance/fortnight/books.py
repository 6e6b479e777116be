"""Books of one's own: what was written, where it must be by now, and by which rule it may be gone.

Knows what the users did, the table of figures, and the present. After each run the books are held against the disk, the
tiers as plain tools read them, and what the catalog says; whatever does not agree is a finding under its theme. No
function of the package is called here: its words are evidence, never the measure.

A log is in its source until it is not there any more. Then it must be in exactly one live stored copy, byte for byte,
until it is purged; and a purge must have its mark, its rule, and an age that the figures ask for.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.acceptance.fortnight.journal import Deed, Journal, Row
from tests.acceptance.fortnight.platform import Log, Platform
from tests.acceptance.fortnight.policy import (
    COPIED_EARLY,
    DAY,
    EARLY,
    EARLY_MARKED,
    FIRST_SIGHT,
    GRACE,
    HOUR,
    LOST,
    LOW,
    SETTLE,
    TEAMS,
    Figures,
    Rules,
)
from tests.acceptance.fortnight.stored import Object, Tier

THEMES: Final = (
    "bytes", "due", "retention", "open", "foreign", "usage", "codes", "idle", "relief", "errors", "holds", "acceptance",
    "restore", "labels", "killed",
)  # fmt: skip
Usage = Counter[tuple[str, str, str, str]]  # (team, class, tier, figure) to its sum


@dataclass(eq=False)
class Entry:
    """One log in the books, or what was kept of one's errors."""

    log: Log
    class_name: str
    state: str = "hot"  # hot, stored, purged, or how its users ended it
    first_seen_ns: int | None = None
    waits_for: str | None = None  # the class it gets once somebody accepts that
    row: int | None = None  # the catalog's number for it
    copy: tuple[str, str] | None = None  # tier and key of its stored copy
    stored_bytes: int = 0
    marked_ns: int | None = None
    seen_as: bytes = b""  # its name when it was last seen
    missing_ns: int | None = None  # since when its users' removal was seen
    is_given_up: bool = False  # missing for a week, or its name has somebody else
    source: Entry | None = None  # of errors: of which log
    digest: bytes = b""  # of errors: of their text
    size: int = 0
    of_size: int = 0  # of its log when it was kept, and when that was written last
    of_write_ns: int = 0
    errors: Entry | None = None
    back: Log | None = None  # put back by a restore
    stays_ns: int = 0
    held: bool = False

    @property
    def name(self) -> bytes:
        return self.log.path + (b"#errors" if self.source else b"")

    @property
    def written_ns(self) -> int:
        return self.of_write_ns if self.source else self.log.mtime_ns

    @property
    def content(self) -> tuple[str, bytes, bytes]:
        """What a stored copy of it is known by."""
        return self.log.source, self.name, self.digest if self.source else self.log.digest

    @property
    def bytes(self) -> int:
        return self.size if self.source else self.log.size

    def __repr__(self) -> str:
        return f"{self.log}{' errors' if self.source else ''} [{self.class_name}, {self.state}]"


@dataclass(frozen=True)
class Run:
    """One run as the books need it."""

    label: str
    now_ns: int
    summary: Mapping[str, object]
    is_whole: bool = True  # neither killed nor stopped: everything that was due was done
    disk: tuple[int, int] = (0, 0)  # size and used bytes when it was over

    @property
    def reliefs(self) -> set[str]:
        lines = self.summary.get("relief", [])
        assert isinstance(lines, list)
        return {line["name"] for line in lines}

    @property
    def relieved_disk(self) -> bool:
        return any(not name.startswith("team ") for name in self.reliefs)


@dataclass
class Books:
    platform: Platform
    journal: Journal
    tiers: Mapping[str, Tier]
    rules: Rules
    entries: list[Entry] = field(default_factory=list)
    by_row: dict[int, Entry] = field(default_factory=dict)
    found: dict[str, list[str]] = field(default_factory=lambda: {theme: [] for theme in THEMES})
    counts: Counter[str] = field(default_factory=Counter)  # what happened at all, so that nothing is proved of nothing
    job_last_ns: dict[tuple[str, str], int] = field(default_factory=dict)
    braked: bool = False
    accepted_ns: int = 0
    label: str = ""
    last_run: Run | None = None
    _known_logs: int = 0
    _last_batch: int = 0
    _of_log: dict[int, Entry] = field(default_factory=dict)
    _surplus: set[tuple[str, str]] = field(default_factory=set)

    def say(self, theme: str, text: str) -> None:
        self.found[theme].append(f"{self.label}: {text}")

    # --- before a run -------------------------------------------------------------------------------------------------

    def take_down(self) -> None:
        """What the users did since the last run."""
        for log in self.platform.all_logs[self._known_logs :]:
            if log.number not in self._of_log:
                entry = Entry(log=log, class_name=self.rules.kinds[log.kind])
                self.entries.append(entry)
                self._of_log[log.number] = entry
        self._known_logs = len(self.platform.all_logs)
        for entry in self.entries:
            if entry.state == "hot" and entry.log.ended:
                entry.state = "stored" if entry.copy else entry.log.ended
            if entry.log.ended and (entry.log.source, entry.seen_as) in self.platform.logs:
                entry.is_given_up = True  # another file has its name

    def see_missing(self, now_ns: int) -> None:
        """A run that was killed had looked: what was not there is missing since then."""
        for entry in self.entries:
            is_gone = entry.log.ended in ("deleted", "compressed") and entry.source is None
            if is_gone and entry.first_seen_ns is not None and entry.missing_ns is None:
                entry.missing_ns = now_ns

    def change_rules(self, rules: Rules) -> None:
        """What keeps longer counts at once, what keeps shorter waits. New logs are judged by the new rules alone."""
        for entry in self.entries:
            wanted = entry.class_name if entry.source else rules.kinds[entry.log.kind]
            if wanted == entry.class_name or entry.first_seen_ns is None:
                entry.class_name = wanted
            elif rules.classes[wanted].expire >= rules.classes[entry.class_name].expire:
                entry.class_name = wanted
                self.counts["reclassified"] += 1
            else:
                entry.waits_for = wanted
                self.counts["waiting"] += 1
        self.rules = rules

    def accept(self, now_ns: int) -> None:
        self.braked, self.accepted_ns = False, now_ns
        for entry in self.entries:
            if entry.waits_for:
                entry.class_name, entry.waits_for = entry.waits_for, None

    def restored(self, entry: Entry, until_ns: int) -> None:
        """A copy of it is where it was, and stays for a while."""
        entry.back, entry.stays_ns = self.platform.put_back(entry.log), until_ns
        self._of_log[entry.back.number] = entry
        self.counts["restored"] += 1

    def edited(self, entry: Entry) -> None:
        """Somebody wrote to the restored file: that is another log now."""
        assert entry.back is not None
        new = self._of_log[entry.back.number] = Entry(log=entry.back, class_name=self.rules.kinds[entry.log.kind])
        self.entries.append(new)
        entry.back = None

    def hold(self, covered: Iterable[Entry]) -> None:
        for entry in covered:
            entry.held = True

    # --- the figures --------------------------------------------------------------------------------------------------

    def figures(self, entry: Entry) -> Figures:
        return self.rules.figures(entry.log.team, entry.class_name)

    def ends_ns(self, entry: Entry) -> int:
        """When its retention ends, as far as the job is known today."""
        figures, written = self.figures(entry), entry.written_ns
        if not figures.by_job:
            return written + figures.expire * HOUR
        last = max(written, self.job_last_ns.get((entry.log.team, entry.log.job), 0))
        return min(last + figures.expire * HOUR, written + 3 * figures.expire * HOUR)

    def is_listed(self, entry: Entry) -> bool:
        return entry.log.team in TEAMS

    def may_move(self, entry: Entry, now_ns: int) -> bool:
        """Whether nothing but its age keeps it in its source."""
        log = entry.log
        is_quiet = log.mtime_ns + SETTLE <= now_ns and not log.is_open
        return is_quiet and not log.has_links and not log.waits and self.is_listed(entry)

    # --- after a run --------------------------------------------------------------------------------------------------

    def after(self, run: Run) -> None:
        """Hold everything against everything."""
        self.label, self.last_run = run.label, run
        before = self.usage_of_teams()
        left = self._look_into_sources(run)
        objects = {(tier, key): it for tier, reader in self.tiers.items() for key, it in reader.read().items()}
        rows = self.journal.rows()
        self._last_batch, deeds = self.journal.deeds(self._last_batch)
        self._note_deeds(deeds, run)
        live = self._match(rows, objects, run)
        self._see_originals(rows, run)
        self._judge_left(left, run)
        self._judge_relief(left, before, run)
        if run.is_whole:
            self._nothing_is_overdue(live, objects, run)
            for batch in self.journal.unfinished():
                self.say("bytes", f"batch {batch} was not brought to its end")
        for full in self.platform.changed_foreign():
            self.say("foreign", f"{full!r} is not as it was")
        self.counts["foreign files seen"] += len(self.platform.foreign)

    # --- sources ---

    def _look_into_sources(self, run: Run) -> list[Entry]:
        """Every log that is believed to be there: the same file with the same bytes, or gone. Those that are gone."""
        left = []
        for entry in self.entries:
            log = entry.back or entry.log
            if entry.state != "hot" and entry.back is None:
                continue
            try:
                facts = os.lstat(self.platform.full(*log.place))
            except FileNotFoundError:
                left.append(entry)
                self.platform.took(log)
                self._see_it_leave(entry, log, run)
                continue
            if (facts.st_ino, facts.st_size, facts.st_mtime_ns) != (log.inode, log.size, log.mtime_ns):
                self.say("bytes", f"{log} is another file now")
            elif facts.st_mode & 0o7777 != log.mode:
                self.say("bytes", f"{log} has another mode now")
            if entry.back is None:
                self._see_it_there(entry, run)
        return left

    def _see_it_there(self, entry: Entry, run: Run) -> None:
        if entry.first_seen_ns is None:
            if entry.log.has_links:
                return  # a name among several is nobody's log before it is the only one
            entry.first_seen_ns = run.now_ns
        entry.seen_as = entry.log.path
        self._job_wrote(entry)

    def _see_it_leave(self, entry: Entry, log: Log, run: Run) -> None:
        if entry.first_seen_ns is None:
            entry.first_seen_ns = run.now_ns
        self._job_wrote(entry)
        if log.is_open or log.has_links or log.waits:
            self.say("open", f"{log} was taken from under its writer")
        if entry.back is not None:
            if run.now_ns < entry.stays_ns:
                self.say("restore", f"{log} was restored and did not stay")
            self.counts["restored and released"] += 1
            entry.back = None
        else:
            entry.state = "stored"

    def _job_wrote(self, entry: Entry) -> None:
        job = entry.log.team, entry.log.job
        self.job_last_ns[job] = max(self.job_last_ns.get(job, 0), entry.log.mtime_ns)

    # --- marks and purges ---

    def _note_deeds(self, deeds: list[Deed], run: Run) -> None:
        for deed in deeds:
            entry = self.by_row.get(deed.segment)
            if entry is None:
                self.say("retention", f"{deed} of a segment that the books never saw stored")
                continue
            self.counts[deed.outcome] += 1
            if deed.outcome == "marked":
                self._judge_mark(entry, deed)
                entry.marked_ns = deed.now_ns
            elif deed.outcome == "unmarked":
                entry.marked_ns = None
            else:
                self._judge_purge(entry, deed)
                entry.state = "purged"

    def _judge_mark(self, entry: Entry, deed: Deed) -> None:
        if self.ends_ns(entry) > deed.now_ns:
            self.say("retention", f"{entry} was marked {(self.ends_ns(entry) - deed.now_ns) / HOUR:.1f} h too early")
        if (entry.first_seen_ns or 0) + FIRST_SIGHT > deed.now_ns:
            self.say("retention", f"{entry} was marked within a day of its first sight")
        if entry.held:
            self.say("holds", f"{entry} is held and was marked")
        if self.braked and entry.log.team == "robotics" and entry.class_name == "eval":
            self.say("acceptance", f"{entry} was marked before anybody accepted that")
        if deed.code != "expired" or not deed.rule:
            self.say("retention", f"{entry} was marked without a rule: {deed}")
        self._errors_are_kept(entry)

    def _judge_purge(self, entry: Entry, deed: Deed) -> None:
        self.counts[f"purged {deed.code}"] += 1
        figures, now_ns = self.figures(entry), deed.now_ns
        if entry.held:
            self.say("holds", f"{entry} is held and was purged")
        if not deed.rule:
            self.say("retention", f"{entry} was purged without a rule: {deed}")
        if deed.code == "expired_early":
            if (entry.log.team, entry.class_name) != EARLY:
                self.say("retention", f"{entry} expired early, which policy allows for {EARLY} alone")
            elif figures.early is None or entry.log.mtime_ns + figures.early * HOUR > now_ns:
                self.say("retention", f"{entry} expired early, and before {figures.early} h")
            return
        if entry.marked_ns is None:
            self.say("retention", f"{entry} was purged without a mark: {deed}")
            return
        waited = GRACE if deed.code == "grace_over" else EARLY_MARKED
        if entry.marked_ns + waited > now_ns:
            self.say(
                "retention", f"{entry} was purged {(now_ns - entry.marked_ns) / HOUR:.1f} h after its mark: {deed}"
            )
        if self.ends_ns(entry) > now_ns:
            self.say("retention", f"{entry} was purged before its retention ended: {deed}")
        self._errors_are_kept(entry)

    def _errors_are_kept(self, entry: Entry) -> None:
        """No extract, no delete."""
        if entry.source is None and entry.log.errors and self.figures(entry).keeps and entry.errors is None:
            self.say("errors", f"{entry} is on its way out, and what it says of errors is kept nowhere")

    # --- stored copies ---

    def _match(
        self, rows: list[Row], objects: Mapping[tuple[str, str], Object], run: Run
    ) -> dict[tuple[str, str], list[Entry]]:
        """Each stored copy that the catalog counts to one log of the books, and no log to two. By object."""
        owed: defaultdict[tuple[str, bytes, bytes], list[Entry]] = defaultdict(list)
        for entry in self.entries:
            entry.copy = None
            if entry.state in ("hot", "stored"):
                owed[entry.content].append(entry)
        live: defaultdict[tuple[str, str], list[Entry]] = defaultdict(list)
        rows = sorted(rows, key=lambda row: row.companion_of is not None)  # whose errors they are is known by then
        for row in rows:
            if row.key is None:
                continue
            known = self._entry_of(row, objects, owed, run)
            if known is None:
                continue
            known.row, known.copy, known.stored_bytes = row.id, (row.archive_tier or "", row.key), row.stored
            self.by_row[row.id] = known
            live[known.copy].append(known)
            self._judge_row(known, row, run)
        for entry in self.entries:
            if entry.source is not None and entry.copy is None and entry.source.log.size != entry.of_size:
                entry.state = "superseded"  # kept of an early copy, and the log went on since
                self.counts["errors superseded"] += 1
            if entry.state == "stored" and entry.copy is None:
                self.say("bytes", f"{entry} is in no source, in no live stored copy, and no rule let it go")
        surplus = set(objects) - set(live)
        for place in sorted(surplus & self._surplus):
            self.say("bytes", f"{place} is an object that nothing counts, since the last run already")
        self._surplus = surplus  # copies of logs that went on: the next run takes them away
        self._shares(live, objects)
        return live

    def _entry_of(
        self,
        row: Row,
        objects: Mapping[tuple[str, str], Object],
        owed: Mapping[tuple[str, bytes, bytes], list[Entry]],
        run: Run,
    ) -> Entry | None:
        where = f"{row.source}/{os.fsdecode(row.path)} in {row.archive_tier} {row.key}"
        stored = objects.get((row.archive_tier or "", row.key or ""))
        if stored is None:
            self.say("bytes", f"{where}: there is no such object")
            return None
        member = stored.members.get(f"{row.source}/".encode() + row.path) or stored.members.get(b"")
        if member is None:
            self.say("bytes", f"{where}: it is not in that object")
            return None
        if row.companion_of is not None:
            entry = self._errors_of(row, stored, run)
            if entry is None:
                return None
            if entry.copy is None and entry not in owed[entry.content]:
                owed[entry.content].append(entry)
        candidates = owed.get((row.source, row.path, member.digest), [])
        if not candidates:
            self.say("bytes", f"{where}: nobody wrote that, or it is counted twice")
            return None
        by_row = next((entry for entry in candidates if entry.row == row.id), candidates[0])
        candidates.remove(by_row)
        log = by_row.log
        if member.mode is not None and (member.mode != log.mode or abs(member.mtime - by_row.written_ns / 1e9) > 1e-3):
            self.say("bytes", f"{where}: mode {member.mode:o}, time {member.mtime}, written with {log.mode:o}")
        return by_row

    def _errors_of(self, row: Row, stored: Object, run: Run) -> Entry | None:
        """What was kept of a log's errors; entered into the books when it is seen first."""
        source = self.by_row.get(row.companion_of or 0)
        text = stored.texts.get(f"{row.source}/".encode() + row.path)
        if source is None or text is None or not source.log.errors:
            self.say("errors", f"{os.fsdecode(row.path)} is kept of {source}, which has none")
            return None
        digest = stored.members[f"{row.source}/".encode() + row.path].digest
        entry = source.errors
        if entry is None or entry.digest != digest:
            entry = source.errors = Entry(
                log=source.log, class_name="error", state="stored", first_seen_ns=run.now_ns, source=source,
                digest=digest, size=len(text), of_size=source.log.size, of_write_ns=source.log.mtime_ns,
                held=source.held,
            )  # fmt: skip
            self.entries.append(entry)
            self.counts["errors kept"] += 1
            lines = set(text.split(b"\n"))
            for number, line in source.log.errors:
                if b"%d:%s" % (number, line) not in lines:
                    self.say("errors", f"{source}: line {number} is not kept: {line!r}")
        return entry

    def _judge_row(self, entry: Entry, row: Row, run: Run) -> None:
        log = entry.log
        if row.class_name != entry.class_name:
            self.say("labels", f"{entry} has class {row.class_name}")
        if (row.team, row.job) != (log.team, log.job) or (log.rank, log.node) != (row.rank, row.node):
            said = f"{row.team}/{row.job} node {row.node!r} rank {row.rank}"
            self.say("labels", f"{entry} is of {log.team}/{log.job} {log.node!r} {log.rank}, not of {said}")
        if row.size != entry.bytes:
            self.say("usage", f"{entry} is counted with {row.size} bytes")
        if row.marked_ns != entry.marked_ns:
            self.say("retention", f"{entry} is marked {row.marked_ns}, by what was done {entry.marked_ns}")
        if not run.is_whole:
            return
        if entry.marked_ns is not None and self.ends_ns(entry) > run.now_ns:
            self.say("retention", f"{entry} still has a mark, and its job wrote again")
        if entry.marked_ns is not None and entry.held:
            self.say("holds", f"{entry} is held and still marked")
        if entry.source is None and self.figures(entry).keeps:
            if row.error_blocks is None:
                self.say("errors", f"{entry} is stored and was not looked through")
            elif bool(row.error_blocks) != bool(log.errors):
                self.say("errors", f"{entry} has {row.error_blocks} errors by the catalog, {log.errors} were written")

    def _shares(self, live: Mapping[tuple[str, str], list[Entry]], objects: Mapping[tuple[str, str], Object]) -> None:
        """The shares of an object's members are the object's size, where all of them are live."""
        for place, entries in live.items():
            total, size = sum(entry.stored_bytes for entry in entries), objects[place].size
            is_whole = len(entries) == len(objects[place].members)
            if total > size or (is_whole and total != size):
                self.say("usage", f"{place}: shares of {total} bytes in an object of {size}")

    def _see_originals(self, rows: list[Row], run: Run) -> None:
        """What the catalog counts as there, against what is: the users' removals stay on the quota for a while."""
        there = {(row.source, row.path): row for row in rows if row.is_there}
        for entry in self.entries:
            log = entry.back or entry.log
            if entry.state == "hot" or entry.back is not None:
                row = there.pop(log.place, None)
                if row is None and entry.first_seen_ns is None:
                    continue
                if row is None:
                    self.say("usage", f"{entry} is there, and the catalog does not count it")
                elif entry.back is None:
                    entry.row = row.id
                    self.by_row[row.id] = entry
                    self._judge_original(entry, row, run)
            elif entry.log.ended in ("deleted", "compressed") and entry.first_seen_ns is not None:
                self._see_missing(entry, there, run)
        for row in there.values():
            self.say("usage", f"{row.source}/{os.fsdecode(row.path)} is counted as {row.original}, and is not there")

    def _see_missing(self, entry: Entry, there: dict[tuple[str, bytes], Row], run: Run) -> None:
        """Until it is lost, after a week, or somebody else has its name."""
        if entry.is_given_up:
            return
        if entry.missing_ns is None:
            entry.missing_ns = run.now_ns
        entry.is_given_up = run.now_ns - entry.missing_ns >= LOST
        if entry.is_given_up:
            return
        row = there.pop((entry.log.source, entry.seen_as), None)
        if row is None or row.original != "missing":
            self.say("usage", f"{entry} was removed by its users and counts as {row and row.original}")

    def _judge_original(self, entry: Entry, row: Row, run: Run) -> None:
        log = entry.log
        if (row.size, row.allocated) != (log.size, log.blocks):
            self.say("usage", f"{entry} is counted with {row.size} bytes, {row.allocated} on the disk: {log.blocks}")
        if row.class_name != entry.class_name:
            self.say("labels", f"{entry} has class {row.class_name}")
        if (row.team, row.job) != (log.team, log.job):
            self.say("labels", f"{entry} is of {row.team}/{row.job} by the catalog")
        is_open = log.is_open or log.waits or log.mtime_ns + SETTLE > run.now_ns
        self.counts["open files seen"] += is_open
        if is_open and row.original != "open":
            self.say("open", f"{entry} is written and counts as {row.original}")

    # --- who left, and who had to ---

    def _judge_left(self, left: list[Entry], run: Run) -> None:
        """Nothing leaves before its age but to make room, and that is said."""
        for entry in left:
            if entry.state != "stored" or entry.copy is None:
                continue
            figures, age = self.figures(entry), run.now_ns - entry.log.mtime_ns
            self.counts["moved"] += 1
            if age >= figures.warm * HOUR:
                continue
            self.counts["moved early"] += 1
            names = {f"team {entry.log.team} on hot", f"team {entry.log.team} in all"}
            if not (run.reliefs & names or run.relieved_disk):
                self.say("relief", f"{entry} left {figures.warm - age / HOUR:.1f} h early, and nobody needed room")

    def _judge_relief(self, left: list[Entry], before: Usage, run: Run) -> None:
        if not run.is_whole:
            return
        after = self.usage_of_teams()
        for team, quota in self.rules.hot.items():
            used = after[team, "", "hot", "stored"]
            early = [
                entry.log.blocks for entry in left
                if entry.log.team == team and run.now_ns - entry.log.mtime_ns < self.figures(entry).warm * HOUR
            ]  # fmt: skip
            could = [
                e for e in self.entries if e.state == "hot" and e.log.team == team and self.may_move(e, run.now_ns)
            ]
            if used > quota.hard and could:
                self.say(
                    "relief", f"{team} has {used} of {quota.hard} on hot, and {len(could)} could leave: {could[0]}"
                )
            if f"team {team} on hot" in run.reliefs:
                self.counts[f"relief of {team}"] += 1
                if used > quota.soft and could:
                    self.say("relief", f"{team} was relieved to {used}, not to {quota.soft}")
                if early and used + max(early) <= quota.soft:
                    self.say("relief", f"{team} was relieved to {used}, far below {quota.soft}")
        if run.relieved_disk:
            self.counts["relief of the disk"] += 1
            size, used = run.disk
            could = [e for e in self.entries if e.state == "hot" and self.may_move(e, run.now_ns)]
            if used > LOW * size and could:
                self.say("relief", f"the disk was relieved to {used / size:.3f}, not to {LOW}, and {could[0]} could go")

    def _nothing_is_overdue(
        self, live: Mapping[tuple[str, str], list[Entry]], objects: Mapping[tuple[str, str], Object], run: Run
    ) -> None:
        for entry in self.entries:
            if entry.state != "hot" or not self.may_move(entry, run.now_ns):
                continue
            age = run.now_ns - entry.log.mtime_ns
            if age >= self.figures(entry).warm * HOUR:
                self.say("due", f"{entry} is {age / HOUR:.1f} h old and still in its source")
            copied_after = COPIED_EARLY.get(entry.log.source)
            if copied_after is not None and age >= copied_after and entry.copy is None and not run.relieved_disk:
                self.say("due", f"{entry} is {age / HOUR:.1f} h old and has no early copy")
            if entry.copy is not None:
                self.counts["copied early"] += 1
        for (tier, key), entries in live.items():
            self._object_is_not_overdue(tier, key, entries, run)

    def _object_is_not_overdue(self, tier: str, key: str, entries: list[Entry], run: Run) -> None:
        classes = {entry.class_name for entry in entries}
        if classes != {key.split("/")[1]}:
            return  # some were judged anew since; their neighbours keep them
        figures = self.figures(entries[0])
        newest = max(entry.written_ns for entry in entries)
        is_marked = all(entry.marked_ns is not None for entry in entries)
        if tier == "warm" and figures.cold is not None and not is_marked and newest + figures.cold * HOUR <= run.now_ns:
            self.say("due", f"{key} is {(run.now_ns - newest) / HOUR:.1f} h old and still in warm")
        if self.braked or any(entry.held or entry.back is not None or entry.state == "hot" for entry in entries):
            return
        if any(entry.missing_ns is not None for entry in entries):
            return  # its original is missing, and may come back
        ended = max(
            max(self.ends_ns(entry), (entry.first_seen_ns or 0) + FIRST_SIGHT, entry.stays_ns, self.accepted_ns)
            for entry in entries
        )
        if ended + GRACE + DAY + DAY // 2 <= run.now_ns:
            self.say("due", f"{tier} {key} should be gone since {(run.now_ns - ended - GRACE) / HOUR:.1f} h")

    # --- usage --------------------------------------------------------------------------------------------------------

    def usage(self) -> Usage:
        """By team, class and tier: segments, their bytes, and what they take on the disk or in their objects."""
        sums: Usage = Counter()
        for entry in self.entries:
            team, name = entry.log.team, entry.class_name
            there = entry.back or (entry.log if self._counts_as_there(entry) else None)
            if there is not None:
                sums[team, name, "hot", "segments"] += 1
                sums[team, name, "hot", "logical"] += there.size
                sums[team, name, "hot", "stored"] += there.blocks
            if entry.copy is not None:
                sums[team, name, entry.copy[0], "segments"] += 1
                sums[team, name, entry.copy[0], "logical"] += entry.bytes
                sums[team, name, entry.copy[0], "stored"] += entry.stored_bytes
        return sums

    def _counts_as_there(self, entry: Entry) -> bool:
        is_missing = entry.missing_ns is not None and not entry.is_given_up
        is_seen = entry.source is None and entry.first_seen_ns is not None
        return is_seen and (entry.state == "hot" or is_missing)

    def usage_of_teams(self) -> Usage:
        """The same by team and tier alone."""
        sums: Usage = Counter()
        for (team, _, tier, figure), value in self.usage().items():
            sums[team, "", tier, figure] += value
        return sums
