"""RocksDB and LevelDB: libraries whose databases are folders, run by their program db_bench.

There is no server: `running` opens nothing and gives a closed database, on which `run` starts
db_bench as often as somebody wants. db_bench is the fork's own code, so it runs in the sandbox and
is watched, as a server would be.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import shell
from runner.errors import DatasetError, ServerError
from runner.sandbox import INSIDE, Sandbox, hand_over
from runner.servers import programs, serving
from runner.servers.engine import RunningServer
from runner.servers.settle import Settled, settled
from workloads import db_bench_stats
from workloads.db_bench_output import SECONDS_MARK
from workloads.db_bench_words import (
    KEY_BYTES,
    Circumstances,
    can_wait,
    format_options,
    is_universal,
    normalising,
    taken,
    words,
)
from workloads.plan_datasets import DatasetPlan
from workloads.workload import DatasetKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runner.servers.engine import OptionValue, ServerSpec

VERSION_TIMEOUT_S: Final = 60.0
#: Reading the levels opens the database, which checks what the last process left unfinished.
LOOK_TIMEOUT_S: Final = 300.0
#: The database in the data directory: db_bench removes the folder when it makes it anew.
DATABASE: Final = "db"
#: Where db_bench writes its operations per second, in the sandbox's own memory.
SECONDS_FILE: Final = "/tmp/forkwatch-seconds.csv"  # noqa: S108  the sandbox's own
#: A shell that runs what follows, prints that file, and reports the CPU time of its children.
_WRAPPED: Final = (
    "sh",
    "-c",
    (
        f'"$@"; status=$?; if [ -f {SECONDS_FILE} ]; then echo; echo "{SECONDS_MARK}"; '
        f"cat {SECONDS_FILE}; fi; times >&2; exit $status"
    ),
    "sh",
)
_VERSION: Final = re.compile(
    r"^(RocksDB|LevelDB): +version ([0-9]{1,3}\.[0-9]{1,3}\S{0,20})", re.MULTILINE
)
_UNKNOWN: Final = re.compile(r"unknown benchmark '([a-z0-9]{1,40})'")
#: Bytes on the disk for each byte of keys and values while they are loaded, and besides: measured
#: with RocksDB 7.8.3 and a million rows, leveled 1.4 times and universal, which merges all of its
#: runs at once, 2.2 times (docs/rocksdb.md).
_LOADING: Final = {False: 1.5, True: 2.5}
_EMPTY_BYTES: Final = 256 * 1024**2


@dataclass(frozen=True, kw_only=True)
class LsmServer(RunningServer):
    """A closed database, and the processors that db_bench may run on."""

    cpus: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lsm:
    """An engine without a server; satisfies `Engine`."""

    #: By the plan's name.
    name: str

    def version(self, spec: ServerSpec) -> str:
        """Return what db_bench says about its version, such as `RocksDB 7.8.3`.

        Raises:
            DatasetError: It does not run or does not say.
        """
        nothing = ["--benchmarks=", "--num=1"]
        if self.name == "rocksdb":
            # Opening fails where the default's library is not linked.
            nothing.append("--compression_type=none")
        done = run(spec, None, nothing, timeout_s=VERSION_TIMEOUT_S)
        found = _VERSION.search(done.stderr) or _VERSION.search(done.stdout)
        if not done.ok or found is None:
            raise DatasetError("start", "db_bench does not tell its version", said(done))
        return f"{found.group(1)} {found.group(2)}"

    def data_format(self, spec: ServerSpec) -> str:
        """Return the engine with its major version: `rocksdb-7`."""
        return f"{self.name}-{self.version(spec).split()[1].split('.')[0]}"

    def format_options(self, spec: ServerSpec) -> Mapping[str, OptionValue]:
        """Return the flags that decide what a loaded database looks like."""
        return format_options(self.name, spec.options)

    def data_bytes(self, spec: ServerSpec, plan: DatasetPlan) -> int:
        """Return about how large the database becomes while it is loaded."""
        loaded = plan.rows * (KEY_BYTES[self.name] + plan.value_bytes)
        return int(loaded * _LOADING[is_universal(spec.options)]) + _EMPTY_BYTES

    def redo_bytes(self, spec: ServerSpec) -> int:
        """Return zero: a database at rest has nothing in its write-ahead log."""
        del spec
        return 0

    def initialise(self, spec: ServerSpec, data: Path) -> None:
        """Make the folder that the database will lie in; db_bench makes the database."""
        del spec
        (data / DATABASE).mkdir()
        hand_over(data / DATABASE)

    @contextmanager
    def running(
        self, spec: ServerSpec, data: Path, *, cpus: Sequence[int], loading: bool = False
    ) -> Iterator[RunningServer]:
        """Give the closed database in `data`; there is nothing to start or stop.

        Raises:
            ServerError: db_bench does not run, or the config sets what it must not.
        """
        try:
            version = self.version(spec)
        except DatasetError as error:
            raise ServerError("start", str(error), error.log_tail) from error
        wrong = taken(spec.options)
        if wrong:
            raise ServerError("start", wrong)
        nothing = Path(os.devnull)
        yield LsmServer(
            engine=self,
            socket=nothing,
            pids=(),
            version=version,
            error_log=nothing,
            data=data,
            spec=spec,
            loading=loading,
            cpus=tuple(cpus),
        )

    def rows(self, server: RunningServer, statement: str) -> list[tuple[str, ...]]:
        """Refuse: there is no SQL.

        Raises:
            ServerError: Always.
        """
        raise ServerError("measure", f"{server.version} has no SQL: {statement[:200]}")

    def status(self, server: RunningServer) -> Mapping[str, int]:
        """Return nothing: db_bench tells its counters with each slice."""
        del server
        return {}

    def settle(self, server: RunningServer, *, timeout_s: float) -> Settled:
        """Bring a database to rest: nothing in memory, in level 0, or under compaction.

        One that is at rest already is only looked at: waiting costs db_bench 10 seconds and more.

        Raises:
            ServerError: db_bench failed.
        """
        began = time.monotonic()
        left = self._left(server)
        if not left:
            return settled(began, "")
        benchmarks = normalising(server.version, self.name, server.spec.options)
        done = self._run(server, benchmarks, timeout_s=timeout_s)
        unknown = _UNKNOWN.search(done.stderr)
        if done.timed_out:
            return settled(began, f"compaction did not end within {timeout_s:.0f} s")
        if unknown:
            return settled(began, f"{left}; this db_bench does not know {unknown.group(1)}")
        if not done.ok:
            raise ServerError(
                "measure", "db_bench could not bring the database to rest", said(done)
            )
        return settled(began, self._left(server) or self._unwaited(server))

    def _left(self, server: RunningServer) -> str:
        """Return what a database at rest would not have, in words."""
        done = self._run(server, ("stats",), timeout_s=LOOK_TIMEOUT_S)
        if not done.ok:
            raise ServerError("measure", "db_bench could not open the database", said(done))
        return db_bench_stats.unrest(
            db_bench_stats.levels(done.stdout),
            universal=is_universal(server.spec.options),
            one_level=self.name == "leveldb",
        )

    def _unwaited(self, server: RunningServer) -> str:
        if self.name != "rocksdb" or can_wait(server.version, self.name, server.spec.options):
            return ""
        return f"universal compaction of {server.version} cannot be waited for"

    def _run(
        self, server: RunningServer, benchmarks: Sequence[str], *, timeout_s: float
    ) -> shell.Completed:
        at = Circumstances(
            engine=self.name,
            # Neither of these benchmarks touches a key.
            dataset=DatasetPlan(kind=DatasetKind.LSM, rows=1),
            options=server.spec.options,
        )
        return run(server.spec, server.data, words(benchmarks, at), timeout_s=timeout_s)

    def sysbench_words(self, server: RunningServer, *, database: str) -> list[str]:
        """Refuse: sysbench cannot talk to a library.

        Raises:
            ServerError: Always.
        """
        raise ServerError("measure", f"sysbench cannot use {database} in {server.version}")


ROCKSDB: Final = Lsm(name="rocksdb")
LEVELDB: Final = Lsm(name="leveldb")


def run(
    spec: ServerSpec,
    data: Path | None,
    argv: Sequence[str],
    *,
    timeout_s: float,
    cpus: Sequence[int] = (),
) -> shell.Completed:
    """Run db_bench to its end on the database in `data`, or on one that is gone afterwards.

    Its operations per second follow its output behind `SECONDS_MARK`, its CPU time its errors.
    """
    folder = INSIDE / "data" / DATABASE if data else Path("/tmp") / DATABASE  # noqa: S108  inside
    binds = serving.view(spec, data) if data else programs.view(spec)
    command = [*_WRAPPED, *programs.words(spec, spec.program), f"--db={folder}", *argv]
    return Sandbox(binds=binds, limits=spec.limits).run(command, timeout_s=timeout_s, cpus=cpus)


def said(done: shell.Completed) -> str:
    """Return the end of what db_bench said, without what a terminal would obey."""
    why = f"\n{done.stopped_by}" if done.stopped_by else ""
    return shell.readable((done.stdout + done.stderr)[-shell.TAIL_BYTES :]) + why
