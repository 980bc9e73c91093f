"""Buildkite's webhooks: payloads with what the service reads, and a signer that shares nothing.

The shape is as Buildkite's own pages on webhooks describe it, with a little that is not read.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from tests.fakes.hub_signature import signature_of
from tests.fakes.memory_fork import AT

SECRET = "a token that nobody else knows"
_API = "https://api.buildkite.com/v2/organizations/acme/pipelines/forkwatch"


def signed(body: bytes, *, at: datetime, secret: str = SECRET) -> str:
    """Return the header X-Buildkite-Signature of a body."""
    seconds = int(at.timestamp())
    both = f"{seconds}.".encode() + body
    return f"timestamp={seconds},signature={signature_of(both, secret).removeprefix('sha256=')}"


def written(at: datetime) -> str:
    """Return a time as Buildkite's webhooks write it."""
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def build_payload(*, event: str = "build.finished", **build: Any) -> dict[str, Any]:
    """Return news of a build; what is named takes the place of its own."""
    number = build.get("number", 12)
    return {
        "event": event,
        "build": {
            "id": hashlib.md5(str(number).encode()).hexdigest(),
            "url": f"{_API}/builds/{number}",
            "number": number,
            "state": "passed",
            "blocked": False,
            "branch": "main",
            "meta_data": {"forkwatch-job": "single-1"},
            "created_at": written(AT),
            "finished_at": written(AT),
            **build,
        },
        "pipeline": {"slug": "forkwatch", "url": _API, "name": "forkwatch"},
        "sender": {"id": "1", "name": "Ada"},
    }


def job_payload(**job: Any) -> dict[str, Any]:
    """Return news of a job in a build."""
    told = {"id": "2", "type": "script", "state": "canceled", "exit_status": -1, **job}
    return build_payload(event="job.finished", state="running") | {"job": told}
