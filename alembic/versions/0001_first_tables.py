"""First tables: forks, commits, jobs, runs, series, samples, verdicts, alerts and events.

Revision 0001, after nothing. It repeats what service/store/tables.py says in plain types, because
a migration must go on meaning the same when the code moves on. Enums are words of up to 24 letters.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NAME = sa.String(200)
SHA = sa.String(64)
WORD = sa.String(24)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables, each after those it points to."""
    _forks_and_commits()
    _jobs_and_runs()
    _series_and_samples()
    _verdicts()
    _alerts_and_events()


def downgrade() -> None:
    """Drop the tables; indexes go with them."""
    tables = ("events", "alerts", "verdicts", "samples", "series", "runs", "jobs", "commits")
    for table in (*tables, "forks"):
        op.drop_table(table)


def _forks_and_commits() -> None:
    op.create_table(
        "forks",
        sa.Column("name", NAME, nullable=False),
        sa.Column("branch", NAME, nullable=False),
        sa.Column("first_seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_forks"),
    )
    op.create_table(
        "commits",
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("tree", SHA, nullable=False),
        sa.Column("parent", SHA, nullable=True),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("committed_at", TIME, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("outcome", WORD, nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["fork"], ["forks.name"], name="fk_commits_fork"),
        sa.PrimaryKeyConstraint("fork", "sha", name="pk_commits"),
        sa.UniqueConstraint("fork", "position", name="uq_commits_fork_position"),
    )


def _jobs_and_runs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", NAME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("host_class", NAME, nullable=False),
        sa.Column("run", NAME, nullable=False),
        sa.Column("baseline_sha", SHA, nullable=True),
        sa.Column("order_json", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("credential_hash", SHA, nullable=True),
        sa.Column("credential_expires_at", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        _commit_key("jobs"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("credential_hash", name="uq_jobs_credential_hash"),
        sa.UniqueConstraint("fork", "sha", "kind", name="uq_jobs_fork_sha_kind"),
        sa.UniqueConstraint("run", name="uq_jobs_run"),
    )
    op.create_table(
        "runs",
        sa.Column("id", NAME, nullable=False),
        sa.Column("job", NAME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("branch", NAME, nullable=False),
        sa.Column("suite", NAME, nullable=False),
        sa.Column("config", NAME, nullable=False),
        sa.Column("variant", NAME, nullable=False),
        sa.Column("host_class", NAME, nullable=False),
        sa.Column("host_name", NAME, nullable=False),
        sa.Column("outcome", WORD, nullable=False),
        sa.Column("baseline_sha", SHA, nullable=True),
        sa.Column("content_hash", NAME, nullable=True),
        sa.Column("starts", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=False),
        sa.Column("stored_at", TIME, nullable=False),
        sa.Column("digest", SHA, nullable=False),
        sa.Column("document_gzip", sa.LargeBinary(), nullable=False),
        _commit_key("runs"),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_runs_job"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("job", name="uq_runs_job"),
    )
    op.create_index("ix_runs_fork_sha", "runs", ["fork", "sha"])


def _series_and_samples() -> None:
    op.create_table(
        "series",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("branch", NAME, nullable=False),
        sa.Column("host_class", NAME, nullable=False),
        sa.Column("variant", NAME, nullable=False),
        sa.Column("config", NAME, nullable=False),
        sa.Column("workload", NAME, nullable=False),
        sa.Column("metric", NAME, nullable=False),
        sa.Column("dataset", NAME, nullable=False),
        sa.Column("placement", NAME, nullable=False),
        sa.ForeignKeyConstraint(["fork"], ["forks.name"], name="fk_series_fork"),
        sa.PrimaryKeyConstraint("id", name="pk_series"),
    )
    op.create_index("ix_series_fork_workload", "series", ["fork", "workload"])
    op.create_table(
        "samples",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", NAME, nullable=False),
        sa.Column("series", sa.String(16), nullable=False),
        sa.Column("side", WORD, nullable=False),
        sa.Column("start_index", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_samples_run"),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name="fk_samples_series"),
        sa.PrimaryKeyConstraint("id", name="pk_samples"),
        sa.UniqueConstraint(
            "run",
            "series",
            "side",
            "start_index",
            "sequence",
            name="uq_samples_run_series_side_start_index_sequence",
        ),
    )
    op.create_index("ix_samples_series_run", "samples", ["series", "run"])


def _verdicts() -> None:
    numbers = ("effect", "low", "high", "confidence", "p_value", "detectable_effect")
    op.create_table(
        "verdicts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", NAME, nullable=False),
        sa.Column("series", sa.String(16), nullable=False),
        sa.Column("stage", WORD, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("decision", WORD, nullable=False),
        *(sa.Column(name, sa.Double(), nullable=False) for name in numbers),
        sa.Column("n_baseline", sa.Integer(), nullable=False),
        sa.Column("n_candidate", sa.Integer(), nullable=False),
        sa.Column("method", NAME, nullable=False),
        sa.Column("warnings", sa.JSON(), nullable=False),
        sa.Column("direction", sa.Integer(), nullable=False),
        sa.Column("gate", sa.Double(), nullable=False),
        sa.Column("alpha", sa.Double(), nullable=False),
        sa.Column("significant", sa.Boolean(), nullable=False),
        sa.Column("relevant", sa.Boolean(), nullable=False),
        sa.Column("suspicious", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("baseline_inputs", sa.JSON(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_verdicts_run"),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name="fk_verdicts_series"),
        sa.PrimaryKeyConstraint("id", name="pk_verdicts"),
        sa.UniqueConstraint("run", "series", name="uq_verdicts_run_series"),
    )
    op.create_index("ix_verdicts_series", "verdicts", ["series"])
    op.create_index("ix_verdicts_fork_sha", "verdicts", ["fork", "sha"])


def _alerts_and_events() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", NAME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("baseline_sha", SHA, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("workloads", sa.JSON(), nullable=False),
        sa.Column("run", NAME, nullable=False),
        sa.Column("opened_at", TIME, nullable=False),
        _commit_key("alerts"),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_alerts_run"),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sa.UniqueConstraint("fork", "sha", name="uq_alerts_fork_sha"),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("fork", NAME, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("topic", NAME, nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        _commit_key("events"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("fork", "sha", "topic", name="uq_events_fork_sha_topic"),
    )


def _commit_key(table: str) -> sa.ForeignKeyConstraint:
    """Return the foreign key to a commit."""
    return sa.ForeignKeyConstraint(
        ["fork", "sha"], ["commits.fork", "commits.sha"], name=f"fk_{table}_fork_sha"
    )
