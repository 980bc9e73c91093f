"""The run document: everything measured for one commit, or one pair, in one job.

The runner writes it, `POST /api/v1/runs` takes it, the store keeps it whole. It holds raw samples
and facts, never verdicts: those are the service's, and can be made again from the samples.

History of the format (`version`):
1   2026-11: first version.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from results.metric import CONTEXT_SWITCHES, LATENCY_P99, METRICS, SERVER_CPU, THROUGHPUT
from results.series import SeriesKey

FORMAT_VERSION: Final = 1

# Limits: a document comes from a machine that ran somebody's code, so nothing in it is unbounded.
NAME_LENGTH_MAX: Final = 200
TEXT_LENGTH_MAX: Final = 64 * 1024
STARTS_MAX: Final = 400
SLICES_MAX: Final = 2_000
PER_SECOND_MAX: Final = 7_200

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH_MAX)]
Text = Annotated[str, StringConstraints(max_length=TEXT_LENGTH_MAX)]
GitHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Outcome(StrEnum):
    """How the job ended; only `measured` carries numbers that may be judged."""

    MEASURED = "measured"
    #: The candidate did not configure, compile or install; `failure` has the tail of the log.
    BUILD_FAILED = "build-failed"
    #: The candidate installs the same content as the side it would be compared with.
    UNCHANGED = "unchanged"
    #: The server or the client failed; `failure` says where.
    FAILED = "failed"
    #: The host cannot be trusted; numbers are kept and never judged.
    UNSTABLE = "unstable"


class SideName(StrEnum):
    """Which of the two versions a start measured."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"


class SliceState(StrEnum):
    """Whether the numbers of a slice may be used."""

    OK = "ok"
    #: The host was disturbed while the slice ran.
    DISTURBED = "disturbed"
    #: The client or the server failed; the slice has no numbers.
    FAILED = "failed"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Commit(_Part):
    """A commit of the fork as git describes it."""

    sha: GitHash
    tree: GitHash
    parents: tuple[GitHash, ...] = ()
    author: Text = ""
    subject: Text = ""
    committed_at: AwareDatetime


class Failure(_Part):
    """Why a job or a slice has no numbers."""

    #: checkout, configure, build, install, dataset, start, measure, stop, host, interrupted.
    stage: Name
    message: Text
    log_tail: Text = ""


class Toolchain(_Part):
    """What built the artifact; part of the artifact's identity."""

    c_compiler: Name
    cxx_compiler: Name
    cmake: Name
    linker: Name
    digest: Name


class Artifact(_Part):
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


class Side(_Part):
    """One version under measurement."""

    commit: Commit
    artifact: Artifact | None = None


class Host(_Part):
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


class Placement(_Part):
    """Which processors server and client ran on."""

    #: shared-core, disjoint or unpinned.
    mode: Name
    server_cpus: tuple[int, ...] = ()
    client_cpus: tuple[int, ...] = ()


class Dataset(_Part):
    """The tables a start begins from."""

    name: Name
    digest: Name
    engine_format: Name
    tables: int = Field(ge=0)
    rows_per_table: int = Field(ge=0)


class Latency(_Part):
    """Latency of one slice as the client saw it, in milliseconds."""

    average: NonNegative
    minimum: NonNegative
    maximum: NonNegative
    p50: NonNegative
    p95: NonNegative
    p99: NonNegative


class Counters(_Part):
    """What the slice cost: the server's own counters, and the whole machine's and device's."""

    server_cpu_us: NonNegative
    voluntary_switches: NonNegative
    involuntary_switches: NonNegative
    server_read_bytes: NonNegative
    server_write_bytes: NonNegative
    #: Busy share of the whole machine in percent (user + system), as vmstat prints it.
    machine_cpu_percent: NonNegative
    machine_switches: NonNegative
    machine_steal_percent: NonNegative
    device_reads: NonNegative
    device_read_kib: NonNegative
    device_write_kib: NonNegative


class Slice(_Part):
    """A few seconds of one workload inside a start."""

    workload: Name
    side: SideName
    #: Position in the start; slices of a pair alternate by it.
    sequence: int = Field(ge=0)
    started_at: AwareDatetime
    seconds: NonNegative
    operations: int = Field(ge=0)
    throughput_ops_s: NonNegative
    #: Throughput of each second, where the client reports it.
    per_second_ops_s: tuple[NonNegative, ...] = Field(default=(), max_length=PER_SECOND_MAX)
    latency_ms: Latency | None = None
    counters: Counters | None = None
    state: SliceState = SliceState.OK
    #: Why the state is not ok.
    reason: Text = ""

    def value(self, metric: str) -> float | None:
        """Return the sample of `metric`, or None where this slice has none or is not ok."""
        if self.state is not SliceState.OK or self.operations == 0:
            return None
        if metric == THROUGHPUT.name:
            return self.throughput_ops_s
        if metric == LATENCY_P99.name:
            return self.latency_ms.p99 if self.latency_ms else None
        if self.counters is None:
            return None
        if metric == SERVER_CPU.name:
            return self.counters.server_cpu_us / self.operations
        if metric == CONTEXT_SWITCHES.name:
            counters = self.counters
            return (counters.voluntary_switches + counters.involuntary_switches) / self.operations
        raise KeyError(metric)


class Start(_Part):
    """One server process per side, on a freshly restored dataset: the unit of replication."""

    index: int = Field(ge=0)
    started_at: AwareDatetime
    seconds: NonNegative
    #: Seconds of this start spent inside measured slices.
    measured_seconds: NonNegative
    slices: tuple[Slice, ...] = Field(default=(), max_length=SLICES_MAX)


class RunDocument(_Part):
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
    #: Wall seconds by stage: checkout, build, dataset, measure, other.
    stage_seconds: dict[Name, NonNegative] = Field(default_factory=dict)
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
        """Return the workloads in the order they were first measured."""
        return list(
            dict.fromkeys(piece.workload for start in self.starts for piece in start.slices)
        )

    def samples(
        self, workload: str, metric: str, side: SideName = SideName.CANDIDATE
    ) -> list[list[float]]:
        """Return samples as starts x slices, ragged; a missing sample is left out.

        Starts without any usable slice are kept as empty lists, so that the index of a start is
        the same on both sides of a pair.
        """
        if metric not in METRICS:
            raise KeyError(f"unknown metric {metric!r}; known: {', '.join(METRICS)}")
        rows: list[list[float]] = []
        for start in self.starts:
            values = (
                piece.value(metric)
                for piece in start.slices
                if piece.workload == workload and piece.side is side
            )
            rows.append([value for value in values if value is not None])
        return rows

    def series(self, workload: str, metric: str) -> SeriesKey:
        """Return the series that samples of this run belong to."""
        dataset = f"{self.dataset.name}:{self.dataset.digest[:12]}" if self.dataset else "none"
        return SeriesKey(
            fork=self.fork,
            branch=self.branch,
            host_class=self.host.host_class,
            variant=self.variant,
            config=self.config,
            workload=workload,
            metric=metric,
            dataset=dataset,
            placement=self.placement.mode,
        )


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the run document, as published in docs/run-document.schema.json."""
    return RunDocument.model_json_schema()
