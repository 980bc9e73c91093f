"""Pages end with what they show: no table that grows with the history is read or sorted whole.

SQLite plans by the indexes alone as long as nobody has counted its rows, so a small store shows
what a large one does.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from fastapi import FastAPI
from sqlalchemy import event, select

from results.metric import THROUGHPUT
from service.core.weeks import Week
from service.flows.digest_contents import digest_of
from service.store import commits, comparisons, forks, hosts, overview, series, trends
from service.store.census import take_census
from service.store.database import Database
from service.store.migrate import upgrade
from service.store.tables import RunRow, VerdictRow
from service.web.api import commits_router, samples_router
from service.web.bisect_pages import bisect_pages_router
from service.web.compare_api import compare_router
from service.web.compare_pages import compare_pages_router
from service.web.digest_pages import digests_router
from service.web.host_api import hosts_router
from service.web.pages import pages_router
from tests.fakes.stored_weeks import HOUR, MONDAY, SAME, SLOWER, Weeks, sha_of
from tests.fakes.visitor import Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sqlalchemy.engine import Connection

#: Tables with some rows for every commit.
GROWING = {
    "canary_readings",
    "commits",
    "events",
    "host_noise",
    "jobs",
    "runs",
    "samples",
    "verdicts",
}
_STEP = re.compile(r"(?P<how>SCAN|SEARCH) (?P<table>[a-z_]+?)(?:_\d+)?(?: |$)")
ZONE = ZoneInfo("UTC")
LOST = {"scan": SLOWER, "point-query": SAME}


def faults(plan: Sequence[str]) -> list[str]:
    """Return the steps of a plan that take longer with every commit."""
    sorts = "USE TEMP B-TREE FOR ORDER BY" in plan
    found = []
    for step in plan:
        told = _STEP.match(step)
        if told is None or told["table"] not in GROWING:
            continue
        # Counts read an index from end to end, and no row.
        read_whole = told["how"] == "SCAN" and "COVERING INDEX" not in step
        # A walk along the branch ends with its limit, but a sort begins when all of it is read.
        sorted_whole = sorts and step.endswith("(fork=?)")
        if read_whole or sorted_whole or "AUTOMATIC" in step:
            found.append(step)
    return found


class Watched:
    """A store whose questions are written down, with how SQLite means to answer them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.asked: list[tuple[str, Any]] = []

        @event.listens_for(database.engine, "before_cursor_execute")
        def _note(
            _connection: Connection, _cursor: Any, statement: str, parameters: Any, *_: Any
        ) -> None:
            if statement.startswith(("SELECT", "WITH")):
                self.asked.append((statement, parameters))

    def plans(self) -> dict[str, list[str]]:
        """Return the plan of each question since the last time."""
        asked, self.asked = self.asked, []
        with self.database.engine.connect() as connection:
            return {
                statement: [
                    row[3]
                    for row in connection.exec_driver_sql(
                        f"EXPLAIN QUERY PLAN {statement}", parameters
                    )
                ]
                for statement, parameters in asked
            }

    def slow(self) -> dict[str, list[str]]:
        """Return the questions since the last time that take longer with every commit."""
        return {asked: found for asked, plan in self.plans().items() if (found := faults(plan))}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder: Path = tmp_path_factory.mktemp("plans")
    url = f"sqlite:///{folder / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    with database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found={"scan": SAME, "point-query": SAME})
        pair = weeks.confirmed(MONDAY + HOUR, LOST)
        weeks.alert(pair, {"scan": SLOWER}, MONDAY + HOUR)
        weeks.commit(MONDAY + 2 * HOUR, found={"scan": SAME, "point-query": SAME})
        hosts.see(session, pair, at=MONDAY + HOUR)
    yield Watched(database)
    database.close()


def an_application(database: Database) -> FastAPI:
    app = FastAPI()
    for router in (
        commits_router(database),
        samples_router(database),
        hosts_router(database),
        compare_router(database),
        pages_router(database),
        compare_pages_router(database),
        digests_router(database),
        bisect_pages_router(database),
    ):
        app.include_router(router)
    return app


def addresses(database: Database) -> list[str]:
    """Return one of each kind of page and of what the API is asked for often."""
    with database.reading() as session:
        (key,) = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        (host,) = hosts.everything(session)
    old, new = sha_of(1), sha_of(3)
    return [
        "/",
        "/forks/demo/workloads/scan",
        "/forks/demo/workloads/scan?last=50000",
        f"/forks/demo/commits/{sha_of(2)}",
        "/alerts/alert-demo-2c",
        "/bisects",
        f"/compare?fork=demo&baseline={old}&candidate={new}",
        f"/releases?fork=demo&refs={old},{new}",
        "/digests",
        "/hosts",
        f"/hosts/{host.name}",
        "/precision",
        "/api/v1/series?fork=demo",
        f"/api/v1/series/{key.id}",
    ]


def test_no_page_takes_longer_with_every_commit(watched: Watched) -> None:
    visitor = Visitor(watched.database)
    visitor.app = an_application(watched.database)
    asked = addresses(watched.database)
    watched.plans()

    slow = {}
    for address in asked:
        assert visitor.open(address).status_code == 200, address
        assert watched.asked, address
        slow[address] = watched.slow()

    assert {address: found for address, found in slow.items() if found} == {}


def test_a_digest_reads_its_week(watched: Watched) -> None:
    with watched.database.reading() as session:
        (fork,) = forks.everything(session)
        watched.plans()
        week = Week(year=2026, number=45)
        found = digest_of(session, fork, week, zone=ZONE, now=MONDAY + timedelta(weeks=1))

    assert found.commits_seen == 3
    assert watched.slow() == {}


def test_metrics_read_indexes_alone(watched: Watched) -> None:
    with watched.database.reading() as session:
        assert take_census(session).verdicts[("confirm", "regression")] == 1

    assert watched.slow() == {}


def test_what_waits_is_found_by_its_state(watched: Watched) -> None:
    with watched.database.reading() as session:
        commits.unfinished(session, "demo")
        commits.waiting(session, "demo")

    for asked, plan in watched.plans().items():
        assert "ix_commits_state_fork_position (state=? AND fork=?)" in plan[0], asked


def test_the_newest_runs_are_found_along_the_branch(watched: Watched) -> None:
    """A commit after the other, each with its run, until there are enough."""
    with watched.database.reading() as session:
        assert len(overview.newest_runs(session, "demo")) == 3
        (key,) = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        watched.plans()
        assert len(trends.runs_of(session, key, limit=1)) == 1

    first, *_ = watched.plans().values()
    assert first[0].startswith("SEARCH commits USING INDEX")
    assert first[0].endswith("(fork=?)")
    assert not any("TEMP B-TREE" in step for step in first)


def test_a_commit_is_found_by_its_first_digits(watched: Watched) -> None:
    with watched.database.reading() as session:
        found = comparisons.commits_called(session, sha_of(2)[:9].upper(), fork="demo")
        run = overview.reference_run(session, "demo", chosen=sha_of(2)[:9])

    assert found == [("demo", sha_of(2))]
    assert run is not None
    assert run.sha == sha_of(2)
    for plan in watched.plans().values():
        assert any("(fork=? AND sha>? AND sha<?)" in step for step in plan)


def test_changes_are_found_by_what_was_decided(watched: Watched) -> None:
    with watched.database.reading() as session:
        (changes,) = overview.confirmed_changes(session, "demo").values()

    assert [change.position for change in changes] == [1]

    plans = [plan for asked, plan in watched.plans().items() if "FROM verdicts" in asked]
    assert plans
    for plan in plans:
        assert any("ix_verdicts_stage_decision_fork" in step for step in plan)


@pytest.mark.parametrize(
    "question",
    [
        select(RunRow.id).where(RunRow.starts > 1),
        select(RunRow.id).where(RunRow.fork == "demo").order_by(RunRow.starts),
        select(VerdictRow.id).where(VerdictRow.effect < 0).limit(1),
    ],
)
def test_this_rule_can_fail(watched: Watched, question: Any) -> None:
    watched.plans()
    with watched.database.reading() as session:
        session.execute(question)

    assert watched.slow() != {}
