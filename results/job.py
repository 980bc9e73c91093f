"""The job order: what the service asks a runner to measure.

Written as `job.json` into the folder of a job on this machine, or handed over by a CI system. It
carries the plan as text, so that code under test cannot loosen its own gate, and the credential
that lets the runner submit this one job's run and nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, field_serializer

from results.slice import SideName
from results.values import GitHash, Name

ORDER_FILE: Final = "job.json"
#: Written by the runner into the job's folder when the job has ended, before it is submitted.
DOCUMENT_FILE: Final = "run.json"
#: Held locked (flock) by the runner for as long as it works on the job.
LOCK_FILE: Final = "lock"


class JobOrder(BaseModel):
    """One job: measure a commit, or a pair of commits in alternation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["forkwatch.job"] = "forkwatch.job"
    version: Literal[1] = 1
    job: Name
    #: Identifier that the run document will have.
    run: Name
    #: A local git repository holding both commits.
    repository: Path
    #: Content of the plan from the fork's default branch.
    plan: Annotated[str, StringConstraints(max_length=256 * 1024)]
    branch: Name
    suite: Name
    host_class: Name
    candidate: GitHash
    #: Set for a paired job: measured in alternation with the candidate.
    baseline: GitHash | None = None
    #: Commit whose artifact, when it has the same content, makes measuring pointless.
    unchanged_from: GitHash | None = None
    #: False for code of strangers: what it builds may use shared caches and not fill them.
    trusted: bool = True
    #: Build variant and server config by side, for a matrix; the suite's where not set.
    variants: dict[SideName, Name] = Field(default_factory=dict)
    configs: dict[SideName, Name] = Field(default_factory=dict)
    #: Workloads to measure; empty means all of the suite.
    workloads: tuple[Name, ...] = ()
    #: Level of significance by workload at which a pair is looked at; the runner's where not set.
    alphas: dict[Name, Annotated[float, Field(gt=0, lt=1)]] = Field(default_factory=dict)
    #: Starts per side, for a pair the most there may be; the suite's where not set.
    starts: Annotated[int, Field(ge=2, le=100)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    #: Minutes for explaining the regressions of a pair once it is measured; 0 explains nothing.
    explain_minutes: Annotated[float, Field(ge=0, le=1440)] = 0
    #: Whether the document of a pair tells which source files neither server is made of.
    tell_sources: bool = False
    #: Whether the commits are built, given to the fleet where it shares anything, and not measured.
    build_only: bool = False
    #: Where the run document goes; None leaves it in the job's folder.
    submit_to: Name | None = None
    credential: SecretStr | None = None

    @field_serializer("credential", when_used="json")
    def _reveal(self, credential: SecretStr | None) -> str | None:
        """Write the credential out: the order is the one place it travels in."""
        return credential.get_secret_value() if credential else None
