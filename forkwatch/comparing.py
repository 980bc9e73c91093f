"""Comparing two commits, or two builds, on this machine without the service: `forkwatch compare`.

Builds both, measures them in alternation and judges the pair with the same code as the service.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from detectors.pooling import GATE_SHARE, WORKLOADS_ADVISED, paired_differences, pool
from detectors.verdict import Decision, decide
from forkwatch.subjects import name_of, subject_of
from reports.rows import rows_of_pair
from reports.sentence import outcome_sentence, sentence
from results.atomic import write_atomically
from results.document import Outcome
from results.job import ORDER_FILE, JobOrder
from results.metric import THROUGHPUT
from results.slice import SideName
from runner.deciding import ALPHA, Question, look_at
from runner.job import run_job
from runner.job_folder import locked
from workloads.plan import PLAN_FILE, parse_plan, read_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from detectors.verdict import Verdict
    from reports.rows import Row
    from results.document import RunDocument
    from runner.progress import Progress
    from runner.settings import Home, RunnerSettings
    from workloads.plan import Gates, Plan

_CHANGES: Final = (Decision.REGRESSION, Decision.IMPROVEMENT)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A measured pair with what was found."""

    document: RunDocument
    verdicts: dict[str, Verdict]
    rows: Sequence[Row]
    sentence: str
    #: On all workloads together; None where there are too few for a suite.
    suite: Verdict | None = None


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

    Baseline and candidate are named as `forkwatch.subjects` says: a commit, or `build:NAME`. Equal
    questions have equal orders, so that asking again after Ctrl-C goes on where it was.

    Raises:
        OperatorError, PlanError, DoorError: The commits, the builds or the plan are not there or
            wrong.
    """
    path = plan_path or repository / PLAN_FILE
    plan = read_plan(path)
    text = path.read_text()
    usual = plan.suite(suite).build
    asked = {SideName.CANDIDATE: candidate, SideName.BASELINE: baseline}
    sides = {
        side: subject_of(name, repository=repository, plan=plan, usual=usual)
        for side, name in asked.items()
        if name
    }
    shas = {
        side.value: sides[side].commit.sha if side in sides else None
        for side in (SideName.CANDIDATE, SideName.BASELINE)
    }
    variants = {side: subject.build for side, subject in sides.items() if subject.build != usual}
    chosen = plan.workloads(suite, workloads) if workloads else ()
    question = (text, shas, suite, host_class, chosen, starts, seed)
    # A job without builds of its own keeps the name it always had.
    name = _own_name((*question, sorted(variants.items())) if variants else question)
    order = JobOrder(
        job=name,
        run=name,
        repository=repository,
        plan=text,
        branch=plan.fork.branch,
        suite=suite,
        host_class=host_class,
        workloads=chosen,
        starts=starts,
        seed=seed,
        variants=variants,
        **shas,
    )
    return order, plan


def _own_name(question: tuple[object, ...]) -> str:
    return f"own-{hashlib.sha256(repr(question).encode()).hexdigest()[:24]}"


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
    plan = parse_plan(plan_text)
    gates = plan.gates
    measured = document.outcome is Outcome.MEASURED
    verdicts = judge_pair(document, plan) if measured and document.paired else {}
    at = name_of(document)
    suite = judge_suite(document, gates) if verdicts else None
    return Comparison(
        document=document,
        verdicts=verdicts,
        rows=rows_of_pair(document, verdicts),
        sentence=_sentence(verdicts, suite, at=at)
        if verdicts
        else outcome_sentence(document.outcome, at=at, failure=document.failure),
        suite=suite,
    )


def judge_pair(document: RunDocument, plan: Plan) -> dict[str, Verdict]:
    """Return the verdict on the throughput of each workload of a paired run.

    It is the one that the runner saw when it stopped: the same look at the same starts.
    """
    starts_max = document.starts_max or plan.suite(document.suite).confirm_starts
    question = Question(gates=plan.gates, alphas={}, starts_max=starts_max, budget_s=math.inf)
    verdicts = {}
    for workload in document.workloads():
        seen = look_at(document.starts, workload, question)
        if seen is not None:
            verdicts[workload] = decide(
                seen.change,
                direction=THROUGHPUT.direction,
                gate=plan.gates.gate(workload),
                alpha=ALPHA,
            )
    return verdicts


def judge_suite(document: RunDocument, gates: Gates) -> Verdict | None:
    """Return the verdict on the throughput of all workloads together, or None with too few."""
    workloads = document.workloads()
    if len(workloads) < WORKLOADS_ADVISED:
        return None
    sides = (SideName.BASELINE, SideName.CANDIDATE)
    differences = paired_differences(
        [
            (
                document.samples(workload, THROUGHPUT.name, sides[0]),
                document.samples(workload, THROUGHPUT.name, sides[1]),
            )
            for workload in workloads
        ]
    )
    if not np.any(np.isfinite(differences)):
        return None
    return decide(
        pool(differences),
        direction=THROUGHPUT.direction,
        gate=GATE_SHARE * gates.default,
        alpha=ALPHA,
    )


def _sentence(verdicts: Mapping[str, Verdict], suite: Verdict | None, *, at: str) -> str:
    """Return what the terminal says: the suite's shift where no workload's verdict tells of it."""
    changed = any(verdict.decision in _CHANGES for verdict in verdicts.values())
    if changed and len(verdicts) > 1:
        # Nothing is corrected for here, so it is said.
        return (
            f"{sentence(verdicts, at=at)}; each of {len(verdicts)} workloads judged at "
            f"p <= {ALPHA:g}"
        )
    if suite is None or suite.decision not in _CHANGES or changed:
        return sentence(verdicts, at=at)
    return sentence({"the suite as a whole": suite, **verdicts}, at=at)
