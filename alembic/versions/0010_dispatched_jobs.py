"""Jobs that a CI was asked to do, one row for each dispatch.

Revision 0010, after 0009.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NAME = sa.String(200)
WORD = sa.String(24)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "dispatched_jobs",
        sa.Column("job", NAME, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("system", WORD, nullable=False),
        sa.Column("host_class", NAME, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("order_json", sa.Text(), nullable=False),
        sa.Column("flow", sa.Text(), nullable=True),
        sa.Column("external_id", NAME, nullable=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("page", "said")),
        sa.Column("credential_hash", sa.String(64), nullable=True),
        sa.Column("credential_expires_at", TIME, nullable=True),
        sa.Column("asked_at", TIME, nullable=False),
        *(sa.Column(name, TIME, nullable=True) for name in ("posted_at", "taken_at", "ended_at")),
        sa.Column("document_gzip", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("job", "attempt", name="pk_dispatched_jobs"),
        sa.UniqueConstraint("credential_hash", name="uq_dispatched_jobs_credential_hash"),
    )
    op.create_index(
        "ix_dispatched_jobs_system_external_id", "dispatched_jobs", ["system", "external_id"]
    )
    op.create_index("ix_dispatched_jobs_ended_at", "dispatched_jobs", ["ended_at"])


def downgrade() -> None:
    """Drop the table; indexes go with it."""
    op.drop_table("dispatched_jobs")
