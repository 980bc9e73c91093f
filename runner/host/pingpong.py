"""Ping-pong: the smallest client and server there are, to see what a wake-up costs here.

Pairs of processes pass a byte to and fro over pipes for some seconds, one end on the server's
processors and one on the client's. This side starts `players.py`, which prints its result.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import shell
from runner.errors import HostError

if TYPE_CHECKING:
    from results.document import Placement

_GRACE_S: Final = 30.0
_PLAYERS: Final = Path(__file__).with_name("players.py")


def run(placement: Placement, *, pairs: int, seconds: float, file: Path | None = None) -> float:
    """Return round trips per second of all pairs together.

    Args:
        placement: Where servers and clients run; nowhere in particular where it names none.
        pairs: Clients, each with a server of its own.
        seconds: For how long.
        file: Where given, a server makes a page last on the disk before it answers.

    Raises:
        HostError: It failed.
    """
    words = [sys.executable, "-I", "-S", str(_PLAYERS)]
    words += [",".join(map(str, cpus)) for cpus in (placement.server_cpus, placement.client_cpus)]
    words += [str(pairs), str(seconds), str(file or "")]
    done = shell.run(words, timeout_s=seconds + _GRACE_S)
    try:
        return float(done.stdout)
    except ValueError as error:
        raise HostError(f"the ping-pong gave no number: {done.stderr[-300:]}") from error
