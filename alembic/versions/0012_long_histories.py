"""Indexes for what pages, digests and metrics look for in a history of many thousand commits.

Revision 0012, after 0011.
"""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

#: Name, table, columns.
NEW = (
    # Confirmed changes of all series, for the first page and precision; counts, for metrics.
    ("ix_verdicts_stage_decision_fork", "verdicts", ("stage", "decision", "fork")),
    # What waits or is measured; counts, for metrics.
    ("ix_commits_state_fork_position", "commits", ("state", "fork", "position")),
    # Weeks of a fork, for the digest.
    ("ix_commits_fork_seen_at", "commits", ("fork", "seen_at")),
    ("ix_commits_fork_finished_at", "commits", ("fork", "finished_at")),
    # The newest alerts; and those that a paired run had a part in, for precision.
    ("ix_alerts_opened_at", "alerts", ("opened_at",)),
    ("ix_alert_commits_run", "alert_commits", ("run",)),
)


def upgrade() -> None:
    """Make the indexes."""
    for name, table, columns in NEW:
        op.create_index(name, table, list(columns))


def downgrade() -> None:
    """Drop them."""
    for name, table, _ in reversed(NEW):
        op.drop_index(name, table_name=table)
