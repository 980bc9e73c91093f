"""The life of a job at a CI: asked for once, followed, lost with a reason, asked for again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from service.channels.dispatch.by_host_class import ByHostClass
from service.core.dispatching import RunEnded
from service.core.errors import DispatchError
from service.core.identity import CiSystem
from service.core.model import JobStatus
from service.flows.dispatching import DOCUMENTS_KEPT, SETTLED_AFTER, why_lost
from tests.fakes.dispatch_scene import FLOW, JOB, WAIT, Scene, a_document, a_scene, order, text_of
from tests.fakes.memory_ci import KilledError
from tests.fakes.memory_fork import AT, MemoryFork, MemoryRunners
from tests.fakes.run_documents import sha

if TYPE_CHECKING:
    from service.store.database import Database

SECOND = timedelta(seconds=1)
CANCELLED = RunEnded(system=CiSystem.GITHUB, external_id="100", how="cancelled", at=AT)


@pytest.fixture
def scene(kept_database: Database) -> Scene:
    return a_scene(kept_database)


def test_a_job_is_asked_for_once_and_is_alive_until_its_run_is_here(scene: Scene) -> None:
    dispatcher = scene.anew()
    assert dispatcher.status(JOB) is JobStatus.LOST

    dispatcher.start(order())
    dispatcher.start(order())
    assert dispatcher.status(JOB) is JobStatus.ALIVE
    (asked,) = scene.ci.asks
    assert (asked.host_class, asked.candidate, asked.branch) == ("small", sha("b"), "main")
    with pytest.raises(DispatchError):
        dispatcher.collect(JOB)

    scene.bring(scene.credential(), a_document())
    assert dispatcher.status(JOB) is JobStatus.FINISHED
    assert dispatcher.collect(JOB) == text_of(a_document())
    assert dispatcher.why_lost(JOB) == ""
    assert scene.woken == [FLOW]
    dispatcher.start(order())
    assert len(scene.ci.asks) == 1


@pytest.mark.parametrize("tells", [True, False])
def test_a_crash_between_asking_and_noting_costs_no_second_run(
    scene: Scene, *, tells: bool
) -> None:
    scene.ci.tells, scene.ci.mishaps = tells, ["killed"]
    with pytest.raises(KilledError):
        scene.anew().start(order())
    assert scene.newest().external_id is None

    # The step of the flow is done again by the service that was started anew.
    scene.anew().start(order())
    assert scene.anew().status(JOB) is JobStatus.ALIVE
    assert len(scene.ci.asks) == 1
    assert scene.newest().external_id == scene.ci.last()
    assert scene.taken().order.job == JOB


def test_an_answer_that_was_lost_costs_no_second_run(scene: Scene) -> None:
    scene.ci.mishaps = ["lost"]
    dispatcher = scene.anew()
    dispatcher.start(order())

    assert dispatcher.status(JOB) is JobStatus.ALIVE
    assert len(scene.ci.asks) == 1
    assert scene.newest().external_id == scene.ci.last()


def test_a_run_that_is_not_listed_yet_is_not_asked_for_again(scene: Scene) -> None:
    scene.ci.mishaps, scene.ci.unlisted = ["lost"], True
    dispatcher = scene.anew()
    dispatcher.start(order())
    scene.clock.advance(SETTLED_AFTER - SECOND)
    assert dispatcher.status(JOB) is JobStatus.ALIVE
    assert len(scene.ci.asks) == 1

    scene.ci.unlisted = False
    assert dispatcher.status(JOB) is JobStatus.ALIVE
    assert len(scene.ci.asks) == 1
    assert scene.newest().external_id == scene.ci.last()


def test_a_ci_that_was_away_is_asked_again_when_nothing_came_of_it(scene: Scene) -> None:
    scene.ci.mishaps = ["away"]
    dispatcher = scene.anew()
    dispatcher.start(order())
    assert dispatcher.status(JOB) is JobStatus.ALIVE
    assert scene.ci.asks == []

    scene.clock.advance(SETTLED_AFTER)
    assert dispatcher.status(JOB) is JobStatus.ALIVE
    assert len(scene.ci.asks) == 1


def test_of_two_who_see_the_same_row_one_asks(scene: Scene) -> None:
    scene.ci.mishaps = ["away"]
    scene.anew().start(order())
    seen = scene.newest()
    scene.clock.advance(SETTLED_AFTER)
    scene.ci.tells, scene.ci.unlisted = False, True
    scene.anew().follow(seen)
    scene.anew().follow(seen)

    assert len(scene.ci.asks) == 1


def test_a_ci_that_is_away_loses_nothing_while_a_run_goes_on(scene: Scene) -> None:
    dispatcher = scene.anew()
    dispatcher.start(order())
    scene.taken()
    scene.ci.away = True

    assert dispatcher.status(JOB) is JobStatus.ALIVE
    dispatcher.stop(JOB)
    assert dispatcher.status(JOB) is JobStatus.LOST


@pytest.mark.parametrize("how", ["failure", "cancelled", "timed_out", "success"])
def test_a_run_that_brought_nothing_is_lost_with_its_reason_and_dispatched_again(
    scene: Scene, how: str
) -> None:
    dispatcher = scene.anew()
    dispatcher.start(order())
    scene.taken()
    scene.ci.end("100", how)

    assert dispatcher.status(JOB) is JobStatus.LOST
    assert dispatcher.why_lost(JOB) == (
        f"its run ended as {how!r} without a run document: https://ci.example/100"
    )
    dispatcher.start(order())
    assert dispatcher.status(JOB) is JobStatus.ALIVE
    assert [asked.title for asked in scene.ci.asks] == [
        f"forkwatch {JOB}, attempt 1",
        f"forkwatch {JOB}, attempt 2",
    ]
    assert dispatcher.why_lost(JOB) == ""


def test_news_of_an_end_counts_at_once_and_wakes_the_flow(scene: Scene) -> None:
    dispatcher = scene.anew()
    dispatcher.start(order())

    assert not dispatcher.heard(replace(CANCELLED, external_id="7"))
    assert not dispatcher.heard(replace(CANCELLED, system=CiSystem.BUILDKITE))
    assert scene.woken == []
    assert dispatcher.heard(CANCELLED)
    assert not dispatcher.heard(CANCELLED)
    assert scene.woken == [FLOW]
    assert dispatcher.status(JOB) is JobStatus.LOST


def test_news_of_a_run_that_brought_its_document_changes_nothing(scene: Scene) -> None:
    dispatcher = scene.anew()
    dispatcher.start(order())
    scene.bring(scene.credential(), a_document())

    assert not dispatcher.heard(replace(CANCELLED, how="failure"))
    assert dispatcher.status(JOB) is JobStatus.FINISHED


def test_a_runner_that_never_comes_is_waited_for_so_long_and_no_longer(scene: Scene) -> None:
    dispatcher = scene.anew()
    dispatcher.start(order())
    scene.clock.advance(WAIT)
    assert dispatcher.status(JOB) is JobStatus.ALIVE

    scene.clock.advance(SECOND)
    assert dispatcher.status(JOB) is JobStatus.LOST
    assert dispatcher.why_lost(JOB) == (
        "no runner of the host class small came for it within 2:00:00: https://ci.example/100"
    )
    assert scene.ci.cancelled == ["100"]


def test_a_runner_that_has_its_order_may_measure_for_longer(scene: Scene) -> None:
    dispatcher = scene.anew()
    dispatcher.start(order())
    scene.taken()
    scene.clock.advance(WAIT * 2)

    assert dispatcher.status(JOB) is JobStatus.ALIVE


def test_what_the_ci_refuses_is_lost_at_once_in_its_words(scene: Scene) -> None:
    scene.ci.mishaps = ["refused"]
    dispatcher = scene.anew()
    dispatcher.start(order())

    assert dispatcher.status(JOB) is JobStatus.LOST
    assert dispatcher.why_lost(JOB) == "the CI has no such workflow"


def test_a_job_that_nobody_wants_ends_with_its_run(scene: Scene) -> None:
    dispatcher = scene.anew()
    dispatcher.stop(JOB)
    dispatcher.start(order())
    dispatcher.stop(JOB)
    dispatcher.stop(JOB)

    assert scene.ci.cancelled == ["100"]
    assert dispatcher.status(JOB) is JobStatus.LOST


def test_a_ci_that_is_named_no_more_loses_its_jobs_and_says_so(scene: Scene) -> None:
    scene.anew().start(order())
    scene.named = False

    assert scene.anew().status(JOB) is JobStatus.LOST
    assert scene.anew().why_lost(JOB) == "jobs are not dispatched to github any more"


def test_documents_go_when_their_flow_has_had_time_to_take_them(scene: Scene) -> None:
    dispatcher = scene.anew()
    dispatcher.start(order())
    scene.bring(scene.credential(), a_document())
    scene.clock.advance(DOCUMENTS_KEPT)
    dispatcher.start(order("single-2"))
    assert dispatcher.collect(JOB)

    scene.clock.advance(SECOND)
    dispatcher.start(order("single-3"))
    with pytest.raises(DispatchError):
        dispatcher.collect(JOB)


def test_a_host_class_that_is_no_cis_is_refused(scene: Scene) -> None:
    with pytest.raises(DispatchError, match="'large'"):
        scene.anew().start(order(host_class="large"))


def test_each_host_class_has_its_own_place(scene: Scene) -> None:
    fork = MemoryFork("One")
    here = MemoryRunners(fork)
    chosen = ByHostClass(here=here, ci=scene.anew(), in_ci=lambda name: name == "small")
    chosen.start(order("single-small"))
    chosen.start(order("single-large", host_class="large", candidate=fork.commits[0].sha))

    assert [asked.job for asked in scene.ci.asks] == ["single-small"]
    assert [started.job for started in here.orders] == ["single-large"]
    assert chosen.status("single-small") is JobStatus.ALIVE
    assert chosen.status("single-large") is JobStatus.FINISHED
    assert chosen.collect("single-large") == here.collect("single-large")
    scene.ci.end(scene.ci.last(), "failure")
    assert chosen.status("single-small") is JobStatus.LOST
    assert "'failure'" in why_lost(chosen, "single-small", otherwise="see its log")
    assert why_lost(chosen, "single-large", otherwise="see its log") == "see its log"
    assert why_lost(here, "single-large", otherwise="see its log") == "see its log"


def test_a_job_is_looked_after_where_it_is_when_the_settings_change(scene: Scene) -> None:
    fork = MemoryFork("One")
    here, first = MemoryRunners(fork), fork.commits[0].sha
    scene.anew().start(order(candidate=first))
    changed = ByHostClass(here=here, ci=scene.anew(), in_ci=lambda _name: False)
    assert changed.status(JOB) is JobStatus.ALIVE

    scene.ci.end(scene.ci.last(), "failure")
    assert changed.status(JOB) is JobStatus.LOST
    changed.start(order(candidate=first))
    assert changed.status(JOB) is JobStatus.FINISHED
    assert changed.collect(JOB) == here.collect(JOB)
