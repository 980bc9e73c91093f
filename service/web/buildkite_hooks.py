"""The door for Buildkite's webhooks: `POST /hooks/buildkite`.

It is the door of `webhooks` in another dialect: who sent it, and what it says, is read in
`core.buildkite`; what was here before is known by the digest of its body. What the end of a build
leads to is for the flows.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool

from service.core.buildkite import (
    BODY_BYTES_MAX,
    NothingToDo,
    check_form,
    read_news,
    verify,
)
from service.core.errors import TransientError
from service.web.bodies import read_body
from service.web.problems import documented
from service.web.webhooks import Received, Reception, take_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.core.buildkite import BuildEnded
    from service.core.clock import Clock
    from service.store.database import Database

#: A token signs no time, so the build's own is looked at: older news is somebody's replay, from
#: longer ago than deliveries are remembered. A job that waits for so long was given up before.
AGE_MAX: Final = timedelta(days=3)
#: Letters of the digest that name a delivery: Buildkite gives it no name of its own.
_DIGEST_LETTERS: Final = 48
_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
        "description": "The payload as Buildkite sent it.",
    }
}

Signature = Annotated[str, Header(alias="X-Buildkite-Signature", description="Of time and body.")]
Token = Annotated[str, Header(alias="X-Buildkite-Token", description="The secret itself.")]


def buildkite_router(
    database: Database,
    *,
    clock: Clock,
    secret: str | None,
    ended: Callable[[BuildEnded], bool],
) -> APIRouter:
    """Return the router that takes Buildkite's webhooks; without a secret it refuses all of them.

    Args:
        database: Where deliveries are written down.
        clock: Tells how old they are.
        secret: What Buildkite calls the webhook's token.
        ended: Told of the end of a build, once or twice; returns whether a job waited for it.
    """
    router = APIRouter(prefix="/hooks", tags=["webhooks"])

    def receive(body: bytes) -> Received:
        news = read_news(body)
        if isinstance(news, NothingToDo):
            return Received(result=Reception.IGNORED, why=news.why)
        now, digest = clock.now(), hashlib.sha256(body).hexdigest()
        if now - news.at > AGE_MAX:
            return Received(result=Reception.IGNORED, why="it is too old to be news")
        return take_once(
            database,
            guid=f"buildkite-{digest[:_DIGEST_LETTERS]}",
            digest=digest,
            event="build.finished",
            at=now,
            do=partial(ended, news),
            otherwise="no job waits for this build",
        )

    @router.post(
        "/buildkite",
        status_code=202,
        summary="Take a webhook of Buildkite's; the same one twice is done once",
        responses=documented(401, 413, 422, 503)
        | {200: {"model": Received, "description": "Nothing follows from it"}},
        openapi_extra=_BODY,
    )
    async def receive_buildkite(
        request: Request, response: Response, signature: Signature = "", token: Token = ""
    ) -> Received:
        if secret is None:
            raise TransientError("FORKWATCH_BUILDKITE_WEBHOOK_SECRET is not set here")
        # Whoever cannot have sent it is not even listened to.
        check_form(signature, token)
        body = await read_body(request, limit=BODY_BYTES_MAX)
        verify(body, signature=signature, token=token, secret=secret, now=clock.now())
        received = await run_in_threadpool(receive, body)
        response.status_code = 202 if received.result is Reception.ACCEPTED else 200
        return received

    return router
