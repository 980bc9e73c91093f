"""Tables across releases: the base first, ratios with their marks, gaps that say why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reports.matrix import throughput_table
from service.core.errors import NotFoundError
from service.flows.named_runs import ComparisonError
from service.flows.releases import releases
from tests.fakes.given_documents import on_host, stored
from tests.fakes.run_documents import sha
from tests.fakes.stored_fork import a_fork, git_commit, measured

if TYPE_CHECKING:
    from service.store.database import Database

A, B, C, D = (sha(digit) for digit in "abcd")


@pytest.fixture
def versions(database: Database) -> Database:
    """Four versions: scans lose a third at the third, the fourth is of another machine."""
    with database.writing() as session:
        a_fork(
            session,
            git_commit(A, subject="8.0.28"),
            git_commit(B, parent=A, subject="8.0.30"),
            git_commit(C, parent=B, subject="8.0.36"),
            git_commit(D, parent=C, subject="9.0.0"),
        )
        for run, commit, scan in (("run-a", A, 3.0), ("run-b", B, 2.98), ("run-c", C, 2.0)):
            stored(session, measured(run, commit, scan=scan, point=60_000.0).build())
        stored(session, on_host(measured("run-d", D, scan=2.0, point=6e4).build(), "large"))
    return database


def test_versions_are_relative_to_the_first(versions: Database) -> None:
    with versions.reading() as session:
        found = releases(session, fork="demo", refs=["8.0.28", "bbbb", "run-c"])

    assert [version.ref for version in found.versions] == ["8.0.28", "bbbb", "run-c"]
    assert found.matrix.base == "aaaaaaaa 8.0.28"
    table = throughput_table(found.matrix)
    lines = {line.cells[0]: line.cells[1:3] for line in table.lines}
    assert lines == {"point-query": ("~ 1.00", "~ 1.00"), "scan": ("~ 0.99", "▼ 0.67")}
    assert found.notes == ()


def test_a_version_of_another_machine_is_a_gap_that_says_why(versions: Database) -> None:
    with versions.reading() as session:
        found = releases(session, fork="demo", refs=["aaaa", "9.0.0"])

    (cell,) = found.matrix.cells
    assert cell.rows == ()
    assert cell.gap == "nothing was measured under the conditions of the base"
    (note,) = found.notes
    assert note.startswith("9.0.0: 2 workloads were measured under other conditions")


@pytest.mark.parametrize(
    ("refs", "said"),
    [
        (["aaaa"], "these are 1"),
        (["aaaa", " aaaa ", ""], "these are 1"),
        ([f"{number:04x}" for number in range(21)], "these are 21"),
        (["aaaa", "run-a"], "these names mean the same run: aaaa, run-a"),
    ],
)
def test_what_is_no_list_of_versions_is_told(
    versions: Database, refs: list[str], said: str
) -> None:
    with versions.reading() as session, pytest.raises(ComparisonError, match=said):
        releases(session, fork="demo", refs=refs)


@pytest.mark.parametrize(("fork", "refs"), [("demo", ["aaaa", "7.0"]), ("none", ["aaaa", "bbbb"])])
def test_what_is_not_stored_is_not_found(versions: Database, fork: str, refs: list[str]) -> None:
    with versions.reading() as session, pytest.raises(NotFoundError):
        releases(session, fork=fork, refs=refs)


def test_an_empty_store_has_no_releases(database: Database) -> None:
    with database.reading() as session, pytest.raises(NotFoundError, match="no fork"):
        releases(session, fork="demo", refs=["a", "b"])
