"""A job of a CI gets a token for the service, and whoever is none is told what to do."""

from __future__ import annotations

import sys

import httpx
import pytest
from pydantic import SecretStr

from forkwatch.ci_identity import identity_token
from forkwatch.ci_settings import CiSettings
from forkwatch.errors import DoorError

AUDIENCE = "https://perf.example"
URL = "https://tokens.example/ask?api-version=2.0"


def github(**changes):
    values = {
        "github_actions": True,
        "actions_id_token_request_url": URL,
        "actions_id_token_request_token": SecretStr("asks-with"),
    }
    return CiSettings(**(values | changes))


def buildkite():
    return CiSettings(github_actions=False, buildkite=True)


def an_agent(folder, monkeypatch, program):
    path = folder / "bin" / "buildkite-agent"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\nimport sys\n{program}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")


def test_github_is_asked_where_it_says_for_our_audience():
    asked = []

    def answer(request):
        asked.append(request)
        return httpx.Response(200, json={"value": "a.b.c", "count": 5})

    token = identity_token(github(), audience=AUDIENCE, transport=httpx.MockTransport(answer))

    assert token == "a.b.c"
    (request,) = asked
    assert request.headers["authorization"] == "Bearer asks-with"
    assert dict(request.url.params) == {"api-version": "2.0", "audience": AUDIENCE}


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json={}),
        httpx.Response(200, json=[]),
    ],
)
def test_what_is_no_token_is_said_without_the_secret(answer):
    with pytest.raises(DoorError, match="GitHub gave no token") as trouble:
        identity_token(
            github(), audience=AUDIENCE, transport=httpx.MockTransport(lambda _request: answer)
        )
    assert "asks-with" not in str(trouble.value)
    assert "tokens.example" not in str(trouble.value)


@pytest.mark.parametrize(
    "lacks", [{"actions_id_token_request_url": ""}, {"actions_id_token_request_token": None}]
)
def test_a_job_that_may_not_ask_is_told_what_it_lacks(lacks):
    with pytest.raises(DoorError, match="id-token: write"):
        identity_token(github(**lacks), audience=AUDIENCE)


def test_the_agent_of_buildkite_is_asked(tmp_path, monkeypatch):
    an_agent(tmp_path, monkeypatch, "print(' '.join(sys.argv[1:]))")

    said = identity_token(buildkite(), audience=AUDIENCE)

    assert said == f"oidc request-token --audience {AUDIENCE}"


def test_an_agent_that_gives_none_is_quoted(tmp_path, monkeypatch):
    an_agent(tmp_path, monkeypatch, "sys.exit('no such job')")

    with pytest.raises(DoorError, match="no such job"):
        identity_token(buildkite(), audience=AUDIENCE)


def test_without_an_agent_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(DoorError, match="not in PATH"):
        identity_token(buildkite(), audience=AUDIENCE)


def test_by_hand_there_is_no_identity():
    nowhere = CiSettings(github_actions=False, buildkite=False)

    with pytest.raises(DoorError, match="leave --order away"):
        identity_token(nowhere, audience=AUDIENCE)
