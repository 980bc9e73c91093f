"""Families of workloads: a name, a stage and a number make a workload, `random-points.pre(1000)`.

Families come in from the modules that define them, names from plans; workloads go out, or an error
that says what the name should have been. What the statements are is not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from workloads.errors import UnknownWorkloadError
from workloads.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workloads.workload import Group

#: A table has ten times the rows that one operation picks. Fewer, and a list of random ids names
#: many of them twice (of one in ten rows, 5 %), and a range is a good part of the table.
ROWS_PER_PICKED: Final = 10

#: Positions in the field's runs: before the writes, and the unmeasured run before the measured one.
PRE: Final = ".pre"
WARM: Final = ".warm"

_NAME: Final = re.compile(
    r"(?P<family>[^.()]+)(?P<stage>\.pre|\.warm)?(?:\((?P<number>[0-9]{1,9})\))?"
)


@dataclass(frozen=True, kw_only=True)
class Family:
    """Workloads that differ in one number."""

    name: str
    group: Group
    script: str
    #: What the server gets for one operation, for the number in the name.
    statements: Callable[[int], tuple[str, ...]]
    #: One sentence; `{n}` is the number.
    description: str
    operation: str = "statement"
    writes: bool = False
    prepared: bool = True
    options: Mapping[str, str | int | float] = field(default_factory=dict)
    #: What the number counts; empty where the statement has none.
    counts: str = ""
    #: The numbers that the field runs. It writes one behind every name; where that counts nothing,
    #: it is read over.
    numbers: tuple[int, ...] = (100,)
    number_max: int = 0
    rows_min: int = 1
    scans_table: bool = False

    def spelling(self, *, stage: str = "", number: int = 0) -> str:
        """Return the one name of the workload with this stage and number."""
        return f"{self.name}{stage}({number})" if self.counts else f"{self.name}{stage}"

    def workload(self, *, stage: str = "", number: int = 0) -> Workload:
        """Return the workload with this stage and number, which have been checked."""
        return Workload(
            name=self.spelling(stage=stage, number=number),
            group=self.group,
            script=self.script,
            operation=self.operation,
            writes=self.writes,
            prepared=self.prepared,
            description=self.description.format(n=number),
            options={**self.options, **({"range": number} if self.counts else {})},
            rows_min=max(self.rows_min, ROWS_PER_PICKED * number if self.counts else 1),
            statements=self.statements(number),
            scans_table=self.scans_table,
        )

    def named(self, stage: str = "") -> tuple[Workload, ...]:
        """Return the workloads that the field runs."""
        numbers = self.numbers if self.counts else (0,)
        return tuple(self.workload(stage=stage, number=number) for number in numbers)


def find(name: str, families: Mapping[str, Family]) -> Workload | None:
    """Return the workload that `name` means, or None where it names no family.

    Raises:
        UnknownWorkloadError: The family is known, and it has no such stage or number.
    """
    match = _NAME.fullmatch(name)
    family = families.get(match["family"]) if match else None
    if match is None or family is None:
        return None
    stage, number = match["stage"] or "", match["number"]
    if stage and family.writes:
        meant = family.spelling(number=family.numbers[0])
        raise _unknown(name, f"only what reads has {PRE} and {WARM}", meant)
    if family.counts:
        return family.workload(stage=stage, number=_number(family, name, stage, number))
    if number is not None and int(number) not in family.numbers:
        raise _unknown(name, "its statement has no number", family.spelling(stage=stage))
    return family.workload(stage=stage)


def spellings(name: str, families: Mapping[str, Family]) -> list[str]:
    """Return the names that a misspelt one may mean: every family with its stage and number."""
    front, _, behind = name.partition("(")
    stage = next((stage for stage in (PRE, WARM) if front.endswith(stage)), "")
    number = re.match(r"[0-9]{1,9}", behind)
    return [
        family.spelling(
            stage="" if family.writes else stage,
            number=min(max(1, int(number[0])), family.number_max) if number else family.numbers[0],
        )
        for family in families.values()
    ]


def _number(family: Family, name: str, stage: str, number: str | None) -> int:
    """Return the number behind a name, or the field's where it runs only one."""
    if number is None and len(family.numbers) == 1:
        return family.numbers[0]
    if number is not None and 1 <= int(number) <= family.number_max:
        return int(number)
    raise _unknown(
        name,
        f"its number, of {family.counts}, has to be 1 to {family.number_max}",
        family.spelling(stage=stage, number=family.numbers[0]),
    )


def _unknown(name: str, why: str, meant: str) -> UnknownWorkloadError:
    return UnknownWorkloadError(f"unknown workload {name!r}: {why}; did you mean {meant!r}?")
