"""Run documents told as stories: `a_run().on(SHA).with_samples("scan", [[10.0, 10.1]]).build()`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from results.document import (
    Artifact,
    Commit,
    Dataset,
    Failure,
    Host,
    Outcome,
    Placement,
    RunDocument,
    Side,
    Start,
    Toolchain,
)
from results.slice import Counters, Latency, SideName, Slice
from results.sources import told

AT = datetime(2026, 11, 3, 6, 30, tzinfo=UTC)
TREE = "7" * 40


def sha(digit: str) -> str:
    """Return a commit hash made of one digit, so that tests can be read."""
    return digit * 40


@dataclass(frozen=True)
class RunStory:
    """What a run document is about, and the document."""

    commit: str = sha("b")
    subject: str = "Check the record format in row_search_mvcc"
    author: str = "Ada Lovelace"
    baseline: str | None = None
    fork: str = "demo"
    branch: str = "main"
    id: str = "run-1"
    job: str = "job-1"
    outcome: Outcome = Outcome.MEASURED
    failure: Failure | None = None
    #: (workload, side) -> starts x slices of throughput.
    samples: tuple[tuple[str, SideName, tuple[tuple[float, ...], ...]], ...] = ()
    server_cpu_us: float = 12.0
    host_warnings: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()

    def on(self, commit: str, *, subject: str | None = None) -> RunStory:
        """Measure this commit."""
        return replace(self, commit=commit, subject=subject or self.subject)

    def against(self, baseline: str) -> RunStory:
        """Measure in alternation with this baseline."""
        return replace(self, baseline=baseline)

    def called(self, run: str, *, job: str | None = None) -> RunStory:
        """Give the run and its job their names."""
        return replace(self, id=run, job=job or f"job-of-{run}")

    def of(self, fork: str, *, branch: str = "main") -> RunStory:
        """Belong to this fork."""
        return replace(self, fork=fork, branch=branch)

    def with_samples(
        self, workload: str, starts: list[list[float]], *, side: SideName = SideName.CANDIDATE
    ) -> RunStory:
        """Have these throughputs (operations per second), as starts x slices."""
        rows = tuple(tuple(start) for start in starts)
        return replace(self, samples=(*self.samples, (workload, side, rows)))

    def that(self, outcome: Outcome, *, stage: str, message: str, log: str = "") -> RunStory:
        """End without usable numbers."""
        failure = Failure(stage=stage, message=message, log_tail=log)
        return replace(self, outcome=outcome, failure=failure)

    def telling(self, *names: str) -> RunStory:
        """Tell that neither side's server is made of these source files."""
        return replace(self, outside=names)

    def build(self) -> RunDocument:
        """Return the document."""
        return RunDocument(
            id=self.id,
            job=self.job,
            fork=self.fork,
            branch=self.branch,
            suite="commit",
            config="default",
            variant="rel",
            tool_version="0.1.0",
            created_at=AT,
            finished_at=AT + timedelta(minutes=4),
            seed=7,
            threads=1,
            outcome=self.outcome,
            failure=self.failure,
            host=_host(self.host_warnings),
            placement=Placement(mode="shared-core", server_cpus=(1,), client_cpus=(1,)),
            dataset=Dataset(
                name="small", digest="d" * 64, engine_format="innodb", tables=1, rows_per_table=1000
            ),
            candidate=_side(self.commit, self.subject, self.author),
            baseline=_side(self.baseline, "Before", self.author) if self.baseline else None,
            starts=self._starts(),
            # No fewer than a look needs; a run of one start was stopped by its budget.
            starts_max=max(2, len(self._starts())) if self.baseline else None,
            stage_seconds={"build": 61.5, "measure": 120.0},
            outside=told(self.outside),
        )

    def _starts(self) -> tuple[Start, ...]:
        count = max((len(rows) for _, _, rows in self.samples), default=0)
        return tuple(
            Start(
                index=index,
                started_at=AT,
                seconds=30.0,
                measured_seconds=20.0,
                slices=tuple(self._slices(index)),
            )
            for index in range(count)
        )

    def _slices(self, index: int) -> list[Slice]:
        values = [
            (workload, side, value)
            for workload, side, rows in self.samples
            for value in (rows[index] if index < len(rows) else ())
        ]
        return [
            _slice(workload, side, value, sequence, self.server_cpu_us)
            for sequence, (workload, side, value) in enumerate(values)
        ]


def a_run() -> RunStory:
    """Begin a story."""
    return RunStory()


def _slice(
    workload: str, side: SideName, throughput: float, sequence: int, server_cpu_us: float
) -> Slice:
    """Return ten seconds at this throughput on a machine that is half busy."""
    operations = round(throughput * 10)
    return Slice(
        workload=workload,
        side=side,
        sequence=sequence,
        started_at=AT,
        seconds=10.0,
        operations=operations,
        throughput_ops_s=throughput,
        latency_ms=Latency(average=1, minimum=0.5, maximum=9, p50=1, p95=2, p99=3),
        counters=Counters(
            server_cpu_us=server_cpu_us * operations,
            voluntary_switches=2.0 * operations,
            involuntary_switches=0,
            server_read_bytes=0,
            server_write_bytes=0,
            machine_cpu_percent=50.0,
            machine_switches=2.5 * operations,
            machine_steal_percent=0,
            device_reads=0,
            device_read_kib=0,
            device_write_kib=0.25 * operations if side is SideName.CANDIDATE else 0,
        ),
    )


def _side(commit: str, subject: str, author: str) -> Side:
    return Side(
        commit=Commit(sha=commit, tree=TREE, author=author, subject=subject, committed_at=AT),
        artifact=Artifact(
            id=f"artifact-{commit[:8]}",
            variant="rel",
            tree=TREE,
            toolchain=Toolchain(
                c_compiler="gcc 12.2.0",
                cxx_compiler="g++ 12.2.0",
                cmake="3.25.1",
                linker="default",
                digest="t" * 16,
            ),
            content_hash=f"content-{commit[:8]}",
            installed_bytes=52_428_800,
            build_seconds=61.5,
            cached=False,
            server_version="10.11.19-MariaDB",
        ),
    )


def _host(warnings: tuple[str, ...]) -> Host:
    values: dict[str, Any] = {
        "name": "bench-1",
        "host_class": "small",
        "cpu_model": "Xeon 2.3 GHz",
        "logical_cpus": 2,
        "memory_bytes": 8 * 2**30,
        "kernel": "6.1.0",
        "os": "Debian 12",
        "virtualised": True,
        "settings": {"thp": "madvise", "aslr": "2"},
        "warnings": warnings,
    }
    return Host(**values)
