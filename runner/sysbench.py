"""The sysbench client: loads a dataset, runs a slice of a workload, reads what it printed.

The client runs in the sandbox as well: a hostile server may ask its client for files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from results.slice import Latency
from runner import shell
from runner.errors import ClientError, DatasetError
from runner.sandbox import INSIDE, Bind, Sandbox
from workloads.catalog import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.servers.mysql_family import RunningServer
    from workloads.catalog import Workload
    from workloads.plan import DatasetPlan

#: Added to the length of a slice before the client counts as hung.
GRACE_S: Final = 60
LOAD_TIMEOUT_S: Final = 6 * 3600
#: A shell that runs what follows and then reports the CPU time of its children.
_TIMED: Final = ("sh", "-c", '"$@"; status=$?; times >&2; exit $status', "sh")
#: Minutes and seconds of user and system time, as POSIX has `times` print them.
_TIMES: Final = re.compile(r"^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$", re.MULTILINE)
#: Equal seeds load equal rows; part of a dataset's digest.
LOAD_SEED: Final = 20_260_101


@dataclass(frozen=True, kw_only=True)
class ClientRun:
    """What the client reported for one slice."""

    seconds: float
    operations: int
    per_second_ops_s: tuple[float, ...]
    latency_ms: Latency
    #: CPU time of the client itself; the sandbox around it does not hand it to its parent.
    cpu_s: float = 0.0

    @property
    def throughput_ops_s(self) -> float:
        """Operations per second over the whole slice."""
        return self.operations / self.seconds


def load(server: RunningServer, dataset: DatasetPlan) -> None:
    """Create and fill the tables.

    Raises:
        DatasetError: The load failed; carries what the client printed.
    """
    words = _words(server, dataset, "load.lua", database="mysql")
    words += [f"--load-seed={LOAD_SEED}", "prepare"]
    done = _sandbox(server).run(words, timeout_s=LOAD_TIMEOUT_S)
    if not done.ok:
        raise DatasetError("dataset", "loading the tables failed", _said(done))


def run_slice(
    server: RunningServer,
    workload: Workload,
    dataset: DatasetPlan,
    *,
    seconds: int,
    threads: int,
    seed: int,
    cpus: Sequence[int],
) -> ClientRun:
    """Run a workload for some seconds and return what the client counted.

    Raises:
        ClientError: The client failed, hung, or did not do a single operation.
    """
    words = _words(server, dataset, workload.script, database="sbtest")
    words += [
        "--rand-type=uniform",
        f"--rand-seed={seed}",
        f"--threads={threads}",
        f"--time={seconds}",
        "--events=0",
    ]
    words += ["--report-interval=1", "--histogram=on", "run"]
    # Not watched as a load is: the client is the system's own, and looking at it costs time beside
    # the measurement.
    command = _sandbox(server).command([*_TIMED, *words], cpus=cpus)
    done = shell.run(command, timeout_s=seconds + GRACE_S)
    if done.timed_out:
        raise ClientError("measure", f"{workload.name}: the client hung", _said(done))
    if not done.ok:
        raise ClientError(
            "measure", f"{workload.name}: the client failed with {done.returncode}", _said(done)
        )
    return replace(parse(done.stdout), cpu_s=cpu_s_of(done.stderr))


def cpu_s_of(text: str) -> float:
    """Return the CPU time that the shell around the client reports for it; 0 where it does not."""
    found = _TIMES.findall(text)
    if not found:
        return 0.0
    user_min, user_s, system_min, system_s = (float(part) for part in found[-1])
    return 60 * (user_min + system_min) + user_s + system_s


def _said(done: shell.Completed) -> str:
    return (done.stdout + done.stderr)[-shell.TAIL_BYTES :]


def _sandbox(server: RunningServer) -> Sandbox:
    return Sandbox(
        binds=(
            Bind(host=SCRIPTS, inside="scripts"),
            Bind(host=server.socket.parent, inside="run"),
        ),
        environment={"LUA_PATH": f"{INSIDE}/scripts/?.lua"},
    )


def _words(server: RunningServer, dataset: DatasetPlan, script: str, *, database: str) -> list[str]:
    return [
        shell.require("sysbench", package="sysbench"),
        f"{INSIDE}/scripts/{script}",
        "--db-driver=mysql",
        f"--mysql-socket={INSIDE}/run/{server.socket.name}",
        "--mysql-user=root",
        f"--mysql-db={database}",
        f"--tables={dataset.tables}",
        f"--table-size={dataset.rows}",
    ]


_EVENTS = re.compile(r"^\s*total number of events:\s+(\d+)", re.MULTILINE)
_SECONDS = re.compile(r"^\s*total time:\s+([\d.]+)s", re.MULTILINE)
_SECOND = re.compile(r"^\[ \d+s \] thds: \d+ tps: ([\d.]+) ", re.MULTILINE)
_LATENCY = re.compile(r"^\s*(min|avg|max):\s+([\d.]+)$", re.MULTILINE)
_BUCKET = re.compile(r"^\s*([\d.]+)\s+\|\**\s+(\d+)$", re.MULTILINE)
_FATAL = re.compile(r"^FATAL: .*$", re.MULTILINE)


def parse(text: str) -> ClientRun:
    """Read the output of sysbench 1.0.

    Raises:
        ClientError: A figure is missing or no operation was done; quotes the client's FATAL line
            if there is one.
    """
    events, seconds = _EVENTS.search(text), _SECONDS.search(text)
    latency = {name: float(value) for name, value in _LATENCY.findall(text)}
    if events is None or seconds is None or set(latency) != {"min", "avg", "max"}:
        fatal = _FATAL.search(text)
        reason = fatal.group(0) if fatal else "its summary is not there"
        raise ClientError(
            "measure", f"sysbench gave no result: {reason}", text[-shell.TAIL_BYTES :]
        )
    if int(events.group(1)) == 0 or float(seconds.group(1)) <= 0:
        raise ClientError("measure", "sysbench did no operation", text[-shell.TAIL_BYTES :])
    buckets = [(float(value), int(count)) for value, count in _BUCKET.findall(text)]
    p50, p95, p99 = (_percentile(buckets, share) for share in (0.50, 0.95, 0.99))
    return ClientRun(
        seconds=float(seconds.group(1)),
        operations=int(events.group(1)),
        per_second_ops_s=tuple(float(value) for value in _SECOND.findall(text)),
        latency_ms=Latency(
            average=latency["avg"],
            minimum=latency["min"],
            maximum=latency["max"],
            p50=p50,
            p95=p95,
            p99=p99,
        ),
    )


def _percentile(buckets: list[tuple[float, int]], share: float) -> float:
    """Return the histogram's value below which `share` of the operations lie."""
    wanted = share * sum(count for _, count in buckets)
    seen = 0
    for value, count in buckets:
        seen += count
        if seen >= wanted:
            return value
    raise ClientError("measure", "sysbench printed no latency histogram")
