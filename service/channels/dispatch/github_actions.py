"""GitHub Actions as a CI that does jobs: one workflow of the watched repository, run by dispatch.

What is to be asked comes in; the run that came of it goes out. A run is found again by its name, in
which the workflow has the job; GitHub names it at once where it is new enough to.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from service.channels.github.client import segment
from service.channels.github.errors import MissingError, RefusedError
from service.core.dispatching import CiRun, CiRunState, DispatchRefusedError
from service.core.identity import CiSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.channels.github.client import GitHubClient
    from service.core.dispatching import RunAsk

_log = logging.getLogger("forkwatch.dispatch")

#: GitHub's clock and ours may differ by so much where runs since a time are looked for.
CLOCKS_APART: Final = timedelta(minutes=5)
#: Asks GitHub to say which run it began. Servers from before 2026 refuse a field that they do not
#: know, and name it.
_DETAILS: Final = "return_run_details"
_ENDED: Final = "completed"
_RUNNING: Final = "in_progress"


class GitHubRunners:
    """Runs of one workflow."""

    system: Final = CiSystem.GITHUB

    def __init__(self, client: GitHubClient, *, workflow: str) -> None:
        """Remember which.

        Args:
            client: Of the watched repository.
            workflow: Name of its file below `.github/workflows`.
        """
        self._client = client
        self._workflow = workflow
        self._path = f"{client.path}/actions/workflows/{segment(workflow)}"

    def begin(self, ask: RunAsk) -> CiRun | None:
        """Ask for a run; return it where GitHub says which it is.

        Raises:
            CodeHostError: It may have begun or not: look for it before asking again.
            DispatchRefusedError: GitHub does not begin it.
        """
        body: dict[str, Any] = {"ref": ask.branch, "inputs": _inputs(ask)}
        with self._explained():
            try:
                made = self._client.post(f"{self._path}/dispatches", {**body, _DETAILS: True})
            except RefusedError as error:
                if _DETAILS not in str(error):
                    raise
                made = self._client.post(f"{self._path}/dispatches", body)
        if not isinstance(made, dict) or "workflow_run_id" not in made:
            return None
        return CiRun(
            external_id=str(made["workflow_run_id"]),
            page=str(made["html_url"]),
            state=CiRunState.WAITING,
        )

    def find(self, ask: RunAsk) -> CiRun | None:
        """Return the run that was begun for an ask; the first one, if there are several."""
        since = (ask.asked_at - CLOCKS_APART).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = None
        with self._explained():
            # The newest come first. GitHub can be asked for runs since a time, in a form that its
            # own description of the API does not allow.
            for run in self._client.items(
                f"{self._path}/runs",
                key="workflow_runs",
                event="workflow_dispatch",
                branch=ask.branch,
            ):
                if str(run["created_at"]) < since:
                    break
                if run["display_title"] == ask.title:
                    found = run
        return None if found is None else _run(found)

    def look(self, external_id: str) -> CiRun:
        """Return how a run is; one that is gone has ended."""
        try:
            return _run(self._client.get(self._of(external_id)))
        except MissingError:
            return CiRun(external_id=external_id, page="", state=CiRunState.ENDED, how="deleted")
        except RefusedError as error:
            raise DispatchRefusedError(f"GitHub does not show the run: {error}") from error

    def cancel(self, external_id: str) -> None:
        """Ask for the end of a run; one that is over stays so."""
        try:
            self._client.post(f"{self._of(external_id)}/cancel", {})
        except RefusedError as error:
            _log.info("run %s was not cancelled: %s", external_id, error)

    def _of(self, external_id: str) -> str:
        return f"{self._client.path}/actions/runs/{segment(external_id)}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn GitHub's refusals into what an operator can do about them."""
        try:
            yield
        except MissingError as error:
            raise DispatchRefusedError(
                f"GitHub shows no workflow {self._workflow!r} that may be started: put it on the "
                "default branch with the trigger workflow_dispatch, and let the App or token "
                f"write Actions ({error})"
            ) from error
        except RefusedError as error:
            raise DispatchRefusedError(f"GitHub did not start the job: {error}") from error


def _inputs(ask: RunAsk) -> dict[str, str]:
    """Return the inputs of the workflow; the order itself comes from the service, when asked."""
    return {
        "job": ask.job,
        "attempt": str(ask.attempt),
        "host-class": ask.host_class,
        "candidate": ask.candidate,
        "suite": ask.suite,
    }


def _run(told: Any) -> CiRun:
    if told["status"] == _ENDED:
        state = CiRunState.ENDED
    else:
        state = CiRunState.RUNNING if told["status"] == _RUNNING else CiRunState.WAITING
    ended = state is CiRunState.ENDED
    return CiRun(
        external_id=str(told["id"]),
        page=str(told["html_url"]),
        state=state,
        how=str(told["conclusion"] or "") if ended else "",
    )
