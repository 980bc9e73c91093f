"""Buildkite as a CI that does jobs: a build is made once, found again, looked at and ended."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest

from service.channels.dispatch.buildkite import BuildkiteRunners
from service.core.dispatching import CiRunState, DispatchRefusedError, RunAsk
from service.core.errors import DispatchError
from tests.fakes.buildkite_rest import BASE, PIPELINE, TOKEN, BuildkiteRest, fault_of, said
from tests.fakes.run_documents import sha

ASK = RunAsk(
    job="single-1",
    attempt=1,
    host_class="small",
    candidate=sha("b"),
    suite="commit",
    branch="main",
    asked_at=datetime(2026, 11, 3, 7, 0, tzinfo=UTC),
)


@pytest.fixture
def rest() -> BuildkiteRest:
    return BuildkiteRest()


def runners(
    rest: BuildkiteRest, *, pipeline: str = PIPELINE, token: str = TOKEN
) -> BuildkiteRunners:
    return BuildkiteRunners(pipeline, token=token, api_url=BASE, transport=rest.transport)


def away() -> httpx.Response:
    raise httpx.ReadTimeout("")


def test_a_build_is_made_and_found_by_what_was_said_at_its_making(rest: BuildkiteRest) -> None:
    assert runners(rest).find(ASK) is None
    made = runners(rest).begin(ASK)
    (build,) = rest.builds

    assert made.external_id == str(build["number"])
    assert made.page == build["web_url"]
    assert made.state is CiRunState.WAITING
    assert build["env"] == {"FORKWATCH_JOB": "single-1", "FORKWATCH_JOB_HOST_CLASS": "small"}
    assert build["meta_data"] == {"forkwatch-job": "single-1", "forkwatch-attempt": "1"}
    assert runners(rest).find(ASK) == made
    assert runners(rest).find(replace(ASK, attempt=2)) is None


def test_of_two_builds_of_one_ask_the_first_counts(rest: BuildkiteRest) -> None:
    first = runners(rest).begin(ASK)
    runners(rest).begin(ASK)

    assert runners(rest).find(ASK) == first


def test_a_build_that_only_claims_to_be_ours_is_not_taken_for_it(rest: BuildkiteRest) -> None:
    """Whatever a build of a push says of itself in its own meta-data."""
    claimed = {"forkwatch-job": "single-1", "forkwatch-attempt": "1"}
    rest.new_build(
        {"commit": "HEAD", "branch": "main", "message": ASK.title, "meta_data": claimed},
        source="webhook",
    )
    rest.new_build({"commit": "HEAD", "branch": "main", "message": "x", "meta_data": claimed})

    assert runners(rest).find(ASK) is None
    mine = runners(rest).begin(ASK)
    assert runners(rest).find(ASK) == mine


def test_a_write_whose_answer_was_lost_is_not_repeated_and_is_found(rest: BuildkiteRest) -> None:
    rest.go_wrong("POST", away, after=True)
    with pytest.raises(DispatchError, match="no answer"):
        runners(rest).begin(ASK)

    assert rest.made() == 1
    assert runners(rest).find(ASK) is not None


@pytest.mark.parametrize("status", [429, 500, 503])
def test_trouble_that_may_pass_is_told_from_a_no(rest: BuildkiteRest, status: int) -> None:
    rest.go_wrong("POST", lambda: said(status, "later"))
    with pytest.raises(DispatchError, match=f"{status} later"):
        runners(rest).begin(ASK)
    rest.go_wrong("GET", lambda: httpx.Response(200, text="<html>a proxy's page</html>"))
    with pytest.raises(DispatchError, match="not JSON"):
        runners(rest).find(ASK)
    assert rest.made() == 0


def test_what_buildkite_refuses_says_what_to_do(rest: BuildkiteRest) -> None:
    with pytest.raises(DispatchRefusedError, match="FORKWATCH_DISPATCH_BUILDKITE_PIPELINE"):
        runners(rest, pipeline="acme/other").begin(ASK)
    with pytest.raises(DispatchRefusedError, match="valid API Access Token"):
        runners(rest, token="wrong").begin(ASK)
    with pytest.raises(DispatchRefusedError, match="can't be blank"):
        runners(rest).begin(replace(ASK, branch=""))
    assert rest.made() == 0


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("scheduled", CiRunState.WAITING),
        ("blocked", CiRunState.WAITING),
        ("a-state-to-come", CiRunState.WAITING),
        ("running", CiRunState.RUNNING),
        ("failing", CiRunState.RUNNING),
        ("canceling", CiRunState.RUNNING),
        ("passed", CiRunState.ENDED),
        ("failed", CiRunState.ENDED),
        ("canceled", CiRunState.ENDED),
        ("skipped", CiRunState.ENDED),
        ("not_run", CiRunState.ENDED),
    ],
)
def test_states_of_a_build(rest: BuildkiteRest, state: str, expected: CiRunState) -> None:
    made = runners(rest).begin(ASK)
    rest.builds[0]["state"] = state
    found = runners(rest).look(made.external_id)

    assert found.state is expected
    assert found.how == (state if expected is CiRunState.ENDED else "")


def test_a_build_is_ended_once_and_one_that_is_gone_has_ended(rest: BuildkiteRest) -> None:
    made = runners(rest).begin(ASK)
    runners(rest).cancel(made.external_id)
    runners(rest).cancel(made.external_id)
    rest.builds.clear()

    assert runners(rest).look(made.external_id).how == "deleted"


def test_the_token_that_starts_builds_is_nowhere_else(
    rest: BuildkiteRest, caplog: pytest.LogCaptureFixture
) -> None:
    asker = runners(rest)
    rest.go_wrong("POST", away)
    with pytest.raises(DispatchError) as trouble:
        asker.begin(ASK)
    asker.begin(ASK)
    asker.cancel("1")

    assert TOKEN not in json.dumps(rest.builds)
    assert TOKEN not in str(trouble.value)
    assert TOKEN not in caplog.text
    assert all(TOKEN not in path for _, path in rest.asked)


def test_the_double_refuses_what_buildkites_client_does_not_know() -> None:
    build = {"commit": "HEAD", "branch": "main"}

    assert fault_of(build) == ""
    assert "no field" in fault_of(build | {"inputs": {}})
    assert "has to be bool" in fault_of(build | {"clean_checkout": "yes"})
    assert "has to be int" in fault_of(build | {"pull_request_id": True})
    assert "has to be a text" in fault_of(build | {"env": {"JOB": 1}})
    assert "can't be blank" in fault_of({"commit": "HEAD"})
