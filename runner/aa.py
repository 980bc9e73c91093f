"""The A/A check: one artifact measured against a copy of itself, by the ordinary paired job.

A plan and a commit come in; a judged check goes out and into the host's own history. Nothing is
special about the job, so what it says of equals is what others would be told of equals.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from results.atomic import write_atomically
from results.document import Outcome
from results.job import ORDER_FILE, JobOrder
from results.slice import SideName
from runner import checkout, clock, prebuilt
from runner.aa_results import history, past_of, results_of
from runner.build import Builder
from runner.job import run_job
from runner.job_folder import locked
from runner.twins import copy_artifact
from workloads.twin_plan import twin_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from results.document import Commit, RunDocument
    from runner.aa_results import AaResult, Past
    from runner.progress import Progress
    from runner.settings import Home, RunnerSettings
    from workloads.twin_plan import TwinPlan

_SEEDS: Final = 2**31


@dataclass(frozen=True, kw_only=True)
class AaQuestion:
    """What is to be checked."""

    repository: Path
    revision: str
    plan_text: str
    suite: str
    #: All of the suite's where empty.
    workloads: tuple[str, ...]
    #: Starts of each side; what a pair of the suite has at most where None.
    starts: int | None
    host_class: str
    #: Build the commit a second time instead of copying its artifact.
    build_twice: bool = False


@dataclass(frozen=True, kw_only=True)
class AaCheck:
    """A check that was made."""

    document: RunDocument
    folder: Path
    #: Empty where the document has no numbers that may be judged.
    results: tuple[AaResult, ...]
    past: Mapping[str, Past]

    @property
    def warnings(self) -> list[str]:
        """What makes it say less, or something else, than it seems to."""
        sides = (self.document.candidate, self.document.baseline)
        built = [side.artifact for side in sides if side and side.artifact]
        said = []
        if len({one.id for one in built}) == 1:
            said.append("both sides ran from the same files, not from copies")
        if len({one.content_hash for one in built}) > 1:
            said.append(
                "two builds of this commit differ, so it is not the same artifact that was "
                "measured; a commit that changes nothing will never be `unchanged` either"
            )
        return said


def check(
    question: AaQuestion, *, home: Home, settings: RunnerSettings, progress: Progress
) -> AaCheck:
    """Measure one artifact against itself, and keep what came of it.

    Asked again after an interruption it goes on from the last complete start.

    Raises:
        OperatorError, PlanError: The plan, the commit or this machine is wrong.
        BuildError: The commit does not build.
    """
    twins = twin_plan(question.plan_text, question.suite)
    variant = twins.plan.build(twins.build)
    if variant.is_prebuilt:
        commit = prebuilt.commit_of(twins.build, variant)
    else:
        commit = checkout.resolve(question.repository, question.revision)
    kept = history(home.folder("host"))
    order = order_of(question, twins, commit, number=_number(kept.read()))
    if not variant.is_prebuilt:
        builder = Builder(home=home, settings=settings, repository=question.repository)
        twin = (commit, twins.twin_build, twins.twin_variant)
        if question.build_twice:
            # Before the job, which would copy what it finds built once.
            progress.stage("build", f"{commit.sha[:8]} as {twins.build}, and again")
            builder.build(*twin)
        else:
            progress.stage("build", f"{commit.sha[:8]} as {twins.build}, and a copy of it")
            copy_artifact(builder.build(commit, twins.build, variant), *twin, home=home)
    folder = home.folder("jobs", order.job)
    write_atomically(folder / ORDER_FILE, order.model_dump_json())
    with locked(folder):
        document = run_job(order, folder, home=home, settings=settings, progress=progress)
    results: tuple[AaResult, ...] = ()
    if document.outcome is Outcome.MEASURED:
        results = results_of(document, twins.plan.gates, at=clock.now())
        kept.append(results)
    return AaCheck(
        document=document, folder=folder, results=results, past=past_of(kept.read(), results)
    )


def order_of(question: AaQuestion, twins: TwinPlan, commit: Commit, *, number: int) -> JobOrder:
    """Return the paired job of a check.

    Args:
        question: What is to be checked.
        twins: Its plan.
        commit: The commit, for both sides.
        number: Tells one check from the next; equal numbers are the same job.
    """
    facts: dict[str, Any] = {
        "plan": twins.text,
        "branch": twins.plan.fork.branch,
        "suite": question.suite,
        "host_class": question.host_class,
        "candidate": commit.sha,
        "baseline": commit.sha,
        "variants": {SideName.BASELINE: twins.build, SideName.CANDIDATE: twins.twin_build},
        # Equal artifacts under one config are not measured: another name for it is what it takes.
        "configs": {SideName.BASELINE: twins.config, SideName.CANDIDATE: twins.twin_config},
        "workloads": question.workloads,
        "starts": question.starts or twins.plan.suite(question.suite).confirm_starts,
    }
    asked = hashlib.sha256(repr((facts, number, question.build_twice)).encode())
    name = f"aa-{asked.hexdigest()[:24]}"
    seed = int.from_bytes(asked.digest()[:8]) % _SEEDS
    return JobOrder(job=name, run=name, repository=question.repository, seed=seed, **facts)


def _number(kept: Sequence[AaResult]) -> int:
    """Return a number that grows with every check; the history may have dropped its oldest ones."""
    return int(kept[-1].taken_at.timestamp() * 1000) if kept else 0
