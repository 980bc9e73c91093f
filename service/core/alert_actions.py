"""What people may do about an alert, and which state it then has; the one table of the life cycle.

An order names the alert, the action and who gave it. This module knows neither the store nor the
channel that an order came through; who may give orders is decided where they come in. The table
is drawn in docs/alerts.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from service.core.errors import ActionError
from service.core.model import AlertState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime


class AlertAction(StrEnum):
    """What a person does about an alert."""

    #: I have seen it and look after it.
    ACKNOWLEDGE = "acknowledge"
    #: The loss is real and intended: compare later commits with the new level.
    ACCEPT = "accept"
    #: There is no loss; the baseline goes on as if nothing had been said.
    FALSE_ALARM = "false-alarm"
    #: The loss is real; nothing else changes.
    TRUE_ALARM = "true-alarm"
    #: No news about it for a while.
    MUTE = "mute"
    #: Somebody shall look after it, by a day where one is given.
    ASSIGN = "assign"
    #: Words for whoever reads it next.
    NOTE = "note"
    #: The loss is gone.
    FIXED = "fixed"
    #: It is not settled after all.
    REOPEN = "reopen"


class AlertStep(StrEnum):
    """What the service itself does about an alert, beside giving the orders above."""

    #: A paired job has shown the loss.
    CONFIRM = "confirm"
    #: The commits of its range are being measured.
    BISECT = "bisect"
    #: One commit of its range is named.
    NAME_CULPRIT = "name-culprit"


class OrderVia(StrEnum):
    """Where an order came in."""

    API = "api"
    GITHUB = "github"
    SLACK = "slack"
    PAGE = "page"
    #: The service gave it to itself, at the end of a commit.
    FLOW = "flow"
    #: Somebody with a shell on the service's machine.
    SHELL = "shell"


#: The actor of orders that the service gives itself.
SERVICE_ACTOR: Final = "forkwatch"


@dataclass(frozen=True, kw_only=True)
class AlertOrder:
    """One action on one alert by somebody who may give it."""

    #: Id of the alert.
    alert: str
    action: AlertAction
    #: `github:LOGIN`, `slack:USERID`, `token:NAME`, or `forkwatch` itself.
    actor: str
    #: One of `OrderVia`.
    via: str
    note: str = ""
    #: What makes it one order however often it arrives, such as a comment's id; the same key on the
    #: same alert is done once. Without one, each arrival is an order of its own.
    key: str = ""
    #: Of an `assign`: who shall look after it; the actor where empty.
    owner: str = ""
    #: Of an `assign`: until when.
    due_on: date | None = None
    #: Of a `mute`: until when; a week where absent.
    until: datetime | None = None


#: Somebody should still do something about an alert in one of these.
OPEN_STATES: Final = (
    AlertState.CONFIRMED,
    AlertState.BISECTING,
    AlertState.CULPRIT_FOUND,
    AlertState.ACKNOWLEDGED,
)
#: Nothing is left to do, unless it is opened again.
CLOSED_STATES: Final = (AlertState.ACCEPTED, AlertState.FIXED, AlertState.FALSE)
_TOLD_STATES: Final = (*OPEN_STATES, *CLOSED_STATES)


def _to(
    what: AlertAction | AlertStep, after: AlertState | None, *states: AlertState
) -> dict[tuple[AlertState, AlertAction | AlertStep], AlertState]:
    """Return the rows of one action; without a state after it, the state stays."""
    return {(before, what): after or before for before in states}


#: (state, what happens) -> state after it. What is not in here is not possible.
TRANSITIONS: Final[Mapping[tuple[AlertState, AlertAction | AlertStep], AlertState]] = {
    # A bisect that names nobody leaves an alert as it was before.
    **_to(AlertStep.CONFIRM, AlertState.CONFIRMED, AlertState.SUSPECTED, AlertState.BISECTING),
    **_to(AlertStep.BISECT, AlertState.BISECTING, AlertState.CONFIRMED, AlertState.ACKNOWLEDGED),
    **_to(AlertStep.NAME_CULPRIT, AlertState.CULPRIT_FOUND, *OPEN_STATES),
    **_to(AlertAction.ACKNOWLEDGE, AlertState.ACKNOWLEDGED, *OPEN_STATES),
    **_to(AlertAction.ACCEPT, AlertState.ACCEPTED, *OPEN_STATES),
    # Also of one that closed itself: it may never have been slow.
    **_to(AlertAction.FALSE_ALARM, AlertState.FALSE, *OPEN_STATES, AlertState.FIXED),
    **_to(AlertAction.TRUE_ALARM, None, *OPEN_STATES, AlertState.ACCEPTED, AlertState.FIXED),
    **_to(AlertAction.MUTE, None, *OPEN_STATES),
    **_to(AlertAction.ASSIGN, None, *OPEN_STATES),
    **_to(AlertAction.NOTE, None, *_TOLD_STATES),
    **_to(AlertAction.FIXED, AlertState.FIXED, *OPEN_STATES),
    **_to(AlertAction.REOPEN, AlertState.CONFIRMED, *CLOSED_STATES),
}


def next_state(state: AlertState, what: AlertAction | AlertStep) -> AlertState:
    """Return the state of an alert after this happened to it.

    Raises:
        ActionError: That cannot happen in this state; the message says what can.
    """
    after = TRANSITIONS.get((state, what))
    if after is None:
        possible = ", ".join(allowed_actions(state)) or "nothing"
        raise ActionError(
            f"an alert that is {state.value} cannot take {what.value!r}; possible now: {possible}"
        )
    return after


def allowed_actions(state: AlertState) -> tuple[AlertAction, ...]:
    """Return what people may do about an alert in this state."""
    return tuple(action for action in AlertAction if (state, action) in TRANSITIONS)


def is_turn(before: str | None, after: str | None) -> bool:
    """Return whether this change of state closed an alert or opened it again.

    An issue is closed and opened; between two open states it has nothing to do.
    """
    return before != after and bool({before, after} & {state.value for state in CLOSED_STATES})
