"""Instructions: how many a server needs for one operation, counted exactly under callgrind.

Servers, snapshots and a workload come in; instructions per operation go out, for all of the server
and for each function. A slow second opinion that noise hardly touches: it sees neither caches,
locks nor clock rates.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from results.explanation import FunctionCost, Instructions
from results.slice import SideName
from runner import callgrind, shell
from runner.callgrind import NoCountsError
from runner.errors import HostError, ServerError
from runner.lone_server import lone_server, operate
from runner.sandbox import INSIDE
from runner.servers import programs
from runner.servers.engine import with_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from runner.callgrind import Costs
    from runner.servers.engine import OptionValue, ServerSpec
    from runner.snapshots import Snapshot
    from workloads.catalog import Workload
    from workloads.plan import DatasetPlan

#: The server runs some 50 times slower under callgrind.
CLIENT_TIMEOUT_S: Final = 900.0
#: Workloads of equal software differ by less: 0.05 % was the most seen, in point queries of MySQL,
#: and less than 0.01 % on MariaDB, beside other work (docs/counters.md).
REPEATS_WITHIN: Final = 0.001
#: The same where commands cannot be told from the rest, because code has no names: 1.4 % was the
#: most seen. Connections differ by hundreds of thousands of instructions, and so does waiting.
REPEATS_WITHIN_NAMELESS: Final = 0.02
#: Functions listed by their own instructions, and as many by those with callees: a server's stack
#: from the connection down to a row is about as deep.
FUNCTIONS_LISTED: Final = 20
#: What changed by less than this share of the largest change is not listed: clocks, waits and the
#: network differ by some hundred instructions between any two counts.
_SHOWN_SHARE: Final = 0.01
#: Options without which the server does not come up under valgrind, or does so slowly: valgrind
#: knows no native AIO of the kernel, MariaDB 11.8 reserves 8 TiB of addresses, and large pools and
#: limits of open files make large tables. Each server ignores those it does not know.
_OPTIONS: Final[Mapping[str, OptionValue]] = {
    "loose-innodb-use-native-aio": False,
    "loose-innodb-buffer-pool-size-max": "256M",
    "innodb_buffer_pool_size": "256M",
    "open-files-limit": 1000,
}
#: On one processor with a client that steps back, the server always waits for the next operation;
#: whether it finds it there already, or has to wait, is a difference of hundreds of instructions.
_CLIENT_NICENESS: Final = 19
#: For workloads that write: neither purge nor the master thread, which work by the clock. With them
#: counts of update-index differed by a fifth, without by 0.002 %. MySQL then refuses to write.
_WITHOUT_PURGE: Final[Mapping[str, OptionValue]] = {"loose-innodb-force-recovery": 2}
#: Where MariaDB and MySQL do what a client asks for, in C++ with the types of its arguments behind.
#: Outside of it are the connection, reading the request, and waiting for it.
_COMMAND: Final = "dispatch_command*"
_LAUNCHER: Final = "under-callgrind"
#: What a count takes at least: less than three operations leave no two counts to subtract.
_OPERATIONS_MIN: Final = 3


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Instructions of one server from its beginning to its end."""

    operations: int
    #: By thread, as callgrind numbers them in the order of their making.
    threads: Mapping[int, Costs]
    #: Only what was done for the client's commands.
    commands_only: bool = False


@dataclass(frozen=True, kw_only=True)
class PerOperation:
    """Instructions per operation."""

    #: In the thread that served the client.
    client: float
    #: In all others, which work by the clock and not by the operation: noise, unless it is large.
    background: float
    #: By function in the thread that served the client: its own, and with what it called.
    own: Mapping[str, float]
    with_callees: Mapping[str, float]
    #: Only what was done for the client's commands.
    commands_only: bool = False


def missing() -> str:
    """Return why this machine cannot count instructions; empty where it can."""
    try:
        _programs()
    except HostError as error:
        return str(error)
    return ""


def repeats(specs: Iterable[ServerSpec], workload: Workload) -> bool:
    """Whether equal software needs equally many instructions: where nothing works by the clock."""
    return not workload.writes or all(_runs_without_purge(spec) for spec in specs)


def _runs_without_purge(spec: ServerSpec) -> bool:
    return spec.engine == "mariadb" and spec.storage_engine in {None, "innodb"}


def counts(throughput_ops_s: float) -> tuple[int, int]:
    """Return the two counts of operations to use where a slice had this throughput.

    The larger is what takes 0.2 s without callgrind: about 10 s under it.
    """
    return counts_up_to(round(0.2 * throughput_ops_s))


def counts_up_to(operations: int) -> tuple[int, int]:
    """Return the two counts of operations of which the larger is this one."""
    larger = max(_OPERATIONS_MIN, operations)
    return larger // 3, larger


def second_opinion(
    servers: Mapping[SideName, ServerSpec],
    snapshots: Mapping[SideName, Snapshot],
    workload: Workload,
    dataset: DatasetPlan,
    *,
    operations: tuple[int, int],
    seed: int,
    scratch: Path,
    cpu: int,
    timeout_s: float = CLIENT_TIMEOUT_S,
) -> dict[SideName, PerOperation]:
    """Return the instructions per operation of each side, with equal keys in equal order.

    Both sides are counted alike: only their commands, or all they do where one has no names.

    Args:
        servers: The sides; a server is started twice for each, one after the other.
        snapshots: The data that every start of a side begins from.
        workload: What is run, with one client.
        dataset: What is in the snapshots.
        operations: The smaller and the larger count, such as `counts` gives.
        seed: Equal seeds choose equal keys; 1 at least, because to sysbench 0 is the time of day.
        scratch: A folder on the snapshots' file system; nothing is left there.
        cpu: Server and client run on this one processor.
        timeout_s: For all four counts together.

    Raises:
        HostError: valgrind is not installed.
        DatasetError, ServerError, ClientError: Restoring, the server or the client failed.
    """
    deadline = time.monotonic() + timeout_s

    def sides(*, commands_only: bool) -> dict[SideName, PerOperation]:
        found = {}
        for side, spec in servers.items():
            smaller, larger = (
                count(
                    spec,
                    snapshots[side],
                    workload,
                    dataset,
                    operations=number,
                    seed=seed,
                    scratch=scratch,
                    cpu=cpu,
                    timeout_s=max(1.0, deadline - time.monotonic()),
                    commands_only=commands_only,
                )
                for number in operations
            )
            found[side] = per_operation(smaller, larger)
        return found

    try:
        return sides(commands_only=True)
    except NoCountsError:
        return sides(commands_only=False)


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
    timeout_s: float = CLIENT_TIMEOUT_S,
    commands_only: bool = True,
) -> Counted:
    """Return what a server does from its start, through so many operations, to its end.

    Or only what it does for the client's commands.

    Raises:
        NoCountsError: Nothing was counted; with `commands_only`, its functions may have no names.
        DatasetError, ServerError, ClientError: Restoring, the server or the client failed.
    """
    data = scratch / "callgrind"
    try:
        if workload.writes and _runs_without_purge(spec):
            spec = with_options(spec, _WITHOUT_PURGE)
        wrap = partial(_under_callgrind, commands_only=commands_only)
        with lone_server(spec, snapshot, data, cpus=(cpu,), wrap=wrap) as server:
            operate(
                server,
                workload,
                dataset,
                operations=operations,
                seed=seed,
                cpus=(cpu,),
                timeout_s=timeout_s,
                niceness=_CLIENT_NICENESS,
            )
        threads = callgrind.read_dumps(data)
        return Counted(operations=operations, threads=threads, commands_only=commands_only)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _under_callgrind(spec: ServerSpec, data: Path, *, commands_only: bool) -> ServerSpec:
    """Return the server as callgrind runs it, with what it takes written into its data directory.

    That is the server's only writable folder; beside it nothing has to be bound, and removing the
    data takes all away.
    """
    launcher = data / _LAUNCHER
    launcher.write_text(_script(spec, commands_only=commands_only))
    launcher.chmod(0o755)
    wrapped = replace(spec, program=f"../data/{_LAUNCHER}", loader=None, library_paths=())
    return with_options(wrapped, _OPTIONS)


def _script(spec: ServerSpec, *, commands_only: bool) -> str:
    setarch, valgrind = _programs()
    # Where things lie in memory decides how they hash, and so how much work they are.
    words = [setarch, "--addr-no-randomize"]
    words += [valgrind, "--tool=callgrind", "--separate-threads=yes", "--trace-children=yes"]
    # Its socket for debuggers has no use here and costs time.
    words += ["--vgdb=no", f"--callgrind-out-file={INSIDE}/data/{callgrind.DUMP}"]
    if commands_only:
        words.append(f"--toggle-collect='{_COMMAND}'")
    words += programs.words(spec, spec.program)
    return f'#!/bin/sh\nexec {" ".join(words)} "$@"\n'


def _programs() -> tuple[str, str]:
    valgrind = shell.require("valgrind", package="valgrind")
    return shell.require("setarch", package="util-linux"), valgrind


def per_operation(small: Counted, large: Counted) -> PerOperation:
    """Return what each further operation needs: start, connection and stop cancel.

    Raises:
        ServerError: The larger count needed no more than the smaller, so there is nothing to say.
    """
    more = large.operations - small.operations
    earlier = {thread: _counterpart(costs, small) for thread, costs in large.threads.items()}
    grown = {
        thread: costs.total - _total(small, earlier[thread])
        for thread, costs in large.threads.items()
    }
    client = max(grown, key=lambda thread: grown[thread], default=0)
    if more <= 0 or grown.get(client, 0) <= 0:
        raise ServerError("measure", "under callgrind, more operations took no more instructions")
    before = small.threads.get(earlier[client], callgrind.Costs(own={}))
    after = large.threads[client]
    everything = sum(costs.total for costs in large.threads.values()) - sum(
        costs.total for costs in small.threads.values()
    )
    return PerOperation(
        client=grown[client] / more,
        background=(everything - grown[client]) / more,
        own=_each(before.own, after.own, more),
        with_callees=_each(before.with_callees, after.with_callees, more),
        commands_only=small.commands_only and large.commands_only,
    )


def _total(counted: Counted, thread: int) -> int:
    return counted.threads[thread].total if thread in counted.threads else 0


def _each(before: Mapping[str, int], after: Mapping[str, int], more: int) -> dict[str, float]:
    """Return by how much each function's count has grown for each of `more` operations."""
    grown = {name: (count - before.get(name, 0)) / more for name, count in after.items()}
    return {name: value for name, value in grown.items() if value}


def _counterpart(costs: Costs, counted: Counted) -> int:
    """Return the thread that ran most nearly the same functions; 0 where there is none.

    Numbers will not do: whether a short-lived thread has ended when the next one begins decides
    about the numbers of all that follow.
    """
    functions = costs.own.keys()

    def likeness(thread: int) -> float:
        theirs = counted.threads[thread].own.keys()
        return len(functions & theirs) / max(1, len(functions | theirs))

    return max(sorted(counted.threads), key=likeness, default=0)


def explain(
    found: Mapping[SideName, PerOperation],
    *,
    operations: tuple[int, int],
    repeatable: bool,
    most: int = FUNCTIONS_LISTED,
) -> Instructions:
    """Return what both sides need as a document has it, with the functions that differ most.

    Args:
        found: Of both sides.
        operations: The two counts.
        repeatable: Whether equal software needs equally many, as `repeats` says.
        most: Functions in each list.
    """
    baseline, candidate = found[SideName.BASELINE], found[SideName.CANDIDATE]
    costs = _function_costs(baseline, candidate)
    named = [cost for cost in costs if cost.baseline_with_callees is not None]
    return Instructions(
        operations=operations[1] - operations[0],
        baseline=baseline.client,
        candidate=candidate.client,
        repeats_within=_repeats_within(baseline, candidate) if repeatable else None,
        own=_largest(costs, lambda cost: cost.change, most),
        with_callees=callers_first(_largest(named, lambda cost: cost.change_with_callees, most)),
    )


def _repeats_within(*sides: PerOperation) -> float:
    exact = all(side.commands_only for side in sides)
    return REPEATS_WITHIN if exact else REPEATS_WITHIN_NAMELESS


def _largest(
    costs: Sequence[FunctionCost], change: Callable[[FunctionCost], float], most: int
) -> tuple[FunctionCost, ...]:
    """Return the functions that changed most, without those that explain nothing beside them."""
    ranked = sorted(costs, key=lambda cost: (-abs(change(cost)), cost.function))[:most]
    least = _SHOWN_SHARE * abs(change(ranked[0])) if ranked else 0.0
    return tuple(cost for cost in ranked if abs(change(cost)) > least)


def callers_first(costs: Iterable[FunctionCost]) -> tuple[FunctionCost, ...]:
    """Return functions by what they take with callees, so that a caller stands above a callee."""

    def size(cost: FunctionCost) -> float:
        return max(cost.baseline_with_callees or 0.0, cost.candidate_with_callees or 0.0)

    return tuple(sorted(costs, key=lambda cost: (-size(cost), cost.function)))


def _function_costs(baseline: PerOperation, candidate: PerOperation) -> list[FunctionCost]:
    sides = (baseline, candidate)
    named = {name for side in sides for name in side.with_callees}
    names = named.union(*(side.own for side in sides))
    return [
        FunctionCost(
            function=name,
            baseline=baseline.own.get(name, 0.0),
            candidate=candidate.own.get(name, 0.0),
            baseline_with_callees=baseline.with_callees.get(name, 0.0) if name in named else None,
            candidate_with_callees=candidate.with_callees.get(name, 0.0) if name in named else None,
        )
        for name in sorted(names)
    ]
