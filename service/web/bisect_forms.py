"""The forms of the pages about bisects: asking for one, and ending one.

A form comes in with its token in itself and never in a cookie or a browser's login, so that no
other site can have it sent. It is read as the API reads a body, so that both have the same limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from service.core.alert_actions import OrderVia
from service.core.errors import (
    BadDocumentError,
    CredentialMissingError,
    NotFoundError,
    ServiceError,
)
from service.core.tokens import Scope
from service.web.alert_api import Name  # noqa: TC001  routes read their annotations
from service.web.bisect_api import BODY_BYTES_MAX, BisectBody, begin_asked, faults_of
from service.web.bisect_pages import AskedFor, list_page, one_page
from service.web.bodies import read_body
from service.web.pages import PageRoute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.flows.bisect_asks import BisectAsks
    from service.flows.tokens import Tokens
    from service.store.database import Database

#: The form has six; more are not ours.
_FIELDS_MAX: Final = 20
_UNAUTHORISED: Final = 401
_FORBIDDEN: Final = 403


def bisect_forms_router(database: Database, *, asks: BisectAsks, tokens: Tokens) -> APIRouter:
    """Return the router that takes what the forms send."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    def ask(fields: Mapping[str, str]) -> Response:
        asked = _asked(fields)
        try:
            actor = _actor(tokens, fields)
            found, _ = begin_asked(asks, _body(asked), actor, via=OrderVia.PAGE)
        except ServiceError as error:
            with database.reading() as session:
                return list_page(
                    session, asked=asked, orders=True, fault=str(error), status=_status(error)
                )
        return RedirectResponse(_path(found.id), status_code=303)

    def end(bisect_id: str, fields: Mapping[str, str]) -> Response:
        try:
            asks.cancel(bisect_id, _actor(tokens, fields))
        except NotFoundError:
            raise
        except ServiceError as error:
            with database.reading() as session:
                return one_page(
                    session, bisect_id, orders=True, fault=str(error), status=_status(error)
                )
        return RedirectResponse(_path(bisect_id), status_code=303)

    @router.post("/bisects")
    async def begin(request: Request) -> Response:
        return await run_in_threadpool(ask, await _fields(request))

    @router.post("/bisects/{bisect_id}")
    async def cancel(bisect_id: Name, request: Request) -> Response:
        return await run_in_threadpool(end, bisect_id, await _fields(request))

    return router


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form as browsers send it.

    Raises:
        BadDocumentError: It is no such form.
    """
    body = await read_body(request, limit=BODY_BYTES_MAX)
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict"
        )
    except ValueError as error:
        raise BadDocumentError(f"the body is not the form of this page: {error}") from error
    return dict(pairs)


def _actor(tokens: Tokens, fields: Mapping[str, str]) -> str:
    """Return who sent a form.

    Raises:
        CredentialMissingError: It has no token, or one that is not good.
        CredentialRefusedError: Its token is not for orders.
    """
    token = fields.get("token", "").strip()
    if not token:
        raise CredentialMissingError("This needs a token with the scope 'act'.")
    return f"token:{tokens.check(token, Scope.ACT).name}"


def _asked(fields: Mapping[str, str]) -> AskedFor:
    """Return what a form asks for, to be shown again if it cannot be done; never the token."""
    return AskedFor(
        good=fields.get("good", "").strip(),
        bad=fields.get("bad", "").strip(),
        workload=fields.get("workload", "").strip(),
        minutes=fields.get("minutes", "").strip(),
        alert=fields.get("alert", "").strip(),
    )


def _body(asked: AskedFor) -> BisectBody:
    """Return a question as the API would read it.

    Raises:
        BadDocumentError: It is none; each fault is named.
    """
    given = {
        "good": asked.good,
        "bad": asked.bad,
        "workload": asked.workload,
        "budget_minutes": asked.minutes,
        "alert": asked.alert,
    }
    try:
        return BisectBody.model_validate({name: value for name, value in given.items() if value})
    except ValidationError as error:
        raise BadDocumentError(faults_of(error)) from error


def _status(error: ServiceError) -> int:
    # A page has no use for a browser's login: what is wrong is said in the page.
    return _FORBIDDEN if error.status == _UNAUTHORISED else error.status


def _path(bisect_id: str) -> str:
    return f"/bisects/{quote(bisect_id, safe='')}"
