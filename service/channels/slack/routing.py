"""Which channel hears of an alert, and whether it may be heard now.

An alert, the plan's wishes and the time come in; a channel and a time go out. Nothing is sent.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from service.core.model import Alert
    from workloads.plan_slack import SlackPlan


def is_severe(alert: Alert, plan: SlackPlan) -> bool:
    """Whether the largest loss is as large as the plan calls severe."""
    largest = max((abs(item.effect) for item in alert.workloads), default=0.0)
    return -math.expm1(-largest) >= plan.severe_loss


def channel_of(alert: Alert, plan: SlackPlan, *, usual: str) -> str:
    """Return the channel: for severe losses, of the workload that lost most, of the fork, or ours.

    Args:
        alert: What it is about.
        plan: What the fork wishes.
        usual: The service's own channel.
    """
    if plan.severe_channel is not None and is_severe(alert, plan):
        return plan.severe_channel
    for item in sorted(alert.workloads, key=lambda item: -abs(item.effect)):
        for glob, channel in plan.channels.items():
            if fnmatchcase(item.workload, glob):
                return channel
    return plan.channel or usual


def quiet_until(alert: Alert, plan: SlackPlan, *, now: datetime) -> datetime | None:
    """Return when the quiet hours end that keep this alert waiting now, None where none do."""
    between = plan.quiet_between
    if between is None or is_severe(alert, plan):
        return None
    begin, end = between
    zone = UTC if plan.time_zone == "UTC" else ZoneInfo(plan.time_zone)
    local = now.astimezone(zone)
    time = local.time()
    over_midnight = begin > end
    quiet = time >= begin or time < end if over_midnight else begin <= time < end
    if not quiet:
        return None
    day = local.date() + timedelta(days=1 if over_midnight and time >= begin else 0)
    until = datetime.combine(day, end, tzinfo=zone).astimezone(UTC)
    # Where clocks go back, the end of the night may lie in the hour that comes twice.
    return until if until > now else until + timedelta(hours=1)
