"""The db_bench client: loads a database, runs a slice of a workload, reads what it printed.

Every slice is a process of its own on a closed database, which it leaves closed again. What it runs
and how its output is read is the catalog's matter (`workloads/db_bench*.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from runner.client_run import ClientRun
from runner.errors import ClientError, DatasetError
from runner.servers import lsm
from runner.sysbench import cpu_s_of
from workloads.db_bench import batch_of, step_of
from workloads.db_bench_output import OutputError, parse
from workloads.db_bench_words import (
    LOAD_SEED,
    Circumstances,
    loading_steps,
    refusal,
    slice_words,
    threads_of,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner import shell
    from runner.servers.engine import RunningServer
    from workloads.db_bench import Step
    from workloads.db_bench_output import Result
    from workloads.plan_datasets import DatasetPlan
    from workloads.workload import Workload

LOAD_TIMEOUT_S: Final = 6 * 3600
#: Added to the length of a slice before db_bench counts as hung: it opens the database, reads it
#: into the cache, and closes it. The field allows as much (RocksDB 6.10 and 6.11 did hang).
GRACE_S: Final = 600
#: Longest that a step with fixed work may take.
WORK_TIMEOUT_S: Final = 6 * 3600
#: Reads of each thread that tell how many LevelDB does in the seconds of a slice.
PILOT_READS: Final = 20_000


def load(server: RunningServer, plan: DatasetPlan) -> dict[str, float]:
    """Fill the database; return the seconds that putting all rows took.

    Bringing it to rest is the caller's matter, as with every engine.

    Raises:
        DatasetError: The load failed, or not all rows are there; carries what db_bench printed.
    """
    at = _circumstances(server, plan, threads=1, seed=LOAD_SEED)
    # Configs with different threads share a dataset, so it is loaded with one.
    at = replace(at, options={**at.options, "threads": 1})
    spent = {}
    for step in loading_steps(at.engine):
        argv = slice_words(step, at, seconds=0)
        done = _loaded(server, argv, what=f"loading the database with {step.benchmark}")
        spent[step.benchmark] = _told(done, step.benchmark).seconds
    argv = words(("readseq",), at, more={"threads": 1, "reads": plan.rows + 1})
    done = _loaded(server, argv, what="counting the loaded rows")
    rows = _told(done, "readseq").operations
    if rows != plan.rows:
        raise DatasetError(
            "dataset", f"{plan.rows} rows were loaded, and the database holds {rows}"
        )
    return {"rows_s": spent["fillseq"]}


def _loaded(server: RunningServer, argv: Sequence[str], *, what: str) -> shell.Completed:
    done = lsm.run(server.spec, server.data, argv, timeout_s=LOAD_TIMEOUT_S)
    if not done.ok:
        raise DatasetError("dataset", f"{what} failed", lsm.said(done))
    return done


def _told(done: shell.Completed, benchmark: str) -> Result:
    try:
        return parse(done.stdout, benchmark, threads=1)
    except OutputError as error:
        raise DatasetError("dataset", str(error), lsm.said(done)) from error


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
    """Run a workload for some seconds, or for its fixed work, and return what db_bench printed.

    Its CPU time is of the whole process: opening, filling the cache and closing are in it.

    Raises:
        ClientError: db_bench failed, hung, printed no result, or must not be run so.
    """
    at = _circumstances(server, plan, threads=threads, seed=seed)
    refused = refusal(workload, version=server.version, at=at)
    if refused:
        raise ClientError("measure", refused)
    step, wanted = step_of(workload), _processors(server, cpus)
    reads = 0
    if step.work is None and at.engine == "leveldb":
        # LevelDB's db_bench counts, and does not look at the clock.
        pilot = _run(server, step, at, seconds=0, reads=PILOT_READS, cpus=wanted)
        rate = pilot.operations / pilot.seconds / threads_of(step, at)
        reads = max(1, round(rate * seconds))
    return _run(server, step, at, seconds=seconds, reads=reads, cpus=wanted)


def _run(
    server: RunningServer,
    step: Step,
    at: Circumstances,
    *,
    seconds: int,
    reads: int,
    cpus: Sequence[int],
) -> ClientRun:
    argv = slice_words(step, at, seconds=seconds, reads=reads)
    if at.engine == "rocksdb":
        argv += ["--report_interval_seconds=1", f"--report_file={lsm.SECONDS_FILE}"]
    timeout_s = seconds + GRACE_S if step.work is None else WORK_TIMEOUT_S
    done = lsm.run(server.spec, server.data, argv, timeout_s=timeout_s, cpus=cpus)
    if done.timed_out:
        raise ClientError("measure", f"{step.benchmark}: db_bench hung", lsm.said(done))
    if not done.ok:
        raise ClientError(
            "measure", f"{step.benchmark}: db_bench failed with {done.returncode}", lsm.said(done)
        )
    asked_s = seconds if step.work is None and at.engine == "rocksdb" else 0
    return _read(done, step, at, asked_s=asked_s)


def _read(done: shell.Completed, step: Step, at: Circumstances, *, asked_s: int) -> ClientRun:
    try:
        result: Result = parse(
            done.stdout,
            step.benchmark,
            threads=threads_of(step, at),
            batch=batch_of(step),
            asked_s=asked_s,
        )
    except OutputError as error:
        raise ClientError("measure", str(error), lsm.said(done)) from error
    return ClientRun(
        seconds=result.seconds,
        operations=result.operations,
        per_second_ops_s=result.per_second_ops_s,
        latency_ms=result.latency_ms,
        cpu_s=cpu_s_of(done.stderr),
        extra=result.extra,
    )


def _circumstances(
    server: RunningServer, plan: DatasetPlan, *, threads: int, seed: int
) -> Circumstances:
    return Circumstances(
        engine=server.spec.engine,
        dataset=plan,
        options=server.spec.options,
        threads=threads,
        seed=seed,
    )


def _processors(server: RunningServer, client: Sequence[int]) -> list[int]:
    """Return the processors of server and client, for db_bench is both."""
    own = server.cpus if isinstance(server, lsm.LsmServer) else ()
    return sorted({*own, *client})
