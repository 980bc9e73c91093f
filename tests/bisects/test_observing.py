from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from bisects.document import CommitState
from bisects.errors import BisectError
from bisects.observing import (
    given_up,
    good_end_fails,
    host_fails,
    is_hosts_fault,
    log_ratios,
    observation_of,
)
from results.document import Cause, Outcome
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha

if TYPE_CHECKING:
    from results.document import RunDocument
    from tests.fakes.run_documents import RunStory


def a_pair() -> RunStory:
    return (
        a_run()
        .called("run-7", job="job-7")
        .on(sha("b"))
        .against(sha("a"))
        .with_samples("scan", [[2.0, 2.0], [2.1, 2.1], [2.2, 2.2]], side=SideName.BASELINE)
        .with_samples("scan", [[1.8, 1.8], [], [2.0, 2.0]])
        .with_samples("point-query", [[50.0]], side=SideName.BASELINE)
    )


def observe(document: RunDocument, workload: str = "scan"):
    return observation_of(document, commit=5, workload=workload, seconds=100.0)


def test_each_start_with_both_sides_gives_the_log_of_its_ratio() -> None:
    found = log_ratios(a_pair().build(), "scan")

    assert found == pytest.approx((math.log(0.9), math.log(2.0 / 2.2)))


def test_a_measured_pair_is_an_observation_of_its_candidate() -> None:
    found = observe(a_pair().build())

    assert found.commit == 5
    assert found.job == "job-7"
    assert found.state is CommitState.MEASURED
    assert len(found.log_ratios) == 2
    assert found.seconds == 100.0
    assert found.build_seconds == 61.5
    assert found.artifact == f"content-{sha('b')[:8]}"


def test_a_build_that_took_longer_than_the_job_is_cut_to_it() -> None:
    document = a_pair().build()

    found = observation_of(document, commit=5, workload="scan", seconds=20.0)

    assert found.build_seconds == 20.0


def test_a_commit_that_does_not_build_is_broken_with_its_reason() -> None:
    story = a_pair().that(Outcome.BUILD_FAILED, stage="build", message="make\n  failed  with 2")

    found = observe(story.build())

    assert found.state is CommitState.BROKEN
    assert found.log_ratios == ()
    assert found.failure == "build: make failed with 2"


def test_the_good_ends_files_again_are_the_same() -> None:
    story = a_run().against(sha("a")).that(Outcome.UNCHANGED, stage="none", message="")

    found = observe(story.build())

    assert found.state is CommitState.SAME
    assert found.log_ratios == ()


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.UNSTABLE])
def test_a_job_that_failed_or_a_host_that_was_unstable_says_nothing(outcome: Outcome) -> None:
    story = a_pair().that(outcome, stage="host", message="the canary fell")

    with pytest.raises(BisectError, match="host: the canary fell"):
        observe(story.build())


def test_a_document_without_the_workload_or_without_a_pair_says_nothing() -> None:
    with pytest.raises(BisectError, match="no start of point-query with both sides"):
        observe(a_pair().build(), "point-query")
    with pytest.raises(BisectError, match="is no pair"):
        observe(a_run().with_samples("scan", [[2.0]]).build())


def failing(outcome: Outcome, cause: Cause | None) -> RunDocument:
    document = a_pair().that(outcome, stage="build", message="cc1plus was killed").build()
    assert document.failure is not None
    failure = document.failure.model_copy(update={"cause": cause})
    return document.model_copy(update={"failure": failure})


def test_a_build_that_the_host_ended_says_nothing_of_its_commit() -> None:
    killed = failing(Outcome.FAILED, Cause.HOST)

    assert is_hosts_fault(killed)
    assert is_hosts_fault(failing(Outcome.UNSTABLE, None))
    assert not is_hosts_fault(failing(Outcome.BUILD_FAILED, Cause.COMMIT))
    assert not is_hosts_fault(failing(Outcome.FAILED, None))
    assert not is_hosts_fault(a_pair().build())
    with pytest.raises(BisectError, match="build: cc1plus was killed"):
        observe(killed)


def test_the_good_end_fails_where_it_alone_has_no_artifact() -> None:
    document = failing(Outcome.FAILED, None)
    assert document.baseline is not None
    baseline = document.baseline.model_copy(update={"artifact": None})
    candidate = document.candidate.model_copy(update={"artifact": None})

    assert not good_end_fails(document)
    assert good_end_fails(document.model_copy(update={"baseline": baseline}))
    both = document.model_copy(update={"baseline": baseline, "candidate": candidate})
    assert not good_end_fails(both)


def test_a_commit_that_is_set_aside_says_whose_fault_that_was() -> None:
    broken = given_up(commit=3, job="job-3", why="build: no", seconds=9.0)
    killed = given_up(commit=4, job="job-4", why="build: killed", seconds=9.0, tries=3)
    lost = given_up(commit=5, job="job-5", why="lost", seconds=9.0, tries=1)

    assert (broken.failure, broken.by_host) == ("build: no", False)
    assert killed.by_host
    assert killed.failure == "the host, not the commit, ended it 3 times: build: killed"
    assert lost.failure == "the host, not the commit, ended it once: lost"
    assert host_fails([broken, killed], lost)
    assert not host_fails([killed, broken], lost)
    assert not host_fails([killed], broken)
    assert not host_fails([], killed)


def test_what_was_measured_was_not_kept_from_it_by_the_host() -> None:
    measured = observe(a_pair().build())

    with pytest.raises(ValueError, match="not kept from it by the host"):
        type(measured).model_validate(measured.model_dump() | {"by_host": True})
