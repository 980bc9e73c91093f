"""Slices: a few seconds of one workload on one side, what they cost and what got in the way."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from results.slice import ENGINE_COUNTERS_MAX, Slice, SliceState
from runner import clock, counters, disturbance
from runner.clients import client_of
from runner.errors import ClientError
from runner.host import clock_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from results.slice import Counters, SideName
    from runner.bench import Bench
    from runner.client_run import ClientRun
    from runner.counters import Account
    from runner.servers.engine import RunningServer
    from workloads.catalog import Workload

#: The client's clock and ours may differ by its start-up and by this share.
_CLOCK_SHARE: Final = 0.02
_US: Final = 1_000_000


def run_client(
    bench: Bench, workload: Workload, server: RunningServer, *, seconds: int, seed: int
) -> ClientRun:
    """Run a workload's client on a server that is up."""
    return client_of(workload.tool).run_slice(
        server,
        workload,
        bench.dataset,
        seconds=seconds,
        threads=bench.suite.threads,
        seed=seed,
        cpus=bench.placement.client_cpus,
    )


def measure_slice(
    bench: Bench,
    workload: Workload,
    servers: Mapping[SideName, RunningServer],
    side: SideName,
    sequence: int,
    seed: int,
) -> Slice:
    """Return one slice with what it cost.

    Raises:
        ClientError: The client failed, did nothing, or its clock cannot be believed.
    """
    server = servers[side]
    device = counters.device_of(bench.scratch)
    view = View(bench=bench, pids=[pid for one in servers.values() for pid in one.pids])
    with counters.around(server, device) as account:
        started_at, began = clock.now(), time.monotonic()
        quiet_before = view.read()
        result = run_client(bench, workload, server, seconds=bench.suite.seconds, seed=seed)
        disturbed = view.disturbed(quiet_before, view.read(), client_s=result.cpu_s)
        passed_s = time.monotonic() - began
    if not disturbed:
        check_clock(workload, result.seconds, passed_s=passed_s)
    return slice_of(
        workload,
        side,
        result,
        account,
        started_at=started_at,
        sequence=sequence,
        disturbed=disturbed,
        is_library=not server.pids,
    )


def slice_of(
    workload: Workload,
    side: SideName,
    result: ClientRun,
    account: Account,
    *,
    started_at: datetime,
    sequence: int,
    disturbed: str,
    is_library: bool,
) -> Slice:
    """Return what a client reported and what it cost as a slice."""
    assert account.counters is not None, "the slice has ended"
    return Slice(
        workload=workload.name,
        side=side,
        sequence=sequence,
        started_at=started_at,
        seconds=result.seconds,
        operations=result.operations,
        throughput_ops_s=result.throughput_ops_s,
        per_second_ops_s=result.per_second_ops_s,
        latency_ms=result.latency_ms,
        counters=with_told(account.counters, result, is_library=is_library),
        state=state_of(disturbed=bool(disturbed), unfit=bool(result.unfit)),
        reason=result.unfit or disturbed,
        reported=workload.reported,
    )


def state_of(*, disturbed: bool, unfit: bool) -> SliceState:
    """Return whether the numbers of a slice may be used."""
    if unfit:
        return SliceState.FAILED
    return SliceState.DISTURBED if disturbed else SliceState.OK


def with_told(found: Counters, result: ClientRun, *, is_library: bool) -> Counters:
    """Return the counters with what the client told: its figures, and a library's CPU time."""
    room = max(0, ENGINE_COUNTERS_MAX - len(found.engine))
    told = {
        name: value for name, value in result.extra.items() if value >= 0 and math.isfinite(value)
    }
    more: dict[str, object] = {"engine": {**found.engine, **dict(list(told.items())[:room])}}
    if is_library:
        more["server_cpu_us"] = result.cpu_s * _US
    return found.model_copy(update=more)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What went on at one moment, and the CPU time of servers' children until then."""

    #: Of the kernel's accounts; None where nobody looks.
    reading: disturbance.Reading | None
    children_s: float
    #: How far the time of day is ahead of the clock that nobody can set.
    ahead_s: float


@dataclass(frozen=True, kw_only=True)
class View:
    """What else went on while a slice ran, as far as somebody looks."""

    bench: Bench
    #: Of all servers, the idle one's too.
    pids: Sequence[int]

    def read(self) -> _Seen:
        """Return what goes on now, as far as somebody looks."""
        ahead_s = clock_steps.distance_s()
        if self.bench.limits is None:
            return _Seen(reading=None, children_s=0.0, ahead_s=ahead_s)
        measured = {*self.bench.placement.server_cpus, *self.bench.placement.client_cpus}
        return _Seen(
            reading=disturbance.read(self.pids, sorted(measured), spinners=self.bench.spinners),
            children_s=counters.children_s(self.pids),
            ahead_s=ahead_s,
        )

    def disturbed(self, before: _Seen, after: _Seen, *, client_s: float) -> str:
        """Return what got in the way, in words; empty where nothing did."""
        stepped = clock_steps.step(before.ahead_s, after.ahead_s)
        limits = self.bench.limits
        if stepped or before.reading is None or after.reading is None or limits is None:
            return stepped
        # A server that serves each client by a child of its own is not disturbed by it.
        own_s = client_s + after.children_s - before.children_s
        return disturbance.judge(before.reading, after.reading, limits, client_s=own_s)


def check_clock(workload: Workload, reported_s: float, *, passed_s: float) -> None:
    """Refuse a slice whose client says it took longer than it did: a clock was set meanwhile."""
    if reported_s > passed_s * (1 + _CLOCK_SHARE):
        raise ClientError(
            "measure",
            f"{workload.name}: the client says it ran for {reported_s:.2f} s and was here for "
            f"{passed_s:.2f} s; a clock of this machine was set, so its numbers mean nothing",
        )
