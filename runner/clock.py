"""The time of day, for stamps in documents. Durations are measured with time.monotonic."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)  # noqa: TID251  the runner's one clock
