"""Life of alerts: owner and states, their commits, the audit log, marks on baselines; and tokens.

Revision 0003, after 0002. Alerts from before it are confirmed, and each was opened by its own
commit. The new columns may be empty, so that neither database has to copy the table.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NAME = sa.String(200)
SHA = sa.String(64)
WORD = sa.String(24)
SERIES = sa.String(16)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the columns and make the tables; then say what is known of the alerts there are."""
    for column in _columns():
        op.add_column("alerts", column)
    _alert_commits()
    _audit_log()
    _baseline_marks()
    _tokens()
    op.execute("UPDATE alerts SET state = 'confirmed' WHERE state = 'open'")
    op.execute(
        "INSERT INTO alert_commits (alert, fork, sha, part, run, at) "
        "SELECT id, fork, sha, 'opened', run, opened_at FROM alerts ORDER BY opened_at, id"
    )


def downgrade() -> None:
    """Drop what was made; every alert is open again, as all were before."""
    for table in ("tokens", "baseline_marks", "audit_log", "alert_commits"):
        op.drop_table(table)
    op.execute("UPDATE alerts SET state = 'open'")
    for column in _columns():
        op.drop_column("alerts", column.name)


def _columns() -> list[sa.Column[object]]:
    return [
        sa.Column("owner", NAME, nullable=True),
        sa.Column("due_on", sa.Date(), nullable=True),
        sa.Column("muted_until", TIME, nullable=True),
        sa.Column("true_alarm", sa.Boolean(), nullable=True),
        sa.Column("closed_at", TIME, nullable=True),
    ]


def _alert_commits() -> None:
    op.create_table(
        "alert_commits",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("alert", NAME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("part", WORD, nullable=False),
        sa.Column("run", NAME, nullable=True),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["alert"], ["alerts.id"], name="fk_alert_commits_alert"),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_alert_commits_run"),
        _commit_key("alert_commits"),
        sa.PrimaryKeyConstraint("id", name="pk_alert_commits"),
        sa.UniqueConstraint("alert", "sha", "part", name="uq_alert_commits_alert_sha_part"),
    )
    op.create_index("ix_alert_commits_fork_sha", "alert_commits", ["fork", "sha"])


def _audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("subject", WORD, nullable=False),
        sa.Column("about", NAME, nullable=False),
        sa.Column("what", WORD, nullable=False),
        sa.Column("actor", NAME, nullable=False),
        sa.Column("via", WORD, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("key", NAME, nullable=True),
        sa.Column("before", WORD, nullable=True),
        sa.Column("after", WORD, nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("told_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
        sa.UniqueConstraint("subject", "about", "key", name="uq_audit_log_subject_about_key"),
    )


def _baseline_marks() -> None:
    op.create_table(
        "baseline_marks",
        sa.Column("series", SERIES, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("alert", NAME, nullable=True),
        sa.Column("actor", NAME, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name="fk_baseline_marks_series"),
        sa.ForeignKeyConstraint(["alert"], ["alerts.id"], name="fk_baseline_marks_alert"),
        _commit_key("baseline_marks"),
        sa.PrimaryKeyConstraint("series", "sha", name="pk_baseline_marks"),
    )


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("secret_hash", SHA, nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("name", name="uq_tokens_name"),
    )


def _commit_key(table: str) -> sa.ForeignKeyConstraint:
    """Return the foreign key to a commit."""
    return sa.ForeignKeyConstraint(
        ["fork", "sha"], ["commits.fork", "commits.sha"], name=f"fk_{table}_fork_sha"
    )
