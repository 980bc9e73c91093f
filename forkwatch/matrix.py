"""A matrix: builds x configs (x commits) against their first one; the work of `forkwatch matrix`.

The plan's table comes in; each cell becomes a paired job with the base, the pairs go
out judged. A cell that cannot be measured is a gap with its reason, and the others go on. Asking
again goes on where it was, and tries the gaps again.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from forkwatch.comparing import do, judge_pair
from forkwatch.errors import DoorError
from reports.numbers import short
from reports.sentence import outcome_sentence
from results.document import Outcome, RunDocument
from results.job import DOCUMENT_FILE, JobOrder
from results.slice import SideName
from runner import checkout, prebuilt
from workloads.plan import MATRIX_CELLS_MAX, PLAN_FILE, digest, read_plan, too_many_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from detectors.verdict import Verdict
    from results.document import Commit
    from runner.progress import Progress
    from runner.settings import Home, RunnerSettings
    from workloads.plan import Matrix, Plan, Suite

_log = logging.getLogger("forkwatch.matrix")

#: Ends without numbers that another try may change; `unchanged` is an answer.
_AGAIN: Final = {Outcome.BUILD_FAILED, Outcome.FAILED, Outcome.UNSTABLE}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One build of one commit under one config."""

    #: Of a prebuilt build the one that stands for its tree; it is in no repository.
    commit: Commit
    build: str
    config: str
    #: Short and unique within the matrix.
    name: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """A matrix before it is measured."""

    plan: Plan
    suite: Suite
    workloads: tuple[str, ...]
    #: Most starts per side of each pair.
    starts: int
    base: Cell
    #: Every other cell with the job that measures it together with the base.
    jobs: tuple[tuple[Cell, JobOrder], ...]

    def minutes_max(self) -> float:
        """Return the minutes that measuring one pair may take; builds come on top."""
        per_side = self.suite.slices * self.suite.seconds + self.suite.warmup_seconds
        start_minutes = 2 * per_side * len(self.workloads) / 60
        # The start in which the budget runs out is measured to its end.
        return min(self.starts * start_minutes, self.suite.budget_minutes + start_minutes)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One cell with what came of it; no document where it was not even tried."""

    cell: Cell
    document: RunDocument | None
    verdicts: Mapping[str, Verdict]
    gap: str = ""


def question_of(
    *,
    repository: Path,
    plan_path: Path | None,
    name: str,
    commits: Sequence[str],
    workloads: Sequence[str],
    starts: int | None,
    seed: int,
    host_class: str,
) -> Question:
    """Return the cells of the matrix called `name`, and the job of each.

    A prebuilt build has one cell a config, however many commits there are.

    Raises:
        OperatorError, PlanError, DoorError: The commits, prebuilt trees or the plan are not there
            or wrong, or there is nothing to compare, or too much.
    """
    path = plan_path or repository / PLAN_FILE
    plan = read_plan(path)
    table = plan.matrix(name)
    suite = plan.suite(table.suite)
    chosen = plan.workloads(table.suite, workloads)
    base, *others = _cells(plan, table, _resolved(repository, plan, table, commits))
    if not others:
        raise DoorError(
            f"matrix {name!r} has one cell: give it a second build or config, or use "
            "--commit with several commits"
        )
    if len(others) + 1 > MATRIX_CELLS_MAX:
        raise DoorError(f"matrix {name!r} has {len(others) + 1} cells; {too_many_cells()}")
    most = starts or suite.confirm_starts
    shared = {
        "repository": repository,
        "plan": path.read_text(),
        "branch": plan.fork.branch,
        "suite": table.suite,
        "host_class": host_class,
        "workloads": chosen,
        "starts": most,
        "seed": seed,
    }
    return Question(
        plan=plan,
        suite=suite,
        workloads=chosen,
        starts=most,
        base=base,
        jobs=tuple((cell, _order(plan, base, cell, shared)) for cell in others),
    )


def _resolved(
    repository: Path, plan: Plan, table: Matrix, commits: Sequence[str]
) -> tuple[Commit, ...]:
    """Return the commits to build, each once; none where every build is prebuilt."""
    if all(plan.build(name).is_prebuilt for name in table.builds):
        if commits:
            raise DoorError("every build of this matrix is prebuilt: leave --commit out")
        return ()
    resolved = {}
    for revision in commits or ("HEAD",):
        commit = checkout.resolve(repository, revision)
        # A commit given twice, as a branch and as a hash, is still one.
        resolved[commit.sha] = commit
    return tuple(resolved.values())


def _cells(plan: Plan, table: Matrix, commits: Sequence[Commit]) -> Iterator[Cell]:
    """Give every cell, the base first."""
    trees = {
        name: prebuilt.commit_of(name, plan.build(name))
        for name in table.builds
        if plan.build(name).is_prebuilt
    }
    for turn, commit in enumerate(commits or (None,)):
        for build, config in table.cells():
            name = f"{build}/{config}"
            if build in trees and turn == 0:
                # A table of versions is read more easily without the one config's name.
                name = name if len(table.configs) > 1 else build
                yield Cell(commit=trees[build], build=build, config=config, name=name)
            elif build not in trees and commit is not None:
                name = f"{short(commit.sha)} {name}" if len(commits) > 1 else name
                yield Cell(commit=commit, build=build, config=config, name=name)


def _order(plan: Plan, base: Cell, cell: Cell, shared: Mapping[str, Any]) -> JobOrder:
    """Return the job of a pair; equal questions have equal names.

    The name is made of the parts of the plan that the pair depends on, so that a build added to
    the matrix later leaves what was measured as it is.
    """
    suite = plan.suite(shared["suite"])
    sides = {SideName.BASELINE: base, SideName.CANDIDATE: cell}
    hosts = {name: host for name, host in plan.hosts.items() if name == shared["host_class"]}
    asked = (
        *((one.commit.sha, one.build, digest(plan.build(one.build))) for one in sides.values()),
        *((one.config, digest(plan.config(one.config))) for one in sides.values()),
        *(digest(part) for part in (plan.fork, suite, plan.gates, *hosts.values())),
        digest(plan.datasets[suite.dataset]),
        *(shared[key] for key in ("host_class", "workloads", "starts", "seed")),
        str(shared["repository"]),
    )
    name = f"matrix-{hashlib.sha256(repr(asked).encode()).hexdigest()[:24]}"
    return JobOrder(
        job=name,
        run=name,
        candidate=cell.commit.sha,
        baseline=base.commit.sha,
        variants={side: one.build for side, one in sides.items()},
        configs={side: one.config for side, one in sides.items()},
        **shared,
    )


def dry_run_lines(question: Question) -> list[str]:
    """Return the cells with the minutes that their slices and warm-ups may take."""
    minutes, suite = question.minutes_max(), question.suite
    how = f"at most {question.starts} starts of {suite.slices} x {suite.seconds} s a side"
    total = (
        f"{len(question.jobs)} pairs: up to {minutes * len(question.jobs):.1f} minutes of "
        "measuring; builds, datasets and server starts come on top, and a pair ends as soon as it "
        "is decided"
    )
    return [
        f"{', '.join(question.workloads)}; {how}",
        f"base {question.base.name} of {short(question.base.commit.sha)}",
        *(
            f"cell {cell.name} of {short(cell.commit.sha)}: up to {minutes:.1f} minutes"
            for cell, _ in question.jobs
        ),
        total,
    ]


def measure(
    question: Question, *, home: Home, settings: RunnerSettings, progress: Progress
) -> list[Pair]:
    """Measure every cell with the base, and return what came of each."""
    pairs: list[Pair] = []
    for number, (cell, order) in enumerate(question.jobs, start=1):
        _log.info(
            "cell %d of %d: %s against %s",
            number,
            len(question.jobs),
            cell.name,
            question.base.name,
        )
        _forget_gap(home.folder("jobs", order.job))
        document, _ = do(order, home=home, settings=settings, progress=progress)
        pairs.append(conclude(cell, document, question.plan))
        if _base_is_missing(question.base, cell, document):
            # No other cell has anything to be compared with either.
            gap = f"not tried: {question.base.name}, the base, does not build"
            pairs += [
                Pair(cell=cell, document=None, verdicts={}, gap=gap)
                for cell, _ in question.jobs[number:]
            ]
            break
    return pairs


def _forget_gap(folder: Path) -> None:
    """Let a pair without numbers be tried again; complete starts of a sound host are kept."""
    finished = folder / DOCUMENT_FILE
    if not finished.exists():
        return
    outcome = RunDocument.model_validate_json(finished.read_text()).outcome
    if outcome is Outcome.UNSTABLE:
        shutil.rmtree(folder)
        folder.mkdir()
    elif outcome in _AGAIN:
        finished.unlink()


def _base_is_missing(base: Cell, cell: Cell, document: RunDocument) -> bool:
    """Whether the base did not build, here or as the same build of the same commit."""
    assert document.baseline is not None, "every job of a matrix is a pair"
    if document.outcome is Outcome.BUILD_FAILED:
        return (cell.commit, cell.build) == (base.commit, base.build)
    # The candidate is built first, so that it would be the outcome if it had failed.
    return document.outcome is Outcome.FAILED and document.baseline.artifact is None


def conclude(cell: Cell, document: RunDocument, plan: Plan) -> Pair:
    """Judge a pair, or say why there is nothing to judge."""
    if document.outcome is Outcome.MEASURED:
        return Pair(cell=cell, document=document, verdicts=judge_pair(document, plan))
    gap = outcome_sentence(
        document.outcome, at=document.candidate.commit.sha, failure=document.failure
    )
    if document.outcome is Outcome.UNCHANGED:
        gap = "installs the same files as the base and runs under the same config"
    return Pair(cell=cell, document=document, verdicts={}, gap=gap)
