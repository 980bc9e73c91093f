"""The run document: everything measured for one commit, or one pair, in one job.

The runner writes it, `POST /api/v1/runs` takes it, the store keeps it whole. It holds raw samples
and facts, never verdicts: those are the service's, and can be made again from the samples.

History of the format (`version`):
1   2026-11: first version.
    2026-11: `preparations` of a start, `stopping`; all optional.
    2026-11: `fingerprint` and `canary` of the host; both optional.
    2026-11: `variant` and `config` of a side; both optional.
    2026-11: more counters of a slice, `engine` and `hardware`; all optional.
    2026-11: `explanation`; optional.
    2026-11: `turns` of a slice; `maximum` of its latency may be null.
    2026-11: `dataset` of a side; optional.
    2026-11: `load` of a side, `servers` of a start, `exact`, `reported` of a slice; all optional.
    2026-11: `cause` of a failure, `outside`; both optional. The outcome `built`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from results.exact import ExactCounters  # noqa: TC001  pydantic reads it at run time
from results.explanation import Explanation  # noqa: TC001  pydantic reads it at run time
from results.metric import METRICS
from results.series import SeriesKey
from results.server_facts import SERVERS_MAX, Load, ServerLife
from results.slice import SideName, Slice
from results.sources import OutsideSources  # noqa: TC001  pydantic reads it at run time
from results.values import NAME_LENGTH_MAX, GitHash, Name, NonNegative, Part, Positive, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT_VERSION: Final = 1

# Limits: a document comes from a machine that ran somebody's code, so nothing in it is unbounded.
STARTS_MAX: Final = 400
SLICES_MAX: Final = 2_000
CANARY_MAX: Final = 20


class Outcome(StrEnum):
    """How the job ended; only `measured` carries numbers that may be judged."""

    MEASURED = "measured"
    #: The candidate did not configure, compile or install; `failure` has the tail of the log.
    BUILD_FAILED = "build-failed"
    #: The candidate installs the same content as the side it would be compared with.
    UNCHANGED = "unchanged"
    #: The server or the client failed, or the machine ended a build; `failure` says where.
    FAILED = "failed"
    #: The host cannot be trusted; numbers are kept and never judged.
    UNSTABLE = "unstable"
    #: It was only to be built, and is there; nothing was to be measured.
    BUILT = "built"


class Commit(Part):
    """A commit of the fork as git describes it."""

    sha: GitHash
    tree: GitHash
    parents: tuple[GitHash, ...] = ()
    author: Text = ""
    subject: Text = ""
    committed_at: AwareDatetime


class Cause(StrEnum):
    """Whose fault it is that a build came to nothing."""

    #: It does not configure, compile or install: building it again would end in the same way.
    COMMIT = "commit"
    #: The machine killed it, or had no memory or no space for it.
    HOST = "host"


class Failure(Part):
    """Why a job or a slice has no numbers."""

    #: checkout, configure, build, install, dataset, start, measure, stop, host, interrupted.
    stage: Name
    message: Text
    log_tail: Text = ""
    #: Set for builds, where it is known.
    cause: Cause | None = None


class Toolchain(Part):
    """What built the artifact; part of the artifact's identity."""

    c_compiler: Name
    cxx_compiler: Name
    cmake: Name
    linker: Name
    digest: Name


class Artifact(Part):
    """What one commit built as one variant installs."""

    #: Digest of (tree hash, variant, toolchain).
    id: Name
    variant: Name
    tree: GitHash
    toolchain: Toolchain
    #: Digest over the installed files; equal digests are the same software.
    content_hash: Name
    installed_bytes: int = Field(ge=0)
    build_seconds: NonNegative
    #: True when the artifact was found ready made.
    cached: bool
    server_version: Text = ""


class Dataset(Part):
    """The tables a start begins from."""

    name: Name
    digest: Name
    engine_format: Name
    tables: int = Field(ge=0)
    rows_per_table: int = Field(ge=0)


class Side(Part):
    """One version under measurement."""

    commit: Commit
    artifact: Artifact | None = None
    #: As what it was built, and under which server config it ran; the run's where not set.
    variant: Name | None = None
    config: Name | None = None
    #: What it began from; the run's where not set.
    dataset: Dataset | None = None
    #: How that was loaded, and by whom.
    load: Load | None = None


class CanaryReading(Part):
    """A small fixed load, measured beside the job and judged by the host's own past."""

    #: before or after: the job lies between.
    moment: Name
    #: cpu, memory or disk.
    name: Name
    unit: Name
    value: Positive
    #: Against the level of the host's history; None where that is too short.
    change_percent: Annotated[float, Field(allow_inf_nan=False)] | None = None
    #: Runs of the history that this was compared with.
    history: int = Field(default=0, ge=0)
    #: The host was not what it usually is.
    suspicious: bool = False


class Host(Part):
    """The machine, as far as it explains results."""

    name: Name
    host_class: Name
    cpu_model: Text
    logical_cpus: int = Field(ge=1)
    memory_bytes: int = Field(ge=0)
    kernel: Text
    os: Text
    virtualised: bool
    #: Knobs and readings such as governor, thp, aslr; names as in `forkwatch doctor`.
    settings: dict[Name, Text] = Field(default_factory=dict)
    warnings: tuple[Text, ...] = ()
    #: Digest over what makes this host comparable with its own past; empty where not taken.
    fingerprint: Annotated[str, StringConstraints(max_length=NAME_LENGTH_MAX)] = ""
    canary: tuple[CanaryReading, ...] = Field(default=(), max_length=CANARY_MAX)


class Placement(Part):
    """Which processors server and client ran on."""

    #: shared-core, disjoint, disjoint-awake or unpinned.
    mode: Name
    server_cpus: tuple[int, ...] = ()
    client_cpus: tuple[int, ...] = ()


class Preparation(Part):
    """What was done before the slices of one workload on one side."""

    workload: Name
    side: SideName
    #: Seconds until no background work was left, and what was left when time ran out.
    settle_seconds: NonNegative
    left: Text = ""
    warm_up_seconds: NonNegative = 0
    #: Whether the throughput had come to rest before the first slice.
    steady: bool = True


class Stopping(Part):
    """After how many starts a workload of a pair was left alone, and why."""

    workload: Name
    starts: int = Field(ge=0)
    #: different, equivalent, exhausted or budget.
    reason: Name


class Start(Part):
    """One server process per side, on a freshly restored dataset: the unit of replication."""

    index: int = Field(ge=0)
    started_at: AwareDatetime
    seconds: NonNegative
    #: Seconds of this start spent inside measured slices.
    measured_seconds: NonNegative
    slices: tuple[Slice, ...] = Field(default=(), max_length=SLICES_MAX)
    preparations: tuple[Preparation, ...] = Field(default=(), max_length=SLICES_MAX)
    #: Of both sides, by leg.
    servers: tuple[ServerLife, ...] = Field(default=(), max_length=SERVERS_MAX)


class RunDocument(Part):
    """Everything measured for one commit (or one pair) in one job."""

    format: Literal["forkwatch.run"] = "forkwatch.run"
    version: Literal[1] = FORMAT_VERSION
    #: Chosen before the job begins, so that submitting twice stores once.
    id: Name
    job: Name
    fork: Name
    branch: Name
    suite: Name
    config: Name
    variant: Name
    tool_version: Name
    created_at: AwareDatetime
    finished_at: AwareDatetime
    #: Seed of everything random in the job: slice order and the client's keys.
    seed: int = Field(ge=0)
    threads: int = Field(ge=1)
    outcome: Outcome
    failure: Failure | None = None
    host: Host
    placement: Placement
    dataset: Dataset | None = None
    candidate: Side
    #: Set for a paired job only.
    baseline: Side | None = None
    starts: tuple[Start, ...] = Field(default=(), max_length=STARTS_MAX)
    #: For a paired job: the most starts it could have had, by which every look was judged.
    starts_max: int | None = Field(default=None, ge=2)
    #: Where each workload of a paired job stood in the end.
    stopping: tuple[Stopping, ...] = Field(default=(), max_length=SLICES_MAX)
    #: Wall seconds by stage: checkout, build, dataset, measure, other.
    stage_seconds: dict[Name, NonNegative] = Field(default_factory=dict)
    #: Why the candidate is slower, where somebody asked for it.
    explanation: Explanation | None = None
    #: How the work of fixed queries differs, where the suite names some.
    exact: ExactCounters | None = None
    #: What neither side's server is made of, where somebody asked and the builds told.
    outside: OutsideSources | None = None
    warnings: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> RunDocument:
        if self.outcome is Outcome.MEASURED and not self.starts:
            raise ValueError("a measured run has at least one start")
        if self.outcome in {Outcome.BUILD_FAILED, Outcome.FAILED} and self.failure is None:
            raise ValueError(f"outcome {self.outcome} needs a failure that says why")
        sides = {piece.side for start in self.starts for piece in start.slices}
        if SideName.BASELINE in sides and self.baseline is None:
            raise ValueError("slices of a baseline need the baseline's commit")
        return self

    @property
    def paired(self) -> bool:
        """Whether a baseline was measured in alternation with the candidate."""
        return self.baseline is not None

    def workloads(self) -> list[str]:
        """Return the workloads that are reported, in the order they were first measured."""
        return list(
            dict.fromkeys(
                piece.workload for start in self.starts for piece in start.slices if piece.reported
            )
        )

    def samples(
        self, workload: str, metric: str, side: SideName = SideName.CANDIDATE
    ) -> list[list[float]]:
        """Return the samples of one side as `samples_of` does."""
        return samples_of(self.starts, workload, metric, side)

    def series(self, workload: str, metric: str, side: SideName = SideName.CANDIDATE) -> SeriesKey:
        """Return the series that samples of one side of this run belong to."""
        own = self.baseline if side is SideName.BASELINE else self.candidate
        began_from = (own and own.dataset) or self.dataset
        dataset = f"{began_from.name}:{began_from.digest[:12]}" if began_from else "none"
        return SeriesKey(
            fork=self.fork,
            branch=self.branch,
            host_class=self.host.host_class,
            variant=(own and own.variant) or self.variant,
            config=(own and own.config) or self.config,
            workload=workload,
            metric=metric,
            dataset=dataset,
            placement=self.placement.mode,
        )


def samples_of(
    starts: Sequence[Start], workload: str, metric: str, side: SideName
) -> list[list[float]]:
    """Return samples as starts x slices, ragged; a missing sample is left out.

    Starts without any usable slice are kept as empty lists, so that the index of a start is the
    same on both sides of a pair. Starts that did not try to measure the workload, because it was
    decided before, are left out.
    """
    if metric not in METRICS:
        raise KeyError(f"unknown metric {metric!r}; known: {', '.join(METRICS)}")
    rows: list[list[float]] = []
    for start in starts:
        pieces = [piece for piece in start.slices if piece.workload == workload]
        if not pieces:
            continue
        values = (piece.value(metric) for piece in pieces if piece.side is side)
        rows.append([value for value in values if value is not None])
    return rows


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the run document, as published in docs/run-document.schema.json."""
    return RunDocument.model_json_schema()
