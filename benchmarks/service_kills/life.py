"""One life of the service: it starts, hears of something, works until nothing is left, and ends.

An order comes in as JSON. Where it names a moment of a step, the process kills itself there with
SIGKILL; where it names a file, every moment is written down. GitHub and Slack are doubles in the
process that gave the order, runners are done as soon as they are started, and nothing else is
different from a service in earnest but its pauses.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pygit2
from dbos import DBOS
from dbos._dbos import _get_dbos_instance
from sqlalchemy import event
from sqlalchemy.orm import Session

from benchmarks.service_kills.deeds import DEEDS
from results.atomic import write_atomically
from results.job import DOCUMENT_FILE
from service.app.compose import compose
from service.channels.github import client
from service.core.clock import SystemClock
from service.core.errors import DispatchError
from service.core.model import JobStatus
from service.core.settings import load_settings
from service.flows import commit_flow
from service.flows.step_gate import STEPS, Moment
from service.store import jobs
from service.store.database import Database
from tests.fakes.scripted_measurement import directives, measure

if TYPE_CHECKING:
    from datetime import datetime

    from results.job import JobOrder
    from service.app.compose import Service

#: Between looks of all that looks: a life has to be short, and how long it waits shows nothing.
QUICK_SECONDS: Final = 0.02
#: A life that has something to do for longer hangs.
LIFE_SECONDS_MAX: Final = 60.0
#: How a life ends that hangs.
HANGS: Final = 3
#: A transaction of a step is over, and the step is not.
INSIDE: Final = "inside"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a life is to be."""

    home: str
    repository: str
    #: What somebody does, and what it is about.
    deed: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    #: Settings of its own.
    settings: dict[str, Any] = field(default_factory=dict)
    #: Days by which its clock is ahead.
    days: int = 0
    #: As (step, moment, how often it was reached); None where it lives on.
    kill: tuple[str, str, int] | None = None
    #: Where moments are written down.
    trace: str | None = None


class LaterClock(SystemClock):
    """A clock that is ahead."""

    def __init__(self, days: int) -> None:
        self._ahead = timedelta(days=days)

    def now(self) -> datetime:
        """Return the time."""
        return super().now() + self._ahead


class AtOnce:
    """Runners that are done as soon as they are started; what they did lies in the home folder.

    `lose=1` in a commit's subject has the first attempt at its job leave nothing, begun as
    often as it may be.
    """

    def __init__(self, home: Path, repository: str, database: Database) -> None:
        self._jobs, self._repository = home / "jobs", repository
        self._database = database

    def start(self, order: JobOrder) -> None:
        """Measure by reading subjects."""
        folder = self._jobs / order.job
        folder.mkdir(parents=True, exist_ok=True)
        repository = pygit2.Repository(self._repository)
        shas = [sha for sha in (order.candidate, order.baseline) if sha]
        subjects = {sha: repository[sha].peel(pygit2.Commit).message.strip() for sha in shas}
        lost = int(directives(subjects[order.candidate]).get("lose", "0"))
        with self._database.reading() as session:
            job = jobs.find(session, order.job)
        if job is None or job.attempts > lost:
            # In one go, as a runner is a process of its own and not cut in two with the service.
            before = len(list(folder.glob(f"*{DOCUMENT_FILE}")))
            name = f"{before}-{DOCUMENT_FILE}" if before else DOCUMENT_FILE
            write_atomically(folder / name, measure(order, subjects).model_dump_json())

    def status(self, job: str) -> JobStatus:
        """Return what became of a job."""
        there = (self._jobs / job / DOCUMENT_FILE).exists()
        return JobStatus.FINISHED if there else JobStatus.LOST

    def stop(self, job: str) -> None:
        """Do nothing: it is over."""

    def collect(self, job: str) -> bytes:
        """Return the document of a job."""
        path = self._jobs / job / DOCUMENT_FILE
        if not path.exists():
            raise DispatchError
        return path.read_bytes()


class Reaper:
    """Hears how far steps come, and kills the process at the moment that was ordered."""

    def __init__(self, order: Order) -> None:
        self._kill = tuple(order.kill) if order.kill else None
        self._trace = Path(order.trace) if order.trace else None
        self._reached: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        #: The step that each thread is in.
        self._here = threading.local()

    def listen(self) -> None:
        """Begin."""
        STEPS.listen(self._step)
        event.listen(Session, "after_commit", self._committed)

    def _step(self, step: str, moment: Moment) -> None:
        self._here.step = step if moment is Moment.BEGUN else None
        self._come(step, moment.value)

    def _committed(self, _session: Session) -> None:
        step = getattr(self._here, "step", None)
        if step is not None:
            self._come(step, INSIDE)

    def _come(self, step: str, moment: str) -> None:
        with self._lock:
            self._reached[step, moment] += 1
            count = self._reached[step, moment]
            if self._trace is not None:
                with self._trace.open("a") as trace:
                    trace.write(json.dumps([step, moment, count]) + "\n")
            if (step, moment, count) == self._kill:
                os.kill(os.getpid(), signal.SIGKILL)


def run(words: list[str]) -> None:
    """Live."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    order = Order(**json.loads(words[0]))
    vars(commit_flow)["QUEUE_POLL_SECONDS"] = QUICK_SECONDS
    # The doubles have no secondary limits.
    vars(client)["WRITE_PAUSE_SECONDS"] = 0.0
    settings = load_settings(
        home=order.home,
        repository=order.repository,
        host_class="small",
        poll_seconds=QUICK_SECONDS,
        **order.settings,
    )
    service = compose(
        settings,
        clock=LaterClock(order.days),
        dispatcher=AtOnce(settings.home_folder, order.repository, Database(settings.data_url)),
    )
    Reaper(order).listen()
    _hasten(service)
    service.start()
    if order.deed:
        DEEDS[order.deed](service, order.about)
    _until_quiet(service)
    # As in earnest: an orderly end of DBOS would be another thing to test.
    os._exit(0)


def _hasten(service: Service) -> None:
    """Have every queue looked at more often; DBOS is not launched yet."""
    internal = _get_dbos_instance()._registry.get_internal_queue()  # noqa: SLF001  it has no setting
    internal._polling_interval_sec = QUICK_SECONDS  # noqa: SLF001  as above
    service.bisects._poll_seconds = QUICK_SECONDS  # noqa: SLF001  half a second in earnest
    if service.pulls is not None:
        service.pulls._poll_seconds = QUICK_SECONDS  # noqa: SLF001  as above


def _until_quiet(service: Service) -> None:
    """Wait until the branch was looked at and no flow is left."""
    deadline = time.monotonic() + LIFE_SECONDS_MAX
    while time.monotonic() < deadline:
        left = DBOS.list_workflows(status=["PENDING", "ENQUEUED"], load_input=False)
        if service.watcher.looked_at is not None and not left:
            return
        time.sleep(QUICK_SECONDS)
    names = [f"{one.name} {one.workflow_id} {one.status}" for one in left]
    print("hangs:", *names, sep="\n", file=sys.stderr, flush=True)
    os._exit(HANGS)
