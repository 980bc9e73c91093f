"""Indexes for stores of many thousand commits, whose rows have documents, plans or inputs in them.

Revision 0008, after 0007.
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

#: Name, table, columns.
NEW = (
    # Weeks of hosts, for the digest.
    ("ix_canary_readings_at", "canary_readings", ("at",)),
    ("ix_host_noise_at", "host_noise", ("at",)),
    # Jobs under way, for the first page; and counts, for metrics.
    ("ix_jobs_fork_state", "jobs", ("fork", "state", "kind")),
    # Weeks of a fork, for the digest and for exports.
    ("ix_runs_fork_stored_at", "runs", ("fork", "stored_at")),
    ("ix_verdicts_fork_created_at", "verdicts", ("fork", "created_at")),
    # Counts alone, for the page of hosts and for metrics: no row is read.
    ("ix_runs_host_class_host_name", "runs", ("host_class", "host_name", "outcome", "kind")),
    # The newest verdicts of a series; and its changes, without reading the others.
    ("ix_verdicts_series_id", "verdicts", ("series", "id")),
    ("ix_verdicts_series_stage_sha", "verdicts", ("series", "stage", "sha", "decision")),
)


def upgrade() -> None:
    """Make the indexes; one of them takes the place of an older one."""
    for name, table, columns in NEW:
        op.create_index(name, table, list(columns))
    op.drop_index("ix_verdicts_series", table_name="verdicts")


def downgrade() -> None:
    """Go back to the one index."""
    op.create_index("ix_verdicts_series", "verdicts", ["series"])
    for name, table, _ in reversed(NEW):
        op.drop_index(name, table_name=table)
