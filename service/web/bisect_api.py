"""The API about bisects: which there are, what they know, asking for one and ending one.

Routes translate HTTP to calls and back; they decide nothing about the domain. Asking and ending
need a token with the scope `act`, and a body is read only after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bisects.document import BisectDocument  # noqa: TC001  the schema is made from it
from service.core.alert_actions import OrderVia
from service.core.bisections import (
    BUDGET_MINUTES_MAX,
    BUDGET_MINUTES_USUAL,
    STOP_MAX,
    STOP_MIN,
    STOP_USUAL,
    Bisect,
    BisectAsk,
)
from service.core.errors import BadDocumentError, NotFoundError
from service.core.tokens import Scope
from service.flows.alert_actions import NAME_LENGTH_MAX
from service.store import bisects
from service.web.alert_api import ForkName, Name  # noqa: TC001  routes read their annotations
from service.web.bodies import read_body
from service.web.credentials import Bearer  # noqa: TC001  as above
from service.web.problems import documented

if TYPE_CHECKING:
    from service.flows.bisect_asks import BisectAsks
    from service.store.database import Database
    from service.web.credentials import Guard

#: A question is a few names.
BODY_BYTES_MAX: Final = 16 * 1024
#: PostgreSQL's texts have no zero byte, and git's names no blank.
_WORD: Final = r"^[^\x00-\x20]+$"
_Word = Annotated[str, Field(max_length=NAME_LENGTH_MAX, pattern=_WORD)]
_Id = Annotated[str | None, Query(max_length=NAME_LENGTH_MAX, pattern=r"^[^\x00]+$")]


class BisectBody(BaseModel):
    """A question: a range with a workload, or the alert whose range it is."""

    model_config = ConfigDict(extra="forbid")

    good: _Word | None = Field(default=None, description="The last good commit, by any name.")
    bad: _Word | None = Field(default=None, description="The first commit known to be slow.")
    workload: _Word | None = Field(
        default=None, description="May be left out where the suite has one."
    )
    suite: _Word | None = Field(default=None, description="The service's own where absent.")
    host_class: _Word | None = Field(default=None, description="The service's own where absent.")
    stop: float = Field(
        default=STOP_USUAL, ge=STOP_MIN, le=STOP_MAX, description="Probability to stop at."
    )
    budget_minutes: float = Field(
        default=BUDGET_MINUTES_USUAL,
        ge=1,
        le=BUDGET_MINUTES_MAX,
        description="Minutes of building and measuring, at most.",
    )
    alert: _Word | None = Field(default=None, description="In place of a range and a workload.")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> BisectBody:
        given = self.model_fields_set - {"alert"}
        if self.alert is not None and given:
            raise ValueError("an alert has its own range and workload; give nothing beside it")
        if self.alert is None and (self.good is None or self.bad is None):
            raise ValueError("give good and bad, or an alert")
        return self


@dataclass(frozen=True, kw_only=True)
class BisectView:
    """A bisect with everything that it knows."""

    bisect: Bisect
    #: None before the first measurement.
    document: BisectDocument | None


def bisects_router(database: Database, *, asks: BisectAsks, guard: Guard) -> APIRouter:
    """Return the router that tells about bisects, takes questions, and ends them."""
    router = APIRouter(prefix="/api/v1", tags=["bisects"])
    reading = [Depends(guard.reader())]

    @router.get(
        "/bisects",
        summary="Bisects, newest first",
        responses=documented(401, 403, 422),
        dependencies=reading,
    )
    def list_bisects(
        fork: ForkName = None,
        alert: _Id = None,
        before: _Id = None,
        limit: Annotated[int, Query(ge=1, le=200, description="Rows at most.")] = 100,
    ) -> list[Bisect]:
        with database.reading() as session:
            return bisects.newest(session, fork, alert=alert, before=before, limit=limit)

    @router.get(
        "/bisects/{bisect_id}",
        summary="One bisect, whole",
        responses=documented(401, 403, 404, 422),
        dependencies=reading,
    )
    def show_bisect(bisect_id: Name) -> BisectView:
        with database.reading() as session:
            found = bisects.find(session, bisect_id)
            if found is None:
                raise NotFoundError(f"there is no bisect {bisect_id!r}")
            return BisectView(bisect=found, document=bisects.document(session, bisect_id))

    @router.post(
        "/bisects",
        status_code=201,
        summary="Begin a bisect; the same question is one",
        responses=documented(401, 403, 404, 409, 413, 422, 503)
        | {200: {"model": Bisect, "description": "There already"}},
        openapi_extra=_body(),
    )
    async def begin(request: Request, response: Response, bearer: Bearer) -> Bisect:
        token = await run_in_threadpool(guard.require, bearer, None, Scope.ACT)
        body = _read(await read_body(request, limit=BODY_BYTES_MAX))
        found, new = await run_in_threadpool(begin_asked, asks, body, f"token:{token.name}")
        response.status_code = 201 if new else 200
        return found

    @router.post(
        "/bisects/{bisect_id}/cancel",
        summary="End a bisect and its measurement under way; twice is once",
        responses=documented(401, 403, 404, 409, 422),
    )
    def cancel(bisect_id: Name, bearer: Bearer) -> Bisect:
        token = guard.require(bearer, None, Scope.ACT)
        return asks.cancel(bisect_id, f"token:{token.name}")

    return router


def begin_asked(
    asks: BisectAsks, body: BisectBody, actor: str, via: OrderVia = OrderVia.API
) -> tuple[Bisect, bool]:
    """Begin what a body asks for, or return the bisect that there is; and whether it is new."""
    if body.alert is not None:
        return asks.ask_about(body.alert, actor=actor, via=via.value)
    assert body.good is not None, "a body without an alert has both ends"
    assert body.bad is not None, "a body without an alert has both ends"
    ask = BisectAsk(
        good=body.good,
        bad=body.bad,
        workload=body.workload,
        suite=body.suite,
        host_class=body.host_class,
        stop=body.stop,
        budget_minutes=body.budget_minutes,
        actor=actor,
        via=via.value,
    )
    return asks.ask(ask)


def _body() -> dict[str, Any]:
    """Return the OpenAPI description of the body, which the route reads by itself."""
    schema = BisectBody.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _read(body: bytes) -> BisectBody:
    """Return a body as a value.

    Raises:
        BadDocumentError: It is something else; each fault is named.
    """
    try:
        return BisectBody.model_validate_json(body)
    except ValidationError as error:
        raise BadDocumentError(faults_of(error)) from error


def faults_of(error: ValidationError) -> str:
    """Return what is wrong with a body, each fault named."""
    faults = [
        f"{'.'.join(str(step) for step in fault['loc']) or 'body'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False)
    ]
    return "; ".join(faults)
