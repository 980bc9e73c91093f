"""Why the culprit of a bisect is slower: what its jobs counted, and a pair of it and its parent.

A bisect document that is over comes in, evidence for its report goes out. It judges nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from forkwatch.bisect_jobs import documents_of
from forkwatch.comparing import order_for
from forkwatch.errors import DoorError
from forkwatch.explaining import explain_pair
from reports.bisect_evidence import Evidence, culprit_jobs, evidence_of
from reports.numbers import short
from runner import checkout
from runner.explaining import Wanted

if TYPE_CHECKING:
    from pathlib import Path

    from bisects.document import BisectDocument
    from forkwatch.bisect_question import Asked
    from runner.progress import Progress
    from runner.settings import Home, RunnerSettings

#: Of `--explain`: instructions per operation, and a differential flame graph.
WANTED: Final = Wanted(profile=True)


def counted(document: BisectDocument, home: Home) -> Evidence | None:
    """Return what the jobs of the culprit counted beside the good end, where they are kept here."""
    return evidence_of(document, documents_of(culprit_jobs(document), home))


def explained(
    asked: Asked,
    document: BisectDocument,
    evidence: Evidence | None,
    *,
    plan_path: Path | None,
    home: Home,
    settings: RunnerSettings,
    progress: Progress,
) -> Evidence:
    """Return the evidence with the explanation of the culprit beside its first parent.

    Raises:
        DoorError: No one commit is named, or both install the same files.
        OperatorError, PlanError: The commits, the plan or this machine are wrong.
        StageError: The parent does not build, or the dataset cannot be loaded.
    """
    if document.culprit is None:
        raise DoorError("no one commit is named, so that there is none to explain")
    found, place = document.culprit
    sha = found.commits[place].sha
    parents = checkout.resolve(asked.repository, sha).parents
    if not parents:
        raise DoorError(f"{short(sha)} has no parent to be compared with")
    order, _ = order_for(
        repository=asked.repository,
        plan_path=plan_path,
        baseline=parents[0],
        candidate=sha,
        suite=asked.question.suite,
        host_class=asked.question.host_class,
        workloads=[asked.question.workload],
        starts=None,
        seed=asked.question.seed,
    )
    told = explain_pair(order, WANTED, home=home, settings=settings, progress=progress)
    return replace(
        evidence or Evidence(),
        explanation=told.explanation,
        folder=told.folder,
    )
