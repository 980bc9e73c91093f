"""The plan's table `[notify.slack]`: which channel hears of which alert, and when.

Words come in, frozen values go out. Nothing here talks to Slack; the token and the usual channel
belong to the service's settings.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import time
from typing import Annotated, Final

from pydantic import Field, StringConstraints, field_validator

from workloads.plan_values import Table

#: Slack's id of a channel. A name would break with the next renaming, and cannot be read back.
CHANNEL_PATTERN: Final = r"^[CG][A-Z0-9]{2,20}$"
_HOURS: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
#: A rule for each workload of the longest suite.
_CHANNELS_MAX: Final = 50

Channel = Annotated[str, StringConstraints(pattern=CHANNEL_PATTERN)]
Glob = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class SlackPlan(Table):
    """Where on Slack alerts go, if the service has a Slack."""

    channel: Channel | None = Field(
        default=None,
        description="Id of the channel that hears of alerts; the service's own where not set.",
    )
    channels: Annotated[dict[Glob, Channel], Field(max_length=_CHANNELS_MAX)] = Field(
        default_factory=dict,
        description="Other channels by workload, such as scan*; the largest loss decides.",
    )
    severe_loss: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.2, description="A loss of so much is severe: it does not wait for the morning."
    )
    severe_channel: Channel | None = Field(
        default=None, description="Channel for severe losses, whatever the workload."
    )
    quiet_hours: Annotated[str, StringConstraints(max_length=11)] | None = Field(
        default=None,
        description="Such as 22:00-07:00: alerts that are not severe wait for the end of it.",
    )
    time_zone: Annotated[str, StringConstraints(max_length=64)] = Field(
        default="UTC", description="Zone of the quiet hours, such as Europe/Berlin."
    )

    @field_validator("quiet_hours", mode="after")
    @classmethod
    def _is_a_stretch(cls, hours: str | None) -> str | None:
        if hours is None:
            return None
        if not _HOURS.fullmatch(hours):
            raise ValueError("has to be two times of the day, such as 22:00-07:00")
        if hours[:5] == hours[6:]:
            raise ValueError("begins when it ends; leave it out to have no quiet hours")
        return hours

    @field_validator("time_zone", mode="after")
    @classmethod
    def _is_known(cls, name: str) -> str:
        # UTC needs no database of zones; a machine without one still reads every other plan.
        if name != "UTC":
            try:
                zoneinfo.ZoneInfo(name)
            except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
                raise ValueError("is no time zone known here; such as Europe/Berlin") from None
        return name

    @property
    def quiet_between(self) -> tuple[time, time] | None:
        """Begin and end of the quiet hours, without the end; None where there are none."""
        if self.quiet_hours is None:
            return None
        begin, _, end = self.quiet_hours.partition("-")
        return time.fromisoformat(begin), time.fromisoformat(end)
