"""Asking for a bisect, and ending one: for whoever may, from whichever channel.

What somebody wants comes in; it is checked against plan and repository, written down, and begun.
The same question is one bisect, however often and by whom it is asked. Who may ask was decided
where it came in. No words of the question are repeated in a refusal.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bisects.commits import RANGE_COMMITS_MAX
from bisects.document import BisectQuestion
from reports.bisect import bisect_sentence
from service.core.alert_actions import OPEN_STATES, SERVICE_ACTOR, OrderVia
from service.core.bisections import (
    BUDGET_MINUTES_MAX,
    JOB_ENDED,
    STOP_MAX,
    STOP_MIN,
    UNDER_WAY,
    Bisect,
    BisectAsk,
    BisectRefusedError,
    BisectState,
)
from service.core.errors import NotFoundError, UnknownAlertError
from service.flows.bisect_material import gather, search_of
from service.store import alerts, bisect_jobs, bisects, forks, runs
from workloads.errors import CatalogError
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisects.commits import RangeCommit
    from service.core.clock import Clock
    from service.core.model import Alert
    from service.core.ports import CodeHost
    from service.core.settings import Settings
    from service.flows.bisect_flow import BisectFlow
    from service.store.database import Database
    from workloads.plan import Plan

_log = logging.getLogger("forkwatch.bisect")

#: Times that one question is begun anew after it was cancelled or could not be followed.
ANEW_MAX: Final = 20
#: Names listed for somebody who named none of them.
_LISTED_MAX: Final = 20
#: It brought no answer, so asking again is no repetition.
_WITHOUT_ANSWER: Final = (BisectState.CANCELLED, BisectState.FAILED)


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """A question that was checked."""

    question: BisectQuestion
    commits: Sequence[RangeCommit]
    alert: Alert | None
    plan: Plan
    plan_text: str


@dataclass(frozen=True, kw_only=True)
class BisectAsks:
    """Takes questions, with everything they touch."""

    database: Database
    clock: Clock
    code_host: CodeHost
    settings: Settings
    flow: BisectFlow

    def ask(self, ask: BisectAsk, *, anew: bool = True) -> tuple[Bisect, bool]:
        """Begin a bisect, or return the one that there is; and whether it was begun now.

        Args:
            ask: What somebody wants.
            anew: Whether one that was cancelled or failed is begun again.

        Raises:
            BisectRefusedError: It cannot be begun; the message is for whoever asked.
            CodeHostError: The repository cannot be read now.
        """
        wanted = self._checked(ask)
        with self.database.reading() as session:
            question = wanted.question
            for seed in range(ANEW_MAX):
                question = wanted.question.model_copy(update={"seed": seed})
                known = bisects.find(session, question.id)
                if known is None:
                    break
                if known.state not in _WITHOUT_ANSWER or not anew:
                    return self._begun(known), False
            else:
                raise BisectRefusedError(f"this was begun {ANEW_MAX} times without an answer")
            material = gather(
                session,
                question,
                wanted.commits,
                plan=wanted.plan,
                plan_text=wanted.plan_text,
                alert=wanted.alert,
            )
        now, fork = self.clock.now(), wanted.plan.fork
        bisect = Bisect(
            id=question.id,
            question=question,
            state=BisectState.WAITING,
            commits=len(wanted.commits),
            alert=wanted.alert.id if wanted.alert else None,
            asked_by=ask.actor,
            via=ask.via,
            # The issue of an alert hears of it anyway.
            number=None if wanted.alert else ask.number,
            said="",
            created_at=now,
            started_at=None,
            finished_at=None,
        )
        with self.database.writing() as session:
            forks.ensure(session, fork.name, branch=fork.branch, at=now)
            stored, new = bisects.create_once(session, bisect, material)
        return self._begun(stored), new

    def ask_about(
        self, alert_id: str, *, actor: str, via: str, anew: bool = True
    ) -> tuple[Bisect, bool]:
        """Begin a bisect in the range of an alert, on the workload that lost most.

        Raises:
            ActionError: There is no such alert, or it cannot be begun now; the message is for
                whoever asked.
            CodeHostError: The repository cannot be read now.
        """
        with self.database.reading() as session:
            alert = alerts.find(session, alert_id)
            run = runs.find(session, alert.run) if alert else None
        if alert is None or run is None:
            raise UnknownAlertError(f"there is no alert {alert_id!r}")
        if alert.state not in OPEN_STATES:
            raise BisectRefusedError(f"the alert is {alert.state.value}; nothing is to be found")
        ask = BisectAsk(
            good=alert.baseline_sha,
            bad=alert.sha,
            workload=min(alert.workloads, key=lambda one: one.effect).workload,
            suite=run.suite,
            host_class=run.host_class,
            actor=actor,
            via=via,
            alert=alert_id,
        )
        return self.ask(ask, anew=anew)

    def press(self, alert_id: str, actor: str) -> None:
        """Begin a bisect in the range of an alert, for the button on Slack.

        Raises:
            ActionError: As for `ask_about`.
        """
        self.ask_about(alert_id, actor=actor, via=OrderVia.SLACK.value)

    def alerted(self, alert_id: str) -> None:
        """Begin a bisect of an alert that was raised, where the settings want that."""
        if not self.settings.bisect_automatically:
            return
        try:
            # What a person has ended is not begun again by a machine.
            self.ask_about(alert_id, actor=SERVICE_ACTOR, via=OrderVia.FLOW.value, anew=False)
        except (BisectRefusedError, UnknownAlertError) as error:
            _log.info("alert %s is not bisected: %s", alert_id, error)

    def cancel(self, bisect_id: str, actor: str) -> Bisect:
        """End a bisect and its measurement under way; return it. Twice is once.

        Raises:
            NotFoundError: There is none of that id.
            BisectRefusedError: It is over.
        """
        with self.database.reading() as session:
            bisect = bisects.find(session, bisect_id)
            if bisect is None:
                raise NotFoundError(f"there is no bisect {bisect_id!r}")
            material = bisects.material(session, bisect_id)
            jobs = bisect_jobs.of_bisect(session, bisect_id)
        observations = [job.observation for job in jobs if job.observation is not None]
        found = search_of(bisect.question, material, observations).document(cancelled=True)
        said = f"ended by {actor}: {bisect_sentence(found)}"
        with self.database.writing() as session:
            state, now = BisectState.CANCELLED, self.clock.now()
            ended = bisects.finish(session, bisect_id, state, said=said, at=now, found=found)
            bisect = bisects.locked(session, bisect_id)
        if not ended and bisect.state is not BisectState.CANCELLED:
            raise BisectRefusedError(f"the bisect is {bisect.state.value} already")
        self.flow.cancelled(bisect_id, [job.id for job in jobs if job.state not in JOB_ENDED])
        return bisect

    def _begun(self, bisect: Bisect) -> Bisect:
        """Return a bisect, sure that its flow was begun if anything is left to do about it."""
        if bisect.state in UNDER_WAY:
            self.flow.begin(bisect.id)
        return bisect

    def _checked(self, ask: BisectAsk) -> _Wanted:
        """Return what is asked, once it is sure that it can be searched."""
        text = self.code_host.plan_text()
        try:
            plan = parse_plan(text)
        except CatalogError as error:
            _log.warning("the plan cannot be used: %s", error)
            raise BisectRefusedError("the plan of the default branch cannot be used now") from error
        good, bad = self._resolved(ask.good, "good"), self._resolved(ask.bad, "bad")
        commits = self._commits(good, bad)
        with self.database.reading() as session:
            alert = alerts.find(session, ask.alert) if ask.alert else None
        if alert and (alert.baseline_sha, alert.sha) != (good, bad):
            alert = None
        suite = _suite(plan, ask.suite or self.settings.suite)
        workload = _workload(plan, suite, ask.workload or _lost_most(alert))
        if alert and workload not in {one.workload for one in alert.workloads}:
            alert = None
        if alert and len(commits) == 2:  # noqa: PLR2004  the ends alone
            raise BisectRefusedError("the range of the alert is one commit, so that is the one")
        question = BisectQuestion(
            fork=plan.fork.name,
            workload=workload,
            suite=suite,
            host_class=self._host_class(ask.host_class),
            variant=plan.suite(suite).build,
            config=plan.suite(suite).config,
            good=good,
            bad=bad,
            stop=_within(ask.stop, STOP_MIN, STOP_MAX, "the probability to stop at"),
            budget_minutes=_within(
                ask.budget_minutes, 1, BUDGET_MINUTES_MAX, "the budget in minutes"
            ),
        )
        return _Wanted(question=question, commits=commits, alert=alert, plan=plan, plan_text=text)

    def _resolved(self, revision: str, which: str) -> str:
        found = self.code_host.resolve(revision)
        if found is None:
            raise BisectRefusedError(
                f"the {which} end names no commit here: name a branch, a tag, or seven or more "
                "digits of a commit"
            )
        return found.sha

    def _commits(self, good: str, bad: str) -> list[RangeCommit]:
        """Return the range, both ends counted."""
        if good == bad:
            raise BisectRefusedError("both ends are the same commit")
        found = self.code_host.commits_between(good, bad, limit=RANGE_COMMITS_MAX)
        if not found:
            raise BisectRefusedError(
                "the good end is no ancestor of the bad end along first parents, or more than "
                f"{RANGE_COMMITS_MAX - 1} commits before it: give ends on one branch and closer "
                "together"
            )
        return found

    def _host_class(self, asked: str | None) -> str:
        own = self.settings.host_class
        if asked not in {None, own}:
            raise BisectRefusedError(f"this service measures on the host class {own} alone")
        return own


def _suite(plan: Plan, name: str) -> str:
    if name not in plan.suites:
        names = ", ".join([*plan.suites][:_LISTED_MAX])
        raise BisectRefusedError(f"the plan has no such suite; it has: {names}")
    return name


def _workload(plan: Plan, suite: str, name: str | None) -> str:
    """Return the one workload that is to be searched, as its series are called."""
    of_suite = plan.suite(suite).workloads
    names = ", ".join(of_suite[:_LISTED_MAX])
    if name is None:
        if len(of_suite) > 1:
            raise BisectRefusedError(f"name the workload; the suite has: {names}")
        return of_suite[0]
    try:
        found = plan.workloads(suite, (name,))
    except CatalogError as error:
        raise BisectRefusedError(f"the suite cannot run this workload; it has: {names}") from error
    if len(found) != 1:
        raise BisectRefusedError(f"this is a list; name one workload, such as {found[0]}")
    return found[0]


def _lost_most(alert: Alert | None) -> str | None:
    return min(alert.workloads, key=lambda one: one.effect).workload if alert else None


def _within(value: float, low: float, high: float, what: str) -> float:
    if not low <= value <= high:
        raise BisectRefusedError(f"{what} has to be between {low:g} and {high:g}")
    return value
