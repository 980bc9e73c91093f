"""The benchmark of the service measures what it says: documents, history, copy, counts, table."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from benchmarks.service import archive, burst
from benchmarks.service.__main__ import main
from benchmarks.service.branch import WEEK, ZONE, Branch
from benchmarks.service.copying import copy_store
from benchmarks.service.documents import FORK, WORKLOADS, Shape, Wanted, measured
from benchmarks.service.figures import Figure, growth, table
from benchmarks.service.filling import Filler
from service.core.alert_actions import OPEN_STATES
from service.core.model import CommitOutcome, EventKind
from service.flows.baseline import gather_single
from service.flows.judge import judge_single
from service.store import alerts, bisects, commits, digests, events, runs, verdicts
from service.store.database import Database
from service.store.migrate import upgrade
from service.store.schema import METADATA
from service.store.tables import SampleRow
from tests.fakes.postgres_server import PostgresServer
from workloads.plan import Gates

SHAPE = Shape(workloads=WORKLOADS[:4], starts=2, seconds=3)
SLOW = 19


def a_filler(commits: int) -> Filler:
    branch = Branch(commits=commits, commits_a_week=commits)
    return Filler(branch, SHAPE, seed=1, alert_every=SLOW + 1, judged_first=8)


def a_store(folder: Path, filler: Filler) -> Database:
    url = f"sqlite:///{folder / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    filler.fill(database, say=lambda _: None)
    return database


@pytest.fixture(scope="module")
def filler() -> Filler:
    return a_filler(24)


@pytest.fixture(scope="module")
def filled(filler: Filler, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = a_store(tmp_path_factory.mktemp("filled"), filler)
    yield database
    database.close()


def test_a_document_is_of_42_workloads_with_300_seconds_each() -> None:
    seconds: Counter[str] = Counter()
    for start in measured(Shape(), random.Random(1), Wanted()):
        for piece in start.slices:
            seconds[piece.workload] += len(piece.per_second_ops_s)

    assert len(seconds) == 42
    assert set(seconds.values()) == {300}


def test_the_last_commits_fill_the_week_of_the_digest() -> None:
    branch = Branch(commits=20, commits_a_week=10)

    assert branch.at(10) == WEEK.begins(ZONE)
    assert branch.at(20) == WEEK.ends(ZONE)
    assert branch.commit(3).parent == branch.sha(2)


def test_verdicts_by_the_pattern_are_such_as_the_judge_makes(
    filled: Database, filler: Filler
) -> None:
    with filled.reading() as session:
        (run,) = runs.of_commit(session, FORK, filler.branch.sha(15))
        stored = {one.series.id: one for one in verdicts.of_run(session, run.id)}
        inputs = gather_single(session, runs.document(session, run.id), fork=FORK, sha=run.sha)
    judged = {
        one.series.id: one
        for one in judge_single(inputs, Gates(), run=run.id, sha=run.sha, at=run.stored_at)
    }

    assert len(stored) == len(SHAPE.workloads)
    assert stored.keys() == judged.keys()
    for series, one in stored.items():
        other = judged[series]
        assert one.baseline_inputs == other.baseline_inputs
        assert one.parameters.keys() == other.parameters.keys()
        assert (one.stage, one.sha, one.method) == (other.stage, other.sha, other.method)
        assert one.created_at == other.created_at


def test_a_slow_commit_is_confirmed_and_has_an_alert(filled: Database, filler: Filler) -> None:
    with filled.reading() as session:
        (alert,) = alerts.newest(session, FORK)
        slow = commits.find(session, FORK, filler.branch.sha(SLOW))
        kinds = {run.kind.value for run in runs.of_commit(session, FORK, alert.sha)}

    assert slow is not None
    assert alert.sha == slow.sha
    assert slow.outcome is CommitOutcome.REGRESSION
    assert len(alert.workloads) == 3
    assert kinds == {"single", "confirm"}


def test_a_copy_on_postgresql_is_the_same_and_can_be_written_to(
    filled: Database, filler: Filler
) -> None:
    with PostgresServer() as server:
        url = server.new_database()
        upgrade(url)
        copy = Database(url)
        copy_store(filled, copy)
        for kind in METADATA.sorted_tables:
            query = select(kind).order_by(*kind.primary_key.columns)
            with filled.reading() as one, copy.reading() as other:
                rows = [tuple(row) for row in one.execute(query)]
                assert [tuple(row) for row in other.execute(query)] == rows, kind.name
        with copy.writing() as session:
            filler.ordered(session, filler.branch.commits)
            newest = events.of_commit(session, FORK, filler.branch.sha(filler.branch.commits))
        copy.close()
    assert [event.kind for event in newest] == [EventKind.SEEN, EventKind.DISPATCHED]


def test_what_is_lost_and_what_is_double_is_counted(tmp_path: Path) -> None:
    filler = a_filler(3)
    database = a_store(tmp_path, filler)
    shas = [filler.branch.sha(place) for place in range(3)]
    with database.reading() as session:
        found = runs.of_commits(session, FORK, shas)
    sent = [burst.Submission(run=run.id, sha=run.sha, credential="", body=b"") for run in found]
    assert burst.kept(database, sent, filler) == burst.Kept(lost=0, double=0)

    with database.writing() as session:
        first, second = found[0].id, found[1].id
        one = select(SampleRow.id).where(SampleRow.run == first).limit(1).scalar_subquery()
        # What the first run has lost the second has twice.
        session.execute(update(SampleRow).where(SampleRow.id == one).values(run=second, sequence=9))
    assert burst.kept(database, sent, filler) == burst.Kept(lost=1, double=1)

    with database.writing() as session:
        session.execute(delete(SampleRow))
    assert burst.kept(database, sent, filler).lost == 3
    database.close()


def test_alerts_are_settled_and_bisects_and_digests_are_kept(tmp_path: Path) -> None:
    filler = a_filler(SLOW + 1)
    database = a_store(tmp_path, filler)
    archive.settle(database)
    archive.bisect(database)

    took = archive.write_digest(database, tmp_path, times=2)
    archive.keep_digests(database)

    with database.reading() as session:
        assert len(alerts.in_states(session, FORK, OPEN_STATES)) == 1
        (bisect,) = bisects.newest(session, FORK)
        kept = digests.newest(session, FORK)
    database.close()
    assert bisect.state.value == "over"
    assert len(took) == 2
    assert [one.week for one in kept] == [WEEK.after(-back) for back in range(archive.WEEKS)]


def test_an_aim_is_met_by_the_95th_percentile_and_growth_is_a_ratio() -> None:
    fast, slow = [100.0] * 19 + [900.0], [300.0] * 20
    few = Figure(what="page", database="SQLite", commits=10, unit="ms", values=fast, aim=200.0)
    many = Figure(what="page", database="SQLite", commits=100, unit="ms", values=slow, aim=200.0)
    lost = Figure(what="lost", database="SQLite", commits=100, unit="", values=[1], aim=0)

    assert (few.p95, few.met, many.met, lost.met) == (100.0, True, False, False)
    said = table([few, many, lost])
    assert "| <= 200 ms | 100 ms | 100 ms | 20 | yes |" in said
    assert "| NO " in said
    assert "| 10 to 100 | x 3.0        | x 3.0     |" in growth([few, many, lost])
    assert growth([few]) == ""


def test_the_whole_of_it_runs_on_a_small_store(capsys: pytest.CaptureFixture[str]) -> None:
    small = {
        "database": "sqlite",
        "commits": 40,
        "workloads": 3,
        "starts": 2,
        "seconds": 2,
        "alert-every": 35,
        "digests": 1,
        "accepted": 1,
        "documents": 4,
        "clients": 4,
        "times": 1,
    }
    main([word for name, value in small.items() for word in (f"--{name}", str(value))])

    said = capsys.readouterr()
    lines = [line for line in said.out.splitlines() if "SQLite" in line]
    assert sum("4 documents at once, 4 clients" in line for line in lines) == 3
    assert all("yes" in line for line in lines if "lost" in line or "double" in line)
    assert "answers to 4 documents: 4 x 200, 4 x 201, " in said.err
