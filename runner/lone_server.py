"""A lone server: one side on freshly restored data, for counting and sampling instead of measuring.

What is explained is run here and nowhere else, so this is all that callgrind and profiles know of
how servers and clients are started.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from runner import shell, sysbench
from runner.errors import ClientError
from runner.sandbox import INSIDE, Bind, Sandbox
from runner.servers.engines import engine_of
from workloads.catalog import SCRIPTS
from workloads.workload import MYSQL_FAMILY, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from runner.client_run import ClientRun
    from runner.servers.engine import RunningServer, ServerSpec
    from runner.snapshots import Snapshot
    from workloads.plan import DatasetPlan
    from workloads.workload import Workload


@contextmanager
def lone_server(
    spec: ServerSpec,
    snapshot: Snapshot,
    data: Path,
    *,
    cpus: Sequence[int],
    wrap: Callable[[ServerSpec, Path], ServerSpec] | None = None,
) -> Iterator[RunningServer]:
    """Give a server on a fresh copy of a snapshot, and stop it at the end.

    The data directory is the caller's to remove: what the server wrote on its way out is in it.

    Args:
        spec: The server.
        snapshot: What its data directory is a copy of.
        data: Where that copy goes; on the snapshot's file system.
        cpus: Processors to run on.
        wrap: Makes another server of it once the data directory is there.

    Raises:
        DatasetError, ServerError: Restoring, starting or stopping failed.
    """
    snapshot.restore([data])
    chosen = wrap(spec, data) if wrap else spec
    with engine_of(spec.engine).running(chosen, data, cpus=cpus) as server:
        yield server


def not_yet(spec: ServerSpec, workload: Workload) -> str:
    """Return why this workload cannot be run on this server here; empty where it can."""
    if spec.engine not in MYSQL_FAMILY:
        return f"only MariaDB and MySQL can be explained yet, not {spec.engine}"
    if workload.tool is not Tool.SYSBENCH:
        return f"only workloads of sysbench can be explained yet, not {workload.name}"
    if workload.chain:
        return f"{workload.name} begins from what the steps before it leave, and cannot run alone"
    return ""


def operate(
    server: RunningServer,
    workload: Workload,
    dataset: DatasetPlan,
    *,
    operations: int,
    seed: int,
    cpus: Sequence[int],
    timeout_s: float,
    niceness: int = 0,
) -> None:
    """Run so many operations of a workload with one client.

    Raises:
        ClientError: The client failed, or was not done in time.
    """
    words = [
        shell.require("sysbench", package="sysbench"),
        f"{INSIDE}/scripts/{workload.script}",
        *server.engine.sysbench_words(server, database=sysbench.DATABASE),
        f"--tables={dataset.tables}",
        f"--table-size={dataset.rows}",
        "--rand-type=uniform",
        f"--rand-seed={seed}",
        "--threads=1",
        "--time=0",
        f"--events={operations}",
        *sysbench.option_words(workload),
        "run",
    ]
    binds = (Bind(host=SCRIPTS, inside="scripts"), Bind(host=server.socket.parent, inside="run"))
    sandbox = Sandbox(
        binds=binds, environment={"LUA_PATH": f"{INSIDE}/scripts/?.lua"}, niceness=niceness
    )
    done = sandbox.run(words, timeout_s=timeout_s, cpus=cpus)
    if done.timed_out:
        raise ClientError(
            "measure", f"{operations} x {workload.name} were not done within {timeout_s:.0f} s"
        )
    if not done.ok:
        said = shell.readable((done.stdout + done.stderr)[-shell.TAIL_BYTES :])
        raise ClientError("measure", f"{operations} x {workload.name}: the client failed", said)


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
    """Run a workload for some seconds, and return what it counted.

    Raises:
        ClientError: The client failed, hung, or did not do a single operation.
    """
    return sysbench.run_slice(
        server, workload, dataset, seconds=seconds, threads=threads, seed=seed, cpus=cpus
    )
