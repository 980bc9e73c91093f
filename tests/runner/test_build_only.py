"""Jobs that only build: the artifact is there for the fleet, and nothing was measured."""

from __future__ import annotations

import pytest

from results.document import Cause, Outcome
from runner import checkout
from runner.build import Builder
from runner.fleet_cache.notes import Kind, Level
from runner.fleet_cache.opening import open_cache
from runner.job import run_job
from runner.settings import Home, RunnerSettings
from workloads.plan import parse_plan


@pytest.fixture
def fleet(tmp_path):
    """Give a machine of a fleet, by its name: its settings, which have its home in them."""
    place = tmp_path / "fleet"
    place.mkdir()

    def machine(name: str, **chosen) -> RunnerSettings:
        facts = {"cache_url": str(place), **chosen}
        return RunnerSettings(home=tmp_path / name, watch_host=False, **facts)

    return machine


@pytest.fixture
def do(progress):
    def do(order, settings):
        home = Home(settings.home)
        folder = home.folder("jobs", order.job)
        return run_job(order, folder, home=home, settings=settings, progress=progress)

    return do


def build(settings, fork, sha):
    """Return the artifact of a commit on a machine, as a job finds or makes it."""
    builder = Builder(
        home=Home(settings.home),
        settings=settings,
        repository=fork.folder,
        cache=open_cache(settings, trusted=True),
    )
    variant = parse_plan(fork.order(sha).plan).builds["rel"]
    return builder.build(checkout.resolve(fork.folder, sha), "rel", variant)


def test_what_one_machine_only_builds_another_has(do, fleet, tiny_fork, progress):
    ahead, measures = fleet("ahead"), fleet("measures")
    document = do(tiny_fork.order(tiny_fork.first, build_only=True), ahead)

    assert document.outcome is Outcome.BUILT
    assert (document.starts, document.failure) == ((), None)
    assert document.stage_seconds.keys() == {"build"}
    assert document.candidate.artifact is not None
    assert not document.candidate.artifact.cached
    assert progress.stages == [("build", f"candidate {tiny_fork.first[:8]} as rel")]
    assert not any("on this machine alone" in one for one in document.warnings)

    installed = build(measures, tiny_fork, tiny_fork.first)
    assert installed.facts.id == document.candidate.artifact.id
    assert list(Home(measures.home).folder("logs").iterdir()) == [], "nothing was built"


def test_what_was_here_before_there_was_a_fleet_is_given_to_it(do, fleet, tiny_fork):
    alone, joined, other = fleet("one", cache_url=""), fleet("one"), fleet("other")
    build(alone, tiny_fork, tiny_fork.first)
    document = do(tiny_fork.order(tiny_fork.first, build_only=True), joined)

    assert document.candidate.artifact.cached
    build(other, tiny_fork, tiny_fork.first)
    assert list(Home(other.home).folder("logs").iterdir()) == [], "nothing was built"


def test_without_a_fleet_the_document_says_that_the_artifact_is_here_alone(do, fleet, tiny_fork):
    document = do(tiny_fork.order(tiny_fork.first, build_only=True), fleet("one", cache_url=""))

    assert document.outcome is Outcome.BUILT
    assert any("on this machine alone" in one for one in document.warnings)


def test_a_commit_that_does_not_build_is_said_to_be_broken(do, fleet, tiny_fork):
    broken = tiny_fork.commit("broken", {"launcher.c": "int main(void) { return no; }\n"})
    document = do(tiny_fork.order(broken, build_only=True), fleet("one"))

    assert document.outcome is Outcome.BUILD_FAILED
    assert document.failure.cause is Cause.COMMIT


def test_what_the_fleet_has_is_told_without_being_fetched(do, fleet, tiny_fork):
    ahead, asks = fleet("ahead"), fleet("asks")
    document = do(tiny_fork.order(tiny_fork.first, build_only=True), ahead)
    cache = open_cache(asks, trusted=True)
    identity = document.candidate.artifact.id

    told = cache.told(Kind.ARTIFACT, identity, level=Level.TRUSTED)

    assert told["id"] == identity
    assert cache.told(Kind.ARTIFACT, "0" * 32, level=Level.TRUSTED) is None
    assert not asks.home.exists()
    assert cache.warnings == ()


def test_a_fleet_that_is_away_tells_nothing_and_is_asked_once(fleet, tmp_path):
    cache = open_cache(fleet("one", cache_url=str(tmp_path / "not-mounted")), trusted=True)

    for _ in range(3):
        assert cache.told(Kind.ARTIFACT, "0" * 32, level=Level.TRUSTED) is None
    assert len(cache.warnings) == 1
