"""The identity of a job of a CI: a token that the CI signs, asked for where the CI says.

What the CI says of itself comes in, a token goes out. What it is good for is for its audience to
say; nothing here keeps it, and no code that is measured can ask for one.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

import httpx

from forkwatch.errors import DoorError
from runner import shell

if TYPE_CHECKING:
    from forkwatch.ci_settings import CiSettings

TIMEOUT_S: Final = 30.0


def identity_token(
    ci: CiSettings, *, audience: str, transport: httpx.BaseTransport | None = None
) -> str:
    """Return a fresh token for an audience.

    Args:
        ci: What the CI says of itself.
        audience: Whom it is for.
        transport: The wire to GitHub, for tests.

    Raises:
        DoorError: No CI runs us, or it gives no token.
    """
    if ci.github_actions:
        return _of_github(ci, audience, transport)
    if ci.buildkite:
        return _of_buildkite(audience)
    raise DoorError(
        "an order is for a job of GitHub Actions or Buildkite, and neither runs this; to measure "
        "by hand, leave --order away"
    )


def _of_github(ci: CiSettings, audience: str, transport: httpx.BaseTransport | None) -> str:
    url, secret = ci.actions_id_token_request_url, ci.actions_id_token_request_token
    if not url or secret is None:
        raise DoorError("this job gets no token of GitHub: give it `permissions: id-token: write`")
    headers = {"Authorization": f"Bearer {secret.get_secret_value()}"}
    try:
        with httpx.Client(timeout=TIMEOUT_S, transport=transport) as client:
            asked = httpx.URL(url).copy_merge_params({"audience": audience})
            answer = client.get(asked, headers=headers)
            token = answer.raise_for_status().json()["value"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        # What the library says may quote the address, which is as good as a secret.
        raise DoorError(f"GitHub gave no token for this job ({type(error).__name__})") from None
    return str(token)


def _of_buildkite(audience: str) -> str:
    program = shutil.which("buildkite-agent")
    if program is None:
        raise DoorError("buildkite-agent is not in PATH, so this job gets no token of Buildkite")
    words = [program, "oidc", "request-token", "--audience", audience]
    done = shell.run(words, timeout_s=TIMEOUT_S)
    if not done.ok:
        said = " ".join(done.stderr.split())[-300:]
        raise DoorError(f"the agent gave no token for this job: {said or 'it said nothing'}")
    return done.stdout.strip()
