"""Checks: one run per key, brought up to date, with all its annotations and none of them twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reports.build_log import Annotation
from reports.check import CheckText, Conclusion, waiting_check
from service.channels.github.errors import RefusedError
from service.channels.github.limits import SUMMARY_LENGTH_MAX
from service.core.errors import CodeHostError
from tests.fakes.github_api.opened import a_github
from tests.fakes.github_api.rules import Reply
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.run_documents import sha

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.github_api.opened import OpenedGitHub

LOST = Reply(status=502, body={"message": "Server Error"})
PAGE = "https://perf.example/commits/b"
SLOWER = CheckText(conclusion=Conclusion.FAILURE, title="scan 9.1 % slower", summary="**much**")


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        yield opened


def remarks(count: int) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(
            path="sql/handler.cc", line=number, title="does not build", message=f"n {number}"
        )
        for number in range(1, count + 1)
    )


def publish(github: OpenedGitHub, check: CheckText, *, key: str = "job-1") -> str:
    return github.checks.publish(sha("b"), check, suite="commit", key=key, page=PAGE)


def test_a_check_goes_from_waiting_to_its_conclusion(github: OpenedGitHub) -> None:
    first = publish(github, waiting_check("commit"))
    (run,) = github.world.check_runs
    assert (run["status"], run["conclusion"]) == ("in_progress", None)

    second = publish(github, SLOWER)

    assert first == second == run["html_url"]
    (run,) = github.world.check_runs
    assert (run["name"], run["head_sha"]) == ("forkwatch / commit", sha("b"))
    assert (run["status"], run["conclusion"]) == ("completed", "failure")
    assert (run["details_url"], run["external_id"]) == (PAGE, "job-1")
    assert run["output"]["title"] == "scan 9.1 % slower"
    assert run["output"]["summary"] == "**much**"


def test_publishing_again_writes_nothing(github: OpenedGitHub) -> None:
    publish(github, SLOWER)
    writes = github.double.writes()

    publish(github, SLOWER)

    assert github.double.writes() == writes


def test_measuring_again_is_another_check_run(github: OpenedGitHub) -> None:
    publish(github, SLOWER, key="job-1")
    publish(github, SLOWER, key="job-2")
    publish(github, SLOWER, key="job-1")

    assert [run["external_id"] for run in github.world.check_runs] == ["job-1", "job-2"]


def test_a_check_whose_answer_was_lost_is_not_made_twice(github: OpenedGitHub) -> None:
    github.double.go_wrong("POST", "/check-runs$", LOST, after=True)

    with pytest.raises(CodeHostError):
        publish(github, SLOWER)
    publish(github, SLOWER)

    assert len(github.world.check_runs) == 1


@pytest.mark.parametrize("count", [0, 1, 50, 51, 100, 149])
def test_all_annotations_arrive_in_order(github: OpenedGitHub, count: int) -> None:
    check = CheckText(
        conclusion=Conclusion.FAILURE, title="t", summary="s", annotations=remarks(count)
    )

    publish(github, check)
    publish(github, check)

    (run,) = github.world.check_runs
    there = github.world.annotations[run["id"]]
    assert [item["message"] for item in there] == [f"n {n}" for n in range(1, count + 1)]
    assert {item["start_line"] - item["end_line"] for item in there} <= {0}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_annotations_interrupted_anywhere_are_completed_and_not_repeated(
    github: OpenedGitHub, method: str, *, after: bool
) -> None:
    check = CheckText(
        conclusion=Conclusion.FAILURE, title="t", summary="s", annotations=remarks(120)
    )
    github.double.go_wrong(method, "/check-runs", LOST, after=after)

    with pytest.raises(CodeHostError):
        publish(github, check)
    publish(github, check)

    (run,) = github.world.check_runs
    there = [item["message"] for item in github.world.annotations[run["id"]]]
    assert there == [f"n {n}" for n in range(1, 121)]


def test_annotations_may_come_with_the_conclusion(github: OpenedGitHub) -> None:
    publish(github, waiting_check("commit"))
    publish(
        github,
        CheckText(conclusion=Conclusion.FAILURE, title="t", summary="s", annotations=remarks(3)),
    )

    (run,) = github.world.check_runs
    assert run["output"]["annotations_count"] == 3


def test_texts_that_are_too_long_are_cut(github: OpenedGitHub) -> None:
    long = Annotation(path="a", line=1, title="t" * 300, message="m" * 70_000)
    check = CheckText(
        conclusion=Conclusion.NEUTRAL, title="x" * 300, summary="ü" * 70_000, annotations=(long,)
    )

    publish(github, check)
    publish(github, check)

    (run,) = github.world.check_runs
    assert len(run["output"]["summary"].encode()) <= SUMMARY_LENGTH_MAX
    assert len(run["output"]["title"]) == 255
    assert run["conclusion"] == "neutral"


def test_a_token_shows_a_status_in_place_of_a_check(github: OpenedGitHub) -> None:
    for check in (waiting_check("commit"), SLOWER, SLOWER):
        github.statuses.publish(sha("b"), check, suite="commit", key="job-1", page=PAGE)

    shown = [(item["state"], item["description"]) for _, item in github.world.statuses]
    assert shown == [
        ("pending", "suite commit is being measured, or waits for a quiet machine"),
        ("failure", "scan 9.1 % slower"),
    ]
    assert {item["context"] for _, item in github.world.statuses} == {"forkwatch / commit"}
    assert {item["target_url"] for _, item in github.world.statuses} == {PAGE}


def test_a_status_whose_answer_was_lost_is_not_set_twice(github: OpenedGitHub) -> None:
    github.double.go_wrong("POST", "/statuses/", LOST, after=True)

    with pytest.raises(CodeHostError):
        github.statuses.publish(sha("b"), SLOWER, suite="commit", key="job-1")
    github.statuses.publish(sha("b"), SLOWER, suite="commit", key="job-1")

    assert len(github.world.statuses) == 1


def test_the_newest_status_of_its_suite_counts(github: OpenedGitHub) -> None:
    fine = CheckText(conclusion=Conclusion.SUCCESS, title="unchanged", summary="")
    undecided = CheckText(conclusion=Conclusion.NEUTRAL, title="inconclusive " * 20, summary="")
    for suite, check in (
        ("commit", fine),
        ("full", SLOWER),
        ("commit", undecided),
        ("commit", fine),
    ):
        github.statuses.publish(sha("b"), check, suite=suite, key="job-1")

    states = [(item["context"][12:], item["state"]) for _, item in github.world.statuses]
    assert states == [
        ("commit", "success"),
        ("full", "failure"),
        ("commit", "success"),
        ("commit", "success"),
    ]


def test_checks_that_were_not_granted_are_refused(github: OpenedGitHub) -> None:
    github.world.granted["checks"] = "read"

    with pytest.raises(RefusedError, match="Resource not accessible"):
        publish(github, SLOWER)
