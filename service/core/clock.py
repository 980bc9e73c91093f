"""The clock: where the service learns the time, so that tests can say what time it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """Return the present time, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present time, aware, in UTC."""
        return datetime.now(UTC)  # noqa: TID251  this is the clock that the rule names
