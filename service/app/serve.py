"""Running the service in the foreground until it is told to stop.

Settings come in; the process ends. Stopping is quick on purpose: requests and steps under way end,
and whatever a flow was doing goes on after the next start, as it would after a crash. Runners do
not notice.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn

from service.app.compose import compose
from service.app.logs import open_log
from service.app.sole_service import only_one, shares_database
from service.app.start_checks import check_start, prepare_database
from service.core.errors import SettingsError
from service.flows.step_gate import STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from types import FrameType

    from service.app.compose import Service
    from service.core.settings import Settings
    from service.flows.step_gate import StepGate

_log = logging.getLogger("forkwatch.serve")

#: Requests under way may end before the process does.
GRACE_SECONDS: Final = 5
#: From the signal to the end, whatever still works: containers are killed after ten seconds, and
#: what is cut then has had no time to end by itself.
STOP_SECONDS_MAX: Final = 8.0
_BACKLOG: Final = 128
#: Objects made and not freed, then collections of the younger generation; Python's are 700, 10, 10.
_COLLECT_AFTER: Final = (20_000, 20, 20)


def serve(
    settings: Settings,
    *,
    composed: Callable[[Settings, Collection[int]], Service] = compose,
    stop_seconds_max: float = STOP_SECONDS_MAX,
) -> None:
    """Run the service until SIGTERM or SIGINT; then end the process with status 0.

    Args:
        settings: Of the service.
        composed: Makes it.
        stop_seconds_max: From the signal to the end, whatever still works.

    Raises:
        SettingsError: The settings are wrong, or the port or the home folder is in use.
    """
    open_log(settings)
    shared = shares_database(settings)
    with only_one(settings.home_folder, shared=shared), listening(settings) as listener:
        check_start(settings)
        prepare_database(settings)
        service = composed(settings, _step_aside())
        stopping = Stopping(STEPS, seconds_max=stop_seconds_max)
        server = _Server(_web_settings(service, settings), asked=stopping.ask)
        # uvicorn hears signals while it runs, and hands them on to the handler that it found.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.handle_exit(signal.SIGTERM, None))
        service.start()
        _collect_seldom()
        _log.info("forkwatch serves %s", settings.pages_url)
        server.run(sockets=[listener])
        stopping.ask()
        service.stop()
        STEPS.wait_until_empty()
    _leave("stopped; flows go on after the next start")


@contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """Give the socket that the service is reached at.

    Raises:
        SettingsError: The address cannot be listened on.
    """
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
        # Connections inherit it. asyncio sets it by itself only where a socket names its protocol;
        # without it the body of an answer waits 40 ms for the reader to acknowledge the head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


class Stopping:
    """Sees to it that the process ends soon after it was asked to."""

    def __init__(self, gate: StepGate, *, seconds_max: float = STOP_SECONDS_MAX) -> None:
        """Begin to wait for somebody to ask.

        Args:
            gate: Closed as soon as somebody has.
            seconds_max: The process ends so long after, at the latest.
        """
        self._gate = gate
        self._seconds_max = seconds_max
        self._asked = threading.Event()
        # A signal may come at any moment, so its handler only sets this; all else is done here.
        threading.Thread(target=self._run, name="stopping", daemon=True).start()

    def ask(self) -> None:
        """Ask the process to end; asking again changes nothing."""
        self._asked.set()

    def _run(self) -> None:
        self._asked.wait()
        self._gate.close()
        time.sleep(self._seconds_max)
        _leave(f"still busy after {self._seconds_max:g} s; what was cut is done again")


class _Server(uvicorn.Server):
    """Says at once that it was asked to stop; by itself it says so once all requests are over."""

    def __init__(self, config: uvicorn.Config, *, asked: Callable[[], None]) -> None:
        super().__init__(config)
        self._was_asked = asked

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._was_asked()
        super().handle_exit(sig, frame)


def _web_settings(service: Service, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        service.app,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        forwarded_allow_ips=list(settings.trusted_proxy_names),
    )


def _step_aside() -> set[int]:
    """Keep this process off the processors that runners measure on; return all there are.

    Runners on this machine leave the first processor to the rest of the system.
    """
    cpus = os.sched_getaffinity(0)
    if len(cpus) > 1:
        os.sched_setaffinity(0, {min(cpus)})
    return cpus


def _collect_seldom() -> None:
    """Keep the collector of cycles from working in the middle of requests.

    What was made until now stays until the end: a full collection would walk all of it, which takes
    a third of a second. A page makes some 100,000 objects and frees them without the collector
    (docs/operating.md, "How fast it is").
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def _leave(why: str) -> None:
    """End the process without waiting for flows, which may wait for hours.

    An orderly end of DBOS would make waiting flows fail and write that down as their result.
    """
    _log.info("%s", why)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
