"""The web application: routers come in, one ASGI application goes out.

Every error leaves as problem details under `/api`, and as a page elsewhere.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, OperationalError
from starlette.exceptions import HTTPException

from service.core.errors import ServiceError
from service.web.problems import documented, problem_response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fastapi.responses import Response

_log = logging.getLogger("forkwatch.web")

_UNAUTHORISED: Final = 401
#: Programs send a token; a browser asks its user for one, as the password.
_CHALLENGE: Final = 'Bearer, Basic realm="forkwatch"'
_NOT_FOUND: Final = 404
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500


def web_application(
    routers: Sequence[APIRouter],
    *,
    missing_page: Callable[[Request, Exception], Awaitable[Response]],
) -> FastAPI:
    """Return the application; `missing_page` answers people at addresses that no route knows."""
    app = FastAPI(
        title="forkwatch",
        version="1",
        docs_url=None,
        redoc_url=None,
        # What any request may get: a wrong parameter, too many requests, no database.
        responses=documented(422, _TOO_MANY, 503),
    )
    for router in routers:
        app.include_router(router)

    @app.exception_handler(ServiceError)
    async def _service_error(_request: Request, error: ServiceError) -> Response:
        if error.status >= _SERVER_ERROR:
            _log.error("%s: %s", type(error).__name__, error)
        challenge = {"WWW-Authenticate": _CHALLENGE} if error.status == _UNAUTHORISED else None
        return problem_response(error.status, str(error), headers=challenge)

    @app.exception_handler(OperationalError)
    async def _database_error(_request: Request, error: OperationalError) -> Response:
        _log.error("the database does not answer: %s", error)
        return problem_response(503, "the database does not answer now; try again")

    @app.exception_handler(DataError)
    async def _unknown_value(_request: Request, error: DataError) -> Response:
        # Such as a zero byte in a text: each kind of database has values that it cannot hold.
        _log.info("a value is none that the database takes: %s", error.orig)
        return problem_response(422, "a value of this request is none that can be stored here")

    @app.exception_handler(RequestValidationError)
    async def _invalid(_request: Request, error: RequestValidationError) -> Response:
        faults = [
            f"{'.'.join(str(step) for step in fault['loc'])}: {fault['msg']}"
            for fault in error.errors()
        ]
        return problem_response(422, "; ".join(faults))

    @app.exception_handler(HTTPException)
    async def _http_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == _NOT_FOUND and not request.url.path.startswith("/api/"):
            return await missing_page(request, error)
        headers = dict(error.headers) if error.headers else None
        return problem_response(error.status_code, str(error.detail), headers=headers)

    return app
