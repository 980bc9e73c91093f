"""A/A checks through a CI: dispatched, brought and lost as any job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.core.aa_checks import AaCheck, AaState
from service.flows.aa_steps import AaSteps
from service.flows.steps import Sight
from service.store import migrate
from service.store.database import Database
from tests.fakes.dispatch_scene import Scene
from tests.fakes.memory_fork import MemoryFork
from tests.fakes.scripted_measurement import measure
from tests.fakes.walked_steps import WalkedSteps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ATTEMPTS = 2


class Checks:
    """A check of a class whose machines are in a CI."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.fork = scene, MemoryFork("Import")
        self.walked = WalkedSteps(scene.database, self.fork, runner_attempts_max=ATTEMPTS)
        self.walked.walk()
        self.steps = AaSteps(
            database=scene.database,
            clock=scene.clock,
            code_host=self.fork,
            dispatcher=scene.anew(),
            settings=self.walked.settings,
        )
        self.check = self.walked.checks.ask("small", actor="token:ada", via="api")
        self.steps.dispatch(self.check.id, 1)

    def ended(self) -> AaCheck:
        """Return the check as it ended."""
        self.steps.note(self.check.id)
        return self.walked.checks.newest("small")[0]


@pytest.fixture
def checks(tmp_path: Path) -> Iterator[Checks]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    migrate.upgrade(url)
    database = Database(url)
    yield Checks(Scene(database))
    database.close()


def test_a_host_is_judged_by_the_pair_that_a_ci_brings(checks: Checks) -> None:
    job = checks.check.id
    assert checks.steps.look(job, 1) is Sight.WAIT
    (asked,) = checks.scene.ci.asks
    assert (asked.job, asked.host_class, asked.candidate) == (job, "small", checks.check.sha)

    order = checks.scene.taken(job).order
    assert order.baseline == order.candidate
    assert order.credential is not None
    document = measure(order, checks.fork.subjects)
    checks.scene.bring(order.credential.get_secret_value(), document, job)
    assert checks.steps.look(job, 1) is Sight.STORED
    ended = checks.ended()
    assert (ended.state, ended.host_name) == (AaState.DONE, document.host.name)
    assert ended.alarms == ()


def test_a_check_that_a_ci_loses_says_why(checks: Checks) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        checks.steps.dispatch(checks.check.id, attempt)
        checks.scene.ci.end(checks.scene.ci.last(), "failure")
        sight = checks.steps.look(checks.check.id, attempt)

    assert sight is Sight.GIVE_UP
    ended = checks.ended()
    assert ended.state is AaState.FAILED
    assert "brought no run after 2 attempts; its run ended as 'failure'" in ended.said
