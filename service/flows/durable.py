"""One step of a durable flow: done once and for all, and tried again while the outside fails.

A step and its arguments come in, what it returned goes out; DBOS remembers it. Which steps there
are, and in what order, is for each flow to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS
from sqlalchemy.exc import OperationalError

from service.core.errors import TransientError
from service.flows.step_gate import STEPS, Moment

if TYPE_CHECKING:
    from collections.abc import Callable

#: Starts of the service during one flow before it counts as the cause of the crashes.
RECOVERIES_MAX: Final = 1000
#: Tries of a step when something outside fails, with pauses of 1, 2, 4 ... seconds: a database
#: restart or a full disk that is cleared within some minutes goes by unnoticed.
STEP_TRIES_MAX: Final = 9


def may_work_later(error: BaseException) -> bool:
    """Whether trying a step again within minutes may help."""
    return isinstance(error, TransientError | OperationalError)


def run_step(
    step: Callable[..., Any],
    *arguments: Any,
    pause_seconds: float,
    name: str | None = None,
    tries_max: int = STEP_TRIES_MAX,
    should_retry: Callable[[BaseException], bool] = may_work_later,
) -> Any:
    """Return what a step returned when it was done.

    Args:
        step: What to do; doing it twice has to be as good as once.
        arguments: Of the step.
        pause_seconds: The first pause before it is tried again; each further one is twice as long.
        name: As DBOS keeps it; the step's own where absent.
        tries_max: Tries in all.
        should_retry: Whether an error may go away by itself.
    """
    known = name or step.__name__
    done = False

    def told(*given: Any) -> Any:
        nonlocal done
        STEPS.tell(known, Moment.BEGUN)
        found = step(*given)
        STEPS.tell(known, Moment.DONE)
        done = True
        return found

    # A service that ends begins no step; what was begun is done and written down first.
    with STEPS.one():
        found = DBOS.run_step(
            {
                "name": known,
                "retries_allowed": True,
                "max_attempts": tries_max,
                "interval_seconds": pause_seconds,
                "should_retry": should_retry,
            },
            told,
            *arguments,
        )
        # What an earlier life did is only read again.
        if done:
            STEPS.tell(known, Moment.KEPT)
        return found
