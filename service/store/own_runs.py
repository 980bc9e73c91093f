"""Commits with the run of their own job, found along their branch: the newest, or the first.

Conditions come in, a query goes out that its caller limits. It begins with the commits, whose
positions are an index, and looks each one's run up: so it ends with the last row that is wanted,
however long the history is. Left alone, SQLite reads and sorts every run of the fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, String, exists, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import aliased
from sqlalchemy.sql.functions import FunctionElement

from results.document import Outcome
from service.core.model import JobKind
from service.store.commits import sha_begins
from service.store.tables import CommitRow, RunRow, SampleRow

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Row
    from sqlalchemy.orm import Session
    from sqlalchemy.sql.compiler import SQLCompiler


def along_branch(
    *columns: Any,
    fork: Any,
    series: Collection[str] = (),
    measured: bool = False,
    branch: str | None = None,
    until: datetime | None = None,
) -> Select[Any]:
    """Return the query for columns of commits and of their own runs, to be ordered and limited.

    Args:
        columns: Of `CommitRow` and `RunRow`.
        fork: Its name, or a query for it.
        series: With samples in any of these, where given.
        measured: With numbers that may be judged.
        branch: Measured as of this branch, where given.
        until: Stored before this time, where given.
    """
    one = aliased(RunRow)
    # A commit has one job of the kind, and a job one run.
    own = select(one.id).where(
        one.fork == CommitRow.fork, one.sha == CommitRow.sha, one.kind == JobKind.SINGLE
    )
    if measured:
        own = own.where(one.outcome == Outcome.MEASURED)
    if branch is not None:
        own = own.where(one.branch == branch)
    if until is not None:
        own = own.where(one.stored_at < until)
    if series:
        own = own.where(exists().where(SampleRow.series.in_(series), SampleRow.run == one.id))
    # A query for one value is asked for each commit in turn; a plain join could begin with the
    # runs.
    found = _Only(own.limit(1).correlate(CommitRow).scalar_subquery())
    return (
        select(*columns)
        .select_from(CommitRow)
        .join(RunRow, RunRow.id == found)
        .where(CommitRow.fork == fork)
    )


def first_of(
    session: Session, query: Select[Any], *, chosen: str | None = None
) -> Row[Any, *tuple[Any, ...]] | None:
    """Return the row of the chosen commit, or of the first that was seen on the branch.

    A backfill measures commits that came before; only where nothing else is measured, the first of
    those.

    Args:
        session: To read with.
        query: Of `along_branch`.
        chosen: A commit, or the first digits of one.
    """
    query = query.order_by(CommitRow.position).limit(1)
    if chosen is not None:
        return session.execute(query.where(*sha_begins(chosen))).one_or_none()
    seen = session.execute(query.where(CommitRow.position >= 0)).one_or_none()
    return seen or session.execute(query).one_or_none()


class _Only(FunctionElement[str]):
    """The one value of a query."""

    name = "only"
    type = String()
    inherit_cache = True


@compiles(_Only)
def _value(element: _Only, compiler: SQLCompiler, **words: Any) -> str:
    (query,) = element.clauses
    return compiler.process(query, **words)


@compiles(_Only, "postgresql")
def _any_of_one(element: _Only, compiler: SQLCompiler, **words: Any) -> str:
    # Equal to a value, PostgreSQL would hash all runs, and ask for each commit of the branch twice.
    # One of an array can only be looked up, one commit after the other.
    (query,) = element.clauses
    return f"ANY (ARRAY{compiler.process(query, **words)})"
