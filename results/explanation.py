"""The explanation of a pair: instructions by function, and a profile, of each workload in question.

An optional part of the run document, made where somebody asked why. It holds counts and the names
of files, never verdicts. Names of functions come from the code under test: text, bounded, never
markup.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from results.values import Name, NonNegative, Part, Positive, Text

FUNCTIONS_MAX: Final = 40
WORKLOADS_MAX: Final = 200
GAPS_MAX: Final = 10

#: A file below the job's folder: no part of it begins with a dot, so it cannot lead elsewhere.
_FILE: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$"
RelativeFile = Annotated[str, StringConstraints(pattern=_FILE, max_length=200)]


class FunctionCost(Part):
    """Instructions per operation of one function on both sides.

    Counts are differences of two counts, so that noise can take one a little below zero.
    """

    function: Name
    #: Its own instructions.
    baseline: float
    candidate: float
    #: Its own and those of all that it called; None for code without a name.
    baseline_with_callees: float | None = None
    candidate_with_callees: float | None = None

    @property
    def change(self) -> float:
        """How many more of its own instructions the candidate needs."""
        return self.candidate - self.baseline

    @property
    def change_with_callees(self) -> float:
        """How many more the candidate needs with callees; its own where those are not known."""
        if self.baseline_with_callees is None or self.candidate_with_callees is None:
            return self.change
        return self.candidate_with_callees - self.baseline_with_callees


class Instructions(Part):
    """Instructions per operation of both sides, in the thread that served the client.

    Only those for its commands, where the server's functions have names.
    """

    #: By how many operations the two counts differ that were subtracted from one another.
    operations: int = Field(ge=1)
    baseline: Positive
    candidate: Positive
    #: Equal software differs by no more than this share; None where it does not repeat well enough
    #: for anybody to say so.
    repeats_within: NonNegative | None = None
    #: Functions whose own instructions differ most, the largest difference first.
    own: tuple[FunctionCost, ...] = Field(default=(), max_length=FUNCTIONS_MAX)
    #: Functions that differ most together with what they call, callers before callees.
    with_callees: tuple[FunctionCost, ...] = Field(default=(), max_length=FUNCTIONS_MAX)

    @property
    def ratio(self) -> float:
        """Candidate over baseline; above 1 is more work."""
        return self.candidate / self.baseline

    @property
    def differs(self) -> bool | None:
        """Whether the sides differ by more than equal software would; None where nobody knows."""
        if self.repeats_within is None:
            return None
        return abs(self.ratio - 1) > self.repeats_within


class Profile(Part):
    """A differential flame graph in a file, and what it was drawn from."""

    #: An SVG file, relative to the job's folder.
    file: RelativeFile
    #: What was sampled: cycles, or cpu-clock where the processor has no counters for us.
    event: Name
    #: Length of the profiled slice on each side.
    seconds: NonNegative
    baseline_samples: int = Field(ge=0)
    candidate_samples: int = Field(ge=0)
    #: CPU microseconds of the server per operation while it was profiled.
    baseline_cpu_us_per_op: NonNegative
    candidate_cpu_us_per_op: NonNegative


class WorkloadExplanation(Part):
    """What was found out about one workload."""

    workload: Name
    instructions: Instructions | None = None
    profile: Profile | None = None
    #: What this workload has no numbers of, and why.
    gaps: tuple[Text, ...] = Field(default=(), max_length=GAPS_MAX)
    seconds: NonNegative = 0


class Explanation(Part):
    """Why a candidate is slower, as far as instructions and samples tell."""

    workloads: tuple[WorkloadExplanation, ...] = Field(default=(), max_length=WORKLOADS_MAX)
    #: What the machine cannot do for any workload, and why; each reason once.
    missing: tuple[Text, ...] = Field(default=(), max_length=GAPS_MAX)
