"""Builds that the host ended: tried again, set aside, and never a broken commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forkwatch.bisect_jobs import TRIES, UnstableHostError
from results.document import Cause, Outcome
from tests.fakes.run_documents import a_run
from tests.forkwatch.bisect_jobs import PlantedStep, ask, searched
from tests.runner.tiny_fork import TinyFork

if TYPE_CHECKING:
    from pathlib import Path

COMMITS = 10


@pytest.fixture
def fork(tmp_path: Path) -> TinyFork:
    return TinyFork(tmp_path / "fork")


@pytest.fixture
def commits(fork: TinyFork) -> list[str]:
    numbers = range(1, COMMITS)
    later = [fork.commit(f"change {number}", fork.launcher(f"1.{number}")) for number in numbers]
    return [fork.first, *later]


def test_a_build_that_the_host_ended_is_tried_again(fork, commits, caplog) -> None:
    measure = PlantedStep(commits[6:], killed={commits[9]: TRIES - 1})

    found = searched(ask(fork, commits[0], commits[9]), measure)

    assert found.culprits == (6,)
    assert found.observations[0].seconds == TRIES * 240.0
    assert not any(one.by_host for one in found.observations)
    assert "build: cc1plus was killed); tried again" in caplog.text


def test_a_commit_whose_builds_the_host_always_ends_is_set_aside_and_not_called_broken(
    fork, commits
) -> None:
    measure = PlantedStep(commits[6:], killed={commits[9]: 100})

    found = searched(ask(fork, commits[0], commits[9]), measure)

    assert found.culprits == (6,)
    assert found.observations[0].by_host
    assert found.commits[9].failure == (
        f"the host, not the commit, ended it {TRIES} times: build: cc1plus was killed"
    )
    assert measure.asked[commits[9]] == TRIES


def test_a_host_that_ends_the_builds_of_two_commits_in_a_row_ends_the_search(fork, commits) -> None:
    measure = PlantedStep(commits[6:], killed=dict.fromkeys(commits, 100))

    with pytest.raises(UnstableHostError, match="two commits in a row, 3 times each"):
        searched(ask(fork, commits[0], commits[9]), measure)

    assert len(measure.asked) == 2


def test_a_good_end_whose_build_the_host_ends_is_not_said_to_be_broken(fork, commits) -> None:
    tries = 0

    def measure(order):
        nonlocal tries
        tries += 1
        story = a_run().on(order.candidate).against(order.baseline)
        document = story.that(Outcome.FAILED, stage="build", message="baseline: killed").build()
        assert document.baseline is not None
        assert document.failure is not None
        failure = document.failure.model_copy(update={"cause": Cause.HOST})
        side = document.baseline.model_copy(update={"artifact": None})
        return document.model_copy(update={"baseline": side, "failure": failure})

    with pytest.raises(UnstableHostError, match="ended the build of the good end in 3 tries"):
        searched(ask(fork, commits[0], commits[9]), measure)
    assert tries == TRIES
