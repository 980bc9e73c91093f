"""An engine: what every family of servers has to offer, and the values that it is asked with.

One module each (`mysql_family`, `postgres`, `lsm`) satisfies `Engine` with its functions; `engines`
finds it by the plan's name. Whoever measures talks to the engine only, and must not know which it
is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from runner.limits import Limits
from runner.limits import limits as usual_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from runner.build import Installed
    from runner.servers.settle import Settled
    from workloads.plan import DatasetPlan

OptionValue = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """What to run and how: an artifact, its program and its options."""

    #: By the plan's name; decides which module knows how.
    engine: str
    installed: Installed
    #: Server program relative to the install prefix.
    program: str
    #: Script that makes a data directory, relative to the prefix; the system's where None.
    install_db: str | None
    #: The plan's; what they leave open is the engine's base (docs/engines.md).
    options: Mapping[str, OptionValue]
    #: What it may use of the machine.
    limits: Limits = field(default_factory=usual_limits)
    #: Storage engine of the dataset's tables; the server's default where None.
    storage_engine: str | None = None
    #: Dynamic loader in the artifact that its programs are started with; the system's where None.
    loader: str | None = None
    #: Folders in the artifact where that loader looks for libraries.
    library_paths: tuple[str, ...] = ()


def with_options(spec: ServerSpec, options: Mapping[str, OptionValue]) -> ServerSpec:
    """Return the same server with some options set differently."""
    return replace(spec, options={**spec.options, **options})


@dataclass(frozen=True, kw_only=True)
class RunningServer:
    """A server that answers."""

    engine: Engine
    socket: Path
    #: Process ids of the server on the host, without the sandbox around it, its first process
    #: first; empty for an engine that is a library. Later children are not among them.
    pids: tuple[int, ...]
    version: str
    error_log: Path
    #: Its data directory on the host.
    data: Path
    # Options are no key of anything.
    spec: ServerSpec = field(hash=False)
    #: Seconds from its start to its first answer.
    startup_s: float = 0.0
    #: It is up to load a dataset, so that coming to rest may take the long way.
    loading: bool = False


class Engine(Protocol):
    """A family of servers, or of libraries with a benchmark program."""

    def version(self, spec: ServerSpec) -> str:
        """Return what the program says about its version.

        Raises:
            DatasetError: It does not run or does not say.
        """

    def data_format(self, spec: ServerSpec) -> str:
        """Return what a data directory is written as: equal formats can read each other's.

        A name, a dash, and numbers with dots, such as `mysql-8.0.31`, `postgres-17`.
        """

    def format_options(self, spec: ServerSpec) -> Mapping[str, OptionValue]:
        """Return the options that decide the bytes of a data directory."""

    def data_bytes(self, spec: ServerSpec, plan: DatasetPlan) -> int:
        """Return about how large the data directory becomes while the dataset is loaded."""

    def redo_bytes(self, spec: ServerSpec) -> int:
        """Return how much of that is redo or write-ahead log."""

    def initialise(self, spec: ServerSpec, data: Path) -> None:
        """Make an empty data directory.

        Raises:
            DatasetError: The engine's own tool failed; carries the end of its output.
        """

    def running(
        self, spec: ServerSpec, data: Path, *, cpus: Sequence[int], loading: bool = False
    ) -> AbstractContextManager[RunningServer]:
        """Start a server on `data` and give it once it answers; stop it at the end.

        Raises:
            ServerError: It ended or did not answer in time (stage `start`), or died while it was
                in use or did not stop in time (stage `stop`); carries the end of its error log.
        """

    def rows(self, server: RunningServer, statement: str) -> list[tuple[str, ...]]:
        """Return what the server answers to one SQL statement, as text.

        Raises:
            ServerError: It refused the statement or did not answer; carries what it said.
        """

    def status(self, server: RunningServer) -> Mapping[str, int]:
        """Return every status counter that is a number, by lower-case name.

        Raises:
            ServerError: As `rows`.
        """

    def settle(self, server: RunningServer, *, timeout_s: float) -> Settled:
        """Wait until the server has no background work left, hurrying it on.

        Raises:
            ServerError: It refused a statement.
        """

    def sysbench_words(self, server: RunningServer, *, database: str) -> list[str]:
        """Return the words that make sysbench talk to this server: driver, socket, user, database.

        Where a server has schemas in one database instead, `database` is the schema's name.
        """
