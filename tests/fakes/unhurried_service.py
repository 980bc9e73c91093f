"""A program that runs the real service, with a dispatcher that takes its time to start runners.

The last argument says how many seconds. Each start leaves a line in `begun` before and in `ended`
after it, so that a test can see whether a step was cut or done again.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Collection
from pathlib import Path

from results.job import JobOrder
from service.app.compose import Service, compose
from service.app.serve import serve
from service.channels.file_alerts import FileAlerts
from service.channels.local_git import LocalGit
from service.channels.this_machine import ThisMachine
from service.core.settings import Settings, load_settings
from tests.fakes.mortal_service import RUNNER

#: Shorter than in earnest, where a step never ends: the tests wait for it.
STOP_SECONDS = 4.0
#: Longer than in earnest, where steps end by themselves: a busy machine may stand still.
UNHURRIED_STOP_SECONDS = 120.0
NEVER_SECONDS = 3600


class Unhurried(ThisMachine):
    """Starts runners like the real one, later."""

    def __init__(self, home: Path, seconds: float) -> None:
        super().__init__(home, command=RUNNER)
        self._home = home
        self._seconds = seconds

    def start(self, order: JobOrder) -> None:
        self._note("begun", order)
        time.sleep(self._seconds)
        super().start(order)
        self._note("ended", order)

    def _note(self, what: str, order: JobOrder) -> None:
        with (self._home / what).open("a") as file:
            file.write(f"{order.job}\n")


def main(home: Path, repository: Path, port: int, seconds: float) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)

    def composed(settings: Settings, _cpus: Collection[int]) -> Service:
        return compose(
            settings,
            code_host=LocalGit(repository),
            dispatcher=Unhurried(settings.home_folder, seconds),
            alerts=FileAlerts(settings.home_folder),
        )

    settings = load_settings(
        home=home, repository=repository, port=port, host_class="small", poll_seconds=0.1
    )
    stop = STOP_SECONDS if seconds >= NEVER_SECONDS else UNHURRIED_STOP_SECONDS
    serve(settings, composed=composed, stop_seconds_max=stop)


def run(words: list[str]) -> None:
    home, repository, port, seconds = words
    main(Path(home), Path(repository), int(port), float(seconds))


if __name__ == "__main__":
    run(sys.argv[1:])
