"""Measure: one start, with one server per side, slices alternating between the sides.

A start begins from a freshly restored dataset and a new server process. Baseline and candidate are
both up; slices run in balanced order (ABBA, who goes first drawn from the job's seed), so that a
drift of the host cancels inside the pairs. Both sides of a pair of slices get the same seed and
therefore the same keys.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from results.document import Preparation, Start
from results.slice import SideName, Slice, SliceState
from runner import clock, counters, disturbance, sysbench, warmup
from runner.errors import ClientError
from runner.servers import mysql_family
from runner.servers.settle import settle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from results.document import Placement
    from runner.disturbance import Limits
    from runner.progress import Progress
    from runner.servers.mysql_family import RunningServer, ServerSpec
    from runner.snapshots import Snapshot
    from workloads.catalog import Workload
    from workloads.plan import DatasetPlan, Suite

#: Largest seed that sysbench takes as it is.
_SEED_MAX: Final = 2**31 - 1
#: How often a disturbed slice is measured again in its start: more would let a busy host hold a job
#: for ever, and what is still disturbed then is left out.
REPEATS_MAX: Final = 2
#: The client's clock and ours may differ by its start-up and by this share.
_CLOCK_SHARE: Final = 0.02


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Everything that stays the same from start to start of one job."""

    servers: Mapping[SideName, ServerSpec]
    suite: Suite
    dataset: DatasetPlan
    snapshot: Snapshot
    #: Where data directories of running servers are put; on the snapshot's file system.
    scratch: Path
    placement: Placement
    seed: int
    #: Process ids of what keeps the measured processors awake.
    spinners: Sequence[int] = ()
    #: What a quiet slice may show; None where nobody looks.
    limits: Limits | None = None


def measure_start(
    bench: Bench, index: int, workloads: Sequence[Workload], progress: Progress
) -> Start:
    """Return one start with all slices of these workloads.

    Raises:
        DatasetError, ServerError, ClientError: The start has no complete numbers.
    """
    started_at, began = clock.now(), time.monotonic()
    record = _Record(bench=bench, index=index, progress=progress)
    for leg in legs(workloads):
        with _servers(bench) as servers:
            for workload in leg:
                _measure_workload(record, workload, servers)
    return Start(
        index=index,
        started_at=started_at,
        seconds=round(time.monotonic() - began, 3),
        measured_seconds=round(sum(piece.seconds for piece in record.pieces), 3),
        slices=tuple(record.pieces),
        preparations=tuple(record.preparations),
    )


def legs(workloads: Sequence[Workload]) -> list[list[Workload]]:
    """Return what may run on one restored dataset: all that reads, and at most one that writes.

    Reading workloads go first, for they leave the dataset as it was. Every further writing one
    begins from the snapshot again, so that a build which writes faster does not change what the
    next workload finds.
    """
    reading = [workload for workload in workloads if not workload.writes]
    writing = [[workload] for workload in workloads if workload.writes]
    if not writing:
        return [reading]
    return [reading + writing[0], *writing[1:]]


@dataclass(frozen=True, kw_only=True)
class _Record:
    """What a start has yielded so far."""

    bench: Bench
    index: int
    progress: Progress
    pieces: list[Slice] = field(default_factory=list)
    preparations: list[Preparation] = field(default_factory=list)


@contextmanager
def _servers(bench: Bench) -> Iterator[dict[SideName, RunningServer]]:
    """Give a server per side on freshly restored data."""
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, bench.scratch, ignore_errors=True)
        folders = {side: bench.scratch / side for side in bench.servers}
        bench.snapshot.restore(list(folders.values()))
        yield {
            side: stack.enter_context(
                mysql_family.running(spec, folders[side], cpus=bench.placement.server_cpus)
            )
            for side, spec in bench.servers.items()
        }


def _measure_workload(
    record: _Record, workload: Workload, servers: Mapping[SideName, RunningServer]
) -> None:
    bench, index = record.bench, record.index
    for side in servers:
        record.preparations.append(_prepare(bench, workload, side, servers))
    todo = slice_order(
        list(servers), bench.suite.slices, seed=_seed(bench.seed, index, workload.name)
    )
    for _ in range(1 + REPEATS_MAX):
        # What was disturbed is measured again after the others: a burst has passed by then, and
        # no slice uses up the repeats of the rest.
        todo = [turn for turn in todo if _is_disturbed(record, workload, servers, *turn)]


def _is_disturbed(
    record: _Record,
    workload: Workload,
    servers: Mapping[SideName, RunningServer],
    pair: int,
    side: SideName,
) -> bool:
    """Measure a slice and record it; return whether something got in its way."""
    bench, index = record.bench, record.index
    seed = _seed(bench.seed, index, workload.name, pair)
    with held_still(_others(servers, side)):
        piece = measure_slice(bench, workload, servers, side, len(record.pieces), seed)
    record.pieces.append(piece)
    record.progress.piece(index, piece)
    return piece.state is SliceState.DISTURBED


def _prepare(
    bench: Bench,
    workload: Workload,
    side: SideName,
    servers: Mapping[SideName, RunningServer],
) -> Preparation:
    """Bring one side to rest and then to its steady speed."""
    with held_still(_others(servers, side)):
        settled = settle(servers[side])
        warmed = warmup.NONE
        if bench.suite.warmup_seconds:
            warmed = warmup.warm_up(
                lambda number: sysbench.run_slice(
                    servers[side],
                    workload,
                    bench.dataset,
                    seconds=bench.suite.warmup_seconds,
                    threads=bench.suite.threads,
                    seed=_seed(bench.seed, "warm-up", workload.name, number),
                    cpus=bench.placement.client_cpus,
                )
            )
    return Preparation(
        workload=workload.name,
        side=side,
        settle_seconds=settled.seconds,
        left=settled.left,
        warm_up_seconds=warmed.seconds,
        steady=warmed.steady,
    )


def _others(servers: Mapping[SideName, RunningServer], side: SideName) -> list[RunningServer]:
    return [server for name, server in servers.items() if name is not side]


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
    for pid in server.pids:
        # A server that died is noticed when it is stopped or measured next.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def slice_order(
    sides: Sequence[SideName], slices: int, *, seed: int
) -> Sequence[tuple[int, SideName]]:
    """Return (pair, side) for each slice: every side `slices` times, in balanced order.

    Two sides alternate as ABBA ABBA or BAAB BAAB, so that each goes first equally often and a
    linear drift cancels; the seed decides which.
    """
    first = list(sides)
    if random.Random(seed).random() < 0.5:  # noqa: PLR2004  a fair coin
        first.reverse()
    order = []
    for pair in range(slices):
        turn = first if pair % 2 == 0 else first[::-1]
        order += [(pair, side) for side in turn]
    return order


def _seed(*parts: object) -> int:
    """Return a seed above zero (to sysbench, zero means the time of day)."""
    text = "\x1f".join(str(part) for part in parts)
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return number % _SEED_MAX + 1


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
    view = _View(bench=bench, pids=[pid for one in servers.values() for pid in one.pids])
    with counters.around(server, device) as account:
        started_at, began = clock.now(), time.monotonic()
        quiet_before = view.read()
        result = sysbench.run_slice(
            server,
            workload,
            bench.dataset,
            seconds=bench.suite.seconds,
            threads=bench.suite.threads,
            seed=seed,
            cpus=bench.placement.client_cpus,
        )
        disturbed = view.disturbed(quiet_before, view.read(), client_s=result.cpu_s)
        passed_s = time.monotonic() - began
    check_clock(workload, result.seconds, passed_s=passed_s)
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
        counters=account.counters,
        state=SliceState.DISTURBED if disturbed else SliceState.OK,
        reason=disturbed,
    )


@dataclass(frozen=True, kw_only=True)
class _View:
    """What else went on while a slice ran, as far as somebody looks."""

    bench: Bench
    #: Of all servers, the idle one's too.
    pids: Sequence[int]

    def read(self) -> disturbance.Reading | None:
        if self.bench.limits is None:
            return None
        measured = {*self.bench.placement.server_cpus, *self.bench.placement.client_cpus}
        return disturbance.read(self.pids, sorted(measured), spinners=self.bench.spinners)

    def disturbed(
        self,
        before: disturbance.Reading | None,
        after: disturbance.Reading | None,
        *,
        client_s: float,
    ) -> str:
        """Return what got in the way, in words; empty where nothing did."""
        if before is None or after is None or self.bench.limits is None:
            return ""
        return disturbance.judge(before, after, self.bench.limits, client_s=client_s)


def check_clock(workload: Workload, reported_s: float, *, passed_s: float) -> None:
    """Refuse a slice whose client says it took longer than it did: a clock was set meanwhile."""
    if reported_s > passed_s * (1 + _CLOCK_SHARE):
        raise ClientError(
            "measure",
            f"{workload.name}: the client says it ran for {reported_s:.2f} s and was here for "
            f"{passed_s:.2f} s; a clock of this machine was set, so its numbers mean nothing",
        )
