"""Buildkite as a CI that does jobs: builds of one pipeline, made through its REST API.

What is to be asked comes in; the build that came of it goes out. A build is found again by its
meta-data. The token stays here: no build, and no runner, ever sees it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx

from service.core.dispatching import CiRun, CiRunState, DispatchRefusedError
from service.core.errors import DispatchError
from service.core.identity import CiSystem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.core.dispatching import RunAsk

_log = logging.getLogger("forkwatch.dispatch")

TIMEOUT_SECONDS: Final = 30.0
#: Names in a build's meta-data.
JOB_KEY: Final = "forkwatch-job"
ATTEMPT_KEY: Final = "forkwatch-attempt"
#: Variables of a build's jobs.
JOB_VARIABLE: Final = "FORKWATCH_JOB"
CLASS_VARIABLE: Final = "FORKWATCH_JOB_HOST_CLASS"
#: Builds with equal meta-data: one, or two after a crash at a bad moment.
_FOUND_MAX: Final = 10
#: States after which nothing more comes of a build; all others may still run.
_ENDED: Final = ("passed", "failed", "canceled", "skipped", "not_run")
_RUNNING: Final = ("running", "failing", "canceling")
_SAID_LENGTH_MAX: Final = 300
_TOO_MANY: Final = 429
_SERVER: Final = 500
_NOT_FOUND: Final = 404


class _MissingBuildError(DispatchRefusedError):
    """Buildkite has no such thing, or does not show it to this token."""


class BuildkiteRunners:
    """Builds of one pipeline."""

    system: Final = CiSystem.BUILDKITE

    def __init__(
        self,
        pipeline: str,
        *,
        token: str,
        api_url: str,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Remember which; nothing is asked yet.

        Args:
            pipeline: As `organization/pipeline`.
            token: An API access token that may read and write builds.
            api_url: Base address of the REST API.
            transport: The wire, for tests.
        """
        organization, _, name = pipeline.partition("/")
        owner, slug = _segment(organization), _segment(name)
        self._builds = f"/v2/organizations/{owner}/pipelines/{slug}/builds"
        self._pipeline = pipeline
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": "forkwatch"}
        self._api_url = api_url
        self._transport = transport

    def begin(self, ask: RunAsk) -> CiRun:
        """Make a build and return it.

        Raises:
            DispatchError: It may be there or not: look for it before asking again.
            DispatchRefusedError: Buildkite does not make it.
        """
        return _run(self._ask("POST", self._builds, body=_build(ask)))

    def find(self, ask: RunAsk) -> CiRun | None:
        """Return the build that was made for an ask; the first one, if there are several."""
        params = {
            f"meta_data[{JOB_KEY}]": ask.job,
            f"meta_data[{ATTEMPT_KEY}]": str(ask.attempt),
            "per_page": str(_FOUND_MAX),
        }
        # Whoever runs a build can write its meta-data; what it is called was said at its making.
        found = [
            build
            for build in self._ask("GET", self._builds, params=params)
            if build["source"] == "api" and build["message"] == ask.title
        ]
        return _run(min(found, key=lambda build: int(build["number"]))) if found else None

    def look(self, external_id: str) -> CiRun:
        """Return how a build is; one that is gone has ended."""
        try:
            return _run(self._ask("GET", self._of(external_id)))
        except _MissingBuildError:
            return CiRun(external_id=external_id, page="", state=CiRunState.ENDED, how="deleted")

    def cancel(self, external_id: str) -> None:
        """Ask for the end of a build; one that is over stays so."""
        try:
            self._ask("PUT", f"{self._of(external_id)}/cancel")
        except DispatchRefusedError as error:
            _log.info("build %s was not cancelled: %s", external_id, error)

    def _of(self, external_id: str) -> str:
        return f"{self._builds}/{_segment(external_id)}"

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return what Buildkite answers; nothing is repeated here."""
        what = f"{method} {path}"
        try:
            with httpx.Client(
                base_url=self._api_url,
                headers=self._headers,
                timeout=TIMEOUT_SECONDS,
                transport=self._transport,
            ) as client:
                answer = client.request(method, path, params=params, json=body)
        except httpx.HTTPError as error:
            # Its text may quote the request's headers.
            raise DispatchError(f"{what}: no answer ({type(error).__name__})") from None
        if answer.is_success:
            return _content(what, answer)
        told = f"{what}: {answer.status_code} {_said(answer)}".strip()
        if answer.status_code >= _SERVER or answer.status_code == _TOO_MANY:
            raise DispatchError(told)
        if answer.status_code == _NOT_FOUND:
            raise _MissingBuildError(
                f"Buildkite shows no such thing of {self._pipeline!r}: correct "
                "FORKWATCH_DISPATCH_BUILDKITE_PIPELINE, or let the token read and write builds "
                f"({told})"
            )
        raise DispatchRefusedError(f"Buildkite did not start the job: {told}")


def _build(ask: RunAsk) -> dict[str, Any]:
    """Return what a build is made of; the order itself comes from the service, when asked."""
    return {
        # What is checked out is where the steps and the plan come from, not what is measured.
        "commit": "HEAD",
        "branch": ask.branch,
        "message": ask.title,
        "env": {JOB_VARIABLE: ask.job, CLASS_VARIABLE: ask.host_class},
        "meta_data": {JOB_KEY: ask.job, ATTEMPT_KEY: str(ask.attempt)},
        # The pipeline is there for these builds alone and need not be told of each branch.
        "ignore_pipeline_branch_filters": True,
    }


def _run(told: Any) -> CiRun:
    state = str(told["state"])
    if state in _ENDED:
        found = CiRunState.ENDED
    else:
        found = CiRunState.RUNNING if state in _RUNNING else CiRunState.WAITING
    return CiRun(
        external_id=str(told["number"]),
        page=str(told["web_url"]),
        state=found,
        how=state if found is CiRunState.ENDED else "",
    )


def _content(what: str, answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise DispatchError(f"{what}: the answer is not JSON; is a proxy in between?") from None


def _said(answer: httpx.Response) -> str:
    """Return what Buildkite says about a failure, on one line."""
    try:
        content = answer.json()
    except ValueError:
        return ""
    message = content.get("message") if isinstance(content, dict) else None
    return " ".join(str(message or "").split())[:_SAID_LENGTH_MAX]


def _segment(text: str) -> str:
    """Return a value as one segment of a path, whatever is in it."""
    return quote(text, safe="")
