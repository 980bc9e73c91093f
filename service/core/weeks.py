"""ISO weeks in a time zone: the name of a week or a moment comes in, days and instants go out.

A week belongs to the people who read about it, so it begins at midnight of their Monday. Nothing
here knows the time; a moment is always given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from service.core.errors import SettingsError

_NAME: Final = re.compile(r"(2\d{3})-W(\d{2})")
_DAYS: Final = 7


@dataclass(frozen=True, kw_only=True, order=True)
class Week:
    """A week by its ISO year and number, such as 2026-W47."""

    year: int
    number: int

    @property
    def name(self) -> str:
        """The week as people and addresses write it."""
        return f"{self.year}-W{self.number:02d}"

    @property
    def first_day(self) -> date:
        """Its Monday."""
        return date.fromisocalendar(self.year, self.number, 1)

    @property
    def last_day(self) -> date:
        """Its Sunday."""
        return self.first_day + timedelta(days=_DAYS - 1)

    def begins(self, zone: ZoneInfo) -> datetime:
        """Return the instant it begins at, in UTC."""
        return datetime.combine(self.first_day, time(), tzinfo=zone).astimezone(UTC)

    def ends(self, zone: ZoneInfo) -> datetime:
        """Return the first instant after it, in UTC."""
        return self.after(1).begins(zone)

    def after(self, weeks: int) -> Week:
        """Return the week so many weeks later; earlier where negative."""
        return _holding(self.first_day + timedelta(weeks=weeks))


def week_of(moment: datetime, zone: ZoneInfo) -> Week:
    """Return the week that a moment lies in."""
    return _holding(moment.astimezone(zone).date())


def parse_week(name: str) -> Week:
    """Return the week of that name.

    Raises:
        ValueError: There is no such week.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is no week; write it as 2026-W47")
    week = Week(year=int(found[1]), number=int(found[2]))
    # Not every year has a week 53.
    if not 1 <= week.number <= date(week.year, 12, 28).isocalendar().week:
        raise ValueError(f"the year {week.year} has no week {week.number}")
    return week


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of that name.

    Raises:
        SettingsError: There is none.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # What is looked up is a file: a folder, or a name that leads elsewhere, is no zone either.
        raise SettingsError(
            f"{name!r} is no time zone; write one such as UTC or Europe/Helsinki"
        ) from None


def _holding(day: date) -> Week:
    year, number, _ = day.isocalendar()
    return Week(year=year, number=number)
