"""Runners in memory whose host, compiler and speed can be changed between jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from results.document import RunDocument
from results.slice import SideName
from tests.fakes.memory_fork import MemoryRunners
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from results.job import JobOrder
    from tests.fakes.memory_fork import MemoryFork


class MovingRunners(MemoryRunners):
    """As `MemoryRunners`, on a host of the class that is ordered."""

    def __init__(self, fork: MemoryFork) -> None:
        super().__init__(fork)
        self.compiler = "g++ 12.2.0"
        self.host = "bench-1"
        #: Of every workload, as a factor.
        self.speed = 1.0

    def start(self, order: JobOrder) -> None:
        super().start(order)
        if order.job in self._documents:
            document = RunDocument.model_validate_json(self._documents[order.job])
            moved = self._moved(document, order)
            self._documents[order.job] = moved.model_dump_json().encode()

    def _moved(self, document: RunDocument, order: JobOrder) -> RunDocument:
        """Return a document as this host, compiler and speed would have brought it."""
        host = {"host_class": order.host_class, "name": self.host}
        suite = parse_plan(order.plan).suite(order.suite)
        update: dict[str, Any] = {
            "host": document.host.model_copy(update=host),
            "candidate": self._side(document.candidate, order, SideName.CANDIDATE),
            "starts": tuple(self._start(start) for start in document.starts),
            "variant": suite.build,
            "config": suite.config,
        }
        if document.baseline is not None:
            update["baseline"] = self._side(document.baseline, order, SideName.BASELINE)
        return document.model_copy(update=update)

    def _side(self, side: Any, order: JobOrder, name: SideName) -> Any:
        tools = side.artifact.toolchain.model_copy(
            update={"cxx_compiler": self.compiler, "digest": self.compiler.replace(" ", "-")}
        )
        return side.model_copy(
            update={
                "artifact": side.artifact.model_copy(update={"toolchain": tools}),
                "variant": order.variants.get(name),
                "config": order.configs.get(name),
            }
        )

    def _start(self, start: Any) -> Any:
        """Return a start as fast as this host is; of a pair, only its candidate."""
        return start.model_copy(
            update={
                "slices": tuple(
                    piece.model_copy(
                        update={"throughput_ops_s": piece.throughput_ops_s * self.speed}
                    )
                    if piece.side is SideName.CANDIDATE
                    else piece
                    for piece in start.slices
                )
            }
        )
