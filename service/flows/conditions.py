"""What a run was measured under, and what of it changed since the run before.

Runs and series come in, words for people go out; nothing is decided about baselines here. What a
series is named after (host class, build, config, dataset, placement) is compared by name, and
behind equal names the toolchain and the options of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from results.job import JobOrder
from service.store import jobs, runs
from workloads.errors import CatalogError
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from results.document import RunDocument, Toolchain
    from results.series import SeriesKey
    from service.core.model import Job, SampleSet, StoredRun
    from workloads.plan import Plan

#: What the conditions of a series are called, by field.
SERIES_FIELDS: Final = {
    "host_class": "host class",
    "variant": "build",
    "config": "config",
    "dataset": "dataset",
    "placement": "placement",
}
#: Runs of a history that are looked through for one of the same host: hosts of one class may have
#: different compilers, and each is compared with its own past.
LOOKED_MAX: Final = 10
_TOOLS: Final = {
    "c_compiler": "C compiler",
    "cxx_compiler": "C++ compiler",
    "cmake": "CMake",
    "linker": "linker",
}


@dataclass(frozen=True, kw_only=True)
class Changed:
    """The newest run that was measured under something else."""

    sha: str
    why: str


def changed_conditions(
    session: Session, job: Job, document: RunDocument, history: Sequence[SampleSet]
) -> Changed | None:
    """Return what changed behind the names since the host's last run of a series, if anything did.

    Args:
        session: To read with.
        job: Of the new run.
        document: The new run.
        history: Of one of its series, oldest first.
    """
    for past in reversed(history[-LOOKED_MAX:]):
        run = runs.find(session, past.run)
        if run is not None and run.host_name == document.host.name:
            why = ", ".join([*_tools(session, run, document), *_options(session, run, job)])
            return Changed(sha=past.sha, why=why) if why else None
    return None


def difference(before: SeriesKey, now: SeriesKey) -> str:
    """Return in words what a series is named after that another is not."""
    return ", ".join(
        f"{word} {getattr(before, name)} before, {getattr(now, name)} now"
        for name, word in SERIES_FIELDS.items()
        if getattr(before, name) != getattr(now, name)
    )


def _tools(session: Session, run: StoredRun, document: RunDocument) -> list[str]:
    """Return which tools of the toolchain are others than in a run before."""
    now = document.candidate.artifact
    before = runs.document(session, run.id).candidate.artifact
    if now is None or before is None or now.toolchain.digest == before.toolchain.digest:
        return []
    return _named(before.toolchain, now.toolchain) or ["another toolchain"]


def _named(before: Toolchain, now: Toolchain) -> list[str]:
    return [
        f"{word} {getattr(before, name)} before, {getattr(now, name)} now"
        for name, word in _TOOLS.items()
        if getattr(before, name) != getattr(now, name)
    ]


def _options(session: Session, run: StoredRun, job: Job) -> list[str]:
    """Return which build or config of a run means something else in the plan of now."""
    before_job = jobs.find(session, run.job)
    before = _plan_of(before_job.order) if before_job is not None else None
    now = _plan_of(job.order)
    if before is None or now is None:
        return []
    changed = []
    if _differ(before.builds.get(run.variant), now.builds.get(run.variant)):
        changed.append(f"other options behind build {run.variant}")
    if _differ(before.configs.get(run.config), now.configs.get(run.config)):
        changed.append(f"other options behind config {run.config}")
    return changed


def _differ(before: object | None, now: object | None) -> bool:
    return before is not None and now is not None and before != now


def _plan_of(order: str) -> Plan | None:
    """Return the plan of an order, None where there is none: an imported run was never ordered."""
    try:
        return parse_plan(JobOrder.model_validate_json(order).plan)
    except (ValidationError, CatalogError):
        # A plan of an older version may be none today; it then says nothing about a change.
        return None
