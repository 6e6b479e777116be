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
