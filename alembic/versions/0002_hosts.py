"""Hosts: the machines that measured, how much each workload scattered there, and their canaries.

Revision 0002, after 0001. Runs stored before it are not looked through again: their documents are
kept, and a host's noise is a matter of its last weeks.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NAME = sa.String(200)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the three tables."""
    op.create_table(
        "hosts",
        sa.Column("host_class", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("cpu_model", sa.Text(), nullable=False),
        sa.Column("logical_cpus", sa.Integer(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("kernel", sa.Text(), nullable=False),
        sa.Column("os", sa.Text(), nullable=False),
        sa.Column("virtualised", sa.Boolean(), nullable=False),
        sa.Column("fingerprint", NAME, nullable=False),
        sa.Column("fingerprint_since", TIME, nullable=False),
        sa.Column("first_seen_at", TIME, nullable=False),
        sa.Column("last_seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("host_class", "name", name="pk_hosts"),
    )
    _host_noise()
    _canary_readings()


def downgrade() -> None:
    """Drop the tables; indexes go with them."""
    for table in ("canary_readings", "host_noise", "hosts"):
        op.drop_table(table)


def _host_noise() -> None:
    levels = ("starts", "slices", "pairs")
    op.create_table(
        "host_noise",
        *_of_a_run(),
        sa.Column("workload", NAME, nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("starts", "slices")),
        sa.Column("disturbed", sa.Integer(), nullable=False),
        sa.Column("steal_percent_max", sa.Double(), nullable=False),
        *(sa.Column(f"{level}_sd", sa.Double(), nullable=True) for level in levels),
        *(sa.Column(f"{level}_df", sa.Integer(), nullable=False) for level in levels),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_host_noise_run"),
        sa.PrimaryKeyConstraint("id", name="pk_host_noise"),
        sa.UniqueConstraint("run", "workload", name="uq_host_noise_run_workload"),
    )
    op.create_index(
        "ix_host_noise_host_class_host_name_at", "host_noise", ["host_class", "host_name", "at"]
    )


def _canary_readings() -> None:
    op.create_table(
        "canary_readings",
        *_of_a_run(),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("moment", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("unit", NAME, nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("change_percent", sa.Double(), nullable=True),
        sa.Column("suspicious", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_canary_readings_run"),
        sa.PrimaryKeyConstraint("id", name="pk_canary_readings"),
        sa.UniqueConstraint("run", "position", name="uq_canary_readings_run_position"),
    )
    op.create_index(
        "ix_canary_readings_host_class_host_name_at",
        "canary_readings",
        ["host_class", "host_name", "at"],
    )


def _of_a_run() -> list[sa.Column[object]]:
    """Return the columns that say of which run and machine a row is."""
    return [
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", NAME, nullable=False),
        sa.Column("host_class", NAME, nullable=False),
        sa.Column("host_name", NAME, nullable=False),
        sa.Column("fingerprint", NAME, nullable=False),
        sa.Column("at", TIME, nullable=False),
    ]
