"""Carrying out one order of a comment: the answer to it, and the job that it begins, if any.

A comment and a command come in, both read from text that anybody may have written; whether its
writer may give orders was asked before. No word of the order is repeated in an answer.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reports.comment import is_loud
from reports.facts import reasons
from reports.markup import markdown
from reports.numbers import short
from reports.rows import rows_of_pair
from service.channels.github.commands import CommandVerb, Misunderstood
from service.core.alert_actions import AlertAction, AlertOrder, OrderVia
from service.core.bisections import UNDER_WAY, BisectAsk
from service.core.errors import ActionError, CodeHostError
from service.core.pull_requests import PullJobKind, PullJobState, PullRequest
from service.flows.bisect_texts import begun_sentence, ended_sentence
from service.flows.pull_orders import compare_job, run_job
from service.flows.pull_texts import rows_of
from service.store import alerts, forks, pull_jobs, pull_requests, runs, verdicts
from workloads.errors import CatalogError
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reports.rows import Row
    from service.channels.github.commands import Command
    from service.channels.github.webhooks import CommentMade
    from service.core.clock import Clock
    from service.core.model import GitCommit
    from service.core.ports import AlertActions, CodeHost
    from service.core.settings import Settings
    from service.flows.bisect_asks import BisectAsks
    from service.store.database import Database
    from workloads.plan import Plan

_log = logging.getLogger("forkwatch.comments")

#: Workloads explained in one answer; who wants another names it.
EXPLAINED_MAX: Final = 60
#: Suites listed for somebody who named none of them.
_LISTED_MAX: Final = 20
_FAULT_LENGTH_MAX: Final = 500


@dataclass(frozen=True, kw_only=True)
class CarriedOut:
    """What came of one order."""

    #: In Markdown.
    answer: str
    #: Id of the job that has to be begun.
    job: str | None = None
    #: Id of the job whose check and comment have to say something else now.
    show: str | None = None


class _CannotError(Exception):
    """An order cannot be carried out; the message says why, in Markdown, to whoever gave it."""


@dataclass(frozen=True, kw_only=True)
class CommentSteps:
    """Orders, with everything they touch."""

    database: Database
    clock: Clock
    code_host: CodeHost
    actions: AlertActions
    settings: Settings
    #: The name that our own issues and comments carry.
    own_login: Callable[[], str]
    #: Begins bisects; None where nobody does.
    bisects: BisectAsks | None = None

    def carry_out(
        self, comment: CommentMade, command: Command | Misunderstood, *, key: str
    ) -> CarriedOut:
        """Carry one order out; the same key does it once.

        Raises:
            CodeHostError: The repository cannot be read now.
        """
        if isinstance(command, Misunderstood):
            return CarriedOut(answer=command.answer)
        do = {
            CommandVerb.RUN: self._run,
            CommandVerb.COMPARE: self._compare,
            CommandVerb.BISECT: self._bisect,
            CommandVerb.ACCEPT: self._accept,
            CommandVerb.EXPLAIN: self._explain,
        }[command.verb]
        try:
            return do(comment, command, key)
        except _CannotError as error:
            return CarriedOut(answer=str(error))

    def _run(self, comment: CommentMade, command: Command, key: str) -> CarriedOut:
        plan, suite = self._plan_with(command.name or self.settings.suite)
        pull = self._pull_at_sight(comment, plan)
        now, at = self.clock.now(), short(pull.head_sha)
        job = run_job(pull, suite=suite, key=key, at=now, asked_by=_actor(comment))
        waiting = {PullJobState.WAITING, PullJobState.MEASURING}
        with self.database.writing() as session:
            for other in pull_jobs.of_pull(session, pull.fork, pull.number):
                same = (other.kind, other.suite, other.candidate_sha)
                under_way = other.state in waiting and other.id != job.id
                if under_way and same == (PullJobKind.RUN, suite, pull.head_sha):
                    return CarriedOut(answer=f"`{at}` is being measured already.")
            pull_jobs.supersede(
                session,
                pull.fork,
                pull.number,
                keep_sha=pull.head_sha,
                said=f"not measured to the end: {at} took its place",
                at=now,
            )
            pull_jobs.create_once(session, job)
        said = f"Measuring `{at}` against its merge base, suite {markdown(suite)}."
        return CarriedOut(answer=said, job=job.id)

    def _compare(self, comment: CommentMade, command: Command, key: str) -> CarriedOut:
        plan, suite = self._plan_with(self.settings.suite)
        baseline = self._commit(command.revisions[0])
        if len(command.revisions) > 1:
            candidate = self._commit(command.revisions[1]).sha
        else:
            candidate = self._pull_at_sight(comment, plan).head_sha
        if candidate == baseline.sha:
            raise _CannotError("Both are the same commit.")
        job = compare_job(
            plan.fork.name,
            comment.number,
            suite=suite,
            candidate=candidate,
            baseline=baseline.sha,
            key=key,
            at=self.clock.now(),
            asked_by=_actor(comment),
        )
        with self.database.writing() as session:
            forks.ensure(session, plan.fork.name, branch=plan.fork.branch, at=self.clock.now())
            pull_jobs.create_once(session, job)
        said = f"Measuring `{short(candidate)}` against `{short(baseline.sha)}`."
        return CarriedOut(answer=f"{said} The result comes in a comment of its own.", job=job.id)

    def _bisect(self, comment: CommentMade, command: Command, key: str) -> CarriedOut:
        # The same question is one bisect, whatever asked for it.
        del key
        if self.bisects is None:
            raise _CannotError(
                "The service cannot bisect yet. `forkwatch compare` measures any two commits on a "
                "machine of your own."
            )
        good, bad = command.revisions
        ask = BisectAsk(
            good=good,
            bad=bad,
            workload=command.name,
            actor=_actor(comment),
            via=OrderVia.GITHUB.value,
            alert=self._alert_of(comment),
            number=comment.number,
        )
        try:
            bisect, _ = self.bisects.ask(ask)
        except ActionError as error:
            raise _CannotError(
                f"Not begun: {markdown(str(error), length_max=_FAULT_LENGTH_MAX)}."
            ) from error
        page = f"{self.settings.pages_url}/bisects/{bisect.id}"
        if bisect.state in UNDER_WAY:
            return CarriedOut(answer=begun_sentence(bisect, page=page))
        return CarriedOut(answer=f"This was searched before: {ended_sentence(bisect, page=page)}")

    def _accept(self, comment: CommentMade, command: Command, key: str) -> CarriedOut:
        alert = self._alert_of(comment)
        if alert is None:
            return self._accept_head(comment, command)
        order = AlertOrder(
            alert=alert,
            action=AlertAction.ACCEPT,
            actor=_actor(comment),
            via="github",
            note=command.reason,
            key=key,
        )
        try:
            self.actions.act(order)
        except ActionError as error:
            raise _CannotError(
                f"Not accepted: {markdown(str(error), length_max=_FAULT_LENGTH_MAX)}."
            ) from error
        return CarriedOut(answer="Accepted: later commits are compared with the new level.")

    def _accept_head(self, comment: CommentMade, command: Command) -> CarriedOut:
        """Accept the losses of the head that is measured and still the newest one heard of."""
        fork = self._fork()
        with self.database.writing() as session:
            pull = pull_requests.find(session, fork, comment.number)
            for job in pull_jobs.of_pull(session, fork, comment.number):
                of_head = pull is not None and job.candidate_sha == pull.head_sha
                if job.kind is PullJobKind.RUN and job.verdicts and of_head:
                    if not is_loud(rows_of(job, pull_jobs.document(session, job.id))):
                        break
                    by, reason = _actor(comment), command.reason
                    pull_jobs.accept(session, job.id, by=by, reason=reason)
                    return CarriedOut(
                        answer="Accepted: its check blocks nobody any more. Once it is merged, the "
                        "alert of its commit is accepted on its own issue.",
                        show=job.id,
                    )
        raise _CannotError(
            "There is nothing to accept here: accepted are the losses of a pull request's head "
            "that was measured, or those of an alert, on its issue."
        )

    def _explain(self, comment: CommentMade, command: Command, key: str) -> CarriedOut:
        del key
        rows = self._rows_of_alert(comment) or self._rows_of_pull(comment)
        if not rows:
            raise _CannotError("Nothing was judged here yet, so there is nothing to explain.")
        if command.name is not None:
            rows = [row for row in rows if row.workload == command.name]
        found = reasons(rows[:EXPLAINED_MAX])
        if not found:
            raise _CannotError("No workload of that name was judged here.")
        more = len(rows) - EXPLAINED_MAX
        rest = f"\n\n{more} more: name the one that you mean." if more > 0 else ""
        return CarriedOut(answer=f"{found}{rest}")

    def _fork(self) -> str:
        try:
            return parse_plan(self.code_host.plan_text()).fork.name
        except CatalogError as error:
            raise CodeHostError(f"the plan cannot be used now: {error}") from error

    def _plan_with(self, suite: str) -> tuple[Plan, str]:
        """Return the plan of the default branch, once it is sure that it has this suite."""
        try:
            plan = parse_plan(self.code_host.plan_text())
        except CatalogError as error:
            _log.warning("the plan cannot be used: %s", error)
            raise _CannotError("The plan of the default branch cannot be used now.") from error
        if suite not in plan.suites:
            names = ", ".join(f"`{name}`" for name in [*plan.suites][:_LISTED_MAX])
            raise _CannotError(f"The plan has no such suite. It has: {names}.")
        return plan, suite

    def _commit(self, revision: str) -> GitCommit:
        found = self.code_host.resolve(revision)
        if found is None:
            raise _CannotError(
                "One of these names no commit here: name a branch, a tag, or seven or more digits "
                "of a commit."
            )
        return found

    def _pull_at_sight(self, comment: CommentMade, plan: Plan) -> PullRequest:
        """Return the pull request with the head that the writer of the comment saw.

        For code from outside the comment is what lets it run here. So its head has to be one that
        was known before the comment was written, and still is the head: whoever pushes in between
        gets nothing measured.
        """
        if not comment.on_pull_request:
            raise _CannotError("This is no pull request; name both commits of a `compare`.")
        fork, number = plan.fork.name, comment.number
        with self.database.reading() as session:
            known = pull_requests.find(session, fork, number)
        base = known.base if known else plan.fork.branch
        head = self.code_host.pull_request(number, base=base).head.sha
        same_head = known is not None and known.head_sha == head
        if known is not None and same_head and known.head_at < comment.at:
            return known
        pull = known or PullRequest(
            fork=fork,
            number=number,
            head_sha=head,
            head_at=comment.at,
            base=base,
            outside=True,
            draft=False,
            open=True,
            changed_at=comment.at,
        )
        if not same_head:
            # Not known before this moment; what was said before it was said about another head.
            at = max(self.clock.now(), comment.at)
            pull = replace(pull, head_sha=head, head_at=at)
        with self.database.writing() as session:
            forks.ensure(session, fork, branch=plan.fork.branch, at=self.clock.now())
            pull_requests.put(session, pull)
        if not pull.outside:
            return pull
        raise _CannotError(
            f"Not begun: the head may not be the one that you saw. It is `{short(head)}` now; "
            "look at it, and say it again."
        )

    def _alert_of(self, comment: CommentMade) -> str | None:
        """Return the alert whose issue this is; anybody can write our first line into theirs."""
        ours = comment.alert is not None and comment.issue_login == self.own_login()
        return comment.alert if ours else None

    def _rows_of_alert(self, comment: CommentMade) -> Sequence[Row]:
        alert_id = self._alert_of(comment)
        if alert_id is None:
            return ()
        with self.database.reading() as session:
            alert = alerts.find(session, alert_id)
            if alert is None:
                return ()
            found = {v.series.workload: v.verdict for v in verdicts.of_run(session, alert.run)}
            return rows_of_pair(runs.document(session, alert.run), found)

    def _rows_of_pull(self, comment: CommentMade) -> Sequence[Row]:
        """Return the rows of the newest job here that was judged."""
        fork = self._fork()
        with self.database.reading() as session:
            for job in pull_jobs.of_pull(session, fork, comment.number):
                rows = rows_of(job, pull_jobs.document(session, job.id)) if job.verdicts else ()
                if rows:
                    return rows
        return ()


def _actor(comment: CommentMade) -> str:
    return f"github:{comment.login}"
