"""The runner's half against the service's: `forkwatch run --order` over real HTTP on loopback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from forkwatch.ci_settings import CiSettings
from forkwatch.dispatched import Errand, fetch_commits, fetch_order, run_errand
from forkwatch.errors import DoorError
from forkwatch.watching import LogProgress
from results.job import DOCUMENT_FILE, ORDER_FILE
from runner.settings import Home, RunnerSettings
from service.channels.oidc import OidcIdentities
from service.core.identity import CiSystem, Issuer
from service.core.model import JobStatus
from service.store import migrate
from service.store.database import Database
from service.web.application import web_application
from service.web.dispatch_api import dispatched_router
from service.web.pages import missing_page
from tests.fakes.dispatch_scene import JOB, Scene, a_document, order, text_of
from tests.fakes.git_fork import GitFork
from tests.fakes.loopback import Loopback
from tests.fakes.oidc_issuer import REPOSITORY, OidcIssuer
from tests.fakes.run_documents import sha

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

ASKING = "what-the-runner-asks-with"


@dataclass
class World:
    """A service, GitHub's place for tokens, and a machine that measures."""

    scene: Scene
    service: str
    home: Path
    fork: GitFork
    #: What the tokens of this run say besides the usual.
    claims: dict[str, Any]

    @property
    def ci(self) -> CiSettings:
        return CiSettings(
            github_actions=True,
            actions_id_token_request_url=f"{self.service}/token?api-version=2.0",
            actions_id_token_request_token=SecretStr(ASKING),
        )

    def run(self, *, host_class: str = "small", job: str = JOB) -> list[Path]:
        """Do the errand; return where the document was before it was brought."""
        kept: list[Path] = []
        run_errand(
            Errand(job=job, service=self.service),
            repository=self.fork.folder,
            home=Home(self.home),
            settings=RunnerSettings(host_class=host_class),
            ci=self.ci,
            progress=LogProgress(),
            keep=kept.append,
        )
        return kept

    def measured_before(self, text: bytes) -> Path:
        """Have the run of a job lie in its folder, as after a crash while it was brought."""
        folder = Home(self.home).folder("jobs", JOB)
        (folder / DOCUMENT_FILE).write_bytes(text)
        return folder


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    migrate.upgrade(url)
    scene = Scene(Database(url))
    claims: dict[str, Any] = {}
    apps: dict[str, FastAPI] = {}
    tokens: list[str] = []

    async def service(scope: Scope, receive: Receive, send: Send) -> None:
        await apps["service"](scope, receive, send)

    with OidcIssuer() as issuer:

        async def token(request: Request) -> Response:
            if request.headers["authorization"] != f"Bearer {ASKING}":
                return Response(status_code=401)
            about = {"event_name": "workflow_dispatch", "run_id": "100", "jti": str(len(tokens))}
            about |= {"aud": request.query_params["audience"]}
            tokens.append(issuer.sign(issuer.github(scene.clock.now(), **(about | claims))))
            return JSONResponse({"value": tokens[-1]})

        outer = Starlette(routes=[Route("/token", token), Mount("/", app=service)])
        with Loopback(outer) as opened:
            named = Issuer(
                system=CiSystem.GITHUB,
                url=issuer.url,
                audience=opened.url,
                claims={"repository": REPOSITORY},
            )
            identities = OidcIdentities([named], clock=scene.clock)
            router = dispatched_router(scene.runs(), identities=identities)
            apps["service"] = web_application([router], missing_page=missing_page)
            fork = GitFork(tmp_path / "fork.git")
            yield World(scene, opened.url, tmp_path / "home", fork, claims)
    scene.database.close()


def test_a_run_is_fetched_done_and_brought(world: World) -> None:
    commit = world.fork.push("One")
    world.scene.anew().start(order(candidate=commit))
    document = a_document(commit=commit)
    folder = world.measured_before(text_of(document))

    assert world.run() == [folder / DOCUMENT_FILE]
    assert world.scene.anew().status(JOB) is JobStatus.FINISHED
    assert world.scene.anew().collect(JOB) == text_of(document)


def test_the_order_on_disk_has_no_credential(world: World) -> None:
    commit = world.fork.push("One")
    world.scene.anew().start(order(candidate=commit))
    folder = world.measured_before(text_of(a_document(commit=commit)))
    world.run()
    written = (folder / ORDER_FILE).read_text()

    assert JOB in written
    assert '"credential":null' in written
    assert '"submit_to":null' in written


def test_a_run_that_is_not_the_one_is_told_so(world: World) -> None:
    world.claims["run_id"] = "7"
    world.scene.anew().start(order())

    with pytest.raises(DoorError, match="is not the run that was started for job single-1"):
        world.run()


def test_a_host_of_another_class_is_told_so_and_the_job_is_lost(world: World) -> None:
    world.scene.anew().start(order())

    with pytest.raises(DoorError, match="landed on a machine of the host class 'large'"):
        world.run(host_class="large")
    assert world.scene.anew().status(JOB) is JobStatus.LOST


def test_a_job_that_nobody_waits_for_is_told_so(world: World) -> None:
    with pytest.raises(DoorError, match="nobody waits for a run of job single-2"):
        world.run(job="single-2")


def test_a_commit_that_cannot_be_had_is_named(world: World) -> None:
    world.scene.anew().start(order(candidate=sha("9")))

    with pytest.raises(DoorError, match=rf"{sha('9')} is not in .* \(fetch-depth: 0\)"):
        world.run()


def test_commits_that_a_checkout_lacks_are_fetched(tmp_path: Path) -> None:
    theirs, mine = GitFork(tmp_path / "theirs.git"), GitFork(tmp_path / "mine.git")
    commit = theirs.push("One")
    mine_config = mine.folder / "config"
    remote = f'[remote "origin"]\n\turl = file://{theirs.folder}\n'
    mine_config.write_text(mine_config.read_text() + remote)
    fetch_commits(order(candidate=commit), mine.folder)
    # It is there now, without anybody to fetch it from.
    theirs.folder.rename(tmp_path / "gone.git")

    fetch_commits(order(candidate=commit), mine.folder)


def test_an_order_is_asked_for_until_the_service_is_back(world: World) -> None:
    world.scene.anew().start(order())
    errand = Errand(job=JOB, service=world.service)
    nowhere = Errand(job=JOB, service="http://127.0.0.1:9")
    asked: list[str] = []

    def token() -> str:
        asked.append("once")
        return "not.a.token"

    with pytest.raises(DoorError, match=r"gave no order: ConnectError"):
        fetch_order(nowhere, host_class="small", token=token, waits_s=(0.0, 0.0))
    assert len(asked) == 3
    with pytest.raises(DoorError, match="gives no order for job single-1: 401"):
        fetch_order(errand, host_class="small", token=token, waits_s=(0.0, 0.0))
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("job", "service"),
    [
        ("../../etc/passwd", "https://perf.example"),
        ("", "https://perf.example"),
        ("single-1", ""),
        ("single-1", "perf.example"),
        ("single-1", "https://perf.example/path"),
        ("single-1", "https://somebody@perf.example"),
        ("single-1", "https://perf.example?x"),
    ],
)
def test_what_is_no_job_or_no_service_is_refused_before_anything_is_asked(
    job: str, service: str
) -> None:
    with pytest.raises(DoorError, match=r"is no name of a job|is no address of a service"):
        Errand(job=job, service=service)
