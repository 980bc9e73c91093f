"""The API about alerts: which there are, what people may do about them, how often they were true.

Routes translate HTTP to calls and back; they decide nothing about the domain. Orders need a token
with the scope `act`, and their bodies are read only after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from service.core.alert_actions import AlertAction, AlertOrder, OrderVia, allowed_actions
from service.core.alert_records import AlertCommit, AuditEntry, AuditSubject, BaselineMark
from service.core.errors import BadDocumentError, NotFoundError
from service.core.model import Alert, AlertState  # noqa: TC001  routes read their annotations
from service.core.precision import PrecisionFigure  # noqa: TC001  the schema is made from it
from service.core.tokens import Scope
from service.flows.alert_actions import NAME_LENGTH_MAX, NOTE_LENGTH_MAX
from service.flows.baseline_orders import BaselineOrder
from service.store import alerts, audit, precision
from service.web.bodies import read_body
from service.web.credentials import Bearer  # noqa: TC001  as above
from service.web.problems import documented

if TYPE_CHECKING:
    from service.core.ports import AlertActions
    from service.flows.baseline_orders import StoredBaselines
    from service.store.database import Database
    from service.web.credentials import Guard

#: An order is a few words; this leaves room for a long reason in any script.
ORDER_BYTES_MAX: Final = 16 * 1024
_SHA: Final = r"^[0-9a-f]{40,64}$"
#: PostgreSQL's texts have no zero byte, so nothing there is called by one.
_NAME: Final = r"^[^\x00]+$"
Name = Annotated[str, Path(max_length=NAME_LENGTH_MAX, pattern=r"^[^\x00/]+$")]
ForkName = Annotated[str | None, Query(max_length=NAME_LENGTH_MAX, pattern=_NAME)]
_Body = TypeVar("_Body", bound=BaseModel)


class ActionBody(BaseModel):
    """An order about an alert."""

    model_config = ConfigDict(extra="forbid")

    action: AlertAction
    note: str = Field(default="", max_length=NOTE_LENGTH_MAX, description="Why, in your words.")
    key: str = Field(
        default="",
        max_length=NAME_LENGTH_MAX,
        description="Makes it one order however often it is sent.",
    )
    owner: str = Field(
        default="", max_length=NAME_LENGTH_MAX, description="Of an assign: who; else the token."
    )
    due_on: date | None = Field(
        default=None, description="Of an assign: the day by which it should be settled."
    )
    until: AwareDatetime | None = Field(
        default=None, description="Of a mute: its end; a week where absent."
    )


class BaselineBody(BaseModel):
    """An order about the baseline of a series."""

    model_config = ConfigDict(extra="forbid")

    sha: str = Field(pattern=_SHA, description="The commit with which the baseline begins.")
    note: str = Field(default="", max_length=NOTE_LENGTH_MAX, description="Why, in your words.")


@dataclass(frozen=True, kw_only=True)
class AlertView:
    """An alert with all that was done about it."""

    alert: Alert
    #: Oldest first.
    commits: list[AlertCommit]
    #: The newest entries of the audit log, oldest first.
    history: list[AuditEntry]
    #: What may be done now.
    possible: list[AlertAction]


def _body(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a body that the route reads by itself."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def alerts_router(database: Database, *, actions: AlertActions, guard: Guard) -> APIRouter:
    """Return the router that tells about alerts and takes orders about them."""
    router = APIRouter(prefix="/api/v1", tags=["alerts"])
    reading = [Depends(guard.reader())]

    @router.get(
        "/alerts",
        summary="Alerts, newest first",
        responses=documented(401, 403, 422),
        dependencies=reading,
    )
    def list_alerts(
        fork: ForkName = None,
        state: Annotated[
            list[AlertState] | None, Query(description="Only in this state; may be repeated.")
        ] = None,
        before: Annotated[
            str | None,
            Query(
                max_length=NAME_LENGTH_MAX,
                pattern=_NAME,
                description="Id of the alert to page on from.",
            ),
        ] = None,
        limit: Annotated[int, Query(ge=1, le=200, description="Rows at most.")] = 100,
    ) -> list[Alert]:
        with database.reading() as session:
            return alerts.newest(session, fork, states=state or (), before=before, limit=limit)

    @router.get(
        "/alerts/{alert_id}",
        summary="One alert, whole",
        responses=documented(401, 403, 404, 422),
        dependencies=reading,
    )
    def show_alert(alert_id: Name) -> AlertView:
        with database.reading() as session:
            alert = alerts.find(session, alert_id)
            if alert is None:
                raise NotFoundError(f"there is no alert {alert_id!r}")
            return AlertView(
                alert=alert,
                commits=alerts.commits_of(session, alert_id),
                history=audit.history(session, AuditSubject.ALERT, alert_id),
                possible=list(allowed_actions(alert.state)),
            )

    @router.post(
        "/alerts/{alert_id}/actions",
        summary="Do something about an alert; the same key does it once",
        responses=documented(401, 403, 404, 409, 413, 422),
        openapi_extra=_body(ActionBody),
    )
    async def order(alert_id: Name, request: Request, bearer: Bearer) -> Alert:
        token = await run_in_threadpool(guard.require, bearer, None, Scope.ACT)
        body = _read(ActionBody, await read_body(request, limit=ORDER_BYTES_MAX))
        return await run_in_threadpool(actions.act, _order(alert_id, body, token.name))

    @router.get(
        "/precision",
        summary="How many alarms were true, by workload, host class and detector version",
        responses=documented(401, 403, 422),
        dependencies=reading,
    )
    def show_precision(fork: ForkName = None) -> list[PrecisionFigure]:
        with database.reading() as session:
            return precision.figures(session, fork)

    return router


def baselines_router(baselines: StoredBaselines, *, guard: Guard) -> APIRouter:
    """Return the router that takes orders about where baselines begin."""
    router = APIRouter(prefix="/api/v1", tags=["baselines"])

    @router.post(
        "/series/{series_id}/baseline",
        summary="Begin the baseline of a series anew at a commit; twice is once",
        responses=documented(401, 403, 404, 409, 413, 422),
        openapi_extra=_body(BaselineBody),
    )
    async def reset(series_id: Name, request: Request, bearer: Bearer) -> BaselineMark:
        token = await run_in_threadpool(guard.require, bearer, None, Scope.ACT)
        body = _read(BaselineBody, await read_body(request, limit=ORDER_BYTES_MAX))
        asked = BaselineOrder(
            series=series_id,
            sha=body.sha,
            actor=_actor(token.name),
            via=OrderVia.API.value,
            note=_plain(body.note),
        )
        return await run_in_threadpool(baselines.reset, asked)

    @router.delete(
        "/series/{series_id}/baseline/{sha}",
        status_code=204,
        summary="Take back what was said about the baseline at a commit",
        responses=documented(401, 403, 404, 422),
    )
    def take_back(series_id: Name, sha: Name, bearer: Bearer) -> Response:
        token = guard.require(bearer, None, Scope.ACT)
        baselines.take_back(
            BaselineOrder(
                series=series_id, sha=sha, actor=_actor(token.name), via=OrderVia.API.value
            )
        )
        return Response(status_code=204)

    return router


def _order(alert_id: str, body: ActionBody, name: str) -> AlertOrder:
    return AlertOrder(
        alert=alert_id,
        action=body.action,
        actor=_actor(name),
        via=OrderVia.API.value,
        note=body.note,
        key=body.key,
        owner=body.owner,
        due_on=body.due_on,
        until=body.until,
    )


def _actor(name: str) -> str:
    return f"token:{name}"


def _plain(text: str) -> str:
    """Return a text that PostgreSQL takes: it has no zero byte."""
    return text.replace("\0", "")


def _read(kind: type[_Body], body: bytes) -> _Body:
    """Return a body as a value.

    Raises:
        BadDocumentError: It is something else; each fault is named.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        faults = [
            f"{'.'.join(str(step) for step in fault['loc']) or 'body'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        ]
        raise BadDocumentError("; ".join(faults)) from error
