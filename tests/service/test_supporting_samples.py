"""Loads and servers of a run become series on both databases, and no step that only prepares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from results.metric import METRICS, SERVER, THROUGHPUT
from results.slice import SideName
from service.store import samples, series
from tests.fakes.run_documents import RunStory, sha
from tests.fakes.server_facts import a_life, a_load, with_lives, with_loads
from tests.fakes.stored_fork import a_fork, a_stored_run, git_commit, measured

if TYPE_CHECKING:
    from results.document import RunDocument
    from service.store.database import Database

A = sha("a")


@dataclass(frozen=True)
class Told(RunStory):
    """A story that has been told already."""

    document: RunDocument | None = None

    def build(self) -> RunDocument:
        assert self.document is not None
        return self.document


def stored(database: Database, document: RunDocument) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(A))
        a_stored_run(session, Told(document=document))


def test_servers_and_loads_are_series_of_their_own(database: Database) -> None:
    document = measured("run-1", A, scan=2.0, point=60000.0).build()
    lives = [(a_life(startup_s=0.5 + index),) for index, _ in enumerate(document.starts)]
    stored(database, with_loads(with_lives(document, *lives), candidate=a_load()))

    with database.reading() as session:
        found = {key.metric: key for key in series.of_fork(session, "demo", workload=SERVER)}
        points = series.points(session, found["startup_s"].id)
        loads = series.points(session, found["load_rows_s"].id)
        # Throughput, which is all that is judged, has no such workload.
        judged = series.of_fork(session, "demo", metric=THROUGHPUT.name)
    assert set(found) == {
        "startup_s",
        "shutdown_s",
        "peak_memory_bytes",
        "disk_bytes",
        "load_rows_s",
        "index_build_s",
    }
    assert [point.samples.starts for point in points] == [((0.5,), (1.5,), (2.5,))]
    (load,) = loads
    assert [start for start in load.samples.starts if start] == [(1000.0,)]
    assert {key.workload for key in judged} == {"scan", "point-query"}


def test_a_step_that_only_prepares_has_no_series(database: Database) -> None:
    document = measured("run-1", A, scan=2.0, point=60000.0).build()
    starts = tuple(
        start.model_copy(
            update={
                "slices": tuple(
                    piece.model_copy(update={"reported": piece.workload != "scan"})
                    for piece in start.slices
                )
            }
        )
        for start in document.starts
    )
    stored(database, document.model_copy(update={"starts": starts}))

    with database.reading() as session:
        keys = series.of_fork(session, "demo")
        [point] = [key for key in keys if key.metric == THROUGHPUT.name]
        kept = samples.of_runs(session, point.id, ["run-1"])
    assert {key.workload for key in keys} == {"point-query"}
    assert len(keys) == len(METRICS)
    assert set(kept) == {("run-1", SideName.CANDIDATE)}
