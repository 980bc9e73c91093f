"""Imports in the store: series like any other, apart from what is measured, all or nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import func, select

from detectors.changepoints import find_changes
from results.metric import THROUGHPUT
from results.slice import SideName, Slice
from service.core.digests import Window
from service.core.model import CommitState
from service.flows.comparisons import compare
from service.flows.imports import (
    COMMITS_MAX,
    Destination,
    Imported,
    ImportedRun,
    ImportRefusedError,
    import_runs,
)
from service.store import (
    commits,
    digest_facts,
    forks,
    hosts,
    runs,
    samples,
    series,
)
from service.store.tables import RunRow, SampleRow
from tests.fakes.run_documents import AT, sha
from tests.fakes.stored_fork import a_fork, a_stored_run, git_commit, measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.store.database import Database

THEN = datetime(2020, 1, 1, tzinfo=UTC)
THERE = Destination(fork="history", branch="main", host_class="imported-csv", source="h.csv")


def a_slice(ops_s: float, *, workload: str = "scan", sequence: int = 0) -> Slice:
    return Slice(
        workload=workload,
        side=SideName.CANDIDATE,
        sequence=sequence,
        started_at=THEN,
        seconds=1,
        operations=round(ops_s),
        throughput_ops_s=ops_s,
    )


def a_version(label: str, *values: float, day: int = 0, workload: str = "scan") -> ImportedRun:
    """Return a commit with one value in each start."""
    return ImportedRun(
        label=label,
        at=THEN + timedelta(days=day),
        starts=tuple((a_slice(value, workload=workload),) for value in values),
    )


def take(database: Database, *found: ImportedRun, **changed: Any) -> Imported:
    to = Destination(**{**vars(THERE), **changed})
    with database.writing() as session:
        return import_runs(session, found, to, at=AT)


def counts(database: Database) -> tuple[int, int]:
    """Return how many runs and samples are stored."""
    with database.reading() as session:
        return (
            session.scalar(select(func.count()).select_from(RunRow)) or 0,
            session.scalar(select(func.count()).select_from(SampleRow)) or 0,
        )


def a_history(levels: Sequence[float]) -> list[ImportedRun]:
    return [
        a_version(f"v{number}", level, level * 1.004, level * 0.997, day=number)
        for number, level in enumerate(levels)
    ]


def test_a_history_becomes_a_series_in_the_order_of_its_times(database: Database) -> None:
    done = take(
        database, a_version("8.0.30", 90.0, 91.0, day=5), a_version("8.0.28", 100.0, 101.0, day=1)
    )

    assert done == Imported(added=("8.0.28", "8.0.30"), known=0)
    with database.reading() as session:
        (key,) = series.of_fork(session, "history", metric=THROUGHPUT.name)
        points = series.points(session, key.id)
        newest = commits.newest(session, "history")
        assert [commit.state for commit in newest] == [CommitState.FINISHED] * 2
        assert commits.first_parents(session, "history", newest[0].sha) == [newest[1]]
        assert hosts.everything(session) == []
    assert (key.host_class, key.placement, key.workload) == ("imported-csv", "imported", "scan")
    assert [point.subject for point in points] == ["8.0.28", "8.0.30"]
    assert [point.samples.starts for point in points] == [((100.0,), (101.0,)), ((90.0,), (91.0,))]
    assert "imported from h.csv" in newest[0].reason


def test_a_full_hash_is_kept_as_it_is(database: Database) -> None:
    take(database, a_version(sha("c"), 100.0))

    with database.reading() as session:
        assert commits.find(session, "history", sha("c")) is not None


def test_detection_finds_the_step_in_an_imported_history(database: Database) -> None:
    levels = [100.0 + number % 3 / 2 for number in range(20)] + [
        90.0 + number % 3 / 2 for number in range(15)
    ]
    take(database, *a_history(levels))

    with database.reading() as session:
        (key,) = series.of_fork(session, "history", metric=THROUGHPUT.name)
        points = series.points(session, key.id)
        window = Window(fork="history", begins=AT - timedelta(days=1), until=AT + timedelta(days=1))
        (history,) = digest_facts.histories(session, window)
        found = compare(session, baseline="v19", candidate="v20", fork="history")
    middles = [
        median(value for start in point.samples.starts for value in start) for point in points
    ]
    (change,) = find_changes(middles)
    assert change.index == 20
    assert [point.sha for point in history.points] == [point.sha for point in points]
    assert found.rows[0].ratio == pytest.approx(0.896, abs=0.01)
    assert found.rows[0].verdict is not None


def test_the_same_numbers_again_change_nothing_and_newer_ones_follow(database: Database) -> None:
    first = a_history([100.0, 101.0])
    take(database, *first)
    before = counts(database)

    later = [ImportedRun(label=run.label, at=run.at, starts=run.starts) for run in first]
    assert take(database, *later) == Imported(added=(), known=2)
    assert counts(database) == before
    more = a_history([100.0, 101.0, 102.0])
    assert take(database, *more) == Imported(added=("v2",), known=2)
    with database.reading() as session:
        newest = commits.newest(session, "history")
        assert [commit.subject for commit in newest] == ["v2", "v1", "v0"]
        assert newest[0].parent == newest[1].sha


def test_a_folder_that_was_copied_is_the_same_numbers(database: Database) -> None:
    """Times of files change; what was measured does not."""
    take(database, a_version("8.0.28", 100.0))

    assert take(database, a_version("8.0.28", 100.0, day=9)).known == 1


@pytest.mark.parametrize(
    ("found", "changed", "said"),
    [
        ([a_version("v1", 50.0, day=1)], {}, "'v1' of the fork 'history' has been imported"),
        ([a_version("v2", 50.0, day=2), a_version("v1", 9.0, day=1)], {}, "with other numbers"),
        ([a_version("v0", 50.0)], {}, "is older than 'v1' (2020-01-02)"),
        ([a_version("v2", 1.0, day=2), a_version("v2", 2.0, day=3)], {}, "comes twice"),
        ([a_version("a\nb", 1.0, day=2)], {}, "is no name of a commit"),
        ([a_version(" ", 1.0, day=2)], {}, "is no name of a commit"),
        ([a_version("v2", *[1.0] * 401, day=2)], {}, "has 401 starts"),
        ([a_version("v2", 1.0, day=2)], {"fork": "a/b"}, "'a/b' is no name of a fork"),
        ([a_version("v2", 1.0, day=2)], {"fork": "x\0"}, "is no name of a fork"),
        ([a_version("v2", 1.0, day=2)], {"branch": "a b"}, "is no name of a branch"),
        ([a_version("v2", 1.0, day=2)], {"host_class": "small"}, "is no host class of an import"),
        ([], {}, "nothing to import"),
        (
            [a_version(f"x{number}", 1.0, day=2) for number in range(COMMITS_MAX + 1)],
            {},
            f"at most {COMMITS_MAX}",
        ),
    ],
)
def test_what_cannot_be_imported_is_named_and_nothing_is(
    database: Database, found: list[ImportedRun], changed: dict[str, str], said: str
) -> None:
    take(database, a_version("v1", 100.0, day=1))
    before = counts(database)

    with pytest.raises(ImportRefusedError) as refused:
        take(database, *found, **changed)
    assert said in str(refused.value)
    assert counts(database) == before
    with database.reading() as session:
        assert [fork.name for fork in forks.everything(session)] == ["history"]


def test_a_watched_fork_takes_no_import(database: Database) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(sha("a")))
        a_stored_run(session, measured("run-a", sha("a"), scan=2.0, point=6e4))
    before = counts(database)

    with pytest.raises(ImportRefusedError, match="such as demo-imported"):
        take(database, a_version("v1", 100.0), fork="demo")
    assert counts(database) == before


def test_two_branches_of_a_fork_have_histories_of_their_own(database: Database) -> None:
    take(database, a_version("10.11.1", 100.0, day=9))
    take(database, a_version("10.6.1", 90.0, day=1), branch="10.6")
    take(database, a_version("10.6.2", 91.0, day=2), branch="10.6")

    with database.reading() as session:
        by_branch = {
            key.branch: [point.subject for point in series.points(session, key.id)]
            for key in series.of_fork(session, "history", metric=THROUGHPUT.name)
        }
        (newest,) = [c for c in commits.newest(session, "history") if c.subject == "10.6.2"]
        (parent,) = commits.first_parents(session, "history", newest.sha)
    assert by_branch == {"main": ["10.11.1"], "10.6": ["10.6.1", "10.6.2"]}
    assert parent.subject == "10.6.1"


def test_the_document_says_that_it_was_imported(database: Database) -> None:
    take(database, a_version("8.0.28", 100.0, 101.0))

    with database.reading() as session:
        (commit,) = commits.newest(session, "history")
        (run,) = runs.of_commit(session, "history", commit.sha)
        document = runs.document(session, run.id)
        (key,) = series.of_fork(session, "history", metric=THROUGHPUT.name)
        stored = samples.of_runs(session, key.id, [run.id])
    assert run.job.startswith("import-")
    assert document.warnings == ("imported from h.csv: measured elsewhere, by other means",)
    assert document.finished_at == document.created_at == THEN
    assert [found.starts for found in stored.values()] == [((100.0,), (101.0,))]
