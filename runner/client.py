"""The client of the service: submits a run document, again and again until it is taken.

Submitting twice is harmless: the service stores a document once by its id.
"""

from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING, Final

import httpx

from runner.errors import SubmitError

if TYPE_CHECKING:
    from results.document import RunDocument

#: Seconds between tries; afterwards the document stays in its folder, where the service finds it.
WAITS_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
TIMEOUT_S: Final = 60.0
RUNS_PATH: Final = "/api/v1/runs"
_SERVER_ERROR: Final = 500
_TOO_MANY: Final = 429


def submit(
    document: RunDocument,
    *,
    url: str,
    credential: str,
    transport: httpx.BaseTransport | None = None,
    waits_s: tuple[float, ...] = WAITS_S,
    path: str = RUNS_PATH,
) -> str:
    """Submit a document and return what the service answered: `stored` or `already stored`.

    Args:
        document: What to submit.
        url: Base address of the service.
        credential: The job's credential; sent as a bearer token.
        transport: The wire, for tests.
        waits_s: Pauses between tries.
        path: Where the service takes it.

    Raises:
        SubmitError: The service refused it, or did not answer in all tries.
    """
    body = gzip.compress(document.model_dump_json().encode())
    headers = {
        "Authorization": f"Bearer {credential}",
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
    }
    reason = "never tried"
    with httpx.Client(base_url=url, timeout=TIMEOUT_S, transport=transport) as client:
        for wait_s in (*waits_s, None):
            try:
                answer = client.post(path, content=body, headers=headers)
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            else:
                if answer.is_success:
                    return (
                        "stored" if answer.status_code == httpx.codes.CREATED else "already stored"
                    )
                reason = f"{answer.status_code}: {answer.text[:500]}"
                if answer.status_code < _SERVER_ERROR and answer.status_code != _TOO_MANY:
                    raise SubmitError(f"the service refused the run: {reason}")
            if wait_s is not None:
                time.sleep(wait_s)
    raise SubmitError(f"the service at {url} did not take the run: {reason}")
