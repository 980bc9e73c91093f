"""What GitHub does and its description does not say: limits, states, permissions, locked talk.

A request comes in, nothing or GitHub's refusal goes out. Each rule has a test that breaks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.fakes.github_api.credentials import Actor
    from tests.fakes.github_api.world import World

BODY_LENGTH_MAX: Final = 65_536
TITLE_LENGTH_MAX: Final = 256
STATUS_LENGTH_MAX: Final = 140
DOCUMENTATION: Final = "https://docs.github.com/rest"

#: Paths below the repository, by what an App has to be granted to write there.
_GRANTS: Final = (
    ("/check-runs", "checks"),
    ("/statuses", "statuses"),
    ("/issues", "issues"),
    ("/actions", "actions"),
)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer before it is sent."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def refusal(status: int, message: str, *faults: str, **headers: str) -> Reply:
    """Return a refusal in GitHub's form."""
    body: dict[str, Any] = {"message": message, "documentation_url": DOCUMENTATION}
    if faults:
        body["errors"] = [
            {"resource": "any", "field": "any", "code": "custom", "message": fault}
            for fault in faults
        ]
    return Reply(
        status=status,
        body=body,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def wrong_door(actor: Actor | None, path: str) -> Reply | None:
    """Return the refusal of somebody who may not ask this, whoever they are."""
    if actor is None:
        return refusal(401, "Bad credentials")
    for_apps = path == "/app" or path.endswith(("/installation", "/access_tokens"))
    if for_apps and actor.kind != "app":
        return refusal(401, "A JSON web token could not be decoded")
    if not for_apps and actor.kind == "app":
        return refusal(401, "Bad credentials")
    if path == "/user" and actor.kind != "user":
        return refusal(403, "Resource not accessible by integration")
    return None


def not_granted(world: World, actor: Actor, method: str, path: str) -> Reply | None:
    """Return the refusal of a write that the asker was not granted."""
    if method == "GET":
        return None
    for begin, grant in _GRANTS:
        if begin not in path:
            continue
        if grant == "checks" and actor.kind != "installation":
            return refusal(403, "You must authenticate via a GitHub App.")
        if world.granted.get(grant) != "write":
            return refusal(403, "Resource not accessible by integration")
    return None


def too_long(path: str, body: dict[str, Any]) -> Reply | None:
    """Return the refusal of a text that GitHub does not take."""
    faults = []
    if "/issues" in path and len(body.get("body") or "") > BODY_LENGTH_MAX:
        faults.append(f"body is too long (maximum is {BODY_LENGTH_MAX} characters)")
    if "/issues" in path and len(str(body.get("title") or "")) > TITLE_LENGTH_MAX:
        faults.append(f"title is too long (maximum is {TITLE_LENGTH_MAX} characters)")
    if "/statuses" in path and len(body.get("description") or "") > STATUS_LENGTH_MAX:
        faults.append(f"description is too long (maximum is {STATUS_LENGTH_MAX} characters)")
    return refusal(422, "Validation Failed", *faults) if faults else None


def inconsistent(path: str, body: dict[str, Any]) -> Reply | None:
    """Return the refusal of a check run that is over without a conclusion."""
    over = "/check-runs" in path and body.get("status") == "completed"
    if over and body.get("conclusion") is None:
        return refusal(422, "Validation Failed", "conclusion is required when completed")
    return None
