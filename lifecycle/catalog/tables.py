"""The catalog's columns, laid out for the whole design. ``migrations/`` builds exactly these; a test compares.

Rules of this schema
- Times are BIGINT nanoseconds since 1970 UTC (``*_ns``): no database's time zone setting can touch them.
- Names and paths are bytes. Text columns hold text in the form of ``names.show_name``.
- One row of ``segments`` can have an original and a stored copy at once; ``tier`` says where it is read from.
- ``rollups`` are changed only in the transaction that changes the segments they sum.
- No ON DELETE CASCADE anywhere: rebuilding a table must never empty another.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# INTEGER PRIMARY KEY is SQLite's rowid; PostgreSQL gets BIGINT.
_Id = BigInteger().with_variant(Integer(), "sqlite")


def _where(condition: str) -> dict[str, Any]:
    """A partial index, in the words of both databases."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def _id() -> Column[int]:
    return Column("id", _Id, primary_key=True, autoincrement=True)


# Facts of the catalog itself: catalog_id, generation, rehearsal ("1"), created_ns, clock_ns (highest now of a run).
catalog_facts = Table(
    "catalog_facts", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False)
)

teams = Table("teams", metadata, _id(), Column("name", Text, nullable=False, unique=True))
classes = Table("classes", metadata, _id(), Column("name", Text, nullable=False, unique=True))

# last_write_ns: of the job's newest segment ever seen; only ever grows.
jobs = Table(
    "jobs", metadata, _id(),
    Column("team_id", _Id, ForeignKey("teams.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("last_write_ns", BigInteger, nullable=False, server_default="0"),
    UniqueConstraint("team_id", "name"),
    Index("ix_jobs_last_write_ns", "team_id", "last_write_ns"),
)  # fmt: skip

# One row for each distinct set of labels of a job. rank is NULL where unknown; other unknown labels are ''.
label_sets = Table(
    "label_sets", metadata, _id(),
    Column("job_id", _Id, ForeignKey("jobs.id"), nullable=False),
    Column("node", Text, nullable=False, server_default=""),
    Column("rank", Integer),
    Column("stream", Text, nullable=False, server_default=""),
    Column("attempt", Text, nullable=False, server_default=""),
    Column("extra", Text, nullable=False, server_default=""),  # JSON list of pairs, or ''
    Index("ix_label_sets_job_id", "job_id", "node", "rank"),
)  # fmt: skip

# The policy line that gave a segment its class.
rules = Table(
    "rules", metadata, _id(),
    Column("file", Text, nullable=False),
    Column("line", Integer, nullable=False),
    Column("text", Text, nullable=False, server_default=""),
    UniqueConstraint("file", "line", "text"),
)  # fmt: skip

# One per source and host (host '' where all hosts share it), one per tier. uid is what the marker holds.
places = Table(
    "places", metadata, _id(),
    Column("kind", Text, nullable=False),  # model.PlaceKind
    Column("name", Text, nullable=False),
    Column("host", Text, nullable=False, server_default=""),
    Column("root", Text, nullable=False),
    Column("tier", Text, nullable=False),  # model.TierName
    Column("uid", Text, nullable=False, unique=True),
    Column("generation", Integer, nullable=False, server_default="0"),  # grows with each marker rewrite
    Column("chain_seq", Integer, nullable=False, server_default="0"),
    Column("chain_head", LargeBinary),
    Column("state", Text, nullable=False, server_default="ok"),  # ok, unreachable, shrunken, lost
    Column("state_text", Text, nullable=False, server_default=""),
    Column("scanned_ns", BigInteger),  # end of the last scan
    Column("complete_scan_ns", BigInteger),  # end of the last scan that saw everything
    Column("files_seen", BigInteger, nullable=False, server_default="0"),  # in the last complete scan
    UniqueConstraint("kind", "name", "host"),
)  # fmt: skip

# Whether a place's segments have the class that policy gives them: done_key names the rules that all of them were last
# judged by. While those of target_key are being applied, segments up to done_id are done.
classifications = Table(
    "classifications", metadata,
    Column("place_id", _Id, ForeignKey("places.id"), primary_key=True, autoincrement=False),
    Column("done_key", LargeBinary),
    Column("target_key", LargeBinary),
    Column("done_id", BigInteger, nullable=False, server_default="0"),
)  # fmt: skip

# signature: digest over the entries last reconciled; equal means nothing in this folder changed.
directories = Table(
    "directories", metadata, _id(),
    Column("place_id", _Id, ForeignKey("places.id"), nullable=False),
    Column("path", LargeBinary, nullable=False),
    Column("signature", LargeBinary),
    Column("files", Integer, nullable=False, server_default="0"),
    Column("foreign_files", Integer, nullable=False, server_default="0"),
    Column("foreign_bytes", BigInteger, nullable=False, server_default="0"),
    # of the foreign ones, those that a layout claims by name and whose content is no log
    Column("binary_files", Integer, nullable=False, server_default="0"),
    Column("binary_bytes", BigInteger, nullable=False, server_default="0"),
    Column("emptied_ns", BigInteger),  # when we last removed a file of it; NULL: never, or looked at since
    UniqueConstraint("place_id", "path"),
    Index("ix_directories_emptied", "place_id", "emptied_ns", **_where("emptied_ns IS NOT NULL")),
)  # fmt: skip

segments = Table(
    "segments", metadata, _id(),
    # where it came from
    Column("place_id", _Id, ForeignKey("places.id"), nullable=False),
    Column("directory_id", _Id, ForeignKey("directories.id"), nullable=False),
    Column("name", LargeBinary, nullable=False),
    # what it is
    Column("team_id", _Id, ForeignKey("teams.id"), nullable=False),
    Column("class_id", _Id, ForeignKey("classes.id"), nullable=False),
    Column("claimed_class_id", _Id, ForeignKey("classes.id")),  # policy's, where it keeps shorter and is not accepted
    Column("job_id", _Id, ForeignKey("jobs.id"), nullable=False),
    Column("labels_id", _Id, ForeignKey("label_sets.id"), nullable=False),
    Column("rule_id", _Id, ForeignKey("rules.id"), nullable=False),
    Column("layout", Text, nullable=False),
    Column("content", Text, nullable=False),  # model.Content
    Column("rotation_base", LargeBinary),  # name of the rotation set, NULL when it is not in one
    # the file as last seen
    Column("inode", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("allocated_bytes", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("ctime_ns", BigInteger, nullable=False),
    Column("mode", Integer, nullable=False),
    Column("uid", BigInteger, nullable=False),
    Column("gid", BigInteger, nullable=False),
    Column("nlink", Integer, nullable=False, server_default="1"),
    Column("fingerprint", LargeBinary),  # 16 bytes over head and tail of the first fingerprint_size bytes
    Column("fingerprint_size", BigInteger, nullable=False, server_default="0"),
    Column("last_write_ns", BigInteger),  # NULL: age unknown
    Column("day", Integer, nullable=False),  # of last write; of first sight where the age is unknown
    Column("first_seen_ns", BigInteger, nullable=False),
    Column("original", Text, nullable=False),  # model.Original
    Column("missing_since_ns", BigInteger),
    Column("missing_scans", Integer, nullable=False, server_default="0"),
    # its stored copy
    Column("digest", LargeBinary),  # BLAKE3 of the content, once stored
    Column("archive_id", _Id, ForeignKey("archives.id")),
    Column("archive_offset", BigInteger),  # of its content in the archive's uncompressed stream
    Column("stored_bytes", BigInteger, nullable=False, server_default="0"),  # its share of the archive
    Column("tier", Text),  # where it is read from; NULL when it is gone
    # what holds or drives it
    Column("marked", Integer, nullable=False, server_default="0"),  # 1 when a row of marks has it
    Column("stay_until_ns", BigInteger),
    Column("set_aside_until_ns", BigInteger),
    Column("problems", Integer, nullable=False, server_default="0"),
    Column("companion_of", _Id, ForeignKey("segments.id")),
    Column("error_blocks", Integer),  # found in its content; NULL: not looked through yet. Of a companion 0
)  # fmt: skip

_present = text("original IN ('open', 'settled', 'missing')")
_absent = text("original IN ('released', 'parked', 'lost', 'replaced', 'purged', 'unclaimed')")
_due = text("original = 'settled' AND archive_id IS NULL")
_copied = text("original = 'settled' AND archive_id IS NOT NULL AND stay_until_ns IS NULL")
_live = text("marked = 0 AND tier IS NOT NULL")
_opening = text("original = 'open'")
_marked = text("marked = 1")
_stored = text("archive_id IS NOT NULL")
_rotated = text("original = 'settled' AND archive_id IS NULL AND rotation_base IS NOT NULL")
_missing = text("original = 'missing'")
_staying = text("stay_until_ns IS NOT NULL")
_waiting = text("claimed_class_id IS NOT NULL")
_unextracted = text("archive_id IS NOT NULL AND error_blocks IS NULL")
_companion = text("companion_of IS NOT NULL AND tier IS NOT NULL")
Index(
    "uq_segments_present_name",
    segments.c.directory_id,
    segments.c.name,
    unique=True,
    sqlite_where=_present,
    postgresql_where=_present,
)
Index("ix_segments_absent", segments.c.directory_id, sqlite_where=_absent, postgresql_where=_absent)  # by path, too
Index("ix_segments_inode", segments.c.place_id, segments.c.inode, sqlite_where=_present, postgresql_where=_present)
Index(
    "ix_segments_due",
    segments.c.team_id,
    segments.c.class_id,
    segments.c.last_write_ns,
    sqlite_where=_due,
    postgresql_where=_due,
)
Index(
    "ix_segments_copied",
    segments.c.team_id,
    segments.c.class_id,
    segments.c.last_write_ns,
    sqlite_where=_copied,
    postgresql_where=_copied,
)
Index(
    "ix_segments_live_age",
    segments.c.team_id,
    segments.c.class_id,
    segments.c.last_write_ns,
    sqlite_where=_live,
    postgresql_where=_live,
)
Index(
    "ix_segments_rotated",
    segments.c.team_id,
    segments.c.class_id,
    segments.c.directory_id,
    segments.c.rotation_base,
    sqlite_where=_rotated,
    postgresql_where=_rotated,
)
Index("ix_segments_live_job", segments.c.job_id, segments.c.class_id, sqlite_where=_live, postgresql_where=_live)
Index("ix_segments_marked_job", segments.c.job_id, sqlite_where=_marked, postgresql_where=_marked)  # it wrote again
Index("ix_segments_job_id", segments.c.job_id)  # all of a job, whatever became of it: ls, restore, search
Index("ix_segments_open", segments.c.place_id, sqlite_where=_opening, postgresql_where=_opening)
Index("ix_segments_missing", segments.c.place_id, sqlite_where=_missing, postgresql_where=_missing)
Index("ix_segments_stay", segments.c.place_id, sqlite_where=_staying, postgresql_where=_staying)
Index("ix_segments_waiting", segments.c.place_id, sqlite_where=_waiting, postgresql_where=_waiting)
Index("ix_segments_archive", segments.c.archive_id, sqlite_where=_stored, postgresql_where=_stored)
Index(
    "ix_segments_companion",
    segments.c.companion_of,
    sqlite_where=text("companion_of IS NOT NULL"),
    postgresql_where=text("companion_of IS NOT NULL"),
)
Index(  # one at most that can be read
    "uq_segments_companion",
    segments.c.companion_of,
    unique=True,
    sqlite_where=_companion,
    postgresql_where=_companion,
)
Index(
    "ix_segments_unextracted",
    segments.c.team_id,
    segments.c.class_id,
    segments.c.archive_id,
    sqlite_where=_unextracted,
    postgresql_where=_unextracted,
)

archives = Table(
    "archives", metadata, _id(),
    Column("place_id", _Id, ForeignKey("places.id"), nullable=False),
    Column("key", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("team_id", _Id, ForeignKey("teams.id"), nullable=False),
    Column("class_id", _Id, ForeignKey("classes.id"), nullable=False),
    Column("day", Integer, nullable=False),
    Column("gid", BigInteger, nullable=False),
    Column("mode", Integer, nullable=False),
    Column("form", Text, nullable=False),  # "tar" for merged, "single" for one segment as its own .zst
    Column("size_bytes", BigInteger, nullable=False),
    Column("raw_bytes", BigInteger, nullable=False),
    Column("members", Integer, nullable=False),
    Column("live_members", Integer, nullable=False),
    Column("live_raw_bytes", BigInteger, nullable=False),
    Column("newest_write_ns", BigInteger, nullable=False),  # of its live members
    Column("oldest_write_ns", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),  # BLAKE3 of the object as stored
    Column("manifest_digest", LargeBinary, nullable=False),
    Column("zstd_level", Integer, nullable=False),
    Column("state", Text, nullable=False),  # model.ArchiveState
    Column("batch_id", _Id, ForeignKey("batches.id")),
    Column("created_ns", BigInteger, nullable=False),
    Column("removed_ns", BigInteger),
    Column("verified_ns", BigInteger),
    UniqueConstraint("place_id", "key"),
    Index("ix_archives_due", "tier", "team_id", "class_id", "newest_write_ns", **_where("state = 'live'")),
    Index(
        "ix_archives_small", "tier", "team_id", "class_id", "newest_write_ns",
        **_where("live_raw_bytes > 0 AND live_raw_bytes < 16777216"),
    ),
    Index("ix_archives_unfinished", "state", **_where("state IN ('superseded', 'recorded', 'quarantined')")),
)  # fmt: skip
# Which archives an archive took its members from.
archive_sources = Table(
    "archive_sources", metadata,
    Column("archive_id", _Id, ForeignKey("archives.id"), primary_key=True),
    Column("replaces_id", _Id, ForeignKey("archives.id"), primary_key=True),
)  # fmt: skip

runs = Table(
    "runs", metadata, _id(),
    Column("command", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("now_ns", BigInteger, nullable=False),  # the run's one now
    Column("started_ns", BigInteger, nullable=False),
    Column("ended_ns", BigInteger),
    Column("policy_digest", Text, nullable=False, server_default=""),
    Column("exit_code", Integer),
    Column("summary", Text, nullable=False, server_default="{}"),  # the JSON line that the run printed
)  # fmt: skip

# The journal. intent: JSON of every key, temporary name and folder that this attempt may leave.
batches = Table(
    "batches", metadata, _id(),
    Column("run_id", _Id, ForeignKey("runs.id"), nullable=False),
    Column("action", Text, nullable=False),  # model.ActionKind
    Column("place_id", _Id, ForeignKey("places.id"), nullable=False),  # that bytes leave
    Column("target_place_id", _Id, ForeignKey("places.id")),
    Column("state", Text, nullable=False),  # model.BatchState
    Column("parked", Integer, nullable=False, server_default="0"),  # its place is unreachable
    Column("token", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False, server_default="1"),
    Column("intent", Text, nullable=False),
    Column("reason", Text, nullable=False, server_default=""),
    Column("created_ns", BigInteger, nullable=False),
    Column("updated_ns", BigInteger, nullable=False),
    Index("ix_batches_unfinished", "state", **_where("state IN ('intended', 'stored', 'committed')")),
    Index("ix_batches_run_id", "run_id"),
)  # fmt: skip
batch_members = Table(
    "batch_members", metadata,
    Column("batch_id", _Id, ForeignKey("batches.id"), primary_key=True),
    Column("segment_id", _Id, ForeignKey("segments.id"), primary_key=True),
    Column("inode", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("outcome", Text),  # model.Outcome, NULL while unfinished
    Column("detail", Text),
    Index("ix_batch_members_segment_id", "segment_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

marks = Table(
    "marks", metadata,
    Column("segment_id", _Id, ForeignKey("segments.id"), primary_key=True, autoincrement=False),
    Column("marked_ns", BigInteger, nullable=False),
    Column("purge_after_ns", BigInteger, nullable=False),
    Column("run_id", _Id, ForeignKey("runs.id"), nullable=False),
    Column("policy_digest", Text, nullable=False),
    Column("reason", Text, nullable=False),  # JSON of model.Reason
    Index("ix_marks_purge_after_ns", "purge_after_ns"),
    Index("ix_marks_policy_digest", "policy_digest"),  # are there any from another policy?
)  # fmt: skip

holds = Table(
    "holds", metadata, _id(),
    Column("selector", Text, nullable=False),  # JSON of model.Selector
    Column("reason", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("source", Text, nullable=False),  # "teams/vision.yaml:7", "cli", "file:<path>"
    Column("created_ns", BigInteger, nullable=False),
    Column("ends_ns", BigInteger),
    Column("pending", Integer, nullable=False, server_default="0"),
    Column("released_ns", BigInteger),
    Column("released_by", Text),
    Column("place_id", _Id, ForeignKey("places.id")),  # of a file's hold
    Column("directory", LargeBinary),  # and the folder that the file lies in
    Column("missing_scans", Integer, nullable=False, server_default="0"),  # complete ones in a row without the file
    Column("applied_id", BigInteger, nullable=False, server_default="0"),  # segments up to here were asked
    Index("ix_holds_standing", "id", **_where("released_ns IS NULL")),
)  # fmt: skip
# The segments of standing holds, and of no others.
hold_members = Table(
    "hold_members", metadata,
    Column("segment_id", _Id, ForeignKey("segments.id"), primary_key=True),
    Column("hold_id", _Id, ForeignKey("holds.id"), primary_key=True),
    Index("ix_hold_members_hold_id", "hold_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

# One row per place that bytes can leave. On SQLite an OFD lock decides and this row informs.
leases = Table(
    "leases", metadata,
    Column("place_id", _Id, ForeignKey("places.id"), primary_key=True, autoincrement=False),
    Column("token", BigInteger, nullable=False),  # grows with each taking, never reused
    Column("holder", Text, nullable=False, server_default=""),  # "run 1882", '' when free
    Column("host", Text, nullable=False, server_default=""),
    Column("pid", Integer, nullable=False, server_default="0"),
    Column("acquired_ns", BigInteger, nullable=False, server_default="0"),
    Column("renewed_ns", BigInteger, nullable=False, server_default="0"),
    Column("expires_ns", BigInteger, nullable=False, server_default="0"),
)  # fmt: skip

# Append-only evidence, chained per place: digest = BLAKE3(previous digest, the row's canonical JSON).
events = Table(
    "events", metadata, _id(),
    Column("place_id", _Id, ForeignKey("places.id"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("run_id", _Id, ForeignKey("runs.id")),
    Column("batch_id", _Id),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),  # canonical JSON
    Column("previous", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    UniqueConstraint("place_id", "seq"),
    Index("ix_events_batch_id", "batch_id"),
    Index("ix_events_run_id", "run_id"),
)  # fmt: skip

policies = Table(
    "policies", metadata,
    Column("digest", Text, primary_key=True),
    Column("files", Text, nullable=False),  # JSON list of [name, text], before ${VAR}
    Column("first_used_ns", BigInteger, nullable=False),
    Column("first_run_id", _Id, ForeignKey("runs.id")),
)  # fmt: skip
# The retention that each team and class was last cleaned by: what is past the present one and not past this one is new.
retentions = Table(
    "retentions", metadata,
    Column("team_id", _Id, ForeignKey("teams.id"), primary_key=True, autoincrement=False),
    Column("class_id", _Id, ForeignKey("classes.id"), primary_key=True, autoincrement=False),
    Column("expire_ns", BigInteger),  # NULL: for ever
    Column("by_job", Integer, nullable=False),
    Column("early_ns", BigInteger),  # from this age on the only copy may go where room is needed; NULL: never
    Column("policy_digest", Text, nullable=False),
    Column("since_ns", BigInteger, nullable=False),
)  # fmt: skip
acceptances = Table(
    "acceptances", metadata, _id(),
    Column("policy_digest", Text, nullable=False),
    Column("scope", Text, nullable=False),  # JSON: team, class
    Column("figures", Text, nullable=False),  # JSON: what was shown
    Column("reason", Text, nullable=False),
    Column("accepted_by", Text, nullable=False),
    Column("accepted_ns", BigInteger, nullable=False),
    Column("used_run_id", _Id, ForeignKey("runs.id")),
)  # fmt: skip

# tier "hot" sums originals that are present, others sum live stored copies; a segment with both is in two rows.
rollups = Table(
    "rollups", metadata,
    Column("team_id", _Id, ForeignKey("teams.id"), primary_key=True, autoincrement=False),
    Column("class_id", _Id, ForeignKey("classes.id"), primary_key=True, autoincrement=False),
    Column("tier", Text, primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("segments", BigInteger, nullable=False),
    Column("logical_bytes", BigInteger, nullable=False),
    Column("stored_bytes", BigInteger, nullable=False),
)  # fmt: skip

# freed_bytes: what this run took out (moved on, released, purged); purged_bytes: what of that is gone for good.
usage_samples = Table(
    "usage_samples", metadata,
    Column("run_id", _Id, ForeignKey("runs.id"), primary_key=True),
    Column("team_id", _Id, ForeignKey("teams.id"), primary_key=True),
    Column("class_id", _Id, ForeignKey("classes.id"), primary_key=True),
    Column("tier", Text, primary_key=True),
    Column("at_ns", BigInteger, nullable=False),
    Column("segments", BigInteger, nullable=False),
    Column("logical_bytes", BigInteger, nullable=False),
    Column("stored_bytes", BigInteger, nullable=False),
    Column("freed_bytes", BigInteger, nullable=False, server_default="0"),
    Column("purged_bytes", BigInteger, nullable=False, server_default="0"),
)  # fmt: skip
# The file system under a place at the end of a run.
space_samples = Table(
    "space_samples", metadata,
    Column("run_id", _Id, ForeignKey("runs.id"), primary_key=True),
    Column("place_id", _Id, ForeignKey("places.id"), primary_key=True),
    Column("at_ns", BigInteger, nullable=False),
    Column("total_bytes", BigInteger, nullable=False),
    Column("free_bytes", BigInteger, nullable=False),
    Column("total_inodes", BigInteger, nullable=False),
    Column("free_inodes", BigInteger, nullable=False),
    Column("file_system", Text, nullable=False, server_default=""),  # its name: places may share one
)  # fmt: skip

# What a scan counted and left alone or could not see: kind is foreign, link, special, hard_link, unseen, excluded, ...
findings = Table(
    "findings", metadata,
    Column("place_id", _Id, ForeignKey("places.id"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("detail", Text, primary_key=True, server_default=""),  # "no layout claims it", an error text
    Column("run_id", _Id, ForeignKey("runs.id"), nullable=False),
    Column("files", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("example", Text, nullable=False, server_default=""),
)  # fmt: skip
# What went wrong in a run, one line each; what `history RUN --problems` shows.
problems = Table(
    "problems", metadata, _id(),
    Column("run_id", _Id, ForeignKey("runs.id"), nullable=False),
    Column("phase", Text, nullable=False),
    Column("place_id", _Id, ForeignKey("places.id")),
    Column("subject", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("consequence", Text, nullable=False),
    Index("ix_problems_run_id", "run_id"),
)  # fmt: skip
