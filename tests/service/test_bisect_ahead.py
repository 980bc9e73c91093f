"""Builds ahead: other machines build what a bisect will probably want; nothing waits for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bisects.search import NextOrder
from results.document import Outcome
from service.channels.dispatch.by_host_class import ByHostClass
from service.core.bisections import BisectState, Material
from service.core.errors import BadDocumentError, DispatchError
from service.core.model import JobStatus
from service.flows.bisect_ahead import BuildsAhead
from service.flows.bisect_material import search_of
from service.flows.bisect_orders import builds_prefix
from tests.bisects.ranges import a_question, a_range, sha_of
from tests.fakes.bisect_world import BisectWorld, a_bisect_world
from tests.fakes.dispatch_scene import Scene, a_document, a_scene, order
from tests.fakes.memory_fork import MemoryFork, MemoryRunners
from tests.fakes.run_documents import a_run
from tests.fakes.scripted_measurement import PLAN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from results.job import JobOrder
    from service.store.database import Database

COMMITS = 16
QUESTION = a_question(COMMITS)
MATERIAL = Material(
    commits=tuple(a_range(COMMITS)),
    engine="mariadb",
    storage_engine="",
    tool_version="0.1.0",
    plan_text=PLAN,
    trusted=True,
)
LAST = NextOrder(commit=COMMITS - 1, sha=sha_of(COMMITS - 1), starts=2)
QUIET = ("Import", "Tidy the parser", "Fix a typo", "Refactor the handler")
SLOW = ("Check the record format speed=0.9", "After it speed=0.9", "Later speed=0.9")


class Machines:
    """Other machines of the host class `small`, which come to an end when a test says so."""

    def __init__(self) -> None:
        self.orders: list[JobOrder] = []
        self.statuses: dict[str, JobStatus] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.is_away = False

    def start(self, wanted: JobOrder) -> None:
        if self.is_away:
            raise DispatchError("nobody is there")
        self.orders.append(wanted)
        self.statuses[wanted.job] = JobStatus.ALIVE

    def end(self, place: int, outcome: Outcome = Outcome.BUILT) -> None:
        """Have the build of a commit end."""
        job = f"{builds_prefix(QUESTION.id)}{place}"
        self.statuses[job], self.outcomes[job] = JobStatus.FINISHED, outcome

    def status(self, job: str) -> JobStatus:
        return self.statuses.get(job, JobStatus.LOST)

    def stop(self, job: str) -> None:
        self.statuses[job] = JobStatus.LOST

    def collect(self, job: str) -> bytes:
        wanted = next(one for one in self.orders if one.job == job)
        if job not in self.outcomes:
            raise DispatchError("its document is not kept any more")
        story = a_run().called(wanted.run, job=job).on(wanted.candidate)
        if self.outcomes[job] is Outcome.BUILD_FAILED:
            story = story.that(Outcome.BUILD_FAILED, stage="build", message="no")
        else:
            story = replace(story, outcome=Outcome.BUILT)
        return story.build().model_dump_json().encode()

    def why_lost(self, job: str) -> str:
        return f"nobody knows of {job}"

    def is_elsewhere(self, host_class: str) -> bool:
        return host_class == "small"

    def begun(self, prefix: str) -> dict[str, JobStatus]:
        return {job: one for job, one in self.statuses.items() if job.startswith(prefix)}

    @property
    def places(self) -> list[int]:
        """The commits that were asked for, in their order."""
        return [int(one.job.rpartition("-")[2]) for one in self.orders]


def begin(machines: Machines, most: int, *, built: tuple[int, ...] = ()) -> BuildsAhead:
    """Begin what is worth a build while the bad end is measured."""
    ahead = BuildsAhead(dispatcher=machines, most=most)
    known = [sha_of(place) for place in built]
    search = search_of(QUESTION, MATERIAL, (), built=known)
    ahead.begin(QUESTION, MATERIAL, search, LAST, repository=Path("/nowhere"))
    return ahead


def test_the_good_end_and_the_likeliest_next_are_built_as_far_as_machines_go() -> None:
    machines = Machines()
    begin(machines, 4)
    first = machines.places

    assert first[0] == 0
    assert 2 <= len(first) <= 3
    assert LAST.commit not in first
    assert {one.baseline for one in machines.orders} == {None}
    assert all(one.build_only and one.trusted for one in machines.orders)
    assert [one.candidate for one in machines.orders] == [sha_of(place) for place in first]
    assert {(one.suite, one.host_class) for one in machines.orders} == {("commit", "small")}

    fewer = Machines()
    begin(fewer, 1)
    assert fewer.places == first[:1]


def test_what_was_begun_once_is_not_begun_again_and_counts_while_it_goes_on() -> None:
    machines = Machines()
    begin(machines, 2)
    begin(machines, 2)
    assert len(machines.places) == 2

    # Whatever became of it: what failed once is built by whoever measures.
    machines.stop(machines.orders[0].job)
    begin(machines, 4)
    assert len(set(machines.places)) == len(machines.places)


def test_what_is_built_is_told_and_what_is_broken_or_gone_is_not() -> None:
    machines = Machines()
    ahead = begin(machines, 4)
    first, second, *_ = machines.places
    assert ahead.built(QUESTION) == []

    machines.end(second)
    machines.end(first, Outcome.BUILD_FAILED)
    assert ahead.built(QUESTION) == [sha_of(second)]
    search = search_of(QUESTION, MATERIAL, (), built=ahead.built(QUESTION))
    assert search.is_built(second)
    assert not search_of(QUESTION, MATERIAL, ()).is_built(second)
    machines.outcomes.clear()
    assert ahead.built(QUESTION) == []


def test_what_is_built_already_is_not_built_ahead() -> None:
    machines, all_ = Machines(), tuple(range(COMMITS))
    begin(machines, 4, built=all_)

    # The good end is no commit of the search, so that it is asked for all the same.
    assert machines.places == [0]


def test_builds_that_nobody_wants_any_more_are_ended() -> None:
    machines = Machines()
    ahead = begin(machines, 4)
    machines.end(machines.places[0])
    ahead.stop(QUESTION)

    assert set(machines.statuses.values()) == {JobStatus.FINISHED, JobStatus.LOST}


def test_nothing_is_built_beside_a_measurement_on_this_machine_or_where_nobody_wants_it() -> None:
    unwanted, here = Machines(), MemoryRunners(MemoryFork())
    assert begin(unwanted, 0).built(QUESTION) == []
    assert unwanted.orders == []

    for dispatcher in (here, ByHostClass(here=here, ci=Machines(), in_ci=lambda _: False)):
        ahead = BuildsAhead(dispatcher=dispatcher, most=4)
        search = search_of(QUESTION, MATERIAL, ())
        ahead.begin(QUESTION, MATERIAL, search, LAST, repository=Path("/nowhere"))
        assert ahead.built(QUESTION) == []
        ahead.stop(QUESTION)
    assert here.orders == []


def test_machines_that_cannot_be_reached_cost_the_bisect_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machines = Machines()
    machines.is_away = True
    begin(machines, 4)

    assert machines.orders == []
    assert "nothing more is built ahead" in caplog.text


@pytest.fixture
def scene(kept_database: Database) -> Scene:
    return a_scene(kept_database)


def test_a_ci_knows_the_jobs_that_were_begun_by_their_names(scene: Scene) -> None:
    dispatcher = scene.anew()
    for job in ("bisect-1-build-3", "bisect-1-build-12", "bisect-1-3-0", "bisect-2-build-3"):
        dispatcher.start(order(job))
    known = dispatcher.begun("bisect-1-build-")

    assert known == {"bisect-1-build-12": JobStatus.ALIVE, "bisect-1-build-3": JobStatus.ALIVE}
    assert dispatcher.is_elsewhere("small")
    assert not dispatcher.is_elsewhere("large")
    chosen = ByHostClass(
        here=MemoryRunners(MemoryFork()), ci=dispatcher, in_ci=lambda name: name == "small"
    )
    assert chosen.begun("bisect-1-build-") == known
    assert (chosen.is_elsewhere("small"), chosen.is_elsewhere("large")) == (True, False)


def test_a_runner_brings_what_it_built_for_a_job_that_only_builds(scene: Scene) -> None:
    built = a_document().model_copy(update={"outcome": Outcome.BUILT, "starts": ()})
    scene.anew().start(order().model_copy(update={"build_only": True}))

    assert scene.bring(scene.credential(), built)
    assert scene.anew().status(built.job) is JobStatus.FINISHED


def test_a_runner_that_only_built_what_was_to_be_measured_is_refused(scene: Scene) -> None:
    built = a_document().model_copy(update={"outcome": Outcome.BUILT, "starts": ()})
    scene.anew().start(order())

    with pytest.raises(BadDocumentError, match="to measure, and not only to build"):
        scene.bring(scene.credential(), built)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BisectWorld]:
    url = None
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").new_database()
    home = tmp_path_factory.mktemp("home")
    with a_bisect_world(home, url, bisect_builds_ahead=2) as opened:
        opened.runners.elsewhere = frozenset({"small"})
        yield opened


def test_commits_are_built_elsewhere_before_they_are_measured(world: BisectWorld) -> None:
    good, bad = world.branch(*QUIET, *SLOW)
    bisect = world.ended(world.ask(good, bad))
    orders = world.orders(bisect.id)
    builds = [one.candidate for one in orders if one.build_only]
    measured = [one.candidate for one in orders if not one.build_only]

    assert (bisect.state, world.document(bisect.id).culprits) == (BisectState.OVER, (len(QUIET),))
    assert builds[0] == good
    assert len(set(builds)) == len(builds)
    assert set(builds) & set(measured)
    for sha in set(builds) & set(measured):
        first = next(place for place, one in enumerate(orders) if one.candidate == sha)
        assert orders[first].build_only
    # They are no measurements, and nobody's evidence.
    assert len(world.jobs(bisect.id)) == len(measured)


def test_a_bisect_waits_for_no_build_and_ends_those_that_go_on(world: BisectWorld) -> None:
    good, bad = world.branch(*(f"{subject} slowbuild=yes" for subject in (*QUIET, *SLOW)))
    bisect = world.ended(world.ask(good, bad))
    builds = [one.job for one in world.orders(bisect.id) if one.build_only]

    assert world.document(bisect.id).culprits == (len(QUIET),)
    assert len(builds) == 2, "no more at once"
    assert set(builds) <= set(world.runners.stopped)
    assert not world.runners.at_work


def test_a_bisect_that_somebody_ends_ends_its_builds(world: BisectWorld) -> None:
    good, bad = world.branch("Import slowbuild=yes", "Quiet", "Takes long speed=0.9 wait=yes")
    bisect = world.ask(good, bad)
    world.until(lambda: any(one.build_only for one in world.orders(bisect)))
    world.asks.cancel(bisect, "token:eve")
    world.ended(bisect)

    assert f"{builds_prefix(bisect)}0" in world.runners.stopped
    assert not world.runners.at_work
