"""Running the service in the foreground until it is told to stop.

Settings come in; the process ends. Stopping is quick on purpose: whatever a flow was doing goes on
after the next start, as it would after a crash, and runners do not notice.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import socket
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn

from service.app.compose import compose
from service.app.database import upgrade
from service.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from service.app.compose import Service
    from service.core.settings import Settings

_log = logging.getLogger("forkwatch.serve")

#: Held while a service works in a home folder, so that a second one cannot resume the same flows.
LOCK_FILE: Final = "service.lock"
#: Requests under way may end before the process does.
GRACE_SECONDS: Final = 5
_BACKLOG: Final = 128


def serve(
    settings: Settings, *, composed: Callable[[Settings, Collection[int]], Service] = compose
) -> None:
    """Run the service until SIGTERM or SIGINT; then end the process with status 0.

    Raises:
        SettingsError: The port or the home folder is in use, or no repository is set.
    """
    upgrade(settings)
    cpus = _step_aside()
    with _only_one(settings), _listening(settings) as listener:
        service = composed(settings, cpus)
        service.start()
        server = uvicorn.Server(
            uvicorn.Config(
                service.app,
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        # uvicorn handles the signal first and hands it on to the handler it found, which is this.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        _log.info("forkwatch serves %s", settings.base_url)
        server.run(sockets=[listener])
        service.stop()
    _leave()


def _step_aside() -> set[int]:
    """Keep this process off the processors that runners measure on; return all there are.

    Runners on this machine leave the first processor to the rest of the system.
    """
    cpus = os.sched_getaffinity(0)
    if len(cpus) > 1:
        os.sched_setaffinity(0, {min(cpus)})
    return cpus


def _leave() -> None:
    """End the process without waiting for flows, which may wait for hours.

    An orderly end of DBOS would make waiting flows fail and write that down as their result.
    """
    _log.info("stopped; flows go on after the next start")
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


@contextmanager
def _only_one(settings: Settings) -> Iterator[None]:
    path = settings.home_folder / LOCK_FILE
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                f"another service works in {settings.home_folder}; stop it or give --home"
            ) from None
        yield


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server(
            (settings.host, settings.port), family=family, backlog=_BACKLOG
        )
    except OSError as error:
        raise SettingsError(
            f"{settings.host}:{settings.port} cannot be listened on ({error.strerror}); give --port"
        ) from error
    with listener:
        yield listener
