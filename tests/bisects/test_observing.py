from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from bisects.document import CommitState
from bisects.errors import BisectError
from bisects.observing import log_ratios, observation_of
from results.document import Outcome
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
