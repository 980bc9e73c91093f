from __future__ import annotations

import dataclasses
import os

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from forkwatch.enrolling.enrolment import Enrolment, System
from forkwatch.enrolling.github import JOB, REGISTER
from forkwatch.enrolling.texts import files_of
from runner import shell
from tests.fakes.loopback import Loopback
from tests.runner.installed_trees import script

GITHUB = Enrolment(system=System.GITHUB, host_class="small", url="https://github.com/acme/server")
SECRET = "ghp_the-secret-of-the-host"


class RunnerGiver:
    """GitHub, as far as it gives registration tokens."""

    def __init__(self, token="ABCDEF123"):
        self.token = token
        self.asked: list[tuple[str, str]] = []
        self.app = Starlette(routes=[Route("/{path:path}", self._give, methods=["POST"])])

    async def _give(self, request):
        self.asked.append((request.url.path, request.headers.get("authorization", "")))
        if self.token is None:
            return JSONResponse({"message": "Bad credentials"}, status_code=401)
        return JSONResponse({"token": self.token, "expires_at": "2026-11-22T12:00:00Z"})


@pytest.fixture
def register(tmp_path):
    """Run the script that registers, with a GitHub and a runner of our own; return how it ended."""
    if os.geteuid() != 0:
        pytest.skip("the script runs as root on an enrolled host")
    words = "env; echo ARGS \"$@\"; id --user --name; pwd; tr '\\0' ' ' < /proc/$PPID/cmdline"
    script(tmp_path / "actions-runner" / "config.sh", f"({words}) > configured")
    script(tmp_path / "actions-runner" / "run.sh", "true")
    (tmp_path / "secret").write_text(f"{SECRET}\n")

    def register(giver):
        with Loopback(giver.app) as loopback:
            enrolment = dataclasses.replace(
                GITHUB, user="nobody", runner=tmp_path / "actions-runner"
            )
            (text,) = [one.text for one in files_of(enrolment, {}) if one.path == REGISTER]
            for said, here in (
                ("https://api.github.com", loopback.url),
                (str(JOB), str(tmp_path / "job")),
                (str(GITHUB.secret), str(tmp_path / "secret")),
            ):
                assert said in text
                text = text.replace(said, here)
            (tmp_path / "register").write_text(text)
            return shell.run(["sh", str(tmp_path / "register")], timeout_s=60)

    return register


def test_the_runner_is_registered_for_one_job_without_the_secret(register, tmp_path):
    giver = RunnerGiver()

    done = register(giver)

    assert done.ok, done.stderr
    path = "/repos/acme/server/actions/runners/registration-token"
    assert giver.asked == [(path, f"Bearer {SECRET}")]
    said = (tmp_path / "job" / "runner" / "configured").read_text()
    assert "ACTIONS_RUNNER_INPUT_TOKEN=ABCDEF123" in said
    (arguments,) = [line for line in said.splitlines() if line.startswith("ARGS ")]
    assert "--unattended --ephemeral" in arguments
    assert "--url https://github.com/acme/server" in arguments
    assert "--labels forkwatch,small" in arguments
    # Neither the token on a command line nor the secret anywhere.
    assert "ABCDEF123" not in said.replace("ACTIONS_RUNNER_INPUT_TOKEN=ABCDEF123", "")
    assert "nobody" in said.splitlines()
    assert f"HOME={tmp_path / 'job' / 'home'}" in said.splitlines()
    for path in (tmp_path / "job").rglob("*"):
        assert not path.is_file() or SECRET not in path.read_text()
        assert path.owner() == "nobody"


def test_nothing_of_the_last_job_is_left(register, tmp_path):
    assert register(RunnerGiver()).ok
    job = tmp_path / "job"
    (job / "runner" / "run.sh").write_text("#!/bin/sh\necho poisoned\n")
    (job / "home" / ".gitconfig").write_text("[core]\n  hooksPath = /tmp/poison\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "of somebody else").touch()
    (job / "home" / "link").symlink_to(outside)

    assert register(RunnerGiver()).ok

    assert "poisoned" not in (job / "runner" / "run.sh").read_text()
    assert list((job / "home").iterdir()) == []
    assert (outside / "of somebody else").exists()


@pytest.mark.parametrize("token", [None, "", "no token; reboot"])
def test_without_a_token_nothing_is_registered(register, tmp_path, token):
    done = register(RunnerGiver(token))

    assert not done.ok
    assert "gave no registration token" in done.stderr
    assert SECRET not in done.stderr
    assert not (tmp_path / "job" / "runner" / "configured").exists()


def test_without_a_secret_it_says_where_to_put_one(register, tmp_path):
    (tmp_path / "secret").write_text("")

    done = register(RunnerGiver())

    assert not done.ok
    assert f"put a token that may register runners into {tmp_path / 'secret'}" in done.stderr
