"""Slack: what was posted about each alert, and which requests were taken in.

Revision 0005, after 0004.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

NAME = sa.String(200)
WORD = sa.String(24)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the two tables."""
    op.create_table(
        "slack_messages",
        sa.Column("alert", NAME, nullable=False),
        sa.Column("topic", NAME, nullable=False),
        sa.Column("channel", WORD, nullable=False),
        sa.Column("ts", WORD, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("resolution", sa.Text(), nullable=False),
        sa.Column("due_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["alert"], ["alerts.id"], name="fk_slack_messages_alert"),
        sa.PrimaryKeyConstraint("alert", "topic", name="pk_slack_messages"),
    )
    op.create_index("ix_slack_messages_due_at", "slack_messages", ["due_at"])
    op.create_table(
        "slack_requests",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_slack_requests"),
    )


def downgrade() -> None:
    """Drop the tables; the index goes with them."""
    op.drop_table("slack_requests")
    op.drop_table("slack_messages")
