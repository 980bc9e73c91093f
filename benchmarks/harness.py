"""What the instrument costs: `make bench`.

Prints, from one run on this machine:

1. throughput under our harness against bare sysbench and a bare server, both pinned alike and
   alternating ABBA within each start (aim: within 1 %);
2. the share of a warm job's wall time that is not measuring, at 30 s per workload (aim: below
   25 %).

Both use the demo fork's first commit. Nothing else should run beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from detectors.pairwise import compare
from forkwatch.comparing import order_for
from forkwatch.demo.fork import make_demo_fork
from results.document import RunDocument, SideName
from results.job import ORDER_FILE
from runner import checkout, counters, datasets, measure, placement, shell, sysbench
from runner.build import Builder
from runner.host import quiet_checks
from runner.job import write_atomically
from runner.servers import mysql_family
from runner.servers.mysql_family import RunningServer, ServerSpec
from runner.settings import Home, RunnerSettings
from workloads.catalog import SCRIPTS, find_workload
from workloads.plan import PLAN_FILE, Plan, read_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workloads.catalog import Workload

OURS: Final = SideName.CANDIDATE
BARE: Final = SideName.BASELINE


def main() -> None:
    """Run both measurements and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=5, help="server starts per side")
    parser.add_argument("--seconds", type=int, default=5, help="length of a slice")
    parser.add_argument("--slices", type=int, default=2, help="slices per workload and start")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="forkwatch-bench-") as folder:
        fork = make_demo_fork(Path(folder) / "fork")
        home = Home(Path(folder) / "home")
        plan = read_plan(fork.repository / PLAN_FILE)
        for check in quiet_checks():
            print(f"{'ok   ' if check.ok else 'noisy'} {check.name}: {check.found}")
        spec, bench = _bench(plan, fork.repository, fork.commits[0], home, chosen)
        _against_bare(spec, bench, starts=chosen.starts)
        _overhead(fork.repository, home)


def _bench(
    plan: Plan, repository: Path, sha: str, home: Home, chosen: argparse.Namespace
) -> tuple[ServerSpec, measure.Bench]:
    """Return the server and what to measure on it, with artifact and dataset made."""
    builder = Builder(home=home, settings=RunnerSettings(), repository=repository)
    suite = plan.suite("commit").model_copy(
        update={"seconds": chosen.seconds, "slices": chosen.slices}
    )
    variant = plan.builds[suite.build]
    spec = ServerSpec(
        engine=plan.fork.engine,
        installed=builder.build(checkout.resolve(repository, sha), suite.build, variant),
        program=variant.server,
        install_db=variant.install_db,
        options=plan.configs[suite.config].options,
    )
    dataset = plan.datasets[suite.dataset]
    cpus = placement.usable_cpus()
    placed = placement.place("shared-core", cpus=cpus)
    snapshot = datasets.ensure(datasets.describe(suite.dataset, dataset, spec), dataset, spec, home)
    placement.step_aside(placed, cpus=cpus)
    bench = measure.Bench(
        servers={},
        workloads=[find_workload(name) for name in suite.workloads],
        suite=suite,
        dataset=dataset,
        snapshot=snapshot,
        scratch=home.folder("scratch"),
        placement=placed,
        seed=1,
    )
    return spec, bench


def _against_bare(spec: ServerSpec, bench: measure.Bench, *, starts: int) -> None:
    """Print the throughput of our harness relative to bare sysbench, per workload."""
    found: dict[str, dict[SideName, list[list[float]]]] = {
        workload.name: {BARE: [], OURS: []} for workload in bench.workloads
    }
    for index in range(starts):
        for name, sides in _one_start(spec, bench, index).items():
            for side, values in sides.items():
                found[name][side].append(values)
    print(
        f"\nharness against bare sysbench: {starts} starts x {bench.suite.slices} slices x "
        f"{bench.suite.seconds} s, server and client on processor "
        f"{bench.placement.server_cpus[0]}, ABBA"
    )
    print(f"{'workload':16} {'bare o/s':>12} {'ours o/s':>12} {'ratio':>8}   95 % interval")
    for name, measured in found.items():
        bare_starts, our_starts = measured[BARE], measured[OURS]
        change = compare(bare_starts, our_starts)
        ratios = [
            median(ours) / median(bare) for bare, ours in zip(bare_starts, our_starts, strict=True)
        ]
        bare_level = median(median(start) for start in bare_starts)
        our_level = median(median(start) for start in our_starts)
        low, high = change.interval.low, change.interval.high
        print(
            f"{name:16} {bare_level:12,.1f} {our_level:12,.1f} {median(ratios):8.4f}   "
            f"{100 * low:+.2f} % to {100 * high:+.2f} %"
        )


def _one_start(
    spec: ServerSpec, bench: measure.Bench, index: int
) -> dict[str, dict[SideName, list[float]]]:
    """Return the throughput of each slice of one start, by workload and side."""
    found: dict[str, dict[SideName, list[float]]] = {}
    cpus = bench.placement.server_cpus
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, bench.scratch, ignore_errors=True)
        for side in (BARE, OURS):
            datasets.restore(bench.snapshot, bench.scratch / side)
        # Who starts first gets other memory: both get their turn.
        order = (OURS, BARE) if index % 2 else (BARE, OURS)
        servers: dict[SideName, RunningServer] = {}
        for side in order:
            running = mysql_family.running if side is OURS else _bare_server
            servers[side] = stack.enter_context(running(spec, bench.scratch / side, cpus=cpus))
        device = counters.device_of(bench.scratch)
        for workload in bench.workloads:
            found[workload.name] = {BARE: [], OURS: []}
            for warm in (True, False):
                seconds = bench.suite.warmup_seconds if warm else bench.suite.seconds
                rounds = 1 if warm else bench.suite.slices
                for pair, side in measure.slice_order([BARE, OURS], rounds, seed=index + 1):
                    seed = 1000 * index + pair + 1
                    if side is OURS:
                        timed = dataclasses.replace(
                            bench, suite=bench.suite.model_copy(update={"seconds": seconds})
                        )
                        piece = measure.measure_slice(
                            timed, workload, servers[OURS], side, 0, seed, device
                        )
                        value = piece.throughput_ops_s
                    else:
                        value = _bare_slice(
                            servers[BARE].socket, workload, bench, seconds=seconds, seed=seed
                        )
                    if not warm:
                        found[workload.name][side].append(value)
    return found


@contextlib.contextmanager
def _bare_server(spec: ServerSpec, data: Path, *, cpus: Sequence[int]) -> Iterator[RunningServer]:
    """Run the same program with the same options, without a sandbox around it."""
    run = Path(tempfile.mkdtemp(prefix="forkwatch-bare-"))
    program = spec.installed.folder / spec.program
    words = ["taskset", "--cpu-list", str(cpus[0]), str(program), "--no-defaults", "--user=root"]
    words += ["--skip-networking", f"--datadir={data}", f"--socket={run / 'server.sock'}"]
    words += [f"--pid-file={run / 'server.pid'}"]
    for name, value in spec.options.items():
        shown = ("ON" if value else "OFF") if isinstance(value, bool) else value
        words.append(f"--{name}={shown}")
    with (run / "error.log").open("wb") as output:
        process = shell.start(words, output=output)
    try:
        version = mysql_family.wait_until_ready(process, run / "server.sock", run / "error.log")
        yield RunningServer(
            socket=run / "server.sock",
            pids=(process.pid,),
            version=version,
            error_log=run / "error.log",
        )
        process.terminate()
        process.wait(mysql_family.STOP_TIMEOUT_S)
    finally:
        process.kill()
        shutil.rmtree(run, ignore_errors=True)


def _bare_slice(
    socket: Path, workload: Workload, bench: measure.Bench, *, seconds: int, seed: int
) -> float:
    """Return what sysbench, started by hand, reports."""
    words = ["taskset", "--cpu-list", str(bench.placement.client_cpus[0])]
    words += ["env", f"LUA_PATH={SCRIPTS}/?.lua", "sysbench", str(SCRIPTS / workload.script)]
    words += ["--db-driver=mysql", f"--mysql-socket={socket}", "--mysql-user=root"]
    words += ["--mysql-db=sbtest", f"--table-size={bench.dataset.rows}"]
    words += [f"--tables={bench.dataset.tables}", "--rand-type=uniform", f"--rand-seed={seed}"]
    words += [f"--threads={bench.suite.threads}", f"--time={seconds}", "--events=0"]
    words += ["--report-interval=1", "--histogram=on", "run"]
    done = shell.run(words, timeout_s=seconds + sysbench.GRACE_S)
    return sysbench.parse(done.stdout).throughput_ops_s


def _overhead(repository: Path, home: Home) -> None:
    """Print how much of a warm job's wall time is not measuring."""
    text = (repository / PLAN_FILE).read_text()
    text = text.replace("seconds = 2\n", "seconds = 15\n")
    plan_path = home.root / "bench.toml"
    plan_path.write_text(text)
    suite = read_plan(plan_path).suite("commit")
    assert suite.seconds * suite.slices == 30, "the aim is stated for 30 s per workload"  # noqa: PLR2004  15 s twice
    order, _ = order_for(
        repository=repository,
        plan_path=plan_path,
        baseline=None,
        candidate="HEAD~7",
        suite="commit",
        host_class="default",
        workloads=(),
        starts=2,
        seed=2,
    )
    folder = home.folder("jobs", order.job)
    write_atomically(folder / ORDER_FILE, order.model_dump_json())
    began = time.monotonic()
    words = [sys.executable, "-m", "forkwatch", "run", "--job", str(folder)]
    done = shell.run(words, timeout_s=3600)
    wall_s = time.monotonic() - began
    assert done.ok, done.stderr
    document = RunDocument.model_validate_json((folder / "run.json").read_text())
    measured_s = sum(start.measured_seconds for start in document.starts)
    print(
        f"\na warm job, 30 s per workload: {len(document.starts)} starts, wall {wall_s:.1f} s, "
        f"measuring {measured_s:.1f} s, not measuring {1 - measured_s / wall_s:.1%}"
    )
    print(f"  stages: {document.stage_seconds}")


if __name__ == "__main__":
    main()
