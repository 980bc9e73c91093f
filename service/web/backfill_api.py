"""The API about backfills: asking for one, seeing how far it is, ending it.

Routes translate HTTP to calls and back; they decide nothing about the domain. Asking and ending
cost machine time and need a token with the scope `operate`; a body is read only after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.core.alert_actions import OrderVia
from service.core.backfills import (
    COMMITS_MAX,
    Backfill,
    BackfillOrder,
    BackfillProgress,
)
from service.core.errors import BadDocumentError
from service.core.tokens import Scope
from service.web.alert_api import Name  # noqa: TC001  routes read their annotations
from service.web.bisect_api import faults_of
from service.web.bodies import read_body
from service.web.credentials import Bearer  # noqa: TC001  as above
from service.web.problems import documented

if TYPE_CHECKING:
    from service.flows.backfill import Backfills
    from service.web.credentials import Guard

#: An order is two words.
BODY_BYTES_MAX: Final = 4 * 1024


class BackfillBody(BaseModel):
    """How many past commits are to be measured."""

    model_config = ConfigDict(extra="forbid")

    commits: int = Field(
        ge=1, le=COMMITS_MAX, description="The newest so many before the first one seen."
    )
    order: BackfillOrder = Field(
        default=BackfillOrder.SPREAD,
        description="`spread`: ends, then middles of gaps; or `oldest-first`.",
    )


def backfills_router(asks: Backfills, *, guard: Guard) -> APIRouter:
    """Return the router that takes orders about backfills and tells how far they are."""
    router = APIRouter(prefix="/api/v1/forks/{fork}/backfill", tags=["backfills"])

    @router.get(
        "",
        summary="Backfills of a fork, newest first",
        responses=documented(401, 403, 422),
        dependencies=[Depends(guard.reader())],
    )
    def list_backfills(fork: Name) -> list[BackfillProgress]:
        return asks.newest(fork)

    @router.post(
        "",
        status_code=201,
        summary="Measure past commits for the baseline; one backfill at a time",
        responses=documented(401, 403, 404, 409, 413, 422, 503),
        openapi_extra=_body(),
    )
    async def begin(fork: Name, request: Request, bearer: Bearer) -> Backfill:
        token = await run_in_threadpool(guard.require, bearer, None, Scope.OPERATE)
        body = _read(await read_body(request, limit=BODY_BYTES_MAX))

        def ask() -> Backfill:
            actor, via = f"token:{token.name}", OrderVia.API.value
            return asks.ask(fork, body.commits, order=body.order, actor=actor, via=via)

        return await run_in_threadpool(ask)

    @router.post(
        "/cancel",
        summary="End the backfill that is under way; what was measured stays",
        responses=documented(401, 403, 404, 422),
    )
    def cancel(fork: Name, bearer: Bearer) -> BackfillProgress:
        token = guard.require(bearer, None, Scope.OPERATE)
        return asks.cancel(fork, actor=f"token:{token.name}")

    return router


def _body() -> dict[str, Any]:
    """Return the OpenAPI description of the body, which the route reads by itself."""
    schema = BackfillBody.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _read(body: bytes) -> BackfillBody:
    """Return a body as a value.

    Raises:
        BadDocumentError: It is something else; each fault is named.
    """
    try:
        return BackfillBody.model_validate_json(body)
    except ValidationError as error:
        raise BadDocumentError(faults_of(error)) from error
