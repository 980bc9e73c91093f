"""Run documents of a whole suite, as a runner would send them.

A shape and an explicit generator come in, what a job measured goes out; with an order it becomes a
document. Nothing here is measured: throughputs scatter around fixed levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from results.document import (
    Artifact,
    CanaryReading,
    Commit,
    Dataset,
    Host,
    Outcome,
    Placement,
    RunDocument,
    Side,
    Start,
    Toolchain,
)
from results.slice import Counters, Latency, SideName, Slice
from workloads.plan_datasets import spelt_out

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from results.job import JobOrder
    from service.core.model import CommitRecord, GitCommit

#: The suite that the aims are about.
WORKLOADS: Final = spelt_out(("full-42",))
FORK: Final = "bench"
HOST_CLASS: Final = "bench"
#: Standard deviations of the logs of starts and of slices; docs/statistics.md has what was measured
#: on real hosts.
START_SD: Final = 0.010
SLICE_SD: Final = 0.006
SECOND_SD: Final = 0.03
#: Status counters of a slice: about what a server of MariaDB moves in ten seconds.
ENGINE_COUNTERS: Final = 40
#: Levels of the workloads, from a scan to a look-up of a point, in operations per second.
_LOWEST_OPS_S, _STEP = 20.0, 1.25
_MEASURED_AT: Final = datetime(2026, 11, 1, tzinfo=UTC)
_JOB_TIME: Final = timedelta(hours=4)
_TREE: Final = "7" * 40


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How much a document tells: each start has one slice of each workload."""

    workloads: tuple[str, ...] = WORKLOADS
    starts: int = 3
    #: Of one slice; three starts of a hundred seconds are the 300 s of the aim.
    seconds: int = 100


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a job measures beside how much."""

    sides: tuple[SideName, ...] = (SideName.CANDIDATE,)
    #: What is left of the candidate's throughput, by workload; all of it where not named.
    left: Mapping[str, float] = field(default_factory=dict)
    #: Whether slices tell of every second; retention cuts that out of old documents.
    with_seconds: bool = True


def measured(shape: Shape, rng: random.Random, wanted: Wanted) -> tuple[Start, ...]:
    """Return the starts of a job."""
    return tuple(
        Start(
            index=index,
            started_at=_MEASURED_AT,
            seconds=float(len(shape.workloads) * (shape.seconds + 5)),
            measured_seconds=float(len(shape.workloads) * shape.seconds),
            slices=_slices(shape, rng, wanted),
        )
        for index in range(shape.starts)
    )


def document_of(
    order: JobOrder,
    starts: Sequence[Start],
    *,
    candidate: CommitRecord | GitCommit,
    baseline: CommitRecord | GitCommit | None = None,
    at: datetime,
) -> RunDocument:
    """Return the document of a job's order that ended at this time."""
    return RunDocument(
        id=order.run,
        job=order.job,
        fork=FORK,
        branch=order.branch,
        suite=order.suite,
        config="default",
        variant="rel",
        tool_version="0.1.0",
        created_at=at - _JOB_TIME,
        finished_at=at,
        seed=order.seed,
        threads=1,
        outcome=Outcome.MEASURED,
        host=_host(),
        placement=Placement(mode="disjoint", server_cpus=(1,), client_cpus=(2,)),
        dataset=Dataset(
            name="small",
            digest="d" * 64,
            engine_format="innodb",
            tables=1,
            rows_per_table=50_000_000,
        ),
        candidate=_side(candidate),
        baseline=_side(baseline) if baseline else None,
        starts=tuple(starts),
        starts_max=order.starts if baseline else None,
        stage_seconds={"build": 600.0, "dataset": 120.0, "measure": 13_000.0},
    )


def _slices(shape: Shape, rng: random.Random, wanted: Wanted) -> tuple[Slice, ...]:
    slices: list[Slice] = []
    for place, workload in enumerate(shape.workloads):
        for side in wanted.sides:
            level = _LOWEST_OPS_S * _STEP**place
            if side is SideName.CANDIDATE:
                level *= wanted.left.get(workload, 1.0)
            throughput = level * rng.lognormvariate(0, math.hypot(START_SD, SLICE_SD))
            slices.append(
                _slice(
                    shape, rng, wanted, workload, side, throughput=throughput, sequence=len(slices)
                )
            )
    return tuple(slices)


def _slice(
    shape: Shape,
    rng: random.Random,
    wanted: Wanted,
    workload: str,
    side: SideName,
    *,
    throughput: float,
    sequence: int,
) -> Slice:
    seconds = range(shape.seconds) if wanted.with_seconds else ()
    return Slice(
        workload=workload,
        side=side,
        sequence=sequence,
        started_at=_MEASURED_AT,
        seconds=float(shape.seconds),
        operations=max(1, round(throughput * shape.seconds)),
        throughput_ops_s=round(throughput, 3),
        per_second_ops_s=tuple(
            round(throughput * rng.lognormvariate(0, SECOND_SD), 2) for _ in seconds
        ),
        latency_ms=Latency(
            average=1_000 / throughput,
            minimum=500 / throughput,
            maximum=9_000 / throughput,
            p50=900 / throughput,
            p95=2_000 / throughput,
            p99=3_000 * rng.lognormvariate(0, SECOND_SD) / throughput,
        ),
        counters=_counters(rng, operations=max(1, round(throughput * shape.seconds))),
    )


def _counters(rng: random.Random, *, operations: int) -> Counters:
    """Return what a slice cost, by costs per operation that scatter a little."""

    def cost(each: float) -> float:
        return float(round(operations * each * rng.lognormvariate(0, START_SD)))

    return Counters(
        server_cpu_us=cost(120.0),
        voluntary_switches=cost(2.0),
        involuntary_switches=cost(0.1),
        server_read_bytes=cost(40.0),
        server_write_bytes=cost(300.0),
        machine_cpu_percent=50.0,
        machine_switches=cost(2.5),
        machine_steal_percent=0.0,
        device_reads=cost(0.01),
        device_read_kib=cost(0.2),
        device_write_kib=cost(0.4),
        machine_cpu_us=cost(180.0),
        server_read_calls=cost(1.0),
        server_write_calls=cost(1.0),
        minor_faults=cost(0.05),
        engine={
            f"Innodb_counter_{number}": cost(1.0 + number) for number in range(ENGINE_COUNTERS)
        },
        hardware={"instructions": cost(90_000.0), "cycles": cost(60_000.0)},
    )


def _side(commit: CommitRecord | GitCommit) -> Side:
    return Side(
        commit=Commit(
            sha=commit.sha,
            tree=commit.tree,
            author=commit.author,
            subject=commit.subject,
            committed_at=commit.committed_at,
        ),
        artifact=Artifact(
            id=f"artifact-{commit.sha[:12]}",
            variant="rel",
            tree=_TREE,
            toolchain=Toolchain(
                c_compiler="gcc 12.2.0",
                cxx_compiler="g++ 12.2.0",
                cmake="3.25.1",
                linker="default",
                digest="t" * 16,
            ),
            content_hash=f"content-{commit.sha[:12]}",
            installed_bytes=52_428_800,
            build_seconds=600.0,
            cached=False,
            server_version="10.11.19-MariaDB",
        ),
    )


def _host() -> Host:
    return Host(
        name="bench-1",
        host_class=HOST_CLASS,
        cpu_model="Xeon 2.3 GHz",
        logical_cpus=16,
        memory_bytes=64 * 2**30,
        kernel="6.1.0",
        os="Debian 12",
        virtualised=False,
        settings={"thp": "madvise", "aslr": "2", "governor": "performance", "turbo": "off"},
        fingerprint="f" * 16,
        canary=tuple(
            CanaryReading(
                moment=moment,
                name=name,
                unit="ops/s",
                value=1_000.0,
                change_percent=0.4,
                history=20,
            )
            for moment in ("before", "after")
            for name in ("cpu", "memory", "disk")
        ),
    )
