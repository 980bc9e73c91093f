"""What listens to GitHub, put together: the flow of pull requests, and orders in comments.

The connected channel and the parts of the service come in; flows that DBOS knows and a desk for
news go out. It is a part of the composition root, for a service that has a repository on GitHub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.flows.comment_orders import CommentOrders
from service.flows.comment_steps import CommentSteps
from service.flows.pull_request_flow import PullRequestFlow
from service.flows.pull_steps import PullSteps
from service.web.webhooks import NewsDesk

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.app.parts import Common
    from service.channels.github.connect import GitHubChannel
    from service.flows.bisect_asks import BisectAsks


@dataclass(frozen=True, kw_only=True)
class Listening:
    """What listens to GitHub."""

    pulls: PullRequestFlow
    desk: NewsDesk


def listen(
    github: GitHubChannel | None,
    common: Common,
    *,
    queue: str,
    bisects: BisectAsks,
    wake: Callable[[], None],
) -> Listening | None:
    """Return what listens, or None where there is no GitHub; DBOS must not be launched yet.

    Args:
        github: Where to speak.
        common: Of the service.
        queue: In which all measuring on the host class waits.
        bisects: Begins what is asked for in comments.
        wake: Called when a branch was pushed to.
    """
    if github is None:
        return None
    pulls = PullRequestFlow(
        PullSteps(
            database=common.database,
            clock=common.clock,
            code_host=common.code_host,
            dispatcher=common.dispatcher,
            checks=github.checks,
            comments=github.comments,
            settings=common.settings,
            alone=github.client.alone,
        ),
        queue=queue,
    )
    steps = CommentSteps(
        database=common.database,
        clock=common.clock,
        code_host=common.code_host,
        actions=common.actions,
        settings=common.settings,
        own_login=github.client.login,
        bisects=bisects,
    )
    orders = CommentOrders(steps, pulls, permissions=github.permissions, comments=github.comments)
    desk = NewsDesk(
        pushed=lambda _branch: wake(),
        pull_request_changed=pulls.changed,
        commented=orders.heard,
        run_ended=common.run_ended,
    )
    return Listening(pulls=pulls, desk=desk)
