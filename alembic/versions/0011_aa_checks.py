"""A/A checks, the noise of hosts from their runs, and the last run of each host.

Revision 0011, after 0010. On SQLite the two tables that lose a foreign key are copied.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

NAME = sa.String(200)
SHA = sa.String(64)
WORD = sa.String(24)
TIME = sa.DateTime(timezone=True)
#: What is kept of a host: of runs, and from now on of checks as well.
OF_HOSTS = ("host_noise", "canary_readings")


def upgrade() -> None:
    """Make the table, and let the noise of hosts come from its runs too."""
    op.create_table(
        "aa_checks",
        sa.Column("id", NAME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("host_class", NAME, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("asked_by", NAME, nullable=False),
        sa.Column("via", WORD, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("order_json", "gates_json")),
        sa.Column("run", NAME, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        *(sa.Column(name, NAME, nullable=False) for name in ("host_name", "fingerprint")),
        sa.Column("results", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        *(sa.Column(name, TIME, nullable=True) for name in ("started_at", "finished_at")),
        sa.Column("document_gzip", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["fork"], ["forks.name"], name="fk_aa_checks_fork"),
        sa.PrimaryKeyConstraint("id", name="pk_aa_checks"),
        sa.UniqueConstraint("run", name="uq_aa_checks_run"),
    )
    op.create_index("ix_aa_checks_host_class_created_at", "aa_checks", ["host_class", "created_at"])
    op.create_index("ix_aa_checks_state", "aa_checks", ["state"])
    op.add_column("hosts", sa.Column("last_run", NAME, nullable=True))
    for table in OF_HOSTS:
        with op.batch_alter_table(table) as batch:
            batch.drop_constraint(f"fk_{table}_run", type_="foreignkey")


def downgrade() -> None:
    """Drop the table, and what is kept of hosts from its runs; indexes go with it."""
    for table in OF_HOSTS:
        op.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT id FROM runs)")  # noqa: S608  two names of ours
        with op.batch_alter_table(table) as batch:
            batch.create_foreign_key(f"fk_{table}_run", "runs", ["run"], ["id"])
    with op.batch_alter_table("hosts") as batch:
        batch.drop_column("last_run")
    op.drop_table("aa_checks")
