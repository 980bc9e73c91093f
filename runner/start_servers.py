"""The servers of a start: one per side on freshly restored data, brought up and taken down in turn.

A bench comes in, running servers go out, and at their end how long each took to come and to go, and
what it held. What runs on them is not known here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from results.server_facts import ServerLife
from runner import counters, leavings
from runner.errors import StageError
from runner.load_facts import peak_rss_bytes
from runner.servers.engines import engine_of
from runner.trees import allocated_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from results.slice import SideName
    from runner.bench import Bench
    from runner.servers.engine import RunningServer
    from runner.snapshots import Snapshot


@contextmanager
def servers(
    bench: Bench, *, start: int, leg: int, lives: list[ServerLife]
) -> Iterator[dict[SideName, RunningServer]]:
    """Give a server per side on freshly restored data.

    Which one comes up first, and so goes down last, alternates from start to start: what the other
    costs it cancels.

    Args:
        bench: What is run.
        start: Number of the start.
        leg: Number of the data directory in it.
        lives: Gets an entry for each server that went down in the ordinary way.

    Raises:
        DatasetError, ServerError: A server could not be had, died or did not stop.
    """
    with contextlib.ExitStack() as stack:
        # What a hostile server leaves may be deeper than a stack.
        stack.callback(leavings.remove, bench.scratch)
        restore(bench.snapshots, bench.scratch)
        up: dict[SideName, RunningServer] = {}
        sides = list(bench.servers)
        for side in sides if start % 2 == 0 else reversed(sides):
            stack.enter_context(naming(side))
            stack.enter_context(_one(bench, side, up, leg=leg, lives=lives))
        try:
            yield {side: up[side] for side in sides}
        except StageError as error:
            # The servers are about to stop, and that is not where it happened.
            error.side = error.side or ""
            raise


@contextmanager
def _one(
    bench: Bench,
    side: SideName,
    up: dict[SideName, RunningServer],
    *,
    leg: int,
    lives: list[ServerLife],
) -> Iterator[None]:
    """Add a server to those that are up; the others are held still while it comes and goes."""
    spec, data = bench.servers[side], bench.scratch / side
    with contextlib.ExitStack() as own:
        with held_still(list(up.values())):
            server = own.enter_context(
                engine_of(spec.engine).running(spec, data, cpus=bench.placement.server_cpus)
            )
        up[side] = server
        yield
        del up[side]
        peak = peak_rss_bytes(counters.family(server.pids))
        began = time.monotonic()
        with held_still(list(up.values())):
            own.close()
        shutdown_s = round(time.monotonic() - began, 3)
    lives.append(
        ServerLife(
            side=side,
            leg=leg,
            # A library has nothing that starts and stops.
            startup_s=server.startup_s if server.pids else None,
            shutdown_s=shutdown_s if server.pids else None,
            peak_rss_bytes=peak,
            disk_bytes=allocated_bytes(data),
        )
    )


@contextmanager
def naming(side: SideName) -> Iterator[None]:
    """Say on which side something failed, unless it has been said closer to it."""
    try:
        yield
    except StageError as error:
        if error.side is None:
            error.side = side
        raise


def restore(snapshots: Mapping[SideName, Snapshot], scratch: Path) -> None:
    """Make each side's data directory below `scratch`, those of one snapshot at once.

    Raises:
        DatasetError: There is no room for them, or the disk failed.
    """
    for snapshot in {id(one): one for one in snapshots.values()}.values():
        snapshot.restore([scratch / side for side, own in snapshots.items() if own is snapshot])


@contextmanager
def held_still(servers: Sequence[RunningServer]) -> Iterator[None]:
    """Stop these servers' processes for a while: an idle server still flushes, purges and ticks."""
    try:
        for server in servers:
            _signal(server, signal.SIGSTOP)
        yield
    finally:
        for server in servers:
            _signal(server, signal.SIGCONT)


def _signal(server: RunningServer, number: int) -> None:
    for pid in counters.family(server.pids):
        # A server that died is noticed when it is stopped or measured next.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
