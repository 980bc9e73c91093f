"""A program that asks for a bisect and follows it, and kills itself after an act of its choice.

It has the real flow, git, store and folders of jobs; runners that outlive it read subjects. It is
the part of `mortal_service` that bisects are, and dies in the same way: right after an act, when
the world has changed and the flow has not yet noted it.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSConfig

from service.channels.local_git import LocalGit
from service.channels.this_machine import ThisMachine
from service.core.bisections import UNDER_WAY, BisectAsk
from service.core.clock import SystemClock
from service.core.settings import load_settings
from service.flows.alert_actions import StoredAlertActions
from service.flows.bisect_asks import BisectAsks
from service.flows.bisect_flow import BisectFlow
from service.flows.bisect_steps import BisectSteps
from service.flows.bisect_telling import BisectTelling
from service.store import bisects, migrate
from service.store.database import Database
from tests.fakes.mortal_service import Mortal

RUNNER = (sys.executable, "-m", "tests.fakes.leaving_runner")
QUEUE = "measure-small"
#: Nobody waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 150


def main(home: Path, repository: Path, last: str) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    name, _, number = last.partition(":")
    Mortal.last = (name, int(number))
    home.mkdir(exist_ok=True)
    settings = load_settings(home=home, host_class="small", poll_seconds=0.1)
    migrate.upgrade(settings.data_url)
    database, clock = Database(settings.data_url), SystemClock()
    parts: dict[str, Any] = {
        "database": database,
        "clock": Mortal(clock),
        "code_host": Mortal(LocalGit(repository)),
        "settings": settings,
    }
    DBOS(
        config=DBOSConfig(
            name="forkwatch",
            system_database_url=settings.flows_url,
            executor_id="mortal",
            application_version="1",
            console_log_level="WARNING",
        )
    )
    steps = BisectSteps(dispatcher=Mortal(ThisMachine(home, command=RUNNER)), **parts)
    actions = StoredAlertActions(database, clock)
    telling = BisectTelling(database=database, settings=settings, steps=actions)
    flow = BisectFlow(steps, telling, queue=QUEUE, step_pause_seconds=0.01, poll_seconds=0.05)
    asks = BisectAsks(flow=flow, **parts)
    DBOS.launch()
    DBOS.register_queue(QUEUE, global_concurrency=1, polling_interval_sec=0.05)
    flow.open_queue()
    _follow(database, asks, repository)


def _follow(database: Database, asks: BisectAsks, repository: Path) -> None:
    """Ask for the whole branch, as often as this is begun, and wait for the answer."""
    branch = LocalGit(repository).branch_commits("main", limit=100)
    ask = BisectAsk(
        good=branch[0].sha, bad=branch[-1].sha, workload="scan", actor="token:ada", via="api"
    )
    bisect = asks.ask(ask)[0].id
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with database.reading() as session:
            found = bisects.find(session, bisect)
        assert found is not None
        if found.state not in UNDER_WAY:
            return
        time.sleep(0.05)
    raise AssertionError("the bisect never ended")


def run(words: list[str]) -> None:
    home, repository, last = words
    main(Path(home), Path(repository), last)


if __name__ == "__main__":
    run(sys.argv[1:])
