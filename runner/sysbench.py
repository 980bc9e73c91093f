"""The sysbench client: loads a dataset, runs a slice of a workload, reads what it printed.

How it reaches a server is the engine's knowledge. The client runs in the sandbox as well: a hostile
server may ask its client for files.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from results.slice import Latency
from runner import loaders, shell
from runner.client_run import ClientRun
from runner.errors import ClientError, DatasetError
from runner.loaders import LOAD_SEED
from runner.sandbox import INSIDE, Bind, Sandbox
from workloads import insert_benchmark
from workloads.catalog import SCRIPTS
from workloads.insert_benchmark_output import StepOutputError, read_step
from workloads.workload import DatasetKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.servers.engine import RunningServer
    from workloads.catalog import Workload
    from workloads.plan import DatasetPlan

__all__ = ["LOAD_SEED", "ClientRun", "count_rows", "cpu_s_of", "load", "parse", "run_slice"]

#: Added to the length of a slice before the client counts as hung.
GRACE_S: Final = 60
LOAD_TIMEOUT_S: Final = 6 * 3600
#: Database, or schema, of every dataset's tables; and one that is there before any is made.
DATABASE: Final = "sbtest"
_FIRST_DATABASE: Final = "mysql"
#: What sysbench prints when its clients begin to count.
BEGUN: Final = "Threads started!"
#: A shell that runs what follows and then reports the CPU time of its children.
_TIMED: Final = ("sh", "-c", '"$@"; status=$?; times >&2; exit $status', "sh")
#: Minutes and seconds of user and system time, as POSIX has `times` print them.
_TIMES: Final = re.compile(r"^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$", re.MULTILINE)
_COUNT: Final = re.compile(r"^rows of (\S+): (\d+)$", re.MULTILINE)
#: What a loader may say of each table: how long rows and indexes took.
_TOOK: Final = re.compile(
    r"^seconds of (\S+): (\d+(?:\.\d+)?) for rows, (\d+(?:\.\d+)?) for indexes$", re.MULTILINE
)


def load(server: RunningServer, plan: DatasetPlan) -> dict[str, float]:
    """Create and fill the tables; return the seconds of rows and indexes, where they are told.

    Raises:
        DatasetError: The load failed; carries what the client printed.
    """
    words = _words(server, plan, loaders.LOADERS[plan.kind].script, database=_FIRST_DATABASE)
    words += [f"--load-seed={LOAD_SEED}", *loaders.words(plan), "prepare"]
    done = _sandbox(server).run(words, timeout_s=LOAD_TIMEOUT_S)
    if not done.ok:
        raise DatasetError("dataset", "loading the tables failed", _said(done))
    return seconds_told(done.stdout)


def seconds_told(text: str) -> dict[str, float]:
    """Return the seconds of rows and of indexes that a loader told, of all tables together."""
    took = _TOOK.findall(text)
    if not took:
        return {}
    return {
        "rows_s": sum(float(rows) for _, rows, _ in took),
        "indexes_s": sum(float(indexes) for _, _, indexes in took),
    }


def count_rows(server: RunningServer, plan: DatasetPlan) -> dict[str, int]:
    """Return the rows of each table as the server counts them.

    Raises:
        DatasetError: It could not be asked; carries what the client printed.
    """
    words = _words(server, plan, loaders.LOADERS[plan.kind].counter, database=_FIRST_DATABASE)
    done = _sandbox(server).run([*words, "count"], timeout_s=LOAD_TIMEOUT_S)
    if not done.ok:
        raise DatasetError("dataset", "the loaded rows could not be counted", _said(done))
    return {name: int(count) for name, count in _COUNT.findall(done.stdout)}


def run_slice(
    server: RunningServer,
    workload: Workload,
    plan: DatasetPlan,
    *,
    seconds: int,
    threads: int,
    seed: int,
    cpus: Sequence[int],
) -> ClientRun:
    """Run a workload for some seconds, or to the end of its work, and return what was counted.

    Raises:
        ClientError: The client failed, hung, or did not do a single operation.
    """
    bounded = not insert_benchmark.ends_by_itself(workload)
    # Not watched as a load is: the client is the system's own, and looking at it costs time beside
    # the measurement.
    done = shell.run(
        run_command(server, workload, plan, seconds=seconds, threads=threads, seed=seed, cpus=cpus),
        timeout_s=seconds + GRACE_S if bounded else LOAD_TIMEOUT_S,
    )
    if done.timed_out:
        raise ClientError("measure", f"{workload.name}: the client hung", _said(done))
    check_end(workload, done.returncode, _said(done))
    return read_run(done.stdout + done.stderr, workload, threads=threads)


def run_command(
    server: RunningServer,
    workload: Workload,
    plan: DatasetPlan,
    *,
    seconds: int,
    threads: int,
    seed: int,
    cpus: Sequence[int],
) -> list[str]:
    """Return the command line of a client that runs a workload."""
    bounded = not insert_benchmark.ends_by_itself(workload)
    words = _words(server, plan, workload.script, database=DATABASE)
    words += [
        "--rand-type=uniform",
        f"--rand-seed={seed}",
        f"--threads={insert_benchmark.threads_of(workload, threads)}",
        f"--time={seconds if bounded else 0}",
        "--events=0",
        "--report-interval=1",
        "--histogram=on",
    ]
    # Of two equal options the last one counts, which is the workload's.
    words += [*option_words(workload), "run"]
    return _sandbox(server).command([*_TIMED, *words], cpus=cpus)


def check_end(workload: Workload, returncode: int, said: str) -> None:
    """Raise ClientError where a client did not end well."""
    if returncode:
        raise ClientError("measure", f"{workload.name}: the client failed with {returncode}", said)


def read_run(text: str, workload: Workload, *, threads: int) -> ClientRun:
    """Read what a client has printed, with what the shell around it says of its CPU time.

    Raises:
        ClientError: A figure is missing, or no operation was done.
    """
    if workload.dataset is DatasetKind.INSERT_BENCHMARK:
        found = parse_step(text, workload, clients=threads)
    else:
        found = parse(text)
    return replace(found, cpu_s=cpu_s_of(text))


def parse_step(text: str, workload: Workload, *, clients: int) -> ClientRun:
    """Read what a step of the Insert Benchmark printed.

    Raises:
        ClientError: A thread did not report, or did nothing.
    """
    try:
        step = read_step(text, workload, clients=clients)
    except StepOutputError as error:
        raise ClientError("measure", str(error), text[-shell.TAIL_BYTES :]) from error
    measured = step.measured
    unfit = ""
    if not step.is_comparable:
        unfit = (
            f"rows were inserted at {step.held_share:.0%} of the rate to hold, so that it did "
            "less work than others"
        )
    p50, p95, p99 = (measured.percentile_ms(share) for share in (0.50, 0.95, 0.99))
    return ClientRun(
        seconds=measured.seconds,
        operations=step.operations,
        per_second_ops_s=measured.per_second,
        latency_ms=Latency(
            average=measured.average_ms,
            # As near as the histogram tells.
            minimum=measured.percentile_ms(0.0),
            maximum=measured.max_us / 1000,
            p50=p50,
            p95=p95,
            p99=p99,
        ),
        extra=step.extra(),
        unfit=unfit,
    )


def option_words(workload: Workload) -> list[str]:
    """Return the workload's own options as words of a command line."""
    return [f"--{name}={value}" for name, value in workload.options.items()]


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
        filtered=False,
    )


def _words(server: RunningServer, plan: DatasetPlan, script: str, *, database: str) -> list[str]:
    return [
        shell.require("sysbench", package="sysbench"),
        f"{INSIDE}/scripts/{script}",
        *server.engine.sysbench_words(server, database=database),
        f"--tables={plan.tables}",
        f"--table-size={plan.rows}",
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
