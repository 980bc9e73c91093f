"""A program that runs the real service and kills itself with SIGKILL after an act of its choice.

Acts are what the service does through its ports: reading the plan, starting a runner, looking at a
job, telling an alert, asking the time inside a transaction. Death comes right after the act, when
the world has changed and the flow has not yet noted it: the worst moment. `start:2` is the second
runner that this life of the service starts.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

from service.app.compose import Service, compose
from service.app.serve import serve
from service.channels.file_alerts import FileAlerts
from service.channels.local_git import LocalGit
from service.channels.this_machine import ThisMachine
from service.core.clock import SystemClock
from service.core.settings import Settings, load_settings

RUNNER = (sys.executable, "-m", "tests.fakes.scripted_runner")


class Mortal:
    """Passes everything on to the real part, and counts the acts of all parts."""

    acts: ClassVar[Counter[str]] = Counter()
    last = ("", 0)

    def __init__(self, part: Any) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not callable(found):
            return found

        def act(*arguments: Any, **named: Any) -> Any:
            result = found(*arguments, **named)
            Mortal.acts[name] += 1
            if (name, Mortal.acts[name]) == Mortal.last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return act


def main(home: Path, repository: Path, port: int, last: str) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    name, _, count = last.partition(":")
    Mortal.last = (name, int(count))
    serve(
        load_settings(
            home=home, repository=repository, port=port, host_class="small", poll_seconds=0.1
        ),
        composed=_composed,
    )


def _composed(settings: Settings, _cpus: Collection[int]) -> Service:
    home = settings.home_folder
    assert settings.repository is not None
    return compose(
        settings,
        clock=Mortal(SystemClock()),
        code_host=Mortal(LocalGit(settings.repository)),
        dispatcher=Mortal(ThisMachine(home, command=RUNNER)),
        alerts=Mortal(FileAlerts(home)),
    )


def run(words: list[str]) -> None:
    home, repository, port, last = words
    main(Path(home), Path(repository), int(port), last)


if __name__ == "__main__":
    run(sys.argv[1:])
