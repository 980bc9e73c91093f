"""Comparing two commits on this machine, without the service: the work of `forkwatch compare`.

Builds both, measures them in alternation and judges the pair with the same code as the service.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from detectors.pairwise import compare
from detectors.verdict import decide
from reports.rows import rows_of_pair
from reports.sentence import outcome_sentence, sentence
from results.document import Outcome, SideName
from results.job import ORDER_FILE, JobOrder
from results.metric import THROUGHPUT
from runner import checkout
from runner.job import locked, run_job, write_atomically
from workloads.plan import PLAN_FILE, parse_plan, read_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from detectors.verdict import Verdict
    from reports.rows import Row
    from results.document import RunDocument
    from runner.progress import Progress
    from runner.settings import Home, RunnerSettings
    from workloads.plan import Gates, Plan

#: A person asked about these two commits, so one workload in a hundred may be called changed by
#: chance; the service, which asks about every commit, is stricter.
ALPHA: Final = 0.01


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A measured pair with what was found."""

    document: RunDocument
    verdicts: dict[str, Verdict]
    rows: Sequence[Row]
    sentence: str


def order_for(
    *,
    repository: Path,
    plan_path: Path | None,
    baseline: str | None,
    candidate: str,
    suite: str,
    host_class: str,
    workloads: Sequence[str],
    starts: int | None,
    seed: int,
) -> tuple[JobOrder, Plan]:
    """Return the order for a job of our own, and its plan.

    Equal questions have equal orders, so that asking again after Ctrl-C goes on where it was.

    Raises:
        OperatorError, PlanError: The commits or the plan are not there or wrong.
    """
    path = plan_path or repository / PLAN_FILE
    plan = read_plan(path)
    text = path.read_text()
    shas = {
        "candidate": checkout.resolve(repository, candidate).sha,
        "baseline": checkout.resolve(repository, baseline).sha if baseline else None,
    }
    question = (text, shas, suite, host_class, tuple(workloads), starts, seed)
    name = f"own-{hashlib.sha256(repr(question).encode()).hexdigest()[:24]}"
    order = JobOrder(
        job=name,
        run=name,
        repository=repository,
        plan=text,
        branch=plan.fork.branch,
        suite=suite,
        host_class=host_class,
        workloads=tuple(workloads),
        starts=starts,
        seed=seed,
        **shas,
    )
    return order, plan


def do(
    order: JobOrder, *, home: Home, settings: RunnerSettings, progress: Progress
) -> tuple[RunDocument, Path]:
    """Do a job of our own and return its document and its folder."""
    folder = home.folder("jobs", order.job)
    write_atomically(folder / ORDER_FILE, order.model_dump_json())
    with locked(folder):
        document = run_job(order, folder, home=home, settings=settings, progress=progress)
    return document, folder


def conclude(document: RunDocument, plan_text: str) -> Comparison:
    """Judge a pair; a single run, or a pair that was not measured, has no verdicts."""
    gates = parse_plan(plan_text).gates
    measured = document.outcome is Outcome.MEASURED
    verdicts = judge_pair(document, gates) if measured and document.paired else {}
    sha = document.candidate.commit.sha
    return Comparison(
        document=document,
        verdicts=verdicts,
        rows=rows_of_pair(document, verdicts),
        sentence=sentence(verdicts, at=sha)
        if verdicts
        else outcome_sentence(document.outcome, at=sha, failure=document.failure),
    )


def judge_pair(document: RunDocument, gates: Gates) -> dict[str, Verdict]:
    """Return the verdict on the throughput of each workload of a paired run."""
    verdicts = {}
    for workload in document.workloads():
        change = compare(
            document.samples(workload, THROUGHPUT.name, SideName.BASELINE),
            document.samples(workload, THROUGHPUT.name, SideName.CANDIDATE),
        )
        verdicts[workload] = decide(
            change,
            direction=THROUGHPUT.direction,
            gate=gates.gate(workload),
            alpha=ALPHA,
        )
    return verdicts
