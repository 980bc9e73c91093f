from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from results.job import JobOrder
from service.core.errors import TooLargeError
from service.core.model import JobKind, JobState
from service.core.tokens import Scope
from service.flows.orders import job_of
from service.flows.steps import credential_hash
from service.flows.tokens import Tokens
from service.store import events, jobs, runs, verdicts
from service.web import api
from service.web.application import web_application
from service.web.bodies import unpack
from service.web.health import Part, health_router
from service.web.pages import missing_page
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.run_documents import sha
from tests.fakes.stored_fork import a_fork, a_stored_run, a_week, git_commit, measured
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from results.document import RunDocument
    from service.core.model import Job
    from service.store.database import Database

A, B = sha("a"), sha("b")
LIMIT = 200_000


@dataclass
class Caller:
    """Somebody who calls the API of a service over a database."""

    database: Database
    clock: StillClock = field(default_factory=StillClock)
    woken: list[str] = field(default_factory=list)
    working: bool = True

    def __post_init__(self) -> None:
        routers = [
            api.submissions_router(
                self.database,
                clock=self.clock,
                stored=lambda job: self.woken.append(job.id),
                tokens=Tokens(database=self.database, clock=self.clock),
                body_bytes_max=LIMIT,
            ),
            api.commits_router(self.database),
            api.samples_router(self.database),
            health_router([Part(name="branch", fault=self.fault)]),
        ]
        self.app = web_application(routers, missing_page=missing_page)

    def fault(self) -> str | None:
        return None if self.working else "not followed"

    def call(self, method: str, path: str, **named: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, **named)

        return asyncio.run(send())

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def submit(
        self, document: RunDocument | bytes, credential: str | None, **headers: str
    ) -> httpx.Response:
        body = document if isinstance(document, bytes) else document.model_dump_json().encode()
        if credential is not None:
            headers["Authorization"] = f"Bearer {credential}"
        return self.call("POST", "/api/v1/runs", content=body, headers=headers)

    def mint(self, document: RunDocument, credential: str) -> Job:
        """Write down the job of a document, with a credential that is good for an hour."""
        order = JobOrder(
            job=document.job,
            run=document.id,
            repository=Path("/nowhere"),
            plan="",
            branch="main",
            suite="commit",
            host_class=document.host.host_class,
            candidate=document.candidate.commit.sha,
        )
        with self.database.writing() as session:
            job = job_of(order, fork="demo", kind=JobKind.SINGLE, at=AT)
            jobs.create_once(session, job)
            return jobs.begin_attempt(
                session,
                job.id,
                1,
                credential_hash=credential_hash(credential),
                expires_at=AT + timedelta(hours=1),
            )


def a_run_of(commit: str, run: str) -> RunDocument:
    return measured(run, commit, scan=2.0, point=60000.0).build()


@pytest.fixture
def caller(database: Database) -> Iterator[Caller]:
    with database.writing() as session:
        a_fork(session, git_commit(A), git_commit(B, parent=A))
    return Caller(database)


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Return status and detail of an answer that has to be problem details."""
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    return answer.status_code, told["detail"]


def test_a_run_is_stored_once_and_wakes_its_flow(caller: Caller) -> None:
    document = a_run_of(A, "run-1")
    job = caller.mint(document, "secret")

    first = caller.submit(document, "secret")
    packed = gzip.compress(document.model_dump_json(indent=2).encode())
    again = caller.submit(packed, "secret", **{"Content-Encoding": "gzip"})

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first.json()["id"] == "run-1"
    assert caller.woken == [job.id, job.id]
    with caller.database.reading() as session:
        assert [run.id for run in runs.of_commit(session, "demo", A)] == ["run-1"]
        found = jobs.find(session, job.id)
        assert [event.kind for event in events.of_commit(session, "demo", A)] == ["seen", "stored"]
    assert found is not None
    assert found.state is JobState.STORED


def test_the_same_id_with_other_content_is_a_conflict(caller: Caller) -> None:
    document = a_run_of(A, "run-1")
    caller.mint(document, "secret")
    caller.submit(document, "secret")
    other = document.model_copy(update={"seed": document.seed + 1})

    status, detail = problem(caller.submit(other, "secret"))
    assert (status, "other content" in detail) == (409, True)


def test_a_credential_is_for_its_own_job_and_run_only(caller: Caller) -> None:
    mine, theirs = a_run_of(A, "run-1"), a_run_of(B, "run-2")
    caller.mint(mine, "mine")
    caller.mint(theirs, "theirs")
    lies = [
        theirs,
        mine.model_copy(update={"id": "run-3"}),
        mine.model_copy(update={"fork": "another"}),
        mine.model_copy(update={"candidate": theirs.candidate}),
        mine.model_copy(update={"baseline": theirs.candidate}),
        mine.model_copy(update={"host": mine.host.model_copy(update={"host_class": "big"})}),
    ]

    assert {problem(caller.submit(lie, "mine"))[0] for lie in lies} == {403}
    with caller.database.reading() as session:
        assert runs.of_commits(session, "demo", [A, B]) == []
    assert caller.woken == []


def test_a_token_that_may_submit_brings_the_run_of_any_job_that_was_ordered(caller: Caller) -> None:
    tokens = Tokens(database=caller.database, clock=caller.clock)
    _, good = tokens.create("importer", [Scope.SUBMIT])
    _, other = tokens.create("reader", [Scope.READ, Scope.ACT])
    document, unasked = a_run_of(A, "run-1"), a_run_of(B, "run-2")
    job = caller.mint(document, "secret")
    lie = document.model_copy(update={"candidate": unasked.candidate})

    assert problem(caller.submit(document, other))[0] == 403
    assert problem(caller.submit(unasked, good)) == (
        403,
        "no job 'job-of-run-2' was ordered here",
    )
    assert problem(caller.submit(lie, good))[0] == 403
    assert caller.submit(document, good).status_code == 201
    assert caller.woken == [job.id]


def test_without_a_good_credential_the_body_is_not_even_read(caller: Caller) -> None:
    document = a_run_of(A, "run-1")
    caller.mint(document, "secret")
    huge = b"x" * (LIMIT + 1)

    answers = [caller.submit(huge, None), caller.submit(huge, "guess")]
    caller.clock.advance(timedelta(hours=2))
    answers.append(caller.submit(document, "secret"))

    assert {problem(answer)[0] for answer in answers} == {401}
    assert all(answer.headers["www-authenticate"].startswith("Bearer") for answer in answers)


def test_a_body_that_is_too_large_is_refused(caller: Caller) -> None:
    caller.mint(a_run_of(A, "run-1"), "secret")

    async def drip() -> Any:
        for _ in range(LIMIT // 1000 + 1):
            yield b"x" * 1000

    said = caller.submit(b"x" * (LIMIT + 1), "secret")
    found = caller.call(
        "POST", "/api/v1/runs", content=drip(), headers={"Authorization": "Bearer secret"}
    )
    assert problem(said)[0] == problem(found)[0] == 413


def test_a_body_that_is_no_run_document_is_refused_with_its_faults(caller: Caller) -> None:
    document = a_run_of(A, "run-1")
    caller.mint(document, "secret")
    text = document.model_dump_json().encode()
    packed = gzip.compress(text)
    gz = {"Content-Encoding": "gzip"}
    cases = [
        (b"{}", {}, "Field required"),
        (b"not json", {}, "Invalid JSON"),
        (text.replace(b'"throughput_ops_s":', b'"speed":'), {}, "Extra inputs"),
        (text, gz, "not gzip"),
        (packed[:-20], gz, "cut short"),
        (packed + b"more", gz, "after the end"),
        (text, {"Content-Encoding": "br"}, "'br' is not known"),
    ]

    for body, headers, expected in cases:
        status, detail = problem(caller.submit(body, "secret", **headers))
        assert (status, expected in detail) == (422, True), detail


def test_a_small_body_that_unpacks_to_a_large_one_is_refused() -> None:
    bomb = gzip.compress(b"\0" * 1_000_000)
    assert len(unpack(bomb, "gzip", limit=1_000_001)) == 1_000_000
    with pytest.raises(TooLargeError):
        unpack(bomb, "gzip", limit=999_999)


def test_what_is_stored_can_be_read(database: Database) -> None:
    with database.writing() as session:
        a_week(session)
    caller = Caller(database)
    slow = sha("5")

    assert [fork["name"] for fork in caller.get("/api/v1/forks")] == ["demo"]
    listed = caller.get("/api/v1/commits?fork=demo&limit=3")
    assert [commit["position"] for commit in listed] == [7, 6, 5]
    older = caller.get("/api/v1/commits?fork=demo&before=2")
    assert [commit["position"] for commit in older] == [1, 0]
    whole = caller.get(f"/api/v1/commits/demo/{slow}")
    assert whole["commit"]["outcome"] == "regression"
    assert {run["kind"] for run in whole["runs"]} == {"single", "confirm"}
    assert whole["alert"]["workloads"][0]["workload"] == "scan"
    assert "credential" not in str(whole)
    run = caller.get("/api/v1/runs/run-5c")
    assert run["document"]["baseline"]["commit"]["sha"] == sha("4")
    assert {v["decision"] for v in run["verdicts"]} == {"regression", "no-change"}
    [key] = caller.get("/api/v1/series?fork=demo&workload=scan&metric=throughput_ops_s")
    detail = caller.get(f"/api/v1/series/{key['id']}")
    assert [point["samples"]["run"] for point in detail["points"]][:2] == ["run-1", "run-2"]
    assert len(detail["verdicts"]) == 5
    first = caller.get("/api/v1/events?limit=2")
    after = caller.get(f"/api/v1/events?after={first[-1]['id']}&limit=1")
    assert after[0]["id"] == first[-1]["id"] + 1


def test_what_is_not_there_or_asked_wrongly_is_a_problem(caller: Caller) -> None:
    for path in (
        "/api/v1/commits/demo/" + "0" * 40,
        "/api/v1/runs/none",
        "/api/v1/series/none",
        "/api/v1/none",
    ):
        assert problem(caller.call("GET", path))[0] == 404
    assert problem(caller.call("GET", "/api/v1/commits"))[0] == 422
    assert problem(caller.call("GET", "/api/v1/commits?fork=demo&limit=0"))[0] == 422
    assert problem(caller.call("DELETE", "/api/v1/runs"))[0] == 405
    page = caller.call("GET", "/none")
    assert (page.status_code, page.headers["content-type"][:9]) == (404, "text/html")


def test_infinite_bounds_are_told_as_null(caller: Caller) -> None:
    """A pair of one start has an infinite interval, and JSON has no infinity."""
    with caller.database.writing() as session:
        story = measured("run-1", A, scan=2.0, point=60000.0)
        a_stored_run(session, story, {"point-query": a_verdict(0.0, low=-1.0, high=1.0)})
        [one] = verdicts.of_run(session, "run-1")
        series = replace(one.series, workload="scan")
        wide = replace(one, low=float("-inf"), high=float("inf"), series=series)
        verdicts.store_once(session, [wide])

    found = caller.get("/api/v1/runs/run-1")["verdicts"]
    assert [(v["low"], v["high"]) for v in found if v["series"]["workload"] == "scan"] == [
        (None, None)
    ]


def test_ready_means_that_the_branch_is_followed_and_the_database_answers(
    caller: Caller,
) -> None:
    assert caller.get("/healthz") == {"status": "ok"}
    assert caller.get("/readyz") == {"status": "ready"}
    caller.working = False
    assert problem(caller.call("GET", "/readyz"))[0] == 503


def test_the_schema_documents_every_status_of_a_submission(caller: Caller) -> None:
    schema = caller.get("/openapi.json")
    submission = schema["paths"]["/api/v1/runs"]["post"]
    components = schema["components"]["schemas"]

    assert {"200", "201", "401", "403", "409", "413", "422"} <= set(submission["responses"])
    reference = submission["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert reference.rpartition("/")[2] in components
    assert {"Problem", "CommitRecord", "VerdictRecord"} <= set(components)
    problem_ = submission["responses"]["409"]["content"]["application/problem+json"]
    assert problem_["schema"]["$ref"].endswith("/Problem")
