"""What a step of the Insert Benchmark said: a line for each thread, read into one value.

The client's text comes in, a `StepResult` goes out: what was done and how fast for each role, the
rate of each second, response times, and whether the step held the rate that it was to hold. The
client prints the lines at its end, one for each thread (`insert_benchmark_record.lua`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from workloads.errors import CatalogError
from workloads.insert_benchmark import SLA_SHARE, target_rows_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.workload import Workload

#: Names of the field's buckets, upper ends first to last.
BUCKETS: Final = (
    "256us",
    "1ms",
    "4ms",
    "16ms",
    "64ms",
    "256ms",
    "1s",
    "4s",
    "16s",
    "more",
)
#: Buckets of the finer histogram for a doubling: the script's FINE.
_FINE: Final = 8
#: A second may be missing this much and still count as whole: clocks of threads differ.
_WHOLE_SECOND_S: Final = 0.01
_LINE: Final = re.compile(
    r"^insert-benchmark role=(?P<role>insert|delete|query|index) client=(?P<client>\d+) "
    r"seconds=(?P<seconds>\d+\.\d+) statements=(?P<statements>\d+) rows=(?P<rows>\d+) "
    r"retries=(?P<retries>\d+) total_us=(?P<total_us>\d+) max_us=(?P<max_us>\d+) "
    r"rates=(?P<rates>\d+(?:,\d+)*) buckets=(?P<buckets>\d+(?:,\d+){9}) "
    r"latency=(?P<latency>(?:\d+:\d+(?:,\d+:\d+)*)?)$",
    re.MULTILINE,
)


class StepOutputError(CatalogError):
    """The client did not say what the step did."""


@dataclass(frozen=True, kw_only=True)
class Role:
    """What all threads of one role did together."""

    name: str
    clients: int
    #: Of the thread that took longest.
    seconds: float
    statements: int
    #: Rows inserted, deleted or indexed; queries count as one.
    rows: int
    retries: int
    total_us: int
    max_us: int
    #: Rows of each whole second, all clients together; none where it is one long statement.
    per_second: tuple[float, ...]
    #: Statements by response time, in the order of `BUCKETS`.
    buckets: tuple[int, ...]
    #: Statements by slot of the finer histogram: (slot, statements) in order of slots.
    fine: tuple[tuple[int, int], ...]

    @property
    def rows_s(self) -> float:
        """Rows per second over the whole step."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    def percentile_ms(self, share: float) -> float:
        """Return the response time that `share` of the statements did not exceed, to about 9 %."""
        wanted = share * sum(count for _, count in self.fine)
        seen = 0
        for slot, count in self.fine:
            seen += count
            if seen >= wanted:
                # The upper end of the slot, but nothing took longer than the longest.
                return min(2 ** ((slot + 1) / _FINE), max(1, self.max_us)) / 1000
        raise StepOutputError(f"no {self.name} was timed")

    @property
    def average_ms(self) -> float:
        """Mean response time."""
        return self.total_us / self.statements / 1000


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """One step on one version: what it measured, beside what ran along."""

    step: str
    #: What the step is about: inserts, indexes, or queries.
    measured: Role
    others: tuple[Role, ...]
    #: Rows a second that had to be inserted; None where the step holds no rate.
    target_rows_s: int | None

    @property
    def operations(self) -> int:
        """Rows inserted or indexed, or queries answered."""
        return self.measured.rows

    def role(self, name: str) -> Role | None:
        """Return the role of that name, or None where the step has none."""
        return next((one for one in (self.measured, *self.others) if one.name == name), None)

    @property
    def inserted_rows_s(self) -> float | None:
        """Rows inserted per second, or None where the step inserts nothing."""
        role = self.role("insert")
        return role.rows_s if role else None

    @property
    def held_share(self) -> float:
        """Inserts as a share of the rate they were to hold; 1 where there is no rate."""
        rate = self.inserted_rows_s
        if self.target_rows_s is None or rate is None:
            return 1.0
        return rate / self.target_rows_s

    @property
    def is_comparable(self) -> bool:
        """Whether the step did the work that it was to do, so that its speed means something."""
        return self.held_share >= SLA_SHARE

    def extra(self) -> dict[str, float]:
        """Return what a slice keeps of the step beside its throughput, by name with unit."""
        found: dict[str, float] = {"held_share": self.held_share}
        for role in (self.measured, *self.others):
            found[f"{role.name}_rows_s"] = role.rows_s
            found[f"{role.name}_retries"] = role.retries
            found[f"{role.name}_max_ms"] = role.max_us / 1000
            found |= {
                f"{role.name}_within_{bucket}": count
                for bucket, count in zip(BUCKETS, role.buckets, strict=True)
            }
        return found


#: What each step measures; the other roles run along.
_MEASURED: Final = {"load": "insert", "index": "index", "churn": "insert", "query": "query"}
_ROLES: Final = {
    "load": ("insert",),
    "index": ("index",),
    "churn": ("insert", "delete"),
    "query": ("query", "insert", "delete"),
}


def read_step(text: str, workload: Workload, *, clients: int) -> StepResult:
    """Return what the client printed about a step.

    Raises:
        StepOutputError: A thread did not report, or did nothing; a client that failed half-way has
            no numbers.
    """
    step = str(workload.options["step"])
    by_role: dict[str, list[re.Match[str]]] = {}
    for match in _LINE.finditer(text):
        by_role.setdefault(match["role"], []).append(match)
    found = {name: len({match["client"] for match in lines}) for name, lines in by_role.items()}
    if found != dict.fromkeys(_ROLES[step], clients):
        raise StepOutputError(
            f"{workload.name}: {clients} clients with {', '.join(_ROLES[step])} were asked for, "
            f"and the client program reported {found or 'none'}"
        )
    roles = {name: _together(name, lines) for name, lines in by_role.items()}
    for role in roles.values():
        if role.statements == 0:
            raise StepOutputError(f"{workload.name}: not one {role.name} was done")
    measured = roles.pop(_MEASURED[step])
    return StepResult(
        step=workload.name,
        measured=measured,
        others=tuple(roles[name] for name in _ROLES[step] if name in roles),
        target_rows_s=target_rows_s(workload, clients),
    )


def _together(name: str, lines: Sequence[re.Match[str]]) -> Role:
    seconds = max(float(line["seconds"]) for line in lines)
    rates = [[float(rate) for rate in line["rates"].split(",")] for line in lines]
    whole = 0 if name == "index" else max(1, int(seconds + _WHOLE_SECOND_S))
    slots: dict[int, int] = {}
    for line in lines:
        for pair in filter(None, line["latency"].split(",")):
            slot, count = pair.split(":")
            slots[int(slot)] = slots.get(int(slot), 0) + int(count)
    buckets = [[int(count) for count in line["buckets"].split(",")] for line in lines]
    return Role(
        name=name,
        clients=len(lines),
        seconds=seconds,
        statements=sum(int(line["statements"]) for line in lines),
        rows=sum(int(line["rows"]) for line in lines),
        retries=sum(int(line["retries"]) for line in lines),
        total_us=sum(int(line["total_us"]) for line in lines),
        max_us=max(int(line["max_us"]) for line in lines),
        per_second=tuple(sum(column) for column in zip_longest(*rates, fillvalue=0.0))[:whole],
        buckets=tuple(sum(column) for column in zip(*buckets, strict=True)),
        fine=tuple(sorted(slots.items())),
    )
