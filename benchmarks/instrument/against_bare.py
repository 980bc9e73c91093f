"""Part `harness`: throughput under our harness against bare sysbench and a bare server.

Both are pinned alike and take turns as the sides of a pair do, who begins changing from slice to
slice. A unit is one start; out comes the ratio with the 95 % interval of the pairs.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from benchmarks.detection.row import markdown
from benchmarks.instrument.rig import BASELINE, CANDIDATE, PLAIN, Sizes, found
from benchmarks.instrument.spread import percent
from benchmarks.instrument.unit import Unit
from detectors.pairwise import compare
from runner import measure, shell, sysbench, turns
from runner.servers import mysql_family, serving
from runner.servers.engine import RunningServer, ServerSpec
from runner.servers.engines import engine_of
from workloads.catalog import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.instrument.ledger import Ledger, Record
    from benchmarks.instrument.rig import Rig
    from results.slice import SideName
    from workloads.catalog import Workload
    from workloads.plan import DatasetPlan

BARE: Final = BASELINE
OURS: Final = CANDIDATE
#: What programs in the sandbox find besides the watchdog's mark.
_ENVIRONMENT: Final = (
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/tmp",
    "LC_ALL=C.UTF-8",
    "TZ=UTC",
    "SOURCE_DATE_EPOCH=1600000000",
)


@dataclass(frozen=True, kw_only=True)
class AgainstBare:
    """The part `harness`."""

    rig: Rig
    ledger: Ledger
    each: Sizes
    name: str = "harness"

    @property
    def sizes(self) -> dict[str, Any]:
        """Without the starts: more of them go on from those that are there."""
        return {**self.rig.sizes(self.each), "starts": None}

    def units(self) -> Iterator[Unit]:
        """Give the starts."""
        for index in range(self.each.starts):
            yield Unit(key=f"start {index + 1}", measure=partial(self._start, index))

    def line(self, record: Record) -> str:
        """Return the ratio of each workload in one start."""
        told = [
            f"{name} {median(sides[OURS]) / median(sides[BARE]):.4f}"
            for name, sides in record["throughput_ops_s"].items()
        ]
        return "ours over bare: " + ", ".join(told)

    def report(self) -> str:
        """Return levels, ratios and intervals over all starts."""
        records = self.ledger.of(self)
        rows = []
        for name in self.each.workloads if records else ():
            starts = [record["throughput_ops_s"][name] for record in records]
            bare, ours = ([start[side] for start in starts] for side in (BARE, OURS))
            change = compare(bare, ours)
            interval = change.interval
            rows.append(
                (
                    name,
                    f"{median(median(start) for start in bare):,.1f}",
                    f"{median(median(start) for start in ours):,.1f}",
                    percent(change.effect, interval.low, interval.high),
                )
            )
        title = (
            f"harness against bare sysbench: {len(records)} starts x {self.each.slices} slices x "
            f"{self.each.seconds} s, in turns (aim: within 1 %)"
        )
        headings = ("workload", "bare o/s", "ours o/s", "difference [95 %]")
        return "\n".join([title, markdown(rows, headings)])

    def _start(self, index: int) -> Record:
        spec = self.rig.spec(self.rig.fork.commit(rounds=0, label=PLAIN), self.each)
        values: dict[str, dict[SideName, list[float]]] = {}
        with self.rig.bench({BARE: spec, OURS: spec}, self.each, seed=1) as bench:
            for leg in measure.legs(found(self.each.workloads)):
                with self._servers(spec, bench, index) as servers:
                    for workload in leg:
                        values[workload.name] = _slices(bench, workload, servers, index)
        return {"throughput_ops_s": values}

    @contextlib.contextmanager
    def _servers(
        self, spec: ServerSpec, bench: measure.Bench, index: int
    ) -> Iterator[dict[SideName, RunningServer]]:
        """Give both servers on freshly restored data."""
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, bench.scratch, ignore_errors=True)
            measure.restore(bench.snapshots, bench.scratch)
            servers: dict[SideName, RunningServer] = {}
            # Who starts first gets other memory: both get their turn.
            for side in (OURS, BARE) if index % 2 else (BARE, OURS):
                running = mysql_family.running if side is OURS else _bare_server
                data, cpus = bench.scratch / side, bench.placement.server_cpus
                servers[side] = stack.enter_context(running(spec, data, cpus=cpus))
            yield servers


def _slices(
    bench: measure.Bench,
    workload: Workload,
    servers: Mapping[SideName, RunningServer],
    index: int,
) -> dict[SideName, list[float]]:
    """Return the throughput of each slice of one workload by side, after a warm-up of both."""
    values: dict[SideName, list[float]] = {BARE: [], OURS: []}
    for warm in (True, False):
        seconds = bench.suite.warmup_seconds if warm else bench.suite.seconds
        for pair in range(1 if warm else bench.suite.slices):
            first = (BARE, OURS) if (pair + index) % 2 else (OURS, BARE)
            found = _in_turns(
                bench,
                workload,
                {side: servers[side] for side in first},
                seconds=seconds,
                seed=1000 * index + pair + 1,
            )
            for side, value in found.items():
                if not warm:
                    values[side].append(value)
    return values


def _in_turns(
    bench: measure.Bench,
    workload: Workload,
    servers: Mapping[SideName, RunningServer],
    *,
    seconds: int,
    seed: int,
) -> dict[SideName, float]:
    """Return the throughput of each side, measured in turns as a pair is."""
    in_all = seconds * len(servers)
    commands = {BARE: _bare_command, OURS: sysbench.run_command}
    parties = [
        turns.Party(
            name=workload.name,
            pids=server.pids,
            command=commands[side](
                server,
                workload,
                bench.dataset,
                seconds=in_all,
                threads=bench.suite.threads,
                seed=seed,
                cpus=bench.placement.client_cpus,
            ),
        )
        for side, server in servers.items()
    ]
    done = turns.take_turns(
        parties,
        turn_s=bench.suite.turn_ms / 1000,
        timeout_s=in_all + sysbench.GRACE_S,
        mark=sysbench.BEGUN,
    )
    found = {}
    for side, turned in zip(servers, done, strict=True):
        sysbench.check_end(workload, turned.returncode, turned.text[-shell.TAIL_BYTES :])
        told = sysbench.parse(turned.text)
        found[side] = told.operations / turned.active_s(told.seconds)
    return found


@contextlib.contextmanager
def _bare_server(spec: ServerSpec, data: Path, *, cpus: tuple[int, ...]) -> Iterator[RunningServer]:
    """Run the same program with the same options, without a sandbox around it."""
    run = Path(tempfile.mkdtemp(prefix="forkwatch-bare-"))
    program = spec.installed.folder / spec.program
    # The size of the environment moves the stack, and with it the speed (Mytkowicz et al. 2009,
    # "Producing wrong data without doing anything obviously wrong!", section 4): both have ours.
    words = [*_pinned(cpus), "env", "--ignore-environment", *_ENVIRONMENT]
    words += [str(program), "--no-defaults", "--user=root"]
    words += ["--skip-networking", f"--datadir={data}", f"--socket={run / 'server.sock'}"]
    words += [f"--pid-file={run / 'server.pid'}"]
    words += mysql_family.option_words(spec)
    try:
        with (run / "error.log").open("wb") as output:
            process = shell.start(words, output=output)
        try:
            socket, log = run / "server.sock", run / "error.log"
            version = serving.wait_until_ready(process, socket, log, greeting=mysql_family.greeting)
            yield RunningServer(
                engine=engine_of(spec.engine),
                socket=socket,
                pids=(process.pid,),
                version=version,
                error_log=log,
                data=data,
                spec=spec,
            )
            process.terminate()
            process.wait(serving.STOP_TIMEOUT_S)
        finally:
            process.kill()
    finally:
        shutil.rmtree(run, ignore_errors=True)


def _bare_command(
    server: RunningServer,
    workload: Workload,
    dataset: DatasetPlan,
    *,
    seconds: int,
    threads: int,
    seed: int,
    cpus: Sequence[int],
) -> list[str]:
    """Return the command line of a sysbench that is started by hand."""
    words = [*_pinned(cpus), "env", "--ignore-environment"]
    words += [*_ENVIRONMENT, f"LUA_PATH={SCRIPTS}/?.lua"]
    words += ["sysbench", str(SCRIPTS / workload.script), "--db-driver=mysql"]
    words += [f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=sbtest"]
    words += [f"--table-size={dataset.rows}", f"--tables={dataset.tables}"]
    words += ["--rand-type=uniform", f"--rand-seed={seed}", f"--threads={threads}"]
    words += [f"--time={seconds}", "--events=0", "--report-interval=1", "--histogram=on"]
    return [*words, *sysbench.option_words(workload), "run"]


def _pinned(cpus: Sequence[int]) -> list[str]:
    return ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []
