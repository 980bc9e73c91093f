"""The Insert Benchmark's tables: throughput, the same relative to the first version, insert rates.

Results of steps come in by version, tables of text go out. A step that did not hold its rate is
shown in brackets and never compared: it did less work. Rules of the field: the lowest quarter of a
column is marked ▼ unless all are within a fifth of the best, the highest quarter ▲.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

from reports.markdown import table_markdown
from reports.numbers import NOT_KNOWN, mark, rate
from reports.seconds import seconds_table
from reports.tables import Column, Line, Table
from workloads.insert_benchmark import SLA_SHARE
from workloads.insert_benchmark_output import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workloads.insert_benchmark_output import StepResult

NOT_COMPARED: Final = "not compared"
LEGEND: Final = (
    f"(in brackets): inserted less than {SLA_SHARE:.0%} of its rate, not compared. Absolute: ▼ "
    "lowest quarter unless all are within 20 % of the best, ▲ highest quarter. Relative: ▼ 0.95 or "
    "less, ▲ 1.05 or more."
)
#: Where the lowest is at least this share of the highest, nothing is marked as low.
_CLOSE: Final = 0.8
_LOW, _HIGH = mark(0.0), mark(2.0)
_VERSION: Final = Column(heading="version", meaning="Build and config", numeric=False)
_STEP: Final = Column(heading="step", meaning="Step of the chain", numeric=False)


@dataclass(frozen=True, kw_only=True)
class StepRate:
    """One step on one version, over its starts."""

    step: str
    #: Median of the starts: rows inserted or indexed, or queries, per second.
    rate: float
    #: Rows inserted per second beside the queries, median; None where the step holds no rate.
    inserted_rows_s: float | None
    target_rows_s: int | None
    #: Whether every start held its rate.
    is_comparable: bool


@dataclass(frozen=True, kw_only=True)
class Version:
    """A column's worth of results: one build and config with its steps in order."""

    name: str
    steps: tuple[StepRate, ...]

    def step(self, name: str) -> StepRate | None:
        """Return the step of that name, or None where it was not measured."""
        return next((one for one in self.steps if one.step == name), None)


def step_rate(starts: Sequence[StepResult]) -> StepRate:
    """Return one step over its starts, at least one."""
    first = starts[0]
    held = first.target_rows_s is not None
    return StepRate(
        step=first.step,
        rate=median(one.measured.rows_s for one in starts),
        inserted_rows_s=median(one.inserted_rows_s or 0.0 for one in starts) if held else None,
        target_rows_s=first.target_rows_s,
        is_comparable=all(one.is_comparable for one in starts),
    )


def absolute_table(versions: Sequence[Version]) -> Table:
    """Return throughput, a line for each version and a column for each step."""
    marks = {step: _quarters(versions, step) for step in _steps(versions)}
    lines = []
    for version in versions:
        cells = [version.name]
        for step, marked in marks.items():
            found = version.step(step)
            if found is None:
                cells.append(NOT_KNOWN)
            elif not found.is_comparable:
                cells.append(f"({rate(found.rate)})")
            else:
                cells.append(f"{marked.get(version.name, '')} {rate(found.rate)}".strip())
        lines.append(Line(cells=tuple(cells)))
    return _table("Throughput", "Operations per second", versions, lines)


def relative_table(versions: Sequence[Version]) -> Table:
    """Return throughput over that of the first version."""
    lines = []
    for version in versions:
        cells = [version.name]
        for step in _steps(versions):
            base, found = versions[0].step(step), version.step(step)
            if base is None or found is None or base.rate == 0:
                cells.append(NOT_KNOWN)
            elif not (base.is_comparable and found.is_comparable):
                cells.append(NOT_COMPARED)
            else:
                ratio = round(found.rate / base.rate, 2)
                cells.append(f"{mark(ratio)} {ratio:.2f}".strip())
        lines.append(Line(cells=tuple(cells)))
    return _table("Relative throughput", f"Relative to {versions[0].name}", versions, lines)


def insert_rate_table(versions: Sequence[Version]) -> Table:
    """Return rows inserted per second during the queries; ▼ where that is below the SLA."""
    targets = {
        one.step: one.target_rows_s
        for version in versions
        for one in version.steps
        if one.target_rows_s is not None
    }
    lines = []
    for version in versions:
        cells = [version.name]
        for step in targets:
            found = version.step(step)
            if found is None or found.inserted_rows_s is None:
                cells.append(NOT_KNOWN)
            else:
                sign = "" if found.is_comparable else _LOW
                cells.append(f"{sign} {rate(found.inserted_rows_s)}".strip())
        lines.append(Line(cells=tuple(cells)))
    lines.append(Line(cells=("target", *(rate(float(target or 0)) for target in targets.values()))))
    columns = [Column(heading=step, meaning="Rows inserted per second") for step in targets]
    return Table(
        title="Insert rate", columns=(_VERSION, *columns), lines=tuple(lines) if targets else ()
    )


def response_table(results: Sequence[StepResult]) -> Table:
    """Return how many statements of each role took how long, step by step."""
    columns = [
        Column(heading=bucket, meaning="Statements that took so long at most") for bucket in BUCKETS
    ]
    lines = []
    for result in results:
        for role in (result.measured, *result.others):
            counts = (f"{count:,}" for count in role.buckets)
            longest = f"{role.max_us / 1e6:.3f}"
            lines.append(Line(cells=(result.step, role.name, *counts, longest)))
    return Table(
        title="Response times",
        columns=(
            _STEP,
            Column(heading="role", meaning="What the connection does", numeric=False),
            *columns,
            Column(heading="max s", meaning="Longest in seconds"),
        ),
        lines=tuple(lines),
    )


def step_seconds_table(results: Sequence[StepResult]) -> Table:
    """Return how even the seconds of each step were that has more than one long statement."""
    return seconds_table(
        ((result.step, result.measured.per_second) for result in results), of="step"
    )


def insert_benchmark_markdown(versions: Sequence[Version]) -> str:
    """Return the three tables with their legend."""
    tables = (absolute_table(versions), relative_table(versions), insert_rate_table(versions))
    parts = [f"**{table.title}**\n\n{table_markdown(table)}" for table in tables if table.lines]
    return "\n\n".join([*parts, LEGEND])


def _steps(versions: Sequence[Version]) -> list[str]:
    """Return the steps in the order of the chain, as the versions have them."""
    return list(dict.fromkeys(one.step for version in versions for one in version.steps))


def _quarters(versions: Sequence[Version], step: str) -> dict[str, str]:
    """Return the marks of a column by version, among those that may be compared."""
    rates = {
        version.name: one.rate for version, one in _of_step(versions, step) if one.is_comparable
    }
    if len(set(rates.values())) < 2:  # noqa: PLR2004  nothing is lower than itself
        return {}
    low, _, high = quantiles(rates.values(), n=4, method="inclusive")
    is_close = min(rates.values()) >= _CLOSE * max(rates.values())
    marks = {}
    for name, value in rates.items():
        if value >= high:
            marks[name] = _HIGH
        elif value <= low and not is_close:
            marks[name] = _LOW
    return marks


def _of_step(versions: Sequence[Version], step: str) -> Iterator[tuple[Version, StepRate]]:
    for version in versions:
        found = version.step(step)
        if found is not None:
            yield version, found


def _table(title: str, meaning: str, versions: Sequence[Version], lines: Sequence[Line]) -> Table:
    columns = [Column(heading=step, meaning=meaning) for step in _steps(versions)]
    return Table(title=title, columns=(_VERSION, *columns), lines=tuple(lines))
