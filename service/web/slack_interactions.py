"""Where Slack sends what people press: `POST /hooks/slack`.

A signed form comes in, an empty answer goes out; what was pressed is handed on and done after the
answer. A request that Slack did not sign, that is old or that came before changes nothing.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from service.channels.slack.clicks import read_click
from service.channels.slack.signature import AGE_SECONDS_MAX, check_signature
from service.core.errors import ConflictError, TransientError
from service.store import slack_messages
from service.web.bodies import read_body
from service.web.problems import documented

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.core.clock import Clock
    from service.core.slack import SlackClick
    from service.store.database import Database

_log = logging.getLogger("forkwatch.slack")

#: A click carries the whole message that it is below, as a form: some 30 kB.
BODY_BYTES_MAX: Final = 256 * 1024
#: A request is good for five minutes either way; what is older need not be remembered.
_MEMORY: Final = timedelta(seconds=2 * AGE_SECONDS_MAX)
_FORM: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {"payload": {"type": "string", "description": "JSON."}},
                }
            }
        },
    }
}


def slack_router(
    database: Database,
    *,
    clock: Clock,
    secret: str | None,
    begin: Callable[[SlackClick], None] | None,
) -> APIRouter:
    """Return the router.

    Args:
        database: Remembers which requests came before.
        clock: Tells the age of a request.
        secret: That Slack signs with; None where nothing is to be taken.
        begin: Takes a click and sees to it later; quick. None where there is no Slack.
    """
    router = APIRouter(tags=["webhooks"])

    def take(body: bytes, timestamp: str, signature: str) -> None:
        if secret is None or begin is None:
            raise TransientError(
                "FORKWATCH_SLACK_TOKEN or FORKWATCH_SLACK_SIGNING_SECRET is not set here"
            )
        now = clock.now()
        check_signature(body, secret=secret, timestamp=timestamp, signature=signature, now=now)
        click = read_click(body)
        with database.writing() as session:
            fresh = slack_messages.accept_once(
                session, signature, at=now, forget_before=now - _MEMORY
            )
        if not fresh:
            raise ConflictError("this request came before")
        if click is not None:
            _log.info("slack:%s pressed %s on %s", click.user, click.action, click.alert)
            begin(click)

    @router.post(
        "/hooks/slack",
        summary="Take what people press on Slack",
        response_class=Response,
        responses=documented(401, 409, 413, 422, 503),
        openapi_extra=_FORM,
    )
    async def interaction(request: Request) -> Response:
        body = await read_body(request, limit=BODY_BYTES_MAX)
        headers = request.headers
        await run_in_threadpool(
            take,
            body,
            headers.get("x-slack-request-timestamp", ""),
            headers.get("x-slack-signature", ""),
        )
        # Slack wants an answer within three seconds, and shows the person what is in it: nothing.
        return Response(status_code=200)

    return router
