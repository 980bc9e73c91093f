"""The explanation of a pair in words and tables: instructions per operation, functions that grew.

An explanation of a run document comes in; sentences, and tables whose cells are not escaped, go
out. Counts are compared with what equal software differs by, and nothing is judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reports.numbers import NOT_KNOWN, percent, ratio
from reports.tables import Column, Line, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.explanation import (
        Explanation,
        FunctionCost,
        Instructions,
        Profile,
        WorkloadExplanation,
    )

#: Below this, whole instructions would hide what changed: a branch per row is a few of them.
_WHOLE_FROM: Final = 100.0
#: A function that makes up this share of the difference is named in the sentence.
_NAMED_SHARE: Final = 0.1
_NAMED_MAX: Final = 2
#: Longest part of a C++ signature in a table.
_FUNCTION_LENGTH_MAX: Final = 80

_FUNCTION: Final = Column(
    heading="function", meaning="As the symbols of the binaries name it", numeric=False
)


def explanation_sentence(found: WorkloadExplanation) -> str:
    """Return one sentence on the instructions of a workload.

    For example "scan needs 12.3 % more instructions per operation (1,100,000 to 1,235,300), most of
    them in check_copy (+130,000)".
    """
    counted = found.instructions
    if counted is None:
        return f"{found.workload}: {'; '.join(found.gaps) or 'instructions were not counted'}"
    amount = f"({count(counted.baseline)} to {count(counted.candidate)})"
    if counted.differs is None:
        return (
            f"{found.workload} took {_more(counted)} instructions per operation {amount}, which "
            "says little: such counts do not repeat well"
        )
    if not counted.differs:
        return (
            f"{found.workload} needs as many instructions per operation as before {amount}: what "
            "it lost it waits for, or loses in caches or to the placement of code"
        )
    return (
        f"{found.workload} needs {_more(counted)} instructions per operation {amount}"
        f"{_named(counted)}"
    )


def instructions_table(explanation: Explanation) -> Table:
    """Return the instructions per operation, one line for each workload that was counted."""
    lines = []
    for found in explanation.workloads:
        counted = found.instructions
        if counted is None:
            continue
        within = counted.repeats_within
        lines.append(
            Line(
                cells=(
                    found.workload,
                    ratio(counted.ratio),
                    count(counted.baseline),
                    count(counted.candidate),
                    "not well" if within is None else f"within {percent(100 * within)}",
                ),
                tone=_tone(counted),
            )
        )
    return Table(
        title="Instructions per operation, counted under callgrind",
        columns=(
            Column(heading="workload", meaning="Microbenchmark", numeric=False),
            Column(heading="ratio", meaning="Candidate over baseline; above 1 is more work"),
            Column(heading="baseline", meaning="Instructions of the thread that served the client"),
            Column(heading="candidate", meaning="As baseline"),
            Column(heading="repeats", meaning="How far two counts of equal software differ"),
        ),
        lines=tuple(lines),
    )


def own_table(found: WorkloadExplanation, *, most: int = 10) -> Table:
    """Return the functions whose own instructions differ most."""
    costs = found.instructions.own if found.instructions else ()
    return Table(
        title=f"{found.workload}: functions by their own instructions per operation",
        columns=(
            _FUNCTION,
            Column(heading="change", meaning="Candidate less baseline, without callees"),
            Column(heading="baseline", meaning="Without callees"),
            Column(heading="candidate", meaning="Without callees"),
        ),
        lines=tuple(
            Line(
                cells=(
                    function(cost),
                    signed(cost.change),
                    count(cost.baseline),
                    count(cost.candidate),
                )
            )
            for cost in costs[:most]
        ),
    )


def callers_table(found: WorkloadExplanation, *, most: int = 20) -> Table:
    """Return the functions that differ most with what they call, callers first."""
    costs = found.instructions.with_callees if found.instructions else ()
    return Table(
        title=f"{found.workload}: functions with what they call, callers first",
        columns=(
            _FUNCTION,
            Column(heading="change", meaning="Candidate less baseline, callees included"),
            Column(heading="baseline", meaning="Callees included"),
            Column(heading="candidate", meaning="Callees included"),
        ),
        lines=tuple(
            Line(
                cells=(
                    function(cost),
                    signed(cost.change_with_callees),
                    _known(cost.baseline_with_callees),
                    _known(cost.candidate_with_callees),
                )
            )
            for cost in costs[:most]
        ),
    )


def profile_sentence(profile: Profile) -> str:
    """Return what a flame graph was drawn from."""
    return (
        f"{profile.baseline_cpu_us_per_op:,.2f} to {profile.candidate_cpu_us_per_op:,.2f} CPU "
        f"microseconds of the server per operation while it was sampled; "
        f"{profile.baseline_samples} and {profile.candidate_samples} samples of {profile.event} in "
        f"{profile.seconds:g} s each"
    )


def count(value: float) -> str:
    """Return a number of instructions: whole from 100 on, else with one decimal."""
    return f"{value:,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:,.1f}"


def signed(value: float) -> str:
    """Return a difference of instructions with its sign."""
    return f"{value:+,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:+,.1f}"


def function(cost: FunctionCost) -> str:
    """Return a function's name, cut where a C++ signature goes on for lines."""
    name = cost.function
    return name if len(name) <= _FUNCTION_LENGTH_MAX else f"{name[: _FUNCTION_LENGTH_MAX - 1]}…"


def _known(value: float | None) -> str:
    return NOT_KNOWN if value is None else count(value)


def _more(counted: Instructions) -> str:
    share = 100 * (counted.ratio - 1)
    return f"{percent(abs(share))} {'more' if share >= 0 else 'fewer'}"


def _tone(counted: Instructions) -> str:
    if not counted.differs:
        return ""
    return "slower" if counted.ratio > 1 else "faster"


def _named(counted: Instructions) -> str:
    """Return the functions that make up the difference, as the end of a sentence."""
    change = counted.candidate - counted.baseline
    large: Sequence[FunctionCost] = [
        cost for cost in counted.own if cost.change / change >= _NAMED_SHARE
    ]
    if not large:
        return ", spread over many functions"
    named = " and ".join(f"{function(cost)} ({signed(cost.change)})" for cost in large[:_NAMED_MAX])
    most = sum(cost.change for cost in large[:_NAMED_MAX]) / change
    return f", {'most' if most > 1 / 2 else 'a part'} of them in {named}"
