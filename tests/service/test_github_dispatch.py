"""GitHub Actions as a CI that does jobs: a run is begun once, found again, looked at and ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from service.channels.dispatch.github_actions import GitHubRunners
from service.channels.github.webhooks import Ignored, read_news
from service.core.dispatching import CiRunState, DispatchRefusedError, RunAsk, RunEnded
from service.core.errors import CodeHostError
from service.core.identity import CiSystem
from tests.fakes.github_api.actions import WORKFLOW
from tests.fakes.github_api.opened import REPOSITORY, a_github
from tests.fakes.github_api.rules import Reply, refusal
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.hub_signature import body_of
from tests.fakes.run_documents import sha

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.github_api.opened import OpenedGitHub

ASK = RunAsk(
    job="single-1",
    attempt=1,
    host_class="small",
    candidate=sha("b"),
    suite="commit",
    branch="main",
    asked_at=datetime(2026, 11, 3, 7, 0, tzinfo=UTC),
)
DISPATCHES = r"/dispatches$"


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        yield opened


@pytest.fixture
def runners(github: OpenedGitHub) -> GitHubRunners:
    return GitHubRunners(github.client, workflow=WORKFLOW)


def test_a_run_is_begun_and_found_by_its_name(github: OpenedGitHub, runners: GitHubRunners) -> None:
    assert runners.find(ASK) is None
    begun = runners.begin(ASK)
    ((_, run),) = github.world.workflow_runs

    assert run["display_title"] == "forkwatch single-1, attempt 1"
    found = runners.find(ASK)
    assert found is not None
    assert found.external_id == str(run["id"])
    assert found.page == run["html_url"]
    assert begun in {None, found}
    assert runners.find(replace(ASK, attempt=2)) is None


def test_a_server_that_does_not_know_how_to_name_the_run_begins_it_all_the_same(
    github: OpenedGitHub, runners: GitHubRunners
) -> None:
    refused = refusal(422, "Invalid request.", "return_run_details is not a permitted key.")
    github.double.go_wrong("POST", DISPATCHES, refused)

    assert runners.begin(ASK) is None
    assert len(github.world.workflow_runs) == 1
    assert runners.find(ASK) is not None


def test_of_two_runs_of_one_ask_the_first_counts(
    github: OpenedGitHub, runners: GitHubRunners
) -> None:
    runners.begin(ASK)
    runners.begin(ASK)
    ((_, first), _) = github.world.workflow_runs
    found = runners.find(ASK)

    assert found is not None
    assert found.external_id == str(first["id"])


def test_runs_from_before_an_ask_are_not_looked_through(
    github: OpenedGitHub, runners: GitHubRunners
) -> None:
    runners.begin(ASK)
    later = replace(ASK, asked_at=ASK.asked_at + timedelta(hours=1))

    assert runners.find(later) is None
    assert runners.find(ASK) is not None
    assert len(github.world.workflow_runs) == 1


def test_a_write_whose_answer_was_lost_is_not_repeated_and_is_found(
    github: OpenedGitHub, runners: GitHubRunners
) -> None:
    github.double.go_wrong("POST", DISPATCHES, Reply(status=502), after=True)
    with pytest.raises(CodeHostError):
        runners.begin(ASK)

    assert len(github.world.workflow_runs) == 1
    assert runners.find(ASK) is not None


def test_a_run_is_looked_at_until_its_end(github: OpenedGitHub, runners: GitHubRunners) -> None:
    runners.begin(ASK)
    ((_, run),) = github.world.workflow_runs
    name = str(run["id"])

    assert runners.look(name).state is CiRunState.WAITING
    run["status"] = "in_progress"
    assert runners.look(name).state is CiRunState.RUNNING
    runners.cancel(name)
    runners.cancel(name)
    ended = runners.look(name)
    assert (ended.state, ended.how) == (CiRunState.ENDED, "cancelled")
    assert runners.look("1").how == "deleted"


def test_what_github_refuses_says_what_to_do(github: OpenedGitHub, runners: GitHubRunners) -> None:
    other = GitHubRunners(github.client, workflow="missing.yml")
    with pytest.raises(DispatchRefusedError, match=r"no workflow 'missing\.yml'"):
        other.begin(ASK)
    with pytest.raises(DispatchRefusedError, match="No ref found for: trunk"):
        runners.begin(replace(ASK, branch="trunk"))
    github.world.granted["actions"] = "read"
    with pytest.raises(DispatchRefusedError, match="not accessible by integration"):
        runners.begin(ASK)
    assert github.world.workflow_runs == []


def test_the_end_of_a_run_is_news() -> None:
    def said(**changes: object) -> object:
        run = {"id": 4711, "conclusion": "cancelled", "updated_at": "2026-11-03T07:00:00Z"}
        payload = {
            "action": "completed",
            "workflow_run": run | changes,
            "repository": {"full_name": REPOSITORY},
        }
        return read_news("workflow_run", body_of(payload), repository=REPOSITORY)

    assert said() == RunEnded(
        system=CiSystem.GITHUB,
        external_id="4711",
        how="cancelled",
        at=datetime(2026, 11, 3, 7, 0, tzinfo=UTC),
    )
    for spoilt in ({"id": "x"}, {"id": True}, {"conclusion": None}, {"updated_at": "soon"}):
        assert isinstance(said(**spoilt), Ignored)
    begun = {"action": "in_progress", "repository": {"full_name": REPOSITORY}}
    assert isinstance(read_news("workflow_run", body_of(begun), repository=REPOSITORY), Ignored)
