"""Requests as Slack sends them: a press of a button, signed by Slack's own library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from slack_sdk.signature import SignatureVerifier

from tests.fakes.slack_api import CHANNEL

if TYPE_CHECKING:
    from datetime import datetime

SECRET: Final = "a-signing-secret-of-the-double"


def a_press(
    action: str = "acknowledge",
    *,
    alert: str = "alert-1",
    user: str = "U0ADA",
    moment: str = "1800000100.123456",
    **changes: Any,
) -> bytes:
    """Return the form of a press of a button of ours, with the keys that Slack's has."""
    payload: dict[str, Any] = {
        "type": "block_actions",
        "user": {"id": user, "username": "ada", "name": "ada", "team_id": "T0ACME"},
        "api_app_id": "A0FORKWATCH",
        "token": "deprecated",
        "container": {
            "type": "message",
            "message_ts": "1800000001.000001",
            "channel_id": CHANNEL,
            "is_ephemeral": False,
        },
        "trigger_id": "1.2.3",
        "team": {"id": "T0ACME", "domain": "acme"},
        "enterprise": None,
        "channel": {"id": CHANNEL, "name": "alerts"},
        "message": {"type": "message", "text": "demo: scan 9.1 % slower", "blocks": []},
        "response_url": "https://hooks.slack.example/actions/T0ACME/1/2",
        "actions": [
            {
                "action_id": f"forkwatch-{action}",
                "block_id": "forkwatch",
                "text": {"type": "plain_text", "text": action, "emoji": False},
                "value": alert,
                "type": "button",
                "action_ts": moment,
            }
        ],
    }
    return urlencode({"payload": json.dumps({**payload, **changes})}).encode()


def signed(body: bytes, *, at: datetime, secret: str = SECRET) -> dict[str, str]:
    """Return the headers that Slack sends with a body at this time."""
    timestamp = str(int(at.timestamp()))
    signature = SignatureVerifier(secret).generate_signature(timestamp=timestamp, body=body)
    assert signature is not None
    return {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": signature,
    }
