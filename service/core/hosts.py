"""The nouns of a host's noise as frozen values: the machine, what a run showed, what many showed.

The store returns these, the flow makes them from run documents, the API shows them. Standard
deviations are of natural logs, so 0.01 is about one percent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  the API makes its schema from these classes
from typing import Annotated

from pydantic import WithJsonSchema

from results.document import Outcome  # noqa: TC001  as datetime


@dataclass(frozen=True, kw_only=True)
class Host:
    """A machine as its newest run described it, and what became of all its runs."""

    host_class: str
    name: str
    cpu_model: str
    logical_cpus: int
    memory_bytes: int
    kernel: str
    os: str
    virtualised: bool
    #: Digest over what makes it comparable with its own past; empty where it was not taken.
    fingerprint: str
    #: When that fingerprint was first seen: what is older says nothing about the host as it is.
    fingerprint_since: datetime
    first_seen_at: datetime
    last_seen_at: datetime
    #: Id of its newest run, of a commit or of an A/A check; None where that was not kept yet.
    last_run: str | None
    #: Runs by how they ended.
    runs: dict[Outcome, int]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A standard deviation of logs with the degrees of freedom behind it; NaN where none."""

    #: JSON has no such number: there it is null.
    sd: Annotated[float, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]})]
    df: int

    @property
    def known(self) -> bool:
        """Whether there is anything behind it."""
        return self.df > 0


#: Nothing was replicated.
UNKNOWN = Spread(sd=math.nan, df=0)


@dataclass(frozen=True, kw_only=True)
class WorkloadNoise:
    """How much one workload scattered in one run, whatever its level and the commit."""

    workload: str
    #: Starts that measured it.
    starts: int
    #: Slices of all sides, those measured again included, and how many of them were disturbed.
    slices: int
    disturbed: int
    #: Largest share of the machine that other guests had during a slice, in percent.
    steal_percent_max: float
    #: Between starts of one side, and between slices of one start.
    between_starts: Spread
    between_slices: Spread
    #: Between starts, of the log ratio of a pair: what its verdict rests on.
    between_pairs: Spread


@dataclass(frozen=True, kw_only=True)
class NoiseRecord:
    """The noise of one workload in one stored run."""

    run: str
    at: datetime
    fingerprint: str
    noise: WorkloadNoise


@dataclass(frozen=True, kw_only=True)
class CanaryRecord:
    """One reading of the canary in one stored run."""

    run: str
    at: datetime
    fingerprint: str
    #: before or after the measuring.
    moment: str
    name: str
    unit: str
    value: float
    #: Against the host's own past as its runner keeps it; None where that was too short.
    change_percent: float | None
    suspicious: bool


@dataclass(frozen=True, kw_only=True)
class UsualNoise:
    """What one workload usually shows on a host, over the runs of its present fingerprint."""

    workload: str
    runs: int
    #: In percent; None where nothing was replicated.
    between_starts_percent: float | None
    between_slices_percent: float | None
    between_pairs_percent: float | None
    disturbed_percent: float


@dataclass(frozen=True, kw_only=True)
class HostNoise:
    """A host with its usual noise and the history behind it, oldest first."""

    host: Host
    usual: list[UsualNoise]
    history: list[NoiseRecord]
    canary: list[CanaryRecord]
