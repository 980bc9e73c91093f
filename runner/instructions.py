"""Instructions: how many a server needs for one operation, counted exactly under callgrind.

A server, a snapshot and a workload come in; instructions per operation go out, for all of the
server and for each function. A slow second opinion that noise hardly touches: it sees neither
caches, locks nor clock rates. The dump is written where hostile code runs, so it is read as such.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import shell
from runner.errors import ClientError, ServerError
from runner.sandbox import INSIDE, Bind, Sandbox
from runner.servers import mysql_family
from workloads.catalog import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from results.slice import SideName
    from runner.servers.mysql_family import OptionValue, RunningServer, ServerSpec
    from runner.snapshots import Snapshot
    from workloads.catalog import Workload
    from workloads.plan import DatasetPlan

#: The server runs some 50 times slower under callgrind.
CLIENT_TIMEOUT_S: Final = 900
#: Options without which the server does not come up under valgrind, or does so slowly: valgrind
#: knows no native AIO of the kernel, MariaDB 11.8 reserves 8 TiB of addresses, and a large limit of
#: open files makes large tables. Each server ignores those it does not know.
_OPTIONS: Final[Mapping[str, OptionValue]] = {
    "loose-innodb-use-native-aio": False,
    "loose-innodb-buffer-pool-size-max": "256M",
    "open-files-limit": 1000,
}
#: MariaDB's dumps, one for each thread, have 0.9 MB at the most, and there are 14 of them.
_DUMP_BYTES_MAX: Final = 32 * 1024**2
_DUMPS_MAX: Final = 128
_NAME_LENGTH_MAX: Final = 200
#: On one processor with a client that steps back, the server always waits for the next operation;
#: whether it finds it there already, or has to wait, is a difference of hundreds of instructions.
_CLIENT_NICENESS: Final = 19
_LAUNCHER: Final = "under-callgrind"
_DUMP: Final = "callgrind.out"
_DUMP_NAME: Final = re.compile(r"callgrind\.out-([0-9]{1,5})")
#: Lines of a dump (valgrind manual, "Callgrind Format Specification"): a cost behind its position,
#: a function, an object, and a call, whose next line is the callee's cost and not the caller's.
_COST: Final = re.compile(r"(?:[+-]?[0-9]+|\*) ([0-9]{1,18})")
_NAMED: Final = re.compile(r"(fn|cfn|ob|cob)=\(([0-9]+)\)(?: (.*))?")
_ADDRESS: Final = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Instructions of one server from its beginning to its end."""

    operations: int
    #: By thread, as callgrind numbers them in the order of their making.
    threads: Mapping[int, int]
    #: Own instructions of each function, by thread.
    functions: Mapping[int, Mapping[str, int]]


@dataclass(frozen=True, kw_only=True)
class PerOperation:
    """Instructions per operation."""

    #: In the thread that served the client: repeats within a fraction of a percent.
    client: float
    #: In all others, which work by the clock and not by the operation: noise, unless it is large.
    background: float
    #: Own instructions by function, in the thread that served the client.
    functions: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A function's own instructions per operation on both sides."""

    function: str
    baseline: float
    candidate: float

    @property
    def change(self) -> float:
        """How many more the candidate needs."""
        return self.candidate - self.baseline


def counts(throughput_ops_s: float) -> tuple[int, int]:
    """Return the two counts of operations to use where a slice had this throughput.

    The larger is what takes 0.2 s without callgrind: about 10 s under it.
    """
    larger = max(3, round(0.2 * throughput_ops_s))
    return larger // 3, larger


def second_opinion(
    servers: Mapping[SideName, ServerSpec],
    snapshot: Snapshot,
    workload: Workload,
    dataset: DatasetPlan,
    *,
    operations: tuple[int, int],
    seed: int,
    scratch: Path,
    cpu: int,
) -> dict[SideName, PerOperation]:
    """Return the instructions per operation of each side, with equal keys in equal order.

    Args:
        servers: The sides; a server is started twice for each, one after the other.
        snapshot: The data that every start begins from.
        workload: What is run, with one client.
        dataset: What is in the snapshot.
        operations: The smaller and the larger count, such as `counts` gives.
        seed: Equal seeds choose equal keys.
        scratch: A folder on the snapshot's file system; nothing is left there.
        cpu: Server and client run on this one processor.

    Raises:
        HostError: valgrind is not installed.
        DatasetError, ServerError, ClientError: Restoring, the server or the client failed.
    """
    found = {}
    for side, spec in servers.items():
        smaller, larger = (
            count(
                spec,
                snapshot,
                workload,
                dataset,
                operations=number,
                seed=seed,
                scratch=scratch,
                cpu=cpu,
            )
            for number in operations
        )
        found[side] = per_operation(smaller, larger)
    return found


def count(
    spec: ServerSpec,
    snapshot: Snapshot,
    workload: Workload,
    dataset: DatasetPlan,
    *,
    operations: int,
    seed: int,
    scratch: Path,
    cpu: int,
) -> Counted:
    """Return what a server does from its start, through so many operations, to its end."""
    data = scratch / "callgrind"
    try:
        snapshot.restore([data])
        launcher = data / _LAUNCHER
        launcher.write_text(_script(spec))
        launcher.chmod(0o755)
        # The data directory is the server's only writable folder; beside it nothing has to be
        # bound, and restoring the next start's data takes all away.
        wrapped = replace(spec, program=f"../data/{_LAUNCHER}")
        wrapped = mysql_family.with_options(wrapped, _OPTIONS)
        with mysql_family.running(wrapped, data, cpus=(cpu,)) as server:
            _operate(server, workload, dataset, operations=operations, seed=seed, cpus=(cpu,))
        return read_dumps(data, operations=operations)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _script(spec: ServerSpec) -> str:
    valgrind = shell.require("valgrind", package="valgrind")
    # Where things lie in memory decides how they hash, and so how much work they are.
    words = [shell.require("setarch", package="util-linux"), "--addr-no-randomize"]
    words += [valgrind, "--tool=callgrind", "--separate-threads=yes", "--trace-children=yes"]
    # Its socket for debuggers has no use here and costs time.
    words += ["--vgdb=no", f"--callgrind-out-file={INSIDE}/data/{_DUMP}"]
    return f'#!/bin/sh\nexec {" ".join(words)} {INSIDE}/artifact/{spec.program} "$@"\n'


def _operate(
    server: RunningServer,
    workload: Workload,
    dataset: DatasetPlan,
    *,
    operations: int,
    seed: int,
    cpus: Sequence[int],
) -> None:
    words = [
        shell.require("sysbench", package="sysbench"),
        f"{INSIDE}/scripts/{workload.script}",
        "--db-driver=mysql",
        f"--mysql-socket={INSIDE}/run/{server.socket.name}",
        "--mysql-user=root",
        "--mysql-db=sbtest",
        f"--tables={dataset.tables}",
        f"--table-size={dataset.rows}",
        "--rand-type=uniform",
        f"--rand-seed={seed}",
        "--threads=1",
        "--time=0",
        f"--events={operations}",
        "run",
    ]
    binds = (Bind(host=SCRIPTS, inside="scripts"), Bind(host=server.socket.parent, inside="run"))
    sandbox = Sandbox(
        binds=binds,
        environment={"LUA_PATH": f"{INSIDE}/scripts/?.lua"},
        niceness=_CLIENT_NICENESS,
    )
    done = sandbox.run(words, timeout_s=CLIENT_TIMEOUT_S, cpus=cpus)
    if not done.ok:
        said = (done.stdout + done.stderr)[-shell.TAIL_BYTES :]
        raise ClientError("measure", f"{workload.name} under callgrind: the client failed", said)


def per_operation(small: Counted, large: Counted) -> PerOperation:
    """Return what each further operation needs: start, connection and stop cancel.

    Raises:
        ServerError: The larger count needed no more than the smaller, so there is nothing to say.
    """
    more = large.operations - small.operations
    earlier = {
        thread: _counterpart(functions, small) for thread, functions in large.functions.items()
    }
    grown = {
        thread: count - small.threads.get(earlier[thread], 0)
        for thread, count in large.threads.items()
    }
    client = max(grown, key=lambda thread: grown[thread], default=0)
    if more <= 0 or grown.get(client, 0) <= 0:
        raise ServerError("measure", "under callgrind, more operations took no more instructions")
    before = small.functions.get(earlier[client], {})
    functions = {
        name: (count - before.get(name, 0)) / more
        for name, count in large.functions[client].items()
    }
    background = sum(large.threads.values()) - sum(small.threads.values()) - grown[client]
    return PerOperation(
        client=grown[client] / more,
        background=background / more,
        functions={name: value for name, value in functions.items() if value},
    )


def _counterpart(functions: Mapping[str, int], counted: Counted) -> int:
    """Return the thread that ran most nearly these functions; 0 where there is none.

    Numbers will not do: whether a short-lived thread has ended when the next one begins decides
    about the numbers of all that follow.
    """

    def likeness(thread: int) -> float:
        theirs = counted.functions[thread].keys()
        return len(functions.keys() & theirs) / max(1, len(functions.keys() | theirs))

    return max(sorted(counted.functions), key=likeness, default=0)


def explain(
    baseline: PerOperation, candidate: PerOperation, *, most: int = 20
) -> tuple[Difference, ...]:
    """Return the functions whose own instructions differ most, the largest difference first."""
    names = sorted(baseline.functions.keys() | candidate.functions.keys())
    found = [
        Difference(
            function=name,
            baseline=baseline.functions.get(name, 0.0),
            candidate=candidate.functions.get(name, 0.0),
        )
        for name in names
    ]
    found.sort(key=lambda difference: -abs(difference.change))
    return tuple(difference for difference in found[:most] if difference.change)


def read_dumps(folder: Path, *, operations: int) -> Counted:
    """Return what callgrind wrote into a folder that belongs to hostile code.

    Raises:
        ServerError: There is no dump, or it is no dump of callgrind.
    """
    threads: dict[int, int] = {}
    functions: dict[int, Mapping[str, int]] = {}
    names = sorted(entry.name for entry in os.scandir(folder) if _DUMP_NAME.fullmatch(entry.name))
    for name in names[:_DUMPS_MAX]:
        thread = int(name.rpartition("-")[2])
        functions[thread] = own_costs(_lines(folder / name))
        threads[thread] = sum(functions[thread].values())
    if not any(threads.values()):
        raise ServerError("measure", "callgrind left no counts; the server may have been killed")
    return Counted(operations=operations, threads=threads, functions=functions)


def _lines(path: Path) -> Iterator[str]:
    """Give the lines of a file that may be anything: no link, no pipe, no more than so much."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ServerError("measure", f"the dump of callgrind cannot be read: {error}") from error
    with open(descriptor, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ServerError("measure", "the dump of callgrind is no file")
        if os.fstat(descriptor).st_size > _DUMP_BYTES_MAX:
            raise ServerError("measure", "the dump of callgrind is too large to be one")
        yield from file


def own_costs(lines: Iterable[str]) -> dict[str, int]:
    """Return each function's own instructions in one dump, without what it called."""
    names: dict[tuple[str, str], str] = {}
    costs: dict[str, int] = {}
    place, function, is_callee = "", "", False
    for line in lines:
        named = _NAMED.match(line)
        cost = _COST.fullmatch(line.rstrip())
        if named:
            kind, number, name = named.groups()
            key = (kind[-2:], number)
            if name is not None:
                names[key] = shell.readable(name.strip())[:_NAME_LENGTH_MAX]
            if kind == "ob":
                place = Path(names.get(key, "")).name
            elif kind == "fn":
                function = _shown(names.get(key, ""), place)
        elif line.startswith("calls="):
            is_callee = True
        elif cost and function:
            if not is_callee:
                costs[function] = costs.get(function, 0) + int(cost.group(1))
            is_callee = False
    return costs


def _shown(name: str, place: str) -> str:
    """Return a function's name; addresses differ from build to build, so they are only a place."""
    if not name or _ADDRESS.fullmatch(name):
        return f"(no symbol) in {place or 'an unknown object'}"
    # callgrind tells recursion levels apart.
    return name.partition("'")[0]
