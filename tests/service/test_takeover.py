"""A replica that is gone has its flows done by another; one that is there is left alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from dbos import DBOS, DBOSConfig, SetWorkflowID
from sqlalchemy import create_engine, text

from service.flows.commit_flow import FLOW_VERSION
from service.flows.durable import run_step
from service.flows.takeover import Takeover
from service.store.flow_tables import FlowTables
from service.store.replica_locks import ReplicaLocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fakes.postgres_server import PostgresServer

#: Nobody waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 120


class World:
    """One replica at work, of the name bob, and what its flow did."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.noted: list[str] = []
        self.ended: list[str] = []
        self.resumed = 0
        self.flow = self._registered()
        self.locks = ReplicaLocks(url, name="bob")
        self.flows = FlowTables(url)
        self.takeover = Takeover(self.locks, self.flows, name="bob", resume=self._resume)

    def give_to(self, name: str) -> None:
        """Have a replica of this name have done a step of a flow, and not the rest."""
        with SetWorkflowID("flow-1"):
            DBOS.start_workflow(self.flow, "word").get_result()
        engine = create_engine(self.url)
        with engine.begin() as connection:
            connection.execute(
                text(
                    "UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = :name "
                    "WHERE workflow_uuid = 'flow-1'"
                ),
                {"name": name},
            )
        engine.dispose()

    def _resume(self) -> None:
        self.resumed += 1

    def _registered(self) -> Callable[[str], None]:
        @DBOS.workflow(name="note_and_end")
        def note_and_end(word: str) -> None:
            run_step(self.noted.append, word, pause_seconds=0.01, name="note")
            self.ended.append(word)

        return note_and_end


@pytest.fixture
def world(postgres: PostgresServer) -> Iterator[World]:
    url = postgres.new_database()
    DBOS(
        config=DBOSConfig(
            name="forkwatch",
            system_database_url=url,
            executor_id="bob",
            application_version=FLOW_VERSION,
            console_log_level="WARNING",
        )
    )
    try:
        found = World(url)
        DBOS.launch()
        assert found.locks.take_seat("home", patience_seconds=0)
        yield found
        found.locks.leave()
        found.flows.close()
    finally:
        DBOS.destroy(destroy_registry=True)


def test_a_flow_goes_on_after_its_last_step_once_its_replica_is_gone(world: World) -> None:
    ada = ReplicaLocks(world.url, name="ada")
    assert ada.take_seat("home", patience_seconds=0)
    world.give_to("ada")

    assert world.takeover.look() == []
    ada.leave()
    assert world.takeover.look() == ["ada"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(world.ended) < 2:
        assert time.monotonic() < deadline, "nobody went on with the flow"
        time.sleep(0.02)

    assert (world.noted, world.ended) == (["word"], ["word", "word"])
    assert world.resumed == 1
    assert world.takeover.look() == []


def test_what_nobody_began_is_begun_when_a_replica_without_flows_goes(world: World) -> None:
    ada = ReplicaLocks(world.url, name="ada")
    assert ada.take_seat("home", patience_seconds=0)
    assert (world.takeover.look(), world.resumed) == ([], 0)
    ada.leave()

    assert (world.takeover.look(), world.resumed) == ([], 1)
    assert (world.takeover.look(), world.resumed) == ([], 1)


def test_a_replica_that_lost_its_seat_takes_nothing_over(world: World) -> None:
    world.give_to("ada")
    world.locks.leave()
    usurper = ReplicaLocks(world.url, name="bob")
    assert usurper.take_seat("home", patience_seconds=0)

    assert world.takeover.look() == []
    usurper.leave()
    assert world.takeover.look() == ["ada"]
