"""The door for webhooks: GitHub's news comes in, an answer goes out before anything is measured.

A body that GitHub did not sign changes nothing. What is done about news is repeatable, so a
delivery is written down after it: a crash in between lets GitHub deliver it again. What a payload
means is read in `channels.github.webhooks`; what follows from it is for the flows.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool

from service.channels.github.errors import NoSecretError
from service.channels.github.webhooks import (
    BODY_BYTES_MAX,
    CommentMade,
    Ignored,
    PullRequestChanged,
    Push,
    check_signature_form,
    read_news,
    verify,
)
from service.core.dispatching import RunEnded, nobody_waits
from service.core.errors import BadDocumentError
from service.store import deliveries
from service.web.bodies import read_body
from service.web.problems import documented

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from service.channels.github.webhooks import News
    from service.core.clock import Clock
    from service.store.database import Database

#: GitHub delivers again what is up to three days old; anything older is somebody's replay.
AGE_MAX: Final = timedelta(days=3)
_GUID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_EVENT: Final = re.compile(r"[a-z0-9_]{1,64}")
_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
        "description": "The payload as GitHub signed it.",
    }
}

Signature = Annotated[str, Header(alias="X-Hub-Signature-256", description="Of the raw body.")]
EventName = Annotated[str, Header(alias="X-GitHub-Event", description="What happened.")]
Guid = Annotated[str, Header(alias="X-GitHub-Delivery", description="The same when sent again.")]


class Reception(StrEnum):
    """What became of a delivery."""

    ACCEPTED = "accepted"
    #: Nothing follows from it.
    IGNORED = "ignored"
    #: It, or its body, was here before.
    DUPLICATE = "duplicate"


@dataclass(frozen=True, kw_only=True)
class Received:
    """The answer to a delivery; GitHub shows it in its list of deliveries."""

    result: Reception
    #: One sentence; empty where it was accepted.
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class NewsDesk:
    """What is done about news; each may be done twice, and then changes nothing."""

    #: A branch was pushed to.
    pushed: Callable[[str], None]
    pull_request_changed: Callable[[PullRequestChanged], None]
    #: Returns whether there are orders in a comment.
    commented: Callable[[CommentMade], bool]
    #: Returns whether anybody waited for a run.
    run_ended: Callable[[RunEnded], bool] = nobody_waits


def webhooks_router(
    database: Database,
    *,
    clock: Clock,
    secret: str | None,
    repository: str | None,
    desk: NewsDesk | None,
    body_bytes_max: int = BODY_BYTES_MAX,
) -> APIRouter:
    """Return the router that takes GitHub's webhooks; without a secret it refuses all of them.

    Args:
        database: Where deliveries are written down.
        clock: Tells how old they are.
        secret: The webhook's.
        repository: The watched one as `owner/name`.
        desk: What is done about news.
        body_bytes_max: Of a payload.
    """
    router = APIRouter(prefix="/hooks", tags=["webhooks"])

    def receive(event: str, guid: str, body: bytes) -> Received:
        assert repository is not None, "without a repository the door is closed"
        assert desk is not None, "without a repository the door is closed"
        news = read_news(event, body, repository=repository)
        if isinstance(news, Ignored):
            return Received(result=Reception.IGNORED, why=news.why)
        now, digest = clock.now(), hashlib.sha256(body).hexdigest()
        if news.at is not None and now - news.at > AGE_MAX:
            return Received(result=Reception.IGNORED, why="it is older than GitHub sends again")
        return take_once(
            database,
            guid=guid,
            digest=digest,
            event=event,
            at=now,
            do=partial(_do, desk, news),
            otherwise=_otherwise(news),
        )

    @router.post(
        "/github",
        status_code=202,
        summary="Take a webhook of GitHub's; the same one twice is done once",
        responses=documented(401, 413, 422, 503)
        | {200: {"model": Received, "description": "Nothing follows from it"}},
        openapi_extra=_BODY,
    )
    async def receive_github(
        request: Request,
        response: Response,
        signature: Signature = "",
        event: EventName = "",
        guid: Guid = "",
    ) -> Received:
        if secret is None or repository is None or desk is None:
            raise NoSecretError
        # Whoever cannot have signed it is not even listened to.
        check_signature_form(signature)
        body = await read_body(request, limit=body_bytes_max)
        verify(body, signature, secret=secret)
        _check_headers(event, guid)
        received = await run_in_threadpool(receive, event, guid, body)
        response.status_code = 202 if received.result is Reception.ACCEPTED else 200
        return received

    return router


def take_once(
    database: Database,
    *,
    guid: str,
    digest: str,
    event: str,
    at: datetime,
    do: Callable[[], bool],
    otherwise: str,
) -> Received:
    """Do what follows from news that was verified, unless it was here before.

    Args:
        database: Where deliveries are written down.
        guid: Names the delivery.
        digest: Of its body.
        event: What its sender calls it.
        at: The time.
        do: Returns whether anything was done; to be repeatable.
        otherwise: What is said where nothing was.
    """
    with database.reading() as session:
        known = deliveries.is_known(session, guid=guid, digest=digest)
    if known:
        return Received(result=Reception.DUPLICATE, why="it was here before")
    if not do():
        return Received(result=Reception.IGNORED, why=otherwise)
    with database.writing() as session:
        deliveries.record_once(session, guid=guid, digest=digest, event=event, at=at)
    return Received(result=Reception.ACCEPTED)


def _check_headers(event: str, guid: str) -> None:
    if not _EVENT.fullmatch(event) or not _GUID.fullmatch(guid):
        raise BadDocumentError("X-GitHub-Event or X-GitHub-Delivery is missing or not GitHub's")


def _otherwise(news: News) -> str:
    """Return what is said where nothing was done about news."""
    if isinstance(news, RunEnded):
        return "nobody waits for that run"
    return "there are no orders in the comment"


def _do(desk: NewsDesk, news: News) -> bool:
    """Do what follows from news; return whether anything did."""
    match news:
        case Push():
            desk.pushed(news.branch)
        case PullRequestChanged():
            desk.pull_request_changed(news)
        case CommentMade():
            return desk.commented(news)
        case RunEnded():
            return desk.run_ended(news)
    return True
