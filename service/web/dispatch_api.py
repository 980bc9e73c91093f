"""The door for runners that a CI started for the service: they fetch an order and bring its run.

Routes translate HTTP to calls and back. What a token proves is for `core.identity` to say, and what
a run is given for `flows.dispatched_runs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from service.core.errors import CredentialMissingError
from service.flows.ci_orders import HandedOrder  # noqa: TC001  the schema is made from this class
from service.web.api import Credential  # noqa: TC001  FastAPI reads the annotations
from service.web.bodies import BODY_BYTES_MAX, read_body, unpack
from service.web.oidc_credentials import CiToken, HostClass  # noqa: TC001  as Credential
from service.web.problems import documented

if TYPE_CHECKING:
    from service.core.dispatching import DispatchedJob
    from service.core.identity import Identities
    from service.flows.dispatched_runs import DispatchedRuns

JobName = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$",
        description="Job that the run was started for.",
    ),
]
_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/RunDocument"}}},
        "description": "A run document, plain or with `Content-Encoding: gzip`.",
    }
}


class RunReception(StrEnum):
    """What became of a run document."""

    STORED = "stored"
    ALREADY_STORED = "already stored"


@dataclass(frozen=True, kw_only=True)
class BroughtRun:
    """The answer to a run document."""

    job: str
    result: RunReception


def dispatched_router(
    runs: DispatchedRuns, *, identities: Identities, body_bytes_max: int = BODY_BYTES_MAX
) -> APIRouter:
    """Return the router for runs that a CI does for the service.

    Args:
        runs: What they may fetch and bring.
        identities: Tells whose token it is.
        body_bytes_max: Longest body.
    """
    router = APIRouter(prefix="/api/v1/dispatched", tags=["runs"])

    @router.post(
        "/{job}/order",
        summary="Take the order of the job that a run was started for, with its credential",
        responses=documented(401, 403, 404, 422, 503),
    )
    def take_order(
        job: JobName, token: CiToken, host_class: HostClass, response: Response
    ) -> HandedOrder:
        if token is None:
            raise CredentialMissingError(
                "send the token of your CI for this service as 'Authorization: Bearer ...'"
            )
        identity = identities.check(token.credentials)
        # Nobody on the way may keep an answer with a credential.
        response.headers["Cache-Control"] = "no-store"
        return runs.hand_over(identity, job, host_class)

    def bring(dispatched: DispatchedJob, body: bytes, encoding: str) -> bool:
        return runs.bring(dispatched, unpack(body, encoding))

    @router.post(
        "/{job}/run",
        status_code=201,
        summary="Bring the run of a dispatched job; doing it twice stores it once",
        responses=documented(401, 403, 404, 409, 413, 422, 503)
        | {200: {"model": BroughtRun, "description": "Stored already"}},
        openapi_extra=_BODY,
    )
    async def bring_run(
        job: JobName, request: Request, response: Response, credential: Credential
    ) -> BroughtRun:
        if credential is None:
            raise CredentialMissingError
        # Who it is comes before what it brings: a stranger's body is not even read.
        dispatched = await run_in_threadpool(runs.check, job, credential.credentials)
        body = await read_body(request, limit=body_bytes_max)
        encoding = request.headers.get("content-encoding", "").strip().lower()
        new = await run_in_threadpool(bring, dispatched, body, encoding)
        response.status_code = 201 if new else 200
        result = RunReception.STORED if new else RunReception.ALREADY_STORED
        return BroughtRun(job=job, result=result)

    return router
