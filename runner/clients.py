"""Clients: the programs that load a dataset and run workloads, by the catalog's name of the tool.

One module each satisfies `Client` with its functions. A new tool is a module and a line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from runner import db_bench, sysbench
from workloads.workload import DatasetKind, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner.client_run import ClientRun
    from runner.servers.engine import RunningServer
    from workloads.plan import DatasetPlan
    from workloads.workload import Workload


class Client(Protocol):
    """A program that loads and runs."""

    def load(self, server: RunningServer, plan: DatasetPlan) -> Mapping[str, float] | None:
        """Fill an empty server with a dataset; return what took how long, where it is told.

        Raises:
            DatasetError: The load failed; carries what the client printed.
        """

    def run_slice(
        self,
        server: RunningServer,
        workload: Workload,
        plan: DatasetPlan,
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


CLIENTS: Final[Mapping[Tool, Client]] = {Tool.SYSBENCH: sysbench, Tool.DB_BENCH: db_bench}


def client_of(tool: Tool) -> Client:
    """Return the client that the catalog calls `tool`."""
    return CLIENTS[tool]


def loader_of(kind: DatasetKind) -> Client:
    """Return the client that loads datasets of this kind."""
    return CLIENTS[Tool.DB_BENCH if kind is DatasetKind.LSM else Tool.SYSBENCH]
