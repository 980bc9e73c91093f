"""What the fleet has built of a range makes a search in a checkout cheaper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forkwatch import bisect_shared
from forkwatch.bisect_jobs import artifacts_of
from forkwatch.bisect_shared import shared_artifacts
from forkwatch.bisecting import search_of
from runner import checkout
from runner.build import Builder
from runner.fleet_cache.opening import open_cache
from runner.settings import Home, RunnerSettings
from tests.forkwatch.bisect_jobs import ask
from tests.runner.tiny_fork import TinyFork

if TYPE_CHECKING:
    from pathlib import Path

    from forkwatch.bisect_question import Asked


@pytest.fixture
def fork(tmp_path: Path) -> TinyFork:
    return TinyFork(tmp_path / "fork")


@pytest.fixture
def asked(fork: TinyFork) -> Asked:
    for number in range(1, 6):
        last = fork.commit(f"change {number}", fork.launcher(f"1.{number}"))
    return ask(fork, fork.first, last)


@pytest.fixture
def here(tmp_path: Path) -> RunnerSettings:
    (tmp_path / "fleet").mkdir()
    return RunnerSettings(
        home=tmp_path / "here", watch_host=False, cache_url=str(tmp_path / "fleet")
    )


def built_elsewhere(tmp_path: Path, here: RunnerSettings, asked: Asked, *places: int) -> None:
    """Have another machine of the fleet build commits of a range."""
    settings = here.model_copy(update={"home": tmp_path / "elsewhere"})
    builder = Builder(
        home=Home(settings.home),
        settings=settings,
        repository=asked.repository,
        cache=open_cache(settings, trusted=True),
    )
    for place in places:
        commit = checkout.resolve(asked.repository, asked.range.commits[place].sha)
        builder.build(commit, "rel", asked.plan.build("rel"))


def test_what_others_built_costs_a_search_no_build(tmp_path, here, asked) -> None:
    built_elsewhere(tmp_path, here, asked, 3, 5)
    home = Home(here.home)
    local = artifacts_of(asked, home)

    found = shared_artifacts(asked, here, here=local)

    assert local == {}
    assert list(found) == [asked.range.commits[place].sha for place in (3, 5)]
    assert all(artifact.build_seconds > 0 for artifact in found.values())
    cheap, dear = search_of(asked, found), search_of(asked, {})
    # The good end is built in the first job, whichever that is.
    assert [place for place in range(6) if cheap.is_built(place)] == [0, 3, 5]
    assert (cheap.document().minutes_left or 0) < (dear.document().minutes_left or 0)
    # Nothing was fetched for that.
    assert artifacts_of(asked, home) == {}


def test_what_is_here_already_is_not_asked_after(tmp_path, here, asked) -> None:
    built_elsewhere(tmp_path, here, asked, 3, 5)
    third, fifth = (asked.range.commits[place].sha for place in (3, 5))

    assert list(shared_artifacts(asked, here, here=[third])) == [fifth]


def test_of_a_long_range_some_are_asked_after_from_everywhere(
    tmp_path, here, asked, monkeypatch
) -> None:
    built_elsewhere(tmp_path, here, asked, 1, 2)
    monkeypatch.setattr(bisect_shared, "ASKED_MAX", 3)

    found = shared_artifacts(asked, here, here=())

    assert list(found) == [asked.range.commits[2].sha]


def test_without_a_fleet_nothing_is_asked(here, asked) -> None:
    alone = here.model_copy(update={"cache_url": ""})

    assert shared_artifacts(asked, alone, here=()) == {}


def test_a_fleet_that_is_away_is_a_warning(here, asked, caplog) -> None:
    away = here.model_copy(update={"cache_url": f"{here.cache_url}-not-mounted"})

    assert shared_artifacts(asked, away, here=()) == {}
    assert "the fleet's cache was away" in caplog.text
