"""The first schema: everything of the design, also what no command uses yet.

Revision: 0001, after None
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _id() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite's rowid is an INTEGER


def _create_partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(name, table, columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def upgrade() -> None:
    op.create_table(
        "catalog_facts",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_catalog_facts"),
    )

    op.create_table(
        "classes",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_classes"),
        sa.UniqueConstraint("name", name="uq_classes_name"),
    )

    op.create_table(
        "holds",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("selector", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("ends_ns", sa.BigInteger()),
        sa.Column("pending", sa.Integer(), server_default="0", nullable=False),
        sa.Column("released_ns", sa.BigInteger()),
        sa.Column("released_by", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_holds"),
    )

    op.create_table(
        "places",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), server_default="", nullable=False),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), server_default="0", nullable=False),
        sa.Column("chain_seq", sa.Integer(), server_default="0", nullable=False),
        sa.Column("chain_head", sa.LargeBinary()),
        sa.Column("state", sa.Text(), server_default="ok", nullable=False),
        sa.Column("state_text", sa.Text(), server_default="", nullable=False),
        sa.Column("scanned_ns", sa.BigInteger()),
        sa.Column("complete_scan_ns", sa.BigInteger()),
        sa.Column("files_seen", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_places"),
        sa.UniqueConstraint("kind", "name", "host", name="uq_places_kind_name_host"),
        sa.UniqueConstraint("uid", name="uq_places_uid"),
    )

    op.create_table(
        "rules",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_rules"),
        sa.UniqueConstraint("file", "line", "text", name="uq_rules_file_line_text"),
    )

    op.create_table(
        "runs",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("now_ns", sa.BigInteger(), nullable=False),
        sa.Column("started_ns", sa.BigInteger(), nullable=False),
        sa.Column("ended_ns", sa.BigInteger()),
        sa.Column("policy_digest", sa.Text(), server_default="", nullable=False),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("summary", sa.Text(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )

    op.create_table(
        "teams",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_teams"),
        sa.UniqueConstraint("name", name="uq_teams_name"),
    )

    op.create_table(
        "acceptances",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("policy_digest", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("figures", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("accepted_by", sa.Text(), nullable=False),
        sa.Column("accepted_ns", sa.BigInteger(), nullable=False),
        sa.Column("used_run_id", _id()),
        sa.ForeignKeyConstraint(["used_run_id"], ["runs.id"], name="fk_acceptances_used_run_id_runs"),
        sa.PrimaryKeyConstraint("id", name="pk_acceptances"),
    )

    op.create_table(
        "batches",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("run_id", _id(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("place_id", _id(), nullable=False),
        sa.Column("target_place_id", _id()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("parked", sa.Integer(), server_default="0", nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="1", nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("updated_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_batches_place_id_places"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_batches_run_id_runs"),
        sa.ForeignKeyConstraint(["target_place_id"], ["places.id"], name="fk_batches_target_place_id_places"),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
    )
    op.create_index("ix_batches_run_id", "batches", ["run_id"])
    _create_partial_index("ix_batches_unfinished", "batches", ["state"], "state IN ('intended', 'stored', 'committed')")

    op.create_table(
        "classifications",
        sa.Column("place_id", _id(), autoincrement=False, nullable=False),
        sa.Column("done_key", sa.LargeBinary()),
        sa.Column("target_key", sa.LargeBinary()),
        sa.Column("done_id", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_classifications_place_id_places"),
        sa.PrimaryKeyConstraint("place_id", name="pk_classifications"),
    )

    op.create_table(
        "directories",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("place_id", _id(), nullable=False),
        sa.Column("path", sa.LargeBinary(), nullable=False),
        sa.Column("signature", sa.LargeBinary()),
        sa.Column("files", sa.Integer(), server_default="0", nullable=False),
        sa.Column("foreign_files", sa.Integer(), server_default="0", nullable=False),
        sa.Column("foreign_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("binary_files", sa.Integer(), server_default="0", nullable=False),
        sa.Column("binary_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_directories_place_id_places"),
        sa.PrimaryKeyConstraint("id", name="pk_directories"),
        sa.UniqueConstraint("place_id", "path", name="uq_directories_place_id_path"),
    )

    op.create_table(
        "events",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("place_id", _id(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("run_id", _id()),
        sa.Column("batch_id", _id()),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("previous", sa.LargeBinary(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_events_place_id_places"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_events_run_id_runs"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("place_id", "seq", name="uq_events_place_id_seq"),
    )
    op.create_index("ix_events_batch_id", "events", ["batch_id"])
    op.create_index("ix_events_run_id", "events", ["run_id"])

    op.create_table(
        "findings",
        sa.Column("place_id", _id(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), server_default="", nullable=False),
        sa.Column("run_id", _id(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("example", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_findings_place_id_places"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_findings_run_id_runs"),
        sa.PrimaryKeyConstraint("place_id", "kind", "detail", name="pk_findings"),
    )

    op.create_table(
        "jobs",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("team_id", _id(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last_write_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_jobs_team_id_teams"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("team_id", "name", name="uq_jobs_team_id_name"),
    )
    op.create_index("ix_jobs_last_write_ns", "jobs", ["team_id", "last_write_ns"])

    op.create_table(
        "leases",
        sa.Column("place_id", _id(), autoincrement=False, nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text(), server_default="", nullable=False),
        sa.Column("host", sa.Text(), server_default="", nullable=False),
        sa.Column("pid", sa.Integer(), server_default="0", nullable=False),
        sa.Column("acquired_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("renewed_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("expires_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_leases_place_id_places"),
        sa.PrimaryKeyConstraint("place_id", name="pk_leases"),
    )

    op.create_table(
        "policies",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("first_used_ns", sa.BigInteger(), nullable=False),
        sa.Column("first_run_id", _id()),
        sa.ForeignKeyConstraint(["first_run_id"], ["runs.id"], name="fk_policies_first_run_id_runs"),
        sa.PrimaryKeyConstraint("digest", name="pk_policies"),
    )

    op.create_table(
        "problems",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("run_id", _id(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("place_id", _id()),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("consequence", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_problems_place_id_places"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_problems_run_id_runs"),
        sa.PrimaryKeyConstraint("id", name="pk_problems"),
    )
    op.create_index("ix_problems_run_id", "problems", ["run_id"])

    op.create_table(
        "retentions",
        sa.Column("team_id", _id(), autoincrement=False, nullable=False),
        sa.Column("class_id", _id(), autoincrement=False, nullable=False),
        sa.Column("expire_ns", sa.BigInteger()),
        sa.Column("by_job", sa.Integer(), nullable=False),
        sa.Column("policy_digest", sa.Text(), nullable=False),
        sa.Column("since_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["class_id"], ["classes.id"], name="fk_retentions_class_id_classes"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_retentions_team_id_teams"),
        sa.PrimaryKeyConstraint("team_id", "class_id", name="pk_retentions"),
    )

    op.create_table(
        "rollups",
        sa.Column("team_id", _id(), autoincrement=False, nullable=False),
        sa.Column("class_id", _id(), autoincrement=False, nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("segments", sa.BigInteger(), nullable=False),
        sa.Column("logical_bytes", sa.BigInteger(), nullable=False),
        sa.Column("stored_bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["class_id"], ["classes.id"], name="fk_rollups_class_id_classes"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_rollups_team_id_teams"),
        sa.PrimaryKeyConstraint("team_id", "class_id", "tier", "day", name="pk_rollups"),
    )

    op.create_table(
        "space_samples",
        sa.Column("run_id", _id(), nullable=False),
        sa.Column("place_id", _id(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("total_bytes", sa.BigInteger(), nullable=False),
        sa.Column("free_bytes", sa.BigInteger(), nullable=False),
        sa.Column("total_inodes", sa.BigInteger(), nullable=False),
        sa.Column("free_inodes", sa.BigInteger(), nullable=False),
        sa.Column("file_system", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_space_samples_place_id_places"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_space_samples_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", "place_id", name="pk_space_samples"),
    )

    op.create_table(
        "usage_samples",
        sa.Column("run_id", _id(), nullable=False),
        sa.Column("team_id", _id(), nullable=False),
        sa.Column("class_id", _id(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("segments", sa.BigInteger(), nullable=False),
        sa.Column("logical_bytes", sa.BigInteger(), nullable=False),
        sa.Column("stored_bytes", sa.BigInteger(), nullable=False),
        sa.Column("freed_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("purged_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["class_id"], ["classes.id"], name="fk_usage_samples_class_id_classes"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_usage_samples_run_id_runs"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_usage_samples_team_id_teams"),
        sa.PrimaryKeyConstraint("run_id", "team_id", "class_id", "tier", name="pk_usage_samples"),
    )

    op.create_table(
        "archives",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("place_id", _id(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("team_id", _id(), nullable=False),
        sa.Column("class_id", _id(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("gid", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.Integer(), nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("raw_bytes", sa.BigInteger(), nullable=False),
        sa.Column("members", sa.Integer(), nullable=False),
        sa.Column("live_members", sa.Integer(), nullable=False),
        sa.Column("live_raw_bytes", sa.BigInteger(), nullable=False),
        sa.Column("newest_write_ns", sa.BigInteger(), nullable=False),
        sa.Column("oldest_write_ns", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("manifest_digest", sa.LargeBinary(), nullable=False),
        sa.Column("zstd_level", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("batch_id", _id()),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("removed_ns", sa.BigInteger()),
        sa.Column("verified_ns", sa.BigInteger()),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name="fk_archives_batch_id_batches"),
        sa.ForeignKeyConstraint(["class_id"], ["classes.id"], name="fk_archives_class_id_classes"),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_archives_place_id_places"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_archives_team_id_teams"),
        sa.PrimaryKeyConstraint("id", name="pk_archives"),
        sa.UniqueConstraint("place_id", "key", name="uq_archives_place_id_key"),
    )
    _create_partial_index(
        "ix_archives_due", "archives", ["tier", "team_id", "class_id", "newest_write_ns"], "state = 'live'"
    )
    _create_partial_index(
        "ix_archives_unfinished", "archives", ["state"], "state IN ('superseded', 'recorded', 'quarantined')"
    )

    op.create_table(
        "label_sets",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("job_id", _id(), nullable=False),
        sa.Column("node", sa.Text(), server_default="", nullable=False),
        sa.Column("rank", sa.Integer()),
        sa.Column("stream", sa.Text(), server_default="", nullable=False),
        sa.Column("attempt", sa.Text(), server_default="", nullable=False),
        sa.Column("extra", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_label_sets_job_id_jobs"),
        sa.PrimaryKeyConstraint("id", name="pk_label_sets"),
    )
    op.create_index("ix_label_sets_job_id", "label_sets", ["job_id", "node", "rank"])

    op.create_table(
        "archive_sources",
        sa.Column("archive_id", _id(), nullable=False),
        sa.Column("replaces_id", _id(), nullable=False),
        sa.ForeignKeyConstraint(["archive_id"], ["archives.id"], name="fk_archive_sources_archive_id_archives"),
        sa.ForeignKeyConstraint(["replaces_id"], ["archives.id"], name="fk_archive_sources_replaces_id_archives"),
        sa.PrimaryKeyConstraint("archive_id", "replaces_id", name="pk_archive_sources"),
    )

    op.create_table(
        "segments",
        sa.Column("id", _id(), autoincrement=True, nullable=False),
        sa.Column("place_id", _id(), nullable=False),
        sa.Column("directory_id", _id(), nullable=False),
        sa.Column("name", sa.LargeBinary(), nullable=False),
        sa.Column("team_id", _id(), nullable=False),
        sa.Column("class_id", _id(), nullable=False),
        sa.Column("claimed_class_id", _id()),
        sa.Column("job_id", _id(), nullable=False),
        sa.Column("labels_id", _id(), nullable=False),
        sa.Column("rule_id", _id(), nullable=False),
        sa.Column("layout", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("rotation_base", sa.LargeBinary()),
        sa.Column("inode", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("allocated_bytes", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("ctime_ns", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.Integer(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        sa.Column("gid", sa.BigInteger(), nullable=False),
        sa.Column("nlink", sa.Integer(), server_default="1", nullable=False),
        sa.Column("fingerprint", sa.LargeBinary()),
        sa.Column("fingerprint_size", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_write_ns", sa.BigInteger()),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("first_seen_ns", sa.BigInteger(), nullable=False),
        sa.Column("original", sa.Text(), nullable=False),
        sa.Column("missing_since_ns", sa.BigInteger()),
        sa.Column("missing_scans", sa.Integer(), server_default="0", nullable=False),
        sa.Column("digest", sa.LargeBinary()),
        sa.Column("archive_id", _id()),
        sa.Column("archive_offset", sa.BigInteger()),
        sa.Column("stored_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tier", sa.Text()),
        sa.Column("marked", sa.Integer(), server_default="0", nullable=False),
        sa.Column("stay_until_ns", sa.BigInteger()),
        sa.Column("set_aside_until_ns", sa.BigInteger()),
        sa.Column("problems", sa.Integer(), server_default="0", nullable=False),
        sa.Column("companion_of", _id()),
        sa.ForeignKeyConstraint(["archive_id"], ["archives.id"], name="fk_segments_archive_id_archives"),
        sa.ForeignKeyConstraint(["claimed_class_id"], ["classes.id"], name="fk_segments_claimed_class_id_classes"),
        sa.ForeignKeyConstraint(["class_id"], ["classes.id"], name="fk_segments_class_id_classes"),
        sa.ForeignKeyConstraint(["companion_of"], ["segments.id"], name="fk_segments_companion_of_segments"),
        sa.ForeignKeyConstraint(["directory_id"], ["directories.id"], name="fk_segments_directory_id_directories"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_segments_job_id_jobs"),
        sa.ForeignKeyConstraint(["labels_id"], ["label_sets.id"], name="fk_segments_labels_id_label_sets"),
        sa.ForeignKeyConstraint(["place_id"], ["places.id"], name="fk_segments_place_id_places"),
        sa.ForeignKeyConstraint(["rule_id"], ["rules.id"], name="fk_segments_rule_id_rules"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_segments_team_id_teams"),
        sa.PrimaryKeyConstraint("id", name="pk_segments"),
    )
    _create_partial_index(
        "ix_segments_absent",
        "segments",
        ["directory_id"],
        "original IN ('released', 'parked', 'lost', 'replaced', 'purged', 'unclaimed')",
    )
    _create_partial_index("ix_segments_archive", "segments", ["archive_id"], "archive_id IS NOT NULL")
    _create_partial_index("ix_segments_companion", "segments", ["companion_of"], "companion_of IS NOT NULL")
    _create_partial_index(
        "ix_segments_copied",
        "segments",
        ["team_id", "class_id", "last_write_ns"],
        "original = 'settled' AND archive_id IS NOT NULL AND stay_until_ns IS NULL",
    )
    _create_partial_index(
        "ix_segments_due",
        "segments",
        ["team_id", "class_id", "last_write_ns"],
        "original = 'settled' AND archive_id IS NULL",
    )
    _create_partial_index(
        "ix_segments_inode", "segments", ["place_id", "inode"], "original IN ('open', 'settled', 'missing')"
    )
    op.create_index("ix_segments_job_id", "segments", ["job_id"])
    _create_partial_index(
        "ix_segments_live_age", "segments", ["team_id", "class_id", "last_write_ns"], "marked = 0 AND tier IS NOT NULL"
    )
    _create_partial_index("ix_segments_live_job", "segments", ["job_id", "class_id"], "marked = 0 AND tier IS NOT NULL")
    _create_partial_index("ix_segments_marked_job", "segments", ["job_id"], "marked = 1")
    _create_partial_index("ix_segments_missing", "segments", ["place_id"], "original = 'missing'")
    _create_partial_index("ix_segments_open", "segments", ["place_id"], "original = 'open'")
    _create_partial_index("ix_segments_stay", "segments", ["place_id"], "stay_until_ns IS NOT NULL")
    _create_partial_index("ix_segments_waiting", "segments", ["place_id"], "claimed_class_id IS NOT NULL")
    _create_partial_index(
        "uq_segments_present_name",
        "segments",
        ["directory_id", "name"],
        "original IN ('open', 'settled', 'missing')",
        unique=True,
    )

    op.create_table(
        "batch_members",
        sa.Column("batch_id", _id(), nullable=False),
        sa.Column("segment_id", _id(), nullable=False),
        sa.Column("inode", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text()),
        sa.Column("detail", sa.Text()),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name="fk_batch_members_batch_id_batches"),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.id"], name="fk_batch_members_segment_id_segments"),
        sa.PrimaryKeyConstraint("batch_id", "segment_id", name="pk_batch_members"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_batch_members_segment_id", "batch_members", ["segment_id"])

    op.create_table(
        "marks",
        sa.Column("segment_id", _id(), autoincrement=False, nullable=False),
        sa.Column("marked_ns", sa.BigInteger(), nullable=False),
        sa.Column("purge_after_ns", sa.BigInteger(), nullable=False),
        sa.Column("run_id", _id(), nullable=False),
        sa.Column("policy_digest", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_marks_run_id_runs"),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.id"], name="fk_marks_segment_id_segments"),
        sa.PrimaryKeyConstraint("segment_id", name="pk_marks"),
    )
    op.create_index("ix_marks_policy_digest", "marks", ["policy_digest"])
    op.create_index("ix_marks_purge_after_ns", "marks", ["purge_after_ns"])
