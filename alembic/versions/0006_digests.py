"""Digests: what was said about each week of each fork.

Revision 0006, after 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "digests",
        sa.Column("fork", sa.String(200), nullable=False),
        sa.Column("week", sa.String(24), nullable=False),
        sa.Column("zone", sa.String(200), nullable=False),
        sa.Column("headline", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sent_to", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["fork"], ["forks.name"], name="fk_digests_fork"),
        sa.PrimaryKeyConstraint("fork", "week", name="pk_digests"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("digests")
