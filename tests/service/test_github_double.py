"""The double refuses what GitHub refuses; a double that takes anything proves nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest

from tests.fakes.github_api.credentials import APP_ID, USER_TOKEN, new_key, private_key
from tests.fakes.github_api.description import description, reduced
from tests.fakes.github_api.opened import REPOSITORY, a_github
from tests.fakes.github_api.server import DoubleServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.github_api.opened import OpenedGitHub

ROOT = f"/repos/{REPOSITORY}"
SHA = "b" * 40
CHECK = {"name": "forkwatch / commit", "head_sha": SHA}
OUTPUT = {"title": "slower", "summary": "much"}
REMARK = {
    "path": "sql/handler.cc",
    "start_line": 1,
    "end_line": 1,
    "annotation_level": "failure",
    "message": "words",
}


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture(scope="module")
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        opened.world.new_issue({"title": "an issue"}, login="somebody")
        yield opened


@pytest.fixture(scope="module")
def installation(github: OpenedGitHub) -> str:
    token, _ = github.double.doorkeeper.mint()
    return token


def ask(
    github: OpenedGitHub, method: str, path: str, body: Any = None, *, token: str
) -> httpx.Response:
    return httpx.request(
        method,
        f"{github.url}{path}",
        json=body,
        headers={"Authorization": f"Bearer {token}"} if token else {},
    )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"{ROOT}/issues", {}),
        ("POST", f"{ROOT}/issues", {"title": ["a"]}),
        ("POST", f"{ROOT}/issues", {"title": "a", "body": "x" * 65_537}),
        ("POST", f"{ROOT}/issues", {"title": "x" * 257}),
        ("PATCH", f"{ROOT}/issues/1", {"state": "shut"}),
        ("PATCH", f"{ROOT}/issues/1", {"state": "closed", "state_reason": "boredom"}),
        ("POST", f"{ROOT}/issues/1/comments", {}),
        ("POST", f"{ROOT}/issues/1/comments", {"body": "x" * 65_537}),
        ("POST", f"{ROOT}/check-runs", {"name": "a"}),
        ("POST", f"{ROOT}/check-runs", {**CHECK, "status": "completed"}),
        ("POST", f"{ROOT}/check-runs", {**CHECK, "conclusion": "slow", "status": "completed"}),
        ("POST", f"{ROOT}/check-runs", {**CHECK, "output": {"title": "no summary"}}),
        ("POST", f"{ROOT}/check-runs", {**CHECK, "output": {**OUTPUT, "summary": "x" * 65_536}}),
        ("POST", f"{ROOT}/check-runs", {**CHECK, "output": {**OUTPUT, "annotations": [{}]}}),
        (
            "POST",
            f"{ROOT}/check-runs",
            {**CHECK, "output": {**OUTPUT, "annotations": [REMARK] * 51}},
        ),
        ("POST", f"{ROOT}/statuses/{SHA}", {"state": "slow"}),
        ("POST", f"{ROOT}/statuses/{SHA}", {"state": "failure", "description": "x" * 141}),
        ("POST", f"{ROOT}/issues/comments/1/reactions", {"content": "shrug"}),
    ],
)
def test_what_github_refuses_is_refused(
    github: OpenedGitHub, installation: str, method: str, path: str, body: Any
) -> None:
    before = github.world.snapshot()

    answer = ask(github, method, path, body, token=installation)

    assert answer.status_code == 422, answer.text
    assert github.world.snapshot() == before


def test_what_github_takes_is_taken(github: OpenedGitHub, installation: str) -> None:
    for path, body in (
        (f"{ROOT}/issues", {"title": "x" * 256, "body": "x" * 65_536}),
        (f"{ROOT}/issues/1/comments", {"body": "x" * 65_536}),
        (
            f"{ROOT}/check-runs",
            {
                **CHECK,
                "status": "completed",
                "conclusion": "failure",
                "output": {**OUTPUT, "summary": "x" * 65_535, "annotations": [REMARK] * 50},
            },
        ),
        (f"{ROOT}/statuses/{SHA}", {"state": "failure", "description": "x" * 140}),
    ):
        answer = ask(github, "POST", path, body, token=installation)
        assert answer.status_code == 201, answer.text


def signed(key: str, *, seconds: int = 300, app: str = APP_ID) -> str:
    now = int(time.time())
    return jwt.encode({"iss": app, "iat": now, "exp": now + seconds}, key, algorithm="RS256")


@pytest.mark.parametrize("path", [f"{ROOT}/issues", "/app", "/user"])
def test_nobody_gets_in_without_a_credential(github: OpenedGitHub, path: str) -> None:
    for token in ("", "guess", signed(new_key()), signed(private_key(), app="1")):
        assert ask(github, "GET", path, token=token).status_code == 401


def test_a_signature_is_good_for_ten_minutes_at_most(github: OpenedGitHub) -> None:
    assert ask(github, "GET", "/app", token=signed(private_key())).status_code == 200
    long = signed(private_key(), seconds=3600)
    assert ask(github, "GET", "/app", token=long).status_code == 401


def test_an_app_itself_may_not_act_in_a_repository(github: OpenedGitHub) -> None:
    token = signed(private_key())

    assert ask(github, "GET", f"{ROOT}/issues", token=token).status_code == 401


def test_an_installation_token_ends(github: OpenedGitHub) -> None:
    token, _ = github.double.doorkeeper.mint()
    github.double.doorkeeper.tokens[token] = time.time() - 1

    assert ask(github, "GET", f"{ROOT}/issues", token=token).status_code == 401


def test_a_person_writes_no_checks(github: OpenedGitHub) -> None:
    answer = ask(github, "POST", f"{ROOT}/check-runs", CHECK, token=USER_TOKEN)

    assert answer.status_code == 403
    assert answer.json()["message"] == "You must authenticate via a GitHub App."


def test_another_repository_is_not_there(github: OpenedGitHub, installation: str) -> None:
    answer = ask(github, "GET", "/repos/acme/other/issues", token=installation)

    assert answer.status_code == 404


def test_every_answer_says_how_many_requests_remain(
    github: OpenedGitHub, installation: str
) -> None:
    left = [
        int(
            ask(github, "GET", f"{ROOT}/issues", token=installation).headers[
                "x-ratelimit-remaining"
            ]
        )
        for _ in range(2)
    ]

    assert left[0] - left[1] == 1


def test_the_reduced_description_lacks_nothing_that_it_refers_to() -> None:
    document = description().document

    # Reducing it again follows every reference once more.
    assert reduced(document) == document


def test_an_answer_that_github_would_not_give_is_noticed(server: DoubleServer) -> None:
    with pytest.raises(AssertionError, match="as GitHub never would"), a_github(server) as opened:
        made = opened.world.new_issue({"title": "an issue"}, login="somebody")
        made["state"] = 7
        token, _ = opened.double.doorkeeper.mint()
        ask(opened, "GET", f"{ROOT}/issues/1", token=token)
