"""The API: runs come in, what is known goes out, as JSON under `/api/v1`.

Routes translate HTTP to calls and back; they decide nothing about the domain. A runner may submit
the one run its credential was minted for, a token with the scope `submit` that of any job. Who may
read is decided where the routers are put together.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Query, Request, Response, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from results.document import RunDocument  # noqa: TC001  the schema is made from these classes
from results.log_lines import about
from service.core.errors import (
    CredentialMissingError,
    CredentialRefusedError,
    NotFoundError,
)
from service.core.identity import Identity, check_may_submit, is_identity_token
from service.core.model import (
    Alert,
    CommitRecord,
    Event,
    Fork,
    Job,
    SeriesPoint,
    StoredRun,
    VerdictRecord,
)
from service.core.tokens import Scope
from service.flows.intake import parse_document, take_run
from service.flows.steps import credential_hash
from service.store import alerts, commits, events, forks, jobs, runs, series, verdicts
from service.web.bodies import BODY_BYTES_MAX, read_body, unpack
from service.web.parameters import (
    NUMBER_MAX,
    ForkName,
    Limit,
    PathName,
    QueryName,
)
from service.web.problems import documented

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session

    from results.series import SeriesKey
    from service.core.clock import Clock
    from service.core.identity import Identities
    from service.flows.tokens import Tokens
    from service.store.database import Database

_BEARER: Final = HTTPBearer(auto_error=False, description="The job's credential, or a token.")
Credential = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
_RUN_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/RunDocument"}}},
        "description": "A run document, plain or with `Content-Encoding: gzip`.",
    }
}


@dataclass(frozen=True, kw_only=True)
class CommitView:
    """A commit with all that happened to it."""

    commit: CommitRecord
    jobs: list[Job]
    runs: list[StoredRun]
    verdicts: list[VerdictRecord]
    alert: Alert | None
    events: list[Event]


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run with its verdicts and the whole document."""

    run: StoredRun
    verdicts: list[VerdictRecord]
    document: RunDocument


@dataclass(frozen=True, kw_only=True)
class SeriesView:
    """A series by its identity."""

    id: str
    fork: str
    branch: str
    host_class: str
    variant: str
    config: str
    workload: str
    metric: str
    dataset: str
    placement: str


@dataclass(frozen=True, kw_only=True)
class SeriesDetail:
    """A series with its points and verdicts, oldest first."""

    series: SeriesView
    points: list[SeriesPoint]
    verdicts: list[VerdictRecord]


def submissions_router(
    database: Database,
    *,
    clock: Clock,
    stored: Callable[[Job], None],
    tokens: Tokens | None = None,
    identities: Identities | None = None,
    body_bytes_max: int = BODY_BYTES_MAX,
) -> APIRouter:
    """Return the router that takes runs in.

    Args:
        database: Where they go.
        clock: Tells the time.
        stored: Told when a job's run is in the store.
        tokens: Those with the scope `submit` may bring the run of any job; none where absent.
        identities: Tells which job of a CI may bring the run of its commit; none where absent.
        body_bytes_max: Longest body.
    """
    router = APIRouter(prefix="/api/v1", tags=["runs"])

    def authorise(credential: HTTPAuthorizationCredentials | None) -> Job | Identity | None:
        """Return the job of a job's credential, or the identity of a job of a CI.

        None is for a token that may submit any job's run.
        """
        if credential is None:
            raise CredentialMissingError
        if identities is not None and is_identity_token(credential.credentials):
            return identities.check(credential.credentials)
        with database.reading() as session:
            job = jobs.by_credential(
                session, credential_hash(credential.credentials), at=clock.now()
            )
        if job is None and tokens is None:
            raise CredentialMissingError("this credential is not known, or no longer good")
        if job is None and tokens is not None:
            tokens.check(credential.credentials, Scope.SUBMIT)
        return job

    def take(who: Job | Identity | None, body: bytes, encoding: str) -> tuple[StoredRun, bool]:
        document = parse_document(unpack(body, encoding))
        with database.writing() as session:
            job = who if isinstance(who, Job) else _ordered(session, document)
            if isinstance(who, Identity):
                check_may_submit(who, job)
            run, created = take_run(session, document, job, at=clock.now())
        with about(commit=(job.fork, job.sha), job=job.id):
            stored(job)
        return run, created

    @router.post(
        "/runs",
        status_code=201,
        summary="Submit the run of a job; doing it twice stores it once",
        responses=documented(401, 403, 409, 413, 422, 503)
        | {200: {"model": StoredRun, "description": "Stored already"}},
        openapi_extra=_RUN_BODY,
    )
    async def submit_run(request: Request, response: Response, credential: Credential) -> StoredRun:
        # Who it is comes before what it brings: a stranger's body is not even read.
        who = await run_in_threadpool(authorise, credential)
        body = await read_body(request, limit=body_bytes_max)
        encoding = request.headers.get("content-encoding", "").strip().lower()
        run, created = await run_in_threadpool(take, who, body, encoding)
        response.status_code = 201 if created else 200
        return run

    return router


def commits_router(database: Database) -> APIRouter:
    """Return the router that tells about forks, their commits and what happened to them."""
    router = APIRouter(prefix="/api/v1", tags=["commits"])

    @router.get("/forks", summary="All watched forks")
    def list_forks() -> list[Fork]:
        with database.reading() as session:
            return forks.everything(session)

    @router.get("/commits", summary="Commits of a fork, newest first", responses=documented(422))
    def list_commits(
        fork: ForkName,
        before: Annotated[
            int | None,
            # Commits of a backfill have negative positions.
            Query(ge=-NUMBER_MAX, le=NUMBER_MAX, description="Position to page on from."),
        ] = None,
        limit: Limit = 100,
    ) -> list[CommitRecord]:
        with database.reading() as session:
            return commits.newest(session, fork, limit=limit, before=before)

    @router.get(
        "/commits/{fork}/{sha}", summary="One commit, whole", responses=documented(404, 422)
    )
    def show_commit(fork: PathName, sha: PathName) -> CommitView:
        with database.reading() as session:
            commit = commits.find(session, fork, sha)
            if commit is None:
                raise NotFoundError(f"fork {fork!r} has no commit {sha!r} here")
            return CommitView(
                commit=commit,
                jobs=jobs.of_commit(session, fork, sha),
                runs=runs.of_commit(session, fork, sha),
                verdicts=verdicts.of_commit(session, fork, sha),
                alert=alerts.of_commit(session, fork, sha),
                events=events.of_commit(session, fork, sha),
            )

    @router.get("/events", summary="What happened, oldest first", responses=documented(422))
    def list_events(
        after: Annotated[
            int, Query(ge=0, le=NUMBER_MAX, description="Id of the last event already seen.")
        ] = 0,
        fork: QueryName = None,
        limit: Limit = 200,
    ) -> list[Event]:
        with database.reading() as session:
            return events.after(session, after, fork=fork, limit=limit)

    return router


def samples_router(database: Database) -> APIRouter:
    """Return the router that tells about runs and series."""
    router = APIRouter(prefix="/api/v1", tags=["samples"])

    @router.get("/runs/{run_id}", summary="One run, whole", responses=documented(404, 422))
    def show_run(run_id: PathName) -> RunView:
        with database.reading() as session:
            run = runs.find(session, run_id)
            if run is None:
                raise NotFoundError(f"there is no run {run_id!r}")
            return RunView(
                run=run,
                verdicts=verdicts.of_run(session, run_id),
                document=runs.document(session, run_id),
            )

    @router.get("/series", summary="Series of a fork", responses=documented(422))
    def list_series(
        fork: ForkName,
        workload: QueryName = None,
        metric: QueryName = None,
    ) -> list[SeriesView]:
        with database.reading() as session:
            found = series.of_fork(session, fork, workload=workload, metric=metric)
        return [_series_view(key) for key in found]

    @router.get("/series/{series_id}", summary="One series", responses=documented(404, 422))
    def show_series(series_id: PathName) -> SeriesDetail:
        with database.reading() as session:
            key = series.find(session, series_id)
            if key is None:
                raise NotFoundError(f"there is no series {series_id!r}")
            return SeriesDetail(
                series=_series_view(key),
                points=series.points(session, series_id),
                verdicts=verdicts.of_series(session, series_id),
            )

    return router


def _ordered(session: Session, document: RunDocument) -> Job:
    """Return the job that a document says it is of."""
    # PostgreSQL has no text with a zero byte, and so no job of that name.
    job = None if "\0" in document.job else jobs.find(session, document.job)
    if job is None:
        raise CredentialRefusedError(f"no job {document.job!r} was ordered here")
    return job


def _series_view(key: SeriesKey) -> SeriesView:
    return SeriesView(id=key.id, **asdict(key))
