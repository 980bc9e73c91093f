"""Names of one question: what is found by them, and that they are one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import event, select

from results.metric import THROUGHPUT
from service.store import series, trends
from service.store.names import one_of
from service.store.tables import CommitRow
from tests.fakes.stored_weeks import HOUR, MONDAY, SAME, Weeks, sha_of

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from service.store.database import Database

STRANGE = ['"', "'; --", "{a,b}", "\\", "ä", "[1]", "null", ""]


def stored(database: Database, count: int) -> None:
    with database.writing() as session:
        weeks = Weeks(session)
        for hour in range(count):
            weeks.commit(MONDAY + hour * HOUR, found={"scan": SAME})


def found_by(database: Database, names: list[str]) -> set[str]:
    with database.reading() as session:
        query = select(CommitRow.sha).where(CommitRow.fork == "demo", one_of(CommitRow.sha, names))
        return set(session.scalars(query))


def test_what_is_named_is_found_and_nothing_else(database: Database) -> None:
    stored(database, 3)

    assert found_by(database, [sha_of(1), sha_of(3), "f" * 40]) == {sha_of(1), sha_of(3)}
    assert found_by(database, []) == set()
    assert found_by(database, STRANGE) == set()
    assert found_by(database, [*STRANGE, sha_of(2)]) == {sha_of(2)}


def test_names_are_one_value_however_many_they_are(database: Database) -> None:
    stored(database, 1)
    asked: list[int] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def _note(_connection: Connection, _cursor: Any, _text: str, values: Any, *_: Any) -> None:
        asked.append(len(values))

    many = [f"{number:040x}" for number in range(40_000)]

    assert found_by(database, [*many, sha_of(1)]) == {sha_of(1)}
    assert max(asked) == 2


def test_a_trend_asks_along_the_branch_and_not_of_all_runs(database: Database) -> None:
    """PostgreSQL would hash all runs and ask for each commit's twice."""
    stored(database, 3)
    asked: list[tuple[str, Any]] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def _note(_connection: Connection, _cursor: Any, text: str, values: Any, *_: Any) -> None:
        asked.append((text, values))

    with database.reading() as session:
        (key,) = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        asked.clear()
        assert [run.position for run in trends.runs_of(session, key, limit=2)] == [1, 2]
        text, values = asked[0]
        connection = session.connection()
        if connection.dialect.name == "sqlite":
            plan = [
                row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)
            ]
            assert plan[0].startswith("SEARCH commits USING INDEX")
            return
        # Of three commits PostgreSQL would read everything.
        for off in ("enable_seqscan", "enable_bitmapscan"):
            connection.exec_driver_sql(f"SET LOCAL {off} = off")
        plan = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {text}", values)]

    assert any("Index Scan Backward using uq_commits_fork_position" in step for step in plan)
    assert not any("Hash" in step for step in plan)
    assert any("(id)::text = ANY" in step for step in plan)
