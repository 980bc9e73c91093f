"""The door for runs that a CI does for the service, with tokens that an issuer has signed."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from service.channels.oidc import OidcIdentities
from service.core.identity import CiSystem, Issuer
from service.core.model import JobStatus
from service.web.application import web_application
from service.web.dispatch_api import dispatched_router
from service.web.pages import missing_page
from tests.fakes.dispatch_scene import JOB, Scene, a_document, a_scene, order, text_of
from tests.fakes.oidc_issuer import AUDIENCE, PIPELINE, REPOSITORY, OidcIssuer
from tests.fakes.run_documents import sha

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.store.database import Database

LIMIT = 200_000


@pytest.fixture(scope="module")
def issuer() -> Iterator[OidcIssuer]:
    with OidcIssuer() as issuer:
        yield issuer


class Door:
    """The routes, over a database and an issuer."""

    def __init__(self, scene: Scene, issuer: OidcIssuer) -> None:
        self.scene, self.issuer = scene, issuer
        owner, _, slug = PIPELINE.partition("/")
        names = {"organization_slug": owner, "pipeline_slug": slug}
        claims = {CiSystem.GITHUB: {"repository": REPOSITORY}, CiSystem.BUILDKITE: names}
        system = scene.ci.system
        named = Issuer(system=system, url=issuer.url, audience=AUDIENCE, claims=claims[system])
        identities = OidcIdentities([named], clock=scene.clock)
        router = dispatched_router(scene.runs(), identities=identities, body_bytes_max=LIMIT)
        self.app = web_application([router], missing_page=missing_page)

    def post(self, path: str, secret: str | None, **named: Any) -> httpx.Response:
        headers = named.pop("headers", {})
        if secret is not None:
            headers |= {"Authorization": f"Bearer {secret}"}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.post(path, headers=headers, **named)

        return asyncio.run(send())

    def token(self, **changes: Any) -> str:
        """Return the token of a run that was dispatched."""
        about = {"event_name": "workflow_dispatch", "run_id": "100", "sha": sha("e")}
        return self.issuer.sign(self.issuer.github(self.scene.clock.now(), **(about | changes)))

    def ask(
        self, secret: str | None, *, job: str = JOB, host_class: str = "small"
    ) -> httpx.Response:
        path = f"/api/v1/dispatched/{job}/order"
        return self.post(path, secret, params={"host_class": host_class})

    def bring(self, secret: str | None, body: bytes, **named: Any) -> httpx.Response:
        return self.post(f"/api/v1/dispatched/{JOB}/run", secret, content=body, **named)


@pytest.fixture
def door(kept_database: Database, issuer: OidcIssuer) -> Door:
    scene = a_scene(kept_database)
    scene.anew().start(order())
    return Door(scene, issuer)


def test_a_run_fetches_its_order_and_brings_its_run_once(door: Door) -> None:
    asked = door.ask(door.token())
    assert asked.status_code == 200
    assert asked.headers["cache-control"] == "no-store"
    given = asked.json()["order"]
    assert (given["job"], given["candidate"], given["host_class"]) == (JOB, sha("b"), "small")

    packed = {"headers": {"Content-Encoding": "gzip"}}
    brought = door.bring(given["credential"], gzip.compress(text_of(a_document())), **packed)
    assert (brought.status_code, brought.json()) == (201, {"job": JOB, "result": "stored"})
    again = door.bring(given["credential"], text_of(a_document()))
    assert (again.status_code, again.json()["result"]) == (200, "already stored")
    other = door.bring(given["credential"], text_of(a_document(level=3.0)))
    assert other.status_code == 409
    assert door.scene.anew().status(JOB) is JobStatus.FINISHED
    assert door.ask(door.token()).status_code == 404


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"run_id": "7"}, 403),
        ({"ref": "refs/heads/evil"}, 403),
        ({"ref": "refs/pull/7/merge"}, 403),
        ({"event_name": "pull_request_target"}, 403),
        ({"repository": "mallory/mysql"}, 403),
        ({"aud": "https://elsewhere.example"}, 401),
    ],
)
def test_any_other_run_is_given_nothing(door: Door, changes: dict[str, Any], status: int) -> None:
    answer = door.ask(door.token(**changes))

    assert answer.status_code == status
    assert "credential" not in answer.text.lower() or "order" not in answer.json()


def test_who_does_not_say_who_they_are_is_not_listened_to(door: Door) -> None:
    assert door.ask(None).status_code == 401
    assert door.ask("made-up").status_code == 401
    assert door.bring(None, b"x" * (LIMIT + 1)).status_code == 401
    assert door.bring("made-up", b"x" * (LIMIT + 1)).status_code == 401


def test_what_is_no_job_or_no_run_is_refused(door: Door) -> None:
    credential = door.ask(door.token()).json()["order"]["credential"]

    assert door.ask(door.token(), job="single-2").status_code == 404
    assert door.ask(door.token(), job="..%2Fsecrets").status_code in {404, 422}
    assert door.ask(door.token(), host_class="").status_code == 422
    assert door.bring(credential, b"{}").status_code == 422
    assert door.bring(credential, b"x" * (LIMIT + 1)).status_code == 413
    assert door.bring(credential, text_of(a_document("single-2"))).status_code == 403


def test_a_machine_of_another_host_class_is_told_what_to_correct(door: Door) -> None:
    answer = door.ask(door.token(), host_class="large")

    assert answer.status_code == 403
    assert "FORKWATCH_HOST_CLASS" in answer.json()["detail"]
    assert door.scene.anew().status(JOB) is JobStatus.LOST


def test_a_build_of_buildkite_proves_itself_by_its_number(
    kept_database: Database, issuer: OidcIssuer
) -> None:
    scene = a_scene(kept_database)
    scene.ci.system = CiSystem.BUILDKITE
    scene.anew().start(order())
    door = Door(scene, issuer)

    def token(number: int) -> str:
        return issuer.sign(issuer.buildkite(scene.clock.now(), build_number=number))

    assert door.ask(token(17)).status_code == 403
    assert door.ask(token(100)).json()["order"]["job"] == JOB
