"""What a request from Slack says: one press of a button of ours, or nothing for us.

A form comes in, a click goes out. Nothing in it is believed beyond its type and its length; whether
the person may do it is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final
from urllib.parse import parse_qs

from reports.slack import ACTION_PREFIX, BUTTONS
from service.core.errors import BadDocumentError
from service.core.slack import SlackClick

_USER: Final = re.compile(r"[UW][A-Z0-9]{2,20}")
_CHANNEL: Final = re.compile(r"[CDG][A-Z0-9]{2,20}")
_TIME: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,6}")
_ALERT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_FIELDS_MAX: Final = 20


def read_click(body: bytes) -> SlackClick | None:
    """Return what was pressed, or None where it is nothing of ours.

    Raises:
        BadDocumentError: It is not the form that Slack sends.
    """
    payload = _payload(body)
    actions = payload.get("actions")
    if payload.get("type") != "block_actions" or not isinstance(actions, list) or not actions:
        return None
    pressed = actions[0] if isinstance(actions[0], dict) else {}
    action = _text(pressed.get("action_id")).removeprefix(ACTION_PREFIX)
    if action not in BUTTONS or not _text(pressed.get("action_id")).startswith(ACTION_PREFIX):
        return None
    container = _inner(payload, "container")
    user = _matching(_USER, _inner(payload, "user").get("id"))
    channel = _matching(_CHANNEL, _inner(payload, "channel").get("id"))
    ts = _matching(_TIME, container.get("message_ts"))
    alert = _matching(_ALERT, pressed.get("value"))
    moment = _matching(_TIME, pressed.get("action_ts"))
    about = f"{user} {channel} {ts} {action} {alert} {moment}"
    digest = hashlib.sha256(about.encode()).hexdigest()
    return SlackClick(
        user=user, channel=channel, ts=ts, action=action, alert=alert, key=f"slack:{digest[:32]}"
    )


def _payload(body: bytes) -> dict[str, Any]:
    try:
        form = parse_qs(body.decode(), max_num_fields=_FIELDS_MAX)
        payload = json.loads(form.get("payload", ["{}"])[0])
    except (ValueError, RecursionError):
        raise BadDocumentError("the request is no form with a JSON payload") from None
    if not isinstance(payload, dict):
        raise BadDocumentError("the payload is no object")
    return payload


def _inner(payload: dict[str, Any], name: str) -> dict[str, Any]:
    found = payload.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if not pattern.fullmatch(_text(value)):
        raise BadDocumentError("the payload has no click that could be ours")
    return str(value)
