"""Settling: a server's state before a workload is measured does not depend on what ran before.

What is left to do, and how to hurry it on, is the engine's knowledge. A server that does not settle
in time is measured all the same, and its samples say so.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.servers.engine import RunningServer

#: The field waits 60 s and more (docs/domain: POSTWRITE); small datasets settle in well under one.
SETTLE_TIMEOUT_S: Final = 120.0
#: After a load: a table of 10 GB, compacted at 20 MB/s.
LOADED_TIMEOUT_S: Final = 600.0
_POLL_S: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class Settled:
    """How a server came to rest."""

    seconds: float
    #: Empty when it is at rest, else what was left when time ran out.
    left: str


def settle(server: RunningServer, *, timeout_s: float = SETTLE_TIMEOUT_S) -> Settled:
    """Wait until the server has no background work left, hurrying it on.

    Raises:
        ServerError: The server refused a statement.
    """
    return server.engine.settle(server, timeout_s=timeout_s)


def wait(left: Callable[[], str], *, until: float) -> str:
    """Ask what is left until nothing is or the monotonic clock shows `until`; return the answer."""
    found = left()
    while found and time.monotonic() < until:
        time.sleep(_POLL_S)
        found = left()
    return found


def settled(began: float, left: str) -> Settled:
    """Return how a settling ended that began at `began` on the monotonic clock."""
    return Settled(seconds=round(time.monotonic() - began, 3), left=left)
