"""What somebody does to a service from outside, through its own doors, in the same process.

The service and what the deed is about come in. Each deed may be done again in the next life, as
GitHub, Slack and people do who got no answer.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import httpx

from service.store import alerts
from tests.fakes.hub_signature import body_of, signature_of
from tests.fakes.slack_requests import a_press, signed
from tests.fakes.webhook_payloads import comment_payload, pull_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from service.app.compose import Service

#: Statuses of what was heard, now or before.
_HEARD: Final = frozenset({200, 201, 202, 409})


def _post(service: Service, path: str, body: bytes, headers: Mapping[str, str]) -> None:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=service.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://kills") as caller:
            return await caller.post(path, content=body, headers=dict(headers))

    answer = asyncio.run(send())
    assert answer.status_code in _HEARD, f"{path}: {answer.status_code} {answer.text}"


def _hook(service: Service, event: str, payload: dict[str, Any]) -> None:
    body = body_of(payload)
    headers = {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": f"{event}-1".replace("_", "-"),
        "X-Hub-Signature-256": signature_of(body),
    }
    _post(service, "/hooks/github", body, headers)


def _order(service: Service, path: str, order: dict[str, Any], token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    _post(service, path, json.dumps(order).encode(), headers)


def _alert(service: Service) -> str:
    with service.database.reading() as session:
        [alert] = alerts.newest(session)
    return alert.id


def open_pull_request(service: Service, about: Mapping[str, Any]) -> None:
    """Tell of a new pull request."""
    at = datetime.fromisoformat(about["at"])
    _hook(service, "pull_request", pull_payload(about["number"], head=about["head"], at=at))


def comment(service: Service, about: Mapping[str, Any]) -> None:
    """Order a comparison of two commits in a comment."""
    text = f"/forkwatch compare {about['shas'][0]} {about['shas'][-1]}"
    at = datetime.fromisoformat(about["at"])
    _hook(service, "issue_comment", comment_payload(text, number=about["number"], at=at))


def bisect(service: Service, about: Mapping[str, Any]) -> None:
    """Ask for a bisect of the whole branch."""
    question = {"good": about["shas"][0], "bad": about["shas"][-1], "workload": "scan"}
    _order(service, "/api/v1/bisects", question, about["token"])


def call_false(service: Service, about: Mapping[str, Any]) -> None:
    """Call the alert a false alarm."""
    order = {"action": "false-alarm", "key": "once"}
    _order(service, f"/api/v1/alerts/{_alert(service)}/actions", order, about["token"])


def click(service: Service, about: Mapping[str, Any]) -> None:
    """Press the button that acknowledges the alert."""
    at = datetime.fromisoformat(about["at"])
    body = a_press(alert=_alert(service))
    _post(service, "/hooks/slack", body, signed(body, at=at))


DEEDS: Final[dict[str, Callable[[Service, Mapping[str, Any]], None]]] = {
    "open_pull_request": open_pull_request,
    "comment": comment,
    "bisect": bisect,
    "call_false": call_false,
    "click": click,
}
