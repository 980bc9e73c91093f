"""The durable flow of a comment with orders: may they, seen, done, answered once.

A comment comes in, read from a webhook. Whoever may not write to the repository is not answered: a
stranger gets no work out of the service, not even words. `comment_steps` carries the orders out.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbos import DBOS, SetWorkflowID

from service.channels.github.commands import find_commands
from service.channels.github.webhooks import CommentMade
from service.flows.durable import RECOVERIES_MAX
from service.flows.pull_request_flow import GITHUB_QUEUE, DurableSteps

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.core.ports import Permissions, PullRequestComments
    from service.flows.comment_steps import CommentSteps
    from service.flows.pull_request_flow import PullRequestFlow

_log = logging.getLogger("forkwatch.comments")


class CommentOrders:
    """The flow, registered with DBOS; make one before DBOS is launched."""

    def __init__(
        self,
        steps: CommentSteps,
        pulls: PullRequestFlow,
        *,
        permissions: Permissions,
        comments: PullRequestComments,
        step_pause_seconds: float = 1.0,
    ) -> None:
        """Register the workflow.

        Args:
            steps: What orders do.
            pulls: Begins the jobs that they ask for.
            permissions: Who may give them.
            comments: Where they are answered.
            step_pause_seconds: The first pause before a step is tried again.
        """
        self._steps = steps
        self._pulls = pulls
        self._permissions = permissions
        self._comments = comments
        self._durable = DurableSteps(pause_seconds=step_pause_seconds)
        self._workflow = self._registered()

    def heard(self, comment: CommentMade) -> bool:
        """Begin the flow of a comment that has orders in it; return whether it has any.

        A comment is one flow however often GitHub tells about it.
        """
        if not find_commands(comment.text):
            return False
        with SetWorkflowID(f"comment:{comment.comment}"):
            DBOS.enqueue_workflow(GITHUB_QUEUE, self._workflow, asdict(comment))
        return True

    def _registered(self) -> Callable[[dict[str, Any]], None]:
        @DBOS.workflow(name="answer_comment", max_recovery_attempts=RECOVERIES_MAX)
        def answer_comment(values: dict[str, Any]) -> None:
            comment = CommentMade(**values)
            try:
                self._answer(comment)
            except Exception:  # noqa: BLE001  locked, deleted, or a bug: nobody can be told
                _log.exception("comment %d could not be answered", comment.comment)

        return answer_comment

    def _answer(self, comment: CommentMade) -> None:
        do = self._durable.do
        if not do(self._permissions.may_write, comment.login):
            _log.info("comment %d: its writer may not give orders", comment.comment)
            return
        self._acknowledge(comment)
        answers = []
        for place, command in enumerate(find_commands(comment.text)):
            key = f"comment:{comment.comment}:{place}"
            try:
                done = do(self._carried_out(comment, command, key))
            except Exception:  # noqa: BLE001  the other orders are carried out all the same
                _log.exception("comment %d: order %d failed", comment.comment, place)
                answers.append("That failed here; the log of the service says how.")
                continue
            if done.job is not None:
                self._pulls.begin(done.job)
            if done.show is not None:
                self._pulls.show(done.show, key)
            answers.append(done.answer)
        text = "\n\n".join(answers)
        do(self._comments.answer, comment.number, comment.comment, text)

    def _carried_out(self, comment: CommentMade, command: Any, key: str) -> Callable[[], Any]:
        def carry_out() -> Any:
            return self._steps.carry_out(comment, command, key=key)

        return carry_out

    def _acknowledge(self, comment: CommentMade) -> None:
        try:
            self._durable.do(self._comments.acknowledge, comment.comment)
        except Exception:  # noqa: BLE001  it is a sign of politeness only
            _log.exception("comment %d could not be acknowledged", comment.comment)
