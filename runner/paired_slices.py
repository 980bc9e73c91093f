"""Paired slices: one slice of each side of a pair, measured in turns.

What goes on between the slices of a start is not known here. Both servers are up; a client works
on each, and every quarter of a second it is the other side's turn (`runner/turns.py`), so that what
the host does to one it does to the other.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from runner import clock, counters, shell, sysbench, turns
from runner.counters import machine, process
from runner.slices import View, check_clock, slice_of
from workloads import insert_benchmark
from workloads.workload import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from results.slice import SideName, Slice
    from runner.bench import Bench
    from runner.client_run import ClientRun
    from runner.counters import Account
    from runner.servers.engine import RunningServer
    from workloads.workload import Workload

_MS: Final = 1000
#: Share of operations that may have been under way when their turn ended: more of them would reach
#: the 99th percentile, and no latency is told.
_CUT_SHARE_MAX: Final = 0.001


def takes_turns(workload: Workload) -> bool:
    """Whether a workload goes on for as long as it is told, so that it can be stopped and go on."""
    alone = not workload.chain and not insert_benchmark.ends_by_itself(workload)
    return workload.tool is Tool.SYSBENCH and alone


def measure_pair(
    bench: Bench,
    workload: Workload,
    servers: Mapping[SideName, RunningServer],
    *,
    sequence: int,
    seed: int,
) -> list[Slice]:
    """Return a slice of each side; the first of `servers` goes first.

    Raises:
        ClientError: A client failed, did nothing, or its clock cannot be believed.
    """
    device = counters.device_of(bench.scratch)
    view = View(bench=bench, pids=[pid for one in servers.values() for pid in one.pids])
    with contextlib.ExitStack() as stack:
        accounts = {
            side: stack.enter_context(counters.around(server, device))
            for side, server in servers.items()
        }
        pids = [server.pids for server in servers.values()]
        clerk = Clerk(device=device, accounts=list(accounts.values()), pids=pids)
        started_at, quiet_before = clock.now(), view.read()
        began = time.monotonic()
        done = _play(bench, workload, servers, clerk, seed=seed)
        passed_s = time.monotonic() - began
        told = {side: _told(bench, workload, one) for side, one in done.items()}
        client_s = sum(result.cpu_s for result in told.values())
        disturbed = view.disturbed(quiet_before, view.read(), client_s=client_s)
    pieces: list[Slice] = []
    for side, turned in done.items():
        if not disturbed:
            check_clock(workload, told[side].seconds, passed_s=passed_s)
        result = _in_turns(told[side], turned, threads=bench.suite.threads)
        piece = slice_of(
            workload,
            side,
            result,
            accounts[side],
            started_at=started_at,
            sequence=sequence + len(pieces),
            disturbed=disturbed,
            is_library=not servers[side].pids,
        )
        pieces.append(piece.model_copy(update={"turns": len(turned.spans)}))
    return pieces


def _play(
    bench: Bench,
    workload: Workload,
    servers: Mapping[SideName, RunningServer],
    clerk: Clerk,
    *,
    seed: int,
) -> Mapping[SideName, turns.Turned]:
    # Each client's clock runs on during the other's turns.
    seconds = bench.suite.seconds * len(servers)
    parties = [
        turns.Party(
            name=workload.name,
            pids=server.pids,
            command=sysbench.run_command(
                server,
                workload,
                bench.dataset,
                seconds=seconds,
                threads=bench.suite.threads,
                seed=seed,
                cpus=bench.placement.client_cpus,
            ),
        )
        for server in servers.values()
    ]
    done = turns.take_turns(
        parties,
        turn_s=bench.suite.turn_ms / _MS,
        timeout_s=seconds + sysbench.GRACE_S,
        mark=sysbench.BEGUN,
        on_switch=clerk.switch,
    )
    return dict(zip(servers, done, strict=True))


def _told(bench: Bench, workload: Workload, turned: turns.Turned) -> ClientRun:
    sysbench.check_end(workload, turned.returncode, turned.text[-shell.TAIL_BYTES :])
    return sysbench.read_run(turned.text, workload, threads=bench.suite.threads)


@dataclass(kw_only=True)
class Clerk:
    """Enters what the machine did into the account of the side whose turn it was.

    The servers themselves are read at their first turn, and after the last one while all are
    stopped. A server that runs has background work to do, and would be charged with more of it
    the longer it waits for the other one to be asked for its counters.
    """

    device: str | None
    accounts: Sequence[Account]
    pids: Sequence[Sequence[int]]
    _whose: int | None = None
    _then: machine.Reading | None = None
    _sums: dict[int, machine.Reading] = field(default_factory=dict)
    _first: dict[int, process.Reading] = field(default_factory=dict)

    def switch(self, whose: int | None) -> None:
        """Close the turn that was, and open the next."""
        now = machine.read(self.device)
        if self._whose is not None and self._then is not None:
            sums = self._sums.get(self._whose, machine.NOTHING)
            self._sums[self._whose] = machine.plus(sums, self._then, now)
            self.accounts[self._whose].machine = self._sums[self._whose]
        self._whose, self._then = whose, now
        if whose is not None:
            if whose not in self._first:
                self._first[whose] = process.read(self.pids[whose])
            return
        for index, account in enumerate(self.accounts):
            account.server = (self._first[index], process.read(self.pids[index]))


def _in_turns(result: ClientRun, turned: turns.Turned, *, threads: int) -> ClientRun:
    """Return what a client reported, as of the time that was its own."""
    active_s = turned.active_s(result.seconds)
    cut = threads * len(turned.spans)
    latency = None
    if result.latency_ms is not None and cut <= _CUT_SHARE_MAX * result.operations:
        paused_ms = _MS * (result.seconds - active_s) * threads / result.operations
        latency = result.latency_ms.model_copy(
            # The longest one is a pause.
            update={"average": max(0.0, result.latency_ms.average - paused_ms), "maximum": None}
        )
    return replace(result, seconds=active_s, per_second_ops_s=(), latency_ms=latency)
