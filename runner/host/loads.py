"""Loads: what calibration runs to see how well a placement repeats.

A ping-pong of pipes, which every machine can play, and a real server with real clients where one is
installed. Placements come in, slices go out.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from results.document import Artifact, Toolchain
from runner import sandbox, sysbench
from runner.build import Installed
from runner.errors import HostError
from runner.host import pingpong
from runner.host.calibration import Sample, watched
from runner.servers import mysql_family
from runner.servers.mysql_family import ServerSpec
from workloads.catalog import find_workload
from workloads.plan import DatasetPlan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from results.document import Placement
    from runner.host.profile import Kind
    from runner.servers.mysql_family import RunningServer
    from runner.sysbench import ClientRun

CLIENTS: Final[Mapping[Kind, int]] = {"single-client": 1, "several-clients": 4, "io": 4}
_WORKLOADS: Final[Mapping[Kind, str]] = {
    "single-client": "point-query",
    "several-clients": "point-query",
    "io": "update-index",
}
#: In memory at once, loaded in a second, and large enough that queries touch different pages.
_DATASET: Final = DatasetPlan(tables=1, rows=50_000)
_PROGRAMS: Final = ("sbin/mariadbd", "bin/mariadbd", "bin/mysqld", "sbin/mysqld")
_SEED: Final = 20_260_102
_PID: Final = 0


class PingPong:
    """Pairs of processes with a pipe between them."""

    def __init__(self, folder: Path, *, seconds: float) -> None:
        self._folder, self._seconds = folder, seconds

    def name(self, kind: Kind) -> str:
        """Return what is run for a kind."""
        return "ping-pong to disk" if kind == "io" else f"ping-pong x {CLIENTS[kind]}"

    def warm_up(self, kind: Kind, placed: Placement) -> None:
        """Do nothing: the pairs have no state."""

    def sample(self, kind: Kind, placed: Placement, spinners: Sequence[int]) -> Sample:
        """Return one slice."""
        with tempfile.TemporaryDirectory(dir=self._folder, prefix="pages-") as pages:
            file = Path(pages) / "page" if kind == "io" else None
            pairs = CLIENTS[kind]
            return watched(
                [],
                placed,
                spinners,
                lambda: (
                    pingpong.run(placed, pairs=pairs, seconds=self._seconds, file=file),
                    0.0,
                ),
            )


class ServerLoad:
    """A server that is moved between placements, and sysbench."""

    def __init__(self, server: RunningServer, *, seconds: float) -> None:
        # The client takes whole seconds.
        self._server, self._seconds = server, math.ceil(seconds)

    def name(self, kind: Kind) -> str:
        """Return what is run for a kind."""
        return f"{_WORKLOADS[kind]} x {CLIENTS[kind]}"

    def warm_up(self, kind: Kind, placed: Placement) -> None:
        """Move the server, and let caches and its threads settle."""
        for pid in self._server.pids:
            _move(pid, placed.server_cpus)
        self._run(kind, placed, seconds=1)

    def sample(self, kind: Kind, placed: Placement, spinners: Sequence[int]) -> Sample:
        """Return one slice."""
        return watched(
            self._server.pids,
            placed,
            spinners,
            lambda: _rate_and_cpu(self._run(kind, placed, seconds=self._seconds)),
        )

    def _run(self, kind: Kind, placed: Placement, *, seconds: int) -> ClientRun:
        return sysbench.run_slice(
            self._server,
            find_workload(_WORKLOADS[kind]),
            _DATASET,
            seconds=seconds,
            threads=CLIENTS[kind],
            seed=_SEED,
            cpus=placed.client_cpus,
        )


def _rate_and_cpu(done: ClientRun) -> tuple[float, float]:
    return done.throughput_ops_s, done.cpu_s


def installed_server() -> Path | None:
    """Return the prefix of the system's own server, or None where there is none."""
    prefixes = (Path("/usr"), Path("/usr/local"), Path("/usr/local/mysql"))
    return next((prefix for prefix in prefixes if _program(prefix)), None)


@contextmanager
def server_load(prefix: Path, folder: Path, *, seconds: float) -> Iterator[ServerLoad]:
    """Load a small dataset into the server below `prefix` and run it.

    Raises:
        HostError: There is no server below `prefix`.
        DatasetError, ServerError: It does not load or start.
    """
    spec = _spec(prefix)
    # Below the home, since that is where jobs keep their data.
    data = folder / "calibration-data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    try:
        sandbox.hand_over(data)
        mysql_family.initialise(spec, data)
        with mysql_family.running(spec, data, cpus=()) as server:
            sysbench.load(server, _DATASET)
            yield ServerLoad(server, seconds=seconds)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _program(prefix: Path) -> str:
    return next((name for name in _PROGRAMS if (prefix / name).is_file()), "")


def _spec(prefix: Path) -> ServerSpec:
    program = _program(prefix)
    if not program:
        raise HostError(f"{prefix} has no server: expected one of {', '.join(_PROGRAMS)} there")
    unknown = Toolchain(
        c_compiler="unknown", cxx_compiler="unknown", cmake="unknown", linker="unknown", digest="-"
    )
    facts = Artifact(
        id="installed",
        variant="installed",
        tree="0" * 40,
        toolchain=unknown,
        content_hash="-",
        installed_bytes=0,
        build_seconds=0,
        cached=True,
    )
    return ServerSpec(
        engine="mariadb" if program.endswith("mariadbd") else "mysql",
        installed=Installed(facts=facts, folder=prefix),
        program=program,
        install_db=None,
        options={
            "innodb_buffer_pool_size": "256M",
            "innodb_log_file_size": "64M",
            "innodb_flush_log_at_trx_commit": 1,
        },
    )


def _move(pid: int, cpus: Sequence[int]) -> None:
    """Pin every thread of a process; without processors, to all that we may use ourselves."""
    wanted = list(cpus) or sorted(os.sched_getaffinity(_PID))
    with contextlib.suppress(psutil.NoSuchProcess):
        for thread in psutil.Process(pid).threads():
            # A thread may end while we look.
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread.id, wanted)
