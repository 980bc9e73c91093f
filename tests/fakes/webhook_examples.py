"""Recorded payloads of GitHub's webhooks; fetched once by npm's client, never committed.

Octokit publishes them as one file of events with examples. What comes out is a list of (event,
payload), in the order of the file.

    python -m tests.fakes.webhook_examples     fetches them ahead of the tests
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from results.atomic import write_atomically
from tests.fakes.npm_package import NpmMember

FETCHED: Final = NpmMember(
    package="@octokit/webhooks-examples@7.6.1",
    member="package/api.github.com/index.json",
    sha256="09d8f0c617876ae9dad22e26fea5510bfcaad50ee7e602659f6db25b87b25815",
)
KEPT: Final = Path(__file__).parents[2] / ".forkwatch" / "webhook-examples"


@cache
def examples() -> list[tuple[str, dict[str, Any]]]:
    """Return every recorded payload with the event that it was recorded of."""
    path = KEPT / f"{FETCHED.sha256[:12]}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, FETCHED.fetch().decode())
    return [
        (event["name"], payload)
        for event in json.loads(path.read_text())
        for payload in event["examples"]
    ]


if __name__ == "__main__":
    sys.stdout.write(f"{len(examples())} payloads of {FETCHED.package}\n")
