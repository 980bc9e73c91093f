"""Deliveries of webhooks, pull requests, and the jobs of pull requests.

Revision 0004, after 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NAME = sa.String(200)
SHA = sa.String(64)
WORD = sa.String(24)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the three tables."""
    op.create_table(
        "deliveries",
        sa.Column("guid", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("guid", name="pk_deliveries"),
        sa.UniqueConstraint("digest", name="uq_deliveries_digest"),
    )
    op.create_index("ix_deliveries_received_at", "deliveries", ["received_at"])
    op.create_table(
        "pull_requests",
        sa.Column("fork", NAME, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("head_sha", SHA, nullable=False),
        sa.Column("head_at", TIME, nullable=False),
        sa.Column("base", NAME, nullable=False),
        *(sa.Column(name, sa.Boolean(), nullable=False) for name in ("outside", "draft", "open")),
        sa.Column("changed_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["fork"], ["forks.name"], name="fk_pull_requests_fork"),
        sa.PrimaryKeyConstraint("fork", "number", name="pk_pull_requests"),
    )
    _pull_jobs()


def downgrade() -> None:
    """Drop the tables; indexes go with them."""
    for table in ("pull_jobs", "pull_requests", "deliveries"):
        op.drop_table(table)


def _pull_jobs() -> None:
    op.create_table(
        "pull_jobs",
        sa.Column("id", NAME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("pull", sa.Integer(), nullable=False),
        *(sa.Column(name, WORD, nullable=False) for name in ("kind", "state")),
        sa.Column("suite", NAME, nullable=False),
        sa.Column("candidate_sha", SHA, nullable=False),
        sa.Column("baseline_sha", SHA, nullable=True),
        sa.Column("run", NAME, nullable=False),
        sa.Column("asked_by", NAME, nullable=False),
        sa.Column("trusted", sa.Boolean(), nullable=False),
        sa.Column("order_json", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("said", "verdicts_json")),
        sa.Column("accepted_by", NAME, nullable=False),
        sa.Column("accepted_reason", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        *(sa.Column(name, TIME, nullable=True) for name in ("started_at", "finished_at")),
        sa.Column("document_gzip", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["fork"], ["forks.name"], name="fk_pull_jobs_fork"),
        sa.PrimaryKeyConstraint("id", name="pk_pull_jobs"),
        sa.UniqueConstraint("run", name="uq_pull_jobs_run"),
    )
    op.create_index("ix_pull_jobs_fork_pull", "pull_jobs", ["fork", "pull"])
    op.create_index("ix_pull_jobs_state", "pull_jobs", ["state"])
