"""The question of a bisect: two revisions and a workload become a range with a plan.

Words of the command line come in, a question with all that its jobs are made of goes out. What is
wrong with the words is said before anything is built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bisects.document import BisectQuestion
from forkwatch.bisect_range import read_range
from forkwatch.errors import DoorError
from workloads.plan import PLAN_FILE, read_plan

if TYPE_CHECKING:
    from pathlib import Path

    from forkwatch.bisect_range import Range
    from workloads.plan import Plan

#: A week: what takes longer wants a smaller range.
BUDGET_MINUTES_MAX: Final = 7 * 24 * 60
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(m|min|h)?")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question with all that its jobs are made of."""

    question: BisectQuestion
    range: Range
    repository: Path
    plan: Plan
    plan_text: str
    #: Starts of each job.
    starts_each: int

    @property
    def storage_engine(self) -> str:
        """Of the tables; the server's default where the plan has none."""
        dataset = self.plan.suite(self.question.suite).dataset
        return self.plan.datasets[dataset].storage_engine or "innodb"


def minutes_of(text: str) -> float:
    """Return a time such as `90m`, `2h` or `45` in minutes.

    Raises:
        DoorError: It is no time, or nobody waits so long.
    """
    found = _TIME.fullmatch(text.strip())
    minutes = float(found[1]) * (60 if found[2] == "h" else 1) if found else 0.0
    if not 0 < minutes <= BUDGET_MINUTES_MAX:
        raise DoorError(f"{text!r} is no budget: give minutes or hours up to a week, as 90m or 2h")
    return minutes


def question_of(
    *,
    repository: Path,
    plan_path: Path | None,
    good: str,
    bad: str,
    workload: str,
    suite: str,
    stop: float,
    budget_minutes: float,
    starts_each: int,
    seed: int,
    host_class: str,
) -> Asked:
    """Return the question, its range and its plan.

    Raises:
        OperatorError, PlanError, DoorError: The commits or the plan are not there or wrong.
    """
    path = plan_path or repository / PLAN_FILE
    plan = read_plan(path)
    chosen = plan.suite(suite)
    names = plan.workloads(suite, (workload,))
    if len(names) != 1:
        raise DoorError(
            f"{workload!r} is {len(names)} workloads and a bisect looks at one: {', '.join(names)}"
        )
    if plan.build(chosen.build).is_prebuilt:
        raise DoorError(
            f"suite {suite!r} measures the prebuilt {chosen.build!r}, which belongs to no commit; "
            "name a suite that builds"
        )
    found = read_range(repository, good, bad)
    question = BisectQuestion(
        fork=plan.fork.name,
        workload=names[0],
        suite=suite,
        host_class=host_class,
        variant=chosen.build,
        config=chosen.config,
        good=found.commits[0].sha,
        bad=found.commits[-1].sha,
        stop=stop,
        budget_minutes=budget_minutes,
        seed=seed,
    )
    return Asked(
        question=question,
        range=found,
        repository=repository,
        plan=plan,
        plan_text=path.read_text(),
        starts_each=starts_each,
    )
