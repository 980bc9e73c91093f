"""How even the seconds were, as a table: mean, spread, worst seconds and stalls of each series.

Named series of operations per second come in, a table of text goes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reports.numbers import rate
from reports.tables import Column, Line, Table
from workloads.per_second import evenness

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_COLUMNS: Final = (
    Column(heading="seconds", meaning="Whole seconds that were counted"),
    Column(heading="mean", meaning="Operations per second"),
    Column(heading="sd", meaning="Standard deviation of a second, of the mean"),
    Column(heading="p50", meaning="Rate that half of the seconds reached"),
    Column(heading="p99", meaning="Rate that 99 % of the seconds reached"),
    Column(heading="stalls", meaning="Seconds below half the median"),
    Column(heading="longest", meaning="Stalled seconds in a row"),
)


def seconds_table(series: Iterable[tuple[str, Sequence[float]]], *, of: str = "workload") -> Table:
    """Return a line for each series that has seconds; `of` says what the names are."""
    return Table(
        title="Seconds",
        columns=(Column(heading=of, meaning="What was measured", numeric=False), *_COLUMNS),
        lines=tuple(_line(name, rates) for name, rates in series if rates),
    )


def _line(name: str, rates: Sequence[float]) -> Line:
    even = evenness(rates)
    return Line(
        cells=(
            name,
            str(even.seconds),
            rate(even.mean_ops_s),
            f"{even.spread:.1%}",
            rate(even.p50_ops_s),
            rate(even.p99_worst_ops_s),
            str(even.stalls),
            str(even.longest_stall_s),
        )
    )
