"""Bisects: what is searched, and the measurements that were asked for.

Revision 0007, after 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

NAME = sa.String(200)
SHA = sa.String(64)
WORD = sa.String(24)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the two tables."""
    op.create_table(
        "bisects",
        sa.Column("id", NAME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("good_sha", SHA, nullable=False),
        sa.Column("question_json", sa.Text(), nullable=False),
        sa.Column("plan_digest", sa.String(64), nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("commits", sa.Integer(), nullable=False),
        sa.Column("alert", NAME, nullable=True),
        sa.Column("asked_by", NAME, nullable=False),
        sa.Column("via", WORD, nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        *(sa.Column(name, TIME, nullable=True) for name in ("started_at", "finished_at")),
        sa.Column("material_gzip", sa.LargeBinary(), nullable=False),
        sa.Column("document_gzip", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["fork"], ["forks.name"], name="fk_bisects_fork"),
        sa.ForeignKeyConstraint(["alert"], ["alerts.id"], name="fk_bisects_alert"),
        sa.PrimaryKeyConstraint("id", name="pk_bisects"),
    )
    op.create_index("ix_bisects_fork_good_sha", "bisects", ["fork", "good_sha"])
    op.create_index("ix_bisects_alert", "bisects", ["alert"])
    op.create_index("ix_bisects_state", "bisects", ["state"])
    _bisect_jobs()


def downgrade() -> None:
    """Drop the tables; indexes go with them."""
    for table in ("bisect_jobs", "bisects"):
        op.drop_table(table)


def _bisect_jobs() -> None:
    op.create_table(
        "bisect_jobs",
        sa.Column("id", NAME, nullable=False),
        sa.Column("bisect", NAME, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("commit_index", sa.Integer(), nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("run", NAME, nullable=False),
        sa.Column("starts", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("said", "observation_json")),
        sa.Column("created_at", TIME, nullable=False),
        *(sa.Column(name, TIME, nullable=True) for name in ("started_at", "finished_at")),
        sa.Column("document_gzip", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["bisect"], ["bisects.id"], name="fk_bisect_jobs_bisect"),
        sa.PrimaryKeyConstraint("id", name="pk_bisect_jobs"),
        sa.UniqueConstraint("run", name="uq_bisect_jobs_run"),
    )
    op.create_index("ix_bisect_jobs_bisect", "bisect_jobs", ["bisect"])
