"""Orders of A/A checks: somebody wants to know what a host makes up, or a check is due.

A host class comes in; a check with the order of its job goes into the store. The commit is the
newest that was measured: it builds, and where it was measured its artifact is at hand.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from results.document import Outcome
from results.job import JobOrder
from results.slice import SideName
from service.core.aa_checks import AaCheck, AaRefusedError, AaSchedule, AaState
from service.core.alert_actions import SERVICE_ACTOR, OrderVia
from service.core.errors import NotFoundError
from service.core.model import JobKind
from service.flows.aa_judging import alpha_of
from service.flows.alert_actions import NAME_LENGTH_MAX
from service.store import aa_checks, commits, runs
from workloads.catalog import find_workload
from workloads.twin_plan import twin_plan

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy.orm import Session

    from service.core.clock import Clock
    from service.core.ports import CodeHost
    from service.core.settings import Settings
    from service.store.database import Database
    from workloads.twin_plan import TwinPlan

_log = logging.getLogger("forkwatch.aa")

_SEEDS: Final = 2**31
#: Newest commits among which a measured one is looked for; of so many, more than a few wait or
#: were skipped only where nothing can be measured at all.
COMMITS_MAX: Final = 200


@dataclass(frozen=True, kw_only=True)
class AaChecks:
    """Orders of A/A checks."""

    database: Database
    clock: Clock
    code_host: CodeHost
    settings: Settings

    @property
    def schedule(self) -> AaSchedule:
        """How often the host class is checked by itself."""
        return AaSchedule(host_class=self.settings.host_class, days=self.settings.aa_check_days)

    def ask(self, host_class: str, *, actor: str, via: str) -> AaCheck:
        """Order a check of a host class; it is measured when nothing else waits.

        Raises:
            NotFoundError: The service measures on another host class.
            AaRefusedError: One is under way, or there is no commit to check with.
            CodeHostError, PlanError: The plan cannot be read or is wrong.
        """
        if host_class != self.settings.host_class:
            raise NotFoundError(
                f"the service measures on the host class {self.settings.host_class!r}, not on "
                f"{host_class!r}"
            )
        twins = twin_plan(self.code_host.plan_text(), self.settings.suite)
        now = self.clock.now()
        with self.database.writing() as session:
            unfinished = aa_checks.unfinished(session)
            under_way = [one for one in unfinished if one.host_class == host_class]
            if under_way:
                raise AaRefusedError(
                    f"an A/A check of {host_class!r} is under way since "
                    f"{under_way[0].created_at:%Y-%m-%d %H:%M} UTC; it is measured when nothing "
                    "else waits"
                )
            sha = _measured_commit(session, twins.plan.fork.name)
            check = _check(
                twins.plan.fork.name,
                sha,
                host_class,
                number=aa_checks.count(session),
                asked_by=actor[:NAME_LENGTH_MAX],
                via=via,
                at=now,
            )
            order = _order(check, twins, settings=self.settings, at=self.code_host.repository)
            return aa_checks.add_once(
                session,
                check,
                order=order.model_dump_json(exclude={"credential"}),
                gates=twins.plan.gates.model_dump_json(),
            )

    def ask_when_due(self) -> AaCheck | None:
        """Order the check that is due; None where none is, or none can be made now.

        Raises:
            CodeHostError, PlanError: The plan cannot be read or is wrong.
        """
        schedule = self.schedule
        if not schedule.days:
            return None
        with self.database.reading() as session:
            last = aa_checks.newest(session, schedule.host_class, limit=1)
        newest = last[0] if last else None
        if not schedule.due(newest, now=self.clock.now()) or (newest and newest.open):
            return None
        try:
            return self.ask(schedule.host_class, actor=SERVICE_ACTOR, via=OrderVia.FLOW.value)
        except AaRefusedError as error:
            _log.debug("an A/A check is due and waits: %s", error)
            return None

    def newest(self, host_class: str) -> list[AaCheck]:
        """Return the checks of a host class, newest first."""
        with self.database.reading() as session:
            return aa_checks.newest(session, host_class)


def _measured_commit(session: Session, fork: str) -> str:
    """Return the newest commit that was measured.

    Raises:
        AaRefusedError: None was.
    """
    shas = [commit.sha for commit in commits.newest(session, fork, limit=COMMITS_MAX)]
    measured = {
        run.sha
        for run in runs.of_commits(session, fork, shas)
        if run.kind is JobKind.SINGLE and run.outcome is Outcome.MEASURED
    }
    for sha in shas:
        if sha in measured:
            return sha
    raise AaRefusedError(
        f"no commit of {fork!r} was measured yet, and a check needs one that builds; ask again "
        "after the first run"
    )


def _check(
    fork: str, sha: str, host_class: str, *, number: int, asked_by: str, via: str, at: datetime
) -> AaCheck:
    # By how many there were before: two processes that find it due at once ask for the same one.
    about = hashlib.sha256(f"{fork}\x1f{host_class}\x1f{number}".encode()).hexdigest()[:8]
    name = f"aa-{sha[:12]}-{about}"
    return AaCheck(
        id=name,
        fork=fork,
        sha=sha,
        host_class=host_class,
        state=AaState.WAITING,
        asked_by=asked_by,
        via=via,
        run=f"run-{name}",
        attempts=0,
        said="",
        host_name="",
        fingerprint="",
        results=(),
        created_at=at,
        started_at=None,
        finished_at=None,
    )


def _order(check: AaCheck, twins: TwinPlan, *, settings: Settings, at: Path) -> JobOrder:
    """Return the paired job of a check: the ordinary one, of one commit under two names."""
    names = [find_workload(name).name for name in twins.plan.workloads(settings.suite)]
    return JobOrder(
        job=check.id,
        run=check.run,
        repository=at,
        plan=twins.text,
        branch=twins.plan.fork.branch,
        suite=settings.suite,
        host_class=check.host_class,
        candidate=check.sha,
        baseline=check.sha,
        variants={SideName.BASELINE: twins.build, SideName.CANDIDATE: twins.twin_build},
        # Equal artifacts under one config are not measured: another name for it is what it takes.
        configs={SideName.BASELINE: twins.config, SideName.CANDIDATE: twins.twin_config},
        alphas=dict.fromkeys(names, alpha_of(names)),
        starts=twins.plan.suite(settings.suite).confirm_starts,
        seed=int.from_bytes(hashlib.sha256(check.id.encode()).digest()[:8], "big") % _SEEDS,
        # The document stays with the runner, where the flow takes it: no baseline learns of it.
        submit_to=None,
    )
