"""A job that the service had a CI start: its order is fetched, done, and its run brought back.

A job's name and the service's address come in; a run document goes to the service. The credential
that the order comes with stays in the memory of this process.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx

from forkwatch.ci_identity import identity_token
from forkwatch.comparing import do
from forkwatch.errors import DoorError
from forkwatch.job_log import open_job_log
from results.job import DOCUMENT_FILE, JobOrder
from runner.checkout import git
from runner.client import submit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forkwatch.ci_settings import CiSettings
    from results.document import RunDocument
    from runner.progress import Progress
    from runner.settings import Home, RunnerSettings

#: Seconds between tries to fetch an order: some minutes, in which a service may be started anew.
FETCH_WAITS_S: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 60.0)
#: Seconds between tries to bring a run: a quarter of an hour, because hours of a machine are in it.
BRING_WAITS_S: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0)
TIMEOUT_S: Final = 60.0
#: An order carries a plan of 256 kB at the most.
ORDER_BYTES_MAX: Final = 1024 * 1024
#: As the service names them.
_JOB: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
#: An address without a path: it is what the token is asked for, too.
_SERVICE: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]{1,253}")
#: Answers after which asking again may help: too many requests, or trouble of the service's.
_AGAIN: Final = (429, 500, 502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class Errand:
    """What a run of a CI was started for."""

    job: str
    #: Base address of the service.
    service: str

    def __post_init__(self) -> None:
        """Refuse what is no job or no address, before anything is asked or written.

        Raises:
            DoorError: It is not.
        """
        if not _JOB.fullmatch(self.job):
            raise DoorError(f"{self.job[:200]!r} is no name of a job; it comes from the service")
        if not _SERVICE.fullmatch(self.service):
            raise DoorError(
                f"{self.service[:200]!r} is no address of a service; write such as "
                "https://perf.example.org, without a path"
            )


def fetch_order(
    errand: Errand,
    *,
    host_class: str,
    token: Callable[[], str],
    transport: httpx.BaseTransport | None = None,
    waits_s: tuple[float, ...] = FETCH_WAITS_S,
) -> JobOrder:
    """Return the order of a job, with the credential for its run.

    Args:
        errand: Which, and where.
        host_class: Of this machine: the service refuses the order to any other.
        token: Gives a fresh identity for each try.
        transport: The wire, for tests.
        waits_s: Pauses between tries.

    Raises:
        DoorError: The service gives none, or does not answer in all tries.
    """
    path = f"/api/v1/dispatched/{errand.job}/order"
    said = "never asked"
    with httpx.Client(base_url=errand.service, timeout=TIMEOUT_S, transport=transport) as client:
        for wait_s in (*waits_s, None):
            headers = {"Authorization": f"Bearer {token()}"}
            try:
                answer = client.post(path, params={"host_class": host_class}, headers=headers)
            except httpx.TransportError as error:
                said = type(error).__name__
            else:
                if answer.is_success:
                    return _order(answer, errand, host_class=host_class)
                said = _said(answer)
                if answer.status_code not in _AGAIN:
                    raise DoorError(f"the service gives no order for job {errand.job}: {said}")
            if wait_s is not None:
                time.sleep(wait_s)
    raise DoorError(f"the service at {errand.service} gave no order: {said}")


def fetch_commits(order: JobOrder, repository: Path) -> None:
    """Have the commits of an order in a repository; those that lack are fetched from its origin.

    Raises:
        DoorError: One of them cannot be had.
    """
    for sha in filter(None, (order.candidate, order.baseline, order.unchanged_from)):
        if git(repository, "cat-file", "-e", f"{sha}^{{commit}}").ok:
            continue
        fetched = git(repository, "fetch", "--quiet", "--no-tags", "origin", sha)
        # What it is only compared with need not be there: then it is measured.
        if not fetched.ok and sha != order.unchanged_from:
            raise DoorError(
                f"{sha} is not in {repository} and cannot be fetched: check out with all history "
                f"(fetch-depth: 0), or let this job read the repository; git says: "
                f"{' '.join(fetched.stderr.split())[-300:]}"
            )


def run_errand(
    errand: Errand,
    *,
    repository: Path,
    home: Home,
    settings: RunnerSettings,
    ci: CiSettings,
    progress: Progress,
    keep: Callable[[Path], None],
) -> RunDocument:
    """Do the job that this run of a CI was started for; return its document.

    Args:
        errand: Which job, and of which service.
        repository: A checkout with the commits, or with an origin to fetch them from.
        home: Of the runner.
        settings: Of the runner.
        ci: What the CI says of itself.
        progress: Told of what goes on.
        keep: Takes the path of the document before it is brought: if it cannot be, it is not lost.

    Raises:
        DoorError: There is no order, or its commits are not there.
        SubmitError: The service did not take the run.
    """
    given = fetch_order(
        errand,
        host_class=settings.host_class,
        token=lambda: identity_token(ci, audience=errand.service),
    )
    open_job_log(given)
    fetch_commits(given, repository)
    # What is written into the job's folder has no credential in it.
    order = given.model_copy(
        update={"repository": repository, "submit_to": None, "credential": None}
    )
    document, folder = do(order, home=home, settings=settings, progress=progress)
    assert given.credential is not None, "an order comes with the credential for its run"
    try:
        keep(folder / DOCUMENT_FILE)
    finally:
        # What cannot be kept is brought all the same.
        submit(
            document,
            url=errand.service,
            credential=given.credential.get_secret_value(),
            waits_s=BRING_WAITS_S,
            path=f"/api/v1/dispatched/{errand.job}/run",
        )
    return document


def _order(answer: httpx.Response, errand: Errand, *, host_class: str) -> JobOrder:
    """Return the order in an answer, if it is the one that was asked for."""
    if len(answer.content) > ORDER_BYTES_MAX:
        raise DoorError(f"the order of job {errand.job} is longer than {ORDER_BYTES_MAX} bytes")
    try:
        order = JobOrder.model_validate(answer.json()["order"])
    except (ValueError, KeyError, TypeError) as error:
        # It is of another version of forkwatch, or of something else; it holds a credential.
        raise DoorError(
            f"what {errand.service} gave is no order that this version of forkwatch understands "
            f"({type(error).__name__}); install the service's version here"
        ) from None
    if (order.job, order.host_class) != (errand.job, host_class) or order.credential is None:
        raise DoorError(f"what {errand.service} gave is not the order of job {errand.job}")
    return order


def _said(answer: httpx.Response) -> str:
    """Return what the service says about a failure, on one line."""
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        detail = ""
    return f"{answer.status_code} {' '.join(str(detail).split())[:500]}".strip()
