"""What Alembic runs: the migrations on the connection that ``lifecycle.catalog.upgrade`` hands over.

The caller has begun the one transaction and switched foreign keys off. There is no other way to run them: a
connection made here would know nothing of locks, backups and checks.
"""

from __future__ import annotations

from alembic import context

from lifecycle.catalog.tables import metadata

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("run: lifecycle catalog upgrade")

context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=True,  # SQLite alters a table by rebuilding it
    transactional_ddl=True,
    compare_type=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
