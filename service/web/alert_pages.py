"""The page of an alert: what it is about, its timeline, and a form for what people may do now.

A database comes in, a router goes out. An order from the form carries its token in the form itself
and never in a cookie or a browser's login, so no other site can have it sent.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from service.core.alert_actions import AlertOrder, OrderVia
from service.core.errors import (
    BadDocumentError,
    CredentialMissingError,
    NotFoundError,
    ServiceError,
    UnknownAlertError,
)
from service.core.tokens import Scope
from service.flows.alert_actions import MUTE_MAX, NOTE_LENGTH_MAX
from service.web.addresses import alert_path
from service.web.alert_api import ORDER_BYTES_MAX, ActionBody, Name
from service.web.alert_views import AlertRequest, alert_page
from service.web.bodies import read_body
from service.web.rendering import PageRoute, render_page

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from service.core.clock import Clock
    from service.core.ports import AlertActions
    from service.flows.tokens import Tokens
    from service.store.database import Database
    from service.web.alert_views import AlertPage

#: The form has seven; more are not ours.
_FIELDS_MAX: Final = 20
_DAYS: Final = re.compile(r"[0-9]{1,3}")
_UNAUTHORISED: Final = 401
_FORBIDDEN: Final = 403


@dataclass(frozen=True, kw_only=True)
class AlertDesk:
    """Where orders from pages are checked and carried out."""

    actions: AlertActions
    tokens: Tokens


def alert_pages_router(database: Database, *, clock: Clock, desk: AlertDesk | None) -> APIRouter:
    """Return the router of the page of an alert, with its form where there is a desk."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    def shown(alert_id: str, *, status: int = 200, asked: AlertRequest) -> HTMLResponse:
        with database.reading() as session:
            page = alert_page(session, alert_id, now=clock.now())
            return _rendered(page, status=status, asked=asked, orders=desk is not None)

    @router.get("/alerts/{alert_id}")
    def show(alert_id: Name) -> HTMLResponse:
        return shown(alert_id, asked=AlertRequest(key=_new_key()))

    if desk is None:
        return router

    def order(alert_id: str, fields: Mapping[str, str]) -> Response:
        asked = _asked(fields)
        try:
            given = _order(
                alert_id, asked, desk, token=fields.get("token", "").strip(), now=clock.now()
            )
            desk.actions.act(given)
        except UnknownAlertError as error:
            raise NotFoundError(f"There is no alert {alert_id}.") from error
        except ServiceError as error:
            # A page has no use for a browser's login: what is wrong is said in the page.
            status = _FORBIDDEN if error.status == _UNAUTHORISED else error.status
            again = replace(asked, key=_new_key(), fault=str(error))
            return shown(alert_id, status=status, asked=again)
        return RedirectResponse(f"{alert_path(alert_id)}#timeline", status_code=303)

    @router.post("/alerts/{alert_id}")
    async def act(alert_id: Name, request: Request) -> Response:
        body = await read_body(request, limit=ORDER_BYTES_MAX)
        return await run_in_threadpool(order, alert_id, _fields(body))

    return router


def _rendered(page: AlertPage, *, status: int, asked: AlertRequest, orders: bool) -> HTMLResponse:
    return render_page(
        "alert.html",
        status=status,
        page=page,
        asked=asked,
        orders=orders,
        note_length_max=NOTE_LENGTH_MAX,
        mute_days_max=MUTE_MAX.days,
    )


def _fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form as browsers send it.

    Raises:
        BadDocumentError: It is no such form.
    """
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict"
        )
    except ValueError as error:
        raise BadDocumentError(f"the body is not the form of this page: {error}") from error
    return dict(pairs)


def _asked(fields: Mapping[str, str]) -> AlertRequest:
    """Return what a form asks for, to be shown again if it cannot be done; never the token."""
    return AlertRequest(
        key=fields.get("key", ""),
        action=fields.get("action", ""),
        note=fields.get("note", "").strip().replace("\r\n", "\n"),
        owner=fields.get("owner", "").strip(),
        due_on=fields.get("due_on", ""),
        days=fields.get("days", ""),
    )


def _order(
    alert_id: str, asked: AlertRequest, desk: AlertDesk, *, token: str, now: datetime
) -> AlertOrder:
    """Return the order that a form gives.

    Raises:
        CredentialMissingError: It has no token, or one that is not good.
        CredentialRefusedError: Its token is not for orders.
        BadDocumentError: It is no order.
    """
    if not token:
        raise CredentialMissingError("An order needs a token with the scope 'act'.")
    who = desk.tokens.check(token, Scope.ACT)
    body = _read(asked, now=now)
    return AlertOrder(
        alert=alert_id,
        action=body.action,
        actor=f"token:{who.name}",
        via=OrderVia.PAGE.value,
        note=body.note,
        key=body.key,
        owner=body.owner,
        due_on=body.due_on,
        until=body.until,
    )


def _read(asked: AlertRequest, *, now: datetime) -> ActionBody:
    """Return an order as the API would read it, so that both have the same limits.

    Raises:
        BadDocumentError: It is none; each fault is named.
    """
    values: dict[str, object] = {
        "action": asked.action,
        "note": asked.note,
        "key": f"page:{asked.key}" if asked.key else "",
        "owner": asked.owner,
        "due_on": asked.due_on or None,
    }
    if asked.days:
        if not _DAYS.fullmatch(asked.days) or int(asked.days) > MUTE_MAX.days:
            raise BadDocumentError(f"days: a number from 1 to {MUTE_MAX.days}")
        values["until"] = now + timedelta(days=int(asked.days))
    try:
        return ActionBody.model_validate(values)
    except ValidationError as error:
        faults = [
            f"{'.'.join(str(step) for step in fault['loc'])}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        ]
        raise BadDocumentError("; ".join(faults)) from error


def _new_key() -> str:
    """Return what makes a form one order, however often it is sent."""
    return secrets.token_hex(8)
