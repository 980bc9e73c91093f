"""A unit of measuring, and what a part of the benchmark is: units, a line each, and a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.instrument.ledger import Ledger, Record


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One thing to measure; what it yields goes to the ledger."""

    key: str
    measure: Callable[[], Record]


class Part(Protocol):
    """A part that can be asked for by name."""

    @property
    def name(self) -> str:
        """The name in `--parts` and in the ledger."""

    @property
    def ledger(self) -> Ledger:
        """Where its results are."""

    @property
    def sizes(self) -> dict[str, Any]:
        """What its units are measured with; units of other sizes are not its own."""

    def units(self) -> Iterator[Unit]:
        """Give the units in the order of measuring; a later one may depend on earlier results."""

    def line(self, record: Record) -> str:
        """Return a measured unit as a line of progress."""

    def report(self) -> str:
        """Return the tables of all units measured so far."""
