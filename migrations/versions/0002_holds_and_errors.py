"""What holds, kept error lines and early expiration need beside the first schema.

Revision: 0002, after 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("retentions", sa.Column("early_ns", sa.BigInteger(), nullable=True))

    # What was stored before error lines were kept counts as not looked through.
    op.add_column("segments", sa.Column("error_blocks", sa.Integer(), nullable=True))
    _create_partial_index(
        "ix_segments_unextracted",
        ["team_id", "class_id", "archive_id"],
        "archive_id IS NOT NULL AND error_blocks IS NULL",
    )
    _create_partial_index(
        "uq_segments_companion", ["companion_of"], "companion_of IS NOT NULL AND tier IS NOT NULL", unique=True
    )

    _create_partial_index(
        "ix_segments_rotated",
        ["team_id", "class_id", "directory_id", "rotation_base"],
        "original = 'settled' AND archive_id IS NULL AND rotation_base IS NOT NULL",
    )
    op.add_column("directories", sa.Column("emptied_ns", sa.BigInteger(), nullable=True))
    emptied = sa.text("emptied_ns IS NOT NULL")
    columns = ["place_id", "emptied_ns"]
    op.create_index("ix_directories_emptied", "directories", columns, sqlite_where=emptied, postgresql_where=emptied)

    small = sa.text("live_raw_bytes > 0 AND live_raw_bytes < 16777216")
    columns = ["tier", "team_id", "class_id", "newest_write_ns"]
    op.create_index("ix_archives_small", "archives", columns, sqlite_where=small, postgresql_where=small)

    with op.batch_alter_table("holds") as holds:
        holds.add_column(sa.Column("place_id", _id(), nullable=True))
        holds.add_column(sa.Column("directory", sa.LargeBinary(), nullable=True))
        holds.add_column(sa.Column("missing_scans", sa.Integer(), server_default="0", nullable=False))
        holds.add_column(sa.Column("applied_id", sa.BigInteger(), server_default="0", nullable=False))
        holds.create_foreign_key("fk_holds_place_id_places", "places", ["place_id"], ["id"])
    standing = sa.text("released_ns IS NULL")
    op.create_index("ix_holds_standing", "holds", ["id"], sqlite_where=standing, postgresql_where=standing)
    op.create_table(
        "hold_members",
        sa.Column("segment_id", _id(), nullable=False),
        sa.Column("hold_id", _id(), nullable=False),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.id"], name="fk_hold_members_segment_id_segments"),
        sa.ForeignKeyConstraint(["hold_id"], ["holds.id"], name="fk_hold_members_hold_id_holds"),
        sa.PrimaryKeyConstraint("segment_id", "hold_id", name="pk_hold_members"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_hold_members_hold_id", "hold_members", ["hold_id"])


def _id() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _create_partial_index(name: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(name, "segments", columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
