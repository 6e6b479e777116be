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


def _create_partial_index(name: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(name, "segments", columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
