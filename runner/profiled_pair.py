"""A profiled pair: one workload sampled on both sides, drawn as one differential flame graph.

Servers run one after the other, warmed up and with the suite's clients. What an operation costs
while it is sampled makes the graph's unit; it is no measurement and judged by nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from results.atomic import write_atomically
from results.explanation import Profile
from results.slice import SideName
from runner import counters, flame_graph, profile
from runner.lone_server import lone_server, run_slice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.bench import Bench
    from workloads.catalog import Workload

#: 2000 samples of a busy thread; see `profile.FREQUENCY_HZ`.
SECONDS: Final = 10


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """A profile of one side, and what an operation cost while it was taken."""

    stacks: Mapping[str, int]
    cpu_us_per_op: float


def sample(bench: Bench, workload: Workload, *, seconds: int, seed: int) -> dict[SideName, Sampled]:
    """Return a profile of each side.

    Raises:
        HostError: This machine takes no profiles.
        DatasetError, ServerError, ClientError: Restoring, the server, the client or perf failed.
    """
    with TemporaryDirectory(prefix="forkwatch-") as folder:
        return {
            side: _sample(bench, side, workload, seconds, seed, Path(folder) / side)
            for side in bench.servers
        }


def _sample(
    bench: Bench, side: SideName, workload: Workload, seconds: int, seed: int, file: Path
) -> Sampled:
    spec, placement = bench.servers[side], bench.placement
    with lone_server(
        spec,
        bench.snapshots[side],
        bench.scratch / "profiled",
        cpus=placement.server_cpus,
    ) as server:

        def run(length_s: int) -> int:
            done = run_slice(
                server,
                workload,
                bench.dataset,
                seconds=length_s,
                threads=bench.suite.threads,
                seed=seed,
                cpus=placement.client_cpus,
            )
            return done.operations

        run(max(1, bench.suite.warmup_seconds))
        with (
            profile.recording(server.pids, file),
            counters.around(server, None, asks_engine=False) as account,
        ):
            operations = run(seconds)
    assert account.counters is not None, "the slice has ended"
    return Sampled(
        stacks=profile.stacks(file, spec.installed.folder),
        cpu_us_per_op=account.counters.server_cpu_us / operations,
    )


def draw(
    sampled: Mapping[SideName, Sampled], *, title: str, seconds: int, folder: Path, file: str
) -> Profile:
    """Write the flame graph to `file` below the job's folder, and return what it shows."""
    baseline, candidate = sampled[SideName.BASELINE], sampled[SideName.CANDIDATE]
    svg = flame_graph.draw(
        baseline.stacks,
        candidate.stacks,
        title=f"{title}: CPU time of the server per operation",
        baseline_cost=baseline.cpu_us_per_op,
        candidate_cost=candidate.cpu_us_per_op,
        unit="us/op",
    )
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, svg)
    return Profile(
        file=file,
        event=profile.event(),
        seconds=seconds,
        baseline_samples=sum(baseline.stacks.values()),
        candidate_samples=sum(candidate.stacks.values()),
        baseline_cpu_us_per_op=baseline.cpu_us_per_op,
        candidate_cpu_us_per_op=candidate.cpu_us_per_op,
    )
