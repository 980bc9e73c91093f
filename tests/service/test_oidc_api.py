"""Jobs of a CI at the door: they bring the run of their commit, and are told what to measure."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from pydantic import SecretStr

from results.job import JobOrder
from service.channels.oidc import OidcIdentities
from service.core.errors import CredentialMissingError, TransientError
from service.core.identity import LEEWAY, CiSystem, Identity, Issuer
from service.core.model import EventKind, JobKind, JobState
from service.flows.ci_orders import CiOrders, SpentTokens
from service.flows.orders import job_of
from service.flows.steps import CREDENTIAL_GRACE, credential_hash
from service.store import events, jobs, runs
from service.web.api import submissions_router
from service.web.application import web_application
from service.web.oidc_credentials import oidc_router
from service.web.pages import missing_page
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.oidc_issuer import AUDIENCE, REPOSITORY, OidcIssuer, rsa_key
from tests.fakes.run_documents import sha
from tests.fakes.stored_fork import a_fork, git_commit, measured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from results.document import RunDocument
    from service.core.model import Job
    from service.store.database import Database

A, B = sha("a"), sha("b")
JOB_TIME = timedelta(hours=6)
LIMIT = 200_000


@dataclass
class Door:
    """The routes that a job of a CI knocks at, over a database and an issuer."""

    database: Database
    issuer: OidcIssuer
    clock: StillClock = field(default_factory=StillClock)
    woken: list[str] = field(default_factory=list)
    trusting: bool = True

    def __post_init__(self) -> None:
        named = Issuer(
            system=CiSystem.GITHUB,
            url=self.issuer.url,
            audience=AUDIENCE,
            claims={"repository": REPOSITORY},
        )
        identities = OidcIdentities([named], clock=self.clock) if self.trusting else None
        orders = CiOrders(database=self.database, clock=self.clock, job_time=JOB_TIME)
        self.app = web_application(
            [
                submissions_router(
                    self.database,
                    clock=self.clock,
                    stored=lambda job: self.woken.append(job.id),
                    identities=identities,
                    body_bytes_max=LIMIT,
                ),
                oidc_router(orders, identities=identities),
            ],
            missing_page=missing_page,
        )

    def post(self, path: str, token: str | None, **named: Any) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.post(path, headers=headers, **named)

        return asyncio.run(send())

    def token(self, **changes: Any) -> str:
        return self.issuer.sign(self.issuer.github(self.clock.now(), **changes))

    def submit(self, document: RunDocument | bytes, token: str | None) -> httpx.Response:
        body = document if isinstance(document, bytes) else document.model_dump_json().encode()
        return self.post("/api/v1/runs", token, content=body)

    def exchange(self, token: str | None, host_class: str = "small") -> httpx.Response:
        asked = {"host_class": host_class}
        return self.post("/api/v1/credentials/oidc", token, params=asked)

    def order(
        self, document: RunDocument, kind: JobKind = JobKind.SINGLE, *, branch: str = "main"
    ) -> Job:
        """Write down the job of a document; nobody was started on it."""
        order = JobOrder(
            job=document.job,
            run=document.id,
            repository=Path("/nowhere"),
            plan="",
            branch=branch,
            suite="commit",
            host_class=document.host.host_class,
            candidate=document.candidate.commit.sha,
        )
        with self.database.writing() as session:
            return jobs.create_once(session, job_of(order, fork="demo", kind=kind, at=AT))

    def found(self, job: Job) -> Job:
        with self.database.reading() as session:
            found = jobs.find(session, job.id)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def issuer() -> Iterator[OidcIssuer]:
    with OidcIssuer() as issuer:
        yield issuer


@pytest.fixture
def door(database: Database, issuer: OidcIssuer) -> Door:
    with database.writing() as session:
        a_fork(session, git_commit(A), git_commit(B, parent=A))
    return Door(database, issuer)


def a_run_of(commit: str, run: str) -> RunDocument:
    return measured(run, commit, scan=2.0, point=60000.0).build()


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Return status and detail of an answer that has to be problem details."""
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["detail"]


def test_a_job_of_the_ci_brings_the_run_of_its_commit_once(door: Door) -> None:
    document = a_run_of(B, "run-1")
    job = door.order(document)
    token = door.token()

    # The same token again is the same run again: a lost answer costs nothing.
    first, again = door.submit(document, token), door.submit(document, token)
    other = document.model_copy(update={"seed": document.seed + 1})
    changed = door.submit(other, door.token(jti="another"))

    assert (first.status_code, again.status_code) == (201, 200), first.text
    assert first.json() == again.json()
    assert problem(changed)[0] == 409
    assert door.woken == [job.id, job.id]
    assert door.found(job).state is JobState.STORED


def test_the_run_of_another_commit_or_job_is_refused(door: Door) -> None:
    mine, theirs = a_run_of(B, "run-1"), a_run_of(A, "run-2")
    door.order(mine)
    door.order(theirs)
    lies = [
        theirs,
        mine.model_copy(update={"candidate": theirs.candidate}),
        theirs.model_copy(update={"candidate": mine.candidate}),
        mine.model_copy(update={"id": "run-3"}),
        mine.model_copy(update={"fork": "another"}),
        mine.model_copy(update={"baseline": theirs.candidate}),
        mine.model_copy(update={"host": mine.host.model_copy(update={"host_class": "big"})}),
        # What nobody ordered is not taken, of whatever commit it is.
        mine.model_copy(update={"job": "job-of-nobody"}),
        mine.model_copy(update={"job": "zero\0byte"}),
    ]

    assert {problem(door.submit(lie, door.token()))[0] for lie in lies} == {403}
    with door.database.reading() as session:
        assert runs.of_commits(session, "demo", [A, B]) == []
    assert door.woken == []


def test_a_job_of_another_branch_or_of_a_pull_request_brings_nothing(door: Door) -> None:
    document = a_run_of(B, "run-1")
    door.order(document)
    refused = [
        {"ref": "refs/heads/feature"},
        {"ref": "refs/pull/7/merge", "event_name": "pull_request"},
        {"event_name": "pull_request_target"},
        {"event_name": "issue_comment"},
        {"repository": "stranger/mysql"},
    ]

    for changes in refused:
        token = door.token(**changes)
        assert problem(door.submit(document, token))[0] == 403, changes
        assert problem(door.exchange(token))[0] == 403, changes
    with door.database.reading() as session:
        assert runs.of_commits(session, "demo", [B]) == []


def test_a_strangers_body_is_not_even_read(door: Door) -> None:
    huge = b"x" * (LIMIT + 1)
    now = door.clock.now()
    forged = door.issuer.sign(door.issuer.github(now), key=rsa_key("thief"))
    old = door.issuer.sign(door.issuer.github(now - timedelta(hours=1)))

    for token in (forged, old, "e30.e30.", None):
        assert problem(door.submit(huge, token))[0] == 401
        assert problem(door.exchange(token))[0] == 401
    assert problem(door.submit(huge, door.token()))[0] == 413


def test_without_a_ci_in_the_settings_no_token_of_one_is_taken(
    database: Database, issuer: OidcIssuer
) -> None:
    door = Door(database, issuer, trusting=False)
    status, told = problem(door.exchange(door.token()))

    assert (status, "FORKWATCH_OIDC_AUDIENCE" in told) == (401, True)
    assert problem(door.submit(b"", door.token()))[0] == 401


def test_a_job_of_the_ci_asks_what_to_measure_and_brings_it_hours_later(door: Door) -> None:
    document = a_run_of(B, "run-1")
    job = door.order(document)

    answer = door.exchange(door.token())
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    order = JobOrder.model_validate(answer.json()["order"])
    assert (order.job, order.run, order.candidate) == (job.id, "run-1", B)
    assert order.credential is not None
    assert answer.json()["credential_expires_at"].startswith(
        (AT + JOB_TIME + CREDENTIAL_GRACE).strftime("%Y-%m-%dT%H:%M")
    )
    with door.database.reading() as session:
        held = jobs.by_credential(
            session, credential_hash(order.credential.get_secret_value()), at=AT
        )
        told = events.of_commit(session, "demo", B)[-1]
    assert held is not None
    assert (held.id, held.state) == (job.id, JobState.DISPATCHED)
    assert told.kind is EventKind.DISPATCHED
    assert "handed to github run 9001, attempt 1 for host class small" in told.message

    door.clock.advance(JOB_TIME)
    late = door.submit(document, order.credential.get_secret_value())
    assert late.status_code == 201, late.text
    # There is nothing left to ask for.
    assert problem(door.exchange(door.token()))[0] == 404


def test_the_credential_of_an_order_is_for_its_job_alone(door: Door) -> None:
    mine, theirs = a_run_of(B, "run-1"), a_run_of(A, "run-2")
    door.order(mine)
    door.order(theirs)
    order = JobOrder.model_validate(door.exchange(door.token()).json()["order"])
    assert order.credential is not None

    secret = order.credential.get_secret_value()
    assert problem(door.submit(theirs, secret))[0] == 403
    assert door.submit(mine, secret).status_code == 201


def test_a_token_is_exchanged_once_and_a_new_one_takes_the_old_credentials_place(
    door: Door,
) -> None:
    document = a_run_of(B, "run-1")
    door.order(document)
    token = door.token()
    first = door.exchange(token).json()["order"]["credential"]

    status, told = problem(door.exchange(token))
    assert (status, "used before" in told) == (401, True)
    second = door.exchange(door.token(jti="of-attempt-2", run_attempt="2")).json()["order"]
    assert problem(door.submit(document, first))[0] == 401
    assert door.submit(document, second["credential"]).status_code == 201


def test_the_oldest_job_of_the_commit_on_the_host_class_is_handed_over(door: Door) -> None:
    single, confirm = a_run_of(B, "run-1"), a_run_of(B, "run-2")
    door.order(single)
    door.order(confirm, JobKind.CONFIRM)
    elsewhere = door.token(jti="0", sha=A)

    assert problem(door.exchange(elsewhere))[0] == 404
    assert problem(door.exchange(door.token(jti="1"), "big"))[0] == 404
    first = door.exchange(door.token(jti="2")).json()["order"]
    door.submit(single, first["credential"])
    second = door.exchange(door.token(jti="3")).json()["order"]
    assert (first["job"], second["job"]) == ("job-of-run-1", "job-of-run-2")
    # A token for which there was nothing is not spent.
    door.order(a_run_of(A, "run-3"))
    assert door.exchange(elsewhere).json()["order"]["job"] == "job-of-run-3"


def test_an_order_of_another_branch_is_refused(door: Door) -> None:
    door.order(a_run_of(B, "run-1"), branch="release")
    status, told = problem(door.exchange(door.token()))
    assert (status, "is of 'release'" in told) == (403, True)


@pytest.mark.parametrize("host_class", ["", "x" * 65, "zero\0byte", "two\nlines"])
def test_a_host_class_has_a_name(door: Door, host_class: str) -> None:
    assert problem(door.exchange(door.token(), host_class))[0] == 422


def test_an_issuer_that_is_away_is_a_reason_to_try_again(
    database: Database, issuer: OidcIssuer
) -> None:
    with OidcIssuer() as gone:
        door = Door(database, gone)
    answers = (door.exchange(door.token()), door.submit(b"", door.token()))
    assert {problem(answer)[0] for answer in answers} == {503}


def test_every_status_is_documented(door: Door) -> None:
    paths = door.app.openapi()["paths"]
    assert {"401", "403", "503"} <= set(paths["/api/v1/runs"]["post"]["responses"])
    exchange = paths["/api/v1/credentials/oidc"]["post"]["responses"]
    assert set(exchange) == {"200", "401", "403", "404", "422", "429", "503"}


def test_an_order_does_not_show_its_credential_by_accident(door: Door) -> None:
    door.order(a_run_of(B, "run-1"))
    answer = door.exchange(door.token()).json()
    order = JobOrder.model_validate(answer["order"])

    assert isinstance(order.credential, SecretStr)
    assert order.credential.get_secret_value() not in repr(order)


def an_identity(digest: str, *, minutes: int = 5) -> Identity:
    return Identity(
        system=CiSystem.GITHUB,
        commit=A,
        branch="main",
        run="",
        digest=digest,
        expires_at=AT + timedelta(minutes=minutes),
    )


def test_tokens_are_remembered_for_as_long_as_they_are_good() -> None:
    spent = SpentTokens(at_most=2)
    spent.spend(an_identity("1"), at=AT)
    spent.spend(an_identity("2", minutes=9), at=AT)
    with pytest.raises(CredentialMissingError, match="used before"):
        spent.spend(an_identity("1"), at=AT)
    # Better no order for a while than a token that is forgotten while it is good.
    with pytest.raises(TransientError, match="too many"):
        spent.spend(an_identity("3"), at=AT)

    over = AT + timedelta(minutes=5) + LEEWAY
    spent.spend(an_identity("3", minutes=20), at=over)
    with pytest.raises(CredentialMissingError):
        spent.spend(an_identity("2", minutes=9), at=over)
