"""One machine with everything on it: a fork, its service, GitHub and Buildkite, a runner of each.

Pushes, pull requests and comments go in as GitHub tells of them; what the service says on GitHub
and over its API comes out. GitHub's and Buildkite's own servers are doubles. Git, the service, act
and buildkite-agent are real programs in processes of their own.
"""

from __future__ import annotations

import sys
import time
import uuid
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx
import pygit2
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from runner import shell
from service.core.clock import SystemClock
from tests.ci.act import OURS, Actions, installing
from tests.ci.machine_workers import ActRunner, Agents
from tests.fakes import buildkite_rest
from tests.fakes.buildkite_rest import BuildkiteRest
from tests.fakes.github_api.credentials import APP_ID, private_key
from tests.fakes.github_api.opened import REPOSITORY, a_github
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.hub_signature import SECRET, body_of, signature_of
from tests.fakes.loopback import Loopback
from tests.fakes.oidc_issuer import OidcIssuer
from tests.fakes.service_process import free_port
from tests.fakes.webhook_payloads import comment_payload, pull_payload, push_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from tests.fakes.github_api.opened import OpenedGitHub

#: An hour glass for what never comes. On a machine with 300 processes in a queue a job took 150 s.
PATIENCE_SECONDS: Final = 1500
BRANCH: Final = "refs/heads/main"


class OneMachine:
    """The machine."""

    def __init__(
        self, folder: Path, origin: Path, *, program: str, fork: str, github: OpenedGitHub
    ) -> None:
        """Lay it out; nothing runs yet.

        Args:
            folder: Everything is kept below it.
            origin: The fork, a bare repository.
            program: Text of the program that jobs of GitHub find as `forkwatch`.
            fork: What its plan calls it.
            github: The double.
        """
        self._fork, self.url = fork, ""
        self.github, self.rest = github, BuildkiteRest()
        self.issuers = OidcIssuer(), OidcIssuer()
        self.tokens = Loopback(Starlette(routes=[Route("/{run}", self._token)]))
        self.builds = Loopback(self.rest.app)
        self.home, self.runner_home = folder / "home", folder / "runner-home"
        for made in (self.home, self.runner_home):
            made.mkdir()
        (folder / "app.pem").write_text(private_key())
        self._folder, self._origin, self._mirror = folder, origin, folder / "mirror.git"
        clone = pygit2.clone_repository(str(origin), str(self._mirror), bare=True)
        clone.config["remote.origin.mirror"] = True
        self._version = installing(folder / "ours", program)
        actions = Actions(
            folder / "github",
            fork=origin,
            ours=folder / "ours",
            version=self._version,
            repository=REPOSITORY,
        )
        where: dict[str, Any] = {"service": lambda: self.url, "head": self.head}
        self.runner = ActRunner(actions, github.world, env=self._env, **where)
        self.agents = Agents(
            folder / "agents", repository=origin, identity=self._build_token, **where
        )
        github.world.runner, self.rest.begin = self.runner, self.agents.begin
        #: What the hosts of the next runs call their class, whatever their labels say.
        self.hosts_say: list[str] = []
        self._service: shell.Process | None = None

    def serve(self, host_class: str) -> None:
        """Start the service for a host class, in the place of the one that runs."""
        self.stop_service()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        settings = {**self._settings(), "HOST_CLASS": host_class}
        variables = [f"FORKWATCH_{name}={value}" for name, value in settings.items()]
        words = ["env", *variables, sys.executable, "-m", "forkwatch", "serve", "--port", str(port)]
        words += ["--home", str(self.home), "--repository", str(self._mirror)]
        with (self.home / "service.log").open("ab") as log:
            self._service = shell.start([*words, "--poll-seconds", "0.5"], output=log)
        self.until(lambda: self.get("/api/v1/forks"))

    def stop_service(self) -> None:
        """Kill the service, if it runs."""
        if self._service is not None:
            self._service.kill()
            self._service = None

    def stop(self) -> None:
        """Leave nothing behind."""
        try:
            self.runner.stop()
            self.agents.stop()
        finally:
            self.stop_service()

    def head(self) -> str:
        """Return the newest commit of the branch."""
        return str(pygit2.Repository(str(self._origin)).references[BRANCH].target)

    def push(self, sha: str) -> dict[str, Any]:
        """Have GitHub tell that the branch was pushed to; return the commit once it is judged."""
        self.tell_pushed(sha)
        return self.judged(sha)

    def tell_pushed(self, sha: str) -> None:
        """Have GitHub tell that the branch was pushed to."""
        self.tell("push", push_payload(at=SystemClock().now()) | {"after": sha})

    def pull(self, number: int, head: str, *, at: datetime, **facts: Any) -> None:
        """Have GitHub tell of the head of a pull request, which the fork shows as a ref."""
        origin = pygit2.Repository(str(self._origin))
        origin.references.create(f"refs/pull/{number}/head", pygit2.Oid(hex=head), force=True)
        self.tell("pull_request", pull_payload(number, head=head, at=at, **facts))

    def comment(self, number: int, text: str, *, login: str) -> None:
        """Write a comment on GitHub, and have GitHub tell of it."""
        made = self.github.world.new_comment(number, text, login=login)
        at = SystemClock().now()
        payload = comment_payload(text, number=number, comment=made["id"], login=login, at=at)
        self.tell("issue_comment", payload)

    def tell(self, event: str, payload: dict[str, Any]) -> None:
        """Send a webhook as GitHub does."""
        body = body_of(payload)
        headers = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": str(uuid.uuid4()),
            "X-Hub-Signature-256": signature_of(body),
        }
        url = f"{self.url}/hooks/github"
        answer = httpx.post(url, content=body, headers=headers, timeout=120)
        assert answer.status_code == 202, answer.text

    def get(self, path: str, **params: str) -> Any:
        """Return what the service answers, None where there is no good answer yet."""
        try:
            answer = httpx.get(f"{self.url}{path}", params=params, timeout=30)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None

    def judged(self, sha: str) -> dict[str, Any]:
        """Return all about a commit, once it is finished."""

        def finished() -> Any:
            found = self.get(f"/api/v1/commits/{self._fork}/{sha}")
            return found if found and found["commit"]["state"] == "finished" else None

        found: dict[str, Any] = self.until(finished)
        return found

    def runs_of(self, sha: str) -> list[dict[str, Any]]:
        """Return the runs on GitHub whose jobs measure a commit; a job's name has it."""
        runs = (run for _, run in self.github.world.workflow_runs)
        return [run for run in runs if f"-{sha[:12]}-" in run["display_title"]]

    def over(self, sha: str) -> list[dict[str, Any]]:
        """Return the same, once all of them are over."""
        self.until(lambda: all(run["status"] == "completed" for run in self.runs_of(sha)))
        return self.runs_of(sha)

    def checks(self, sha: str) -> list[tuple[str, str, str | None]]:
        """Return the checks on a commit: name, status, conclusion."""
        return [
            (run["name"], run["status"], run["conclusion"])
            for run in self.github.world.check_runs
            if run["head_sha"] == sha
        ]

    def until(self, condition: Callable[[], Any]) -> Any:
        """Return what a condition gives, once it gives anything."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            ended = self._service is not None and self._service.poll() is not None
            faults = [*self.runner.work.faults, *self.agents.work.faults]
            assert not ended, f"the service ended:\n{self.said()}"
            assert not faults, f"a worker failed: {faults}\n{self.said()}"
            time.sleep(0.1)
        raise AssertionError(f"it never came to be:\n{self.said()}")

    def said(self) -> str:
        """Return what everybody said, for whoever looks after a failing test."""
        acts = [f"--- run {number}\n{did.text[-4000:]}" for number, did in self.runner.did.items()]
        agents = [f"--- build {number}\n{text}" for number, text in self.agents.did.items()]
        return "\n".join([shell.tail(self.home / "service.log"), *acts, *agents])

    def _settings(self) -> dict[str, str]:
        github, buildkite = self.issuers
        return {
            "DISPATCH": "small=github,large=buildkite",
            "DISPATCH_BUILDKITE_PIPELINE": buildkite_rest.PIPELINE,
            "DISPATCH_BUILDKITE_TOKEN": buildkite_rest.TOKEN,
            "DISPATCH_BUILDKITE_API_URL": self.builds.url,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_APP_ID": APP_ID,
            "GITHUB_PRIVATE_KEY_FILE": str(self._folder / "app.pem"),
            "GITHUB_API_URL": self.github.url,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "OIDC_AUDIENCE": self.url,
            "OIDC_GITHUB_REPOSITORY": REPOSITORY,
            "OIDC_GITHUB_WORKFLOW": self._workflow,
            "OIDC_GITHUB_ISSUER": github.url,
            "OIDC_BUILDKITE_PIPELINE": buildkite_rest.PIPELINE,
            "OIDC_BUILDKITE_ISSUER": buildkite.url,
        }

    @property
    def _workflow(self) -> str:
        """The workflow that is called, as a token names it."""
        return f"{OURS}/.github/workflows/forkwatch-job.yml@{self._version}"

    def _env(self, run: str) -> dict[str, str]:
        """Return what a run of GitHub has: its host's home, and where it asks who it is."""
        says = {"FORKWATCH_HOST_CLASS": self.hosts_say.pop()} if self.hosts_say else {}
        return {
            **says,
            "FORKWATCH_HOME": str(self.runner_home),
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.tokens.url}/{run}?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": _secret_of(run),
        }

    async def _token(self, request: Request) -> Response:
        """Answer a job of GitHub that asks for a token of its own."""
        run = request.path_params["run"]
        if request.headers.get("authorization") != f"Bearer {_secret_of(run)}":
            return JSONResponse({"message": "not a job of ours"}, status_code=401)
        issuer = self.issuers[0]
        claims = issuer.github(
            SystemClock().now(),
            jti=str(uuid.uuid4()),
            aud=request.query_params["audience"],
            repository=REPOSITORY,
            sub=f"repo:{REPOSITORY}:ref:{BRANCH}",
            event_name="workflow_dispatch",
            sha=self.head(),
            run_id=run,
            job_workflow_ref=self._workflow,
        )
        return JSONResponse({"count": 1, "value": issuer.sign(claims)})

    def _build_token(self, number: int, audience: str) -> str:
        """Return what a job of a build of Buildkite is given when it asks who it is."""
        issuer = self.issuers[1]
        claims = issuer.buildkite(
            SystemClock().now(), build_number=number, aud=audience, build_commit=self.head()
        )
        return issuer.sign(claims)


@contextmanager
def one_machine(
    folder: Path, origin: Path, *, program: str, fork: str = "demo"
) -> Iterator[OneMachine]:
    """Give a machine whose service measures on the host class `small`."""
    with ExitStack() as stack:
        server = stack.enter_context(DoubleServer())
        github = stack.enter_context(a_github(server))
        github.world.permissions = {"ada": "write", "mallory": "read"}
        machine = OneMachine(folder, origin, program=program, fork=fork, github=github)
        for door in (machine.tokens, machine.builds, *machine.issuers):
            stack.enter_context(door)
        stack.callback(machine.stop)
        machine.serve("small")
        yield machine


def _secret_of(run: str) -> str:
    return f"secret-of-run-{run}"
