"""Backfills, bridges, and how series relate.

Revision 0009, after 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NAME = sa.String(200)
SERIES = sa.String(16)
SHA = sa.String(64)
WORD = sa.String(24)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the three tables."""
    op.create_table(
        "backfills",
        sa.Column("id", NAME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("commit_order", WORD, nullable=False),
        sa.Column("before_sha", SHA, nullable=False),
        sa.Column("commits", sa.JSON(), nullable=False),
        sa.Column("asked_by", NAME, nullable=False),
        sa.Column("via", WORD, nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["fork"], ["forks.name"], name="fk_backfills_fork"),
        sa.PrimaryKeyConstraint("id", name="pk_backfills"),
    )
    op.create_index("ix_backfills_fork_state", "backfills", ["fork", "state"])
    _bridges()
    _relations()


def downgrade() -> None:
    """Drop the tables; indexes go with them."""
    for table in ("series_relations", "bridges", "backfills"):
        op.drop_table(table)


def _bridges() -> None:
    op.create_table(
        "bridges",
        sa.Column("id", NAME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("old_sha", SHA, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("joints", sa.JSON(), nullable=False),
        sa.Column("paired", sa.Boolean(), nullable=False),
        sa.Column("order_json", sa.Text(), nullable=False),
        sa.Column("run", NAME, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        *(sa.Column(name, TIME, nullable=True) for name in ("started_at", "finished_at")),
        sa.Column("document_gzip", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["fork"], ["forks.name"], name="fk_bridges_fork"),
        sa.PrimaryKeyConstraint("id", name="pk_bridges"),
        sa.UniqueConstraint("run", name="uq_bridges_run"),
    )
    op.create_index("ix_bridges_fork_sha", "bridges", ["fork", "sha"])
    op.create_index("ix_bridges_state", "bridges", ["state"])


def _relations() -> None:
    op.create_table(
        "series_relations",
        sa.Column("bridge", NAME, nullable=False),
        sa.Column("new_series", SERIES, nullable=False),
        sa.Column("old_series", SERIES, nullable=False),
        sa.Column("workload", NAME, nullable=False),
        *(sa.Column(name, sa.Double(), nullable=False) for name in ("effect", "low", "high")),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("method", NAME, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["bridge"], ["bridges.id"], name="fk_series_relations_bridge"),
        sa.ForeignKeyConstraint(
            ["new_series"], ["series.id"], name="fk_series_relations_new_series"
        ),
        sa.ForeignKeyConstraint(
            ["old_series"], ["series.id"], name="fk_series_relations_old_series"
        ),
        sa.PrimaryKeyConstraint("bridge", "new_series", name="pk_series_relations"),
    )
    op.create_index("ix_series_relations_new_series", "series_relations", ["new_series"])
