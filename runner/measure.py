"""Measure: one start, with one server per side, slices alternating between the sides.

A start begins from a freshly restored dataset and a new server process. Baseline and candidate are
both up; slices run in balanced order (ABBA, who goes first drawn from the job's seed), so that a
drift of the host cancels inside the pairs. Both sides of a pair of slices get the same seed and
therefore the same keys.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from results.document import SideName, Slice, Start
from runner import clock, counters, datasets, sysbench
from runner.servers import mysql_family

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from results.document import Placement
    from runner.progress import Progress
    from runner.servers.mysql_family import RunningServer, ServerSpec
    from workloads.catalog import Workload
    from workloads.plan import DatasetPlan, Suite

#: Largest seed that sysbench takes as it is.
_SEED_MAX: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Everything that stays the same from start to start of one job."""

    servers: Mapping[SideName, ServerSpec]
    workloads: Sequence[Workload]
    suite: Suite
    dataset: DatasetPlan
    snapshot: Path
    #: Where data directories of running servers are put; on the snapshot's file system.
    scratch: Path
    placement: Placement
    seed: int


def measure_start(bench: Bench, index: int, progress: Progress) -> Start:
    """Return one start with all slices of all workloads.

    Raises:
        DatasetError, ServerError, ClientError: The start has no complete numbers.
    """
    started_at, began = clock.now(), time.monotonic()
    pieces: list[Slice] = []
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, bench.scratch, ignore_errors=True)
        servers = {}
        for side, spec in bench.servers.items():
            data = bench.scratch / side
            datasets.restore(bench.snapshot, data)
            servers[side] = stack.enter_context(
                mysql_family.running(spec, data, cpus=bench.placement.server_cpus)
            )
        device = counters.device_of(bench.scratch)
        # Reading workloads first: they must not see what the writing ones leave behind.
        for workload in sorted(bench.workloads, key=lambda workload: workload.writes):
            _warm_up(bench, workload, servers)
            order = slice_order(
                list(servers), bench.suite.slices, seed=_seed(bench.seed, index, workload.name)
            )
            for pair, side in order:
                seed = _seed(bench.seed, index, workload.name, pair)
                piece = measure_slice(
                    bench, workload, servers[side], side, len(pieces), seed, device
                )
                pieces.append(piece)
                progress.piece(index, piece)
    return Start(
        index=index,
        started_at=started_at,
        seconds=round(time.monotonic() - began, 3),
        measured_seconds=round(sum(piece.seconds for piece in pieces), 3),
        slices=tuple(pieces),
    )


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


def _warm_up(bench: Bench, workload: Workload, servers: Mapping[SideName, RunningServer]) -> None:
    if bench.suite.warmup_seconds == 0:
        return
    for server in servers.values():
        sysbench.run_slice(
            server,
            workload,
            bench.dataset,
            seconds=bench.suite.warmup_seconds,
            threads=bench.suite.threads,
            seed=_seed(bench.seed, "warm-up", workload.name),
            cpus=bench.placement.client_cpus,
        )


def measure_slice(
    bench: Bench,
    workload: Workload,
    server: RunningServer,
    side: SideName,
    sequence: int,
    seed: int,
    device: str | None,
) -> Slice:
    """Return one slice with what it cost.

    Raises:
        ClientError: The client failed or did nothing.
    """
    started_at = clock.now()
    before = counters.read(server.pids, device)
    result = sysbench.run_slice(
        server,
        workload,
        bench.dataset,
        seconds=bench.suite.seconds,
        threads=bench.suite.threads,
        seed=seed,
        cpus=bench.placement.client_cpus,
    )
    after = counters.read(server.pids, device)
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
        counters=counters.between(before, after),
    )
